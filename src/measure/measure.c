/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/measure_impl.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "measure/schedule_impl.h"
#include "watch/watch.h"

/* One size of a round: all its groups measure, then all ranks exchange once. */
struct turn {
    const struct round *round;
    int epoch;
    int step;     /* of the ladder of sizes */
    size_t after; /* next size; 0: last */
};

/* --- the log: reports of the ranks on one size become rows of points.tsv --- */

/* Report of a rank to rank 0 about one size; the part that is not empty is sent. */
struct campaign_record {
    int state;                /* 0: took no part, 1: member, 2: first member, whose numbers count */
    int rc;                   /* nonzero: this rank cannot continue */
    struct measure_turn took; /* from a first member */
    struct point_row row;
    /* copy of the point's note, because an address is invalid in other processes */
    char note[POINT_NOTE];
    struct taint_said taint;
};

/* Bytes to send: none for a member without news; the numbers of a first member. */
static size_t record_bytes(const struct campaign_record *rec)
{
    bool words = rec->note[0] || rec->taint.gpu[0] || rec->taint.port[0];

    return words || rec->rc  ? sizeof(*rec)
           : rec->state == 2 ? offsetof(struct campaign_record, note)
                             : 0;
}

/* The worst pair so far, for the progress line: the slowest relative to the running median of its
 * class.  That median moves up or down by a fixed share with each value, which is good enough for a
 * display. */
struct worst_pair {
    double typical[TIER_MAX][OP_COUNT];
    size_t bytes[TIER_MAX][OP_COUNT];
    double share;  /* of the typical bandwidth; starts at 1 */
    char text[64]; /* "17>89 0.60x"; "": no outlier */
};

/* Every rank has this struct, but only rank 0, with the points log, uses the contents.  The
 * functions below run on rank 0 only, unless stated otherwise. */
struct campaign_log {
    struct points_log *points; /* owned by the caller; NULL on other ranks */
    const struct topo *topo;
    int ranks;
    struct campaign_record
        *inbox;         /* a record per rank, zeros without a report; NULL on other ranks */
    int *heard, heards; /* ranks that reported */
    struct worst_pair worst;
    struct progress progress;
    double work_done, work; /* points; work: of the whole plan */
};

