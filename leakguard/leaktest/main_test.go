package leaktest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain has goleak look at this package's own tests: a judge that is not us.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
