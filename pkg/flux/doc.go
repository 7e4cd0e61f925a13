// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package flux reads everything that Flux keeps in a cluster, in a number of
// requests that does not depend on how much there is, and returns it as plain
// values: a Snapshot knows no client and never changes.
package flux
