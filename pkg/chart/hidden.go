// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// shortestHidden is in bytes. Anything shorter is in every text.
const shortestHidden = 4

// hidden are texts that came out of Secrets. The zero value hides nothing.
type hidden struct{ texts map[string]bool }

// add hides the content of a Secret: as it is, each scalar of it where it is
// YAML, and each word, since a parser quotes the word that it tripped over.
func (h *hidden) add(content []byte) {
	h.text(string(content))
	var document any
	if yaml.Unmarshal(content, &document) == nil {
		h.scalars(document)
	}
}

func (h *hidden) scalars(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, each := range v {
			h.scalars(each)
		}
	case []any:
		for _, each := range v {
			h.scalars(each)
		}
	case bool, nil:
	case float64:
		h.text(fmt.Sprint(v))
		h.text(fmt.Sprintf("%.0f", v))
	default:
		text := fmt.Sprint(v)
		h.text(text)
		for _, word := range strings.FieldsFunc(text, isNoWord) {
			h.text(word)
		}
	}
}

func isNoWord(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_'
}

// text hides a text, and what templates and servers make of one before they
// quote it. What is cut out of its middle is not known.
func (h *hidden) text(text string) {
	whole, text := text, strings.TrimSpace(text)
	if len(text) < shortestHidden || text == "true" || text == "false" || text == "null" {
		return
	}
	if h.texts == nil {
		h.texts = map[string]bool{}
	}
	quoted := strconv.Quote(text)
	h.texts[text], h.texts[quoted[1:len(quoted)-1]] = true, true
	if raw, err := json.Marshal(text); err == nil {
		h.texts[string(raw[1:len(raw)-1])] = true
	}
	for _, each := range []string{whole, text} {
		h.texts[base64.RawStdEncoding.EncodeToString([]byte(each))] = true
		h.texts[base64.RawURLEncoding.EncodeToString([]byte(each))] = true
	}
}

func (h *hidden) redact(err error) error {
	if err == nil {
		return nil
	}
	if text := h.redactText(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

func (h *hidden) redactText(text string) string {
	all := make([]string, 0, len(h.texts))
	for each := range h.texts {
		all = append(all, each)
	}
	// The longest first: one may be part of another.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, each := range all {
		text = replaceAny(text, each)
	}
	return text
}

// replaceAny hides a text in upper and lower case.
func replaceAny(text, secret string) string {
	var out strings.Builder
	at, folded := 0, asciiLower(text)
	for secret = asciiLower(secret); ; {
		next := strings.Index(folded[at:], secret)
		if next < 0 {
			return out.String() + text[at:]
		}
		out.WriteString(text[at:at+next] + "*****")
		at += next + len(secret)
	}
}

// asciiLower keeps the length of a text in bytes.
func asciiLower(text string) string {
	raw := []byte(text)
	for i, c := range raw {
		if 'A' <= c && c <= 'Z' {
			raw[i] = c + 'a' - 'A'
		}
	}
	return string(raw)
}
