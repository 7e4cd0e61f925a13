// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package layout holds the repository to its own rules: in which order
// packages may import each other, which of them are pure, and how a file
// begins and how long it may be. It is tests alone.
package layout
