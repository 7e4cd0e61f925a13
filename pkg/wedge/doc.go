// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package wedge finds the states that no controller leaves by itself, and
// repairs them.
//
// It works in four steps. Observe reads a cluster into a World, which is
// values and no client. Each cause, one to a file, is a pure function from
// that World to verdicts: what is wedged, the evidence, why no controller ends
// it, and the smallest repair as a list of actions. The list of all verdicts is
// the Plan, which prints itself and changes nothing. An Executor carries a plan
// out: it looks at each object once more, backs it up, acts pinned to what the
// plan saw, and waits for the outcome.
package wedge
