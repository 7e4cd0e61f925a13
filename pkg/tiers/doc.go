// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package tiers turns a snapshot of Flux into the graph of its tiers: levels,
// cycles, what blocks what exactly as the controllers decide it, and the root
// cause of each red tier. It is pure: a snapshot and a time in, a graph out.
package tiers
