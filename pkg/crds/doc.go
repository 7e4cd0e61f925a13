// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package crds finds out why a tier lacks kinds, and breaks the deadlock in
// which the resource that would create them is kept back by them: it applies
// that one resource, the trigger, and nothing else.
package crds
