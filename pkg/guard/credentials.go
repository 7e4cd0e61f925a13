// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// Credentials say what kind of credentials a kubeconfig has, and on whom they
// depend. They hold no secret.
type Credentials struct {
	// Kind is one of the constants below.
	Kind CredentialsKind
	// Plugin is the name of the exec plugin's program, or of the auth provider.
	Plugin string
	// Issuer is the URL of the OIDC issuer that vouches for the user, empty
	// where none shows.
	Issuer string
}

// CredentialsKind is by what a client proves who it is.
type CredentialsKind string

// The kinds of credentials.
const (
	ByCertificate    CredentialsKind = "client certificate"
	ByToken          CredentialsKind = "token"
	ByServiceAccount CredentialsKind = "token of a service account"
	ByPlugin         CredentialsKind = "exec plugin"
	ByAuthProvider   CredentialsKind = "auth provider"
	ByPassword       CredentialsKind = "user and password"
	ByNothing        CredentialsKind = "none"
)

// String names the kind, the plugin, and the issuer.
func (c Credentials) String() string {
	text := string(c.Kind)
	if c.Plugin != "" {
		text += " " + printable(c.Plugin)
	}
	if c.Issuer != "" {
		text += " with OIDC issuer " + printable(c.Issuer)
	}
	return text
}

// Credentials are those of the kubeconfig as it was when the server was
// connected to. It sends nothing and runs no plugin.
func (s *Server) Credentials() Credentials { return credentialsOf(s.direct) }

// credentialsOf prefers what works while everything else is down: a server
// that takes a certificate asks nobody.
func credentialsOf(c *rest.Config) Credentials {
	switch {
	case len(c.CertData) > 0:
		return Credentials{Kind: ByCertificate}
	case c.ExecProvider != nil:
		return Credentials{ByPlugin, filepath.Base(c.ExecProvider.Command), issuerOfArgs(c.ExecProvider.Args)}
	case c.AuthProvider != nil:
		return Credentials{ByAuthProvider, c.AuthProvider.Name, issuerURL(c.AuthProvider.Config["idp-issuer-url"])}
	case c.BearerToken != "":
		return credentialsOfToken(c.BearerToken)
	case c.BearerTokenFile != "":
		return Credentials{Kind: ByToken}
	case c.Username != "":
		return Credentials{Kind: ByPassword}
	}
	return Credentials{Kind: ByNothing}
}

// issuerOfArgs finds the flag that kubectl's plugins for OIDC take:
// --oidc-issuer-url, --issuer-url, --issuer, with = or a space.
func issuerOfArgs(args []string) string {
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if name := strings.TrimLeft(flag, "-"); name == flag || !strings.HasSuffix(name, "issuer-url") && !strings.HasSuffix(name, "issuer") {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if issuer := issuerURL(value); issuer != "" {
			return issuer
		}
	}
	return ""
}

// credentialsOfToken reads the claims of a token that is a JWT. Nothing is
// verified: who relies on a wrong one is refused by the server.
func credentialsOfToken(token string) Credentials {
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Credentials{Kind: ByToken}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return Credentials{Kind: ByToken}
	}
	if strings.HasPrefix(claims.Subject, "system:serviceaccount:") {
		return Credentials{Kind: ByServiceAccount} // the API server vouches for it itself
	}
	return Credentials{Kind: ByToken, Issuer: issuerURL(claims.Issuer)}
}

// issuerURL is the URL without what a person may have hidden in it.
func issuerURL(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
