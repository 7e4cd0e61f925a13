// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// resumeDisturbed is one bring-up with everything that can come in between. Of
// its chain, slow and later cannot be built before their folders are pushed.
func resumeDisturbed(t *testing.T, c *cluster.Cluster) {
	d := &disturbed{resumeScene: &resumeScene{scene: &scene{ns: "disturbed"}}}
	d.files = folders("disturbed", "first", "last")
	d.files["tree/tiers.yaml"] = strings.Join([]string{
		d.manifest("first"), d.manifest("slow", needs("first")), d.manifest("later", needs("slow")), d.manifest("last", needs("later")),
	}, "---\n")
	d.resumeScene = newResumeScene(t, c, "disturbed", d.files)
	defer d.clear(t)
	d.add(t, d.resumeScene.manifest("tree"))
	d.suspend(t, "first", "slow", "later", "last")

	d.forbidden(t)
	d.interrupted(t)
	d.interruptedTwice(t)
	d.expired(t)
	d.away(t)
}

type disturbed struct {
	*resumeScene
	files cluster.Files
}

// forbidden: who may look and not patch is told so in a sentence, and nothing
// has changed.
func (d *disturbed) forbidden(t *testing.T) {
	d.add(t, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: onlooker}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: onlooker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: onlooker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: onlooker}]
`)
	kubeconfig, err := d.c.KubeconfigFor("onlooker")
	if err != nil {
		t.Fatal(err)
	}
	o := newShell(t, kubeconfig).want(t, 1, d.args()...)
	o.holds(t, o.stderr, `error: resume Kustomization/disturbed/first: kustomizations.kustomize.toolkit.fluxcd.io "first" is forbidden: `+
		`User "onlooker" cannot patch resource "kustomizations" in API group "kustomize.toolkit.fluxcd.io" in the namespace "disturbed"`)
	o.holds(t, o.stdout, "left: Kustomization/disturbed/first (suspended", "Next: kubectl standup resume --context ")
	if n := strings.Count(o.stderr, "error: "); n != 1 {
		t.Errorf("%s\nwant one sentence", o)
	}
	for _, name := range []string{"first", "slow", "later", "last"} {
		tier := tierOf(d.ns, name)
		if err := d.c.Until(t.Context(), tier, func() bool { return true }); err != nil || !tier.Spec.Suspend {
			t.Errorf("%s was resumed (%v)", name, err)
		}
	}
}

// interrupted: what is left is printed, with the command that goes on.
func (d *disturbed) interrupted(t *testing.T) {
	r := d.sh.start(t, d.args()...)
	r.says(t, "Kustomization/disturbed/slow resumed")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	o := r.wait(t)
	if o.code != 130 {
		t.Errorf("%s\nwant 130", o)
	}
	o.holds(t, o.stderr, "Interrupted after ", "left: Kustomization/disturbed/slow, Kustomization/disturbed/later, Kustomization/disturbed/last; to go on: kubectl standup resume --context test --expect-server "+d.c.URL())
	o.holds(t, o.stdout, "Kustomization/disturbed/first, Kustomization/disturbed/slow; 2 of 5 tiers Ready")
}

// interruptedTwice: the second signal ends it at once. The report that it wants
// to print goes into a pipe that is full, so that it could not end by itself.
func (d *disturbed) interruptedTwice(t *testing.T) {
	reader, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer full.Close()
	if err := full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := full.Write(make([]byte, 1<<22)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe took 4 MiB: %v", err)
	}
	r := d.sh.startTo(t, full, d.args()...)
	r.says(t, "Kustomization/disturbed/later is to be resumed")
	for _, said := range []string{"Interrupted after ", ""} {
		if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if said != "" {
			r.says(t, said)
		}
	}
	r.wait(t)
	if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended by %s, want it killed by the second signal", r.cmd.ProcessState)
	}
}

// expired: a token that is no longer accepted in the middle.
func (d *disturbed) expired(t *testing.T) {
	d.add(t, `apiVersion: v1
