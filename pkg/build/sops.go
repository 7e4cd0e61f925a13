// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"encoding/base64"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sopsField is where SOPS keeps its metadata.
const sopsField = "sops"

// isEncrypted is true when SOPS encrypted the object, or one of the files that
// kustomize generated the Secret from (kustomize-controller
// internal/decryptor/decryptor.go isSOPSEncryptedResource,
// sopsFormatToMarkerBytes, v1.9.6).
func isEncrypted(o *unstructured.Unstructured) bool {
	if mac, _, _ := unstructured.NestedString(o.Object, sopsField, "mac"); mac != "" {
		return true
	}
	if isRejected(o) {
		return true
	}
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return false
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	for key, value := range data {
		if key == "sops_mac" { // an encrypted env file becomes one key a line
			return true
		}
		text, _ := value.(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err == nil && holdsMarker(decoded) {
			return true
		}
	}
	return false
}

func holdsMarker(content []byte) bool {
	for _, marker := range []string{`"mac": "ENC[`, "sops_mac=ENC[", "[sops]", "mac: ENC["} {
		if bytes.Contains(content, []byte(marker)) {
			return true
		}
	}
	return false
}

// isRejected is the controller's own test for a Secret that it will not apply
// (decryptor.go IsEncryptedSecret). It is made after normalisation, which
// drops the SOPS metadata of a Secret whose values are all under stringData:
// that one is applied, ciphertext and all.
func isRejected(o *unstructured.Unstructured) bool {
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" || decryptDisabled(o) {
		return false
	}
	_, found, _ := unstructured.NestedFieldNoCopy(o.Object, sopsField)
	return found
}

// decrypts is true when the controller would try to decrypt the object.
func decrypts(spec *kustomizev1.Kustomization, o *unstructured.Unstructured) bool {
	return spec.Spec.Decryption != nil && spec.Spec.Decryption.Provider != "" && !decryptDisabled(o)
}

func decryptDisabled(o *unstructured.Unstructured) bool {
	return strings.EqualFold(o.GetAnnotations()[kustomizev1.GroupVersion.Group+"/decrypt"], kustomizev1.DisabledValue)
}
