package leakguard_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/leakguard/leakguard/leakguard"
	"github.com/leakguard/leakguard/probes"
)

// certificate writes a certificate of the loopback interface where a webhook server looks for it.
func certificate(t *testing.T) (dir string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir, pool = t.TempDir(), x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		text := pem.EncodeToMemory(block)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "tls.crt" {
			pool.AppendCertsFromPEM(text)
		}
	}
	return dir, pool
}

// refuser is a validator, and a defaulter, that notes the scope of each request. It refuses objects named "bad".
type refuser struct{ scopes seen }

func (r *refuser) check(ctx context.Context, cm *corev1.ConfigMap) error {
	if scope, _, ok := probes.FromContext(ctx); ok {
		r.scopes.note(scope)
	}
	if cm.Name == "bad" {
		return errors.New("no")
	}
	return nil
}

func (r *refuser) ValidateCreate(ctx context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, r.check(ctx, cm)
}

func (r *refuser) ValidateUpdate(ctx context.Context, _, cm *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, r.check(ctx, cm)
}

func (r *refuser) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

func (r *refuser) Default(ctx context.Context, cm *corev1.ConfigMap) error {
	cm.Labels = map[string]string{"defaulted": "yes"}
	return r.check(ctx, cm)
}

// review sends an admission request about a map over TLS.
func review(t *testing.T, c *http.Client, url, name string) *admissionv1.AdmissionResponse {
	t.Helper()
	object, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Name: name, Object: runtime.RawExtension{Raw: object}},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %s: %v", url, res.Status, err)
	}
	return answer.Response
}

// TestManagerWebhooks serves webhooks that the builder has made, one that was registered by hand, and one of those in a
// scope.
func TestManagerWebhooks(t *testing.T) {
	for kind, build := range hosts() {
		t.Run(kind, func(t *testing.T) {
			leavesNothing(t)
			opts, _ := options(t)
			_, free := options(t)
			_, port, err := net.SplitHostPort(free)
			if err != nil {
				t.Fatal(err)
			}
			dir, pool := certificate(t)
			n, err := strconv.Atoi(port)
			if err != nil {
				t.Fatal(err)
			}
			opts.WebhookServer = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: n, CertDir: dir})
			h := build(t, apiServer(t), opts)
			r := &refuser{}
			if err := ctrl.NewWebhookManagedBy(h.Manager, &corev1.ConfigMap{}).WithValidator(r).WithDefaulter(r).Complete(); err != nil {
				t.Fatal(err)
			}
			server, ok := h.GetWebhookServer().(*webhook.DefaultServer)
			if !ok || server != opts.WebhookServer {
				t.Fatalf("the webhook server is a %T, want the one of the options", h.GetWebhookServer())
			}
			byHand := admission.WithValidator(h.GetScheme(), r)
			server.Register("/by-hand", byHand)
			server.Register("/scoped", probes.Handler(leakguard.Scope("webhook /scoped"), byHand))
			stop := run(t, h)
			eventually(t, "the webhook server answers", func() bool { return server.StartedChecker()(nil) == nil })

			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			c := &http.Client{Transport: transport}
			for _, path := range []string{"/validate--v1-configmap", "/by-hand", "/scoped", "/mutate--v1-configmap"} {
				good, bad := review(t, c, "https://"+free+path, "good"), review(t, c, "https://"+free+path, "bad")
				if !good.Allowed || bad.Allowed || bad.Result.Message != "no" {
					t.Errorf("%s: got %+v and %+v, want one allowed and one not", path, good, bad)
				}
				if strings.HasPrefix(path, "/mutate") != (len(good.Patch) > 0) {
					t.Errorf("%s: got patch %q", path, good.Patch)
				}
			}
			if h.guard == nil {
				r.scopes.want(t, "webhook /scoped")
				stop()
				return
			}
			r.scopes.want(t, "webhook /mutate--v1-configmap", "webhook /scoped", "webhook /validate--v1-configmap")
			h.wantControllers(t, map[string]uint64{
				"webhook /mutate--v1-configmap": 2, "webhook /validate--v1-configmap": 2, "webhook /scoped": 2, "webhook /by-hand": 0,
			})
			if n := strings.Join(h.guard.Report().Notices, "\n"); strings.Count(n, "is not instrumented") != 1 || !strings.Contains(n, "webhook /by-hand") {
				t.Errorf("got notices %q, want one about /by-hand", n)
			}
			stop()
		})
	}
}
