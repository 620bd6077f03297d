/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "probe/fault.h"
#include "probe/measure_book.h"
#include "probe/plan_cost.h"
#include "probe/port_taint.h"
#include "probe/retest.h"
#include "probe/sample.h"
#include "probe/watch/watch.h"

volatile sig_atomic_t measure_stop;

void measure_defaults(struct measure_opts *o)
{
    memset(o, 0, sizeof(*o));
    o->half_width = 0.05;
    o->warmup = 16;
    o->check = true;
    o->retest = true;
}

/* A campaign in progress on one rank. */
struct campaign {
    struct world *world;
    const struct topo *topo;
    struct measure_opts opts; /* with the time cap filled in */
    struct book book;
    struct session session;
    struct point_key *done; /* what the log held at the start, on every rank */
    int dones;
    double started;
    struct taint *taint; /* this rank's GPU is watched; NULL: none */
    struct port_taint *ports;
    int struck; /* points that this rank has begun */
};

static bool is_done(const struct campaign *c, const struct round *r, int g, int epoch, size_t bytes)
{
    return point_key_find(c->done, c->dones, r->id, g, epoch, bytes);
}

/* Verification happens once per size: in the first epoch of the round. */
static bool first_epoch(const struct round *r, int epoch)
{
    return !(r->epochs & ((1u << epoch) - 1));
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
                         struct point *p, struct err *err)
{
    struct err why = {0, ""};

    point_describe(p, r, g, epoch, bytes);
    size_t reach = bytes > r->last ? bytes : r->last;
    announce(r, g, bytes, reach);
    if (session_open(&c->session, r, g, epoch, reach, &why) < 0) {
        p->stop = STOP_FAILED;
        snprintf(p->note, sizeof(p->note), "%s", why.text);
        session_close(&c->session);
        watch_leave();
        return 0;
    }
    watch_expect(0);
    int rc = fault_strike(c->world->rank, ++c->struck, err);
    if (rc == 0)
        rc = sample_point(&c->session, p, &c->opts, c->opts.check && first_epoch(r, epoch), err);
    watch_leave();
    return rc;
}

/* What must end the campaign early, as a code: a signal to any rank, the budget on rank 0. */
static int cut(const struct campaign *c, struct err *err)
{
    double spent = log_now() - c->started;

    if (measure_stop)
        return err_code(err, EXIT_CUT, "stopped by a signal; --resume measures what is missing");
    if (c->book.log && c->opts.budget > 0 && spent > c->opts.budget)
        return err_code(err, EXIT_CUT,
                        "the budget of %g s is spent; --resume measures what is missing",
                        c->opts.budget);
    return 0;
}

/* --- one size of one round --- */

static int solo_size(struct campaign *c, const struct round *r, int epoch, int step,
                     struct err *err)
{
    struct point p;

    for (int g = 0; g < r->groups; g++) {
        size_t bytes = plan_size(r, r->group[g].size, step);
        if (!bytes || is_done(c, r, g, epoch, bytes))
            continue;
        if (measure_group(c, r, g, epoch, bytes, &p, err) < 0)
            return -1;
        book_keep(&c->book, r, &p);
    }
    return 0;
}

static int rank_size(struct campaign *c, const struct round *r, int mine, int epoch, int step,
                     struct err *err)
{
    struct record rec = {0};
    size_t bytes = mine < 0 ? 0 : plan_size(r, r->group[mine].size, step);
    int rc = 0;

