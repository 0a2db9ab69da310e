// Package bench compares the goroutine dump reader with those of other projects, over the same input in the same run.
package bench
