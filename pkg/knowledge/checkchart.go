// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// valueForm is a path of values: their names may have a - in them.
var valueForm = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// chart names the field that is wrong.
func (c *checker) chart(chart *Chart) (string, error) {
	if field, err := known(chart.Sources, chart.Confidence); err != nil {
		return field, err
	}
	if slices.Contains(chart.Repositories, "") {
		return "repositories", fmt.Errorf("repositories: one is empty, which is part of every URL")
	}
	if chart.Versions != "" {
		if _, err := semver.NewConstraint(chart.Versions); err != nil {
			return "versions", fmt.Errorf("versions %q is not a range: %w", chart.Versions, err)
		}
	}
	own := Part{Registers: chart.Registers, Groups: chart.Groups, Switches: chart.Switches, Folder: chart.Folder}
	if len(own.Registers)+len(own.Groups) > 0 || len(own.Switches) > 0 || own.Folder {
		if field, err := c.part(&own); err != nil {
			return field, err
		}
	}
	for i := range chart.Parts {
		if field, err := c.part(&chart.Parts[i]); err != nil {
			return fmt.Sprintf("parts[%d].%s", i, field), fmt.Errorf("parts: %w", err)
		}
	}
	if w := chart.Webhooks; w != nil {
		if field, err := c.part(&Part{Groups: w.Groups, Switches: w.Switches}); err != nil {
			return "webhooks." + field, fmt.Errorf("webhooks: %w", err)
		}
	}
	if chart.Separate == chart.Name {
		return "separate", fmt.Errorf("separate is the chart itself")
	}
	for i, id := range chart.Relations {
		if !c.ids[id] {
			return fmt.Sprintf("relations[%d]", i), fmt.Errorf("relations: there is no relation %s", id)
		}
	}
	return "", nil
}

func (c *checker) part(p *Part) (string, error) {
	if len(p.Registers)+len(p.Groups) == 0 {
		return "registers", fmt.Errorf("registers and groups are empty, and switches or folder is set: say of which kinds")
	}
	if err := c.of(p.Registers); err != nil {
		return "registers", fmt.Errorf("registers: %w", err)
	}
	for i, group := range p.Groups {
		if len(validation.IsDNS1123Subdomain(group)) > 0 || !strings.Contains(group, ".") {
			return fmt.Sprintf("groups[%d]", i), fmt.Errorf("groups: %q is not one of a CRD", group)
		}
	}
	seen := map[string]bool{}
	for i, s := range p.Switches {
		switch field := fmt.Sprintf("switches[%d].path", i); {
		case !valueForm.MatchString(s.Path):
			return field, fmt.Errorf("switches: path %q is not names of values joined by dots", s.Path)
		case seen[s.Path]:
			return field, fmt.Errorf("switches: %s is there twice", s.Path)
		}
		seen[s.Path] = true
	}
	return "", nil
}

// ambiguous is true when nothing tells two rows apart.
func (c *Chart) ambiguous(other *Chart) bool {
	if c.Name != other.Name || c.Versions != other.Versions {
		return false
	}
	if len(c.Repositories) == 0 || len(other.Repositories) == 0 {
		return len(c.Repositories) == len(other.Repositories)
	}
	return slices.ContainsFunc(c.Repositories, func(r string) bool { return slices.Contains(other.Repositories, r) })
}

// check names the field that is wrong.
func (e *Effect) check() (string, error) {
	switch {
	case !kindForm.MatchString(e.Kind):
		return "kind", fmt.Errorf("kind %q is not the name of a kind", e.Kind)
	case len(validation.IsDNS1123Subdomain(e.Group)) > 0:
		return "group", fmt.Errorf("group %q is not one of an API", e.Group)
	case e.Ready.Current == "" || !strings.HasPrefix(e.Ready.APIVersion, e.Group+"/"):
		return "ready", fmt.Errorf("ready needs current, and an apiVersion of group %s", e.Group)
	case e.Why == "":
		return "why", fmt.Errorf("why is empty: say what goes wrong where it is not waited for")
	}
	return known(e.Sources, e.Confidence)
}
