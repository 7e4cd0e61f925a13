// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package build says what a tier applies: the objects that kustomize-controller
// would send to the API server, in its order, from the artifact of a live
// source or from a working tree.
//
// It runs the controller's own code (fluxcd/pkg/kustomize, fluxcd/pkg/ssa) in
// the controller's own order
// (kustomize-controller internal/controller/kustomization_controller.go,
// v1.9.6: reconcile, build, apply). What it does not do is decrypt: encrypted
// values stay as they are and are marked. Nothing is ever written into the
// tree that a tier is built from, and no network is used unless the caller
// allows remote bases.
package build
