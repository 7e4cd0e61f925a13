// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package config finds and reads standup.yaml: one file per cluster, beside
// the cluster's entry point in the GitOps repository, that says which cluster
// is meant and what is special about it.
//
// It is read strictly. A field that is unknown, given twice, empty or of
// another type is an error with file, line and column: a misspelt `uid` must
// not become an expectation without one.
package config
