package stackmatch_test

import (
	"bytes"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

func TestFamiliesCorpus(t *testing.T) {
	tests := []struct {
		file, name, leader string
		count, groups      int
	}{
		{"C02-eck-transport-per-reconcile.t1.debug2.txt", "HTTP connection", "net/http.(*persistConn).readLoop", 580, 2},
		{"C03-clientgo-dynamic-cert.t1.debug1.txt", "client with certificate rotation", "k8s.io/client-go/transport.(*dynamicClientCert).Run", 767, 6},
		{"C05-kubefleet-handlers.t1.debug1.txt", "informer event handler", "k8s.io/client-go/tools/cache.(*processorListener).run", 70003, 2},
		{"C20-clientgo-spdy-exec.debug2.txt", "exec stream", "github.com/moby/spdystream.(*Connection).shutdown", 110, 3},
		{"C23-crt-manager-broadcaster.debug2.txt", "event broadcaster", "k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop", 40, 2},
		{"C25-capi-etcd-client.debug2.txt", "gRPC connection", "google.golang.org/grpc/internal/transport.(*http2Client).reader", 70, 3},
		{"C37-admiral-cache-refresh.debug2.txt", "informer", "k8s.io/client-go/tools/cache.(*sharedIndexInformer).Run", 84, 7},
	}
	files := corpusFiles(t)
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			d, err := stackmatch.Read(bytes.NewReader(files[test.file]), stackmatch.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			groups := d.GroupBy("")
			families := stackmatch.Families(groups)
			if len(families) == 0 {
				t.Fatal("no families")
			}
			f := families[0]
			if got := groups[f.Leader].Root.Function; f.Name != test.name || got != test.leader || f.Count != test.count || len(f.Groups) != test.groups {
				t.Errorf("got %q led by %s, %d × %d groups; want %q led by %s, %d × %d groups", f.Name, got, f.Count, len(f.Groups), test.name, test.leader, test.count, test.groups)
				for _, f := range families {
					t.Logf("%+v", f)
				}
			}
		})
	}
}