static void note_worst(struct worst_pair *w, const struct topo *t, const struct round *r,
                       const struct point *p)
{
    if (!op_is_pair(p->op) || p->stop == STOP_FAILED)
        return;
    int tier = topo_tier_by(t, p->src, p->dst, stage_by_nic(p->stage));
    double *typical = &w->typical[tier][p->op], sec = p->sec.median;

    if (w->bytes[tier][p->op] != p->bytes) { /* another size: restart */
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

/* Called on every rank. */
static void campaign_log_open(struct campaign_log *l, struct points_log *points,
                              const struct topo *topo, double work, int ranks)
{
    *l = (struct campaign_log){
        .points = points, .topo = topo, .ranks = ranks, .worst = {.share = 1}, .work = work};
    if (!points)
        return;
    l->inbox = mem_calloc((size_t)ranks, sizeof(*l->inbox));
    l->heard = mem_calloc((size_t)ranks, sizeof(*l->heard));
    progress_start(&l->progress, l->work);
}

static void campaign_log_add(struct campaign_log *l, const struct round *r, struct point_row *row)
{
    struct point *p = &row->point;

    if ((p->stop == STOP_FAILED || p->wrong) && !p->note)
        point_note(p, "a member failed without a word");
    points_add(l->points, row);
    if (l->progress.live)
        note_worst(&l->worst, l->topo, r, p);
}

static void campaign_log_hear(void *log, int rank, const void *data, size_t len)
{
    struct campaign_log *l = log;

    memcpy(&l->inbox[rank], data, len);
    l->heard[l->heards++] = rank;
}

/* Merge the inbox into points: the first member's record of each group, with the note of the member
 * that saw an error or whose GPU or port was affected. */
static void campaign_log_merge(struct campaign_log *l, const struct round *r, struct taint *taint)
{
    taint_hear(taint, &l->inbox->taint, sizeof(*l->inbox));
    for (int rank = 0; rank < l->ranks; rank++) {
        if (l->inbox[rank].state != 2)
            continue;
        struct point_row row = l->inbox[rank].row;
        struct point *p = &row.point;
        const char *said = l->inbox[rank].note;
        const struct plan_group *pg = &r->group[p->group];
        for (int i = 0; i < pg->size && !*said; i++) {
            const struct campaign_record *other = &l->inbox[pg->members[i]];
            if (other->state)
                said = other->note;
        }
        p->note = NULL;
        if (*said)
            point_note(p, "%s", said);
        if (p->stop != STOP_FAILED && !p->wrong)
            taint_mark(taint, p, pg->members, pg->size);
        campaign_log_add(l, r, &row);
    }
}

static void campaign_log_forget(struct campaign_log *l)
{
    for (int i = 0; i < l->heards; i++)
        memset(&l->inbox[l->heard[i]], 0, sizeof(*l->inbox));
    l->heards = 0;
}

/* True if the turn's next size would take longer than max_run seconds, extrapolated from the sizes
 * before. */
static bool campaign_log_too_slow(const struct campaign_log *l, const struct turn *t,
                                  double max_run)
{
    const struct points *all = points_all(l->points);
    const struct round *r = t->round;

    for (int i = all->count - 1; t->after && i >= 0 && all->count - i <= r->groups; i--) {
        const struct point *p = &all->point[i];
        if (p->round == r->id && p->epoch == t->epoch && p->bytes < t->after &&
            p->stop != STOP_FAILED && p->sec.median > 1e-3 &&
            p->sec.median * (double)t->after / (double)p->bytes > max_run)
            return true;
    }
    return false;
}

/* Tell the watch what is safe in the file, for its messages.  On any rank. */
static void campaign_log_tell_kept(const struct campaign_log *l)
{
    if (l->points)
        watch_points(points_all(l->points)->count, (int)fmin(l->work, INT_MAX));
}

/* A size of the round is complete: write it to the file and update the progress line. */
static int campaign_log_commit(struct campaign_log *l, const struct round *r, size_t bytes,
                               struct err *err)
{
    char note[160], size[UNITS_TEXT];
    int rc = points_commit(l->points, err);

    l->work_done += r->groups;
    campaign_log_tell_kept(l);
    snprintf(note, sizeof(note), "%s %s %s x%d%s%s", stage_name[r->stage], op_name(r->op),
             units_bytes_text(size, (double)bytes), r->groups, l->worst.text[0] ? "  worst " : "",
             l->worst.text);
    progress_show(&l->progress, l->work_done, note);
    return rc;
}

volatile sig_atomic_t measure_stop;

/* Key of a size that is in the log: round, group, epoch, bytes. */
struct done_size {
    double key[4];
};

static int by_key(const void *a, const void *b)
{
    return stats_order(a, b, 4);
}

/* State of a running campaign on one rank. */
struct campaign {
    struct world *world;
    const struct topo *topo;
    struct measure_opts opts; /* time cap filled in */
    struct campaign_log log;
    struct sampler sampler;
    struct done_size *done; /* sizes in the log at the start, sorted; on every rank */
    int dones;
    double started;
    int turn; /* turn number of the round's first size, in plan order */
    struct taint *taint;
    struct measure_clock clock;
};

static bool is_done(const struct campaign *c, const struct round *r, int g, int epoch, size_t bytes)
{
    struct done_size d = {{r->id, g, epoch, (double)bytes}};

    return c->dones && bsearch(&d, c->done, (size_t)c->dones, sizeof(d), by_key);
}

/* True in the first epoch of a round.  Verification happens once per size. */
static bool first_epoch(const struct round *r, int epoch)
{
    return epoch == __builtin_ctz(r->epochs);
}

/* Announce the current work of this rank, in words common to its group only. */
static void announce(const struct round *r, int g, size_t bytes, size_t reach)
{
    char size[UNITS_TEXT], group[32] = "";

    if (r->groups > 1)
        snprintf(group, sizeof(group), ", group %d", g);
    watch_enter("%s of %s (round %d%s)", op_name(r->op), units_bytes_text(size, (double)bytes),
                r->id, group);
    watch_expect((double)reach / 50e6, 20); /* time to open: touching every page; connections */
}

static int measure_group(struct campaign *c, const struct turn *t, int g, size_t bytes,
                         struct point_row *row, struct err *err)
{
    const struct round *r = t->round;
    struct err why;

    why.text[0] = '\0';
    point_describe(row, r, g, t->epoch, bytes);
    if (c->sampler.transport->calls->kind)
        c->sampler.transport->calls->kind(&row->point);
    size_t reach = bytes > r->last ? bytes : r->last;
    double from = sample_now(&c->sampler);
    if (!c->world->solo) /* a single process has no partner */
        announce(r, g, bytes, reach);
    int rc = 0;
    if (sample_open(&c->sampler, r, g, t->epoch, reach, &why) < 0) {
        row->point.stop = STOP_FAILED;
        point_note(&row->point, "%s", why.text);
        sample_close(&c->sampler);
    } else {
        if (!c->world->solo)
            watch_expect(0, 0);
        double opened = sample_now(&c->sampler) - from;
        rc = sample_point(&c->sampler, row, &c->opts, c->opts.check && first_epoch(r, t->epoch),
                          err);
        c->sampler.took.once += opened;
    }
    if (!c->world->solo)
        watch_leave();
    return rc;
}

/* Size of a step before rounding up to whole blocks of a group. */
static size_t ladder_size(const struct round *r, int step)
{
    size_t bytes = r->first;

    for (int k = 0; k < step; k++)
        bytes *= (size_t)r->factor;
    return bytes;
}

/* Exit code of an early end: a signal on any rank, or the budget on rank 0.  0: continue. */
static int cut(const struct campaign *c, struct err *err)
{
    double spent = log_now() - c->started;

    if (measure_stop)
        return err_code(err, EXIT_CUT, "stopped by a signal; --resume measures what is missing");
    if (c->log.points && c->opts.budget > 0 && spent > c->opts.budget)
        return err_code(err, EXIT_CUT,
                        "the budget of %g s is spent; --resume measures what is missing",
                        c->opts.budget);
    return 0;
}

/* --- a size of a round --- */

/* *slow: the next size would take too long. */
static int solo_size(struct campaign *c, const struct turn *t, int *slow, struct err *err)
{
    const struct round *r = t->round;
    struct point_row row;

    c->sampler.turn = c->turn + t->step;
    for (int g = 0; g < r->groups; g++) {
        size_t bytes = plan_size(r, r->group[g].size, t->step);
        if (!bytes || is_done(c, r, g, t->epoch, bytes))
            continue;
        if (measure_group(c, t, g, bytes, &row, err) < 0)
            return -1;
        campaign_log_add(&c->log, r, &row);
    }
    *slow = campaign_log_too_slow(&c->log, t, c->opts.max_run);
    return campaign_log_commit(&c->log, r, ladder_size(r, t->step), err) < 0 ? -1 : cut(c, err);
}

/* On rank 0, after all reports: keep what was measured.  *end: the campaign is over. */
static int hear_turn(struct campaign *c, const struct round *r, size_t bytes, bool *end,
                     struct err *err)
{
    struct campaign_log *l = &c->log;

    for (int i = 0; i < l->heards; i++) {
        const struct campaign_record *rec = &l->inbox[l->heard[i]];
        *end = *end || rec->rc != 0;
        if (rec->state == 2)
            measure_clock_hear(&c->clock, &rec->took);
    }
    campaign_log_merge(l, r, c->taint);
    campaign_log_forget(l);
    int rc = campaign_log_commit(l, r, bytes, err);
    if (rc == 0)
        rc = cut(c, err);
    *end = *end || rc < 0;
    return rc;
}

/* The single exchange of a turn: records of all ranks to rank 0, its decision to all. */
static int exchange(struct campaign *c, const struct turn *t, struct campaign_record *rec,
                    int *slow, struct err *err)
{
    struct world *w = c->world;
    struct {
        int end, slow;
    } verdict = {0, 0};
    bool end = false;

    if (rec->rc == 0)
        rec->rc = measure_stop ? cut(c, err) : 0;
    if (w->report(w, rec, record_bytes(rec), campaign_log_hear, &c->log, err) < 0 ||
        watch_verdict_now(err) < 0) /* the kept state was reported: nothing follows */
        return -1;
    if (c->log.points) {
        struct err why;
        if (hear_turn(c, t->round, ladder_size(t->round, t->step), &end, rec->rc ? &why : err) < 0)
            rec->rc = -1;
        verdict.end = end;
        verdict.slow = campaign_log_too_slow(&c->log, t, c->opts.max_run);
    }
    if (w->tell(w, &verdict, sizeof(verdict), err) < 0 ||
        (t->round->groups > 1 && w->wait_ready(w, err) < 0))
        return -1;
    *slow = verdict.slow;
    return verdict.end ? w->agree(w, rec->rc, err) : 0;
}

/* mine: group of this rank; -1: none. */
static int rank_size(struct campaign *c, const struct turn *t, int mine, int *slow, struct err *err)
{
    const struct round *r = t->round;
    struct campaign_record rec = {0};
    double began = log_now();
    size_t bytes = mine < 0 ? 0 : plan_size(r, r->group[mine].size, t->step);
    bool measures = bytes && !is_done(c, r, mine, t->epoch, bytes);

    if (measures)
        rec.state = r->group[mine].members[0] == c->world->rank ? 2 : 1;
    c->sampler.unready = r->groups > 1;
    if (rec.state != 2 && sample_ready(&c->sampler, err) < 0)
        return -1;
    taint_begin(c->taint, measures);
    if (measures) {
        double from = log_now();
        rec.rc = measure_group(c, t, mine, bytes, &rec.row, err);
        rec.took = c->sampler.took;
        rec.took.group = log_now() - from;
        snprintf(rec.note, sizeof(rec.note), "%s", point_words(&rec.row.point));
    }
    if (sample_ready(&c->sampler, err) < 0 || taint_end(c->taint, &rec.taint, err) < 0)
        return -1;
    int rc = exchange(c, t, &rec, slow, err);
    if (c->log.points)
        measure_clock_turn(&c->clock, r, ladder_size(r, t->step), log_now() - began);
    return rc;
}

static bool all_done(const struct campaign *c, const struct round *r, int epoch, int step)
{
    for (int g = 0; g < r->groups; g++) {
        size_t bytes = plan_size(r, r->group[g].size, step);
        if (bytes && !is_done(c, r, g, epoch, bytes))
            return false;
    }
    return true;
}

/* First step from `step` on that is not in the log; the number of steps if there is none. */
static int next_step(const struct campaign *c, const struct round *r, int epoch, int step)
{
    while (step < plan_steps(r) && all_done(c, r, epoch, step))
        step++;
    return step;
}

static int my_group(const struct round *r, int rank)
{
    for (int g = 0; g < r->groups; g++)
        for (int i = 0; i < r->group[g].size; i++)
            if (r->group[g].members[i] == rank)
                return g;
    return -1;
}

static int measure_round(struct campaign *c, const struct round *r, int epoch, struct err *err)
{
    const struct transport_calls *calls = c->sampler.transport->calls;
    int mine = c->world->solo ? -1 : my_group(r, c->world->rank), n = plan_steps(r), rc = 0;
    int i = next_step(c, r, epoch, 0), slow = 0, next;

    /* Keep a sampler only for rounds with the same members.  Otherwise a member would open the
     * group again while the others still use the old sampler. */
    if (mine < 0 || !sample_same(&c->sampler, &r->group[mine]))
        sample_close(&c->sampler);
    if (i > 0 && i < n) { /* continues where an earlier campaign was interrupted */
        slow = c->log.points &&
               campaign_log_too_slow(&c->log, &(struct turn){r, epoch, i - 1, ladder_size(r, i)},
                                     c->opts.max_run);
        rc = c->world->tell(c->world, &slow, sizeof(slow), err);
    }
    if (rc == 0 && i < n && !slow && calls->round)
        rc = calls->round(c->world, c->topo, r, err);
    for (; rc == 0 && i < n && !slow; i = next) {
        next = next_step(c, r, epoch, i + 1);
        const struct turn t = {r, epoch, i, next < n ? ladder_size(r, next) : 0};
        rc = c->world->solo ? solo_size(c, &t, &slow, err) : rank_size(c, &t, mine, &slow, err);
    }
    return rc;
}

static bool is_in_pass(const struct round *r, int epoch, bool nics)
{
    return r->epochs >> epoch & 1 && stage_by_nic(r->stage) == nics;
}

/* Number of turns in one pass of the plan. */
static int count_turns(const struct plan *plan, bool nics)
{
    int turns = 0;

    for (int i = 0; i < plan->rounds; i++)
        for (int e = 0; e < PLAN_EPOCHS; e++)
            turns += is_in_pass(&plan->round[i], e, nics) ? plan_steps(&plan->round[i]) : 0;
    return turns;
}

static int measure_rounds(struct campaign *c, const struct plan *plan, struct err *err)
{
    for (int epoch = 0; epoch < PLAN_EPOCHS; epoch++)
        for (int i = 0; i < plan->rounds; i++) {
            if (!is_in_pass(&plan->round[i], epoch, c->opts.nics))
                continue;
            if (measure_round(c, &plan->round[i], epoch, err) < 0)
                return -1;
            c->turn += plan_steps(&plan->round[i]);
        }
    return 0;
}

/* Distribute to every rank the list of sizes already in the log. */
static int share_done(struct campaign *c, struct err *err)
{
    size_t len = 0;
    void *data = NULL;

    free(c->done);
    c->done = NULL;
    c->dones = 0;
    if (c->log.points) {
        const struct points *all = points_all(c->log.points);
        for (int i = 0; i < all->count; i++) {
            const struct point *p = &all->point[i];
            MEM_PUSH(c->done, c->dones) =
                (struct done_size){{p->round, p->group, p->epoch, (double)p->bytes}};
        }
        if (c->dones)
            qsort(c->done, (size_t)c->dones, sizeof(*c->done), by_key);
        len = (size_t)c->dones * sizeof(*c->done);
        data = c->done;
    }
    if (c->world->share(c->world, &data, &len, err) < 0)
        return -1;
    c->done = data;
    c->dones = (int)(len / sizeof(*c->done));
    return 0;
}

/* Refuse to continue a campaign with another type, reduction or registration.  On rank 0. */
static int same_kinds(const struct campaign *c, const struct plan *plan, struct err *err)
{
    const struct transport_calls *calls = c->sampler.transport->calls;
    const struct points *p = c->log.points ? points_all(c->log.points) : NULL;

    for (int i = 0; p && calls->kind && !p->plain && i < plan->rounds; i++) {
        struct point next = {.op = plan->round[i].op};
        calls->kind(&next);
        if (points_alike(p, &next, err) < 0)
            return -1;
    }
    return 0;
}

/* --- estimate --- */

/* First epoch with missing points of the round; PLAN_EPOCHS if the round is complete. */
static int next_epoch(const struct campaign *c, const struct round *r)
{
    int e = 0;

    while (e < PLAN_EPOCHS && !(r->epochs >> e & 1 && next_step(c, r, e, 0) < plan_steps(r)))
        e++;
    return e;
}

/* First such epoch of this pass. */
static int first_epoch_left(const struct campaign *c, const struct plan *plan)
{
    int first = PLAN_EPOCHS;

    for (int i = 0; i < plan->rounds && first > 0; i++)
        if (stage_by_nic(plan->round[i].stage) == c->opts.nics) {
            int e = next_epoch(c, &plan->round[i]);
            first = e < first ? e : first;
        }
    return first;
}

/* Measure the trial turns; their points count like any other. */
static int measure_some(struct campaign *c, const struct plan *plan, struct err *err)
{
    const int epoch = first_epoch_left(c, plan);
    int n = 0;
    void *at = c->log.points ? measure_clock_choose(&c->clock, plan, epoch, &n) : NULL;
    size_t len = (size_t)n * sizeof(int);

    if (c->world->share(c->world, &at, &len, err) < 0)
        return -1;
    struct plan some = measure_clock_some(plan, at, (int)(len / sizeof(int)));
    for (int i = 0; i < some.rounds; i++)
        some.round[i].epochs &= 1u << next_epoch(c, &some.round[i]);
    c->clock.tries = true;
    int rc = measure_rounds(c, &some, err);
    c->clock.tries = false;
    free(some.round); /* its groups belong to the plan */
    free(at);
    return rc < 0 ? -1 : share_done(c, err);
}

/* Seconds of the missing points and of some retests: a tenth of the rounds that may need one. */
static double ahead(const struct campaign *c, const struct plan *plan)
{
    double all = 0, again = 0;

    for (int i = 0; i < plan->rounds; i++) {
        const struct round *r = &plan->round[i];
        const bool matrix = op_is_pair(r->op) && plan_steps(r) == 1;
        for (int e = 0; e < PLAN_EPOCHS && stage_by_nic(r->stage) == c->opts.nics; e++)
            for (int k = 0; k < plan_steps(r) && r->epochs >> e & 1; k++) {
                double sec = measure_clock_expect(&c->clock, r, ladder_size(r, k),
                                                  c->opts.check && first_epoch(r, e));
                all += all_done(c, r, e, k) ? 0 : sec;
                again += matrix ? sec : 0;
            }
    }
    return all + (c->opts.retest ? again / 10 : 0);
}

static int estimate(struct campaign *c, const struct plan *plan, struct err *err)
{
    struct measure_time *t = &c->clock.time;
    char text[UNITS_TEXT];

    if (measure_some(c, plan, err) < 0)
        return -1;
    if (!c->log.points)
        return 0;
    t->estimated = log_now() - t->began + ahead(c, plan);
    if (!c->opts.dry)
        log_info("%d endpoint%s, %d round%s over %s: about %s", c->topo->endpoints,
                 units_s(c->topo->endpoints), plan->rounds, units_s(plan->rounds),
                 c->sampler.transport->name, units_seconds_text(text, t->estimated));
    if (!c->opts.dry && !c->opts.nics)
        plan_sees_log(plan, c->topo);
    return 0;
}

/* Rank 0 plans the retests; all ranks get the same rounds. */
static int make_retest(struct campaign *c, struct plan *out, int first_id, struct err *err)
{
    if (c->log.points)
        schedule_retest(out, c->topo, points_all(c->log.points), c->opts.nics, c->opts.quick);
    int rc = plan_share(out, "retest plan", c->world, c->topo->endpoints, err);
    for (int i = 0; i < out->rounds; i++)
        out->round[i].id += first_id;
    return rc;
}

int measure_plan(struct world *w, const struct transport *tr, const struct topo *topo,
                 struct plan *plan, const struct measure_opts *o, struct points_log *log,
                 struct err *err)
{
    struct campaign c = {
        .world = w,
        .topo = topo,
        .opts = *o,
        .sampler = {.world = w, .transport = tr, .fault = getenv("RAILGAUGE_FAULT")},
        .started = log_now()};
    struct plan again = {NULL, 0};
    int rc = -1;

    c.opts.time_cap = plan_time_cap(plan, topo, o->time_cap);
    c.opts.max_run = plan_max_run(topo, o->max_run);
    campaign_log_open(&c.log, log, topo, plan_points(plan, o->nics), w->size);
    watch_leave();
    campaign_log_tell_kept(&c.log);
    if (taint_open(&c.taint, w, topo, err) < 0 || w->agree(w, same_kinds(&c, plan, err), err) < 0 ||
        w->agree(w, share_done(&c, err), err) < 0)
        goto out;
    measure_clock_open(&c.clock, topo, &c.opts);
    rc = o->time ? estimate(&c, plan, err) : 0;
    c.sampler.turns = count_turns(plan, o->nics);
    c.turn = 0;
    if (rc == 0 && !o->dry)
        rc = measure_rounds(&c, plan, err);
    if (rc == 0 && o->retest && !o->dry) {
        rc = make_retest(&c, &again, plan->rounds + RETEST_ROUNDS * (1 + o->nics), err);
        if (w->agree(w, rc, err) == 0)
            rc = measure_rounds(&c, &again, err);
    }
    if (rc == 0)
        rc = taint_report(c.taint, err);
    if (o->time) {
        *o->time = c.clock.time;
        o->time->took = log_now() - o->time->began;
    }
out:
    free(c.clock.tried);
    taint_close(c.taint);
    sample_free(&c.sampler);
    progress_end(&c.log.progress);
    free(c.log.inbox);
    free(c.log.heard);
    plan_free(&again);
    free(c.done);
    return rc;
}
