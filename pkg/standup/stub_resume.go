// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import "context"

// Resume: TEMPORARY, so that the rest compiles. Whoever writes Resume deletes this file.
func Resume(context.Context, *Env) (*StepReport, error) { panic("not written yet") }