kind: ServiceAccount
metadata: {name: operator, namespace: disturbed}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: operator, namespace: disturbed}]
`)
	clients, err := kubernetes.NewForConfig(d.c.Config())
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(d.ns).CreateToken(t.Context(), "operator", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, kubeconfigOf(t, d.c, func(config *clientcmdapi.Config) {
		for _, user := range config.AuthInfos {
			*user = clientcmdapi.AuthInfo{Token: token.Status.Token}
		}
	}))
	r := sh.start(t, d.args()...)
	r.says(t, "Kustomization/disturbed/later is to be resumed")
	if err := clients.CoreV1().ServiceAccounts(d.ns).Delete(t.Context(), "operator", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.untilRefused(t, token.Status.Token)
	d.files["slow/cm.yaml"] = configMap(d.ns, "slow")
	d.push(t, d.files)
	o := r.wait(t)
	if o.code != 1 {
		t.Errorf("%s\nwant 1", o)
	}
	o.holds(t, o.stderr, "error: ", "server does not accept these credentials (Unauthorized): log in again, or choose another user with --context or --user")
	o.holds(t, o.stdout, "left: Kustomization/disturbed/later", "Next: kubectl standup resume --context ")
}

// untilRefused waits until the API server no longer accepts a token: it
// remembers for some seconds that it did.
func (d *disturbed) untilRefused(t *testing.T, token string) {
	t.Helper()
	config := rest.AnonymousClientConfig(d.c.Config())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ticks := time.NewTicker(250 * time.Millisecond)
	defer ticks.Stop()
	for range ticks.C {
		_, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		switch {
		case apierrors.IsUnauthorized(err):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

// away: the API server is killed for 20 s in the middle, and a commit brings a
// tier that was not there when the run began (incident 6). It is waited for.
func (d *disturbed) away(t *testing.T) {
	mark := d.c.Mark()
	r := d.sh.start(t, d.args()...)
	r.says(t, "Kustomization/disturbed/later resumed")
	d.c.Kill(cluster.APIServer)
	gone := time.NewTimer(20 * time.Second) // what is tested: longer than any one request
	defer gone.Stop()
	r.says(t, "trying again")
	<-gone.C
	if err := d.c.Start(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	d.files["later/cm.yaml"] = configMap(d.ns, "later")
	d.files["new/cm.yaml"] = configMap(d.ns, "new")
	d.files["tree/tiers.yaml"] += "---\n" + d.manifest("new", needs("last"))
	d.push(t, d.files)
	o := r.wait(t)
	if o.code != 0 {
		t.Errorf("%s\nwant 0", o)
	}
	o.inOrder(t, o.stderr, "✔ disturbed/later: Ready at ", "disturbed/last resumed", "✔ disturbed/last: Ready at ", "✔ disturbed/new: Ready at ")
	o.holds(t, o.stdout, "6 of 6 tiers Ready")
	if got := strings.Fields(d.resumed(t, mark)); len(got) == 0 || got[0] != "later" {
		t.Errorf("%s\npatched %q; first and slow were Ready", o, got)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.ns, Name: "new"}}
	if err := d.c.Until(t.Context(), cm, func() bool { return true }); err != nil {
		t.Error(err)
	}
	mark = d.c.Mark()
	d.resume(t, 0)
	mutatedNothing(t, d.c, mark)
}

// startTo is start with another stdout than a transcript.
func (s *shell) startTo(t *testing.T, stdout *os.File, args ...string) *running {
	t.Helper()
	if err := plugins(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, filepath.Join(pluginDir, "kubectl"), args...)
	cmd.Dir = s.dir
	cmd.Env = s.environment()
	r := &running{
		outcome: outcome{command: strings.Join(args, " ")},
		cmd:     cmd, cancel: cancel, began: time.Now(), stdout: newTranscript(), stderr: newTranscript(),
	}
	cmd.Stdout, cmd.Stderr = stdout, r.stderr
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	return r
}
