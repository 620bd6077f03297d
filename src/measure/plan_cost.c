/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_cost.c - expected cost and detection limits of a plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "measure/measure.h"
#include "measure/plan.h"
#include "measure/schedule_impl.h"
#include "topo/nic.h"

#define GUESS_ALPHA 1e-5 /* s */
#define MAX_RUN_CPU 0.1  /* s */
#define MAX_RUN_GPU 1.0
/* Smallest and largest time cap, s.  Between CPUs more than a few ms do not improve the median,
 * because epochs differ from each other by more (tests/bench/stop_rule.c). */
#define CAP_CPU 0.005
#define CAP_CPU_MOST 0.02
#define CAP_GPU 0.02
#define CAP_GPU_MOST 0.1
/* seconds of all turns together if each lasts until its time cap */
#define ALL_CPU 10
#define ALL_GPU 40
/* s to connect two GPUs, if nothing is known */
#define CONNECT_GPU 0.2
#define CONNECT_TOLD 10 /* s; shorter times are not printed */

/* Speed of a quiet machine, and of one that is busy or has fewer cores than ranks.  The values of
 * CPUs were measured with 2 to 8 ranks on two cores, alone and beside compilers. */
struct pace {
    double alpha; /* s per rank of a message */
    double rate;  /* B/s; busy: shared by all ranks */
    double turn;  /* s of a turn besides messages: opening, checks, exchange of all ranks */
    double rank;  /* additional s of a turn per rank */
    double start; /* s until MPI has started, and after its end */
    double again; /* time of the second stage, share of all */
    double runs;  /* runs of a size until its interval is narrow */
};
static const struct pace fast[] = {[ENDPOINT_CPU] = {1e-6, 1e10, 2e-4, 1e-4, 0.05, 0, 16},
                                   [ENDPOINT_GPU] = {GUESS_ALPHA, 1e11, 2e-3, 0, 0, 0, 32}},
                         busy[] = {[ENDPOINT_CPU] = {1e-5, 1e9, 1e-3, 1.5e-3, 1.5, 0.3, 3},
                                   [ENDPOINT_GPU] = {GUESS_ALPHA, 1e11, 2e-3, 0, 0, 0, 32}};

/* Number of turns of a round: sizes times epochs, because its groups run at the same time. */
static double turns(const struct round *r)
{
    return (double)plan_steps(r) * __builtin_popcount(r->epochs);
}

double plan_points(const struct plan *p, bool by_nic)
{
    double points = 0;

    for (int i = 0; i < p->rounds; i++)
        if (stage_by_nic(p->round[i].stage) == by_nic)
            points += turns(&p->round[i]) * p->round[i].groups;
    return points;
}

double plan_time_cap(const struct plan *p, const struct topo *t, double asked)
{
    bool gpus = t->endpoint[0].kind == ENDPOINT_GPU;
    double all = 0;

    if (asked > 0)
        return asked;
    for (int i = 0; i < p->rounds; i++)
        all += turns(&p->round[i]);
    return gpus ? fmin(CAP_GPU_MOST, fmax(CAP_GPU, ALL_GPU / all))
                : fmin(CAP_CPU_MOST, fmax(CAP_CPU, ALL_CPU / all));
}

double plan_max_run(const struct topo *t, double asked)
{
    if (asked > 0)
        return asked;
    return t->endpoint[0].kind == ENDPOINT_GPU ? MAX_RUN_GPU : MAX_RUN_CPU;
}

struct guess {
    int rounds;
    double seconds; /* on an undisturbed machine */
    double at_most; /* every size up to its time cap, as on a busy machine */
    double bytes;
};

/* Seconds for a size, with `one` seconds per message. */
static double messages_of(const struct measure_opts *o, double cap, const struct pace *pace,
                          double one)
{
    return o->iters ? o->iters : fmin(fmax(cap / one, 3), pace->runs);
}

/* Seconds for a size of a round by the stop rule, with `one` seconds per message, on an undisturbed
 * machine: the first batches give a narrow interval, but a parallel round lasts a quarter of its
 * time cap. */
static double quiet_turn(const struct round *r, const struct measure_opts *o, double cap,
                         const struct pace *pace, double one)
{
    double runs = messages_of(o, cap, pace, one);
    double sec = runs * one;

    if (r->groups > 1 && !o->iters)
        sec = fmax(sec, cap / 4);
    return sec + fmin(o->warmup, cap / 4 / one) * one;
}

/* The same on a busy machine: the time cap, or the least number of messages. */
static double busy_turn(const struct measure_opts *o, double cap, const struct pace *pace,
                        double one)
{
    double runs = messages_of(o, cap, pace, one);

    return 1.25 * fmax(cap, runs * one);
}

