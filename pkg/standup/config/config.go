// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

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

	Cluster Cluster `yaml:"cluster"`
	Flux    Flux    `yaml:"flux"`

	positions map[string]Position
}

// Cluster says which cluster is meant.
type Cluster struct {
	// Server is the URL of the API server.
	Server string `yaml:"server"`
	// UID is that of the Namespace kube-system.
	UID string `yaml:"uid"`
	// Domain is the DNS domain under which the cluster publishes.
	Domain string `yaml:"domain"`
}

// Flux says where Flux is.
type Flux struct {
	// Namespace is that of the controllers.
	Namespace string `yaml:"namespace"`
	// Root is the Kustomization that everything hangs from.
	Root string `yaml:"root"`
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
