package miniapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery answers the requests about the server itself and reports whether this was one.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request, path []string) bool {
	switch {
	case r.URL.Path == "/version":
		reply(w, http.StatusOK, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+miniapi"})
	case r.URL.Path == "/healthz", r.URL.Path == "/livez", r.URL.Path == "/readyz":
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok"))
	case r.URL.Path == "/api":
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		reply(w, http.StatusOK, s.groups())
	case len(path) == 2 && path[0] == "api", len(path) == 3 && path[0] == "apis":
		return s.serveResources(w, path)
	default:
		return false
	}
	return true
}

// resources gives what is served, in a stable order.
func (s *Server) resources() []Resource {
	var out []Resource
	for _, key := range slices.Sorted(maps.Keys(s.store.tables)) {
		out = append(out, s.store.tables[key].Resource)
	}
	return out
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, r := range s.resources() {
		known := slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == r.Group })
		if r.Group == "" || known {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: r.GroupVersion(), Version: r.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: r.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

// serveResources answers with the resources of one group and version, and not at all for an unknown one.
func (s *Server) serveResources(w http.ResponseWriter, path []string) bool {
	gv := path[1]
	if path[0] == "apis" {
		gv += "/" + path[2]
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for _, r := range s.resources() {
		if r.GroupVersion() != gv || (r.Group == "") != (path[0] == "api") {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, Kind: r.Kind, Namespaced: r.Namespaced,
			Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		})
		if r.Status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural + "/status", Kind: r.Kind, Namespaced: r.Namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	if len(list.APIResources) == 0 {
		return false
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	reply(w, http.StatusOK, list)
	return true
}
