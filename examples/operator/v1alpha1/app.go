// Package v1alpha1 is the API of the example operator: the custom resource App.
package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// App is something to run: an image in a number of replicas.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   AppSpec   `json:"spec,omitzero"`
	Status AppStatus `json:"status,omitzero"`
}

// AppSpec is what the user wants.
type AppSpec struct {
	// Image is what to run. A change of it is a rollout.
	Image string `json:"image,omitempty"`
	// Replicas is how many.
	Replicas int32 `json:"replicas,omitempty"`
}

// AppStatus is what is there.
type AppStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas is how many run.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

// AppList is a list of Apps.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []App `json:"items"`
}

// GroupVersion gives the group and version of App.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "apps.leakguard.example", Version: "v1alpha1"}
}

// AddToScheme makes App known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &App{}, &AppList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// CRD gives the definition of App for a cluster.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	integer := func(format string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: format}
	}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec":   object(map[string]apiextensionsv1.JSONSchemaProps{"image": {Type: "string"}, "replicas": integer("int32")}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{"observedGeneration": integer("int64"), "readyReplicas": integer("int32")}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "apps." + GroupVersion().Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: GroupVersion().Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "apps", Singular: "app", Kind: "App", ListKind: "AppList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: GroupVersion().Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
