package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// outageCommand is what the parent writes, with a duration behind it, to take the API away.
const outageCommand = "outage "

func serveEnvtest(ctx context.Context, dir string, crd *apiextensionsv1.CustomResourceDefinition, commands <-chan string) error {
	env := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, ControlPlaneStartTimeout: time.Minute}
	api := env.ControlPlane.GetAPIServer()
	// A folder of our own outlives a stop of the server, and with it the certificate that its clients trust.
	api.CertDir = filepath.Join(dir, "apiserver")
	if err := os.MkdirAll(api.CertDir, 0o700); err != nil {
		return err
	}
	var kill func() error
	var err error
	if api.Path, kill, err = killable(dir, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver")); err != nil {
		return err
	}
	cfg, err := env.Start()
	if err != nil {
		return errors.Join(fmt.Errorf("envtest: %w", err), kill(), env.Stop())
	}
	say(hello{Host: cfg.Host, CA: cfg.CAData, Certificate: cfg.CertData, Key: cfg.KeyData})
	stop := func() error { return errors.Join(kill(), api.Stop()) }
	for {
		select {
		case command := <-commands:
			if err = outage(ctx, command, stop, api.Start); err != nil {
				return errors.Join(err, kill(), env.Stop())
			}
		case <-ctx.Done():
			return errors.Join(kill(), env.Stop())
		}
	}
}

// killable gives a program that is another one which can be killed: envtest only asks its server to end, and a
// kube-apiserver with open watches may take longer over that than anybody wants to wait. Where there is no shell it is
// the program itself, and kill does nothing.
func killable(dir, program string) (path string, kill func() error, err error) {
	if runtime.GOOS == "windows" {
		return program + ".exe", func() error { return nil }, nil
	}
	path, pidFile := filepath.Join(dir, "kube-apiserver.sh"), filepath.Join(dir, "kube-apiserver.pid")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s\nexec %s \"$@\"\n", quote(pidFile), quote(program))
	if err = os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", nil, err
	}
	return path, func() error {
		text, readErr := os.ReadFile(pidFile)
		if errors.Is(readErr, os.ErrNotExist) {
			return nil
		}
		pid, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
		if readErr = errors.Join(readErr, convErr); readErr != nil {
			return readErr
		}
		// Once only: the number may later be another process's.
		if readErr = os.Remove(pidFile); readErr != nil {
			return readErr
		}
		process, findErr := os.FindProcess(pid)
		if findErr != nil {
			return findErr
		}
		if killErr := process.Kill(); !errors.Is(killErr, os.ErrProcessDone) {
			return killErr
		}
		return nil
	}, nil
}

// quote makes one word of a text for the shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// outage carries out the command "outage 20s".
func outage(ctx context.Context, command string, stop, start func() error) error {
	length, err := time.ParseDuration(strings.TrimPrefix(command, outageCommand))
	if err != nil {
		return fmt.Errorf("command %q: %w", command, err)
	}
	if err = stop(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	select {
	case <-time.After(length):
	case <-ctx.Done():
		return nil
	}
	if err = start(); err != nil {
		return fmt.Errorf("start again: %w", err)
	}
	return nil
}
