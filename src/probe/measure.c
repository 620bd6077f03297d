/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/measure_impl.h"

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
#include "probe/schedule.h"
#include "probe/watch/watch.h"

/* --- the log: what the ranks tell rank 0 of one size becomes rows of points.tsv --- */

/* What a rank tells rank 0 about one size, as far as it has something to tell. */
struct campaign_record {
    int state;                /* 0: took no part, 1: member, 2: first member, whose numbers count */
    int rc;                   /* not 0: this rank cannot go on */
    struct measure_turn took; /* of a first member */
    struct point_row row;
    char note[POINT_NOTE]; /* the point's, which is no use elsewhere as an address */
    struct taint_said taint;
};

/* ... in bytes: members of which nothing is to be said send none, a first member its numbers. */
static size_t record_bytes(const struct campaign_record *rec)
{
    bool words = rec->note[0] || rec->taint.gpu[0] || rec->taint.port[0];

    return words || rec->rc  ? sizeof(*rec)
           : rec->state == 2 ? offsetof(struct campaign_record, note)
                             : 0;
}

/* The worst pair so far, for the progress line: slowest against the running median of its class,
 * which moves up or down by a fixed share with each value: good enough to glance at. */
struct worst_pair {
    double typical[TIER_MAX][OP_COUNT];
    size_t bytes[TIER_MAX][OP_COUNT];
    double share;  /* of the typical bandwidth, 1 at the start */
    char text[64]; /* "17>89 0.60x", "" while nothing stands out */
};

/* Every rank has one; only where there is a log does it hold anything, and only there are the
 * functions below that do not say otherwise called. */
struct campaign_log {
    struct points_log *points; /* NULL on other ranks; the caller's */
    const struct topo *topo;
    int ranks;
    struct campaign_record
        *inbox;         /* one a rank, zeros where nothing was said; NULL on other ranks */
    int *heard, heards; /* who said something */
    struct worst_pair worst;
    struct progress progress;
    double work_done, work; /* points; of the whole plan */
};

