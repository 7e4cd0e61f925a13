// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// The kubectl plugin unwedge.
package main

import (
	"os"

	"github.com/kubestandup/kubestandup/pkg/cmd/unwedge"
	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

func main() {
	os.Exit(util.Run(unwedge.NewCmd))
}
