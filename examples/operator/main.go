// Command operator is a small real operator that leaks on demand, with leakguard in it.
//
//	go run ./examples/operator                                  leak, and see what leakguard says
//	go run ./examples/operator --list                           the leaks to choose from
//	go run ./examples/operator --leak=chan-send --twin          the same work without the leak
//	go run ./examples/operator --leak=none --expect=silence     a clean run that fails if leakguard says anything
//	go run ./examples/operator --leak=chan-send,watch-idle --expect=each --until-found
//	                                                            two leaks, each in a controller of its own
//
// It has a custom resource App, a clean controller "app", a controller "leaky" that runs the chosen trap of package traps
// inside its reconciles, and a load that keeps both busy. With several traps each has a controller "leaky-NAME" of its
// own, and --json says of each what was found and when, and with --peers what other detectors see. No cluster is needed:
// without $KUBECONFIG and $KUBEBUILDER_ASSETS it brings a small API server of its own, see package miniapi.
//
// It exits with 0 when all went as --expect says, 1 when it did not or something failed, 2 for wrong arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/leakguard/leakguard/examples/operator/apiserver"
	"github.com/leakguard/leakguard/examples/operator/v1alpha1"
)

// heapRate is how many bytes are allocated for each sample of the heap profile. By default it is eight times as much, with which
// the smallest of the leaks are named after hours only. It must be set before anything is allocated.
const heapRate = 64 << 10

func main() {
	runtime.MemProfileRate = heapRate
	if apiserver.IsChild(os.Args) {
		os.Exit(apiserver.Child(os.Args, v1alpha1.CRD()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends it at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(ctx, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printUsage(stdout)
		return exitOK
	case err != nil:
		complain(stderr, "%v", err)
		return exitUsage
	case cfg.list:
		err = printList(stdout, cfg.json)
	default:
		err = operate(ctx, cfg, stdout, stderr)
	}
	if err != nil {
		complain(stderr, "%v", err)
		return exitFailed
	}
	return exitOK
}

// complain prints a line to standard error. Where that fails there is nowhere left to say so.
func complain(stderr io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(stderr, "operator: "+format+"\n", args...)
}
