// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package bringup

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// Install pushes the extended repository to a cold cluster and installs its
// root. Then somebody suspends what Suspended names, before it could run: it
// depends on the tier that never comes up by itself.
func Install(ctx context.Context, c *cluster.Cluster, files map[string]string) error {
	if _, err := c.Push(ctx, "gitops", cluster.Files(files), "the platform"); err != nil {
		return err
	}
	if err := c.InstallRoot(ctx, cluster.Root{Repo: "gitops", Path: "./clusters/demo", Prune: true}); err != nil {
		return err
	}
	for _, name := range Suspended() {
		tier := &kustomizev1.Kustomization{}
		tier.Namespace, tier.Name = cluster.FluxNamespace, name
		if err := c.Until(ctx, tier, func() bool { return true }); err != nil {
			return err
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))
		if err := c.Client().Patch(ctx, tier, patch, client.FieldOwner("flux")); err != nil {
			return fmt.Errorf("suspend %s: %w", name, err)
		}
	}
	return nil
}

// StandupYAML is the file of that cluster, as a person keeps it beside the
// cluster's entry point.
func StandupYAML(server, uid string) string {
	return fmt.Sprintf(`# The cluster that this folder is for. Every step compares it with the live
# server, and does nothing on any other.
%scluster:
  server: %s
  uid: %s
nodes:
  count: 1
variables:
  - name: CLUSTER_NAME
    required: true
    forbid: ["dev*", staging]
  - name: BACKUP_ENDPOINT
    required: true
    placeholder: "TBD-*"
    blocks: [backup-store]
    degrades: [backup-schedule]
crds:
  expect: [clusterrules.policy.example.org]
  fromCharts:
    - helmRelease: policy/policy-engine
      values:
        crds:
          install: true
`, config.Header, server, uid)
}
