// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubestandup/kubestandup/test/bringup"
	"github.com/kubestandup/kubestandup/test/cluster"
	"github.com/kubestandup/kubestandup/test/cluster/programs"
)

// attempts is how often the tier must have failed before the demo calls it a
// deadlock.
const attempts = 3

func run(ctx context.Context, out io.Writer, keep bool) error {
	d := &demo{out: out, start: time.Now()}
	d.title("Preparing")
	if _, err := programs.Build(ctx, out); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kubestandup-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d.dir = dir
	if err := d.buildPlugins(ctx); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Name:            "demo",
		Components:      []cluster.Component{cluster.ControllerManager, cluster.SourceController, cluster.KustomizeController, cluster.HelmController},
		FluxDeployments: true,
		Kubelet:         true,
	})
	if err != nil {
		return err
	}
	defer c.StopAll() //nolint:errcheck // the processes end with this one
	d.cluster = c
	d.took("a cold cluster with Flux is up")

	if err := d.wedge(ctx); err != nil {
		return err
	}
	if err := d.repair(ctx); err != nil {
		return err
	}
	d.summary()
	if !keep {
		return nil
	}
	d.say("\nThe cluster stays up until Ctrl-C. In another terminal:\n")
	d.say("  export KUBECONFIG=%s PATH=%s:$PATH\n  cd %s && kubectl tiers\n", c.Kubeconfig(), d.bin(), d.checkout())
	<-ctx.Done()
	return nil
}

type demo struct {
	out     io.Writer
	dir     string
	cluster *cluster.Cluster
	start   time.Time
	last    time.Time
	parts   []part
}

type part struct {
	what string
	took time.Duration
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

func (d *demo) title(text string) {
	d.say("\n── %s %s\n", text, strings.Repeat("─", max(0, 74-len(text))))
	d.last = time.Now()
}

// took notes how long the part that just ended took.
func (d *demo) took(what string) {
	d.parts = append(d.parts, part{what, time.Since(d.last)})
	d.say("%s (%s)\n", what, time.Since(d.last).Round(100*time.Millisecond))
	d.last = time.Now()
}

func (d *demo) bin() string      { return filepath.Join(d.dir, "bin") }
func (d *demo) checkout() string { return filepath.Join(d.dir, "gitops", "clusters", "demo") }

// wedge pushes the repository and waits until the real kustomize-controller
// has failed several times.
func (d *demo) wedge(ctx context.Context) error {
	d.title("The incident: one tier applies the CDI resource and a StorageProfile together")
	tree, err := d.writeCheckout()
	if err != nil {
		return err
	}
	if err := bringup.Install(ctx, d.cluster, tree); err != nil {
		return err
	}
	tier := &kustomizev1.Kustomization{}
	tier.Namespace, tier.Name = cluster.FluxNamespace, "platform-config"
	failed, seen := 0, time.Time{}
	err = d.cluster.Until(ctx, tier, func() bool {
		ready := meta.FindStatusCondition(tier.Status.Conditions, "Ready")
		if ready == nil || ready.Status != "False" || !strings.Contains(ready.Message, "no matches for kind") || !ready.LastTransitionTime.After(seen) {
			return false
		}
		failed, seen = failed+1, ready.LastTransitionTime.Time
		d.say("  kustomize-controller, attempt %d: %s\n", failed, firstLine(ready.Message))
		return failed == attempts
	})
	if err != nil {
		return err
	}
	d.took(fmt.Sprintf("the cluster is wedged: %d attempts, and a retry every %s changes nothing", failed, tier.Spec.RetryInterval.Duration))
	return nil
}

// repair is what a person types.
func (d *demo) repair(ctx context.Context) error {
	d.title("See it")
	d.say("standup.yaml names the cluster that is meant, without which no step runs, and what else\nis special about it.\n")
	if err := d.writeConfig(ctx); err != nil {
		return err
	}
	if err := d.kubectl(ctx, 0, "tiers"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, 0, "tiers", "why", "apps-vms"); err != nil {
		return err
	}
	d.took("understood")

	d.title("Bring it up")
	d.say("One key is not in git, and never will be. Nothing is changed before it is there.\n")
	if err := d.kubectl(ctx, 3, "standup", "all"); err != nil {
		return err
	}
	key := filepath.Join(d.checkout(), "age.agekey")
	if err := os.WriteFile(key, []byte(bringup.AgeKey+"\n"), 0o600); err != nil {
		return err
	}
	if err := d.kubectl(ctx, 0, "create", "secret", "generic", "sops-age", "-n", cluster.FluxNamespace, "--from-file=age.agekey"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, 0, "standup", "all"); err != nil {
		return err
	}
	d.took("from wedged to verified")
	return d.kubectl(ctx, 0, "tiers", "--releases")
}

func (d *demo) summary() {
	d.title("How long each part took")
	for _, p := range d.parts {
		d.say("%8s  %s\n", p.took.Round(100*time.Millisecond), p.what)
	}
	d.say("%8s  in all\n", time.Since(d.start).Round(100*time.Millisecond))
}

// writeCheckout writes the repository where the plugins are called, and
// returns it.
func (d *demo) writeCheckout() (map[string]string, error) {
	root := filepath.Join(d.dir, "gitops")
	install, err := d.cluster.CDIInstall()
	if err != nil {
		return nil, err
	}
	files, err := bringup.Extended(install)
	if err != nil {
		return nil, err
	}
	for path, text := range files {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	// What marks the root of a repository for the search for standup.yaml.
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
		return nil, err
	}
	return files, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
