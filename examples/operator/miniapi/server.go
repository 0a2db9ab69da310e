package miniapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// maxBody bounds a request body, as etcd's request limit does for the real server.
const maxBody = 3 << 20

// Server is the API as an [http.Handler].
type Server struct {
	store *store
	// stop ends every watch when it is closed.
	stop chan struct{}
}

// Open gives the API over the journal in a folder, which it makes when it is not there. The server keeps the journal open
// until Close.
func Open(dir string, resources ...Resource) (*Server, error) {
	s := newStore(resources)
	j, err := openJournal(filepath.Join(dir, "journal.jsonl"), s.restore)
	if err != nil {
		return nil, err
	}
	s.journal = j
	server := &Server{store: s, stop: make(chan struct{})}
	if err := server.makeNamespaces("default", "kube-system"); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return server, nil
}

// makeNamespaces makes the namespaces that every cluster has, if namespaces are served and they are not there yet.
func (s *Server) makeNamespaces(names ...string) error {
	t := s.store.tables["/v1/namespaces"]
	if t == nil {
		return nil
	}
	for _, name := range names {
		if t.objects[objectKey("", name)] != nil {
			continue
		}
		object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": string(corev1.NamespaceActive)}}}
		object.SetName(name)
		stamp(object)
		if err := s.store.commitLocked(t, watch.Added, object); err != nil {
			return err
		}
	}
	return nil
}

// Close ends all watches and closes the journal. Requests after it fail. Call it once, after the HTTP server stopped
// taking requests.
func (s *Server) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return s.store.journal.close()
}

// EndWatches ends every watch, now and from now on, so that an HTTP server can be shut down in order.
func (s *Server) EndWatches() { close(s.stop) }

// call is a request to a resource.
type call struct {
	*http.Request
	table       *table
	namespace   string
	name        string
	subresource string
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if s.serveDiscovery(w, r, path) {
		return
	}
	c, err := s.parse(r, path)
	if err != nil {
		fail(w, err)
		return
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && c.name == "" && (query.Get("watch") == "true" || query.Get("watch") == "1"):
		s.watch(w, c) //nolint:contextcheck // the call has its request, and that its context
		return
	case r.Method == http.MethodGet && c.name == "":
		s.list(w, c)
		return
	}
	code, object, err := s.single(w, c)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, code, object)
}

// parse finds the resource and the object that a path names.
func (s *Server) parse(r *http.Request, path []string) (call, error) {
	var group, version string
	var rest []string
	switch {
	case len(path) >= 3 && path[0] == "api":
		version, rest = path[1], path[2:]
	case len(path) >= 4 && path[0] == "apis":
		group, version, rest = path[1], path[2], path[3:]
	default:
		return call{}, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", r.URL.Path+" is not served", 0, true)
	}
	c := call{Request: r}
	if rest[0] == "namespaces" && len(rest) >= 3 && rest[2] != "status" {
		c.namespace, rest = rest[1], rest[2:]
	}
	c.table = s.store.tables[group+"/"+version+"/"+rest[0]]
	if c.table == nil {
		return call{}, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{Group: group, Resource: rest[0]}, "", "the resource is not served", 0, true)
	}
	if len(rest) > 1 {
		c.name = rest[1]
	}
	if len(rest) > 2 {
		c.subresource = rest[2]
	}
	return c, c.check(len(rest))
}

// check refuses what the server does not have rather than doing something else.
func (c call) check(depth int) error {
	switch {
	case depth > 3, c.subresource != "" && (c.subresource != "status" || !c.table.Status):
		return apierrors.NewNotFound(c.table.groupResource(), c.name+"/"+c.subresource)
	case c.table.Namespaced && c.namespace == "" && c.name != "",
		c.table.Namespaced && c.namespace == "" && c.Method == http.MethodPost,
		!c.table.Namespaced && c.namespace != "":
		return apierrors.NewNotFound(c.table.groupResource(), c.name)
	case c.URL.Query().Has("dryRun"):
		return apierrors.NewBadRequest("dry run is not supported")
	}
	return nil
}

// single answers a request for one object, or for the deletion of a collection.
func (s *Server) single(w http.ResponseWriter, c call) (code int, object any, err error) {
	var body []byte
	if c.Method != http.MethodGet {
		if body, err = io.ReadAll(http.MaxBytesReader(w, c.Body, maxBody)); err != nil {
			return 0, nil, apierrors.NewRequestEntityTooLargeError(err.Error())
		}
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	switch {
	case c.Method == http.MethodPost && c.name == "":
		return s.createLocked(c, body)
	case c.Method == http.MethodDelete && c.name == "":
		return s.deleteCollectionLocked(c)
	}
	current := c.table.objects[objectKey(c.namespace, c.name)]
	if current == nil {
		return 0, nil, apierrors.NewNotFound(c.table.groupResource(), c.name)
	}
	switch c.Method {
	case http.MethodGet:
		return http.StatusOK, current.Object, nil
	case http.MethodDelete:
		return s.deleteLocked(c, current, body)
	case http.MethodPut:
		return s.putLocked(c, current, body)
	case http.MethodPatch:
		return s.patchLocked(c, current, body)
	}
	return 0, nil, apierrors.NewMethodNotSupported(c.table.groupResource(), c.Method)
}

func reply(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An error here is the client that went away.
	_, _ = w.Write(body)
}

// fail answers with the Status object that the Kubernetes clients turn back into the error.
func fail(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	reply(w, int(status.Code), status)
}
