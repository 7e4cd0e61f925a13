// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package repository reads a working tree as Flux would: which clusters it
// holds, where each one begins, and what every tier of each applies. It needs
// no cluster and no network, and never guesses: what comes from another
// repository is named as outside.
package repository
