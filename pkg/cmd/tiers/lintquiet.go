// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/kubestandup/kubestandup/pkg/lint"
)

// quietly keeps kustomize from writing among the findings, as it does about each
// deprecated field: to the stderr of the process, whoever asked it (kustomize
// api/internal/target/kusttarget.go Load, v0.21.1). What this command says goes
// to errOut, which it has already. Where that is not the process's stderr, this
// is no process of its own, and nothing is changed in it.
//
// Only lint does so: it talks to no cluster, for which a credential plugin may
// have to ask the user something on stderr.
func quietly(errOut io.Writer, run runLint) runLint {
	return func(ctx context.Context, o lint.Options) (*lint.Report, error) {
		stderr := os.Stderr
		if errOut != io.Writer(stderr) {
			return run(ctx, o)
		}
		nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("stderr of libraries: %w", err)
		}
		os.Stderr = nowhere
		// Not closed: a chart that cannot be stopped may still be rendered.
		defer func() { os.Stderr = stderr }()
		return run(ctx, o)
	}
}
