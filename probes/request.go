package probes

import "strings"

// describe says what a request's target is for, without the names of objects: "WATCH host/api/v1/namespaces/a/pods?" gives
// "watch pods", "GET host/apis/apps/v1/namespaces/a/deployments/b/status?" gives "GET deployments.apps/status", and what
// is no Kubernetes path gives its host, "GET example.com".
func describe(target string) string {
	verb, rest, _ := strings.Cut(target, " ")
	if verb == "WATCH" {
		verb = "watch"
	}
	path, _, _ := strings.Cut(rest, "?")
	host, path, _ := strings.Cut(path, "/")
	if resource := resourceOf(path); resource != "" {
		return verb + " " + resource
	}
	return verb + " " + host
}

// resourceOf gives "resource.group/subresource" of a Kubernetes path without its leading slash, "" for any other path.
func resourceOf(path string) string {
	parts := strings.Split(path, "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group = "." + parts[1]
		parts = parts[3:]
	default:
		return ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	resource := parts[0] + group
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return resource
}
