// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster/internal/filelock"
)

// cdiNamespace is the namespace that CDI's programs fall back to.
const cdiNamespace = "cdi"

// InstallCDI applies CDI's own first-order install, as a release ships it:
// namespace, CRD cdis.cdi.kubevirt.io, RBAC and the operator's Deployment. It
// starts nothing. (CDIInstall is its text, to push it as part of a tree.)
func (c *Cluster) InstallCDI(ctx context.Context) error {
	text, err := c.CDIInstall()
	if err != nil {
		return err
	}
	return c.Apply(ctx, text)
}

// CDIInstall is the text of CDI's own install.
func (c *Cluster) CDIInstall() (string, error) {
	text, err := os.ReadFile(c.programs.CDIOperatorManifest())
	return string(text), err
}

// cdiOperatorCommand runs the operator with the environment that its own
// Deployment gives it.
func (c *Cluster) cdiOperatorCommand(ctx context.Context) (command, error) {
	if err := c.dropCDILease(ctx); err != nil {
		return command{}, err
	}
	text, err := c.CDIInstall()
	if err != nil {
		return command{}, err
	}
	objects, err := decodeYAML([]byte(text))
	if err != nil {
		return command{}, err
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment); err != nil {
			return command{}, err
		}
		cmd := command{health: "http://127.0.0.1:8444/readyz"}
		for _, v := range deployment.Spec.Template.Spec.Containers[0].Env {
			cmd.env = append(cmd.env, v.Name+"="+v.Value)
		}
		return cmd, nil
	}
	return command{}, errors.New("deployment of cdi-operator not found in its own install: run make tools")
}

// takeCDITurn waits until no other cluster of this machine runs the operator:
// up to ten minutes if ctx has no deadline.
func (c *Cluster) takeCDITurn(ctx context.Context) error {
	if c.cdiTurn != nil {
		return nil
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
	}
	path := filepath.Join(os.TempDir(), "kubestandup-cdi-operator.lock")
	turn, err := filelock.Acquire(ctx, path, nil)
	c.cdiTurn = turn
	return err
}

// endCDITurn lets another cluster run the operator.
func (c *Cluster) endCDITurn() {
	c.cdiTurn.Release()
	c.cdiTurn = nil
}

// dropCDILease ends the lease of an operator that was killed, which it keeps for
// 15 seconds. That it is dead is known: there is one turn.
func (c *Cluster) dropCDILease(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cdiNamespace, Name: "cdi-operator-leader-election-helper"}}
	return client.IgnoreNotFound(c.client.Delete(ctx, lease))
}

// cdiAPIServerCommand waits for the certificate that cdi-operator makes, and
// puts it where the server reads it, as a kubelet mounts a Secret.
func (c *Cluster) cdiAPIServerCommand(ctx context.Context) (command, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cdiNamespace, Name: "cdi-apiserver-server-cert"}}
	err := c.Until(ctx, secret, func() bool {
		return len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0
	})
	if err != nil {
		return command{}, err
	}
	// The operator tells the webhooks' configurations whom to trust a moment
	// later than they exist. Where images are pulled that is long before the
	// server runs; here it would be a race.
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cdi-api-datavolume-mutate"}}
	err = c.Until(ctx, hook, func() bool {
		return len(hook.Webhooks) > 0 && len(hook.Webhooks[0].ClientConfig.CABundle) > 0
	})
	if err != nil {
		return command{}, err
	}
	for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if err := os.MkdirAll(c.file("cdi-apiserver"), 0o700); err != nil {
			return command{}, err
		}
		if err := os.WriteFile(c.file("cdi-apiserver", name), secret.Data[name], 0o600); err != nil {
			return command{}, err
		}
	}
	return command{
		args: []string{
			"-port", c.port(CDIAPIServer, "https"),
			"-cert-file", c.file("cdi-apiserver", corev1.TLSCertKey),
			"-key-file", c.file("cdi-apiserver", corev1.TLSPrivateKeyKey),
		},
		health: "https://" + c.address(CDIAPIServer, "https") + "/healthz",
	}, nil
}
