// Package rulefile reads the rules of package stackmatch from YAML, with conditions in CEL, and keeps a mounted file in force.
package rulefile
