// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package wait waits for tiers: it holds one list and watch per kind, makes
// the graph anew on each event, and ends when a question about that graph is
// answered. It never polls and never sleeps.
package wait
