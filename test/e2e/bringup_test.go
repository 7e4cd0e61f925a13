// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/bringup"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// TestBringUp brings the demo's cluster from cold to verified with
// `kubectl standup all` and what it prints to be typed next, alone.
func TestBringUp(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		Components:      append(cluster.DefaultComponents(), cluster.HelmController),
		FluxDeployments: true,
		Kubelet:         true,
	})
	sh := coldCluster(t, c)

	if !t.Run("incident 12: the missing key stops it", func(t *testing.T) { missingKey(t, c, sh) }) {
		return
	}
	if !t.Run("all", func(t *testing.T) { bringUp(t, sh) }) {
		return
	}
	t.Run("what was applied", func(t *testing.T) { applied(t, c) })
	for _, step := range []string{"preflight", "crds", "unwedge", "resume", "verify", "all"} {
		t.Run(step+" a second time changes nothing", func(t *testing.T) {
			mark := c.Mark()
			sh.want(t, 0, "standup", step)
			mutatedNothing(t, c, mark)
		})
	}
	t.Run("incident 4: a stuck release", func(t *testing.T) { releaseStuck(t, c, sh) })
}

// releaseStuck: somebody uninstalls the policy engine, and a DELETE is refused
// in the middle. The tier that waits for it, and those below, never come up by
// themselves. The sequence says so and deletes nothing; what is confirmed
// deletes the release's objects, and Flux installs it cold. The CRDs are outside
// of the release and survive, with what is of their kinds.
func releaseStuck(t *testing.T, c *cluster.Cluster, sh *shell) {
	rule := thing("policy.example.org/v1", "ClusterRule", "", "no-latest-tag")
	until(t, c, rule, func() bool { return true })
	was := rule.GetUID()
	apply(t, c, refuseDeletes)
	untilRefused(t, c, thing("apps/v1", "Deployment", "policy", "policy-engine"))
	if out, err := c.Helm(t.Context(), 4, "uninstall", "policy-engine", "-n", "policy"); err == nil {
		t.Fatalf("the uninstallation was not refused:\n%s", out)
	}
	remove(t, c, thing("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "no-deletes"))
	restarted(t, c) // before that, the operation could still be alive
	release := thing("helm.toolkit.fluxcd.io/v2", "HelmRelease", "policy", "policy-engine")
	if err := c.Nudge(t.Context(), release); err != nil {
		t.Fatal(err)
	}
	until(t, c, release, func() bool {
		ready := conditionText(release, "Ready")
		return strings.HasPrefix(ready, "False") && strings.Contains(ready, "has no deployed releases")
	})

	mark := c.Mark()
	o := sh.want(t, 3, "standup", "all")
	o.holds(t, o.stdout, "UNWEDGE: findings", "HelmRelease/policy/policy-engine", "RESUME: failed", "VERIFY: skipped",
		"kubectl standup unwedge hr/policy/policy-engine")
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.By("kubectl-").Mutating().Where(func(e cluster.Event) bool { return e.Verb != "patch" || e.Resource == "secrets" }); len(got) > 0 {
		t.Errorf("all did more than nudge:\n%s", got)
	}

	o = sh.want(t, 6, "standup", "unwedge", "hr/policy/policy-engine", "--confirm-destructive")
	o.holds(t, o.stderr, "--uninstalling=finish --confirm-destructive")
	sh.want(t, 0, "standup", "unwedge", "hr/policy/policy-engine", "--uninstalling=finish", "--confirm-destructive")
	sh.want(t, 0, "standup", "all")
	until(t, c, rule, func() bool { return true })
	if rule.GetUID() != was {
		t.Errorf("%s was deleted with the release", rule.GetName())
	}
}

// restarted gives helm-controller's Deployment another Pod, which started later
// than now. Times of an API are in seconds.
func restarted(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	for {
		was := helmControllerPods(t, c)
		if len(was) == 1 && was[0].Status.StartTime != nil && was[0].Status.StartTime.After(now) {
			return
		}
		for i := range was {
			if err := c.Client().Delete(t.Context(), &was[i]); err != nil {
				t.Fatal(err)
			}
		}
		until(t, c, thing("apps/v1", "Deployment", cluster.FluxNamespace, "helm-controller"), func() bool {
			is := helmControllerPods(t, c)
			return len(is) == 1 && len(was) == 1 && is[0].UID != was[0].UID && is[0].Status.Phase == corev1.PodRunning
		})
	}
}

func helmControllerPods(t *testing.T, c *cluster.Cluster) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.Client().List(t.Context(), &list, client.InNamespace(cluster.FluxNamespace), client.MatchingLabels{"app": "helm-controller"}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// untilRefused tries until the policy of admission is in force: the API server
// says nowhere when that is.
func untilRefused(t *testing.T, c *cluster.Cluster, obj client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Client().Delete(ctx, obj, client.DryRunAll)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		t.Fatalf("the deletion of %s is not refused: %v", obj.GetName(), err)
	}
}

// refuseDeletes is a policy of admission that lets nobody delete a Deployment.
const refuseDeletes = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-deletes}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [DELETE], resources: [deployments]}]
  validations: [{expression: "false", message: nobody deletes here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-deletes}
spec: {policyName: no-deletes, validationActions: [Deny]}
`

// coldCluster pushes the extended repository, installs the root, and suspends
// what somebody has suspended. The shell is in the cluster's folder of a
// checkout, beside its standup.yaml.
func coldCluster(t *testing.T, c *cluster.Cluster) *shell {
	t.Helper()
	install, err := c.CDIInstall()
	if err != nil {
		t.Fatal(err)
	}
	files, err := bringup.Extended(install)
	if err != nil {
		t.Fatal(err)
	}
	if err := bringup.Install(t.Context(), c, quick(files)); err != nil {
		t.Fatal(err)
	}
	sh := shellFor(t, c)
	sh.throughKubectl = true
	sh.dir = filepath.Join(t.TempDir(), "gitops", "clusters", "demo")
	for _, dir := range []string{sh.dir, filepath.Join(sh.dir, "..", "..", ".git")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := bringup.StandupYAML(c.URL(), uidOf(t, c))
	if err := os.WriteFile(filepath.Join(sh.dir, "standup.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return sh
}

// missingKey: nothing runs before the key is there, and the command that brings
// it is printed.
func missingKey(t *testing.T, c *cluster.Cluster, sh *shell) {
	mark := c.Mark()
	o := sh.want(t, 3, "standup", "all")
	mutatedNothing(t, c, mark)
	o.holds(t, o.stdout, "PREFLIGHT: findings", "Secret/flux-system/sops-age", "CRDS: skipped", "VERIFY: skipped")
	command := regexp.MustCompile(`kubectl .*create secret generic sops-age .*--from-file=\S+=(\S+).*`).FindStringSubmatch(o.stdout)
	if command == nil {
		t.Fatalf("%s\nprints no command that creates the Secret", o)
	}
	if err := os.WriteFile(filepath.Join(sh.dir, filepath.Base(command[1])), []byte(bringup.AgeKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.want(t, 0, strings.Fields(strings.TrimPrefix(command[0], "kubectl "))...)
}

// bringUp types what is printed, until nothing is left to be typed.
func bringUp(t *testing.T, sh *shell) {
	args := []string{"standup", "all"}
	said := ""
	for range 4 {
		o := sh.run(t, args...)
		said += o.stdout
		t.Log(o)
		if strings.Contains(o.stdout+o.stderr, bringup.SecretValue) || strings.Contains(o.stdout+o.stderr, "AGE-SECRET-KEY") {
			t.Fatal("it prints a secret")
		}
		if o.code == 0 {
			// The last may be verify alone: an operator takes its time.
			o.holds(t, said, "CRDS: ok", "UNWEDGE: ok", "RESUME: ok", "VERIFY: ok")
			return
		}
		next := regexp.MustCompile(`(?m)^Next: kubectl (.*)$`).FindAllStringSubmatch(o.stdout, -1)
		if len(next) == 0 {
			t.Fatalf("%s\nsays nothing of what to do next", o)
		}
		args = strings.Fields(next[len(next)-1][1])
	}
	t.Fatal("it never ends well")
}

// applied: what was meant to run runs, and nothing else.
func applied(t *testing.T, c *cluster.Cluster) {
	until(t, c, thing("policy.example.org/v1", "ClusterRule", "", "no-latest-tag"), func() bool { return true })
	for name, suspended := range map[string]bool{
		"observability": false, "dashboards": false, "alerts": false, "playground": true, "backup-store": true, "legacy": true,
	} {
		tier := tierOf("flux-system", name)
		until(t, c, tier, func() bool { return tier.Spec.Suspend == suspended })
	}
}
