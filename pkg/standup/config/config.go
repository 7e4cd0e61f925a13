// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubestandup/kubestandup/pkg/guard"
)

// FileName is the name that discovery looks for.
const FileName = "standup.yaml"

// maxSize is many times what the longest standup.yaml takes.
const maxSize = 1 << 20

// Config is a standup.yaml. Everything in it is optional.
type Config struct {
	// Path is the file, as messages name it.
	Path string `yaml:"-"`

	// APIVersion, Kind and Metadata are those of Header: all of them, or none.
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   Metadata `yaml:"metadata"`

	Cluster Cluster `yaml:"cluster"`
	Flux    Flux    `yaml:"flux"`
	// Variables are those that tell this cluster from another one, and those
	// that may still be placeholders.
	Variables []Variable `yaml:"variables"`
	Nodes     Nodes      `yaml:"nodes"`
	CRDs      CRDs       `yaml:"crds"`
	Resume    Resume     `yaml:"resume"`
	Verify    Verify     `yaml:"verify"`

	positions map[string]Position
}

// Metadata is that of a manifest which is never applied.
type Metadata struct {
	// Name is any.
	Name string `yaml:"name"`
	// Annotations have config.kubernetes.io/local-config.
	Annotations map[string]any `yaml:"annotations"`
}

// Header begins a standup.yaml that may stand in any folder that Flux builds.
// Without a kustomization.yaml there, which is how `flux bootstrap` leaves it,
// Flux takes every *.yaml in it for a manifest, and the whole tier fails for one
// that is none (fluxcd/pkg/kustomize kustomize_generator.go, v1.41.0). Kustomize
// leaves what has this annotation out of what it builds.
const Header = "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: standup\n  annotations: {" + localConfig + ": \"true\"}\n"

const (
	apiVersion  = "kubestandup.dev/v1alpha1"
	kind        = "Standup"
	localConfig = "config.kubernetes.io/local-config"
)

// Cluster says which cluster is meant.
type Cluster struct {
	// Server is the URL of the API server.
	Server string `yaml:"server"`
	// UID is that of the Namespace kube-system.
	UID string `yaml:"uid"`
	// Domain is the DNS domain under which the cluster publishes, in lower case
	// and without a dot at its ends.
	Domain string `yaml:"domain"`
}

// Flux says where Flux is.
type Flux struct {
	// Namespace is that of the controllers.
	Namespace string `yaml:"namespace"`
	// Root is the name of the Kustomization that everything hangs from.
	Root string `yaml:"root"`
}

// Variable is what is known of one variable that tiers are substituted with.
type Variable struct {
	// Name as it stands in ${NAME}. No two entries have the same.
	Name string `yaml:"name" required:"true"`
	// Required: every tier that is substituted with variables has to know it,
	// with a value.
	Required bool `yaml:"required"`
	// Forbid are globs of values that it must not have: another cluster's. In a
	// glob * stands for any text and ? for any one character.
	Forbid []string `yaml:"forbid"`
	// Placeholder is a glob of values that stand for none: TBD-*. Blocks and
	// Degrades need it.
	Placeholder string `yaml:"placeholder"`
	// Blocks are the tiers that cannot work while the value is a placeholder;
	// resume leaves them suspended. NAME, NAMESPACE/NAME, with ks/ or hr/
	// before it where both kinds have one of that name.
	Blocks []string `yaml:"blocks"`
	// Degrades are the tiers that come up and then fail at what they are for.
	Degrades []string `yaml:"degrades"`
}

// Nodes is the least that the cluster must have. What is empty is not asked.
type Nodes struct {
	// Count is how many have to be Ready.
	Count int `yaml:"count"`
	// MinKernel and MinKubelet are versions, as 5.15 and 1.30.
	MinKernel  string `yaml:"minKernel"`
	MinKubelet string `yaml:"minKubelet"`
	// MinMemory is a quantity, as 16Gi, of each node.
	MinMemory string `yaml:"minMemory"`
}

