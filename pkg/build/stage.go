// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The stages of one apply, in order. All objects of a stage are dry-run before
// any of them is applied, so one unknown kind keeps the whole stage, and every
// later one, off the cluster (fluxcd/pkg/ssa manager_apply.go ApplyAllStaged,
// v0.76.2).
const (
	// StageDefinitions holds CRDs, Namespaces and ClusterRoles; they are
	// waited for.
	StageDefinitions = 1
	// StageClasses holds every kind whose name ends in Class; waited for.
	StageClasses = 2
	// StageCustom holds the kinds of --custom-apply-stage-kinds; not waited
	// for.
	StageCustom = 3
	// StageRest holds everything else.
	StageRest = 4
)

// Stage is the stage in which kustomize-controller applies the object. custom
// holds the kinds of the controller's flag --custom-apply-stage-kinds.
func Stage(obj *unstructured.Unstructured, custom map[schema.GroupKind]struct{}) int {
	switch {
	case ssautil.IsClusterDefinition(obj):
		return StageDefinitions
	case ssautil.IsClassDefinition(obj):
		return StageClasses
	case ssautil.IsCustomStage(obj, custom):
		return StageCustom
	default:
		return StageRest
	}
}
