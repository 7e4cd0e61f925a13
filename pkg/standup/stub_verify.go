// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import "context"

// Verify: TEMPORARY, so that the rest compiles. Whoever writes Verify deletes this file.
func Verify(context.Context, *Env) (*StepReport, error) { panic("not written yet") }
