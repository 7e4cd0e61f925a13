// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestReleases(t *testing.T) {
	const templates = "\n=== templates\n"
	tests := map[string]struct {
		releases []string
		charts   map[string]string
		hooks    string // of the chart last
		want     string
	}{
		"its own folder": {
			[]string{hr("a")},
			map[string]string{"a": crd("Widget") + templates + cr("Widget")},
			"",
			"a installed\n",
		},
		"its own templates": {
			[]string{hr("a")},
			map[string]string{"a": templates + crd("Widget") + cr("Widget")},
			"",
			"a stuck; Widget missing chart a same\n",
		},
		"a folder that is skipped": {
			[]string{hr("a", "install: {crds: Skip}\n")},
			map[string]string{"a": crd("Widget") + templates + cr("Widget")},
			"",
			"a stuck; Widget missing\n",
		},
		"another release, in no order": {
			[]string{hr("a"), hr("b")},
			map[string]string{"a": crd("Widget"), "b": templates + cr("Widget")},
			"",
			"a installed\nb installed; Widget late chart a no-path\n",
		},
		"another release, in order": {
			[]string{hr("a"), hr("b", "dependsOn: [{name: a}]\n")},
			map[string]string{"a": templates + crd("Widget"), "b": templates + cr("Widget")},
			"",
			"a installed\nb installed\n",
		},
		"a release that it depends on is not there": {
			[]string{hr("b", "dependsOn: [{name: a}]\n")},
			map[string]string{"b": ""},
			"",
			"b not attempted\n",
		},
		"a hook after its own CRD": {
			[]string{hr("last")},
			map[string]string{"last": templates + crd("Widget")},
			cr("Widget"),
			"last installed\n",
		},
		"a hook whose kind nobody registers": {
			[]string{hr("last")},
			map[string]string{"last": templates},
			cr("Widget"),
			"last stuck; Widget missing\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := scene{tiers: []string{"tier\n---\n" + strings.Join(tc.releases, "")}, charts: tc.charts}.cluster(t)
			if tc.hooks != "" {
				key := flux.Ref{Kind: "HelmRelease", Namespace: "flux-system", Name: "last"}
				last := c.Charts[key]
				last.PostInstall = objects(t, tc.hooks)
				c.Charts[key] = last
			}
			if got := dumpReleases(Predict(c)); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

func dumpReleases(p *Prediction) string {
	var out strings.Builder
	for _, r := range p.Releases {
		state := "installed"
		switch {
		case !r.Attempted:
			state = "not attempted"
		case !r.Installed:
			state = "stuck"
		}
		fmt.Fprintf(&out, "%s %s", r.Release.Name, state)
		for _, n := range r.Needs {
			fmt.Fprintf(&out, "; %s %s", n.Kind.Kind, n.When)
			if len(n.Providers) > 0 {
				fmt.Fprintf(&out, " %s %s %s", n.Providers[0].How, n.Providers[0].Release.Name, n.Providers[0].Reach)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}
