// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
)

// The part of SARIF 2.1.0 that is written here
// (docs.oasis-open.org/sarif/sarif/v2.1.0). What is empty is left out.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool                 `json:"tool"`
		Bases       map[string]sarifBase      `json:"originalUriBaseIds"`
		Invocations []sarifInvocation         `json:"invocations"`
		Results     []sarifResult             `json:"results"`
		Properties  map[string][]sarifVerdict `json:"properties,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Organization   string      `json:"organization"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string         `json:"id"`
		Name             string         `json:"name"`
		ShortDescription sarifText      `json:"shortDescription"`
		HelpURI          string         `json:"helpUri"`
		Help             sarifText      `json:"help"`
		Default          sarifLevel     `json:"defaultConfiguration"`
		Properties       sarifRuleProps `json:"properties"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifRuleProps struct {
		Tags []string `json:"tags"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifBase struct {
		Description sarifText `json:"description"`
	}
	sarifInvocation struct {
		Successful bool `json:"executionSuccessful"`
	}
	sarifVerdict struct {
		Entry    string `json:"entry"`
		Tiers    int    `json:"tiers"`
		Verdicts Counts `json:"verdicts"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    *int               `json:"ruleIndex,omitempty"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name      string `json:"name"`
		Qualified string `json:"fullyQualifiedName"`
		Kind      string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
)

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	// sourceRoot is the name that code scanning gives to the root of the
	// checkout. Where that lies is nobody's business.
	sourceRoot = "%SRCROOT%"
	// fingerprint names how a finding is known again in a later run. Another way
	// is another name.
	fingerprint = "kubestandupFinding/v1"
)

// WriteSARIF writes the findings as SARIF 2.1.0, those that are suppressed
// among them and marked so. version is that of the program.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "kubectl-tiers", Organization: "kubestandup", Version: version,
			InformationURI: "https://github.com/kubestandup/kubestandup", Rules: sarifRules(),
		}},
		Bases:       map[string]sarifBase{sourceRoot: {Description: sarifText{Text: "The root of the repository."}}},
		Invocations: []sarifInvocation{{Successful: true}},
		Results:     []sarifResult{},
	}
	index := map[string]int{}
	for i, rule := range run.Tool.Driver.Rules {
		index[rule.ID] = i
	}
	seen := map[string]int{}
	add := func(f *finding.Finding, suppressions []sarifSuppression) {
		result := sarifResultOf(f, seen)
		if i, known := index[f.Rule]; known {
			result.RuleIndex = &i
		}
		result.Suppressions = suppressions
		run.Results = append(run.Results, result)
	}
	for i := range r.Findings {
		add(&r.Findings[i], nil)
	}
	for i := range r.suppressed {
		s := &r.suppressed[i]
		add(&s.Finding, []sarifSuppression{{Kind: "inSource", Status: "accepted", Justification: s.reason}})
	}
	for _, e := range r.Entries {
		if run.Properties == nil {
			run.Properties = map[string][]sarifVerdict{}
		}
		run.Properties["clusters"] = append(run.Properties["clusters"], sarifVerdict{e.Entry, e.Tiers, e.Verdicts})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}})
}

func sarifRules() []sarifRule {
	rules := []sarifRule{}
	for _, rule := range everyRule() {
		rules = append(rules, sarifRule{
			ID: rule.ID, Name: rule.Name, ShortDescription: sarifText{Text: rule.Title}, HelpURI: rule.Page(),
			Help: sarifText{
				Text:     rule.Title + " See " + rule.Page(),
				Markdown: rule.Title + "\n\n[What it means, and how to mend it](" + rule.Page() + ")",
			},
			Default: sarifLevel{levelOf(rule.Severity)}, Properties: sarifRuleProps{Tags: []string{"flux", "kubernetes"}},
		})
	}
	slices.SortFunc(rules, func(a, b sarifRule) int { return strings.Compare(a.ID, b.ID) })
	return rules
}

// levelOf is the severity in SARIF's words.
func levelOf(s finding.Severity) string {
	if s == finding.Info {
		return "note"
	}
	return string(s)
}

func sarifResultOf(f *finding.Finding, seen map[string]int) sarifResult {
	result := sarifResult{RuleID: f.Rule, Level: levelOf(f.Severity), Message: sarifMessage(f)}
	var location sarifLocation
	if f.File != "" {
		location.Physical = &sarifPhysical{Artifact: sarifArtifact{URI: (&url.URL{Path: f.File}).String(), Base: sourceRoot}}
		if f.Line > 0 {
			location.Physical.Region = &sarifRegion{StartLine: f.Line}
		}
	}
	if f.Tier != nil {
		location.Logical = []sarifLogical{{Name: f.Tier.Name, Qualified: f.Tier.String(), Kind: "resource"}}
	}
	if f.File != "" || f.Tier != nil {
		result.Locations = []sarifLocation{location}
	}
	id := identity(f)
	seen[id]++
	if n := seen[id]; n > 1 { // the second of its kind at one place
		id += "/" + strconv.Itoa(n)
	}
	result.Fingerprints = map[string]string{fingerprint: id}
	return result
}

// identity is the same for a finding in the next run, also when lines have
// moved or another tier has been added, which changes messages.
func identity(f *finding.Finding) string {
	parts := []string{f.Rule, f.File, coldstart.Key(orNone(f.Tier)).String(), coldstart.Key(orNone(f.Object)).String()}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// sarifMessage holds all that a finding says: readers show nothing else of it.
func sarifMessage(f *finding.Finding) sarifText {
	plain := []string{f.Message}
	marked := []string{markdown(f.Message)}
	for _, c := range f.Causes {
		plain = append(plain, "- "+c)
		marked = append(marked, "- "+markdown(c))
	}
	for _, m := range f.Missing {
		text := "missing: " + MissingText(m)
		plain = append(plain, "- "+text)
		marked = append(marked, "- "+markdown(text))
	}
	label := "Fix: "
	for _, part := range FixParts(f.Fix) {
		if part.Manifest {
			plain = append(plain, part.Text)
			marked = append(marked, "", "```yaml", part.Text, "```")
			continue
		}
		plain = append(plain, label+part.Text)
		marked = append(marked, "", label+markdown(part.Text))
		label = ""
	}
	return sarifText{Text: strings.Join(plain, "\n"), Markdown: strings.Join(marked, "\n")}
}

// markdown keeps a text from being read as Markdown or HTML: names of a
// repository stand in it.
func markdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", "&", "&amp;", "#", `\#`).Replace(text)
}

// MissingText says of a missing kind who creates it.
func MissingText(m finding.Missing) string {
	text := strings.TrimSpace(m.Kind + " " + m.APIVersion)
	if m.CreatedBy != "" {
		text += ", created by " + m.CreatedBy
	}
	return text
}
