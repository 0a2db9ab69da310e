package miniapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Serve runs a server on a folder until ctx ends; everything it began has then returned. ready is called once, when the
// server answers, with the identity without its private key. The folder is made when it is not there, and stays.
func Serve(ctx context.Context, dir string, ready func(Identity), resources ...Resource) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("miniapi: %w", err)
	}
	api, err := Open(dir, resources...)
	if err != nil {
		return err
	}
	id, l, err := listen(ctx, dir)
	if err != nil {
		return errors.Join(err, api.Close())
	}
	tlsConfig, err := id.tlsConfig()
	if err != nil {
		return errors.Join(err, l.Close(), api.Close())
	}
	server := &http.Server{
		Handler: authenticate(id.Token, api), TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // handshakes that clients break off
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()
	id.Key = nil
	ready(id)
	select {
	case err = <-served:
		return errors.Join(fmt.Errorf("miniapi: %w", err), api.Close())
	case <-ctx.Done():
	}
	api.EndWatches()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// Connections that are still busy after the grace are cut.
	if err = server.Shutdown(grace); err != nil {
		err = server.Close()
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return errors.Join(err, api.Close())
}

// authenticate lets only requests with the token through.
func authenticate(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			fail(w, apierrors.NewUnauthorized("the bearer token is missing or wrong"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
