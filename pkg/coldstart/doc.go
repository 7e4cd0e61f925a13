// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package coldstart predicts what becomes of an empty cluster that Flux
// reconciles from a repository: which tiers converge at their first attempt,
// which only after a retry, and which never do.
//
// It models kustomize-controller and helm-controller as a monotone system of
// facts (a kind is served, a stage is applied, a tier is Ready) and solves it
// twice: once for what comes true at all, and once for what has come true by
// necessity before a given attempt. It is pure: builds, charts and knowledge
// in, a prediction out.
package coldstart
