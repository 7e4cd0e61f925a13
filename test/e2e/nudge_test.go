// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestNudgedChain: twelve tiers, each behind the one before, from cold. Flux
// alone takes minutes, since each tier looks at its dependency every 30 s.
//
// It measures, so no other test of this package runs beside it.
func TestNudgedChain(t *testing.T) {
	const length = 12
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{cluster.SourceController, cluster.KustomizeController}})
	s := &scene{c: c, ns: cluster.FluxNamespace, sh: shellFor(t, c)}
	files := cluster.Files{}
	var tiers []string
	for i := range length {
		name := fmt.Sprintf("tier-%02d", i)
		files[name+"/cm.yaml"] = configMap("default", name)
		spec := []string{"wait: true"}
		if i > 0 {
			spec = append(spec, needs(fmt.Sprintf("tier-%02d", i-1)))
		}
		tiers = append(tiers, strings.ReplaceAll(s.manifest(name, spec...), "name: source", "name: flux-system"))
	}
	files["root/tiers.yaml"] = strings.Join(tiers, "---\n")
	if _, err := c.Push(t.Context(), "chain", files, "a chain"); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"tiers", "--wait", "--nudge", "--timeout", "1m"}, expect(t, c)...)
	s.sh.want(t, 0, "tiers", "version") // the plugins are built

	began, mark := time.Now(), c.Mark()
	if err := c.InstallRoot(t.Context(), cluster.Root{Repo: "chain", Path: "./root", Prune: true}); err != nil {
		t.Fatal(err)
	}
	o := s.sh.want(t, 0, args...)
	took := time.Since(began)
	t.Logf("%d tiers Ready %s after the root was created", length, took.Round(100*time.Millisecond))
	o.holds(t, o.stderr, "13 tiers Ready")
	if took >= 15*time.Second {
		t.Errorf("%s\nit took %s, want less than 15s", o, took)
	}
	nudges := map[string]int{}
	for _, e := range sent(t, c, mark, "kubectl-tiers").Mutating() {
		if e.Verb != "patch" || e.Resource != "kustomizations" {
			t.Errorf("arrived: %s", e)
		}
		nudges[e.Name]++
	}
	total := 0
	for name, n := range nudges {
		total += n
		if n > 2 {
			t.Errorf("%s was nudged %d times", name, n)
		}
	}
	t.Logf("%d nudges of %d tiers", total, len(nudges))
	if len(nudges) < length-1 {
		t.Errorf("nudged: %v; Flux alone takes 30 s for each tier that was not", nudges)
	}
}
