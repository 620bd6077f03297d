/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/ladder.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SYSTEM, VERSION, OP, RANKS, BYTES, LATENCY, COLUMNS };

static const char *const column[COLUMNS] = {"system", "nccl_version", "op",
                                            "ranks",  "bytes",        "latency_us"};

/* The ladder that a row belongs to, or a new one; rows of a ladder mostly follow each other. */
static struct ladder *ladder_of(struct ladders *l, char *const *cell, const int *col, int ranks)
{
    for (int i = l->count - 1; i >= 0; i--) {
        struct ladder *x = &l->ladder[i];
        if (x->ranks == ranks && !strcmp(x->op, cell[col[OP]]) &&
            !strcmp(x->system, cell[col[SYSTEM]]) && !strcmp(x->version, cell[col[VERSION]]))
            return x;
    }
    struct ladder fresh = {cell[col[SYSTEM]], cell[col[VERSION]], cell[col[OP]], ranks, {0}};
    MEM_PUSH(l->ladder, l->count) = fresh;
    return &l->ladder[l->count - 1];
}

static int take_row(struct ladders *l, int row, const int *col, struct err *err)
{
    const struct tsv *t = &l->table;
    double bytes, us;
    int ranks;

    for (int k = SYSTEM; k <= OP; k++)
        if (!*t->row[row].cell[col[k]])
            return err_data(err, "%s:%d: %s is empty", t->path, t->row[row].line, column[k]);
    if (tsv_int(t, row, col[RANKS], 1, 1 << 24, &ranks, err) < 0 ||
        tsv_double(t, row, col[BYTES], 1, 1e18, &bytes, err) < 0 ||
        tsv_double(t, row, col[LATENCY], 1e-6, 1e12, &us, err) < 0)
        return -1;
    struct ladder *x = ladder_of(l, t->row[row].cell, col, ranks);
    for (int i = 0; i < x->curve.points; i++)
        if (x->curve.point[i].bytes == bytes)
            return err_data(err, "%s:%d: a second time of %s %s %s of %d ranks at %.0f bytes",
                            t->path, t->row[row].line, x->system, x->version, x->op, ranks, bytes);
    double sec = us * 1e-6;
    curve_add(&x->curve, (struct curve_point){bytes, sec, sec, sec, 1});
    return 0;
}

int ladders_load(struct ladders *l, const char *path, struct err *err)
{
    int col[COLUMNS], rc = 0;

    *l = (struct ladders){0};
    if (tsv_load(&l->table, path, err) < 0)
        return -1;
    for (int k = 0; k < COLUMNS && rc == 0; k++)
        rc = (col[k] = tsv_column(&l->table, column[k], err)) < 0 ? -1 : 0;
    for (int i = 0; i < l->table.rows && rc == 0; i++)
        rc = take_row(l, i, col, err);
    if (rc == 0 && !l->count)
        rc = err_data(err, "%s: no rows", path);
    if (rc < 0)
        ladders_free(l);
    return rc;
}

void ladders_free(struct ladders *l)
{
    for (int i = 0; i < l->count; i++)
        curve_free(&l->ladder[i].curve);
    free(l->ladder);
    tsv_free(&l->table);
    *l = (struct ladders){0};
}

/* Predict from `rest` what it lacks of the ladder between its own ends. */
static void predict(const struct ladders *l, int ladder, const struct curve *rest,
                    struct miss **miss, int *count)
{
    const struct curve *c = &l->ladder[ladder].curve;

    for (int i = 0, k = 0; i < c->points && rest->points > 1; i++) {
        const struct curve_point *p = &c->point[i];
        while (k < rest->points && rest->point[k].bytes < p->bytes)
            k++;
        if (k == 0 || k == rest->points || rest->point[k].bytes == p->bytes)
            continue;
        struct miss m = {ladder, p->bytes, curve_time(rest, p->bytes) / p->sec - 1};
        MEM_PUSH(*miss, *count) = m;
    }
}

static void leave_each_out(const struct ladders *l, int ladder, struct miss **miss, int *count)
{
    const struct curve *c = &l->ladder[ladder].curve;

    for (int out = 1; out < c->points - 1; out++) {
        struct curve rest = {0};
        for (int i = 0; i < c->points; i++)
            if (i != out)
                curve_add(&rest, c->point[i]);
        predict(l, ladder, &rest, miss, count);
        curve_free(&rest);
    }
}

static void thin_out(const struct ladders *l, int ladder, double spacing, struct miss **miss,
                     int *count)
{
    const struct curve *c = &l->ladder[ladder].curve;

    for (int from = 0; from < c->points && c->point[from].bytes < spacing * c->point[0].bytes;
         from++) {
        struct curve rest = {0};
        for (int i = from; i < c->points; i++)
            if (!rest.points ||
                c->point[i].bytes >= spacing * rest.point[rest.points - 1].bytes * (1 - 1e-9))
                curve_add(&rest, c->point[i]);
        predict(l, ladder, &rest, miss, count);
        curve_free(&rest);
    }
}

void ladders_predict(const struct ladders *l, double spacing, struct miss **miss, int *count)
{
    for (int i = 0; i < l->count; i++)
        if (spacing > 1)
            thin_out(l, i, spacing, miss, count);
        else
            leave_each_out(l, i, miss, count);
}
