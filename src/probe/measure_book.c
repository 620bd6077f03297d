/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/measure_book.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "probe/plan_cost.h"
#include "probe/watch/watch.h"

void book_open(struct book *b, struct points_log *log, const struct topo *topo,
               const struct plan *plan, int ranks)
{
    *b = (struct book){.log = log, .topo = topo, .ranks = ranks, .points = plan_points(plan)};
    worst_open(&b->worst);
    if (!log)
        return;
    b->inbox = mem_calloc((size_t)ranks, sizeof(*b->inbox));
    progress_start(&b->progress, b->points);
}

void book_close(struct book *b)
{
    progress_end(&b->progress);
    free(b->inbox);
}

void book_keep(struct book *b, const struct round *r, struct point *p)
{
    if ((p->stop == STOP_FAILED || p->wrong) && !p->note[0])
        snprintf(p->note, sizeof(p->note), "a member failed without a word");
    points_add(b->log, p);
    worst_note(&b->worst, b->topo, r, p);
}

/* Whose GPU suffered meanwhile, or which port; a point that failed or is wrong has its own words.
 */
static void merge_taint(const struct book *b, const struct plan_group *pg, struct port_taint *ports,
                        struct point *p)
{
    for (int i = 0; i < pg->size && !p->note[0]; i++)
        if (b->inbox[pg->members[i]].taint[0])
            taint_note(p, b->topo, pg->members[i], b->inbox[pg->members[i]].taint);
    if (!p->note[0])
        port_taint_mark(ports, p, pg->members, pg->size);
}

void book_merge(struct book *b, const struct round *r, struct port_taint *ports)
{
    port_taint_hear(ports, &b->inbox->port, sizeof(*b->inbox));
    for (int rank = 0; rank < b->ranks; rank++) {
        if (b->inbox[rank].state != 2)
            continue;
        struct point p = b->inbox[rank].point;
        const struct plan_group *pg = &r->group[p.group];
        for (int i = 0; i < pg->size && !p.note[0]; i++) {
            const struct record *other = &b->inbox[pg->members[i]];
            if (other->state && other->point.note[0])
                memcpy(p.note, other->point.note, sizeof(p.note));
        }
        if (p.stop != STOP_FAILED && !p.wrong)
            merge_taint(b, pg, ports, &p);
        book_keep(b, r, &p);
    }
}

bool book_too_slow(const struct book *b, const struct round *r, int epoch, size_t bytes,
                   double max_run)
{
    const struct points *all = points_all(b->log);

    for (int i = all->count - 1; i >= 0 && all->count - i <= r->groups; i--) {
        const struct point *p = &all->point[i];
        if (p->round == r->id && p->epoch == epoch && p->bytes < bytes && p->stop != STOP_FAILED &&
            p->sec.median * (double)bytes / (double)p->bytes > max_run && p->sec.median > 1e-3)
            return true;
    }
    return false;
}

static void show_progress(struct book *b, const struct round *r, size_t bytes)
{
    char note[160], size[UNITS_TEXT];

    snprintf(note, sizeof(note), "%s %s %s x%d%s%s", stage_name[r->stage], op_name(r->op),
             units_bytes_text(size, (double)bytes), r->groups, b->worst.text[0] ? "  worst " : "",
             b->worst.text);
    progress_show(&b->progress, b->work_done, note);
}

int book_commit(struct book *b, const struct round *r, size_t bytes, struct err *err)
{
    int rc = points_commit(b->log, err);

    b->work_done += r->groups;
    book_tell_kept(b);
    show_progress(b, r, bytes);
    return rc;
}

void book_tell_kept(const struct book *b)
{
    if (b->log)
        watch_points(points_all(b->log)->count, (int)fmin(b->points, INT_MAX));
}
