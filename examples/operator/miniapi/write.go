package miniapi

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// decode reads the object of a request.
func (c call) decode(body []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &object.Object); err != nil {
		return nil, apierrors.NewBadRequest("the body must be an object in JSON: " + err.Error())
	}
	if object.Object == nil {
		return nil, apierrors.NewBadRequest("the body is empty")
	}
	if _, ok := object.Object["metadata"].(map[string]any); !ok {
		object.Object["metadata"] = map[string]any{}
	}
	if ns := object.GetNamespace(); ns != "" && ns != c.namespace {
		return nil, apierrors.NewBadRequest("the namespace of the object is not that of the request")
	}
	object.SetNamespace(c.namespace)
	return object, nil
}

// stamp sets what a new object gets from the server.
func stamp(object *unstructured.Unstructured) {
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.Now())
	object.SetGeneration(1)
	object.SetDeletionTimestamp(nil)
}

func (s *Server) createLocked(c call, body []byte) (code int, result any, err error) {
	object, err := c.decode(body)
	if err != nil {
		return 0, nil, err
	}
	if object.GetName() == "" {
		if object.GetGenerateName() == "" {
			return 0, nil, apierrors.NewInvalid(c.table.gvk().GroupKind(), "", field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
		}
		object.SetName(object.GetGenerateName() + strconv.FormatUint(s.store.version, 36))
	}
	if c.table.objects[objectKey(c.namespace, object.GetName())] != nil {
		return 0, nil, apierrors.NewAlreadyExists(c.table.groupResource(), object.GetName())
	}
	stamp(object)
	if c.table.Status {
		delete(object.Object, "status")
	}
	if err = s.store.commitLocked(c.table, watch.Added, object); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, object.Object, nil
}

func (s *Server) deleteLocked(c call, current *unstructured.Unstructured, body []byte) (code int, result any, err error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err = utiljson.Unmarshal(body, &options); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != current.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != current.GetResourceVersion() {
			return 0, nil, apierrors.NewConflict(c.table.groupResource(), c.name, errors.New("the precondition does not hold"))
		}
	}
	if len(current.GetFinalizers()) == 0 {
		if err = s.store.commitLocked(c.table, watch.Deleted, current.DeepCopy()); err != nil {
			return 0, nil, err
		}
		return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
	}
	if current.GetDeletionTimestamp() != nil {
		return http.StatusOK, current.Object, nil
	}
	object := current.DeepCopy()
	object.SetDeletionTimestamp(new(metav1.NewTime(time.Now())))
	object.SetDeletionGracePeriodSeconds(new(int64))
	object.SetGeneration(object.GetGeneration() + 1)
	if err = s.store.commitLocked(c.table, watch.Modified, object); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object.Object, nil
}

func (s *Server) deleteCollectionLocked(c call) (code int, result any, err error) {
	match, err := c.matcher()
	if err != nil {
		return 0, nil, err
	}
	for _, object := range c.table.list(match) {
		c.name = object.GetName()
		if _, _, err = s.deleteLocked(c, object, nil); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
}

func (s *Server) patchLocked(c call, current *unstructured.Unstructured, body []byte) (code int, result any, err error) {
	before, err := current.MarshalJSON()
	if err != nil {
		return 0, nil, apierrors.NewInternalError(err)
	}
	var after []byte
	kind := types.PatchType(c.Header.Get("Content-Type"))
	switch {
	case kind == types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = patch.Apply(before)
		}
	case kind == types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, body)
	case kind == types.StrategicMergePatchType && !c.table.Custom && scheme.Scheme.Recognizes(c.table.gvk()):
		typed, newErr := scheme.Scheme.New(c.table.gvk())
		if newErr != nil {
			return 0, nil, apierrors.NewInternalError(newErr)
		}
		after, err = strategicpatch.StrategicMergePatch(before, body, typed)
	default:
		return 0, nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", c.table.groupResource(), c.name, "unsupported patch type "+string(kind), 0, true)
	}
	if err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	object, err := c.decode(after)
	if err != nil {
		return 0, nil, err
	}
	return s.updateLocked(c, current, object)
}

func (s *Server) putLocked(c call, current *unstructured.Unstructured, body []byte) (code int, result any, err error) {
	object, err := c.decode(body)
	if err != nil {
		return 0, nil, err
	}
	if c.table.Custom && object.GetResourceVersion() == "" {
		return 0, nil, apierrors.NewInvalid(c.table.gvk().GroupKind(), c.name, field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update")})
	}
	return s.updateLocked(c, current, object)
}

// updateLocked stores an object in the place of the current one, or removes it when it was waiting for its last finalizer.
func (s *Server) updateLocked(c call, current, object *unstructured.Unstructured) (code int, result any, err error) {
	if object.GetName() != "" && object.GetName() != c.name {
		return 0, nil, apierrors.NewBadRequest("the name of the object is not that of the request")
	}
	conflict := object.GetResourceVersion() != "" && object.GetResourceVersion() != current.GetResourceVersion() ||
		object.GetUID() != "" && object.GetUID() != current.GetUID()
	if conflict {
		return 0, nil, apierrors.NewConflict(c.table.groupResource(), c.name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	next := c.merge(current, object)
	kind := watch.Modified
	switch {
	case current.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0:
		kind = watch.Deleted
	case reflect.DeepEqual(next.Object, current.Object):
		return http.StatusOK, current.Object, nil
	case c.changesDesired(current, next):
		next.SetGeneration(current.GetGeneration() + 1)
	}
	if err = s.store.commitLocked(c.table, kind, next); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, next.Object, nil
}

// merge gives the object that an update makes: what belongs to the server stays, and a write to the status subresource
// touches the status only, any other everything else.
func (c call) merge(current, object *unstructured.Unstructured) *unstructured.Unstructured {
	next, status := object.DeepCopy(), current.Object["status"]
	if c.subresource == "status" {
		next, status = current.DeepCopy(), object.Object["status"]
	}
	if c.table.Status {
		if status == nil {
			delete(next.Object, "status")
		} else {
			next.Object["status"] = status
		}
	}
	next.SetGroupVersionKind(c.table.gvk())
	next.SetName(c.name)
	next.SetUID(current.GetUID())
	next.SetResourceVersion(current.GetResourceVersion())
	next.SetCreationTimestamp(current.GetCreationTimestamp())
	next.SetGeneration(current.GetGeneration())
	next.SetDeletionTimestamp(current.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(current.GetDeletionGracePeriodSeconds())
	return next
}

// changesDesired reports whether an update changes more than metadata and status.
func (c call) changesDesired(current, next *unstructured.Unstructured) bool {
	for _, pair := range [][2]map[string]any{{current.Object, next.Object}, {next.Object, current.Object}} {
		for name, value := range pair[0] {
			ignored := name == "metadata" || name == "status" && c.table.Status
			if !ignored && !reflect.DeepEqual(value, pair[1][name]) {
				return true
			}
		}
	}
	return false
}
