package rulefile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/frame"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

func day(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestSuppressed(t *testing.T) {
	f := full(t)
	legacy := rulefile.Subject{Rule: "GOR-501", Category: "nil-channel", Culprit: "example.com/app/legacy.park"}
	upload := rulefile.Subject{Rule: "APP-001", Category: "upload", Controller: "bucket", Culprit: "example.com/app/upload.put"}
	for _, tc := range []struct {
		name    string
		subject rulefile.Subject
		now     string
		owner   string
	}{
		{"rule and culprit", legacy, "2027-01-01T00:00:00Z", "team-legacy"},
		{"last moment of the day", legacy, "2027-06-30T23:59:59Z", "team-legacy"},
		{"expired with the day", legacy, "2027-07-01T00:00:00Z", ""},
		{"other rule", rulefile.Subject{Rule: "GOR-502", Culprit: legacy.Culprit}, "2027-01-01T00:00:00Z", ""},
		{"other culprit", rulefile.Subject{Rule: "GOR-501", Culprit: "example.com/app/new.park"}, "2027-01-01T00:00:00Z", ""},
		{"category and controller", upload, "2027-01-31T11:59:59Z", "team-operators"},
		{"expired with the time", upload, "2027-01-31T12:00:00Z", ""},
		{"other controller", rulefile.Subject{Category: "upload", Controller: "object"}, "2027-01-01T00:00:00Z", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := f.Suppressed(tc.subject, day(tc.now))
			if got.Owner != tc.owner || ok != (tc.owner != "") {
				t.Errorf("got %q, %v, want %q", got.Owner, ok, tc.owner)
			}
		})
	}
}

func TestSuppressionPatterns(t *testing.T) {
	f, err := rulefile.Parse("r.yaml", []byte(`schema: 1
suppressions:
  - {culprit: {exact: a.F}, owner: exact, reason: r, expires: 2030-01-01}
  - {culprit: {regexp: '^b\.\(\*T\)\.'}, owner: regexp, reason: r, expires: 2030-01-01}
  - {fingerprint: 0123456789abcdef, owner: fingerprint, reason: r, expires: 2030-01-01}
`))
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[rulefile.Subject]string{
		{Culprit: "a.F"}:                    "exact",
		{Culprit: "a.F.func1"}:              "",
		{Culprit: "b.(*T).M"}:               "regexp",
		{Culprit: "x/b.(*T).M"}:             "",
		{Fingerprint: "0123456789abcdef"}:   "fingerprint",
		{Rule: "GOR-505", Culprit: "other"}: "",
	} {
		if got, _ := f.Suppressed(subject, day("2029-01-01T00:00:00Z")); got.Owner != want {
			t.Errorf("%+v is suppressed by %q, want %q", subject, got.Owner, want)
		}
	}
}

func TestSplit(t *testing.T) {
	findings := []stackmatch.Finding{
		{Rule: "GOR-501", Culprit: frame.Frame{Function: "example.com/app/legacy.park"}},
		{Rule: "GOR-501", Culprit: frame.Frame{Function: "example.com/app/new.park"}},
	}
	kept, suppressed := full(t).Split(findings, day("2027-01-01T00:00:00Z"))
	if diff := cmp.Diff(kept, findings[1:]); diff != "" {
		t.Errorf("kept (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(suppressed, findings[:1]); diff != "" {
		t.Errorf("suppressed (-got +want):\n%s", diff)
	}
}

func TestExpired(t *testing.T) {
	f := full(t)
	for now, want := range map[string][]string{
		"2027-01-01T00:00:00Z": {},
		"2027-02-01T00:00:00Z": {"suppression of upload by team-operators expired on 2027-01-31: fixed in 1.4"},
		"2028-01-01T00:00:00Z": {
			"suppression of GOR-501 by team-legacy expired on 2027-07-01: parks on purpose until the process ends, goes with version 2",
			"suppression of upload by team-operators expired on 2027-01-31: fixed in 1.4",
		},
	} {
		got := []string{}
		for _, s := range f.Expired(day(now)) {
			got = append(got, s.Expiry())
			if s.Line == 0 {
				t.Error("a suppression does not know its line")
			}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", now, diff)
		}
	}
	if got := len(f.Suppressions()); got != 2 {
		t.Errorf("the file has %d suppressions, want 2", got)
	}
}
