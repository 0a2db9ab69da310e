package frame

import "strconv"

// Frame is one call on a goroutine's stack.
//
// The zero Frame is "no frame", for example the creator of a goroutine whose dump does not print it.
type Frame struct {
	// Function is the full symbol as the runtime names it, with %2e and its kind undone and without arguments:
	// "example.com/app/controllers.(*Reconciler).Reconcile.func1".
	Function string `json:"function"`
	// File is the path that the compiler recorded, as it was printed; it may have backslashes or spaces.
	File string `json:"file,omitempty"`
	// Line is the line in File, from 1; 0 when unknown.
	Line int `json:"line,omitempty"`
}

// IsZero reports whether f is no frame at all.
func (f Frame) IsZero() bool { return f.Function == "" && f.File == "" && f.Line == 0 }

// String gives "function at file:line", leaving out what is unknown.
func (f Frame) String() string {
	if f.File == "" {
		return f.Function
	}
	return f.Function + " at " + f.Position()
}

// Position gives "file.go:88" with the last two elements of the path, which is what a person needs to find the line:
// "/src/app/controllers/reconciler.go" at line 88 gives "controllers/reconciler.go:88". It is empty when File is.
func (f Frame) Position() string {
	if f.File == "" {
		return ""
	}
	return shortPath(f.File) + ":" + strconv.Itoa(f.Line)
}

// shortPath keeps the last two elements of a path with either kind of slash.
func shortPath(path string) string {
	slashes := 0
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] != '/' && path[i] != '\\' {
			continue
		}
		if slashes++; slashes == 2 {
			return path[i+1:]
		}
	}
	return path
}
