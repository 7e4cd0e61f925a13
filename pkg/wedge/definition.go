// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import "k8s.io/apimachinery/pkg/runtime/schema"

// storage is the version in which objects are written.
func (d *Definition) storage() string {
	for _, v := range d.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// readable is a version in which objects can be read, the storage version if
// it is one: reading that needs no conversion.
func (d *Definition) readable() string {
	served := ""
	for _, v := range d.Versions {
		switch {
		case v.Served && v.Storage:
			return v.Name
		case v.Served && served == "":
			served = v.Name
		}
	}
	return served
}

// converts is true when objects have to be converted at all: a webhook of a
// definition with one version is never called.
func (d *Definition) converts() bool {
	storage := d.storage()
	for _, v := range d.Versions {
		if v.Served && v.Name != storage {
			return true
		}
	}
	for _, v := range d.StoredVersions {
		if v != storage {
			return true
		}
	}
	return false
}

func (w *World) definition(gk schema.GroupKind) *Definition {
	for _, d := range w.Definitions {
		if d.Defines == gk {
			return d
		}
	}
	return nil
}

func (d *Definition) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Defines.Group, Version: d.readable(), Resource: d.Plural}
}

func (d *Definition) apiVersion() string { return d.resource().GroupVersion().String() }
