// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// The kubectl plugin standup.
package main

import (
	"os"

	"github.com/kubestandup/kubestandup/pkg/cmd/standup"
	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

func main() {
	os.Exit(util.Run(standup.NewCmd))
}
