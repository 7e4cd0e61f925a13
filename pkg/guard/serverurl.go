// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// NormalizeServer brings the URL of an API server into the one form in which
// two of them can be compared: scheme and host in lower case, no default port,
// no trailing slash, no trailing dot of the host, IP addresses as Go prints
// them. A path counts: behind Rancher and its like it selects the cluster.
//
// The error is a *UsageError. It never repeats the URL, which may hold a
// password.
func NormalizeServer(raw string) (string, error) {
	u, why := parseServer(raw)
	if why != "" {
		return "", &UsageError{Message: "server URL " + why}
	}
	return u.String(), nil
}

func parseServer(raw string) (*url.URL, string) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "is malformed: write it like https://api.example.org:6443"
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "https" && scheme != "http":
		return nil, "has no scheme https://: write it like https://api.example.org:6443"
	case u.Opaque != "" || u.Host == "":
		return nil, "has no host: write it like https://api.example.org:6443"
	case u.User != nil:
		return nil, "holds a user name: credentials belong into the kubeconfig"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return nil, "holds a query or a fragment: an API server has none"
	}
	host, why := normalizeHost(u.Hostname())
	if why != "" {
		return nil, why
	}
	port, why := normalizePort(scheme, u.Port())
	if why != "" {
		return nil, why
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	path, why := normalizeBasePath(u)
	if why != "" {
		return nil, why
	}
	return &url.URL{Scheme: scheme, Host: host + port, Path: path}, ""
}

func normalizeHost(host string) (string, string) {
	host = strings.TrimSuffix(host, ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String(), ""
	}
	// The profile also lowers the case, and it is what net/http applies before
	// it dials.
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		ascii = strings.ToLower(host)
	}
	if ascii == "" {
		return "", "has no host: write it like https://api.example.org:6443"
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", "has a host that is neither a name nor an IP address"
		}
	}
	return ascii, ""
}

func normalizePort(scheme, port string) (string, string) {
	if port == "" {
		return "", ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "has a port that is not between 1 and 65535"
	}
	if scheme == "https" && n == 443 || scheme == "http" && n == 80 {
		return "", ""
	}
	return ":" + strconv.FormatUint(n, 10), ""
}

func normalizeBasePath(u *url.URL) (string, string) {
	path := strings.TrimRight(u.EscapedPath(), "/")
	if path == "" {
		return "", ""
	}
	if strings.Trim(path, "/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:@") != "" {
		return "", "has a path with characters that two readers could take differently"
	}
	for seg := range strings.SplitSeq(path[1:], "/") {
		if seg == "" || seg == "." || seg == ".." {
			return "", "has a path with empty or dotted segments"
		}
	}
	return path, ""
}
