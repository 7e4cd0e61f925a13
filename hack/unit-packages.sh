#!/usr/bin/env bash
# SPDX-FileCopyrightText: The kubestandup authors
# SPDX-License-Identifier: Apache-2.0

# Lists the packages whose tests start no control plane: those that do import
# test/cluster, or stand below test/.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
  awk -v module="$module" '
    index($1, module "/test/") == 1 { next }
    { for (i = 2; i <= NF; i++) if (index($i, module "/test/") == 1) next; print $1 }'
