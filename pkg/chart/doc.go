// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package chart finds the chart of a HelmRelease at the version that Flux
// reconciles, with the values that it reconciles it with, and renders the
// CustomResourceDefinitions among its objects.
//
// It stands on the code of the controllers where that can be imported (Helm 4,
// fluxcd/pkg/chartutil), and does what they do where it cannot:
// helm-controller v1.6.5 and source-controller v1.9.6, whose files are named.
package chart
