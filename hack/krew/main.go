// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Krew makes the krew manifests of a snapshot release out of the templates in
// plugins/krew, as krew-release-bot will of a release, but from the archives on
// disk. It fails when a template names an archive that is not there, and when
// the manifests that goreleaser wrote say anything else.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	templates := flag.String("templates", "plugins/krew", "the `folder` of the templates")
	dist := flag.String("dist", "dist", "the `folder` that goreleaser wrote to")
	out := flag.String("out", "dist/manifests", "the `folder` to write the manifests to")
	flag.Parse()
	if err := run(*templates, *dist, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
