package probes

import (
	"net/url"
	"strings"
)

// describe says what a request's target is for, without the names of objects: "WATCH host/api/v1/namespaces/a/pods?" gives
// "watch pods", "GET host/apis/apps/v1/namespaces/a/deployments/b/status?" gives "GET deployments.apps/status", and what
// is no Kubernetes path gives its host, "GET example.com".
func describe(target string) string {
	verb, rest, _ := strings.Cut(target, " ")
	if verb == "WATCH" {
		verb = "watch"
	}
	path, query, _ := strings.Cut(rest, "?")
	host, path, _ := strings.Cut(path, "/")
	what := host
	if resource := resourceOf(path); resource != "" {
		what = resource
	}
	return verb + " " + what + selectedBy(query)
}

// selectedBy says by which labels and fields a query selects, without their values, which may be the names of objects:
// "labelSelector=app%3Dsecret,tier+in+(a,b)&fieldSelector=metadata.name%3Dx" gives " by label app, label tier, field metadata.name".
func selectedBy(query string) string {
	query, _, _ = strings.Cut(query, " ") // of a watch, what it accepts
	var keys []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		sort, selects := strings.CutSuffix(name, "Selector")
		selector, err := url.QueryUnescape(value)
		if !selects || err != nil {
			continue
		}
		for _, key := range selectorKeys(selector) {
			keys = append(keys, sort+" "+key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return " by " + strings.Join(keys, ", ")
}

// maxSelectorKeys bounds the keys of one selector that are named.
const maxSelectorKeys = 4

// selectorKeys gives what the requirements of a selector are about: "a=b,!c,d in (e,f)" gives a, c and d.
func selectorKeys(selector string) (keys []string) {
	depth, start := 0, 0
	for i := 0; i <= len(selector) && len(keys) < maxSelectorKeys; i++ {
		switch {
		case i < len(selector) && selector[i] == '(':
			depth++
		case i < len(selector) && selector[i] == ')':
			depth--
		case i == len(selector) || (selector[i] == ',' && depth <= 0):
			key := strings.TrimLeft(selector[start:i], "! ")
			if end := strings.IndexAny(key, "=!<> ("); end >= 0 {
				key = key[:end]
			}
			if key != "" {
				keys = append(keys, key)
			}
			start = i + 1
		}
	}
	return keys
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
