// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

// TestCredentials: what kind they are and on whom they depend, and nothing of
// what they are.
func TestCredentials(t *testing.T) {
	plugin := func(args ...string) *rest.Config {
		return &rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: "/usr/local/bin/kubelogin", Args: args}}
	}
	for name, tt := range map[string]struct {
		config *rest.Config
		want   string
	}{
		"nothing":           {&rest.Config{}, "none"},
		"a certificate":     {&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("hidden"), KeyData: []byte("hidden")}}, "client certificate"},
		"a token":           {&rest.Config{BearerToken: "hidden"}, "token"},
		"dots are no JWT":   {&rest.Config{BearerToken: "hidden.hidden.hidden"}, "token"},
		"a file":            {&rest.Config{BearerTokenFile: "/hidden"}, "token"},
		"a password":        {&rest.Config{Username: "hidden", Password: "hidden"}, "user and password"},
		"a JWT":             {&rest.Config{BearerToken: jwt(`{"iss":"https://id.prod.example.org/realm","sub":"hidden"}`)}, "token with OIDC issuer https://id.prod.example.org/realm"},
		"a ServiceAccount":  {&rest.Config{BearerToken: jwt(`{"iss":"https://api.example.org","sub":"system:serviceaccount:a:b"}`)}, "token of a service account"},
		"no URL":            {&rest.Config{BearerToken: jwt(`{"iss":"kubernetes/serviceaccount"}`)}, "token"},
		"a plugin":          {plugin("get-token", "--client-secret=hidden"), "exec plugin kubelogin"},
		"an issuer, =":      {plugin("get-token", "--oidc-issuer-url=https://id.example.org", "--oidc-client-secret=hidden"), "exec plugin kubelogin with OIDC issuer https://id.example.org"},
		"an issuer, space":  {plugin("get-token", "--issuer", "https://hidden:hidden@id.example.org/?hidden"), "exec plugin kubelogin with OIDC issuer https://id.example.org/"},
		"a flag at the end": {plugin("--issuer"), "exec plugin kubelogin"},
		"an auth provider": {
			&rest.Config{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"idp-issuer-url": "https://id.example.org", "id-token": "hidden"}}},
			"auth provider oidc with OIDC issuer https://id.example.org",
		},
		"a certificate works without the issuer": {
			&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("hidden")}, BearerToken: jwt(`{"iss":"https://id.example.org"}`)},
			"client certificate",
		},
	} {
		got := (&Server{direct: tt.config}).Credentials()
		if got.String() != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		if strings.Contains(fmt.Sprintf("%+v", got), "hidden") {
			t.Errorf("%s: %+v shows a secret", name, got)
		}
	}
}
