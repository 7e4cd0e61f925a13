// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// APIVersion is the version of every report that programs may read.
const APIVersion = "kubestandup.dev/v1alpha1"

// TypeMeta is what a report of that kind embeds inline.
func TypeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: APIVersion, Kind: kind}
}

// PrintObject writes a report as json or yaml, ending in a newline. A report
// without its apiVersion and kind is an error: a program could not tell what
// it reads.
func PrintObject(w io.Writer, format string, report any) error {
	data, err := encode(report)
	if err != nil {
		return fmt.Errorf("report as %s: %w", format, err)
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil || meta.APIVersion == "" || meta.Kind == "" {
		return fmt.Errorf("report of type %T has no apiVersion and kind", report)
	}
	switch format {
	case "json":
	case "yaml":
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("report as yaml: %w", err)
		}
	default:
		return fmt.Errorf("report as %s: only json and yaml are known", format)
	}
	_, err = w.Write(data)
	return err
}

// encode indents as kubectl does. Messages hold < and & that are meant for
// people, not for a browser, so they are not escaped.
func encode(report any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(report); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
