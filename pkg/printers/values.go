// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Age is how long ago t was, as kubectl's AGE column says it ("5m12s", "3d"),
// and <unknown> for the zero time.
func Age(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// OrNone is text, or <none> as kubectl shows an empty cell.
func OrNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// Name is what -o name prints for an object: kind.group/name in lower case.
// It can be pasted after `kubectl get -n NAMESPACE`.
func Name(r flux.Ref) string {
	kind := strings.ToLower(r.Kind)
	if group := r.Group(); group != "" {
		kind += "." + group
	}
	return kind + "/" + r.Name
}
