// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// verdict is what the guard does with a request.
type verdict int

const (
	// refuse: never sent, whatever was proved. Also what is not understood.
	refuse verdict = iota
	// mutate: sent to a proved server only.
	mutate
	// inspect: as mutate, unless the body asks for a dry run. A DELETE with a
	// body is governed by the DeleteOptions in it, and its query is ignored
	// (k8s.io/apiserver pkg/endpoints/handlers/delete.go).
	inspect
	// pass: changes nothing, always sent.
	pass
)

// call is a request as the API server will understand it.
type call struct {
	verb                         string
	group, resource, subresource string
	namespace, name              string
	special                      string // a verb in the path: watch, proxy, redirect
	path                         string // what was asked for when it is no resource
	extra                        bool   // segments behind the sub-resource
}

// readable are the only sub-resources that a GET may read unproved. Others
// reach into a node or a pod (exec over WebSocket is a GET, and so are attach,
// portforward and proxy), and those of an aggregated API can be anything:
// KubeVirt's console and vnc are.
var readable = []string{"", "status", "log"}

// rehearsable are those whose dry run is the API server's own. Behind others
// an aggregated server decides, and KubeVirt's restart ignores the query.
var rehearsable = []string{"", "status"}

// reviews are questions that are asked with a POST; the value says whether
// they are asked in a namespace.
var reviews = map[[2]string]bool{
	{"authorization.k8s.io", "selfsubjectaccessreviews"}:  false,
	{"authorization.k8s.io", "selfsubjectrulesreviews"}:   false,
	{"authorization.k8s.io", "subjectaccessreviews"}:      false,
	{"authorization.k8s.io", "localsubjectaccessreviews"}: true,
	{"authentication.k8s.io", "tokenreviews"}:             false,
	{"authentication.k8s.io", "selfsubjectreviews"}:       false,
}

// overrideHeaders make some proxies execute another method, or another path,
// than the ones that were looked at.
var overrideHeaders = []string{
	"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url",
}

// classify decides about one request, with the sentence why for a refusal.
func (e endpoint) classify(r *http.Request) (call, verdict, string) {
	c := call{verb: strings.ToLower(r.Method), path: r.URL.Path}
	if c.verb == "" {
		c.verb = "get" // what net/http sends for it
	}
	if why := e.foreign(r); why != "" {
		return c, refuse, why
	}
	segments, why := e.segments(r.URL)
	if why != "" {
		return c, refuse, why
	}
	if h := overriding(r.Header); h != "" {
		return c, refuse, "its header " + h + " would make it another request"
	}
	c.parse(segments)
	read := false
	switch r.Method {
	case "", http.MethodGet, http.MethodHead:
		read = true
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return c, refuse, "its method is none of an API server's"
	}
	return c, c.decide(r, segments, read), ""
}

func (c *call) decide(r *http.Request, segments []string, read bool) verdict {
	switch {
	case upgrades(r.Header):
		return mutate // whatever comes through it is not looked at
	case c.extra, c.special != "" && !(read && c.special == "watch"):
		return mutate
	case c.resource == "":
		if read && harmlessPath(segments) {
			return pass
		}
		return mutate
	case read && slices.Contains(readable, c.subresource):
		return pass
	case c.asksReview():
		return pass
	case !slices.Contains(rehearsable, c.subresource) || c.special != "":
		return mutate
	case r.Method == http.MethodDelete && r.Body != nil && r.Body != http.NoBody:
		return inspect
	case asksDryRun(r.URL):
		return pass
	}
	return mutate
}

// foreign is why a request is not for this server.
func (e endpoint) foreign(r *http.Request) string {
	u := r.URL
	switch {
	case u.Opaque != "", u.User != nil:
		return "its URL hides what would be asked for"
	case !strings.EqualFold(u.Scheme, e.normal.Scheme) || !e.sameHost(u.Host):
		return "it is for another server than " + e.String()
	case r.Host != "" && !e.sameHost(r.Host):
		return "its Host header names another server than " + e.String()
	}
	return ""
}

func (e endpoint) sameHost(hostport string) bool {
	if hostport == e.normal.Host {
		return true
	}
	u, why := parseServer(e.normal.Scheme + "://" + hostport)
	return why == "" && u.Host == e.normal.Host && u.Path == ""
}

