// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"path/filepath"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// CRDs makes the finder and breaker of deadlocks for a target. Close it.
func CRDs(t *Target) (*crds.Cluster, error) {
	base, err := knowledge.Builtin()
	if err != nil {
		return nil, err
	}
	return crds.New(t.Config(), t.Server, base)
}

// Command is a command of ours, ready to be pasted: it carries the target that
// this command had, and what is expected of it.
// A step takes more from standup.yaml than that, what to leave suspended for one:
// its command names the file, wherever it is pasted, and the file then says what
// is expected.
func (t *Target) Command(plugin, rest string) string {
	args := t.Args()
	if plugin == "standup" && t.File != nil {
		file, err := filepath.Abs(t.File.Path)
		if err != nil { // there is no working directory any more
			file = t.File.Path
		}
		if e := t.File.Expectation(); e.Server != "" && (e.UID != "" || t.Expected.UID == "") {
			args = t.KubectlArgs()
		}
		args = strings.TrimSpace(args + " --config " + guard.ShellQuote(file))
	}
	return strings.TrimSpace("kubectl " + plugin + " " + rest + " " + args)
}

// Wedges makes the finder and repairer of wedges for a target.
func Wedges(t *Target, deadlocks *crds.Cluster) (*wedge.Cluster, error) {
	base, err := knowledge.Builtin()
	if err != nil {
		return nil, err
	}
	return wedge.New(t.Config(), deadlocks, base)
}
