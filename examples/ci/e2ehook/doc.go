// Command e2ehook asks a running operator's leakguard page before and after an end-to-end suite whether the suite made it
// leak.
//
// # Usage
//
//	e2ehook before -url http://127.0.0.1:8080/debug/leakguard -memory leak.json
//	go test ./test/e2e/...
//	e2ehook after  -url http://127.0.0.1:8080/debug/leakguard -memory leak.json \
//		-suppressions suppressions.yaml -artifacts out -junit out/leak.xml
//
// after puts each finding that is new, or has grown since before, into a class, and ends with the exit code of the worst:
//
//	 0  clean     nothing is new
//	10  leak      a leak: the report, and with -pprof a goroutine dump and profiles, are kept in -artifacts
//	11  known     leaks that a suppression with an owner and a date covers, listed
//	12  unstable  the page did not answer in time, or the operator was restarted in between: no verdict
//	 2  misuse    wrong arguments or an unreadable file
//
// Under GitHub Actions it writes annotations too.
//
// # Cost
//
// A few requests to the page, which never samples because of a request. after waits for a sample taken after the suite.
//
// # Concurrency
//
// One command does one thing after the other.
//
// # Limits
//
// A caller that is neither on the loopback interface nor authenticated gets counts without names; forward the port with
// kubectl port-forward, or give -token-file. A leak that the suite shows for less time than leakguard needs to decide is
// pending: -state pending counts those too.
package main
