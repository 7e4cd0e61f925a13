// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Command manifests writes what CDI's module generates of its own manifests
// into a folder: cdi-operator.yaml, as a release has it (namespace, first-order
// CRD, RBAC, Deployment), and crds/NAME.yaml, one per CRD.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"kubevirt.io/containerized-data-importer/pkg/operator/resources"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/namespaced"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/operator"
	"kubevirt.io/containerized-data-importer/tools/util"
)

// The first document of manifests/templates/release/cdi-operator.yaml.in.
const namespace = `apiVersion: v1
kind: Namespace
metadata:
  labels:
    cdi.kubevirt.io: ""
  name: cdi
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	crds := filepath.Join(dir, "crds")
	if err := os.MkdirAll(crds, 0o755); err != nil {
		return err
	}
	for name, text := range resources.CDICRDs {
		if err := os.WriteFile(filepath.Join(crds, name+".yaml"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	version, err := version()
	if err != nil {
		return err
	}
	image := func(name string) string { return "kubevirt/" + name + ":" + version }
	objects, err := operator.CreateOperatorResourceGroup("everything", &operator.FactoryArgs{
		Image: image("cdi-operator"),
		NamespacedArgs: namespaced.FactoryArgs{
			Namespace:              "cdi",
			OperatorVersion:        version,
			DeployClusterResources: "true",
			Verbosity:              "1",
			PullPolicy:             "IfNotPresent",
			ControllerImage:        image("cdi-controller"),
			ImporterImage:          image("cdi-importer"),
			ClonerImage:            image("cdi-cloner"),
			OvirtPopulatorImage:    image("cdi-importer"),
			APIServerImage:         image("cdi-apiserver"),
			UploadProxyImage:       image("cdi-uploadproxy"),
			UploadServerImage:      image("cdi-uploadserver"),
		},
	})
	if err != nil {
		return err
	}
	out := bytes.NewBufferString(namespace)
	for _, object := range objects {
		if err := util.MarshallObject(object, out); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cdi-operator.yaml"), out.Bytes(), 0o644)
}

// version is that of the module, so that it is written down in go.mod alone.
func version() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == "kubevirt.io/containerized-data-importer" {
				return dep.Version, nil
			}
		}
	}
	return "", errors.New("version of CDI's module not found in the build")
}
