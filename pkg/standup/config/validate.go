// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
)

// variableName is what Flux takes for one (fluxcd/pkg/kustomize
// kustomize_varsub.go, varsubRegex, v1.41.0).
var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// IsVariableName is true for the names that Flux substitutes.
func IsVariableName(name string) bool { return variableName.MatchString(name) }

// validate finds what is of the right type and makes no sense. Each complaint
// has the place of the field that it is about.
func (c *Config) validate() error {
	for _, check := range []func() error{
		c.validateHeader, c.validateCluster, c.validateVariables, c.validateNodes, c.validateCRDs, c.validateResume, c.validateVerify,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// wrong is a complaint about the value of a field, or of the one that holds it.
func (c *Config) wrong(field, format string, args ...any) error {
	at, ok := c.positions[field]
	for !ok && field != "" {
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
		at, ok = c.positions[field]
	}
	return &Error{Position: at, Message: fmt.Sprintf(format, args...)}
}

// validateHeader wants the whole header: half of one makes of the file a
// manifest that Flux tries to apply.
func (c *Config) validateHeader() error {
	_, local := c.Metadata.Annotations[localConfig]
	switch {
	case c.APIVersion == "" && c.Kind == "" && c.Metadata.Name == "" && c.Metadata.Annotations == nil:
		return nil
	case c.APIVersion != apiVersion:
		return c.wrong("apiVersion", "apiVersion must be %s, not %q", apiVersion, c.APIVersion)
	case c.Kind != kind:
		return c.wrong("kind", "kind must be %s, not %q", kind, c.Kind)
	case c.Metadata.Name == "":
		return c.wrong("metadata", "metadata lacks name: add it, like standup")
	case !local:
		return c.wrong("metadata.annotations", "metadata.annotations lacks %s: \"true\", without which Flux would apply this file: add it", localConfig)
	}
	return nil
}

func (c *Config) validateCluster() error {
	if domain := c.Cluster.Domain; domain != "" && validation.IsDNS1123Subdomain(domain) != nil {
		return c.wrong("cluster.domain", "cluster.domain %q is no DNS domain: write it like prod.example.org, in lower case", domain)
	}
	if ns := c.Flux.Namespace; ns != "" && validation.IsDNS1123Label(ns) != nil {
		return c.wrong("flux.namespace", "flux.namespace %q is no name of a Namespace: write it like flux-system", ns)
	}
	if root := c.Flux.Root; root != "" && validation.IsDNS1123Subdomain(root) != nil {
		return c.wrong("flux.root", "flux.root %q is no name of a Kustomization: write it without its namespace, like flux-system", root)
	}
	return nil
}

func (c *Config) validateVariables() error {
	seen := map[string]string{}
	for i, v := range c.Variables {
		field := fmt.Sprintf("variables[%d]", i)
		if !IsVariableName(v.Name) {
			return c.wrong(field+".name", "%s.name %q is no name of a variable: letters, digits and _ alone, and no digit first", field, v.Name)
		}
		if first, twice := seen[v.Name]; twice {
			return c.wrong(field+".name", "%s.name %s is that of %s too: make one entry of both", field, v.Name, first)
		}
		seen[v.Name] = field
		if err := c.validateVariable(field, &v); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateVariable(field string, v *Variable) error {
	for j, glob := range v.Forbid {
		if err := c.validateGlob(fmt.Sprintf("%s.forbid[%d]", field, j), glob); err != nil {
			return err
		}
	}
	if v.Placeholder != "" {
		if err := c.validateGlob(field+".placeholder", v.Placeholder); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		name  string
		tiers []string
	}{{"blocks", v.Blocks}, {"degrades", v.Degrades}} {
		if len(list.tiers) > 0 && v.Placeholder == "" {
			return c.wrong(field+"."+list.name, "%s.%s says what a placeholder does, and no placeholder is given: add placeholder, such as \"TBD-*\"", field, list.name)
		}
		if err := c.validateTiers(field+"."+list.name, list.tiers); err != nil {
			return err
		}
	}
	return nil
}

// validateGlob refuses the glob of every value: no cluster could come up.
func (c *Config) validateGlob(field, glob string) error {
	if strings.Trim(glob, "*") == "" {
		return c.wrong(field, "%s %q stands for every value: name the values that are meant", field, glob)
	}
	return nil
}

func (c *Config) validateTiers(field string, names []string) error {
	for i, name := range names {
		if _, err := parseTierName(name); err != nil {
			at := fmt.Sprintf("%s[%d]", field, i)
			return c.wrong(at, "%s %v", at, err)
		}
	}
	return nil
}

func (c *Config) validateNodes() error {
	n := c.Nodes
	if n.Count < 0 {
		return c.wrong("nodes.count", "nodes.count must not be negative: %d", n.Count)
	}
	for _, v := range []struct{ field, text string }{{"nodes.minKernel", n.MinKernel}, {"nodes.minKubelet", n.MinKubelet}} {
		if v.text == "" {
			continue
		}
		if _, err := version.ParseGeneric(v.text); err != nil {
			return c.wrong(v.field, "%s %q is no version: write it like \"5.15\"", v.field, v.text)
		}
	}
	if n.MinMemory == "" {
		return nil
	}
	if q, err := resource.ParseQuantity(n.MinMemory); err != nil || q.Sign() <= 0 {
		return c.wrong("nodes.minMemory", "nodes.minMemory %q is no amount of memory: write it like 16Gi", n.MinMemory)
	}
	return nil
}

func (c *Config) validateCRDs() error {
	for i, name := range c.CRDs.Expect {
		// The API server wants a CRD to be named PLURAL.GROUP
		// (apiextensions-apiserver validation ValidateCustomResourceDefinition).
		plural, group, _ := strings.Cut(name, ".")
		if validation.IsDNS1035Label(plural) != nil || validation.IsDNS1123Subdomain(group) != nil {
			field := fmt.Sprintf("crds.expect[%d]", i)
			return c.wrong(field, "%s %q is no name of a CRD: write PLURAL.GROUP, like storageprofiles.cdi.kubevirt.io", field, name)
		}
	}
	seen := map[string]string{}
	for i, chart := range c.CRDs.FromCharts {
		field := fmt.Sprintf("crds.fromCharts[%d]", i)
		namespace, name, _ := strings.Cut(chart.HelmRelease, "/")
		if validation.IsDNS1123Label(namespace) != nil || validation.IsDNS1123Subdomain(name) != nil {
			return c.wrong(field+".helmRelease", "%s.helmRelease %q names no HelmRelease: write NAMESPACE/NAME", field, chart.HelmRelease)
		}
		if first, twice := seen[chart.HelmRelease]; twice {
			return c.wrong(field+".helmRelease", "%s.helmRelease %s is that of %s too: make one entry of both", field, chart.HelmRelease, first)
		}
		seen[chart.HelmRelease] = field
	}
	return nil
}

func (c *Config) validateResume() error { return c.validateTiers("resume.skip", c.Resume.Skip) }

func (c *Config) validateVerify() error {
	for i, check := range c.Verify.Checks {
		field := fmt.Sprintf("verify.checks[%d]", i)
		if gv, err := schema.ParseGroupVersion(check.APIVersion); err != nil || gv.Version == "" || strings.HasPrefix(check.APIVersion, "/") {
			return c.wrong(field+".apiVersion", "%s.apiVersion %q is none: write VERSION or GROUP/VERSION, like apps/v1", field, check.APIVersion)
		}
		for _, expression := range []struct{ name, text string }{
			{"current", check.Current}, {"inProgress", check.InProgress}, {"failed", check.Failed},
		} {
			if expression.text == "" {
				continue
			}
			// Parsed and not compiled, as kustomize-controller does: which fields an
			// object has is known when it is there (fluxcd/pkg/runtime/cel
			// NewStatusEvaluator).
			if _, err := cel.NewExpression(expression.text); err != nil {
				at := field + "." + expression.name
				return c.wrong(at, "%s is no CEL expression: %s", at, celWords(err))
			}
		}
	}
	return nil
}

// celWords is the first of the parser's complaints, without the drawing below
// it. The place in it is one inside of the expression.
func celWords(err error) string {
	text := err.Error()
	if _, said, ok := strings.Cut(text, "ERROR: <input>:"); ok {
		text = "at " + said
	}
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, " expecting {") // every token that there is
	return strings.TrimSpace(text)
}
