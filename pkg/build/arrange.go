// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Arrange makes another tree of files of this one, by the names that they have
// there: the artifact that source-watcher makes of a source. Names are relative
// to the roots. The caller closes both.
func (t *Tree) Arrange(files map[string]string) (arranged *Tree, err error) {
	if arranged, err = newTree(); err != nil {
		return nil, err
	}
	for name, of := range files {
		if err := t.link(arranged, name, of); err != nil {
			return nil, errors.Join(fmt.Errorf("%s of %s: %w", name, of, arranged.readable(t.readable(err))), arranged.Close())
		}
	}
	return arranged, nil
}

func (t *Tree) link(arranged *Tree, name, of string) error {
	from, err := t.Path(of)
	if err != nil {
		return err
	}
	to, err := arranged.Path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Link(from, to) // nobody writes to either
}
