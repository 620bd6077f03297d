/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/anchor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "step/predict.h"

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

/* --- does it fit the question? --- */

/* Settings of a recipe that software is made for: an anchor of another one says less. */
static const char *const kept[] = {"dtype", "stack", "lora", "recompute"};

static const struct setting *setting_of(const char *key)
{
    for (int i = 0; i < recipe_settings; i++)
        if (!strcmp(recipe_setting[i].key, key))
            return &recipe_setting[i];
    return NULL;
}

/* What differs, in words, "" for nothing; returns how many things do. */
static int differences(char *buf, size_t size, const struct anchor *a, const struct question *q,
                       const char *release)
{
    int n = 0;
    size_t used = 0;

    buf[0] = '\0';
    if (strcmp(a->model, q->model->name) != 0 && ++n)
        used += (size_t)snprintf(buf, size, "model %s", a->model);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        char mine[64], its[64];
        const struct setting *s = setting_of(kept[i]);
        recipe_get(its, sizeof(its), &a->recipe, s);
        recipe_get(mine, sizeof(mine), q->recipe, s);
        bool open = !strcmp(mine, "any");
        if (!open && strcmp(its, mine) != 0 && ++n && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "", kept[i],
                                     its);
    }
    if (release && a->release && strcmp(release, a->release) != 0 && ++n && used < size)
        snprintf(buf + used, size - used, "%srelease %s", used ? ", " : "", a->release);
    return n;
}

static bool beyond_software(const struct anchor *a)
{
    return a->stretch < ANCHOR_TRUST_MIN || a->stretch > ANCHOR_TRUST_MAX;
}

int anchor_apply(const struct anchor *a, struct question *q, const char *release, struct err *err)
{
    const char *gpu = q->fabric ? q->fabric->gpu.name : NULL;
    double alone = constants_get(q->constants, "error.unanchored")->value;
    char buf[256];

    if (gpu && a->gpu && strcmp(gpu, a->gpu) != 0)
        return err_set(err,
                       "anchor %s was measured on %s and the question is about %s: what one step "
                       "says of its software does not carry over to another GPU",
                       a->name, a->gpu, gpu);
    q->stretch = a->stretch;
    int n = differences(buf, sizeof(buf), a, q, release);
    q->doubt = alone * sqrt(n + (beyond_software(a) ? 4 : 0));
    return 0;
}

void anchor_notes(struct prediction *p, const struct anchor *a, const struct question *q,
                  const char *release, double without)
{
    char measured[UNITS_TEXT], predicted[UNITS_TEXT], was[UNITS_TEXT], buf[160];

    predict_note(p,
                 "anchor %.100s: %s measured, %s predicted without it; without it this step is %s",
                 a->name, units_seconds_text(measured, a->measured),
                 units_seconds_text(predicted, a->predicted), units_seconds_text(was, without));
    if (differences(buf, sizeof(buf), a, q, release))
        predict_note(p, "the anchor is of another recipe (%s): the interval is wider", buf);
    if (beyond_software(a))
        predict_note(
            p,
            "the anchor makes compute take %.3g of its time: no software explains that, so "
            "the set-ups may differ in more than is said; the interval is wider",
            a->stretch);
}
