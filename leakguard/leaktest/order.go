package leaktest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// call is how an assertion was called.
type call struct {
	// deferred tells that the call was made when a function returned, by defer.
	deferred bool
	// test is the full name of the outermost function below the testing package: the test's.
	test string
}

// wrapper is in the name of the function that runs a test under its label.
const wrapper = "/leaktest.labelTests."

// maxCallers bounds the frames between an assertion and its test that are looked at.
const maxCallers = 64

// calledFrom finds out how an assertion was called, skip frames above: at the place where its call stands in the source, or by
// defer. The runtime does not tell the two apart, but the line that a frame is at does: a deferred call is made from the line of a
// return or of the closing brace. Where the source cannot be read, only a defer that runs in a panic or a Goexit is seen.
func calledFrom(skip int) call {
	var pcs [maxCallers]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip+1, pcs[:])])
	var c call
	callee, _ := frames.Next() // the assertion itself
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, wrapper) {
			return c
		}
		standard := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "testing.")
		switch {
		case f.Function == "" || strings.HasPrefix(f.Function, "testing.") && !strings.HasPrefix(f.Function, "testing.(*common)"):
			return c
		case f.Function == "runtime.Goexit" || f.Function == "runtime.gopanic":
			c.deferred = true
		case !standard:
			c.deferred = c.deferred || callsDeferred(f.File, f.Line, shortName(callee.Function))
			c.test = f.Function
		}
		if !more {
			return c
		}
		callee = f
	}
}

// shortName is the name that a call of a function has in the source; empty for function literals.
func shortName(function string) string {
	function = strings.TrimSuffix(function, "[...]")
	name := function[strings.LastIndexByte(function, '.')+1:]
	if strings.HasPrefix(name, "func") && strings.Trim(name[len("func"):], "0123456789") == "" || strings.Trim(name, "0123456789") == "" {
		return ""
	}
	return name
}

// callsDeferred reports whether the frame at a line of a file, which is calling callee, does so by defer.
func callsDeferred(file string, line int, callee string) bool {
	source, err := os.ReadFile(file)
	if err != nil { // go test -trimpath; tests run in the folder of their package
		if source, err = os.ReadFile(filepath.Base(file)); err != nil {
			return false
		}
	}
	text := lineOf(source, line)
	if callee != "" && bytes.Contains(text, []byte(callee)) && !bytes.Contains(text, []byte("defer ")) {
		return false
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if parsed == nil || err != nil {
		return false
	}
	body := innermost(set, parsed, line)
	return body != nil && leavesAt(set, body, line) && defers(body, callee)
}

// lineOf gives a line of a text, from 1.
func lineOf(text []byte, line int) []byte {
	for ; line > 1; line-- {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return nil
		}
		text = text[i+1:]
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	return text
}

// innermost gives the body of the innermost function around a line.
func innermost(set *token.FileSet, file *ast.File, line int) *ast.BlockStmt {
	var found *ast.BlockStmt
	ast.Inspect(file, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch f := n.(type) {
		case *ast.FuncDecl:
			body = f.Body
		case *ast.FuncLit:
			body = f.Body
		}
		if body != nil && set.Position(body.Lbrace).Line <= line && line <= set.Position(body.Rbrace).Line {
			found = body
		}
		return true
	})
	return found
}

// leavesAt reports whether a function is left at a line: at its closing brace or a return.
func leavesAt(set *token.FileSet, body *ast.BlockStmt, line int) bool {
	leaves := set.Position(body.Rbrace).Line == line
	inspectOwn(body, func(n ast.Node) {
		if r, ok := n.(*ast.ReturnStmt); ok && set.Position(r.Pos()).Line <= line && line <= set.Position(r.End()).Line {
			leaves = true
		}
	})
	return leaves
}

// defers reports whether a function has a defer statement that calls callee, or with an empty name a function literal.
func defers(body *ast.BlockStmt, callee string) bool {
	found := false
	inspectOwn(body, func(n ast.Node) {
		d, ok := n.(*ast.DeferStmt)
		if !ok {
			return
		}
		switch f := ast.Unparen(d.Call.Fun).(type) {
		case *ast.FuncLit:
			found = found || callee == ""
		case *ast.SelectorExpr:
			found = found || f.Sel.Name == callee
		case *ast.Ident:
			found = found || f.Name == callee
		case *ast.IndexExpr, *ast.IndexListExpr:
			found = true
		}
	})
	return found
}

// inspectOwn walks a function's body without the functions in it.
func inspectOwn(body *ast.BlockStmt, f func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		f(n)
		_, literal := n.(*ast.FuncLit)
		return !literal
	})
}
