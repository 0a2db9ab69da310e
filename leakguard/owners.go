package leakguard

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owners finds out who owns the operator's Pod: its controller, and for a ReplicaSet of a Deployment, or of its like, that. It
// belongs to one goroutine.
type owners struct {
	reader client.Reader // without a cache: two objects are not worth an informer
	pod    *corev1.ObjectReference
	owner  *corev1.ObjectReference // nil as long as none is known
	asked  bool                    // and there is no use in asking again
}

// find gives the Pod and its owner, nil when there is none or it is not known. The error says why there is no more to be
// had; it comes back with each call that asked the API server in vain.
func (o *owners) find(ctx context.Context) (pod, owner *corev1.ObjectReference, err error) {
	if !o.asked {
		err = o.ask(ctx)
		o.asked = err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	}
	return o.pod, o.owner, err
}

func (o *owners) ask(ctx context.Context) error {
	pod, err := o.read(ctx, o.pod)
	if err != nil {
		return err
	}
	read := *o.pod // a copy: an Event that is being sent has the other one
	read.UID = pod.UID
	o.pod, o.owner = &read, reference(pod.Namespace, pod)
	if o.owner == nil || o.owner.Kind != "ReplicaSet" {
		return nil
	}
	set, err := o.read(ctx, o.owner)
	if err != nil {
		return err
	}
	if above := reference(set.Namespace, set); above != nil {
		o.owner = above
	}
	return nil
}

// read asks for an object's metadata, for which the manager's scheme need not know its type.
func (o *owners) read(ctx context.Context, ref *corev1.ObjectReference) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	err := o.reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
	return object, err
}

// reference refers to the controller of an object; nil when it has none. A Pod of a node's own belongs to that Node, which is
// in no namespace and not the one to be told.
func reference(namespace string, object metav1.Object) *corev1.ObjectReference {
	c := metav1.GetControllerOfNoCopy(object)
	if c == nil || c.Kind == "Node" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: namespace, Name: c.Name, UID: c.UID}
}
