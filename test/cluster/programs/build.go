// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/test/cluster/internal/filelock"
)

// Build makes what is missing and returns the complete set. It says on out
// what it builds, how long that takes the first time, and nothing when all is
// there. Two processes may run it at once: one builds, the other waits.
// Go's build cache makes a later build of the same versions a matter of linking.
func Build(ctx context.Context, out io.Writer) (*Set, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return build(ctx, root, recipes(), out)
}

func build(ctx context.Context, root string, recipes []recipe, out io.Writer) (*Set, error) {
	var todo []recipe
	var total time.Duration
	for _, r := range recipes {
		dir, err := r.dir(root)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err == nil || r.providedBy(os.Getenv("KUBEBUILDER_ASSETS")) {
			continue
		}
		todo = append(todo, r)
		total += r.takes
	}
	if len(todo) > 1 {
		fmt.Fprintf(out, "Building the control plane's programs from Go modules: about %s on two cores the first time, and not again.\n", total.Round(time.Minute))
	}
	for _, r := range todo {
		if err := r.build(ctx, root, out); err != nil {
			return nil, fmt.Errorf("build %s: %w", r.name, err)
		}
	}
	return find(root, recipes)
}

func (r recipe) build(ctx context.Context, root string, out io.Writer) error {
	dir, err := r.dir(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	names := strings.Join(r.programs(), ", ")
	lock, err := filelock.Acquire(ctx, filepath.Join(filepath.Dir(dir), r.name+".lock"), func() {
		fmt.Fprintf(out, "  %s: another process is building it; waiting\n", names)
	})
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := os.Stat(dir); err == nil {
		return nil // built by the process that held the lock
	}

	fmt.Fprintf(out, "  %s (about %s the first time) …", names, short(r.takes))
	begun := time.Now()
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+r.name+"-")
	if err == nil {
		defer os.RemoveAll(temp)
		err = r.buildInto(ctx, filepath.Join(root, "tools", r.name), temp)
	}
	if err == nil {
		err = os.Chmod(temp, 0o755)
	}
	if err == nil {
		// The last step, so that a folder which is there is whole.
		err = os.Rename(temp, dir)
	}
	if err != nil {
		fmt.Fprintln(out, " failed")
		return err
	}
	fmt.Fprintf(out, " %s\n", short(time.Since(begun).Round(time.Second)))
	return nil
}

func (r recipe) buildInto(ctx context.Context, module, dir string) error {
	ldflags := "-s -w"
	if r.stamp != "" {
		version, err := goTool(ctx, module, "list", "-m", "-f", "{{.Version}}", r.stamp)
		if err != nil {
			return err
		}
		ldflags += stamp(version)
	}
	bin := filepath.Join(dir, "bin")
	for _, name := range slices.Sorted(maps.Keys(r.builds)) {
		// -trimpath keeps the machine's paths out, and the build cache common
		// to all checkouts.
		if _, err := goTool(ctx, module, "build", "-trimpath", "-ldflags", ldflags, "-o", filepath.Join(bin, name), r.builds[name]); err != nil {
			return err
		}
	}
	for name, target := range r.links {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	for _, m := range r.manifests {
		source, err := goTool(ctx, module, "list", "-m", "-f", "{{.Dir}}", m.module)
		if err != nil {
			return err
		}
		if err := copyYAML(filepath.Join(source, filepath.FromSlash(m.from)), filepath.Join(dir, m.to)); err != nil {
			return err
		}
	}
	if r.run == "" {
		return nil
	}
	program := filepath.Join(bin, r.run)
	if output, err := exec.CommandContext(ctx, program, filepath.Join(dir, r.run)).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", r.run, err, output)
	}
	return os.Remove(program)
}

// goTool runs the go command in a tool's module and returns what it printed.
func goTool(ctx context.Context, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	// A module file that is not complete shall fail, not be completed: what is
	// built is what is committed. A caller's workspace or flags play no part.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", errors.New("go not found in PATH: install Go to build the programs")
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", fmt.Errorf("go %s in tools/%s: %w\n%s", args[0], filepath.Base(module), err, withoutDownloads(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// withoutDownloads drops the hundreds of lines that stand before an error.
func withoutDownloads(s string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	}), "\n")
}

// stamp is the linker's flags for what a release of Kubernetes knows of itself.
func stamp(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"} {
			fmt.Fprintf(&flags, " -X %s.%s=%s", pkg, name, value)
		}
	}
	return flags.String()
}

func copyYAML(from, to string) error {
	files, err := fs.Glob(os.DirFS(from), "*.yaml")
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no manifests in %s", from)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// short prints 4m30s as such, and 2m0s as 2m.
func short(d time.Duration) string {
	s := d.String()
	if s != "0s" && strings.HasSuffix(s, "m0s") {
		return strings.TrimSuffix(s, "0s")
	}
	return s
}
