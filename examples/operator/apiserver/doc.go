// Package apiserver gives the example operator an API server: the one of $KUBECONFIG, a real kube-apiserver started by
// envtest, or the small one in memory of package miniapi.
//
// # Usage
//
//	func main() {
//		if apiserver.IsChild(os.Args) {
//			os.Exit(apiserver.Child(os.Args, v1alpha1.CRD()))
//		}
//		server, err := apiserver.Start(ctx, apiserver.Auto, apiserver.Options{CRD: v1alpha1.CRD()})
//		defer server.Close()
//		mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{})
//	}
//
// # Cost
//
// A server that is started here runs in a child process, so that the operator's own process holds nothing of it.
//
// # Concurrency
//
// A Server's methods may be called at once from several goroutines. Close waits for everything that Start began.
//
// # Limits
//
// The child is a second process of the same binary, so a program that uses this package must call Child at its start. It
// ends when its standard input does, which is when its parent has gone by whatever way. Only a kill of a child that runs
// envtest leaves something running: the kube-apiserver and etcd that it had started.
package apiserver
