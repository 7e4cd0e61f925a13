// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Command demo plays the incident on a real control plane: a cold cluster
// wedges on a second-order CRD, and the plugins find out why, break the
// deadlock and bring every tier up. It prints the commands as a person types
// them, and their real output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	keep := flag.Bool("keep", false, "Leave the cluster up in the end, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