// CRDs are what the step of that name does beside what it derives.
type CRDs struct {
	// Expect are names of CRDs, as storageprofiles.cdi.kubevirt.io, that have to
	// be Established.
	Expect []string `yaml:"expect"`
	// FromCharts are the charts whose CRDs are applied before Flux installs
	// them, because they run with their CRDs switched off.
	FromCharts []FromChart `yaml:"fromCharts"`
}

// FromChart names a chart by the HelmRelease that Flux reconciles: there is no
// second place for its version.
type FromChart struct {
	// HelmRelease is NAMESPACE/NAME. No two entries have the same.
	HelmRelease string `yaml:"helmRelease" required:"true"`
	// Values are laid over those of the HelmRelease: what switches the CRDs on.
	Values map[string]any `yaml:"values"`
}

// Resume is how suspended tiers are resumed.
type Resume struct {
	// Skip are tiers that stay suspended; named as in Variable.Blocks.
	Skip []string `yaml:"skip"`
	// Timeout is how long one tier may take from when its dependencies are
	// met, as 10m; when it is absent, the timeout that Flux gives it and one
	// retry.
	Timeout time.Duration `yaml:"timeout"`
}

// Verify is what the step of that name proves beside what it derives.
type Verify struct {
	// Checks prove objects whose status kstatus cannot read.
	Checks []HealthCheck `yaml:"checks"`
}

// HealthCheck is a CEL check over the objects of one kind, as in the
// healthCheckExprs of a Kustomization.
type HealthCheck struct {
	// APIVersion is VERSION or GROUP/VERSION.
	APIVersion string `yaml:"apiVersion" required:"true"`
	Kind       string `yaml:"kind" required:"true"`
	// Namespace and Name narrow it to one namespace, or to one object.
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
	// Current is the expression that is true when the object is well.
	Current string `yaml:"current" required:"true"`
	// InProgress and Failed are looked at before Current, in this order.
	InProgress string `yaml:"inProgress"`
	Failed     string `yaml:"failed"`
}

// Position is a place in a file, counted from 1. A column of 0 is unknown.
type Position struct {
	Path         string
	Line, Column int
}

func (p Position) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("%s:%d", p.Path, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
}

// Position is where the value of a field stands; the field is named by its
// path, as in "cluster.server" or "variables[2].name".
func (c *Config) Position(field string) (Position, bool) {
	if c == nil {
		return Position{}, false
	}
	p, ok := c.positions[field]
	return p, ok
}

// Expectation is what the file expects of the server. No file expects nothing.
func (c *Config) Expectation() guard.Expectation {
	if c == nil || c.Cluster.Server == "" && c.Cluster.UID == "" {
		return guard.Expectation{}
	}
	at, ok := c.Position("cluster.server")
	if !ok {
		at, _ = c.Position("cluster.uid")
	}
	return guard.Expectation{Server: c.Cluster.Server, UID: c.Cluster.UID, Origin: at.String()}
}

// Flags are --config.
type Flags struct{ File string }

// AddFlags registers --config.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.File, "config", f.File,
		"Path to the cluster's "+FileName+"; by default the nearest one going up from the working directory, else the only one below it in the repository")
}

// Load finds and reads the file for a command that runs in dir. It returns nil
// without an error when there is none. The errors are those of Find and Read.
func (f Flags) Load(dir string) (*Config, error) {
	path := f.File
	if path == "" {
		var err error
		if path, err = Find(dir); path == "" || err != nil {
			return nil, err
		}
	}
	return Read(path, shown(dir, path))
}

// Read reads one file, which messages call name.
func Read(path, name string) (*Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s is larger than %d KiB: this is not a %s", name, maxSize>>10, FileName)
	}
	return parse(data, name)
}

// shown is the path as a person in dir would type it, when that is shorter.
func shown(dir, path string) string {
	abs, err := filepath.Abs(dir)
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(abs, path)
	if err != nil || len(rel) >= len(path) {
		return path
	}
	return rel
}
