package traps

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// configMaps are watched where nothing should happen, since the operator makes none.
var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// apps are watched where things should happen.
var apps = schema.GroupVersionResource{Group: "apps.leakguard.example", Version: "v1alpha1", Resource: "apps"}

// watching makes a Start of work that needs a client.
func watching(configure func(*rest.Config), work func(context.Context, dynamic.Interface, Object) error) Start {
	return func(_ context.Context, env Env) (Work, error) {
		config := rest.CopyConfig(env.Config)
		if configure != nil {
			configure(config)
		}
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			return Work{}, fmt.Errorf("traps: %w", err)
		}
		return Work{Reconcile: func(ctx context.Context, object Object) error {
			if object.Deleted {
				return nil
			}
			return work(ctx, c, object)
		}}, nil
	}
}

// watchParts are the goroutines of a watch.
func watchParts() []string {
	return []string{
		"k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive",
		"golang.org/x/net/http2.(*clientStream).doRequest",
		"net/http/internal/http2.(*clientStream).doRequest",
	}
}

// idleWatch is a watch that was never stopped and on which nothing happens.
func idleWatch() Trap {
	return Trap{
		Name: "watch-idle", Row: "S1-03a", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Parts: watchParts(),
		Title:   "Reconcile opens a watch and forgets to stop it; nothing happens on it",
		Culprit: siteOf(leakIdleWatch, ""),
		Leak:    watching(nil, leakIdleWatch),
		Twin:    watching(nil, cleanIdleWatch),
	}
}

func leakIdleWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	_, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	return err
}

func cleanIdleWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	w, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.Stop()
	return nil
}

// http1Watch is the same over HTTP/1.1, where each watch has a connection of its own.
func http1Watch() Trap {
	oldProtocol := func(c *rest.Config) { c.NextProtos = []string{"http/1.1"} }
	return Trap{
		Name: "watch-http1", Row: "S1-03d", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Also: connParts(), Parts: append(watchParts(), connHalves()...),
		Title:   "the same over HTTP/1.1: a connection, three goroutines and a descriptor for each watch",
		Culprit: siteOf(leakIdleWatch, ""),
		Leak:    watching(oldProtocol, leakIdleWatch),
		Twin:    watching(oldProtocol, cleanIdleWatch),
	}
}

// unreadWatch is a watch whose first event nobody takes.
func unreadWatch() Trap {
	return Trap{
		Name: "watch-unread", Row: "S1-03b", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Parts: watchParts(),
		Title:   "Reconcile opens a watch, an event arrives, and nobody reads it or stops the watch",
		Culprit: siteOf(leakUnreadWatch, ""),
		Leak:    watching(nil, leakUnreadWatch),
		Twin:    watching(nil, cleanUnreadWatch),
	}
}

func leakUnreadWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	_, err := c.Resource(apps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	return err
}

func cleanUnreadWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	w, err := c.Resource(apps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.Stop()
	return nil
}

// endedWatch survives its connection: the server ended it while an event was waiting to be read.
func endedWatch() Trap {
	return Trap{
		Name: "watch-ended", Row: "S1-03e", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Parts: watchParts(),
		Title:   "a watch with an event that nobody reads, ended by the server a second later: its goroutine stays",
		Culprit: siteOf(leakEndedWatch, ""),
		Leak:    watching(nil, leakEndedWatch),
		Twin:    watching(nil, cleanEndedWatch),
	}
}

func leakEndedWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	_, err := c.Resource(apps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(1))})
	return err
}

func cleanEndedWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	w, err := c.Resource(apps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(1))})
	if err != nil {
		return err
	}
	w.Stop()
	return nil
}

// healedWatch is forgotten too, but the server ends it before long.
func healedWatch() Trap {
	return Trap{
		Name: "watch-healed", Row: "S1-03f", Expect: ExpectListed, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Rules: []string{"accounting"},
		Title:   "Reconcile forgets an idle watch, which the server ends after 20 seconds: it heals",
		Culprit: siteOf(leakHealedWatch, ""),
		Leak:    healing(leakHealedWatch),
		Twin:    healing(cleanHealedWatch),
	}
}

// healing makes a Start of work with watches that the server ends.
func healing(work func(context.Context, dynamic.Interface, Object, *int64) error) Start {
	return func(ctx context.Context, env Env) (Work, error) {
		seconds := int64(max(1, env.scaled(20*time.Second).Seconds()))
		return watching(nil, func(ctx context.Context, c dynamic.Interface, object Object) error {
			return work(ctx, c, object, &seconds)
		})(ctx, env)
	}
}

func leakHealedWatch(ctx context.Context, c dynamic.Interface, object Object, seconds *int64) error {
	_, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: seconds})
	return err
}

func cleanHealedWatch(ctx context.Context, c dynamic.Interface, object Object, seconds *int64) error {
	w, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: seconds})
	if err != nil {
		return err
	}
	w.Stop()
	return nil
}

// rangedWatch has a goroutine that waits for events for ever.
func rangedWatch() Trap {
	return Trap{
		Name: "watch-ranged", Row: "S1-03c", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Also: []string{siteOf(readAll, "").Function}, Parts: watchParts(),
		Title:   "a goroutine started in Reconcile ranges over the events of a watch that nobody stops",
		Culprit: siteOf(leakRangedWatch, ""),
		Leak:    watching(nil, leakRangedWatch),
		Twin:    watching(nil, cleanRangedWatch),
	}
}

func leakRangedWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	w, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go readAll(w)
	return nil
}

func cleanRangedWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	w, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	go readAll(w)
	return nil
}

func readAll(w watch.Interface) {
	for range w.ResultChan() { // what the events say is of no interest
	}
}

// cancelledWatch gives up its watch by its context alone, which client-go does not take for a stop.
func cancelledWatch() Trap {
	return Trap{
		Name: "watch-cancelled", Row: "S2-16", Expect: ExpectAlarm, NeedsAPI: true, Grows: Counted, Controller: LeakyController, Parts: watchParts(),
		Title:   "the context of a watch is cancelled, which ends its request, but Stop is not called: its goroutine stays",
		Culprit: siteOf(leakCancelledWatch, ""),
		Leak:    watching(nil, leakCancelledWatch),
		Twin:    watching(nil, cleanCancelledWatch),
	}
}

func leakCancelledWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	return err
}

func cleanCancelledWatch(ctx context.Context, c dynamic.Interface, object Object) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.Resource(configMaps).Namespace(object.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.Stop()
	return nil
}
