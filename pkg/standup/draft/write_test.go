// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

var update = flag.Bool("update", false, "write the golden files")

// secret is the value of every Secret in these tests.
const secret = "swordfish"

func ks(name string) flux.Ref {
	return flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

func hr(name string) flux.Ref {
	return flux.Ref{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: "apps", Name: name}
}

var (
	vars    = Set{"ConfigMap", "flux-system", "cluster-vars"}
	secrets = Set{"Secret", "flux-system", "cluster-secrets"}
)

func known(values map[string]string) Names { return Names{Names: sortedKeys(values), Values: values} }

// prod is the cluster of the golden file.
func prod() *Live {
	root := ks("flux-system")
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Live{
		Identity:    guard.Identity{URL: "https://api.prod.example.org:6443", UID: "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11", CAFingerprint: "sha256:abc"},
		Controllers: "flux-system",
		Tiers: []Tier{
			{Ref: root, Owner: root, Path: "clusters/prod"},
			{Ref: ks("apps"), Owner: root, Path: "apps", From: []Set{vars, secrets}, Inline: map[string]string{"TEAM": "blue"}},
			{Ref: ks("backup"), Owner: root, Path: "backup", From: []Set{vars, secrets}, Suspended: true, SuspendedBy: "flux", SuspendedSince: since, Hold: "no disk yet"},
			{Ref: hr("cert-manager"), SkipsCRDs: true},
			{Ref: hr("kyverno"), Values: map[string]any{"crds": map[string]any{"install": false}, "sub": map[string]any{"installCRDs": false}}, MoreValues: true},
		},
		Known: map[Set]Names{
			vars: known(map[string]string{
				"CLUSTER_NAME": "prod", "REPLICAS": "3", "BACKUP_ENDPOINT": "TBD-backup", "ZONE": "eu", "not-a-name": "prod",
			}),
			secrets: {Names: []string{"API_TOKEN"}},
		},
		Nodes: []Node{
			{Name: "a", Ready: true, Kernel: "5.15.0-105-generic", Kubelet: "v1.36.2", Memory: 34359738368},
			{Name: "b", Kernel: "6.8.1", Kubelet: "v1.37.0-rc.1+k3s1", Memory: 33436884992},
		},
		Hosts:  []string{"*.apps.prod.example.org", "web.prod.example.org", "web.apps.svc"},
		Unread: []Unread{{"certificates", "certificates.cert-manager.io is forbidden:\n User \"x\" cannot list\x1b[2J"}},
	}
}

func configMapText(name string, values ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n"
	for i := 0; i < len(values); i += 2 {
		text += "  " + values[i] + ": " + fmt.Sprintf("%q", values[i+1]) + "\n"
	}
	return text
}

func secretText(keys ...string) string {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: cluster-secrets, namespace: flux-system}\nstringData:\n"
	for _, key := range keys {
		text += "  " + key + ": " + secret + "\n"
	}
	return text
}

func scan(t testing.TB, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Scan(t.Context(), fsys, "gitops")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func prodTree(t testing.TB) *Tree {
	return scan(t, map[string]string{
		"clusters/prod/vars.yaml":    configMapText("cluster-vars", "CLUSTER_NAME", "prod", "REPLICAS", "3", "BACKUP_ENDPOINT", "TBD-backup", "ZONE", "eu"),
		"clusters/dev/vars.yaml":     configMapText("cluster-vars", "CLUSTER_NAME", "dev", "REPLICAS", "1", "BACKUP_ENDPOINT", "backup.dev.example.org", "ZONE", "eu"),
		"clusters/staging/vars.yaml": configMapText("cluster-vars", "CLUSTER_NAME", "staging", "REPLICAS", "1", "ZONE", "eu"),
		"clusters/prod/secret.yaml":  secretText("API_TOKEN"),
		"clusters/dev/secret.yaml":   secretText("API_TOKEN"),
		"backup/velero.yaml":         "endpoint: ${BACKUP_ENDPOINT:=x}\n",
		"infra/operator.yaml":        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: operator, namespace: infra}\nspec: {values: {createCRD: false}}\n",
	})
}

// decoded is what our own decoder makes of a draft.
func decoded(t testing.TB, text string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), config.FileName)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Read(file, config.FileName)
	if err != nil {
		t.Fatalf("%v\n%s", err, numbered(text))
	}
	return c
}

func numbered(text string) string {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = fmt.Sprintf("%3d %s", i+1, all[i])
	}
	return strings.Join(all, "\n")
}

var code = regexp.MustCompile(`(?m)^(\s*)#(\S)`)