    port_taint_begin(c->ports);
    if (bytes && !is_done(c, r, mine, epoch, bytes)) {
        taint_begin(c->taint);
        rc = measure_group(c, r, mine, epoch, bytes, &rec.point, err);
        taint_end(c->taint, rec.taint);
        rec.state = r->group[mine].members[0] == c->world->rank ? 2 : 1;
    }
    if (port_taint_end(c->ports, &rec.port, err) < 0 ||
        c->world->gather(c->world, &rec, sizeof(rec), c->book.inbox, err) < 0)
        return -1;
    if (watch_verdict_now(err) < 0) /* what is kept was said: nothing comes later */
        return -1;
    if (c->book.log)
        book_merge(&c->book, r, c->ports);
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

static int finish_size(struct campaign *c, const struct round *r, size_t bytes, int rc,
                       struct err *err)
{
    if (rc == 0 && c->book.log)
        rc = book_commit(&c->book, r, bytes, err);
    if (rc == 0)
        rc = cut(c, err);
    return c->world->agree(c->world, rc, err);
}

static int my_group(const struct round *r, int rank)
{
    for (int g = 0; g < r->groups; g++)
        for (int i = 0; i < r->group[g].size; i++)
            if (r->group[g].members[i] == rank)
                return g;
    return -1;
}

/* Rank 0's yes or no to everybody. */
static int tell(struct campaign *c, int *yes, struct err *err)
{
    void *data = yes;
    size_t len = sizeof(*yes);

    if (c->world->share(c->world, &data, &len, err) < 0)
        return -1;
    if (data != yes) {
        memcpy(yes, data, sizeof(*yes));
        free(data);
    }
    return 0;
}

static int measure_round(struct campaign *c, const struct round *r, int epoch, struct err *err)
{
    int mine = c->world->solo ? -1 : my_group(r, c->world->rank), n = plan_steps(r), rc = 0;

    /* A session lives on only through rounds of the same members, or one of them would open it anew
     * while another still has it. */
    if (mine < 0 || !session_same(&c->session, &r->group[mine]))
        session_close(&c->session);
    for (int i = 0; i < n && rc == 0; i++) {
        size_t bytes = r->first;
        for (int k = 0; k < i; k++)
            bytes *= (size_t)r->factor;
        if (all_done(c, r, epoch, i))
            continue;
        int slow =
            c->book.log && i > 0 && book_too_slow(&c->book, r, epoch, bytes, c->opts.max_run);
        if (i > 0 && (rc = tell(c, &slow, err)) < 0)
            break;
        if (slow)
            break;
        rc = c->world->solo ? solo_size(c, r, epoch, i, err) : rank_size(c, r, mine, epoch, i, err);
        rc = finish_size(c, r, bytes, rc, err);
    }
    return rc;
}

static int measure_rounds(struct campaign *c, const struct plan *plan, struct err *err)
{
    for (int epoch = 0; epoch < PLAN_EPOCHS; epoch++)
        for (int i = 0; i < plan->rounds; i++)
            if (plan->round[i].epochs >> epoch & 1 &&
                measure_round(c, &plan->round[i], epoch, err) < 0)
                return -1;
    return 0;
}

/* Every rank learns what the log already holds. */
static int share_done(struct campaign *c, struct err *err)
{
    size_t len = 0;
    void *data = NULL;
    const struct point_key *keys;

    if (c->book.log) {
        keys = points_keys(c->book.log, &c->dones);
        len = (size_t)c->dones * sizeof(*keys);
        c->done = mem_calloc((size_t)c->dones + 1, sizeof(*keys));
        if (len)
            memcpy(c->done, keys, len);
        data = c->done;
    }
    if (c->world->share(c->world, &data, &len, err) < 0)
        return -1;
    c->done = data;
    c->dones = (int)(len / sizeof(*c->done));
    return 0;
}

/* Rank 0 chooses what to measure again alone; everybody gets the same rounds. */
static int make_retest(struct campaign *c, struct plan *out, int first_id, struct err *err)
{
    char *text = NULL;
    size_t len = 0;

    if (c->book.log) {
        retest_plan(out, c->topo, points_all(c->book.log));
        text = out->rounds ? plan_text(out) : mem_strdup("");
        len = strlen(text) + 1;
    }
    void *data = text;
    if (c->world->share(c->world, &data, &len, err) < 0)
        return -1;
    int rc = 0;
    if (c->book.log)
        free(data);
    else if (len > 1)
        rc = plan_parse(out, "retest plan", data, c->topo->endpoints, err);
    else
        free(data);
    for (int i = 0; i < out->rounds; i++)
        out->round[i].id += first_id;
    return rc;
}

int measure_plan(struct world *w, const struct transport *tr, const struct topo *topo,
                 struct plan *plan, const struct measure_opts *o, struct points_log *log,
                 struct err *err)
{
    struct campaign c = {.world = w,
                         .topo = topo,
                         .opts = *o,
                         .session = {.world = w, .transport = tr},
                         .started = log_now(),
                         .taint = taint_watch(w, topo)};
    struct plan again = {NULL, 0};
    int rc = -1;

    c.opts.time_cap = plan_time_cap(plan, o->time_cap);
    c.opts.max_run = plan_max_run(topo, o->max_run);
    book_open(&c.book, log, topo, plan, w->size);
    watch_leave();
    book_tell_kept(&c.book);
    if (port_taint_open(&c.ports, w, topo, err) < 0 || w->agree(w, share_done(&c, err), err) < 0)
        goto out;
    rc = measure_rounds(&c, plan, err);
    if (rc == 0 && o->retest) {
        rc = make_retest(&c, &again, plan->rounds, err);
        if (w->agree(w, rc, err) == 0)
            rc = measure_rounds(&c, &again, err);
    }
    if (rc == 0)
        rc = taint_report(c.taint, w, topo, err);
    if (rc == 0)
        rc = port_taint_report(c.ports, err);
out:
    taint_close(c.taint);
    port_taint_close(c.ports);
    session_free(&c.session);
    book_close(&c.book);
    plan_free(&again);
    free(c.done);
    return rc;
}
