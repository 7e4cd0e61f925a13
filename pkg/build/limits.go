// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import "fmt"

// limits are what one source may take. The controllers have none and rely on
// the memory limit of their pod; a workstation has no such thing.
type limits struct {
	// download and unpacked are in bytes.
	download, unpacked int64
	// files counts directories too.
	files int
}

// defaultLimits are some hundred times what large GitOps repositories take.
func defaultLimits() limits {
	return limits{download: 256 << 20, unpacked: 1 << 30, files: 200_000}
}

func (l limits) tooLong() error {
	return fmt.Errorf("it is larger than %d bytes, which no source of manifests is; %s", l.download, exclude)
}

func (l limits) tooLarge() error {
	return fmt.Errorf("it holds more than %d bytes of files, which no source of manifests does; %s", l.unpacked, exclude)
}

func (l limits) tooManyFiles() error {
	return fmt.Errorf("it holds more than %d files, which no source of manifests does; %s", l.files, exclude)
}

const exclude = "exclude what is no manifest in .sourceignore"
