// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/progress"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// written are what a command's shell has written.
type written struct{ out, errOut *bytes.Buffer }

// shell is a shell whose kubeconfig names a server. Nothing asks it.
func shell(t *testing.T) (*util.Shell, *util.Target, written) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, current-context: prod,
clusters: [{name: c, cluster: {server: "https://api.example.org:6443"}}], users: [{name: u, user: {}}],
contexts: [{name: prod, context: {cluster: c, user: u}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	s := util.NewShell(&cobra.Command{Use: "tiers"}, streams)
	server, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	identity := guard.Identity{URL: server.URL(), UID: "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11", Context: "prod"}
	return s, &util.Target{Server: server, Identity: identity}, written{out, errOut}
}

// TestGoingOnAfterAnInterruption: the command that is printed waits for the same.
func TestGoingOnAfterAnInterruption(t *testing.T) {
	s, target, _ := shell(t)
	const at = " --context prod --expect-server https://api.example.org:6443"
	for want, o := range map[string]Options{
		"kubectl tiers --wait" + at: {},
		"kubectl tiers ks/apps-vms hr/x -n apps --wait --nudge --releases --timeout 10m0s" + at: {
			Names: []string{"ks/apps-vms", "hr/x"}, Namespace: "apps", Nudge: true, Releases: true, Timeout: 10 * time.Minute,
		},
	} {
		o.shell = s
		if got := o.again(target); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func following(log *bytes.Buffer, shows bool) *util.Follower {
	return util.NewFollower(progress.New(log, progress.Options{}), false, func(*tiers.Node) bool { return shows })
}

func TestWhatIsLeftIsNamed(t *testing.T) {
	nodes := incident().Tiers()
	if got := names(nodes[:2]); got != "apps/vms, flux-system/platform" {
		t.Errorf("got %q", got)
	}
	if got := names(nodes); !strings.HasSuffix(got, ", 2 more") || strings.Count(got, ", ") != 5 {
		t.Errorf("got %q", got)
	}
}

// TestTheLogOfAWait: a line when something changed, and no line twice.
func TestTheLogOfAWait(t *testing.T) {
	var log bytes.Buffer
	f := following(&log, true)
	ks := flux.KustomizationKind
	failing := tier(ks, "ns", "a", "False", "BuildFailed", "boom\nsecond line")
	suspended := tier(ks, "ns", "c", "True", "", "")
	suspended.Suspended = true
	graph := func(all ...flux.Tier) *tiers.Graph {
		return tiers.Build(&flux.Snapshot{
			Tiers:   all,
			Served:  []flux.Resource{{Kind: ks}, {Kind: "GitRepository"}},
			Sources: []flux.Source{{Ref: all[0].Source, Artifact: &flux.Artifact{Revision: rev}}},
		}, tiers.Options{})
	}
	see := func(nudged string, all ...flux.Tier) {
		g := graph(all...)
		var left, sent []*tiers.Node
		for _, n := range g.Tiers() {
			if n.State != tiers.Ready && n.State != tiers.Suspended {
				left = append(left, n)
			}
			if n.Ref.Name == nudged {
				sent = append(sent, n)
			}
		}
		f.Observe(g, left, sent)
		if f.Last != g || len(f.Left) != len(left) {
			t.Error("the graph was not kept")
		}
	}
	below := needs(tier(ks, "ns", "b", "False", "DependencyNotReady", ""), "a")
	see("", failing, below, suspended)
	see("", failing, below, suspended)
	see("b", tier(ks, "ns", "a", "True", "", ""), below, suspended)
	see("", failing, below, suspended)
	see("", tier(ks, "ns", "a", "True", "", ""), tier(ks, "ns", "b", "True", "", ""), suspended)
	want := `ns/a: retrying: boom
- ns/c: suspended (Ready when it was); nothing that is waited for needs it
ns/b: blocked by a
✔ ns/a: Ready at main@sha1:90379a0b
ns/b: nudged: its dependencies are met
ns/a is no longer Ready; still waiting for it
ns/a: retrying: boom
ns/b: blocked by a
✔ ns/a: Ready at main@sha1:90379a0b
✔ ns/b: Ready at main@sha1:90379a0b
`
	if log.String() != want {
		t.Errorf("got\n%s\nwant\n%s", log.String(), want)
	}
}

// TestASuspendedTierThatIsNeeded: it is what the wait ends with, so it is not
// said that nothing needs it.
func TestASuspendedTierThatIsNeeded(t *testing.T) {
	ks := flux.KustomizationKind
	suspended := tier(ks, "ns", "a", "False", "", "")
	suspended.Suspended = true
	g := tiers.Build(&flux.Snapshot{
		Tiers:   []flux.Tier{suspended, needs(tier(ks, "ns", "b", "False", "DependencyNotReady", ""), "a")},
		Served:  []flux.Resource{{Kind: ks}, {Kind: "GitRepository"}},
		Sources: []flux.Source{{Ref: suspended.Source, Artifact: &flux.Artifact{Revision: rev}}},
	}, tiers.Options{})
	for name, tt := range map[string]struct {
		left        []*tiers.Node
		shows, says bool
	}{
		"by a tier":             {left: g.Tiers()[1:], shows: true},
		"nothing needs it":      {shows: true, says: true},
		"others were asked for": {},
	} {
		var log bytes.Buffer
		f := following(&log, tt.shows)
		f.Observe(g, tt.left, nil)
		if got := strings.Contains(log.String(), "nothing that is waited for needs it"); got != tt.says {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}

// TestTiersThatAreNotWaitedFor: of them the log says nothing.
func TestTiersThatAreNotWaitedFor(t *testing.T) {
	ks := flux.KustomizationKind
	source := tier(ks, "ns", "a", "True", "", "").Source
	var log bytes.Buffer
	f := following(&log, false)
	for _, ready := range []metav1.ConditionStatus{"False", "True"} {
		f.Observe(tiers.Build(&flux.Snapshot{
			Tiers:   []flux.Tier{tier(ks, "ns", "a", ready, "BuildFailed", "boom")},
			Served:  []flux.Resource{{Kind: ks}, {Kind: "GitRepository"}},
			Sources: []flux.Source{{Ref: source, Artifact: &flux.Artifact{Revision: rev}}},
		}, tiers.Options{}), nil, nil)
	}
	if log.Len() > 0 {
		t.Errorf("got %s", log.String())
	}
}

// TestACycleIsReportedWithItsTiers, and not where others are shown.
func TestACycleIsReportedWithItsTiers(t *testing.T) {
	ks, blocked := flux.KustomizationKind, "DependencyNotReady"
	g := tiers.Build(&flux.Snapshot{
		Tiers: []flux.Tier{
			needs(tier(ks, "ns", "a", "False", blocked, ""), "b"), needs(tier(ks, "ns", "b", "False", blocked, ""), "a"),
			tier(ks, "other", "c", "False", "BuildFailed", "boom"),
		},
		Served: []flux.Resource{{Kind: ks}},
	}, tiers.Options{})
	for namespace, want := range map[string]bool{"": true, "ns": true, "other": false} {
		s, target, wrote := shell(t)
		o := &Options{Namespace: namespace, shell: s}
		rows, err := o.pick(g)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.print(target, g, rows); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(wrote.errOut.String(), "Warning: dependency cycle: ns/a → ns/b → ns/a"); got != want {
			t.Errorf("-n %q: %s", namespace, wrote.errOut)
		}
	}
}

func TestFormats(t *testing.T) {
	for format, wants := range map[string][]string{
		"": {
			"LEVEL", "platform-config   False   main@sha1:90379a0b", "2       flux-system   vms ", "blocked by vms; root cause platform-config",
		},
		"wide": {"SOURCE", "GATE", "BELOW", "GitRepository/flux-system/flux-system@main@sha1:90379a0b", "applied (hollow)"},
		"name": {"kustomization/platform-config\n"},
		"yaml": {"apiVersion: kubestandup.dev/v1alpha1\n", "kind: TierList\n", "uid: 3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11"},
		"json": {`"kind": "TierList"`, `"rootCause": {`},
	} {
		s, target, wrote := shell(t)
		o := &Options{Output: format, shell: s}
		g := incident()
		rows, err := o.pick(g)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.print(target, g, rows); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(wrote.out.String(), want) {
				t.Errorf("-o %q does not hold %q:\n%s", format, want, wrote.out)
			}
		}
		if format == "json" {
			var list tiers.List
			if err := json.Unmarshal(wrote.out.Bytes(), &list); err != nil || len(list.Items) != len(rows) || list.Server.URL != target.Identity.URL {
				t.Errorf("%+v, %v", list, err)
			}
		}
		if wrote.errOut.Len() > 0 {
			t.Errorf("-o %q: on stderr: %s", format, wrote.errOut)
		}
	}
}

func TestNothingToShow(t *testing.T) {
	s, target, wrote := shell(t)
	o := &Options{Namespace: "empty", shell: s}
	if err := o.print(target, incident(), nil); err != nil || wrote.out.Len() > 0 || wrote.errOut.String() != "No tiers found in namespace empty.\n" {
		t.Errorf("%v, %q, %q", err, wrote.out, wrote.errOut)
	}
}

func TestSlipsOfTheFingers(t *testing.T) {
	for _, tt := range []struct {
		a, b     string
		distance int
		alike    bool
	}{
		{"platform", "platform", 0, true},
		{"platform", "plaftorm", 2, true},
		{"platform", "plattform", 1, true},
		{"platform-config", "config", 9, true}, // a part of it
		{"platform", "apps", 7, false},
		{"apps", "vms", 3, false},
		{"abcd", "abce", 1, false}, // too short to tell
		{"", "abc", 3, true},
	} {
		if got := tiers.Distance(tt.a, tt.b); got != tt.distance || got != tiers.Distance(tt.b, tt.a) {
			t.Errorf("%q and %q: %d, and %d the other way; want %d", tt.a, tt.b, got, tiers.Distance(tt.b, tt.a), tt.distance)
		}
		if got := alike(tt.a, tt.b); got != tt.alike {
			t.Errorf("%q and %q alike: %v", tt.a, tt.b, got)
		}
	}
}
