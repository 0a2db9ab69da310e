// Package test holds the tests that cross packages: which package may import what, and what the library exports. The
// folders below it are modules of their own, for what must not reach the library's go.mod.
package test
