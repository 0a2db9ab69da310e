package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// say prints. That a pipe is closed is nothing that this command could tell anybody.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// testSuite, testCase and message are JUnit's XML.
type testSuite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *message `xml:"failure,omitempty"`
	Skipped *message `xml:"skipped,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes test cases as JUnit XML.
func writeJUnit(file string, cases []testCase) error {
	s := testSuite{Name: "leakguard", Tests: len(cases), Cases: cases}
	for _, c := range cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	data, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("e2ehook: %w", err)
	}
	return writeFile(file, append([]byte(xml.Header), append(data, '\n')...))
}

// annotation is one remark in GitHub's view of a change.
type annotation struct {
	title, file string
	line        int
	text        string
}

// annotator gives the function that writes annotations under GitHub Actions, and does nothing elsewhere.
func annotator(getenv func(string) string, w io.Writer) func(level string, a annotation) {
	if getenv("GITHUB_ACTIONS") != "true" {
		return func(string, annotation) {}
	}
	workspace := getenv("GITHUB_WORKSPACE")
	return func(level string, a annotation) {
		properties := "title=" + escapeProperty(a.title)
		if a.file != "" {
			properties = fmt.Sprintf("file=%s,line=%d,%s", escapeProperty(inWorkspace(workspace, a.file)), a.line, properties)
		}
		say(w, "::%s %s::%s\n", level, properties, escapeData(a.text))
	}
}

// inWorkspace gives a path below the checked-out folder, where it is one.
func inWorkspace(workspace, file string) string {
	if workspace == "" {
		return file
	}
	rel, err := filepath.Rel(workspace, file)
	if err != nil || strings.HasPrefix(rel, "..") {
		return file
	}
	return filepath.ToSlash(rel)
}

// escapeData and escapeProperty are the encodings of GitHub's workflow commands.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
