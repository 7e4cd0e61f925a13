// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// nudgedChain: twelve tiers, each behind the one before, from cold. By itself
// the controller looks at a dependency again after an hour here, so that only
// what is nudged becomes Ready. (How long it takes is measured in bench/.)
func nudgedChain(t *testing.T, c *cluster.Cluster) {
	const length = 12
	s := &scene{ns: "chain"}
	files := cluster.Files{}
	var tiers []string
	for i := range length {
		name := fmt.Sprintf("tier-%02d", i)
		files[name+"/cm.yaml"] = configMap(s.ns, name)
		spec := []string{"wait: true"}
		if i > 0 {
			spec = append(spec, needs(fmt.Sprintf("tier-%02d", i-1)))
		}
		tiers = append(tiers, s.manifest(name, spec...))
	}
	files["root/tiers.yaml"] = strings.Join(tiers, "---\n")
	s = newScene(t, c, s.ns, files)
	mark := c.Mark()
	s.add(t, s.manifest("root"))
	o := s.sh.want(t, 0, append(s.waitArgs("--nudge"), expect(t, c)...)...)
	o.holds(t, o.stderr, "13 tiers Ready")
	nudges := map[string]int{}
	for _, e := range sent(t, c, mark, "kubectl-tiers").Mutating().Where(func(e cluster.Event) bool { return e.Namespace == s.ns }) {
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
		t.Errorf("nudged: %v; Flux alone would take an hour for each tier that was not", nudges)
	}
}
