// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// writeGate edits the manifests of the tier and of its HelmReleases, which
// clusters may share.
func (d *Draft) writeGate(c *cluster, tier flux.Ref, g gate) error {
	if len(g.exprs)+len(g.checks) > 0 || g.wait {
		if err := d.writeSpec(c, tier, g); err != nil {
			return err
		}
	}
	for _, r := range g.releases {
		m, err := d.object(c, tier, r.ref)
		if err != nil {
			return err
		}
		if err := m.addItems(m.at, "healthCheckExprs", r.exprs...); err != nil {
			return err
		}
		c.expected[r.ref.Key()] = append(slices.Clip(c.expected[r.ref.Key()]), r.exprs...)
	}
	d.noteGate(c, tier, g)
	return nil
}

func (d *Draft) writeSpec(c *cluster, tier flux.Ref, g gate) error {
	m, defs, err := d.tier(c, tier, "wait", "healthChecks", "healthCheckExprs")
	if err != nil {
		return err
	}
	for _, is := range defs {
		if err := g.fits(is); err != nil {
			return err
		}
	}
	if g.wait {
		err = m.setField(m.at, "spec", "wait", yes())
	}
	if err == nil {
		err = m.addItems(m.at, "healthChecks", g.checks...)
	}
	if err == nil {
		err = m.addItems(m.at, "healthCheckExprs", g.exprs...)
	}
	if err != nil {
		return err
	}
	for _, is := range defs {
		key := is.tier.Key()
		is.specs[key] = g.onto(is.specs[key])
	}
	return nil
}

// fits refuses a gate that another cluster, which shares the manifest, could not
// pass.
func (g gate) fits(is def) error {
	followed := is.followed(is.tier)
	if followed == nil {
		return nil // new, and like the others
	}
	if g.wait && !harmless(*followed) {
		return refuse("%s of %s shares the manifest, and wait: true could keep it from ever being Ready", is.tier.Name, is.Name)
	}
	for _, source := range g.sources {
		there := is.applies(is.tier.Key(), source)
		if source.Kind == flux.KustomizationKind {
			there = is.has(source.Key())
		}
		if len(g.checks) > 0 && !there {
			return refuse("%s of %s shares the manifest, and applies no %s that it could wait for", is.tier.Name, is.Name, source)
		}
	}
	return nil
}

// onto is the spec with the gate.
func (g gate) onto(spec kustomizationSpec) kustomizationSpec {
	spec.Wait = spec.Wait || g.wait
	for _, check := range g.checks {
		spec.HealthChecks = append(slices.Clip(spec.HealthChecks), meta.NamespacedObjectKindReference{
			APIVersion: scalar(field(check, "apiVersion")), Kind: scalar(field(check, "kind")),
			Name: scalar(field(check, "name")), Namespace: scalar(field(check, "namespace")),
		})
	}
	for _, expr := range g.exprs {
		spec.HealthCheckExprs = append(slices.Clip(spec.HealthCheckExprs), kustomize.CustomHealthCheck{
			APIVersion: scalar(field(expr, "apiVersion")), Kind: scalar(field(expr, "kind")),
		})
	}
	return spec
}

func (d *Draft) noteGate(c *cluster, tier flux.Ref, g gate) {
	d.add(note{d.in(c) + fmt.Sprintf("Gate: %s is Ready only once %s.", tier.Name, strings.Join(g.proves, " and ")), c, tier.Key()})
}
