// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// question is one check of preflight: its name in the table, and what answers.
type question struct {
	name string
	ask  func(context.Context) (Check, error)
	// blocks: where it cannot be answered, a bring-up does not go on.
	blocks bool
}

// questions are all of preflight, in the order in which they are answered.
func (p *preflight) questions() []question {
	return []question{
		{"identity", p.identity, true},
		{"kubeconfig", p.kubeconfig, false},
		{"nodes", p.nodes, false},
		{"flux-kinds", p.fluxKinds, true},
		{"flux-controllers", p.controllers, true},
		{"versions", p.versions, false},
		{"sources", p.sources, true},
		{"decryption", p.decryption, true},
		{"variables", p.asserted, true},
		{"kinds", p.kinds, false},
		{"names", p.names, false},
		{"inventory", p.inventory, false},
		{"encrypted", p.encrypted, false},
		{"wedges", p.wedges, false},
		{"tiers", p.tiers, false},
	}
}

// Preflight looks at everything that a bring-up needs and changes nothing. What
// is wrong with the cluster is in the report, and so is what could not be
// looked at; the error is for a cluster whose tiers cannot be read at all.
func Preflight(ctx context.Context, env *Env) (*StepReport, error) {
	l, err := env.look(ctx)
	if err != nil {
		return nil, err
	}
	p := newPreflight(ctx, l)
	report := &StepReport{}
	if report.Checks, err = p.answers(ctx); err != nil {
		return nil, err
	}
	report.close()
	switch {
	case slices.ContainsFunc(report.Findings, func(f finding.Finding) bool { return f.Rule == ruleDeadlock }):
		report.Next = env.Command("standup", "crds")
	case slices.ContainsFunc(report.Findings, func(f finding.Finding) bool { return f.Rule == "tier-suspended" }):
		report.Next = env.Command("standup", "resume")
	case report.Result == OK && p.allReady():
		report.Next = env.Command("standup", "verify")
	case report.Result == OK:
		report.Next = env.Command("tiers", "--wait")
	}
	return report, nil
}

// preflight is one run. Its checks run side by side, and share what they read.
type preflight struct {
	*look
	// world is what wedges are judged by, and what is known of the API itself.
	world func() (*wedge.World, error)
	// nodeList are the nodes.
	nodeList func() ([]corev1.Node, error)
	// namespaceNames are the Namespaces.
	namespaceNames func() (map[string]bool, error)
	// deployments are those of Flux's controllers.
	deployments func() ([]controller, error)
	// judging is held while a crds.Look is used, which remembers what it lists.
	judging   sync.Mutex
	judged    map[flux.Ref]*crds.Diagnosis
	operators map[string]crds.Operator
}

func newPreflight(ctx context.Context, l *look) *preflight {
	return &preflight{
		look: l, judged: map[flux.Ref]*crds.Diagnosis{}, operators: map[string]crds.Operator{},
		world: sync.OnceValues(func() (*wedge.World, error) {
			return l.env.Wedges.Observe(ctx, wedge.Choices{})
		}),
		nodeList:       sync.OnceValues(func() ([]corev1.Node, error) { return listNodes(ctx, l.env.Config) }),
		namespaceNames: sync.OnceValues(func() (map[string]bool, error) { return listNamespaces(ctx, l.env.Config) }),
		deployments:    sync.OnceValues(func() ([]controller, error) { return listControllers(ctx, l.env.Config) }),
	}
}

// answers asks all questions. One that cannot be answered is a finding, and
// does not keep the others from being: the error is that of a done context.
func (p *preflight) answers(ctx context.Context) ([]Check, error) {
	asked := p.questions()
	checks := make([]Check, len(asked))
	var group errgroup.Group
	for i, q := range asked {
		group.Go(func() error {
			c, err := q.ask(ctx)
			c.Name = q.name
			if err != nil {
				c.Findings = append(c.Findings, p.unanswered(q, err))
			}
			checks[i] = c
			return nil
		})
	}
	_ = group.Wait()
	return checks, ctx.Err()
}

func (p *preflight) unanswered(q question, err error) finding.Finding {
	severity := finding.Error
	if apierrors.IsForbidden(err) && !q.blocks {
		severity = finding.Warning
	}
	return finding.Finding{
		Rule: q.name + "-unseen", Severity: severity, Blocks: q.blocks,
		Message: fmt.Sprintf("%s could not be looked at: %v", q.name, err),
		Fix:     "silence about it is no health; make it readable, then: " + p.env.Command("standup", "preflight"),
	}
}

func (p *preflight) allReady() bool {
	return !slices.ContainsFunc(p.graph.Tiers(), func(n *tiers.Node) bool { return n.State != tiers.Ready })
}

// command is a command of kubectl or flux that leads to the same cluster.
func (p *preflight) command(text string) string {
	return strings.TrimSpace(text + " " + p.env.KubectlArgs)
}
