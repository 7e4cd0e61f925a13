// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Ports are taken from below the range that kernels use for outgoing
// connections (from 32768 on Linux) and below NodePorts: a port that the kernel
// could hand to any connection might be gone when a stopped component comes back.
const lowestPort, highestPort = 10000, 29999

// freePort returns a port of loopback that nobody listens on. Another process
// may take it before it is used: the caller starts over then.
func freePort() (int, error) {
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if portIsFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port found on loopback")
}

func portIsFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// awaitFreePort waits until nobody listens on a port.
func awaitFreePort(ctx context.Context, port int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !portIsFree(port) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d stays in use: %w", port, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}
