// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// listNodes takes one LIST a page.
func listNodes(ctx context.Context, cfg *rest.Config) ([]corev1.Node, error) {
	client, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	var all []corev1.Node
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.Nodes().List(ctx, o)
	}
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		all = append(all, *o.(*corev1.Node))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return all, nil
}

// nodes compares what is there with what standup.yaml asks for. It is one
// finding a fault, not one a node.
func (p *preflight) nodes(context.Context) (Check, error) {
	all, err := p.nodeList()
	if err != nil {
		return Check{}, err
	}
	want := p.env.File.Nodes
	var c Check
	ready, sick := sortNodes(all)
	c.Message = fmt.Sprintf("%d of %d Ready", len(all)-len(sick), len(all))
	if len(ready) < want.Count {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "nodes-too-few", Severity: finding.Error,
			Message: fmt.Sprintf("%s Ready, and nodes.count of standup.yaml asks for %d", plural(len(ready), "node is", "nodes are"), want.Count),
			Fix:     "bring the missing ones up, or correct nodes.count: " + p.command("kubectl get nodes"),
		})
	} else if len(all) == 0 {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "nodes-none", Severity: finding.Info,
			Message: "the cluster has no node, so no Pod runs", Fix: "bring one up",
		})
	}
	if len(sick) > 0 {
		c.Findings = append(c.Findings, p.nodeFinding("nodes-not-ready", finding.Warning, plural(len(sick), "node is", "nodes are")+" not Ready", sick,
			"see why: "+p.command("kubectl describe node "+sick[0].name)))
	}
	for _, demand := range demands(want) {
		below, err := demand.below(all)
		if err != nil {
			return c, err
		}
		if len(below) > 0 {
			text := fmt.Sprintf("%s %s below %s %s of standup.yaml", plural(len(below), "node has", "nodes have"), demand.what, demand.field, demand.least)
			c.Findings = append(c.Findings, p.nodeFinding(demand.rule, finding.Error, text, below, demand.fix))
		}
	}
	return c, nil
}

// nodeFault is what is wrong with one node.
type nodeFault struct{ name, why string }

// mostNamed is how many objects of one finding are named.
const mostNamed = 5

func (p *preflight) nodeFinding(rule string, severity finding.Severity, text string, faults []nodeFault, fix string) finding.Finding {
	f := finding.Finding{Rule: rule, Severity: severity, Message: text, Fix: fix}
	if len(faults) == 1 {
		f.Object = &flux.Ref{APIVersion: "v1", Kind: "Node", Name: faults[0].name}
	}
	for i, fault := range faults {
		if i == mostNamed {
			f.Causes = append(f.Causes, fmt.Sprintf("and %d more", len(faults)-mostNamed))
			break
		}
		f.Causes = append(f.Causes, fmt.Sprintf("Node/%s: %s", fault.name, fault.why))
	}
	return f
}

func sortNodes(all []corev1.Node) (ready []string, sick []nodeFault) {
	for i := range all {
		n := &all[i]
		why := "its kubelet has not reported yet"
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				why = strings.TrimSuffix(fmt.Sprintf("%s: %s", c.Reason, c.Message), ": ")
				if c.Status == corev1.ConditionTrue {
					why = ""
				}
			}
		}
		if why == "" {
			ready = append(ready, n.Name)
			continue
		}
		sick = append(sick, nodeFault{n.Name, why})
	}
	return ready, sick
}

// demand is one thing that standup.yaml asks of each node.
type demand struct {
	rule, field, least, what, fix string
	// value reads it; short is true for one that is below.
	value func(*corev1.Node) string
	short func(have, least string) (bool, error)
}

func demands(want config.Nodes) []demand {
	all := []demand{
		{
			"nodes-kernel", "nodes.minKernel", want.MinKernel, "a kernel", "update the operating system of these nodes",
			func(n *corev1.Node) string { return n.Status.NodeInfo.KernelVersion }, older,
		},
		{
			"nodes-kubelet", "nodes.minKubelet", want.MinKubelet, "a kubelet", "update the kubelet of these nodes",
			func(n *corev1.Node) string { return n.Status.NodeInfo.KubeletVersion }, older,
		},
		{
			"nodes-memory", "nodes.minMemory", want.MinMemory, "memory", "give these nodes more memory, or correct nodes.minMemory",
			func(n *corev1.Node) string { return n.Status.Capacity.Memory().String() }, less,
		},
	}
	var asked []demand
	for _, d := range all {
		if d.least != "" {
			asked = append(asked, d)
		}
	}
	return asked
}

func (d *demand) below(nodes []corev1.Node) ([]nodeFault, error) {
	var faults []nodeFault
	for i := range nodes {
		have := d.value(&nodes[i])
		short, err := d.short(have, d.least)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s %q: %w", d.field, d.least, err)
		case have == "" || have == "0":
			faults = append(faults, nodeFault{nodes[i].Name, "it does not say what it has"})
		case short:
			faults = append(faults, nodeFault{nodes[i].Name, "it has " + have})
		}
	}
	return faults, nil
}

// older compares the numbers at the front of two versions, as many as least
// has: 5.15.0-91-generic is not older than 5.15. What is no version is older
// than all; the error is for a least that is none.
func older(have, least string) (bool, error) {
	want, err := version.ParseGeneric(padded(least))
	if err != nil {
		return false, err
	}
	got, err := version.ParseGeneric(padded(have))
	if err != nil {
		return true, nil //nolint:nilerr // fails closed
	}
	return got.LessThan(want), nil
}

// padded is the version with at least three numbers, without what follows
// them: version.Version takes 5.15 for less than 5.15.0.
func padded(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "v")
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end >= 0 {
		text = text[:end]
	}
	text = strings.Trim(text, ".")
	for text != "" && strings.Count(text, ".") < 2 {
		text += ".0"
	}
	return text
}

func less(have, least string) (bool, error) {
	want, err := resource.ParseQuantity(least)
	if err != nil {
		return false, err
	}
	got, err := resource.ParseQuantity(have)
	return err != nil || got.Cmp(want) < 0, nil //nolint:nilerr // fails closed
}

// plural is a number with what it counts.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
