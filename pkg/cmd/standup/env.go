// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/standup"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// newEnv is what the steps of a bring-up work with. Close its CRDs.
// It is not in util: what it imports, Helm among it, costs the other plugins a
// third of their start.
func newEnv(t *util.Target) (*standup.Env, error) {
	c, err := util.CRDs(t)
	if err != nil {
		return nil, err
	}
	w, err := util.Wedges(t, c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	file := t.File
	if file == nil {
		file = &config.Config{}
	}
	return &standup.Env{
		Identity: t.Identity, Expected: t.Expected, Credentials: t.Credentials(), Config: t.Config(), CRDs: c, Wedges: w, File: file,
		Command: t.Command, KubectlArgs: t.KubectlArgs(),
	}, nil
}
