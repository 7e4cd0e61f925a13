// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package guard answers one question: who is this server? It is the only place
// in the project that turns a kubeconfig into a connection, and the connection
// that it hands out cannot change a cluster before the answer was proved.
//
// Connect resolves the kubeconfig once. Server.Config returns a rest.Config
// that carries no credentials and no certificates, only a transport: whatever
// is built from it, by us or by a library, today or later, sends its requests
// through the guard or not at all. Server.Prove compares the live server with
// an Expectation. Until it has succeeded the transport lets through what cannot
// change anything; after it the transport reads the server's identity again
// before a mutation, at most every ten seconds. Nothing switches this off.
package guard
