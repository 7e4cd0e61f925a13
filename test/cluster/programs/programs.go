// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package programs builds the programs that the tests run against (etcd, the
// Kubernetes control plane, Flux's controllers, CDI's operator, both Helms) from
// Go modules alone, and finds them again. Beside the programs it keeps the manifests that
// come out of the same modules: CRDs are never written by hand, since a CRD
// that differs in a detail (a status subresource, say) changes what a
// controller does.
//
// Everything lives in .cache/tools/NAME-KEY at the root of the repository,
// where KEY covers the module files, the recipe and the Go version, so a folder
// that is there is whole and current, and looking takes milliseconds.
package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const modulePath = "github.com/kubestandup/kubestandup"

// MissingError lists programs that are not built yet.
type MissingError struct{ Programs []string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("programs missing: %s: run make tools", strings.Join(e.Programs, ", "))
}

// Set is a complete set of programs and manifests.
type Set struct {
	// dirs maps a recipe's name to its folder in the cache.
	dirs map[string]string
	// owner maps a program's name to its recipe's.
	owner map[string]string
	// assets overrides etcd and kube-apiserver: KUBEBUILDER_ASSETS.
	assets string
}

// Find returns the programs of the repository that the working directory is
// in. The error is a *MissingError when some are not built.
func Find() (*Set, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return find(root, recipes())
}

func find(root string, recipes []recipe) (*Set, error) {
	set := &Set{
		dirs:   map[string]string{},
		owner:  map[string]string{},
		assets: os.Getenv("KUBEBUILDER_ASSETS"),
	}
	var missing []string
	for _, r := range recipes {
		dir, err := r.dir(root)
		if err != nil {
			return nil, err
		}
		set.dirs[r.name] = dir
		for _, name := range r.programs() {
			set.owner[name] = r.name
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			for _, program := range r.programs() {
				if set.assets == "" || !slices.Contains(assetPrograms(), program) {
					missing = append(missing, program)
				}
			}
		} else if err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil, &MissingError{missing}
	}
	return set, nil
}

// Path returns the file of a program: etcd, kube-apiserver,
// kube-controller-manager, kubectl, source-controller, kustomize-controller,
// helm-controller, cdi-operator, cdi-apiserver, or Helm's own helm3 and helm4.
func (s *Set) Path(program string) string {
	if s.assets != "" && slices.Contains(assetPrograms(), program) {
		return filepath.Join(s.assets, program)
	}
	return filepath.Join(s.dirs[s.owner[program]], "bin", program)
}

// FluxCRDs returns the files of the CRDs of the three Flux controllers.
func (s *Set) FluxCRDs() ([]string, error) {
	var files []string
	for _, name := range []string{"source", "kustomize", "helm"} {
		found, err := filepath.Glob(filepath.Join(s.dirs[name], "crds", "*.yaml"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// FluxManager returns the folder with the Deployment (and Service) that a Flux
// controller's module ships, with the module's version as its image tag.
func (s *Set) FluxManager(controller string) string {
	return filepath.Join(s.dirs[s.owner[controller]], "manager")
}

// CDIOperatorManifest is CDI's own install, as a release ships it: namespace
// cdi, the CRD cdis.cdi.kubevirt.io (the only first-order one), RBAC and the
// Deployment of the operator.
func (s *Set) CDIOperatorManifest() string {
	return filepath.Join(s.dirs["cdi"], "manifests", "cdi-operator.yaml")
}

// CDICRDs is the folder with every CRD of CDI, a file each. All but
// cdis.cdi.kubevirt.io are second-order: cdi-operator makes them itself.
func (s *Set) CDICRDs() string {
	return filepath.Join(s.dirs["cdi"], "manifests", "crds")
}

// Root is the root of the repository that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+modulePath+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("repository not found: run this inside a checkout of " + modulePath)
		}
		dir = parent
	}
}

func assetPrograms() []string { return []string{"etcd", "kube-apiserver"} }

// providedBy tells whether all programs of the recipe come from KUBEBUILDER_ASSETS.
func (r recipe) providedBy(assets string) bool {
	if assets == "" {
		return false
	}
	for _, p := range r.programs() {
		if !slices.Contains(assetPrograms(), p) {
			return false
		}
	}
	return true
}

// programs names what the recipe leaves in bin.
func (r recipe) programs() []string {
	names := slices.Collect(maps.Keys(r.links))
	for name := range r.builds {
		if name != r.run && name != r.name {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{r.name}
	}
	slices.Sort(names)
	return names
}

func (r recipe) dir(root string) (string, error) {
	key, err := r.key(filepath.Join(root, "tools", r.name))
	if err != nil {
		return "", err
	}
	return filepath.Join(root, ".cache", "tools", r.name+"-"+key), nil
}

func (r recipe) key(module string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %s %s/%s\n", r, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ext := filepath.Ext(path)
		if d.IsDir() || ext != ".go" && ext != ".mod" && ext != ".sum" {
			return nil
		}
		name, err := filepath.Rel(module, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(h, "\n%s\n", filepath.ToSlash(name))
		_, err = io.Copy(h, f)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("recipe %s: %w", r.name, err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
