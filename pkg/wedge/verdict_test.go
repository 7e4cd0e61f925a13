// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"strings"
	"testing"
)

// TestWithoutValues: the value of a Secret is cut wherever an error quotes it,
// whether the Secret is named before it or after; the path of the field stays.
func TestWithoutValues(t *testing.T) {
	const value = "99887766"
	for text, want := range map[string]string{
		"failed to create typed patch object (c-sec/s; /v1, Kind=Secret): .stringData.pin: expected string, got &value.valueUnstructured{Value:" + value + "}": "failed to create typed patch object (c-sec/s; /v1, Kind=Secret): .stringData.pin: expected string, got (left out)",
		".stringData.pin: expected string, got &value.valueUnstructured{Value:" + value + "}, in (c-sec/s; /v1, Kind=Secret)":                                  ".stringData.pin: expected string, got (left out)",
		"secret/s: .data.a: value.valueUnstructured{Value:" + value + "}":                                                                                      "secret/s: .data.a: value.valueUnstructured{Value:(left out)",
		`secrets "s": .type: got "` + value + `"`:                                                            `secrets "s": .type: got "(left out)`,
		`data[pin]: Invalid value: "` + value + "\": bad\nin Secret s":                                       `data[pin]: Invalid value: (left out)`,
		`Secret "s" is invalid: type: Unsupported value: "` + value + `"`:                                    `Secret "s" is invalid: type: Unsupported value: (left out)`,
		`Secret "s" is invalid: data: Invalid value: "a: expected map, got ` + value + `"`:                   `Secret "s" is invalid: data: Invalid value: (left out)`,
		"(c/s; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string":       "(c/s; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string",
		"Secret/c-sec/s: expected numeric (int or float), got &value.valueUnstructured{Value:" + value + "}": "Secret/c-sec/s: expected numeric (int or float), got (left out)",
		"Secret/c-sec/s not found": "Secret/c-sec/s not found",
	} {
		got := withoutValues(text)
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if strings.Contains(got, value) {
			t.Errorf("the value is in %s", got)
		}
	}
}
