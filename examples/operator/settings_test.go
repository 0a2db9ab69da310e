package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/examples/traps"
)

// badRun runs the operator with arguments that must not work and gives its one line of error.
func badRun(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, &stdout, &stderr); code != wantCode {
		t.Errorf("%q: got exit code %d, want %d", args, code, wantCode)
	}
	if stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%q: got %q and %q, want one line of error", args, stdout.String(), stderr.String())
	}
	return stderr.String()
}

func TestBadArguments(t *testing.T) {
	for _, test := range []struct {
		args string
		want string
	}{
		{"--leak=nope", "--leak"},
		{"--leak=none --twin", "--twin"},
		{"--leak=lazy-informer --twin", "--twin"},
		{"--leak=none --expect=finding", "--expect"},
		{"--leak=lazy-informer --expect=finding", "--expect"},
		{"--twin --expect=finding", "--expect"},
		{"--expect=nope", "--expect"},
		{"--api=nope", "--api"},
		{"--scale=0", "--scale"},
		{"--scale=1.1", "--scale"},
		{"--scale=NaN", "--scale"},
		{"--scale=x", "-scale"},
		{"--objects=-1", "--objects"},
		{"--until-found", "--until-found"},
		{"--until-found --expect=each --leak=lazy-informer,shared-http", "--until-found"},
		{"--leak=none --expect=each", "--expect"},
		{"--leak=chan-send,nope", "nope"},
		{"--leak=chan-send,none", "none"},
		{"--leak=chan-send,", "--leak"},
		{"--leak=chan-send,chan-send", "twice"},
		{"--leak=chan-send,blocked-finalizer", "stops every other finalizer"},
		{"--leak=rest-timeout,chan-send", "changes the configuration"},
		{"--leak=finalizer-cycle,cleanup-holds-itself", "cannot run together"},
		{"--leak=chan-send,lazy-informer --twin", "--twin"},
		{"--leak=chan-send,status-later --expect=finding", "--expect"},
		{"--leak=status-later --expect=finding", "--expect"},
		{"--leak=chan-send --expect=notice", "--expect"},
		{"--duration=-1s", "--duration"},
		{"--duration=90", "-duration"},
		{"--duration=0 --api-outage=1s", "--api-outage"},
		{"--api-outage=-1s", "--api-outage"},
		{"--api-restart-after=0", "--api-restart-after"},
		{"--metrics-bind-address=nowhere", "--metrics-bind-address"},
		{"--bogus", "-bogus"},
		{"extra", "extra"},
	} {
		if got := badRun(t, exitUsage, strings.Fields(test.args)...); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q in it", test.args, got, test.want)
		}
	}
}

func TestBusyPort(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if got := badRun(t, exitUsage, "--metrics-bind-address="+l.Addr().String()); !strings.Contains(got, "in use") {
		t.Errorf("got %q, want that the address is in use", got)
	}
}

func TestUnreachableClusters(t *testing.T) {
	dir := t.TempDir()
	unreachable := filepath.Join(dir, "unreachable")
	err := os.WriteFile(unreachable, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:9"}}],"users":[{"name":"a","user":{"token":"x"}}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	if err = os.WriteFile(broken, []byte(": :"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	for _, test := range []struct{ kubeconfig, api, want string }{
		{unreachable, "auto", "does not answer"},
		{filepath.Join(dir, "missing"), "auto", "missing"},
		{broken, "auto", "kubeconfig"},
		{"", "envtest", "KUBEBUILDER_ASSETS"},
	} {
		t.Setenv("KUBECONFIG", test.kubeconfig)
		if got := badRun(t, exitFailed, "--metrics-bind-address=0", "--api="+test.api); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q in it", test.kubeconfig, got, test.want)
		}
	}
}

func TestList(t *testing.T) {
	var text, document, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--list"}, &text, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("got %d and %q", code, stderr.String())
	}
	if code := run(t.Context(), []string{"--list", "--json"}, &document, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("got %d and %q", code, stderr.String())
	}
	var list []traps.Trap
	if err := json.Unmarshal(document.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if got, want := len(list), len(traps.All()); got != want {
		t.Errorf("got %d traps in JSON, want %d", got, want)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")[1:]
	for i, trap := range traps.All() {
		if list[i].Name != trap.Name || list[i].Row != trap.Row || list[i].Expect != trap.Expect || list[i].Culprit != trap.Culprit {
			t.Errorf("got %v, want %v", list[i], trap)
		}
		if f := strings.Fields(lines[i]); f[0] != trap.Name || f[1] != orDash(trap.Row) || f[2] != string(trap.Expect) {
			t.Errorf("got %q, want name, row and expectation of %s", lines[i], trap.Name)
		}
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("got %d and %q", code, stderr.String())
	}
	for _, want := range []string{"-leak", "-twin", "-list", "-json", "-duration", "-scale", "-expect", "-api", "-metrics-bind-address"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the help lacks %s", want)
		}
	}
}
