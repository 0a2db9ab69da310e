package test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/api anew from the code")

// TestExportedSurface compares what each package exports with testdata/api, so that a change to it is a reviewed diff.
func TestExportedSurface(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for pkg := range imports(t) {
		if isFree(pkg) || strings.Contains(pkg, "/internal") {
			continue
		}
		name := strings.ReplaceAll(pkg, "/", "_") + ".txt"
		want[name] = true
		file := filepath.Join("testdata", "api", name)
		got := surface(t, filepath.Join("..", filepath.FromSlash(pkg)))
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("package %s has no list of what it exports (go test ./test -update writes it): %v", pkg, err)
			continue
		}
		if d := cmp.Diff(strings.Split(string(have), "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("package %s exports something else than testdata/api says (-file +code):\n%s", pkg, d)
		}
	}
	files, err := os.ReadDir(filepath.Join("testdata", "api"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("testdata/api/%s belongs to no package", f.Name())
		}
	}
}

// surface lists the exported declarations of the package in a folder, without bodies and comments, one sorted block each.
// It is that of linux, so that it is the same on every machine.
func surface(t *testing.T, dir string) string {
	t.Helper()
	linux := build.Default
	linux.GOOS, linux.GOARCH = "linux", "amd64"
	pkg, err := linux.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var blocks []string
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			blocks = append(blocks, declarations(t, fset, d)...)
		}
	}
	slices.Sort(blocks)
	return strings.Join(blocks, "")
}

// declarations prints one declaration; a group becomes one block for each of its parts, a constant without its value
// when that is not a literal.
func declarations(t *testing.T, fset *token.FileSet, d ast.Decl) (blocks []string) {
	t.Helper()
	show := func(node any) {
		var b bytes.Buffer
		if err := printer.Fprint(&b, fset, node); err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b.String()+"\n")
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type)) {
			return nil
		}
		d.Body = nil
		show(d)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, spec := range d.Specs {
			show(&ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
		}
	}
	return blocks
}

// receiver gives the name of a receiver's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
