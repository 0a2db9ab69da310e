package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// soakObjects is how many Apps each leader makes come and go, beside the few that always do.
const soakObjects = 2000

// soakSettings are how long the soak lasts, 2 minutes unless LEAKGUARD_SOAK says otherwise, and the factor of leakguard's
// intervals, 0.05 unless LEAKGUARD_SOAK_SCALE does.
func soakSettings(t *testing.T) (length time.Duration, scale string) {
	t.Helper()
	length, scale = 2*time.Minute, "0.05"
	if text := os.Getenv("LEAKGUARD_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("LEAKGUARD_SOAK_SCALE"); text != "" {
		scale = text
	}
	return length, scale
}

// restartable is a kube-apiserver that can be killed and started again, with the same address, certificates and objects.
type restartable struct {
	env     *envtest.Environment
	pidFile string
}

func startRestartable(t *testing.T) *restartable {
	t.Helper()
	dir, binaries := t.TempDir(), needAssets(t)
	r := &restartable{env: &envtest.Environment{BinaryAssetsDirectory: binaries}, pidFile: filepath.Join(dir, "pid")}
	api := r.env.ControlPlane.GetAPIServer()
	api.CertDir = filepath.Join(dir, "certificates") // a folder of our own outlives a stop
	api.Path = filepath.Join(dir, "kube-apiserver.sh")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s\nexec %s \"$@\"\n", r.pidFile, filepath.Join(binaries, "kube-apiserver"))
	if err := errors.Join(os.Mkdir(api.CertDir, 0o700), os.WriteFile(api.Path, []byte(script), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.kill(), r.env.Stop()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// kill ends the server at once: one with open watches takes its time over an orderly end.
func (r *restartable) kill() error {
	text, err := os.ReadFile(r.pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

// restart takes the server away for as long as its start takes.
func (r *restartable) restart() error {
	api := r.env.ControlPlane.GetAPIServer()
	return errors.Join(r.kill(), api.Stop(), api.Start())
}

// soak is two replicas of a clean operator in a cluster in which something always happens.
type soak struct {
	t        *testing.T
	server   *restartable
	proxy    *proxy
	client   client.Client
	start    func() *run
	replicas []*run // the first one leads

	cuts, restarts, changes    int
	reconciles                 uint64
	created, updated, deleted  int
	runs, taken, due, findings int
}

// TestSoak runs two replicas of a clean operator while 2,000 custom resources are created, updated and deleted by each
// leader, connections are cut, the API server is killed and started again, and leaders go and come: leakguard is silent.
func TestSoak(t *testing.T) {
	t.Parallel()
	length, scale := soakSettings(t)
	s := &soak{t: t, server: startRestartable(t)}
	cfg := s.server.env.Config
	address, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.proxy = newProxy(t, address.Host)
	if s.client, err = client.New(cfg, client.Options{}); err != nil {
		t.Fatal(err)
	}
	file := writeKubeconfig(t, s.server.env, s.proxy.host())
	s.start = func() *run {
		return start(t, paths.operator, []string{"KUBECONFIG=" + file}, "--api=kubeconfig", "--leak=none", "--leader-elect", "--duration=0",
			"--expect=quiet", "--metrics-bind-address=0", "--scale="+scale, "--objects="+strconv.Itoa(soakObjects))
	}
	s.replicas = []*run{s.start()}
	s.waitForLeader()
	s.replicas = append(s.replicas, s.start())

	steps := []func(){s.cut, s.restart, s.cut, s.change, s.cut, s.change, s.cut, s.restart, s.cut, s.change, s.cut}
	pace := time.NewTicker(length / time.Duration(len(steps)+1))
	defer pace.Stop()
	for _, step := range append(steps, func() {}) {
		select {
		case <-pace.C:
			step()
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	s.end(s.replicas[1]) // the standby first
	s.end(s.replicas[0])
	t.Logf("%v at scale %s: silent over %d runs of the operator, %d of %d samples, %d listed findings, %d reconciles, %d Apps created, %d updated, %d deleted; "+
		"%d connections cut, the API server restarted %d times, %d changes of the leader",
		length, scale, s.runs, s.taken, s.due, s.findings, s.reconciles, s.created, s.updated, s.deleted, s.cuts, s.restarts, s.changes)
	if s.created < soakObjects || s.updated < soakObjects || s.deleted < soakObjects {
		t.Errorf("got %d Apps created, %d updated and %d deleted, want %d at least", s.created, s.updated, s.deleted, soakObjects)
	}
	if got := s.transitions(); got < s.changes {
		t.Errorf("got %d changes of the lease, want %d at least", got, s.changes)
	}
	if s.cuts == 0 || s.reconciles < 3*soakObjects {
		t.Errorf("got %d cuts and %d reconciles, want some and %d at least", s.cuts, s.reconciles, 3*soakObjects)
	}
}

func (s *soak) cut() {
	n := s.proxy.cut()
	s.cuts += n
	s.t.Logf("cut %d connections", n)
}

func (s *soak) restart() {
	if err := s.server.restart(); err != nil {
		s.t.Fatal(err)
	}
	s.restarts++
	s.t.Log("the API server is back")
}

// change ends the leader; the standby takes its place and gets a standby of its own.
func (s *soak) change() {
	before := s.transitions()
	s.end(s.replicas[0])
	s.replicas = []*run{s.replicas[1]}
	s.eventually("another leader", func() bool { return s.transitions() > before })
	s.replicas = append(s.replicas, s.start())
	s.changes++
	s.t.Log("another leader")
}

// end interrupts a replica, and wants it to have been silent.
func (s *soak) end(r *run) {
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	res, err := r.wait()
	if err != nil {
		s.t.Error(err)
		return
	}
	s.runs++
	s.taken, s.due = s.taken+int(res.Report.Sampling.Taken), s.due+int(res.Report.Sampling.Due)
	s.findings += len(res.Report.Findings)
	for _, c := range res.Report.Controllers {
		s.reconciles += c.Reconciles
	}
	s.t.Logf("a replica ends after %.0f s: %d Apps created, %d updated, %d deleted", res.Seconds, res.Objects.Created, res.Objects.Updated, res.Objects.Deleted)
	s.created, s.updated, s.deleted = s.created+res.Objects.Created, s.updated+res.Objects.Updated, s.deleted+res.Objects.Deleted
}

// lease is that of the leader, once there is one.
func (s *soak) lease() *coordinationv1.LeaseSpec {
	lease := &coordinationv1.Lease{}
	s.eventually("a lease", func() bool {
		return s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: "leakguard-example"}, lease) == nil
	})
	return &lease.Spec
}

func (s *soak) transitions() int {
	if n := s.lease().LeaseTransitions; n != nil {
		return int(*n)
	}
	return 0
}

func (s *soak) waitForLeader() {
	s.eventually("a leader", func() bool { holder := s.lease().HolderIdentity; return holder != nil && *holder != "" })
}

// eventually waits until a condition holds.
func (s *soak) eventually(what string, holds func() bool) {
	s.t.Helper()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	timeout := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-again.C:
		case <-timeout:
			s.t.Fatalf("%s: not within two minutes", what)
		}
	}
}
