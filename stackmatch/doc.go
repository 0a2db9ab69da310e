// Package stackmatch reads goroutine dumps and profiles, groups the goroutines, and says what is wrong with them.
package stackmatch
