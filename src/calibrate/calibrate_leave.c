/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_leave.c - predict steps from constants fitted to other rows (calibrate.h). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "calibrate/anchor.h"
#include "calibrate/calibrate_impl.h"

/* A constant that the other rows do not determine has the value that a fit to the left-out ones gave
 * it: a publisher's own factor on messages.  Use what was known before any step. */
static void forget(struct constants *fitted, const struct calibration *k)
{
    for (int i = 0; i < k->constants; i++)
        for (int c = 0; c < fitted->count && !k->constant[i].fitted; c++)
            if (!strcmp(fitted->constant[c].name, k->constant[i].name))
                fitted->constant[c].value = k->constant[i].prior;
}

static int leave_group(struct batch *b, const struct constants *c, bool *out, const bool *of,
                       struct err *err)
{
    const struct calibrate_opts opts = {.left = out};
    struct constants fitted;
    struct calibration k;
    double *solved = mem_calloc((size_t)b->rows + 1, sizeof(*solved));

    constants_copy(&fitted, c);
    int rc = calibrate(&k, b, &fitted, &opts, err);
    if (rc == 0)
        forget(&fitted, &k);
    for (int i = 0; i < b->rows && rc == 0; i++)
        if (of[i])
            batch_predict_row(b, i, &fitted);
    for (int i = 0; i < b->rows && rc == 0; i++)
        if (of[i])
            anchor_row(b, i, &fitted, solved);
    calibration_free(&k);
    constants_free(&fitted);
    free(solved);
    return rc;
}

int calibrate_leave_out(struct batch *b, const struct constants *c, enum leave by, const bool *left,
                        void (*progress)(double done, const char *what), struct err *err)
{
    enum { FOLDS = 10 };
    static const char *const tenth[FOLDS] = {"tenth 1", "tenth 2", "tenth 3", "tenth 4",
                                             "tenth 5", "tenth 6", "tenth 7", "tenth 8",
                                             "tenth 9", "tenth 10"};
    bool *out = mem_calloc((size_t)b->rows + 1, sizeof(*out));
    bool *of = mem_calloc((size_t)b->rows + 1, sizeof(*of));
    const char **group = NULL;
    int *in = mem_ints(b->rows, -1), groups = 0, rc = 0;

    for (int i = 0; i < b->rows; i++) {
        const char *name = calibrate_group(&b->row[i], by);
        if (b->row[i].status != BATCH_PREDICTED)
            continue;
        for (int k = 0; k < groups && in[i] < 0; k++)
            in[i] = !strcmp(group[k], name) ? k : -1;
        if (in[i] < 0) {
            in[i] = groups;
            MEM_PUSH(group, groups) = name;
        }
    }
    int folds = by == LEAVE_FAMILY && groups > FOLDS ? FOLDS : groups;
    for (int fold = 0; fold < folds && rc == 0; fold++) {
        for (int i = 0; i < b->rows; i++) {
            of[i] = in[i] >= 0 && in[i] % folds == fold;
            out[i] = of[i] || (left && left[i]);
            if (of[i])
                b->row[i].group = folds < groups ? tenth[fold] : group[in[i]];
        }
        if (progress)
            progress((double)fold / folds, folds < groups ? tenth[fold] : group[fold]);
        rc = leave_group(b, c, out, of, err);
    }
    free(group);
    free(out);
    free(of);
    free(in);
    return rc;
}
