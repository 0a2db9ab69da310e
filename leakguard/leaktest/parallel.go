package leaktest

// isParallel reports whether a test, or one that it is in, is parallel. Package testing tells only by refusing to set an
// environment variable then; after that the test can no longer become parallel.
func isParallel(t TB) (parallel bool) {
	s, ok := t.(interface{ Setenv(key, value string) })
	if !ok {
		return false
	}
	defer func() { parallel = recover() != nil }()
	s.Setenv("LEAKTEST_SERIAL", "1")
	return false
}
