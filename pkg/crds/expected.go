// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Unestablished is why a CRD is not Established: "" when it is. A CRD that is
// not there comes with who is known to create it, where anybody is.
func (c *Cluster) Unestablished(ctx context.Context, name string) (string, error) {
	crd, err := c.dynamic.Resource(customResourceDefinition()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "it does not exist" + whoCreates(c.book, name), nil
	}
	if err != nil {
		return "", fmt.Errorf("get CRD %s: %w", name, err)
	}
	ok, err := established(crd)
	switch {
	case err != nil:
		return err.Error(), nil //nolint:nilerr // that is the answer
	case crd.GetDeletionTimestamp() != nil:
		return "it is being deleted", nil
	case !ok:
		return "the API server has not accepted its names yet", nil
	}
	return "", nil
}

// whoCreates completes the sentence that a CRD does not exist.
func whoCreates(book *knowledge.Base, name string) string {
	if book == nil {
		return ""
	}
	is := func(k knowledge.Kind) bool { return k.CRD() == name }
	for _, r := range book.Relations() {
		switch {
		case slices.ContainsFunc(r.Registers, is),
			slices.ContainsFunc(r.Triggers, func(t knowledge.Trigger) bool { return t.CRD() == name }):
			return fmt.Sprintf("; installing %s registers it", r.System)
		case slices.ContainsFunc(r.Creates, is) && len(r.Triggers) > 0:
			return fmt.Sprintf("; %s creates it once it has reconciled a %s", r.System, r.Triggers[0].Kind)
		case slices.ContainsFunc(r.Creates, is):
			return fmt.Sprintf("; %s creates it when it starts", r.System)
		}
	}
	return ""
}
