// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Command cluster is two Kubernetes programs in one file, because they share
// nearly all of their code and each would link for a minute. The name it
// is called by says which of them to be; called "cluster", its first argument
// does.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	program := filepath.Base(os.Args[0])
	if program == "cluster" && len(os.Args) > 1 {
		program = os.Args[1]
		os.Args = os.Args[1:]
	}
	switch program {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(kcm.NewControllerManagerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "usage: cluster kube-apiserver|kube-controller-manager [ARGS…]")
		os.Exit(2)
	}
}
