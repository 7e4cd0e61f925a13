// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func authored(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAuthoredKustomization(t *testing.T) {
	tier, err := Authored(authored(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: tenant
  labels: {kustomize.toolkit.fluxcd.io/name: root, kustomize.toolkit.fluxcd.io/namespace: flux-system}
spec:
  interval: 1h
  suspend: true
  wait: true
  prune: true
  sourceRef: {kind: GitRepository, name: repo, namespace: flux-system}
  dependsOn: [{name: a}, {name: b, namespace: other, readyExpr: "true"}]
status:
  lastAppliedRevision: main@sha1:old
  conditions: [{type: Ready, status: "True"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if tier.RetryInterval != time.Hour || !tier.Suspended || !tier.Wait || !tier.Prune || tier.Owner.Key() != "flux-system/root" {
		t.Errorf("got %+v", tier)
	}
	if tier.Ref.String() != "Kustomization/tenant/apps" || tier.Source != (Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "repo"}) {
		t.Errorf("%s of %s", tier.Ref, tier.Source)
	}
	if d := tier.DependsOn; len(d) != 2 || d[0].Ref.Key() != "tenant/a" || d[1].Ref.Key() != "other/b" || d[1].ReadyExpr == "" {
		t.Errorf("dependencies %+v", d)
	}
	if len(tier.Conditions) > 0 || tier.LastAppliedRevision != "" {
		t.Errorf("a status that git happens to hold is none: %+v", tier)
	}
}

func TestAuthoredHelmRelease(t *testing.T) {
	tier, err := Authored(authored(t, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: op, namespace: ops}
spec:
  interval: 1h
  chart: {spec: {chart: ./charts/op, sourceRef: {kind: GitRepository, name: repo}}}
  dependsOn: [{name: base}]
status: {helmChart: ops/old}
`))
	if err != nil {
		t.Fatal(err)
	}
	if tier.Helm == nil || tier.Helm.ChartName != "./charts/op" || tier.Source.Name != "" || !tier.Wait {
		t.Errorf("got %+v", tier)
	}
	if tier.DependsOn[0].Ref.String() != "HelmRelease/ops/base" {
		t.Errorf("depends on %s", tier.DependsOn[0].Ref)
	}
}

func TestAuthoredRefusesWhatIsNoTier(t *testing.T) {
	for name, text := range map[string]string{
		"kustomize's own file": "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, metadata: {name: x}}",
		"mistyped":             "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x}, spec: {dependsOn: yes}}",
	} {
		if _, err := Authored(authored(t, text)); err == nil || !strings.Contains(err.Error(), "Kustomization/x") {
			t.Errorf("%s: error %v does not name the object", name, err)
		}
	}
}
