// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package knowledge says who creates which CRD. A kind that git or a chart
// registers is first-order and is found in a build; a kind that a controller
// registers at run time, because it reconciled a trigger, is second-order and
// is found nowhere but here.
//
// What is known is data, in data/*.yaml, which a caller may extend; how to write
// such a file is in docs/knowledge.md. It also says what charts register whose
// content nobody has, and which kinds have an effect that no Ready proves. The
// package also reads the messages in which Flux's controllers say that a kind
// is missing. It is pure: it knows no client, and which kinds a cluster serves
// is the caller's to find out.
package knowledge
