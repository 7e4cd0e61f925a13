#!/usr/bin/env bash
# SPDX-FileCopyrightText: The kubestandup authors
# SPDX-License-Identifier: Apache-2.0

# Checks the snapshot in dist/ as krew's reviewers and users would: the manifest
# of each plugin, then an install of every platform's archive into a folder of
# its own, and a run of the one for this platform.
set -euo pipefail
cd "$(dirname "$0")/.."

krew=$(hack/tool.sh --path krew)
validate=$(hack/tool.sh --path validate-krew-manifest)
go run ./hack/krew

KREW_ROOT=$(mktemp -d)
export KREW_ROOT
trap 'rm -rf "$KREW_ROOT"' EXIT
here=$(go env GOOS)/$(go env GOARCH)

for manifest in dist/manifests/*.yaml; do
  plugin=$(basename "$manifest" .yaml)
  "$validate" -manifest "$manifest" -skip-install
  # This platform last: its install is the one that stays.
  for platform in {linux,darwin,windows}/{amd64,arm64} "$here"; do
    archive=$(echo dist/kubectl-"$plugin"_v*_"${platform%/*}"_"${platform#*/}".*)
    KREW_OS=${platform%/*} KREW_ARCH=${platform#*/} "$krew" uninstall "$plugin" >/dev/null 2>&1 || true
    KREW_OS=${platform%/*} KREW_ARCH=${platform#*/} "$krew" install --manifest="$manifest" --archive="$archive" >/dev/null
    if ! find "$KREW_ROOT/store/$plugin" -name LICENSE | grep -q .; then
      echo "error: $archive: no LICENSE was installed from it" >&2
      exit 1
    fi
  done
  # The name by which kubectl runs it, on a PATH with nothing else on it.
  PATH=$KREW_ROOT/bin "kubectl-$plugin" version
done
echo "krew installs all three plugins, on every platform"
