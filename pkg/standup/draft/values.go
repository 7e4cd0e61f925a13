// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// placeholders are words that people write where a value is to follow. In
// capitals the word is enough; otherwise nothing that makes it a longer word
// may follow, as in replacement.
var (
	shouted    = regexp.MustCompile(`^(TBD-?|CHANGE[-_]?ME|REPLACE|FIXME|TODO|PLACEHOLDER|XXX)`)
	whispered  = regexp.MustCompile(`(?i)^(tbd-|(?:tbd|change[-_ ]?me|replace[-_ ]?(?:me|this)|fixme|todo|placeholder|xxx)(?:$|[^\pL\pN]))`)
	bracketed  = regexp.MustCompile(`^<[^<>]+>$`)
	plainValue = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|enabled?|disabled?|none|null|nil|default|standard|auto|automatic|` +
		`trace|debug|info|warn|warning|error|fatal|low|medium|high|small|large|x{1,2}-?large|tiny|nano|micro|` +
		`always|never|ifnotpresent|http|https|tcp|udp|ipv[46]|public|private|internal|external|latest|stable|main|master|` +
		`amd64|arm64|linux|admin|root|utc|get|post)$`)
)

// placeholderOf is the glob of the placeholder that a value is, "" when it is
// none.
func placeholderOf(value string) string {
	if bracketed.MatchString(value) {
		return "<*>"
	}
	if word := shouted.FindString(value); word != "" {
		return word + "*"
	}
	if word := whispered.FindString(value); word != "" {
		return strings.TrimRight(word, " :;,.") + "*"
	}
	return ""
}

// maxValue is longer than any name, address or domain.
const maxValue = 253

// telling is true for a value by which another environment can be told. One
// that this cluster might as well have by right, such as a number, is not.
func telling(value string) bool {
	if len(value) < 2 || len(value) > maxValue || strings.ContainsAny(value, "\n\r") || strings.Trim(value, "*") == "" {
		return false
	}
	if plainValue.MatchString(value) || placeholderOf(value) != "" || strings.TrimSpace(value) == "" || strings.HasPrefix(value, "${") {
		return false
	}
	if _, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64); err == nil {
		return false
	}
	if _, err := resource.ParseQuantity(value); err == nil {
		return false
	}
	_, err := time.ParseDuration(value)
	return err != nil
}