static double message_seconds(const struct pace *p, int ranks, double size)
{
    return p->alpha * ranks + size / p->rate;
}

static double turn_seconds(const struct pace *p, int ranks)
{
    return p->turn + p->rank * ranks;
}

/* Add one size of a round on all endpoints of t.  cap: time cap of a turn. */
static void guess_size(struct guess *g, const struct topo *t, const struct round *r, double size,
                       const struct measure_opts *o, double cap)
{
    const int world = t->endpoints, ranks = r->group[0].size;
    const int epochs = __builtin_popcount(r->epochs);
    const struct pace *good = &fast[t->endpoint[0].kind], *bad = &busy[t->endpoint[0].kind];
    double one = message_seconds(good, ranks, size);
    double runs = messages_of(o, cap, good, one);

    g->seconds += epochs * (quiet_turn(r, o, cap, good, one) + turn_seconds(good, world));
    g->at_most +=
        epochs * (1 + bad->again) *
        (busy_turn(o, cap, bad, message_seconds(bad, ranks, size)) + turn_seconds(bad, world));
    g->bytes += epochs * runs * size * r->groups * ranks;
}

/* Guess the cost of both passes, or only of the pass through the NICs. */
static struct guess guess_cost(const struct plan *p, const struct topo *t,
                               const struct measure_opts *o, bool nics_only)
{
    const double cap = plan_time_cap(p, t, o->time_cap), most = plan_max_run(t, o->max_run);
    const enum endpoint_kind kind = t->endpoint[0].kind;
    struct guess g = {0, fast[kind].start, busy[kind].start, 0};

    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        if (nics_only && !stage_by_nic(r->stage))
            continue;
        g.rounds++;
        for (int k = 0, n = plan_steps(r); k < n; k++) {
            double size = (double)plan_size(r, r->group[0].size, k);
            if (message_seconds(&fast[kind], r->group[0].size, size) > most)
                break;
            guess_size(&g, t, r, size, o, cap);
        }
    }
    g.at_most = fmax(g.seconds, g.at_most);
    return g;
}

/* Print the share of NIC pairs that is measured, because a fault of one path shows in no other
 * pair. */
static void print_cables(FILE *out, const struct plan *p, const struct topo *t)
{
    double seen, all;

    plan_cables_seen(p, t, &seen, &all);
    if (all > 0 && t->endpoint[0].kind == ENDPOINT_GPU)
        fprintf(out, "%.0f of %.0f pairs of NICs are measured, %.3g %%%s\n", seen, all,
                100 * seen / all, seen < all ? "; --cables TIME adds what fits into it" : "");
}

static void print_sight(FILE *out, const struct plan *p, const struct topo *t)
{
    json_t *words = plan_sees(p, t);

    for (size_t i = 0; i < json_array_size(words); i++)
        fprintf(out, "%s\n", json_string_value(json_array_get(words, i)));
    json_decref(words);
}

/* Second stage between GPUs at its full extent: half of the looks alone, a pair per turn, the
 * others at least two per turn; single pairs and a normal pair in two tiers, once per block. */
static double again_seconds(const struct plan *p, const struct topo *t,
                            const struct measure_opts *o)
{
    const double turns = RETEST_LOOKS / 2 * 1.5 + (RETEST_PAIRS + 2) * PLAN_EPOCHS;

    return turns * (1.25 * plan_time_cap(p, t, o->time_cap) +
                    turn_seconds(&busy[ENDPOINT_GPU], t->endpoints));
}

void plan_cost_print(FILE *out, const struct plan *p, const struct topo *t,
                     const struct measure_opts *o)
{
    char moved[UNITS_TEXT], took[UNITS_TEXT], most[UNITS_TEXT];
    struct guess all = guess_cost(p, t, o, false), nics = guess_cost(p, t, o, true);

    fprintf(out,
            "%d endpoints, %d rounds, about %.0f points, %s moved, about %s to %s of measuring\n",
            t->endpoints, p->rounds, plan_points(p, false) + plan_points(p, true),
            units_bytes_text(moved, all.bytes), units_seconds_text(took, all.seconds),
            units_seconds_text(most, all.at_most));
    if (nics.rounds)
        fprintf(out,
                "%d of the rounds, %s to %s, are a second pass through the NICs, which no pair "
                "crosses otherwise (--no-nic-pass leaves it out)\n",
                nics.rounds, units_seconds_text(took, nics.seconds),
                units_seconds_text(most, nics.at_most));
    double connect = plan_connect_seconds(p, t, PLAN_POOL, false);
    if (connect > CONNECT_TOLD)
        fprintf(out,
                "about %s more for the communicators of pairs, where NCCL makes them one by one "
                "(--pair-comms)\n",
                units_seconds_text(took, connect));
    if (o->retest && !o->quick && t->endpoint[0].kind == ENDPOINT_GPU)
        fprintf(out, "suspects are measured again beside controls: at most %s more\n",
                units_seconds_text(took, again_seconds(p, t, o)));
    print_sight(out, p, t);
    print_cables(out, p, t);
}

