// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package printers writes what the commands found: tables for people, whose
// columns are data, and versioned objects for programs. It knows no plugin,
// and it is the place where text that came from a server is made safe for a
// terminal.
package printers
