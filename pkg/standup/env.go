// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// Env is what the steps work with: one proved cluster, and what was typed.
type Env struct {
	Identity guard.Identity
	// Expected is what the server was compared with; its UID may be empty.
	Expected guard.Expectation
	// Credentials are what kind of credentials this run has.
	Credentials guard.Credentials
	Config      *rest.Config
	CRDs        *crds.Cluster
	Wedges      *wedge.Cluster
	// File is the standup.yaml, never nil: an empty one where there is none.
	File *config.Config
	// DryRun: nothing is changed, and the server checks what would be.
	DryRun bool
	// Timeout bounds one wait: for the kinds of one trigger, for one CRD.
	Timeout time.Duration
	// Options are those of this run that a command which goes on with it repeats.
	Options string
	// Command prints a command of ours, ready to be pasted, with the target
	// and the expectation that this run has.
	Command func(plugin, rest string) string
	// KubectlArgs are the flags with which kubectl reaches the same server.
	KubectlArgs string
	// Say is told what is done, one line at a time.
	Say func(line string)
	// Warn is told of errors that are being retried.
	Warn func(error)
	// Observe is told of each new graph of a step that waits, with what is left
	// of it and what was just nudged. Nil is allowed.
	Observe func(g *tiers.Graph, left, nudged []*tiers.Node)
}

// again is a command that goes on with this run, with its options.
func (env *Env) again(step string) string {
	return env.Command("standup", strings.TrimSpace(step+" "+env.Options))
}
