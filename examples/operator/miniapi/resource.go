package miniapi

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one served resource.
type Resource struct {
	// Group, Version, Plural and Kind name it, for example "apps.example.com", "v1", "apps", "App". The core group is "".
	Group, Version, Plural, Kind string
	// Namespaced says that its objects live in namespaces.
	Namespaced bool
	// Status says that it has a status subresource: then a write to the object leaves the status as it was, and a write
	// to the status leaves the rest.
	Status bool
	// Custom says that it is a custom resource: an update must name the resource version that it is based on, and there
	// is no strategic merge patch.
	Custom bool
}

// Builtins are the resources of Kubernetes itself that operators use in any case.
func Builtins() []Resource {
	return []Resource{
		{Version: "v1", Plural: "namespaces", Kind: "Namespace", Status: true},
		{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true},
		{Version: "v1", Plural: "events", Kind: "Event", Namespaced: true},
		{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true},
		{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true},
	}
}

// GroupVersion gives "group/version", or only the version for the core group.
func (r Resource) GroupVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

func (r Resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

func (r Resource) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// key is how the journal and the server name a resource: "group/version/plural".
func (r Resource) key() string {
	return r.Group + "/" + r.Version + "/" + r.Plural
}
