/* SPDX-License-Identifier: BSD-3-Clause */
/* history_parts.c - which parts the campaigns of a history name, and since when. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "verdict/history_impl.h"

/* Number of each row of each campaign's list among all parts. */
static int known_part(const struct history *h, const struct parts *list, int *const *id, int k,
                      const struct part_row *r)
{
    for (int j = k - 1; j >= 0; j--) {
        const struct part_row *same =
            compare_find_part(&list[j], h->campaign[j]->topo, r, h->campaign[k]->topo);
        if (same)
            return id[j][same - list[j].row];
    }
    return -1;
}

static void add_seen(struct history *h, const struct parts *list, int **id, int k)
{
    char speed[PART_SPEED];

    id[k] = mem_calloc((size_t)list[k].rows + 1, sizeof(int));
    for (int i = 0; i < list[k].rows; i++) {
        const struct part_row *r = &list[k].row[i];
        int at = known_part(h, list, id, k, r);
        if (at < 0) {
            at = h->parts;
            MEM_PUSH(h->part, h->parts) =
                (struct history_part){.speed = mem_calloc((size_t)h->campaigns, sizeof(char *))};
        }
        struct history_part *p = &h->part[at];
        id[k][i] = at;
        free(p->what);
        free(p->speed[k]);
        p->what = mem_strdup(r->name);
        p->kind = r->kind;
        p->speed[k] = mem_strdup(part_speed(r, speed));
    }
}

static const struct part_row *row_of(const struct parts *list, int *const *id, int k, int part)
{
    for (int i = 0; i < list[k].rows; i++)
        if (id[k][i] == part)
            return &list[k].row[i];
    return NULL;
}

static void judge_part(struct history *h, const struct parts *list, int *const *id, int part,
                       double tolerance)
{
    struct history_part *p = &h->part[part];
    const int last = h->campaigns - 1;
    const struct part_row *now = row_of(list, id, last, part), *first = NULL;
    bool seen = false, gone = false;

    for (int k = 0; k <= last; k++) {
        p->returned |= gone && p->speed[k];
        seen |= p->speed[k] != NULL;
        gone |= seen && !p->speed[k];
        if (!p->speed[k])
            p->speed[k] = mem_strdup("-");
        first = first ? first : row_of(list, id, k, part);
    }
    bool from_start = row_of(list, id, 0, part) != NULL;
    p->is = !now                         ? PART_GONE
            : !from_start || p->returned ? PART_NEW
                                         : compare_part(first, now, tolerance);
}

int history_parts(struct history *h, double tolerance, struct err *err)
{
    struct parts *list = mem_calloc((size_t)h->campaigns, sizeof(*list));
    int **id = mem_calloc((size_t)h->campaigns, sizeof(*id)), rc = 0;

    for (int k = 0; k < h->campaigns && rc == 0; k++) {
        rc = compare_list_parts(&list[k], h->campaign[k], err);
        if (rc == 0)
            add_seen(h, list, id, k);
    }
    for (int i = 0; i < h->parts && rc == 0; i++)
        judge_part(h, list, id, i, tolerance);
    for (int k = 0; k < h->campaigns; k++) {
        parts_free(&list[k]);
        free(id[k]);
    }
    free(list);
    free(id);
    return rc;
}