// switchedOn is the draft with everything in it that is commented out.
func switchedOn(text string) string { return code.ReplaceAllString(text, "$1$2") }

// check is what holds of every draft.
func check(t testing.TB, text string) (asWritten, all *config.Config) {
	t.Helper()
	if strings.Contains(text, secret) {
		t.Errorf("it tells a secret:\n%s", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("white space ends %q", line)
		}
	}
	return decoded(t, text), decoded(t, switchedOn(text))
}

func TestWrite(t *testing.T) {
	t.Parallel()
	got := Write(prod(), prodTree(t))
	golden := filepath.Join("testdata", "prod.yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s", got)
	}
	c, all := check(t, got)
	if len(c.Variables) != 4 || len(all.Variables) != 4 || len(c.CRDs.FromCharts) != 2 || len(all.CRDs.FromCharts) != 3 {
		t.Errorf("got %+v\nand %+v", c, all)
	}
	if len(c.Resume.Skip) != 0 || !slices.Equal(all.Resume.Skip, []string{"ks/flux-system/backup"}) || all.Cluster.Domain != "prod.example.org" {
		t.Errorf("got %+v", all)
	}
}

// Beside the entry point there is no kustomization.yaml, as `flux bootstrap`
// leaves it: Flux then builds every *.yaml, and the draft must not be in its way.
func TestFluxBuildsTheFolderOfADraft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		config.FileName: Write(prod(), prodTree(t)),
		"apps.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: x}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	generator := kustomize.NewGenerator(dir, unstructured.Unstructured{Object: map[string]any{}})
	if _, err := generator.WriteFile(dir); err != nil {
		t.Fatal(err)
	}
	built, err := kustomize.SecureBuild(dir, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if ids := built.AllIds(); len(ids) != 1 || ids[0].Name != "apps" {
		t.Errorf("it builds %v", ids)
	}
}

// Of next to nothing a draft can be made too, and of what is odd.
func TestWriteOfLittle(t *testing.T) {
	t.Parallel()
	identity := guard.Identity{URL: "http://[::1]:8080", UID: "0123", Unprovable: "plain http never proves which server answers"}
	for name, live := range map[string]*Live{
		"nothing":        {Identity: identity},
		"no flux":        {Identity: identity, NoFlux: true},
		"hosts at odds":  {Identity: identity, Hosts: []string{"a.example.org", "b.example.com"}},
		"suspended root": {Identity: identity, Tiers: []Tier{{Ref: ks("a"), Path: ".", Suspended: true}}},
		"missing": {
			Identity: identity, Tiers: []Tier{{Ref: ks("a"), From: []Set{vars, secrets}}},
			Known: map[Set]Names{vars: {Missing: true}, secrets: {Hidden: true}},
		},
	} {
		for _, tree := range []*Tree{nil, {}, {Stopped: true, Dir: "x\ny"}, prodTree(t)} {
			text := Write(live, tree)
			c, _ := check(t, text)
			if c.Cluster.Server != identity.URL || c.Cluster.UID != identity.UID {
				t.Errorf("%s: got %+v", name, c.Cluster)
			}
			if !strings.Contains(text, "# This connection can prove nothing: plain http never") {
				t.Errorf("%s: it does not warn:\n%s", name, text)
			}
		}
	}
}

// A variable that not every tier knows is not required, and what is forbidden
// of it is forbidden all the same.
func TestWriteOfAVariableThatNotEveryTierKnows(t *testing.T) {
	t.Parallel()
	live := prod()
	live.Controllers = "flux"
	live.Tiers = append(live.Tiers, Tier{Ref: ks("other"), Inline: map[string]string{"X": "1"}})
	text := Write(live, prodTree(t))
	c, all := check(t, text)
	i := slices.IndexFunc(c.Variables, func(v config.Variable) bool { return v.Name == "CLUSTER_NAME" })
	if i < 0 || c.Variables[i].Required || !slices.Equal(c.Variables[i].Forbid, []string{"dev", "staging"}) {
		t.Errorf("got %+v", c.Variables)
	}
	if slices.ContainsFunc(c.Variables, func(v config.Variable) bool { return v.Name == "API_TOKEN" || v.Required }) {
		t.Errorf("got %+v", c.Variables)
	}
	if len(c.Variables) != 2 || len(all.Variables) != 4 || slices.ContainsFunc(all.Variables, func(v config.Variable) bool { return !v.Required }) {
		t.Errorf("got %+v", all.Variables)
	}
	for _, want := range []string{"do not or may not: ks/flux-system/other.", "It is in the namespace flux-system."} {
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(text, "#", "")), " "), want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// odd is a text that a YAML parser, a terminal or a glob could trip over.
func odd(r *rand.Rand) string {
	parts := []string{
		"prod", "dev", secretless, "a: b", "- x", "# y", "'", `"`, `\`, "\n", "\r\n", "\t", "\x00", "\x1b[2J", "\x7f", "\u0085", "\u2028", "\ufeff", "\xff",
		"*", "?", "**", "[a]", "{{ x }}", "${A}", "<tbd>", "TBD-", "true", "null", "~", "1e3", "0x1f", "2026-01-02", "!!binary x", "&a", "*a", "%", "@", "`", "|", ">", "ü", "日本", "🙂", strings.Repeat("long ", 60),
	}
	text := ""
	for range r.IntN(4) {
		text += parts[r.IntN(len(parts))]
	}
	return text
}

