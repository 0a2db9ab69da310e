module github.com/leakguard/leakguard/test/bench

go 1.26.0

require (
	github.com/DataDog/gostackparse v0.7.0
	github.com/leakguard/leakguard v0.0.0
	github.com/maruel/panicparse/v2 v2.5.0
)

replace github.com/leakguard/leakguard => ../..
