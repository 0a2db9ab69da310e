package miniapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// Identity is how clients reach a server and trust it. It lies in the server's folder, so that a server that is started
// again is the same one to its clients.
type Identity struct {
	// Address is host:port.
	Address string `json:"address"`
	// Certificate and Key are PEM; the certificate signs itself, so it is the CA too.
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key,omitempty"`
	// Token is the bearer token that every request must carry.
	Token string `json:"token"`
}

// RESTConfig gives the configuration of a client. It speaks JSON, as the server knows nothing else.
func (id Identity) RESTConfig() *rest.Config {
	return &rest.Config{
		Host:            "https://" + id.Address,
		BearerToken:     id.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: id.Certificate},
		ContentConfig:   rest.ContentConfig{ContentType: "application/json"},
		QPS:             -1,
	}
}

// listen opens the address of the identity in dir, or makes an identity on a free one when the folder has none.
func listen(ctx context.Context, dir string) (Identity, net.Listener, error) {
	path := filepath.Join(dir, "identity.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return create(ctx, path)
	}
	var id Identity
	if err == nil {
		err = json.Unmarshal(data, &id)
	}
	if err != nil {
		return id, nil, fmt.Errorf("miniapi: read the identity: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", id.Address)
	if err != nil {
		return id, nil, fmt.Errorf("miniapi: listen: %w", err)
	}
	return id, l, nil
}

func create(ctx context.Context, path string) (Identity, net.Listener, error) {
	l, err := listenAnywhere(ctx)
	if err != nil {
		return Identity{}, nil, err
	}
	id := Identity{Address: l.Addr().String(), Token: rand.Text()}
	id.Certificate, id.Key, err = selfSigned()
	if err == nil {
		var data []byte
		if data, err = json.Marshal(id); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
	}
	if err != nil {
		return id, nil, errors.Join(fmt.Errorf("miniapi: make an identity: %w", err), l.Close())
	}
	return id, l, nil
}

// listenAnywhere takes a free port below those that systems give to outgoing connections: while a server is down, one of
// its clients could otherwise be given its port, and even connect to itself.
func listenAnywhere(ctx context.Context) (net.Listener, error) {
	for range 100 {
		port := 20_000 + mathrand.IntN(10_000)
		if l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("miniapi: listen: %w", err)
	}
	return l, nil
}

func selfSigned() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "miniapi"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:     []string{"localhost"},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}

// tlsConfig offers HTTP/2 and HTTP/1.1.
func (id Identity) tlsConfig() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(id.Certificate, id.Key)
	if err != nil {
		return nil, fmt.Errorf("miniapi: certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}
