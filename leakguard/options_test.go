package leakguard_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

func TestBadOptionsNameTheField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		options leakguard.Options
		field   string
	}{
		{"interval too short", leakguard.Options{Interval: time.Second}, "Interval"},
		{"interval too long", leakguard.Options{Interval: time.Hour}, "Interval"},
		{"negative grace", leakguard.Options{Grace: -1}, "Grace"},
		{"negative scale", leakguard.Options{Scale: -0.1}, "Scale"},
		{"scale above 1", leakguard.Options{Scale: 2}, "Scale"},
		{"scale not a number", leakguard.Options{Scale: math.NaN()}, "Scale"},
		{"more than one core", leakguard.Options{Budget: leakguard.Budget{CPU: 1.5}}, "Budget.CPU"},
		{"unready on a notice", leakguard.Options{UnreadyOn: leakguard.TierNotice}, "UnreadyOn"},
		{"nil probe", leakguard.Options{Probes: []probes.Probe{nil}}, "Probes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.options.Registerer = prometheus.NewRegistry()
			err := leakguard.New(test.options).Start(t.Context())
			if !errors.Is(err, leakguard.ErrOptions) || !strings.Contains(err.Error(), test.field) {
				t.Errorf("got %v, want ErrOptions that names %s", err, test.field)
			}
			if test.field == "Probes" {
				return
			}
			if _, err := leakguard.NewDetector(test.options); !errors.Is(err, leakguard.ErrOptions) {
				t.Errorf("NewDetector: got %v, want ErrOptions", err)
			}
		})
	}
}

func TestNewManagerNeedsAConfig(t *testing.T) {
	t.Parallel()
	if _, err := leakguard.NewManager(nil, ctrl.Options{}, leakguard.Options{}); err == nil {
		t.Error("got no error for a nil config")
	}
}

// TestRegistererThatRefuses has the guard's names taken: Start must fail and leave the process free for another guard.
func TestRegistererThatRefuses(t *testing.T) {
	registry := prometheus.NewRegistry()
	taken := leakguard.New(leakguard.Options{})
	if err := registry.Register(taken.Collector()); err != nil {
		t.Fatal(err)
	}
	if err := leakguard.New(leakguard.Options{Registerer: registry}).Start(t.Context()); err == nil {
		t.Error("got no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := leakguard.New(leakguard.Options{Registerer: prometheus.NewRegistry()}).Start(ctx); err != nil {
		t.Errorf("the next guard: %v", err)
	}
}
