// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// mostSkew is how many minor releases a kubelet may be behind its API server
// (kubernetes.io/releases/version-skew-policy).
const mostSkew = 3

// versions asks the server for its own, and holds those of the kubelets and of
// Flux's controllers against it and against each other. It takes one request.
func (p *preflight) versions(context.Context) (Check, error) {
	var c Check
	client, err := discovery.NewDiscoveryClientForConfig(p.env.Config)
	if err != nil {
		return c, err
	}
	info, err := client.ServerVersion()
	if err != nil {
		return c, fmt.Errorf("version of the API server: %w", err)
	}
	server, err := version.ParseGeneric(padded(info.GitVersion))
	if err != nil {
		return c, fmt.Errorf("version of the API server: %q is none", info.GitVersion)
	}
	c.Message = "API server " + info.GitVersion
	controllers, err := p.deployments()
	if err == nil { // else the check of the controllers says so
		release, found := fluxRelease(controllers, server)
		if release != "" {
			c.Message += ", Flux " + release
		}
		c.Findings = append(c.Findings, found...)
	}
	nodes, err := p.nodeList()
	if err == nil { // else the check of the nodes says so
		if faults := kubeletSkew(nodes, server); len(faults) > 0 {
			c.Findings = append(c.Findings, p.nodeFinding("kubelet-skew", finding.Warning,
				fmt.Sprintf("%s outside of what API server %s works with: the same release, and %d minor ones before",
					plural(len(faults), "kubelet is", "kubelets are"), info.GitVersion, mostSkew), faults,
				"update the API server first, and then these kubelets"))
		}
	}
	return c, nil
}

func kubeletSkew(nodes []corev1.Node, server *version.Version) []nodeFault {
	var faults []nodeFault
	for i := range nodes {
		have := nodes[i].Status.NodeInfo.KubeletVersion
		kubelet, err := version.ParseGeneric(padded(have))
		switch {
		case err != nil: // the check of the nodes asks for one where it matters
		case kubelet.Major() != server.Major(), kubelet.Minor() > server.Minor(), server.Minor()-kubelet.Minor() > mostSkew:
			faults = append(faults, nodeFault{nodes[i].Name, "its kubelet is " + have})
		}
	}
	return faults
}

// minorOf is which minor release of Flux 2 a controller belongs to. The
// changelogs give the dates: kustomize-controller and source-controller 1.N come
// with Flux 2.N, helm-controller 0.35 to 0.37 with 2.0 to 2.2, and 1.N with
// 2.(N+3).
func minorOf(c controller) (minor int, ok bool) {
	v, err := version.ParseGeneric(padded(c.version))
	if err != nil {
		return 0, false
	}
	minor = int(v.Minor())
	switch {
	case c.name != "helm-controller":
		return minor, v.Major() == 1
	case v.Major() == 1:
		return minor + 3, true
	case v.Major() == 0 && minor >= 35:
		return minor - 35, true
	}
	return 0, false
}

// fluxMinimum is the oldest Kubernetes that the newest Flux of which that was
// read works with (flux2 v2.9.5 cmd/flux/check.go kubernetesConstraints).
const (
	fluxMinimumSince = 9
	fluxMinimum      = "1.33"
)

// fluxRelease says which release of Flux runs, and what does not fit.
func fluxRelease(controllers []controller, server *version.Version) (string, []finding.Finding) {
	lowest, highest := -1, -1
	var named []string
	for _, c := range controllers {
		minor, ok := minorOf(c)
		if !ok {
			continue
		}
		named = append(named, fmt.Sprintf("%s %s comes with Flux 2.%d", c.name, c.version, minor))
		if lowest < 0 || minor < lowest {
			lowest = minor
		}
		highest = max(highest, minor)
	}
	if highest < 0 {
		return "", nil
	}
	var found []finding.Finding
	release := fmt.Sprintf("2.%d", highest)
	if highest != lowest {
		release = fmt.Sprintf("2.%d to 2.%d", lowest, highest)
	}
	if highest-lowest > 1 {
		found = append(found, finding.Finding{
			Rule: "flux-release-mixed", Severity: finding.Warning, Causes: named,
			Message: "the controllers of Flux are of different releases: " + release,
			Fix:     "install controllers and CRDs of one release of Flux: flux install",
		})
	}
	if tooOld, err := older(server.String(), fluxMinimum); err == nil && tooOld && lowest >= fluxMinimumSince {
		found = append(found, finding.Finding{
			Rule: "kubernetes-too-old", Severity: finding.Warning, Causes: named,
			Message: fmt.Sprintf("API server %s is older than %s, the oldest that Flux 2.%d works with", server, fluxMinimum, fluxMinimumSince),
			Fix:     "update the API server to a release that this Flux works with",
		})
	}
	return release, found
}
