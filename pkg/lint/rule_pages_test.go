// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const pages = "../../docs/rules"

func TestEveryRuleHasAPage(t *testing.T) {
	for _, r := range everyRule() {
		content, err := os.ReadFile(filepath.Join(pages, r.Name+".md"))
		if err != nil {
			t.Errorf("rule %s: write docs/rules/%s.md: %v", r.ID, r.Name, err)
			continue
		}
		text := string(content)
		if head := "# " + r.ID + " " + r.Name + "\n"; !strings.HasPrefix(text, head) {
			t.Errorf("docs/rules/%s.md does not begin with %q", r.Name, head)
		}
		contains(t, "docs/rules/"+r.Name+".md", text, fmt.Sprintf("**%s** · %s", r.Severity, r.Title), "\n## Mend it\n", "\n## Suppress it\n")
		if slices.ContainsFunc(Rules(), func(o Rule) bool { return o.ID == r.ID }) {
			contains(t, "docs/rules/"+r.Name+".md", text, "\n## Why\n", "```yaml\n", IgnoreAnnotation+`: "`+r.ID+": ")
		}
		if !strings.HasSuffix(r.Page(), "/docs/rules/"+r.Name+".md") {
			t.Errorf("rule %s: its page is said to be at %s", r.ID, r.Page())
		}
	}
}

func TestEveryPageHasARule(t *testing.T) {
	files, err := filepath.Glob(pages + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([\w-]+\.md)\)`)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name != "README" && !slices.ContainsFunc(everyRule(), func(r Rule) bool { return r.Name == name }) {
			t.Errorf("%s: there is no rule %s", file, name)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(content), -1) {
			if _, err := os.Stat(filepath.Join(pages, m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", file, m[1], err)
			}
		}
	}
}

// index is docs/rules/README.md.
func index() string {
	var b strings.Builder
	b.WriteString("# Rules of `kubectl tiers lint`\n\nEach finding names its rule, and each rule has a page: what is wrong, why the controllers behave so, the smallest change that mends it, and how to suppress it.\n\n" +
		"CS is the cold start, HG what a tier's Ready proves, DG the graph of dependencies, BUILD what does not build, SUP the suppressions.\n\n" +
		"| rule | worst | what is wrong |\n| --- | --- | --- |\n")
	for _, r := range everyRule() {
		fmt.Fprintf(&b, "| [%s %s](%s.md) | %s | %s |\n", r.ID, r.Name, r.Name, r.Severity, r.Title)
	}
	return b.String()
}

func TestTheIndexNamesEveryRule(t *testing.T) {
	content, err := os.ReadFile(pages + "/README.md")
	if err != nil || string(content) != index() {
		t.Errorf("docs/rules/README.md (%v) has to say:\n%s", err, index())
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	id, name := regexp.MustCompile(`^(CS|HG|DG)\d{3}$`), regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, r := range Rules() {
		if !id.MatchString(r.ID) || !name.MatchString(r.Name) || seen[r.ID] || seen[r.Name] || !strings.HasSuffix(r.Title, ".") || r.Check == nil {
			t.Errorf("rule %q %q: %q", r.ID, r.Name, r.Title)
		}
		seen[r.ID], seen[r.Name] = true, true
	}
	if !slices.IsSortedFunc(Rules(), func(a, b Rule) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the rules are not sorted by ID")
	}
}

// A subject with nothing in it is no reason to fail.
func TestRulesOfNothing(t *testing.T) {
	for _, r := range Rules() {
		s := subject(t, "")
		none(t, s, r.ID)
		s.Prediction = nil
		none(t, s, r.ID)
	}
}
