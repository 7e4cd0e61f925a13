// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the plugins as users run them, on a real control
// plane, side by side with what they would use otherwise. `make bench` runs it.
package bench
