/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_sees.c - what a plan can see, and what it cannot, in words. */
#include <stdlib.h>

#include "base/distribution.h"
#include "base/log.h"
#include "base/mem.h"
#include "probe/plan.h"

/* Chances behind "is noticed": one point in twenty is slow by chance, a healthy NIC is suspected in one of
 * fifty campaigns, and a bad one is missed in one of twenty. */
static const double stray = 0.05, suspected = 0.02, missed = 0.05;
/* Two bad blocks of three decide; with fewer, a bad minute is a bad part. */
enum { BLOCKS_LEAST = 3 };

/* What a plan measures of the NICs. */
struct sight {
    int *turns;             /* by endpoint: bandwidth over its NIC at the size of most pairs */
    unsigned char *blocks;  /* the same: bits of blocks */
    int both, small, large; /* turns of further kinds */
    bool alone;             /* is a pair measured alone, outside of ladders? */
};

static bool over_nics(const struct topo *t, const struct round *r, const int *pair)
{
    const int *a = t->endpoint[pair[0]].place.at, *b = t->endpoint[pair[1]].place.at;

    return stage_by_nic(r->stage) || (a[LEVEL_HOST] != b[LEVEL_HOST] &&
                                      (a[LEVEL_DOMAIN] < 0 || a[LEVEL_DOMAIN] != b[LEVEL_DOMAIN]));
}

static bool of_matrix(const struct round *r)
{
    return op_is_pair(r->op) && r->first == r->last && r->stage != STAGE_LADDER &&
           r->stage != STAGE_NIC_LADDER;
}

/* The size of most pairs. */
static size_t matrix_bytes(const struct plan *p)
{
    size_t bytes = 0;
    long best = 0;

    for (int i = 0; i < p->rounds; i++) {
        long points = 0;
        for (int k = 0; k < p->rounds && p->round[i].first != bytes; k++)
            if (of_matrix(&p->round[k]) && p->round[k].op == OP_PAIR_BW &&
                p->round[k].first == p->round[i].first)
                points += p->round[k].groups;
        if (points > best) {
            best = points;
            bytes = p->round[i].first;
        }
    }
    return bytes;
}

static void see_round(struct sight *s, const struct topo *t, const struct round *r, size_t bytes)
{
    const int times = __builtin_popcount(r->epochs);
    bool nics = false;

    for (int g = 0; g < r->groups; g++) {
        const int *pair = r->group[g].members;
        if (g + TOPO_AHEAD < r->groups)
            topo_fetch(t, r->group[g + TOPO_AHEAD].members[0], r->group[g + TOPO_AHEAD].members[1]);
        if (!over_nics(t, r, pair))
            continue;
        nics = true;
        for (int end = 0; end < 2 && r->op == OP_PAIR_BW && r->first == bytes; end++) {
            s->turns[pair[end]] += times;
            s->blocks[pair[end]] |= (unsigned char)r->epochs;
        }
    }
    if (!nics)
        return;
    s->both += r->op == OP_PAIR_BIBW ? times : 0;
    s->small += r->op == OP_PAIR_BW && r->first < bytes ? times : 0;
    s->large += r->op == OP_PAIR_BW && r->first > bytes ? times : 0;
    s->alone |= r->op == OP_PAIR_BW && r->groups == 1;
}

/* The least share of the time in which a NIC that is measured in so many turns must be slow to be noticed. */
static double least_share(int turns)
{
    int wanted = 1;
    double share = stray;

    while (wanted <= turns && dist_binomial_upper(wanted, turns, stray) > suspected)
        wanted++;
    while (share < 1 && dist_binomial_upper(wanted, turns, share) < 1 - missed)
        share += 0.01;
    return share;
}

static void say(json_t *words, char *text)
{
    json_array_append_new(words, json_string(text));
    free(text);
}

static void say_no_nic(json_t *words, const struct topo *t)
{
    say(words, mem_strdup(t->hosts == 1 ? "one host: no NIC is measured"
                                        : "no pair crosses NICs: no NIC is measured"));
}

static void say_turns(json_t *words, const struct sight *s, const struct topo *t)
{
    int least = 0, blocks = PLAN_EPOCHS, unseen = 0;

    for (int i = 0; i < t->endpoints; i++) {
        int n = __builtin_popcount(s->blocks[i]);
        unseen += !s->turns[i];
        least = s->turns[i] && (!least || s->turns[i] < least) ? s->turns[i] : least;
        blocks = s->turns[i] && n < blocks ? n : blocks;
    }
    if (unseen)
        say(words,
            mem_printf("%d of %d endpoints are not measured over NICs", unseen, t->endpoints));
    if (blocks < BLOCKS_LEAST)
        say(words,
            mem_printf("each NIC in %d turns or more, in %d block%s of time: what is slow for a "
                       "while is not told from what is always slow",
                       least, blocks, blocks == 1 ? "" : "s"));
    else if (least_share(least) < 1)
        say(words,
            mem_printf("each NIC in %d turns or more, in %d blocks of time: slow by a tenth in "
                       "%.0f %% of the time or more, it is noticed",
                       least, blocks, 100 * least_share(least)));
    else
        say(words,
            mem_printf("each NIC in %d turns or more, in %d blocks of time: only what is always "
                       "slow is noticed",
                       least, blocks));
}

static void say_kinds(json_t *words, const struct sight *s)
{
    static const char *const name[] = {"both ways at once", "with small messages",
                                       "with large messages"};
    const int turns[] = {s->both, s->small, s->large};
    char *not = NULL;

    for (int i = 0; i < 3; i++)
        if (!turns[i])
            not = mem_append(not, "%s%s", not ? ", " : "", name[i]);
    if (not )
        say(words, mem_printf("not measured: NICs %s", not ));
    if (!s->alone)
        say(words, mem_strdup("no pair runs alone: what load costs is not told"));
    free(not );
}

json_t *plan_sees(const struct plan *p, const struct topo *t)
{
    struct sight s = {.turns = mem_ints(t->endpoints, 0),
                      .blocks = mem_calloc((size_t)t->endpoints, 1)};
    const size_t bytes = matrix_bytes(p);
    json_t *words = json_array();
    bool any = false;

    for (int i = 0; i < p->rounds; i++)
        if (of_matrix(&p->round[i]))
            see_round(&s, t, &p->round[i], bytes);
    for (int i = 0; i < t->endpoints; i++)
        any |= s.turns[i] > 0;
    if (any) {
        say_turns(words, &s, t);
        say_kinds(words, &s);
    } else
        say_no_nic(words, t);
    if (any && !t->group[LEVEL_LEAF].count && !t->group[LEVEL_RACK].count)
        say(words,
            mem_strdup("no leaf and no rack is known: fewer uplinks than NICs are not noticed"));
    free(s.turns);
    free(s.blocks);
    return words;
}

void plan_sees_log(const struct plan *p, const struct topo *t)
{
    json_t *words = plan_sees(p, t), *text;
    size_t i;

    json_array_foreach(words, i, text) log_info("%s", json_string_value(text));
    json_decref(words);
}
