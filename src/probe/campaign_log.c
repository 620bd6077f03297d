/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/measure_impl.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "probe/watch/watch.h"

static void note_worst(struct worst_pair *w, const struct topo *t, const struct round *r,
                       const struct point *p)
{
    if (!op_is_pair(p->op) || p->stop == STOP_FAILED)
        return;
    int tier = topo_tier(t->tier, t->tiers, &t->endpoint[p->src].place, &t->endpoint[p->dst].place);
    double *typical = &w->typical[tier][p->op], sec = p->sec.median;

    if (w->bytes[tier][p->op] != p->bytes) { /* another size: start again */
        w->bytes[tier][p->op] = p->bytes;
        *typical = sec;
        return;
    }
    double share = *typical / sec;
    *typical *= sec > *typical ? 1.02 : 0.98;
    if (share < w->share && share < 0.9) {
        w->share = share;
        snprintf(w->text, sizeof(w->text), "%d>%d %.2fx%s", p->src, p->dst, share,
                 r->groups > 1 ? " (in parallel)" : "");
    }
}

void campaign_log_open(struct campaign_log *l, struct points_log *points, const struct topo *topo,
                       const struct plan *plan, int ranks)
{
    *l = (struct campaign_log){.points = points,
                               .topo = topo,
                               .ranks = ranks,
                               .worst = {.share = 1},
                               .work = plan_points(plan)};
    if (!points)
        return;
    l->inbox = mem_calloc((size_t)ranks, sizeof(*l->inbox));
    progress_start(&l->progress, l->work);
}

void campaign_log_close(struct campaign_log *l)
{
    progress_end(&l->progress);
    free(l->inbox);
}

void campaign_log_add(struct campaign_log *l, const struct round *r, struct point *p)
{
    if ((p->stop == STOP_FAILED || p->wrong) && !p->note[0])
        snprintf(p->note, sizeof(p->note), "a member failed without a word");
    points_add(l->points, p);
    note_worst(&l->worst, l->topo, r, p);
}

/* Whose GPU suffered meanwhile, or which port; a point that failed or is wrong has its own words.
 */
static void merge_taint(const struct campaign_log *l, const struct plan_group *pg,
                        struct taint_port *ports, struct point *p)
{
    for (int i = 0; i < pg->size && !p->note[0]; i++)
        if (l->inbox[pg->members[i]].taint[0])
            taint_note(p, l->topo, pg->members[i], l->inbox[pg->members[i]].taint);
    if (!p->note[0])
        taint_port_mark(ports, p, pg->members, pg->size);
}

void campaign_log_merge(struct campaign_log *l, const struct round *r, struct taint_port *ports)
{
    taint_port_hear(ports, &l->inbox->port, sizeof(*l->inbox));
    for (int rank = 0; rank < l->ranks; rank++) {
        if (l->inbox[rank].state != 2)
            continue;
        struct point p = l->inbox[rank].point;
        const struct plan_group *pg = &r->group[p.group];
        for (int i = 0; i < pg->size && !p.note[0]; i++) {
            const struct campaign_record *other = &l->inbox[pg->members[i]];
            if (other->state && other->point.note[0])
                memcpy(p.note, other->point.note, sizeof(p.note));
        }
        if (p.stop != STOP_FAILED && !p.wrong)
            merge_taint(l, pg, ports, &p);
        campaign_log_add(l, r, &p);
    }
}

bool campaign_log_too_slow(const struct campaign_log *l, const struct round *r, int epoch,
                           size_t bytes, double max_run)
{
    const struct points *all = points_all(l->points);

    for (int i = all->count - 1; i >= 0 && all->count - i <= r->groups; i--) {
        const struct point *p = &all->point[i];
        if (p->round == r->id && p->epoch == epoch && p->bytes < bytes && p->stop != STOP_FAILED &&
            p->sec.median * (double)bytes / (double)p->bytes > max_run && p->sec.median > 1e-3)
            return true;
    }
    return false;
}

static void show_progress(struct campaign_log *l, const struct round *r, size_t bytes)
{
    char note[160], size[UNITS_TEXT];

    snprintf(note, sizeof(note), "%s %s %s x%d%s%s", stage_name[r->stage], op_name(r->op),
             units_bytes_text(size, (double)bytes), r->groups, l->worst.text[0] ? "  worst " : "",
             l->worst.text);
    progress_show(&l->progress, l->work_done, note);
}

int campaign_log_commit(struct campaign_log *l, const struct round *r, size_t bytes,
                        struct err *err)
{
    int rc = points_commit(l->points, err);

    l->work_done += r->groups;
    campaign_log_tell_kept(l);
    show_progress(l, r, bytes);
    return rc;
}

void campaign_log_tell_kept(const struct campaign_log *l)
{
    if (l->points)
        watch_points(points_all(l->points)->count, (int)fmin(l->work, INT_MAX));
}
