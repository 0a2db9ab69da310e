package clientgo

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"k8s.io/client-go/tools/cache"
)

// pendingOf gives a function that tells how many notifications wait for the handler of a registration. client-go keeps
// the number in an unexported field: an atomic one since v0.37, before that the length of a ring that one goroutine
// writes. A stale length does no harm. ok is false when there is neither.
func pendingOf(registration cache.ResourceEventHandlerRegistration) func() (n int, ok bool) {
	unknown := func() (n int, ok bool) { return 0, false }
	v := reflect.ValueOf(registration)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return unknown
	}
	v = v.Elem()
	if f := v.FieldByName("pendingNotificationsLength"); f.IsValid() && f.Type() == reflect.TypeFor[atomic.Int64]() {
		length := (*atomic.Int64)(unsafe.Pointer(f.UnsafeAddr()))
		return func() (n int, ok bool) { return int(length.Load()), true }
	}
	ring := v.FieldByName("pendingNotifications")
	if !ring.IsValid() || ring.Kind() != reflect.Struct {
		return unknown
	}
	if f := ring.FieldByName("readable"); f.IsValid() && f.Kind() == reflect.Int {
		length := (*int)(unsafe.Pointer(f.UnsafeAddr()))
		return func() (n int, ok bool) { return peek(length), true }
	}
	return unknown
}

// peek reads a number that another goroutine writes without a lock: a word is read whole on every platform of Go, and an
// old value is as good as a new one.
//
//go:norace
func peek(length *int) int { return *length }
