#!/usr/bin/env bash
# SPDX-FileCopyrightText: The kubestandup authors
# SPDX-License-Identifier: Apache-2.0

# Checks the snapshot in dist/ as krew's reviewers and users would: the manifest
# of each plugin, then an install of every platform's archive by a real krew,
# each into a folder of its own, and a run of the one for this platform.
set -euo pipefail
cd "$(dirname "$0")/.."

krew=$(hack/tool.sh --path krew)
validate=$(hack/tool.sh --path validate-krew-manifest)
go run ./hack/krew

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
here=$(go env GOOS)/$(go env GOARCH)

# Says what a command printed only when it fails.
quietly() {
  "$@" >"$root/log" 2>&1 </dev/null || {
    cat "$root/log" >&2
    echo "error: $*" >&2
    return 1
  }
}

for manifest in dist/manifests/*.yaml; do
  plugin=$(basename "$manifest" .yaml)
  quietly "$validate" -manifest "$manifest" -skip-install
  for platform in {linux,darwin,windows}/{amd64,arm64}; do
    os=${platform%/*} arch=${platform#*/}
    archive=$(echo dist/kubectl-"$plugin"_v*_"${os}_$arch".*)
    folder=$root/$os-$arch
    quietly env KREW_ROOT="$folder" KREW_OS="$os" KREW_ARCH="$arch" \
      "$krew" install --manifest="$manifest" --archive="$archive"
    binary=kubectl-$plugin
    [ "$os" = windows ] && binary=$binary.exe
    for file in LICENSE "$binary"; do
      if [ -z "$(find "$folder/store/$plugin" -name "$file")" ]; then
        echo "error: $archive: krew installed no $file from it" >&2
        exit 1
      fi
    done
    if [ "$platform" = "$here" ]; then
      # By the name that kubectl runs, on a PATH with nothing else on it.
      PATH=$folder/bin "kubectl-$plugin" version
    fi
  done
  echo "$plugin: krew installs it on every platform"
done
