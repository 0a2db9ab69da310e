package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/leakguard/leakguard/leakguard"
)

// suppression is a known leak. The fields that look at the finding must all fit; at least one must be set.
type suppression struct {
	// Fingerprint, Function, Controller and Rule are those of the finding.
	Fingerprint string `json:"fingerprint,omitempty"`
	Function    string `json:"function,omitempty"`
	Controller  string `json:"controller,omitempty"`
	Rule        string `json:"rule,omitempty"`
	// Owner is who will fix it, Reason why it may stay until then, Until the last day of that: "2027-03-31". All are required.
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	Until  string `json:"until"`

	until time.Time
	used  bool
}

// readSuppressions reads a suppression file; no file name gives none.
func readSuppressions(file string) ([]*suppression, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	var list struct {
		Suppressions []*suppression `json:"suppressions"`
	}
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUsage, file, err)
	}
	var errs []error
	for i, s := range list.Suppressions {
		if s == nil {
			errs = append(errs, fmt.Errorf("%w: %s: suppression %d is empty", errUsage, file, i+1))
			continue
		}
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: suppression %d: %w", errUsage, file, i+1, err))
		}
	}
	return list.Suppressions, errors.Join(errs...)
}

func (s *suppression) check() error {
	if s.Fingerprint+s.Function+s.Controller+s.Rule == "" {
		return errors.New("one of fingerprint, function, controller and rule must be set")
	}
	if s.Owner == "" || s.Reason == "" || s.Until == "" {
		return errors.New("owner, reason and until are required")
	}
	day, err := time.Parse(time.DateOnly, s.Until)
	if err != nil {
		return fmt.Errorf("until: %w", err)
	}
	s.until = day.AddDate(0, 0, 1)
	return nil
}

// covers reports whether a finding is the known one, expired or not.
func (s *suppression) covers(f *leakguard.Finding) bool {
	return (s.Fingerprint == "" || s.Fingerprint == f.Fingerprint) &&
		(s.Function == "" || s.Function == f.Culprit.Function) &&
		(s.Controller == "" || s.Controller == f.Controller) &&
		(s.Rule == "" || s.Rule == f.Rule)
}

// expired reports whether its last day is over.
func (s *suppression) expired(now time.Time) bool { return !now.Before(s.until) }

// name says which suppression it is.
func (s *suppression) name() string {
	for _, v := range []string{s.Function, s.Fingerprint, s.Rule, s.Controller} {
		if v != "" {
			return v
		}
	}
	return "?"
}
