/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "step/model.h"
#include "step/replay/replay.h"
#include "test.h"

struct bed {
    struct model model;
    struct layout layout;
    struct recipe recipe;
    struct traffic traffic;
    struct replay_step step;
};

static void open_bed(struct bed *b, const char *layout, const char *strategy, const char *batch,
                     const char *stages)
{
    struct step step;
    struct err err;

    memset(b, 0, sizeof(*b));
    recipe_defaults(&b->recipe);
    assert_int_equal(recipe_set(&b->recipe, "strategy", strategy, &err), 0);
    if (batch)
        assert_int_equal(recipe_set(&b->recipe, "batch", batch, &err), 0);
    if (stages)
        assert_int_equal(recipe_set(&b->recipe, "stages-per-rank", stages, &err), 0);
    assert_int_equal(model_load(&b->model, "llama3.1-8b", &err), 0);
    assert_int_equal(layout_parse(&b->layout, layout, (enum strategy)b->recipe.strategy,
                                  ORDER_MEGATRON, 0, &err),
                     0);
    if (layout_check(&b->layout, &b->model, &b->recipe, &err) < 0)
        fail_msg("%s", err.text);
    step_of(&step, &b->model, &b->layout, &b->recipe);
    traffic_of(&b->traffic, &step);
    b->step = (struct replay_step){&b->traffic, &b->layout, &b->recipe, {1, 2}, {1.5, 3}};
}

/* Each message runs as often as the traffic says, and compute lasts as long as it should. */
static void check_totals(const struct bed *b, const struct replay_plan *p, int rank)
{
    double count[TRAFFIC_MAX] = {0}, sec = 0;
    int pp = b->layout.size[AXIS_PP], stage = rank / b->layout.stride[AXIS_PP] % pp;
    int m = layout_microbatches(&b->layout, &b->recipe);

    for (int i = 0; i < p->actions; i++) {
        const struct replay_action *a = &p->action[i];
        sec += a->kind == REPLAY_BURN ? a->sec : 0;
        if (a->kind == REPLAY_CALL || a->kind == REPLAY_START || a->kind == REPLAY_SEND)
            count[a->message]++;
    }
    assert_true(fabs(sec - m * (stage + 1 == pp ? 4.5 : 3)) < 1e-9 * sec);
    for (int k = 0; k < b->traffic.messages; k++) {
        const struct message *msg = &b->traffic.message[k];
        if (msg->phase != PHASE_BOUNDARY && fabs(count[k] - msg->count) > 0.5)
            fail_msg("rank %d: %s runs %g times, not %g", rank, msg->label, count[k], msg->count);
    }
}

/* Tickets rise one by one, and no wait is for a message that was not started. */
static void check_tickets(const struct replay_plan *p)
{
    int started = 0;

    for (int i = 0; i < p->actions; i++) {
        const struct replay_action *a = &p->action[i];
        if (a->kind == REPLAY_START)
            assert_int_equal(a->ticket, ++started);
        if (a->kind == REPLAY_WAIT)
            assert_in_range(a->ticket, 1, started);
    }
    assert_int_equal(p->tickets, started);
}

/* Every send has its receive, in the same order between two ranks. */
static void check_pairs(const struct bed *b, const struct replay_plan *plan)
{
    int ranks = b->layout.ranks;

    for (int from = 0; from < ranks; from++)
        for (int to = 0; to < ranks; to++) {
            int next = 0;
            for (int i = 0; i < plan[from].actions; i++) {
                const struct replay_action *s = &plan[from].action[i], *r = NULL;
                if (s->kind != REPLAY_SEND || s->peer != to)
                    continue;
                for (int k = 0; k < plan[to].actions && !r; k++) {
                    const struct replay_action *a = &plan[to].action[k];
                    if (a->kind == REPLAY_RECV && a->peer == from && a->tag == s->tag)
                        r = a;
                }
                if (!r)
                    fail_msg("what %d sends to %d with tag %d is never received", from, to, s->tag);
                next++;
            }
            int received = 0;
            for (int k = 0; k < plan[to].actions; k++)
                received +=
                    plan[to].action[k].kind == REPLAY_RECV && plan[to].action[k].peer == from;
            assert_int_equal(received, next);
        }
}

static void check(const char *layout, const char *strategy, const char *batch, const char *stages)
{
    struct replay_plan *plan;
    struct bed b;

    open_bed(&b, layout, strategy, batch, stages);
    plan = calloc((size_t)b.layout.ranks, sizeof(*plan));
    for (int r = 0; r < b.layout.ranks; r++) {
        replay_make(&plan[r], &b.step, r);
        check_totals(&b, &plan[r], r);
        check_tickets(&plan[r]);
    }
    check_pairs(&b, plan);
    for (int r = 0; r < b.layout.ranks; r++)
        replay_free(&plan[r]);
    free(plan);
    model_free(&b.model);
}

TEST(every_rank_does_what_the_traffic_lists)
{
    check("dp_shard=4", "fsdp", "8", NULL);
    check("dp_shard=4", "zero1", "8", NULL);
    check("dp_replicate=4", "ddp", NULL, NULL);
    check("dp_replicate=2,dp_shard=2", "hsdp", "8", NULL);
    check("tp=2,dp_shard=2", "zero1", NULL, NULL);
    check("cp=2,dp_shard=2", "fsdp", NULL, NULL);
    check("pp=4,dp_shard=2", "zero1", "16", NULL);
    check("pp=2,tp=2,dp_shard=2", "fsdp", "8", NULL);
    check("pp=4,dp_shard=2", "zero1", "16", "2");
}

/* With the next layer's weights under way, a layer computes; only the first ones are waited for
 * with nothing beside them. */
TEST(weights_come_one_layer_ahead)
{
    struct replay_plan p;
    struct bed b;
    int pending = 0, most = 0, alone = 0;

    open_bed(&b, "dp_shard=4", "fsdp", NULL, NULL);
    replay_make(&p, &b.step, 0);
    for (int i = 0; i < p.actions; i++) {
        const struct replay_action *a = &p.action[i];
        bool gather = a->message >= 0 && b.traffic.message[a->message].op == OP_ALL_GATHER;
        if (a->kind == REPLAY_START && gather) {
            pending++;
            alone += p.action[i + 1].kind == REPLAY_WAIT;
        }
        if (a->kind == REPLAY_WAIT && gather)
            pending--;
        most = pending > most ? pending : most;
    }
    assert_int_equal(pending, 0);
    assert_int_equal(most, 1); /* one layer's gather at a time */
    assert_int_equal(alone, 1);
    assert_int_equal(p.action[p.actions - 1].kind, REPLAY_WAIT); /* for the last reduction */
    replay_free(&p);
    model_free(&b.model);
}

TEST(schedules_that_are_only_predicted_are_refused)
{
    struct recipe r;
    struct err err;

    recipe_defaults(&r);
    assert_int_equal(replay_check(&r, &err), 0);
    r.schedule = SCHEDULE_ZB_H1;
    assert_int_equal(replay_check(&r, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(err.text, "schedule zb-h1 cannot be replayed (1f1b and interleaved can)");
}