const secretless = "plain"

// Whatever clusters and repositories hold, the draft is a standup.yaml, also
// when everything in it is switched on.
func TestEveryDraftDecodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"A", "CLUSTER_NAME", "_x1", "bad-name", "1A", "", "true", "null", "ü"}
	values := func() map[string]string {
		m := map[string]string{}
		for range r.IntN(6) {
			m[names[r.IntN(len(names))]] = odd(r)
		}
		return m
	}
	for range 150 {
		live := prod()
		live.Known[vars] = known(values())
		live.Known[secrets] = Names{Names: names[:r.IntN(len(names))], Hidden: r.IntN(2) == 0}
		live.Tiers[1].Inline = values()
		live.Tiers[2].SuspendedBy, live.Tiers[2].Hold = odd(r), odd(r)
		live.Tiers[0].Path = odd(r)
		live.Tiers[4].Values = map[string]any{odd(r): map[string]any{"installCRDs": false, odd(r): false}, "crds": r.IntN(2) == 0}
		live.Hosts = []string{odd(r), odd(r), "a.prod.example.org"}[r.IntN(3):]
		live.Unread = []Unread{{odd(r), odd(r)}}
		live.Nodes[0].Kernel, live.Nodes[0].Kubelet = odd(r), odd(r)
		tree := prodTree(t)
		for i := range tree.sets {
			if tree.sets[i].values != nil {
				tree.sets[i].values = values()
				tree.sets[i].names = sortedKeys(tree.sets[i].values)
			}
			tree.sets[i].file = odd(r) + tree.sets[i].file
		}
		tree.releases[0].Ref.Name = odd(r)
		check(t, Write(live, tree))
		if t.Failed() {
			return
		}
	}
}

func FuzzDraft(f *testing.F) {
	f.Add(configMapText("cluster-vars", "CLUSTER_NAME", "dev", "B", "TBD-x"))
	f.Add(secretText("API_TOKEN"))
	f.Add("configMapGenerator:\n- name: cluster-vars\n  literals: [CLUSTER_NAME=dev]\n  envs: [../../x.env]\n")
	f.Add("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: b}\nspec: {values: {crds: false}}\n")
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &a cluster-vars}\ndata: {A: &b x, B: *b, C: [1], D: ENC[a]}\n---\n{{ x }}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, secret) {
			return
		}
		live := prod()
		tree := scan(t, map[string]string{"clusters/dev/a.yaml": text, "clusters/prod/a.yaml": text, "clusters/prod/vars.yaml": configMapText("cluster-vars", "CLUSTER_NAME", "prod")})
		check(t, Write(live, tree))
	})
}

func TestScalar(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"flux-system": "flux-system", "ks/a/b": "ks/a/b", "a.b": "a.b", "_x": "_x",
		"true": `"true"`, "null": `"null"`, "No": `"No"`, "on": `"on"`, "": `""`, "1.30": `"1.30"`, "16Gi": `"16Gi"`, "a b": `"a b"`,
		"a:": `"a:"`, "a\n": `"a\n"`, "\xff": `"` + "\uFFFD" + `"`, "https://h:1": `"https://h:1"`,
	} {
		if got := scalar(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestProseIsBroken(t *testing.T) {
	t.Parallel()
	p := &page{}
	p.say(2, strings.Repeat("word ", 30)+strings.Repeat("x", 200)+" end\x1b\u2028")
	for _, line := range strings.Split(strings.TrimSpace(p.String()), "\n") {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "# ") || len(line) > width && !strings.Contains(line, "xxx") {
			t.Errorf("got %q", line)
		}
	}
	if !strings.HasSuffix(p.String(), " end\n") {
		t.Errorf("got %q", p.String())
	}
}
