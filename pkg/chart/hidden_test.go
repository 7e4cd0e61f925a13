// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestHiddenForms: what a template makes of a secret before it fails with it.
func TestHiddenForms(t *testing.T) {
	t.Parallel()
	const secret, key = "pa\"ss w0rd&top", "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA/secretsecret==\n-----END KEY-----\n"
	var h hidden
	h.add([]byte("password: 'pa\"ss w0rd&top'\npin: 48151623\nkey: |\n  " + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n  ") + "\n"))
	for name, text := range map[string]string{
		"as it is":         secret,
		"quoted":           fmt.Sprintf("%q", secret),
		"upper case":       strings.ToUpper(secret),
		"JSON":             `pa\"ss w0rd\u0026top`,
		"base64":           base64.StdEncoding.EncodeToString([]byte(secret)),
		"a key":            strings.Join(strings.Fields(key), " "),
		"a key, quoted":    fmt.Sprintf("%q", key),
		"a key, base64":    base64.StdEncoding.EncodeToString([]byte(key)),
		"twice":            secret + secret,
		"a number":         "48151623",
		"a long number":    "4.8151623e+07",
		"one of its words": "w0rd",
	} {
		got := h.redactText("it says <" + text + ">")
		for _, part := range []string{"pa", "ss", "w0rd", "MII", "TUlJ", "cGEi", "4815", "4.8", "LS0tLS1C"} {
			if !strings.HasPrefix(got, "it says <") || strings.Contains(strings.ToLower(got[9:]), strings.ToLower(part)) {
				t.Errorf("%s: got %q", name, got)
			}
		}
	}
	if got := h.redactText("nothing of it"); got != "nothing of it" {
		t.Errorf("got %q", got)
	}
	if got := (&hidden{}).redactText("pa"); got != "pa" {
		t.Errorf("got %q", got)
	}
}
