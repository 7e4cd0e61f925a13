// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Command hold starts a whole cluster with Flux, says how to use it, and holds
// it up until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/kubestandup/kubestandup/test/cluster"
	"github.com/kubestandup/kubestandup/test/cluster/programs"
)

const repo = "fleet"

func main() {
	dir := flag.String("push", "", "`folder` to push as the GitOps repository")
	path := flag.String("path", ".", "path of the root Kustomization in that folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := hold(ctx, *dir, *path)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func hold(ctx context.Context, dir, path string) (err error) {
	if _, err := programs.Build(ctx, os.Stderr); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Name:            "hold",
		Components:      append(cluster.DefaultComponents(), cluster.HelmController),
		FluxDeployments: true,
		Kubelet:         true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.StopAll()) }()

	tree := os.DirFS(dir)
	if dir == "" {
		tree = cluster.Files{"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n"}
	}
	if _, err := c.Push(ctx, repo, tree, "first"); err != nil {
		return err
	}
	if err := c.InstallRoot(ctx, cluster.Root{Repo: repo, Path: path, Prune: true}); err != nil {
		return err
	}
	fmt.Printf(`The cluster is up. Flux reconciles the branch main of
  %s

  export KUBECONFIG=%s
  export PATH=%s:$PATH

  git push --force %[1]s HEAD:main   # from any repository; the root is %[4]s
  kubectl -n flux-system annotate --overwrite gitrepository flux-system reconcile.fluxcd.io/requestedAt="$(date)"
  kubectl apply --server-side -f %[5]s        # CDI's operator, which then runs for real

No container runs: pods are marked as running. Logs: %[6]s
Ctrl-C stops everything.
`, c.RepoURL(repo), c.Kubeconfig(), filepath.Dir(c.Program("kubectl")), path,
		c.Programs().CDIOperatorManifest(), filepath.Dir(c.LogFile(cluster.Etcd)))
	<-ctx.Done()
	fmt.Println("\nStopping.")
	return nil
}