// segments are those of the path below the server's own. They are refused
// where two readers could take them for different ones.
func (e endpoint) segments(u *url.URL) ([]string, string) {
	const odd = "its path can be read in two ways"
	if strings.ContainsFunc(u.RawQuery, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, "its query cannot be sent as it is"
	}
	encoded := strings.ToLower(u.EscapedPath())
	for _, bad := range []string{"%2f", "%2e", "%5c", "%25", "%3b", "%3f", "%23"} {
		if strings.Contains(encoded, bad) {
			return nil, odd
		}
	}
	if strings.ContainsFunc(u.Path, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\\' || r == ';' || r == '%' || r == '\uFFFD'
	}) {
		return nil, odd
	}
	below, ok := strings.CutPrefix(u.Path, e.normal.Path+"/")
	if !ok {
		return nil, "its path is not below that of the server " + e.String()
	}
	segments := strings.Split(below, "/")
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return nil, odd
		}
	}
	return segments, ""
}

// parse reads the path as RequestInfoFactory of k8s.io/apiserver does
// (pkg/endpoints/request/requestinfo.go); a fuzz test compares the two.
func (c *call) parse(segments []string) {
	rest := segments
	switch {
	case rest[0] == "api" && len(rest) > 2:
		rest = rest[2:]
	case rest[0] == "apis" && len(rest) > 3:
		c.group, rest = rest[1], rest[3:]
	default:
		return
	}
	if rest[0] == "watch" || rest[0] == "proxy" || rest[0] == "redirect" {
		if c.special = rest[0]; len(rest) == 1 {
			return
		}
		rest = rest[1:]
	}
	if rest[0] == "namespaces" && len(rest) > 1 {
		c.namespace = rest[1]
		if len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
			rest = rest[2:]
		}
	}
	c.resource = rest[0]
	if len(rest) > 1 {
		c.name = rest[1]
	}
	if len(rest) > 2 {
		c.subresource = rest[2]
	}
	c.extra = len(rest) > 3
	c.nameVerb()
}

// nameVerb turns the method into the verb that RBAC and a person know.
func (c *call) nameVerb() {
	switch c.verb {
	case "get", "head":
		if c.verb = "get"; c.name == "" {
			c.verb = "list"
		}
	case "post":
		c.verb = "create"
	case "put":
		c.verb = "update"
	case "delete":
		if c.name == "" {
			c.verb = "deletecollection"
		}
	}
}

// what is how the call is named in a refusal: pods/exec,
// kustomizations.kustomize.toolkit.fluxcd.io, or the path.
func (c *call) what() string {
	if c.resource == "" {
		return printable(c.path)
	}
	what := c.resource
	if c.group != "" {
		what += "." + c.group
	}
	if c.subresource != "" {
		what += "/" + c.subresource
	}
	if c.special != "" {
		what = c.special + " " + what
	}
	return printable(what)
}

func (c *call) asksReview() bool {
	namespaced, ok := reviews[[2]string{c.group, c.resource}]
	return ok && c.verb == "create" && c.special == "" && c.name == "" && c.subresource == "" &&
		namespaced == (c.namespace != "")
}

// harmlessPath is discovery, the version and the health checks.
func harmlessPath(segments []string) bool {
	switch n := len(segments); segments[0] {
	case "api":
		return n <= 2
	case "apis":
		return n <= 3
	case "version":
		return n == 1
	case "openapi":
		return n == 2 && segments[1] == "v2" || n >= 2 && segments[1] == "v3"
	case "healthz", "livez", "readyz":
		return true
	}
	return false
}

// asksDryRun is true when the query holds dryRun once, with the one value that
// the API server knows, and nothing that would be read differently elsewhere.
func asksDryRun(u *url.URL) bool {
	query, err := url.ParseQuery(u.RawQuery)
	return err == nil && len(query["dryRun"]) == 1 && query["dryRun"][0] == "All"
}

// overriding and upgrades look at the keys as they are written, since
// net/http sends a key that is not canonical as it finds it.
func overriding(h http.Header) string {
	for key := range h {
		if slices.Contains(overrideHeaders, strings.ReplaceAll(strings.ToLower(key), "_", "-")) {
			return printable(key)
		}
	}
	return ""
}

func upgrades(h http.Header) bool {
	for key, values := range h {
		switch strings.ToLower(key) {
		case "upgrade":
			return true
		case "connection":
			if strings.Contains(strings.ToLower(strings.Join(values, ",")), "upgrade") {
				return true
			}
		}
	}
	return false
}
