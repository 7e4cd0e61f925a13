// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// pruning is a suspended Kustomization that deletes what git no longer has.
func pruning(name string) flux.Tier {
	t := sleeping(name)
	t.Prune = true
	return t
}

// upgraded is a suspended HelmRelease that is installed as this name.
func upgraded(name, installed string) flux.Tier {
	t := sleeping(name)
	t.Ref.APIVersion, t.Ref.Kind = flux.HelmGroup+"/v2", flux.HelmReleaseKind
	t.Helm = &flux.Helm{Storage: "ns", History: []flux.HelmSnapshot{{Name: installed, Namespace: "ns", Version: 1, Status: "deployed"}}}
	return t
}

// deciding is a resumer of one tier on a cluster that answers with these lists.
// Its inventory has these entries, and followed is its build, nil where it was
// not reached.
func deciding(t *testing.T, tier flux.Tier, followed *build.Followed, w *wire, entries ...entry) *resumer {
	t.Helper()
	cfg, served := w.serve(t)
	r := resumerOf(&config.Config{}, tier)
	r.env.Config, r.look.crdsLook = cfg, &crds.Look{Served: served}
	r.look.built = &builds{unfetched: map[flux.Ref]error{}}
	if followed != nil {
		r.look.built.all = []build.Followed{*followed}
	}
	r.look.built.index()
	var list []any
	for _, e := range entries {
		list = append(list, map[string]any{"id": e.id, "v": e.version})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"inventory": map[string]any{"entries": list}}}}
	u.SetNamespace(tier.Ref.Namespace)
	u.SetName(tier.Ref.Name)
	r.look.raw = map[string][]*unstructured.Unstructured{tier.Ref.Kind: {u}}
	return r
}

func ownedBy(tier, ns, name string) string {
	return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":%q,"name":%q,"labels":{"%[3]s/name":%[4]q,"%[3]s/namespace":"ns"}}}`,
		ns, name, flux.KustomizeGroup, tier)
}

// TestWhatAResumeWouldDelete: such a tier stays, and whatever cannot be told is
// not taken for nothing.
func TestWhatAResumeWouldDelete(t *testing.T) {
	const at = "/api/v1/namespaces/apps/configmaps/"
	old, kept := entry{"apps_old__ConfigMap", "v1"}, entry{"apps_kept__ConfigMap", "v1"}
	outside := flux.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "ns", Name: "main"}
	followed := func(f build.Followed) *build.Followed {
		f.Tier = tierRef("a")
		return &f
	}
	whole := followed(build.Followed{Result: &build.Result{Objects: []build.Object{manifestOf("ConfigMap", "apps", "kept")}}})
	there := map[string]string{at + "old": ownedBy("a", "apps", "old"), at + "kept": ownedBy("a", "apps", "kept")}
	remote, keeping := pruning("a"), sleeping("a")
	remote.Remote = true
	for _, tc := range []struct {
		name      string
		tier      flux.Tier
		build     *build.Followed
		inventory []entry
		lists     map[string]string
		rule      string
		says      string
	}{
		{"another release name", upgraded("a", "old-name"), nil, nil, nil, "resume-uninstalls", "helm-controller would UNINSTALL its release: its release name is old-name, and the spec now says a"},
		{"the same release name", upgraded("a", "a"), nil, nil, nil, "", ""},
		{"git has dropped one", pruning("a"), whole, []entry{old, kept}, there, "resume-prunes", "its prune would DELETE what git no longer has in it: ConfigMap/apps/old"},
		{"git has them all", pruning("a"), whole, []entry{kept}, there, "", ""},
		{"it does not prune", keeping, whole, []entry{old}, there, "", ""},
		{"it has applied nothing", pruning("a"), nil, nil, nil, "", ""},
		{"it does not build", pruning("a"), followed(build.Followed{Err: errors.New("apps/x.yaml: no such file")}), []entry{kept}, there, "resume-may-prune", "what its prune would delete cannot be told: apps/x.yaml: no such file"},
		{"its source has nothing", pruning("a"), followed(build.Followed{Outside: &outside}), []entry{kept}, there, "resume-may-prune", "cannot be told: GitRepository/ns/main does not exist or has no artifact"},
		{"it was not reached", pruning("a"), nil, []entry{kept}, there, "resume-may-prune", "cannot be told: Kustomization/ns/a was not built"},
		{"an entry that names nothing", pruning("a"), whole, []entry{{"nonsense", "v1"}}, there, "resume-may-prune", `cannot be told: "nonsense" of its inventory names no object`},
		// The server forbids whatever is not in the lists.
		{"it may not be looked at", pruning("a"), whole, []entry{old}, nil, "resume-prunes", "ConfigMap/apps/old"},
		{"it is on another cluster", remote, whole, []entry{old}, nil, "resume-prunes", "ConfigMap/apps/old"},
		{"it has gone already", pruning("a"), whole, []entry{old}, map[string]string{at + "old": "gone"}, "", ""},
		{"it is another tier's by now", pruning("a"), whole, []entry{old}, map[string]string{at + "old": ownedBy("b", "apps", "old")}, "", ""},
		{"its kind is not served", pruning("a"), whole, []entry{{"apps_x_gone.example.org_Thing", "v1"}}, nil, "", ""},
		{"another version is served", pruning("a"), whole, []entry{{"apps_old__ConfigMap", "v1beta1"}}, map[string]string{at + "old": "gone"}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := deciding(t, tc.tier, tc.build, &wire{lists: tc.lists}, tc.inventory...)
			if err := r.plan(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := r.stays[tc.tier.Ref]
			if s.rule != tc.rule || !strings.Contains(s.why, tc.says) || r.chosen[tc.tier.Ref] != (tc.rule == "") {
				t.Errorf("chosen %t, got %+v", r.chosen[tc.tier.Ref], s)
			}
			if strings.Contains(s.why, "/kept") {
				t.Errorf("it is in git: %s", s.why)
			}
			refused, ok := errors.AsType[*ResumeRefusedError](r.refused())
			if ok != (tc.rule != "") {
				t.Fatalf("refused: %v", r.refused())
			}
			// Each once more when its turn comes.
			why, err := r.judge(t.Context(), r.last.Node(tc.tier.Ref))
			if err != nil || why != s.why {
				t.Errorf("judged again: %q, %v", why, err)
			}
			if !ok {
				return
			}
			anyway := fmt.Sprintf("flux resume %s a -n ns", strings.ToLower(tc.tier.Ref.Kind))
			if !slices.Equal(refused.Tiers, []flux.Ref{tc.tier.Ref}) || s.severity != finding.Error || !strings.Contains(s.fix, anyway) || r.excluded()[tc.tier.Ref] != s.why {
				t.Errorf("refused %v: %+v", refused.Tiers, s)
			}
		})
	}
}

// TestAnAnswerThatIsNone ends the run: it is neither "there" nor "gone".
func TestAnAnswerThatIsNone(t *testing.T) {
	f := &build.Followed{Tier: tierRef("a"), Result: &build.Result{}}
	w := &wire{lists: map[string]string{"/api/v1/namespaces/apps/configmaps/old": "<html>"}}
	r := deciding(t, pruning("a"), f, w, entry{"apps_old__ConfigMap", "v1"})
	if err := r.plan(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "get ConfigMap/apps/old: ") || len(r.chosen) > 0 {
		t.Errorf("chosen %v, %v", r.chosen, err)
	}
}