json_t *plan_cost_json(const struct plan *p, const struct topo *t, const struct measure_opts *o)
{
    struct guess all = guess_cost(p, t, o, false), nics = guess_cost(p, t, o, true);
    double seen, pairs;

    plan_cables_seen(p, t, &seen, &pairs);
    double again = o->retest && t->endpoint[0].kind == ENDPOINT_GPU ? again_seconds(p, t, o) : 0;
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:o}", "endpoints",
                     t->endpoints, "rounds", p->rounds, "points",
                     plan_points(p, false) + plan_points(p, true), "bytes", all.bytes, "seconds",
                     all.seconds, "at_most_seconds", all.at_most, "connect_seconds",
                     plan_connect_seconds(p, t, PLAN_POOL, false), "nic_pass_rounds", nics.rounds,
                     "nic_pairs_measured", seen, "nic_pairs", pairs, "again_at_most_seconds", again,
                     "sees", plan_sees(p, t));
}

#define NIC_BPS 25e9

/* True if the communicators of all pairs of a round are open; else they are open afterwards.
 * with[a] is the partner that a sends to. */
static bool is_open(int *with, const struct round *r)
{
    bool open = true;

    for (int g = 0; g < r->groups; g++) {
        const int *pair = r->group[g].members;
        open = open && with[pair[0]] == pair[1];
        with[pair[0]] = pair[1];
    }
    return open;
}

/* Communicators are made on demand, all those of a round at once, and kept while a rank has no more
 * partners than its pool has room for. */
double plan_connect_seconds(const struct plan *p, const struct topo *t, int pool, bool by_nic)
{
    int steps[PLAN_EPOCHS] = {0}, first = 0, all = 0, *with = mem_ints(t->endpoints, -1);

    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        if (!op_is_pair(r->op) || stage_by_nic(r->stage) != by_nic)
            continue;
        const bool open = is_open(with, r);
        for (int e = 0; e < PLAN_EPOCHS; e++)
            steps[e] += !open && (r->epochs >> e & 1);
    }
    for (int e = 0; e < PLAN_EPOCHS; e++) {
        first = steps[e] > first ? steps[e] : first;
        all += steps[e];
    }
    free(with);
    return t->endpoint[0].kind == ENDPOINT_GPU ? CONNECT_GPU * (first <= pool ? first : all) : 0;
}

double plan_cable_seconds(const struct topo *t, size_t bytes)
{
    int nic = t->endpoint[0].nic;
    double rate = nic >= 0 && t->nic[nic].rate_Bps > 0 ? t->nic[nic].rate_Bps : NIC_BPS;
    double once =
        1.25 * fmax(0.02, 3 * (GUESS_ALPHA + (double)bytes / rate)) + fast[ENDPOINT_GPU].turn;

    return (t->endpoint[0].kind == ENDPOINT_GPU ? CONNECT_GPU : 0) + 2 * once;
}

/* --- coverage of NIC pairs --- */

static bool crosses_nics(const struct topo *t, int a, int b)
{
    return !(t->tier[topo_tier(t, a, b)].same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN));
}

/* Number of pairs that share neither a host nor an NVLink domain; by_nic: number of all pairs with
 * two NICs. */
static double count_cables(const struct topo *t, bool by_nic)
{
    const size_t rows =
        (size_t)(by_nic ? t->nics : t->group[LEVEL_HOST].count + t->group[LEVEL_DOMAIN].count);
    double *of = mem_calloc(rows + 1, sizeof(*of)), pairs = 0.5 * t->endpoints * (t->endpoints - 1);

    for (int i = 0; i < t->endpoints; i++) {
        int domain = topo_at(t, i, LEVEL_DOMAIN);
        of[by_nic        ? t->endpoint[i].nic
           : domain >= 0 ? t->group[LEVEL_HOST].count + domain
                         : topo_at(t, i, LEVEL_HOST)]++;
    }
    for (size_t i = 0; i < rows; i++)
        pairs -= 0.5 * of[i] * (of[i] - 1);
    free(of);
    return pairs;
}

