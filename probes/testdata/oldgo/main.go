// Command oldgo is built with the defaults of Go 1.22, and prints which of its settings make or hide leaks.
//
//go:debug default=go1.22
package main

import (
	"fmt"

	"github.com/leakguard/leakguard/probes"
)

func main() {
	s := probes.CurrentSettings(nil)
	s.MemProfileRate = -1 // the linker turns profiling off in a program that reads no heap profile, as this one
	for _, n := range probes.Hazards(s) {
		fmt.Println(n.ID)
	}
}