static void note_worst(struct worst_pair *w, const struct topo *t, const struct round *r,
                       const struct point *p)
{
    if (!op_is_pair(p->op) || p->stop == STOP_FAILED)
        return;
    int tier = topo_tier_by(t, p->src, p->dst, stage_by_nic(p->stage));
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

/* On every rank. */
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

/* All of the inbox: the first member's record of each group, with the words of the member that saw
 * the trouble, or whose GPU or port suffered. */
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

/* The inbox is empty again. */
static void campaign_log_forget(struct campaign_log *l)
{
    for (int i = 0; i < l->heards; i++)
        memset(&l->inbox[l->heard[i]], 0, sizeof(*l->inbox));
    l->heards = 0;
}

/* By the time of the size before it: would a message of `bytes` take longer than max_run seconds?
 */
static bool campaign_log_too_slow(const struct campaign_log *l, const struct round *r, int epoch,
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

/* What is safe in the file, for the verdict's words; on any rank. */
static void campaign_log_tell_kept(const struct campaign_log *l)
{
    if (l->points)
        watch_points(points_all(l->points)->count, (int)fmin(l->work, INT_MAX));
}

/* A size of the round is measured: the file holds it, the progress line shows it. */
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

/* A size that is in the log: round, group, epoch, bytes. */
struct done_size {
    double key[4];
};

static int by_key(const void *a, const void *b)
{
    return stats_order(a, b, 4);
}

/* A campaign in progress on one rank. */
struct campaign {
    struct world *world;
    const struct topo *topo;
    struct measure_opts opts; /* with the time cap filled in */
    struct campaign_log log;
    struct sampler sampler;
    struct done_size *done; /* what the log held at the start, on every rank; sorted */
    int dones;
    double started;
    int turn; /* of the round's first size, in the order of the plan */
    struct taint *taint;
    struct measure_clock clock;
};

static bool is_done(const struct campaign *c, const struct round *r, int g, int epoch, size_t bytes)
{
    struct done_size d = {{r->id, g, epoch, (double)bytes}};

    return c->dones && bsearch(&d, c->done, (size_t)c->dones, sizeof(d), by_key);
}

/* Verification happens once per size. */
static bool first_epoch(const struct round *r, int epoch)
{
    return epoch == __builtin_ctz(r->epochs);
}

/* What this rank does now, in words that its group shares with no other. */
static void announce(const struct round *r, int g, size_t bytes, size_t reach)
{
    char size[UNITS_TEXT], group[32] = "";

    if (r->groups > 1)
        snprintf(group, sizeof(group), ", group %d", g);
    watch_enter("%s of %s (round %d%s)", op_name(r->op), units_bytes_text(size, (double)bytes),
                r->id, group);
    watch_expect(20 + (double)reach / 50e6); /* opening: connections, touching every page */
}

static int measure_group(struct campaign *c, const struct round *r, int g, int epoch, size_t bytes,
                         struct point_row *row, struct err *err)
{
    struct err why;

    why.text[0] = '\0';
    point_describe(row, r, g, epoch, bytes);
    size_t reach = bytes > r->last ? bytes : r->last;
    double from = sample_now(&c->sampler);
    if (!c->world->solo) /* nobody waits for the only one */
        announce(r, g, bytes, reach);
    int rc = 0;
    if (sample_open(&c->sampler, r, g, epoch, reach, &why) < 0) {
        row->point.stop = STOP_FAILED;
        point_note(&row->point, "%s", why.text);
        sample_close(&c->sampler);
    } else {
        if (!c->world->solo)
            watch_expect(0);
        double opened = sample_now(&c->sampler) - from;
        rc = sample_point(&c->sampler, row, &c->opts, c->opts.check && first_epoch(r, epoch), err);
        c->sampler.took.once += opened;
    }
    if (!c->world->solo)
        watch_leave();
    return rc;
}

/* The size of a step before it is rounded up to a group's whole blocks. */
static size_t ladder_size(const struct round *r, int step)
{
    size_t bytes = r->first;

    for (int k = 0; k < step; k++)
        bytes *= (size_t)r->factor;
    return bytes;
}

/* What must end the campaign early, as a code: a signal to any rank, the budget on rank 0. */
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

/* --- one size of one round --- */

static int solo_size(struct campaign *c, const struct round *r, int epoch, int step, size_t after,
                     int *slow, struct err *err)
{
    struct point_row row;

    c->sampler.turn = c->turn + step;
    for (int g = 0; g < r->groups; g++) {
        size_t bytes = plan_size(r, r->group[g].size, step);
        if (!bytes || is_done(c, r, g, epoch, bytes))
            continue;
        if (measure_group(c, r, g, epoch, bytes, &row, err) < 0)
            return -1;
        campaign_log_add(&c->log, r, &row);
    }
    *slow = after && campaign_log_too_slow(&c->log, r, epoch, after, c->opts.max_run);
    return campaign_log_commit(&c->log, r, ladder_size(r, step), err) < 0 ? -1 : cut(c, err);
}

/* Rank 0 heard everybody: what was measured is kept; *end: the campaign is over. */
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

/* The one exchange of a turn: everybody's record to rank 0, its verdict to everybody.  `after` is
 * the size that comes next, 0: none; *slow: it would take too long. */
static int exchange(struct campaign *c, const struct round *r, int epoch, size_t bytes,
                    size_t after, struct campaign_record *rec, int *slow, struct err *err)
{
    struct world *w = c->world;
    struct {
        int end, slow;
    } verdict = {0, 0};
    bool end = false;

    if (rec->rc == 0)
        rec->rc = measure_stop ? cut(c, err) : 0;
    if (w->report(w, rec, record_bytes(rec), campaign_log_hear, &c->log, err) < 0 ||
        watch_verdict_now(err) < 0) /* what is kept was said: nothing comes later */
        return -1;
    if (c->log.points) {
        struct err why;
        if (hear_turn(c, r, bytes, &end, rec->rc ? &why : err) < 0)
            rec->rc = -1;
        verdict.end = end;
        verdict.slow = after && campaign_log_too_slow(&c->log, r, epoch, after, c->opts.max_run);
    }
    if (w->tell(w, &verdict, sizeof(verdict), err) < 0 ||
        (r->groups > 1 && w->wait_ready(w, err) < 0))
        return -1;
    *slow = verdict.slow;
    return verdict.end ? w->agree(w, rec->rc, err) : 0;
}

static int rank_size(struct campaign *c, const struct round *r, int mine, int epoch, int step,
                     size_t after, int *slow, struct err *err)
{
    struct campaign_record rec = {0};
    double began = log_now();
    size_t bytes = mine < 0 ? 0 : plan_size(r, r->group[mine].size, step);
    bool measures = bytes && !is_done(c, r, mine, epoch, bytes);

    if (measures)
        rec.state = r->group[mine].members[0] == c->world->rank ? 2 : 1;
    c->sampler.unready = r->groups > 1;
    if (rec.state != 2 && sample_ready(&c->sampler, err) < 0)
        return -1;
    taint_begin(c->taint, measures);
    if (measures) {
        double from = log_now();
        rec.rc = measure_group(c, r, mine, epoch, bytes, &rec.row, err);
        rec.took = c->sampler.took;
        rec.took.group = log_now() - from;
        snprintf(rec.note, sizeof(rec.note), "%s", point_words(&rec.row.point));
    }
    if (sample_ready(&c->sampler, err) < 0 || taint_end(c->taint, &rec.taint, err) < 0)
        return -1;
    int rc = exchange(c, r, epoch, ladder_size(r, step), after, &rec, slow, err);
    if (c->log.points)
        measure_clock_turn(&c->clock, r, ladder_size(r, step), log_now() - began);
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

/* The first step from this one on that is not in the log; behind the last: none. */
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

    /* A sampler lives on only through rounds of the same members, or one of them would open it anew
     * while another still has it. */
    if (mine < 0 || !sample_same(&c->sampler, &r->group[mine]))
        sample_close(&c->sampler);
    if (i > 0 && i < n) { /* goes on where an earlier campaign was cut */
        slow = c->log.points &&
               campaign_log_too_slow(&c->log, r, epoch, ladder_size(r, i), c->opts.max_run);
        rc = c->world->tell(c->world, &slow, sizeof(slow), err);
    }
    if (rc == 0 && i < n && !slow && calls->round)
        rc = calls->round(c->world, c->topo, r, err);
    for (; rc == 0 && i < n && !slow; i = next) {
        next = next_step(c, r, epoch, i + 1);
        size_t after = next < n ? ladder_size(r, next) : 0;
        rc = c->world->solo ? solo_size(c, r, epoch, i, after, &slow, err)
                            : rank_size(c, r, mine, epoch, i, after, &slow, err);
    }
    return rc;
}

static bool is_in_pass(const struct round *r, int epoch, bool nics)
{
    return r->epochs >> epoch & 1 && stage_by_nic(r->stage) == nics;
}

/* Turns of one pass of the plan. */
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

/* Every rank learns what the log already holds. */
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

/* --- what it will take --- */

/* Its first epoch in which something is missing, as a bit. */
static unsigned next_epoch(const struct campaign *c, const struct round *r)
{
    for (int e = 0; e < PLAN_EPOCHS; e++)
        if (r->epochs >> e & 1 && next_step(c, r, e, 0) < plan_steps(r))
            return 1u << e;
    return r->epochs;
}

/* The turns that come first; they count as any other. */
static int measure_some(struct campaign *c, const struct plan *plan, struct err *err)
{
    int n = 0;
    void *at = c->log.points ? measure_clock_choose(&c->clock, plan, &n) : NULL;
    size_t len = (size_t)n * sizeof(int);

    if (c->world->share(c->world, &at, &len, err) < 0)
        return -1;
    struct plan some = measure_clock_some(plan, at, (int)(len / sizeof(int)));
    for (int i = 0; i < some.rounds; i++)
        some.round[i].epochs = next_epoch(c, &some.round[i]);
    c->clock.tries = true;
    int rc = measure_rounds(c, &some, err);
    c->clock.tries = false;
    free(some.round); /* its groups are the plan's */
    free(at);
    return rc < 0 ? -1 : share_done(c, err);
}

/* s of what is missing, and of some retests: a tenth of the rounds that may need one. */
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
    return 0;
}

/* Rank 0 chooses what to measure again alone; everybody gets the same rounds. */
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
    if (taint_open(&c.taint, w, topo, err) < 0 || w->agree(w, share_done(&c, err), err) < 0)
        goto out;
    measure_clock_open(&c.clock, topo, &c.opts);
    rc = o->time ? estimate(&c, plan, err) : 0;
    c.sampler.turns = count_turns(plan, o->nics);
    c.turn = 0;
    if (rc == 0 && !o->dry)
        rc = measure_rounds(&c, plan, err);
    if (rc == 0 && o->retest && !o->dry) {
        rc = make_retest(&c, &again, plan->rounds + (o->nics ? RETEST_MAX : 0), err);
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
