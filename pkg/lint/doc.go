// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package lint says what a repository does to a cold cluster: rules over the
// builds of its tiers, their graph and the prediction of package coldstart.
// A rule has a page in docs/rules.
package lint
