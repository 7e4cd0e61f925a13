#!/usr/bin/env bash
# SPDX-FileCopyrightText: The kubestandup authors
# SPDX-License-Identifier: Apache-2.0

# Runs a tool that a module below hack/tools pins. It is built into .cache when
# it is not there, by a name that holds what it was built from: the module
# files and the version of Go.
#
#   hack/tool.sh NAME [ARGUMENT...]
#   hack/tool.sh --path NAME          prints where it is, after building it
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

print=
if [ "$1" = --path ]; then
  print=1
  shift
fi
name=$1
shift

# A module pins one tool, or several of one project: krew has two.
for folder in "$root"/hack/tools/*/; do
  package=$(awk -v name="$name" '
    $1 == "tool" { $0 = $2 }
    NF == 1 { path = $1; sub(/\/v[0-9]+$/, "", path); if (path ~ "/" name "$") { print $1; exit } }' "$folder/go.mod")
  [ -n "$package" ] && break
done
if [ -z "$package" ]; then
  echo "error: tool $name: no module below hack/tools pins it" >&2
  exit 2
fi

key=$(cat "$folder/go.mod" "$folder/go.sum" <(go version) | git hash-object --stdin | cut -c1-12)
binary=$root/.cache/hack/$name-$key
if [ ! -x "$binary" ]; then
  echo "Building $name, once (golangci-lint and goreleaser take minutes)" >&2
  mkdir -p "$root/.cache/hack"
  CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly GOOS= GOARCH= \
    go -C "$folder" build -trimpath -ldflags '-s -w' -o "$binary.tmp$$" "$package"
  mv "$binary.tmp$$" "$binary"
fi
if [ -n "$print" ]; then
  echo "$binary"
  exit
fi
cd "$root"
exec "$binary" "$@"
