// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// theLint names the repository that a process of the test is to lint.
const theLint = "KUBESTANDUP_TEST_LINT"

// lintAlone lints as the program does, in a process of its own. A test that
// calls it is run again in that.
func lintAlone(t *testing.T, files map[string]string) (out, errOut string, code int) {
	t.Helper()
	if dir := os.Getenv(theLint); dir != "" {
		os.Exit(util.Execute(t.Context(), NewCmd, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, "lint", dir))
	}
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), theLint+"="+dir)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}

const rootOfLint = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/fleet.git"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/test, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`

// TestLintIsQuiet about what kustomize thinks of fields that have worked for
// years.
func TestLintIsQuiet(t *testing.T) {
	out, errOut, code := lintAlone(t, map[string]string{
		"clusters/test/flux-system/gotk-sync.yaml":     rootOfLint,
		"clusters/test/flux-system/kustomization.yaml": "resources: [gotk-sync.yaml]\npatchesStrategicMerge: [patch.yaml]\ncommonLabels: {a: b}\n",
		"clusters/test/flux-system/patch.yaml":         "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {timeout: 2m}\n",
	})
	if code != 0 || errOut != "" || !strings.Contains(out, "1 tier") {
		t.Errorf("exit %d\n%s\n%s", code, out, errOut)
	}
}

// TestLintEndsAtABomb in one sentence, and before it takes all memory.
func TestLintEndsAtABomb(t *testing.T) {
	_, errOut, code := lintAlone(t, map[string]string{
		"clusters/test/flux-system/gotk-sync.yaml": rootOfLint,
		"clusters/test/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: bomb, namespace: flux-system}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/bomb, sourceRef: {kind: GitRepository, name: flux-system}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: fine, namespace: flux-system}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/fine, sourceRef: {kind: GitRepository, name: flux-system}}}
`,
		"charts/fine/Chart.yaml": "apiVersion: v2\nname: fine\nversion: 1.0.0\n",
		"charts/bomb/Chart.yaml": "apiVersion: v2\nname: bomb\nversion: 1.0.0\n",
		"charts/bomb/templates/bomb.yaml": fmt.Sprintf("{{ $l := until 100000 }}{{ range $l }}{{ range $l }}%s{{ end }}{{ end }}",
			strings.Repeat("x", 10000)),
	})
	if code != util.ExitError || strings.Count(errOut, "\n") != 1 {
		t.Errorf("exit %d", code)
	}
	// On a busy machine the minute is over first.
	if !strings.Contains(errOut, "takes more than 1024 MiB of memory to be rendered") && !strings.Contains(errOut, "is not rendered after 1m") {
		t.Errorf("it does not say why: %s", errOut)
	}
	for _, says := range []string{
		"error: HelmRelease/flux-system/bomb (clusters/test/release.yaml:1) keeps the rest from being looked at: chart bomb 1.0.0",
		", in bomb/templates/bomb.yaml",
	} {
		if !strings.Contains(errOut, says) {
			t.Errorf("it does not say %q: %s", says, errOut)
		}
	}
}

// TestQuietly changes nothing in a process that is somebody else's.
func TestQuietly(t *testing.T) {
	stderr := os.Stderr
	var seen *os.File
	run := func(context.Context, lint.Options) (*lint.Report, error) {
		seen = os.Stderr
		return nil, nil
	}
	if _, err := quietly(&bytes.Buffer{}, run)(t.Context(), lint.Options{}); err != nil || seen != stderr {
		t.Errorf("stderr was changed: %v", err)
	}
}
