// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// childAttributes puts a child into a group of its own, out of reach of the
// terminal's Ctrl-C, and lets the kernel kill it when its spawner's thread ends,
// which it does even when this process is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
