// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// TestControllersThatDoNotRun: each blocks, but one that may run elsewhere.
func TestControllersThatDoNotRun(t *testing.T) {
	deployed := func(available, wanted int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "source-controller"},
			Spec:       appsv1.DeploymentSpec{Replicas: &wanted}, Status: appsv1.DeploymentStatus{AvailableReplicas: available},
		}
	}
	for name, tt := range map[string]struct {
		deployment *appsv1.Deployment
		rules      string
		severity   finding.Severity
		says       string
	}{
		"it runs":        {deployed(1, 1), "[]", "", ""},
		"no replica":     {deployed(0, 1), "[flux-controller-down]", finding.Error, "kubectl -n flux describe deployment source-controller --context x"},
		"scaled to zero": {deployed(0, 0), "[flux-controller-down]", finding.Error, "kubectl -n flux scale deployment source-controller --replicas=1 --context x"},
		"not seen":       {nil, "[flux-controller-down]", finding.Warning, "no Deployment of that name"},
	} {
		p := looking()
		p.env.KubectlArgs = "--context x"
		p.deployments = func() ([]controller, error) {
			return []controller{
				{name: "source-controller", group: flux.SourceGroup, deployment: tt.deployment, version: "v1.9.6"},
				{name: "helm-controller", group: flux.HelmGroup}, // its kinds are not served
			}, nil
		}
		c, err := p.controllers(t.Context())
		if err != nil || fmt.Sprint(rules(c)) != tt.rules || (c.Message == "source-controller v1.9.6") != (tt.severity == "") {
			t.Errorf("%s: got %+v, %v", name, c, err)
			continue
		}
		for _, f := range c.Findings {
			if f.Severity != tt.severity || f.Blocks != (tt.severity == finding.Error) || !strings.Contains(text(f), tt.says) {
				t.Errorf("%s: got %+v", name, f)
			}
		}
	}
}
