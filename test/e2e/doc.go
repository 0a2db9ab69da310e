// Package e2e runs the example operator, built with the newest controller-runtime, against a real kube-apiserver and etcd.
//
// # Usage
//
//	cd test/e2e && go test ./...
//
// The first run builds kube-apiserver and etcd from their modules into the user's cache folder, see [Assets], unless
// $KUBEBUILDER_ASSETS names a folder that has them, such as the one of setup-envtest. The test of the metrics needs
// promtool in the path.
//
// $LEAKGUARD_SOAK is how long TestSoak lasts, two minutes by default, and $LEAKGUARD_SOAK_SCALE what leakguard's intervals
// are multiplied by in it, 0.05 by default.
//
// # Cost
//
// The build takes about ten CPU minutes and 3 GB of build cache, once for each version. A running kube-apiserver takes
// about 300 MB. After the build the tests take about fifteen minutes, most of which they wait.
//
// # Concurrency
//
// Assets may be called by several processes at once: each builds what it misses and the last one wins.
//
// # Limits
//
// It is a module of its own, so that nothing of it gets into the library's go.mod.
package e2e
