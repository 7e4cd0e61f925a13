// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"slices"
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

func (h *hidden) text(text string) {
	text = strings.TrimSpace(text)
	if len(text) < shortestHidden || text == "true" || text == "false" || text == "null" {
		return
	}
	if h.texts == nil {
		h.texts = map[string]bool{}
	}
	h.texts[text] = true
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
		text = strings.ReplaceAll(text, each, "*****")
	}
	return text
}
