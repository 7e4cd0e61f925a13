// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// The kubectl plugin tiers.
package main

import (
	"os"

	"github.com/kubestandup/kubestandup/pkg/cmd/tiers"
	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

func main() {
	os.Exit(util.Run(tiers.NewCmd))
}
