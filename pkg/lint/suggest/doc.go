// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package suggest writes the patches that mend a deadlock and a hollow gate: a
// unified diff against the working tree, which `git apply` and `patch -p1`
// take.
//
// Second-order resources move down, into a tier of their own, and never the
// trigger up onto the tier that everything waits for. The user's files are
// edited as text, by the positions of their YAML: what is not meant to change
// stays as it is, byte for byte. Each edit is read back and compared with what
// it should have done; where they differ, or where no patch can be safe, the
// answer is a Refusal, which says why and what to do by hand.
package suggest