static int by_key(const void *a, const void *b)
{
    const long long *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void plan_cables_seen(const struct plan *p, const struct topo *t, double *seen, double *all)
{
    const bool by_nic = plan_points(p, true) > 0;
    long long *key = NULL;
    int n = 0;

    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        for (int g = 0; g < r->groups && r->op == OP_PAIR_BW; g++) {
            long long a = r->group[g].members[0], b = r->group[g].members[1];
            if (stage_by_nic(r->stage) || crosses_nics(t, (int)a, (int)b))
                MEM_PUSH(key, n) = a < b ? a * t->endpoints + b : b * t->endpoints + a;
        }
    }
    if (n)
        qsort(key, (size_t)n, sizeof(*key), by_key);
    *seen = n > 0;
    for (int i = 1; i < n; i++)
        *seen += key[i] != key[i - 1];
    *all = count_cables(t, by_nic);
    free(key);
}

double plan_seconds(const struct plan *p, const struct topo *t, const struct measure_opts *o)
{
    return guess_cost(p, t, o, false).at_most;
}

double plan_exact_seconds(const struct topo *t, size_t bytes)
{
    static const enum op ops[] = {OP_PAIR_LATENCY, OP_PAIR_BW, OP_PAIR_BW};
    const int rounds = schedule_circle_rounds(t->endpoints);
    struct measure_opts o = MEASURE_DEFAULTS;
    struct plan one = {NULL, 0};

    for (int i = 0; i < 3; i++) {
        struct round *r = plan_add(&one, STAGE_TOURNAMENT, ops[i], 1);
        r->first = r->last = i ? bytes : 8;
        r->factor = 2;
        r->epochs = 1;
        r->group[0].members = mem_calloc(2, sizeof(int));
        r->group[0].size = 2;
    }
    o.time_cap = fmin(0.1, fmax(CAP_GPU, 40 / (3.0 * rounds))); /* time cap of the whole plan */
    double start = fast[t->endpoint[0].kind].start, sec = guess_cost(&one, t, &o, false).seconds;
    plan_free(&one);
    return (sec - start) * rounds + start;
}

/* Bytes of a line of plan.tsv per pair and of points.tsv per point, rounded down. */
enum { PLAN_PAIR_LINE = 10, POINT_LINE = 160, TURNS_OF_PAIR = 3 };

int plan_refuse_every(const struct topo *t, bool alone, size_t bytes, struct err *err)
{
    const double pairs = 0.5 * t->endpoints * (t->endpoints - 1.0), points = TURNS_OF_PAIR * pairs;
    const double rounds = alone ? pairs : schedule_circle_rounds(t->endpoints);
    char many[UNITS_TEXT], all[UNITS_TEXT], files[UNITS_TEXT], took[UNITS_TEXT];
    double sec = plan_exact_seconds(t, bytes) * rounds / schedule_circle_rounds(t->endpoints);

    return err_usage(
        err,
        "every pair of %d endpoints%s: %s pairs, %s points, %s of files, about %s of measuring; "
        "more than %d endpoints are not measured so (%s; --cables TIME adds as many pairs of NICs "
        "as fit into it)",
        t->endpoints, alone ? ", alone" : "", units_count_text(many, pairs, 3),
        units_count_text(all, points, 3),
        units_bytes_text(files, points * (PLAN_PAIR_LINE + POINT_LINE)),
        units_seconds_text(took, sec), alone ? PLAN_ALONE_TO : PLAN_EVERY_TO,
        alone && t->endpoints <= PLAN_EVERY_TO
            ? "--exact measures every pair in parallel rounds"
            : "the default plan measures a few partners of each endpoint in each tier, --quick the "
              "same once");
}

/* --- what the plan can and cannot detect, in words --- */

/* Probabilities behind "is noticed": 1 point in 20 is slow by chance, a healthy NIC is suspected in
 * 1 of 50 campaigns, and a bad NIC is missed in 1 of 20. */
static const double stray = 0.05, suspected = 0.02, missed = 0.05;
/* Two bad blocks of three decide.  With fewer blocks, a bad minute looks like a bad part. */
enum { BLOCKS_LEAST = 3 };

/* Measurements of a plan that involve NICs. */
struct sight {
    int *turns;             /* by endpoint: turns over its NIC at the size of most pairs */
    unsigned char *blocks;  /* by endpoint: bit mask of the blocks of these turns */
    int both, small, large; /* number of turns of further kinds */
    bool alone;             /* a pair is measured alone, outside of ladders */
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

/* Size of most pairs. */
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

/* Smallest share of the time for which a NIC with this number of turns must be slow to be
 * noticed. */
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
    json_t *words = plan_sees(p, t);

    for (size_t i = 0; i < json_array_size(words); i++)
        log_info("%s", json_string_value(json_array_get(words, i)));
    json_decref(words);
}
