/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/job/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const sent_name[] = {"as predicted", "another number", "other sizes", "not sent",
                                 "not predicted"};

static bool alike(double a, double b)
{
    return fabs(a - b) <= SENT_ALIKE * b;
}

/* Merge predicted messages of the same operation, group and size. */
static void list_predicted(struct sent *s, const struct traffic *t)
{
    for (int i = 0; i < t->messages; i++) {
        const struct message *m = &t->message[i];
        int k = 0;
        while (k < s->rows && !(s->row[k].op == m->op && span_equal(s->row[k].span, m->span) &&
                                alike(m->bytes, s->row[k].bytes)))
            k++;
        if (k == s->rows)
            MEM_PUSH(s->row, s->rows) = (struct sent_row){
                .is = SENT_NOT, .label = m->label, .op = m->op, .span = m->span, .bytes = m->bytes};
        s->row[k].count += m->count;
    }
}

/* Compare operation and groups.  Pipeline messages go to or from the rank one stride away. */
static bool same_groups(const struct sent_row *p, const struct record_row *r)
{
    if (p->op != r->op)
        return false;
    if (r->axis < 0)
        return abs(r->stride) == p->span.stride;
    return p->span.size == r->size && p->span.stride == r->stride;
}

static void add(struct sent_row *p, const struct record_row *r)
{
    double bytes = p->sent_bytes * p->sent_count + (double)r->bytes * r->count;

    p->sent_count += r->count;
    p->sent_bytes = p->sent_count > 0 ? bytes / p->sent_count : (double)r->bytes;
    p->sizes++;
}

/* Find the predicted row of recorded row r: by size, or with `any` also by groups alone.  Returns
 * -1 if none. */
static int belongs(const struct sent *s, int predicted, const struct record_row *r, bool any)
{
    int best = -1;

    for (int i = 0; i < predicted; i++) {
        const struct sent_row *p = &s->row[i];
        bool size = alike((double)r->bytes, p->bytes);
        if (same_groups(p, r) && (size || (any && p->is == SENT_NOT)) && (best < 0 || size))
            best = i;
    }
    return best;
}

static enum sent_is verdict(const struct sent_row *p)
{
    if (!p->sizes)
        return SENT_NOT;
    if (!alike(p->sent_bytes, p->bytes))
        return SENT_SIZES;
    return alike(p->sent_count, p->count) ? SENT_SAME : SENT_COUNT;
}

void sent_compare(struct sent *s, const struct traffic *t, const struct record_steps *steps)
{
    bool *taken = mem_calloc((size_t)steps->rows + 1, sizeof(*taken));

    *s = (struct sent){.rows = 0};
    list_predicted(s, t);
    int predicted = s->rows;
    for (int any = 0; any < 2; any++) {
        for (int i = 0; i < steps->rows; i++) {
            int at = taken[i] ? -1 : belongs(s, predicted, &steps->row[i], any);
            taken[i] |= at >= 0;
            if (at >= 0)
                add(&s->row[at], &steps->row[i]);
        }
        for (int i = 0; i < predicted; i++)
            s->row[i].is = verdict(&s->row[i]);
    }
    for (int i = 0; i < steps->rows; i++) {
        const struct record_row *r = &steps->row[i];
        if (!taken[i])
            MEM_PUSH(s->row, s->rows) = (struct sent_row){.is = SENT_MORE,
                                                          .op = r->op,
                                                          .span = {r->size, r->stride},
                                                          .bytes = NAN,
                                                          .count = NAN,
                                                          .sent_bytes = (double)r->bytes,
                                                          .sent_count = r->count,
                                                          .sizes = 1};
    }
    free(taken);
}
