// Package leakguard finds leaks inside a running Kubernetes operator.
package leakguard
