// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"

	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// durationPattern is what time.ParseDuration takes, less the sign.
const durationPattern = `^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// configSchema is the schema of standup.yaml: what an editor checks while it is
// written. What the decoder refuses beyond that is of meaning, not of shape.
func configSchema(root string) (name string, text []byte, err error) {
	r := &reflector{source: newSource(root), defs: map[string]*schema{}, config: true}
	s, err := r.object(reflect.TypeFor[config.Config]())
	if err != nil {
		return "", nil, fmt.Errorf("schema of %s: %w", config.FileName, err)
	}
	s.head("Standup", r.defs)
	s.Title = config.FileName
	text, err = s.encode()
	return "standup.json", text, err
}
