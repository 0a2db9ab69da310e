package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// DeepCopyInto copies everything into out, which shares nothing with a afterwards.
func (a *App) DeepCopyInto(out *App) {
	*out = *a // spec and status hold values only
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopy gives a copy that shares nothing with a.
func (a *App) DeepCopy() *App {
	out := new(App)
	a.DeepCopyInto(out)
	return out
}

// DeepCopyObject is DeepCopy for runtime.Object.
func (a *App) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyInto copies everything into out, which shares nothing with l afterwards.
func (l *AppList) DeepCopyInto(out *AppList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]App, len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
}

// DeepCopy gives a copy that shares nothing with l.
func (l *AppList) DeepCopy() *AppList {
	out := new(AppList)
	l.DeepCopyInto(out)
	return out
}

// DeepCopyObject is DeepCopy for runtime.Object.
func (l *AppList) DeepCopyObject() runtime.Object { return l.DeepCopy() }
