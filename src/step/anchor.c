/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/anchor.h"

#include <math.h>

#include "base/units.h"

enum { ROUNDS = 200 };

int anchor_solve(double *stretch, double (*seconds)(void *ctx, double stretch), void *ctx,
                 double measured, struct err *err)
{
    double a = ANCHOR_MIN, b = ANCHOR_MAX;
    double fa = seconds(ctx, a) - measured, fb = seconds(ctx, b) - measured;
    char got[UNITS_TEXT], want[UNITS_TEXT];

    if (!isfinite(fa) || !isfinite(fb))
        return err_set(err, "the anchor cannot be predicted");
    if (fa > 0 || fb < 0)
        return err_set(err, "with compute %s the anchor is predicted at %s, and %s were measured",
                       fa > 0 ? "all but left out" : "taking 50 times as long",
                       units_seconds_text(got, (fa > 0 ? fa : fb) + measured),
                       units_seconds_text(want, measured));
    /* False position with the Illinois rule (Dowell and Jarratt 1971): a step is nearly linear in
     * the stretch, so this takes a handful of rounds; halving bounds it where a kink does not. */
    for (int i = 0, side = 0; i < ROUNDS; i++) {
        double s = i % 8 == 7 ? (a + b) / 2 : (a * fb - b * fa) / (fb - fa);
        double f = seconds(ctx, s) - measured;
        *stretch = s;
        if (fabs(f) <= 1e-9 * measured || b - a <= 1e-12 * b)
            break;
        if (f > 0) {
            b = s;
            fb = f;
            fa = side > 0 ? fa / 2 : fa;
            side = 1;
        } else {
            a = s;
            fa = f;
            fb = side < 0 ? fb / 2 : fb;
            side = -1;
        }
    }
    return 0;
}
