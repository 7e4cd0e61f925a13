// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

func node(name string, ready corev1.ConditionStatus, kernel, kubelet, memory string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: kernel, KubeletVersion: kubelet}
	if memory != "" {
		n.Status.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Because", Message: "it is so"}}
	}
	return n
}

func withNodes(p *preflight, all ...corev1.Node) *preflight {
	p.nodeList = func() ([]corev1.Node, error) { return all, nil }
	return p
}

func TestNodes(t *testing.T) {
	good := node("a", "True", "6.12.0-1-generic", "v1.33.2+k3s1", "16Gi")
	for name, tt := range map[string]struct {
		want  config.Nodes
		nodes []corev1.Node
		rules string
		says  string
	}{
		"none is asked for":      {config.Nodes{}, nil, "[nodes-none]", "no Pod runs"},
		"nothing is asked of it": {config.Nodes{}, []corev1.Node{node("a", "True", "2.6", "v1.1", "")}, "[]", ""},
		"all is well": {
			config.Nodes{Count: 1, MinKernel: "6.12", MinKubelet: "1.33.2", MinMemory: "16Gi"}, []corev1.Node{good}, "[]", "",
		},
		"too few": {config.Nodes{Count: 2}, []corev1.Node{good}, "[nodes-too-few]", "nodes.count of standup.yaml asks for 2"},
		"not Ready": {
			config.Nodes{Count: 2},
			[]corev1.Node{good, node("b", "False", "", "", "")},
			"[nodes-too-few nodes-not-ready]", "Node/b: Because: it is so",
		},
		"unknown":               {config.Nodes{}, []corev1.Node{node("b", "Unknown", "", "", "")}, "[nodes-not-ready]", "Node/b: Because: it is so"},
		"never seen":            {config.Nodes{}, []corev1.Node{node("b", "", "", "", "")}, "[nodes-not-ready]", "has not reported yet"},
		"an old kernel":         {config.Nodes{MinKernel: "6.12.1"}, []corev1.Node{good}, "[nodes-kernel]", "it has 6.12.0-1-generic"},
		"an old kubelet":        {config.Nodes{MinKubelet: "1.34"}, []corev1.Node{good}, "[nodes-kubelet]", "it has v1.33.2+k3s1"},
		"ten is more than nine": {config.Nodes{MinKubelet: "1.9"}, []corev1.Node{node("a", "True", "", "v1.10.0", "")}, "[]", ""},
		"little memory":         {config.Nodes{MinMemory: "17Gi"}, []corev1.Node{good}, "[nodes-memory]", "it has 16Gi"},
		"says nothing": {
			config.Nodes{MinKernel: "5", MinMemory: "1Gi"},
			[]corev1.Node{node("a", "True", "", "", "")},
			"[nodes-kernel nodes-memory]", "it does not say what it has",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := withNodes(looking(), tt.nodes...)
			p.env.File.Nodes = tt.want
			c, err := p.nodes(t.Context())
			if err != nil || fmt.Sprint(rules(c)) != tt.rules {
				t.Fatalf("got %v, %v\n%+v", rules(c), err, c.Findings)
			}
			var all string
			for _, f := range c.Findings {
				all += text(f) + "\n"
				if f.Blocks {
					t.Errorf("%s blocks", f.Rule)
				}
			}
			if !strings.Contains(all, tt.says) {
				t.Errorf("it does not say %q:\n%s", tt.says, all)
			}
		})
	}
}

// TestOneFaultIsOneFinding: of a hundred nodes too.
func TestOneFaultIsOneFinding(t *testing.T) {
	var all []corev1.Node
	for i := range 100 {
		all = append(all, node(fmt.Sprintf("n%02d", i), "False", "", "", ""))
	}
	c, err := withNodes(looking(), all...).nodes(t.Context())
	if err != nil || len(c.Findings) != 1 || len(c.Findings[0].Causes) != mostNamed+1 || c.Findings[0].Causes[mostNamed] != "and 95 more" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestWhatCouldNotBeAsked is never silently well: it stops a bring-up where the
// answer could have.
func TestWhatCouldNotBeAsked(t *testing.T) {
	forbidden := fmt.Errorf("list: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no")))
	for _, tt := range []struct {
		err      error
		blocks   bool
		severity finding.Severity
	}{
		{forbidden, false, finding.Warning},
		{forbidden, true, finding.Error},
		{errors.New("connection refused"), false, finding.Error},
	} {
		f := looking().unanswered(question{name: "nodes", blocks: tt.blocks}, tt.err)
		if f.Severity != tt.severity || f.Blocks != tt.blocks || f.Rule != "nodes-unseen" || !strings.Contains(f.Message, "could not be looked at") || f.Fix == "" {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}
