/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - who is named: the rules on made-up ranks, the lines, and a listener among strangers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "watch/watch.h"
#include "watch/watch_impl.h"
#include "watch/watch_listen.h"
#include "watch/watch_wire.h"

enum { N = 4 };

static void join(struct judge *j, double now)
{
    judge_open(j, 5);
    for (int i = 0; i < N; i++) {
        struct watch_hello h = {.rank = i, .ranks = N, .pid = 100 + i, .host = "n0"};
        h.host[1] = (char)('0' + i / 2);
        assert_int_equal(judge_hello(j, &h, now), 0);
    }
}

/* One beat of a rank: it has moved when `moves` differs from before. */
static void tick(struct judge *j, int rank, double now, uint64_t moves, uint64_t steps,
                 enum watch_state state, double expect, const char *words)
{
    struct watch_line l = {.kind = WATCH_BEAT,
                           .beat = {.moves = moves,
                                    .steps = steps,
                                    .state = state,
                                    .expect = expect,
                                    .kept = 3,
                                    .total = 9}};

    snprintf(l.beat.words, sizeof(l.beat.words), "%s", words);
    judge_line(j, rank, &l, now);
}

/* Everybody beats ten times a second from `from` to `to`, standing still at these numbers of steps
 * (a negative one: the rank says nothing); stops at a verdict. */
static bool stand(struct judge *j, double from, double to, const int *steps, double expect)
{
    for (int i = 0; i <= (int)((to - from) * 10 + 0.5); i++) {
        double now = from + i * 0.1;
        for (int r = 0; r < N; r++)
            if (steps[r] >= 0)
                tick(j, r, now, (uint64_t)steps[r] + 1, (uint64_t)steps[r], WATCH_BUSY, expect,
                     "all_reduce of 1.00 MiB (round 7)");
        if (judge_look(j, now))
            return true;
    }
    return false;
}

static void test_first_death_rules(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_false(stand(&j, 10, 11, (int[]){5, 5, 5, 5}, 0));
    judge_closed(&j, 3, 11);
    assert_false(judge_look(&j, 11.05)); /* others may follow */
    judge_closed(&j, 1, 11.06);
    assert_false(judge_look(&j, 11.12)); /* what is kept is still to be said */
    tick(&j, 0, 11.13, 9, 5, WATCH_BUSY, 0, "x");
    assert_true(judge_look(&j, 11.13));
    assert_int_equal(j.verdict.kind, VERDICT_DEAD);
    assert_int_equal(j.verdict.rank, 3);
    assert_string_equal(j.verdict.text,
                        "rank 3 (host n1, pid 103) died in all_reduce of 1.00 MiB (round 7); so "
                        "did rank 1; 3 of 9 points are kept, --resume measures the rest");
    judge_closed(&j, 0, 11.2);
    assert_true(judge_look(&j, 12));
    assert_int_equal(j.verdict.rank, 3); /* it stays what it is */
    judge_free(&j);
}

/* All at once: no rank is the cause, as when memory or an administrator ends the job. */
static void test_all_die_at_once(void **state)
{
    const struct {
        double at[N];
        int rank;
        const char *says;
    } t[] = {
        {{11.01, 11, 11.02, 11.099},
         -1,
         "all 4 ranks died within 99.0 ms in x, rank 1 (host n0, pid 101) as the first: no single "
         "rank is the cause; 3 of 9 points are kept"},
        {{11.01, 11, 11.02, 11.11}, 1, "rank 1 (host n0, pid 101) died in x; so did rank 0, 2, 3"},
        {{11.01, 11, 11.02, 0}, 1, "rank 1 (host n0, pid 101) died in x; so did rank 0, 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct judge j;
        join(&j, 10);
        for (int r = 0; r < N; r++)
            tick(&j, r, 10.9, 5, 5, WATCH_BUSY, 0, "x");
        for (int r = 0; r < N; r++)
            if (t[i].at[r] > 0)
                judge_closed(&j, r, t[i].at[r]);
        assert_true(judge_look(&j, 11.2));
        assert_int_equal(j.verdict.kind, VERDICT_DEAD);
        assert_int_equal(j.verdict.rank, t[i].rank);
        if (!strstr(j.verdict.text, t[i].says))
            fail_msg("row %zu: %s", i, j.verdict.text);
        judge_free(&j);
    }
}

static void test_goodbye_is_no_death(void **state)
{
    struct watch_line bye = {.kind = WATCH_BYE}, stop = {.kind = WATCH_STOP};
    struct judge j;

    (void)state;
    join(&j, 10);
    judge_line(&j, 2, &bye, 10.5);
    judge_closed(&j, 2, 10.5);
    assert_false(judge_look(&j, 10.7));
    /* a signal ends the campaign: those that are killed before they say so are no culprits */
    judge_line(&j, 0, &stop, 10.8);
    judge_closed(&j, 1, 10.9);
    assert_false(judge_look(&j, 11.5));
    judge_free(&j);
    join(&j, 10);
    judge_closed(&j, 1, 10.1); /* first it died, then the launcher ended the rest */
    judge_line(&j, 0, &stop, 10.15);
    assert_true(judge_look(&j, 10.3)); /* rank 0 said goodbye: nothing more is kept */
    assert_int_equal(j.verdict.rank, 1);
    judge_free(&j);
}

static void test_all_gone_after_goodbye(void **state)
{
    struct watch_line bye = {.kind = WATCH_BYE};
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_false(stand(&j, 10, 11, (int[]){5, 5, 5, 5}, 0));
    for (int i = 0; i < N; i++)
        judge_line(&j, i, &bye, 11);
    assert_false(judge_look(&j, 1000));
    j.rank[2].left = true; /* its process keeps the launcher */
    assert_true(judge_look(&j, 1000));
    assert_int_equal(j.verdict.kind, VERDICT_HUNG);
    assert_int_equal(j.verdict.rank, 2);
    assert_non_null(strstr(j.verdict.text, "pid 102) did not end within 16"));
    judge_free(&j);
}

static void test_silence(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_false(stand(&j, 10, 11, (int[]){5, 5, 5, 5}, 0));
    assert_false(stand(&j, 11, 12.5, (int[]){5, 5, -1, 5}, 0));
    assert_true(stand(&j, 12.6, 12.9, (int[]){5, 5, -1, 5}, 0));
    assert_int_equal(j.verdict.kind, VERDICT_SILENT);
    assert_int_equal(j.verdict.rank, 2);
    assert_non_null(strstr(j.verdict.text, "rank 2 (host n1, pid 102) said nothing for 1."));
    judge_free(&j);
    join(&j, 10); /* at the start: 4.4 s longer */
    for (int i = 1; i < 70; i++) {
        for (int r = 1; r < N; r++)
            tick(&j, r, 10 + 0.1 * i, 0, 0, WATCH_STARTING, 0, "the start");
        assert_int_equal(judge_look(&j, 10 + 0.1 * i), i > 60);
    }
    assert_true(judge_look(&j, 17));
    assert_int_equal(j.verdict.kind, VERDICT_SILENT);
    assert_int_equal(j.verdict.rank, 0);
    judge_free(&j);
    join(&j, 10); /* the last one, after the others' goodbyes */
    assert_false(stand(&j, 10, 11, (int[]){5, 5, 5, 5}, 0));
    for (int r = 1; r < N; r++)
        judge_line(&j, r, &(struct watch_line){.kind = WATCH_BYE}, 11);
    assert_false(judge_look(&j, 12.5));
    assert_true(judge_look(&j, 12.7));
    assert_int_equal(j.verdict.kind, VERDICT_SILENT);
    assert_int_equal(j.verdict.rank, 0);
    judge_free(&j);
}

static void test_silence_of_all_or_of_the_listener(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_false(judge_look(&j, 14)); /* a suspended job, or our own network */
    assert_false(stand(&j, 14, 14.1, (int[]){5, 5, 5, 5}, 20));
    /* Beats do not wait for the 20 s that the step may take; one that was late changes the limit. */
    assert_false(judge_look(&j, 24));
    assert_true(judge_look(&j, 26));
    assert_int_equal(j.verdict.kind, VERDICT_SILENT);
    assert_int_equal(j.verdict.rank, -1);
    assert_non_null(strstr(j.verdict.text, "no rank was heard for 11.9 s: the job is suspended"));
    judge_free(&j);
    join(&j,
         10); /* the ranks are heard at last, after a step of 20 s: hang_after counts from there */
    stand(&j, 10, 29, (int[]){5, 5, 5, 5}, 20);
    assert_false(judge_look(&j, 33.9));
    assert_true(judge_look(&j, 34.1));
    assert_int_equal(j.verdict.kind, VERDICT_SILENT);
    judge_free(&j);
    join(&j, 10);
    stand(&j, 10, 10.5, (int[]){5, 5, 5, 5}, 0);
    judge_excuse(&j, 3); /* we did not run from 10.5 to 13.5 */
    tick(&j, 0, 13.5, 6, 5, WATCH_BUSY, 0, "x");
    assert_false(judge_look(&j, 13.5));
    judge_free(&j);
}

/* Beats that come 0.3 s late make the limit longer. */
static void test_silence_on_a_loaded_host(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    for (int i = 0; i < 5; i++)
        for (int r = 0; r < N; r++)
            tick(&j, r, 10 + 0.4 * i, (uint64_t)i, 0, WATCH_BUSY, 0, "x");
    assert_false(judge_look(&j, 11.6));
    for (int r = 0; r < N - 1; r++)
        tick(&j, r, 15, 9, 0, WATCH_BUSY, 0, "x");
    assert_false(judge_look(&j, 15)); /* rank 3: 3.4 s of silence */
    for (int i = 0; i < 200; i++)
        for (int r = 0; r < N - 1; r++)
            tick(&j, r, 15 + 0.1 * i, 9, 0, WATCH_BUSY, 0, "x");
    assert_true(judge_look(&j, 35));
    assert_int_equal(j.verdict.rank, 3);
    judge_free(&j);
}

/* Beats that come 0.4 s late let a silence last 6.2 s, and a hang is told after 5.7 s: a rank that
 * is stopped is said to be so all the same. */
static void test_stopped_on_a_loaded_host(void **state)
{
    bool found = false;
    struct judge j;

    (void)state;
    join(&j, 10);
    for (double now = 10; now < 16.5 && !found; now += 0.5) {
        for (int r = 0; r < N; r++)
            if (r != 3 || now < 11)
                tick(&j, r, now, 60, r == 3 ? 56 : 57, WATCH_BUSY, 0, "x");
        found = judge_look(&j, now);
    }
    assert_true(found);
    assert_int_equal(j.verdict.kind, VERDICT_SILENT);
    assert_int_equal(j.verdict.rank, 3);
    assert_non_null(strstr(j.verdict.text, "said nothing for 5."));
    judge_free(&j);
}

/* All ranks wait in the same call, whose beats come `late` s late on a loaded host; rank 3 says
 * nothing from 12 on, the others' last words are `others` s old at the end. */
static double stopped_in_a_call(double late, double others, struct verdict *v)
{
    struct judge j;
    double now;

    join(&j, 10);
    for (now = 10; now < 40 && !judge_look(&j, now); now += 0.05)
        for (int r = 0; r < N; r++) {
            struct watch_line l = {
                .kind = WATCH_BEAT,
                .beat = {.moves = 9, .steps = 5, .state = WATCH_BUSY, .call = "x", .words = "x"}};
            double every = now < 12.5 ? 0.1 + late : others;
            if (now + 1e-9 >= j.rank[r].heard + every && (r != 3 || now < 12.5))
                judge_line(&j, r, &l, now);
        }
    *v = j.verdict;
    judge_free(&j);
    return now;
}

static void test_stopped_in_a_call_on_a_loaded_host(void **state)
{
    struct verdict v;

    (void)state;
    /* The last step was at 11, and hang_after is 5 s; a silence of 1.6 + 8 * 0.9 s is told at 20.8. */
    double at = stopped_in_a_call(0.9, 1, &v);
    assert_int_equal(v.kind, VERDICT_SILENT);
    assert_int_equal(v.rank, 3);
    assert_true(at > 16.6 && at < 17.1);
    /* the others are nearly as silent: it must be twice as long as theirs */
    at = stopped_in_a_call(0.9, 3, &v);
    assert_int_equal(v.kind, VERDICT_SILENT);
    assert_int_equal(v.rank, 3);
    assert_true(at > 17.9 && at < 19);
}

static void test_the_one_behind_hangs(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_false(stand(&j, 10, 15, (int[]){57, 57, 57, 56}, 0));
    assert_true(stand(&j, 15.1, 17, (int[]){57, 57, 57, 56}, 0));
    assert_int_equal(j.verdict.kind, VERDICT_HUNG);
    assert_int_equal(j.verdict.rank, 3);
    assert_non_null(strstr(j.verdict.text, "hangs in all_reduce of 1.00 MiB (round 7): nothing "
                                           "moved for 5."));
    judge_free(&j);
}

/* Some time before a hang becomes a verdict, and whenever a rank complains. */
static void test_soon(void **state)
{
    struct watch_line ill = {.kind = WATCH_SYMPTOM, .beat.words = "no answer"};
    struct judge j;

    (void)state;
    join(&j, 10); /* patience: 5 s and 0.7 s */
    assert_false(stand(&j, 10, 13.4, (int[]){57, 57, 57, 56}, 0));
    assert_int_equal(judge_soon(&j, 12.7), JUDGE_NOTHING);
    assert_int_equal(judge_soon(&j, 13.4), JUDGE_LOOK);
    assert_false(stand(&j, 13.5, 14, (int[]){57, 57, 57, 56}, 0));
    assert_int_equal(judge_soon(&j, 14), JUDGE_SOON);
    tick(&j, 0, 14.1, 59, 58, WATCH_BUSY, 0, "all_reduce of 1.00 MiB (round 7)");
    assert_int_equal(judge_soon(&j, 14.2), JUDGE_NOTHING); /* somebody moved */
    judge_line(&j, 2, &ill, 14.3);
    assert_int_equal(judge_soon(&j, 14.3), JUDGE_SOON);
    judge_free(&j);
    join(&j, 10); /* a step that may take 20 s: threads are looked at all the same */
    assert_false(stand(&j, 10, 34, (int[]){57, 57, 57, 56}, 20));
    assert_int_equal(judge_soon(&j, 12.7), JUDGE_NOTHING);
    assert_int_equal(judge_soon(&j, 12.9), JUDGE_LOOK);
    assert_int_equal(judge_soon(&j, 33.4), JUDGE_LOOK);
    assert_int_equal(judge_soon(&j, 33.6), JUDGE_SOON);
    judge_free(&j);
}

static void test_nobody_behind_stalls(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_true(stand(&j, 10, 17, (int[]){57, 57, 57, 57}, 0));
    assert_int_equal(j.verdict.kind, VERDICT_STALLED);
    assert_int_equal(j.verdict.rank, -1);
    judge_free(&j);
    join(&j, 10); /* two are behind: neither is named */
    assert_true(stand(&j, 10, 17, (int[]){57, 56, 57, 56}, 0));
    assert_int_equal(j.verdict.kind, VERDICT_STALLED);
    judge_free(&j);
}

static void test_a_long_operation_is_no_hang(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_false(stand(&j, 10, 29, (int[]){57, 57, 57, 56}, 20));
    assert_true(stand(&j, 29.1, 37, (int[]){57, 57, 57, 56}, 20));
    judge_free(&j);
}

/* Groups side by side are at different counts; ranks that wait for others are nobody's hang. */
static void test_groups_and_waiting(void **state)
{
    bool found = false;
    struct judge j;

    (void)state;
    join(&j, 10);
    for (double now = 10; now < 17 && !found; now += 0.1) {
        tick(&j, 0, now, 900, 800, WATCH_BUSY, 0, "pair_bw (round 3, group 0)");
        tick(&j, 1, now, 899, 799, WATCH_BUSY, 0, "pair_bw (round 3, group 0)");
        tick(&j, 2, now, 20, 1, WATCH_WAITING, 0, "pair_bw (round 3, group 1)");
        tick(&j, 3, now, 20, 1, WATCH_WAITING, 0, "pair_bw (round 3, group 1)");
        found = judge_look(&j, now);
    }
    assert_true(found);
    assert_int_equal(j.verdict.kind, VERDICT_HUNG);
    assert_int_equal(j.verdict.rank, 1);
    judge_free(&j);
}

static void test_alone_in_what_it_does(void **state)
{
    bool found = false;
    struct judge j;

    (void)state;
    join(&j, 10);
    for (double now = 10; now < 17 && !found; now += 0.1) {
        for (int r = 0; r < N; r++)
            tick(&j, r, now, 9, 0, r == 2 ? WATCH_BUSY : WATCH_WAITING, 0, "between");
        found = judge_look(&j, now);
    }
    assert_true(found);
    assert_int_equal(j.verdict.kind, VERDICT_HUNG);
    assert_int_equal(j.verdict.rank, 2);
    judge_free(&j);
}

/* --- which evidence counts: threads, calls, steps --- */

struct still {
    uint64_t steps;
    enum watch_state state;
    enum watch_pulse pulse;
    const char *call, *words;
};

/* Everybody stands still so, until there is a verdict; its text without what is kept. */
static const char *judged(const struct still *as, int *rank)
{
    static char text[512];
    struct judge j;

    join(&j, 10);
    for (double now = 10; now < 17 && !judge_look(&j, now); now += 0.1)
        for (int r = 0; r < N; r++) {
            struct watch_line l = {
                .kind = WATCH_BEAT,
                .beat = {
                    .moves = 9, .steps = as[r].steps, .state = as[r].state, .pulse = as[r].pulse}};
            snprintf(l.beat.call, sizeof(l.beat.call), "%s", as[r].call);
            snprintf(l.beat.words, sizeof(l.beat.words), "%s", as[r].words);
            judge_line(&j, r, &l, now);
        }
    *rank = j.verdict.rank;
    snprintf(text, sizeof(text), "%s", j.verdict.text);
    judge_free(&j);
    return text;
}

static void test_evidence(void **state)
{
    const enum watch_state B = WATCH_BUSY, W = WATCH_WAITING;
    const enum watch_pulse L = WATCH_LIVE, U = WATCH_UNSEEN, H = WATCH_STOPPED, S = WATCH_SPINS,
                           K = WATCH_HELD;
    const char *const in = "MPI_Bcast", *const out = "", *const op = "all_reduce (round 1)";
    static const char *const held = "its measuring thread is stopped (debugger or signal)",
                             *const kernel = "is held in the kernel (driver or file system)",
                             *const spins = "its measuring thread spins in one place",
                             *const behind = "it is behind the others",
                             *const none = "no rank is behind the others",
                             *const wait = "each rank waits for others: the network, or a library";
    const struct {
        int rank;
        const char *says;
        struct still as[N];
    } t[] = {
        /* all are inside the same call: the thread tells */
        {2, held, {{5, B, L, in, op}, {5, B, L, in, op}, {5, B, H, in, op}, {5, B, L, in, op}}},
        {2, spins, {{5, B, L, in, op}, {5, B, L, in, op}, {5, B, S, in, op}, {5, B, L, in, op}}},
        {2, kernel, {{5, B, L, in, op}, {5, B, L, in, op}, {5, B, K, in, op}, {5, B, L, in, op}}},
        {1, held, {{5, B, K, in, op}, {5, B, H, in, op}, {5, B, S, in, op}, {5, B, L, in, op}}},
        /* rank 1 is behind because rank 2 hung before its messages had left */
        {2, held, {{6, B, L, in, op}, {5, B, L, in, op}, {6, B, H, in, op}, {6, B, L, in, op}}},
        {-1, wait, {{6, B, L, in, op}, {5, B, L, in, op}, {6, B, L, in, op}, {6, B, L, in, op}}},
        {-1, none, {{5, B, L, in, op}, {5, B, L, in, op}, {5, B, L, in, op}, {5, B, L, in, op}}},
        /* a rank that waits between two points hangs too */
        {3, held, {{0, W, L, out, op}, {0, W, L, out, op}, {0, W, L, out, op}, {0, W, H, out, op}}},
        /* a library that waits in a loop of a few instructions: its ranks are no culprits */
        {-1, none, {{5, B, S, in, op}, {5, B, S, in, op}, {5, B, L, in, op}, {5, B, L, in, op}}},
        {1, held, {{5, B, S, in, op}, {5, B, H, in, op}, {5, B, S, in, op}, {5, B, S, in, op}}},
        {-1, none, {{5, B, U, in, op}, {5, B, S, in, op}, {5, B, U, in, op}, {5, B, U, in, op}}},
        /* it never entered, at the same step, and whatever its words are */
        {1, behind, {{5, B, L, in, op}, {5, B, L, out, op}, {5, B, L, in, op}, {5, W, L, out, op}}},
        {1, behind, {{5, B, L, in, op}, {9, B, L, out, "x"}, {5, B, L, in, op}, {5, B, L, in, op}}},
        {-1, none, {{5, B, L, in, op}, {5, B, L, out, op}, {5, B, L, out, op}, {5, B, L, in, op}}},
        {1, behind, {{5, B, L, in, op}, {4, B, L, out, op}, {5, B, L, out, op}, {5, B, L, in, op}}},
    };
    int rank;

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        const char *text = judged(t[i].as, &rank);
        if (rank != t[i].rank || !strstr(text, t[i].says))
            fail_msg("row %zu: rank %d instead of %d: %s", i, rank, t[i].rank, text);
    }
    judged(t[0].as, &rank);
    assert_non_null(strstr(judged(t[0].as, &rank), "signal) in MPI_Bcast"));
    const struct still two[N] = {
        {5, B, L, in, op}, {5, B, H, in, op}, {5, B, L, in, op}, {5, B, H, in, op}};
    assert_non_null(strstr(judged(two, &rank), "signal) in MPI_Bcast; so did rank 3"));
    assert_int_equal(rank, 1);
}

/* From 10 on: rank `who` has this pulse, the others are alive and make a step a beat if `move`.  The
 * time of the verdict, at most 70. */
static double told_at(enum watch_pulse pulse, int who, int others, bool move, double expect,
                      struct verdict *v)
{
    struct judge j;
    double now;

    join(&j, 10);
    for (now = 10; now < 70 && !judge_look(&j, now); now += 0.1)
        for (int r = 0; r < N; r++) {
            bool is = r == who || r < others;
            struct watch_line l = {.kind = WATCH_BEAT,
                                   .beat = {.moves = move && !is ? (uint64_t)(10 * now) : 9,
                                            .state = WATCH_BUSY,
                                            .pulse = is ? pulse : WATCH_LIVE,
                                            .expect = expect,
                                            .call = "MPI_Bcast",
                                            .words = "x"}};
            judge_line(&j, r, &l, now);
        }
    *v = j.verdict;
    judge_free(&j);
    return now;
}

#define BETWEEN(low, value, high) assert_true((low) < (value) && (value) < (high))

/* What is evidence of its own waits neither for 20 s that the step may take nor for tests of GPUs. */
static void test_when_evidence_is_told(void **state)
{
    struct verdict v;

    (void)state;
    BETWEEN(11.5, told_at(WATCH_STOPPED, 3, 0, false, 20, &v), 11.9);
    assert_int_equal(v.rank, 3);
    assert_non_null(strstr(v.text, "it did not move for 1."));
    BETWEEN(11.5, told_at(WATCH_STOPPED, 3, 0, true, 20, &v), 11.9); /* the others still move */
    BETWEEN(11.5, told_at(WATCH_STOPPED, 3, 3, false, 20, &v) - 23.9,
            12.3); /* a debugger has all */
    BETWEEN(14.9, told_at(WATCH_SPINS, 2, 0, false, 20, &v), 15.3);
    assert_int_equal(v.rank, 2);
    BETWEEN(69, told_at(WATCH_SPINS, 2, 0, true, 20, &v), 71);
    BETWEEN(35.6, told_at(WATCH_SPINS, 2, 1, false, 20, &v), 36); /* two that spin: a library */
    assert_int_equal(v.rank, -1);
    BETWEEN(35.6, told_at(WATCH_HELD, 2, 0, false, 20, &v), 36); /* a file system may take long */
    assert_int_equal(v.rank, 2);
}

/* The last rank, after the others' goodbyes. */
static void test_the_last_one_hangs(void **state)
{
    const enum watch_pulse pulse[] = {WATCH_STOPPED, WATCH_SPINS};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct judge j;
        double now;
        join(&j, 10);
        for (int r = 1; r < N; r++)
            judge_line(&j, r, &(struct watch_line){.kind = WATCH_BYE}, 10);
        for (now = 10; now < 30 && !judge_look(&j, now); now += 0.1) {
            struct watch_line l = {.kind = WATCH_BEAT,
                                   .beat = {.moves = 9,
                                            .state = WATCH_BUSY,
                                            .pulse = pulse[i],
                                            .expect = 20,
                                            .call = "x",
                                            .words = "x"}};
            judge_line(&j, 0, &l, now);
        }
        assert_int_equal(j.verdict.kind, VERDICT_HUNG);
        assert_int_equal(j.verdict.rank, 0);
        BETWEEN(i ? 14.9 : 11.5, now, i ? 15.3 : 11.9);
        judge_free(&j);
    }
}

/* --- what the watch thread sees of the measuring thread --- */

struct measuring {
    struct watch_self self;
    struct watch_where where;
    void (*how)(atomic_bool *end);
    atomic_bool end;
};

static void *measure(void *arg)
{
    struct measuring *m = arg;
    struct watch_hello h = {.rank = 0, .ranks = 2, .pid = 1, .host = "n"};

    assert_int_equal(watch_thread_start(&m->self, &m->where, &h, NULL), 0);
    m->how(&m->end);
    return NULL;
}

/* The pulse that is told after `word`, the first or `wanted` (WATCH_UNSEEN: any), where the
 * step may take work_ms.  "look" was said `looked` seconds before; 0: it was not. */
static enum watch_pulse pulse_after(void (*how)(atomic_bool *end), double looked, const char *word,
                                    int work_ms, enum watch_pulse wanted)
{
    struct measuring m = {
        .self = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .wake = -1, .work_ms = work_ms},
        .how = how};
    struct watch_stream *in = calloc(1, sizeof(*in));
    enum watch_pulse seen = WATCH_UNSEEN;
    char where[WATCH_WHERE], text[WATCH_LINE];
    struct watch_line l;
    pthread_t thread;
    int fd = wire_bind("127.0.0.1", where, NULL), rank;

    watch_where_parse(&m.where, where);
    assert_int_equal(pthread_create(&thread, NULL, measure, &m), 0);
    poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5000);
    rank = accept(fd, NULL, NULL);
    assert_true(rank >= 0);
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    if (looked > 0) {
        assert_int_equal(send(rank, "look\n", 5, 0), 5);
        usleep((useconds_t)(1e6 * looked));
    }
    assert_int_equal(send(rank, word, 5, 0), 5);
    for (double end = log_now() + 60;
         log_now() < end && (seen == WATCH_UNSEEN || (wanted && seen != wanted));) {
        poll(&(struct pollfd){.fd = rank, .events = POLLIN}, 1, 100);
        watch_stream_read(in, rank);
        while (watch_stream_line(in, text) > 0)
            if (watch_line_parse(&l, text) == 0 && l.kind == WATCH_BEAT)
                seen = l.beat.pulse;
    }
    m.end = true;
    pthread_join(thread, NULL);
    watch_thread_end(&m.self);
    close(rank);
    close(fd);
    free(in);
    return seen;
}

static enum watch_pulse pulse_of(void (*how)(atomic_bool *end), const char *word, int work_ms)
{
    return pulse_after(how, 0, word, work_ms, WATCH_UNSEEN);
}

static void sleeps(atomic_bool *end)
{
    while (!*end)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void works(atomic_bool *end)
{
    char text[64];

    for (unsigned i = 0; !*end; i++)
        snprintf(text, sizeof(text), "%u %g", i, i / 3.0);
}

#if defined(__x86_64__)
/* Two places this many bytes apart. */
#define LOOP(name, bytes)                                                                          \
    static void name(atomic_bool *end)                                                             \
    {                                                                                              \
        while (!*end)                                                                              \
            for (long i = 300000000; i > 0 && !*end;)                                              \
                __asm__ volatile("mov $100000, %%ecx\n1: jmp 2f\n.skip " bytes                     \
                                 "\n2: dec %%ecx\njnz 1b\ndec %0"                                  \
                                 : "+r"(i)::"ecx", "cc");                                          \
    }
LOOP(turns_closely, "30")
LOOP(turns_widely, "200")

static void works_then_turns(atomic_bool *end)
{
    char text[64];

    for (double until = log_now() + 1.4; log_now() < until;)
        snprintf(text, sizeof(text), "%g", until / 3.0);
    turns_closely(end);
}
#endif

static void test_what_a_thread_does(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it delays signals to places of its own */
#endif
    assert_int_equal(pulse_of(sleeps, "soon\n", 0), WATCH_LIVE);
    assert_int_equal(pulse_of(works, "look\n", 100000), WATCH_LIVE);
#if defined(__x86_64__)
    assert_int_equal(pulse_of(turns_closely, "soon\n", 0), WATCH_SPINS);
    assert_int_equal(pulse_of(turns_closely, "look\n", 1000), WATCH_SPINS);
    /* touching and copying memory may look like this for so long */
    assert_int_equal(pulse_of(turns_closely, "look\n", 100000), WATCH_UNSEEN);
    assert_int_equal(pulse_of(turns_widely, "look\n", 0), WATCH_LIVE);
    /* the places of its first second are forgotten when a verdict is near */
    assert_int_equal(pulse_after(works_then_turns, 1.5, "soon\n", 0, WATCH_SPINS), WATCH_SPINS);
#endif
}

static void test_a_start_takes_its_time(void **state)
{
    struct judge j;

    (void)state;
    join(&j, 10);
    for (int i = 0; i < 300; i++) {
        for (int r = 0; r < N; r++)
            tick(&j, r, 10 + 0.1 * i, 0, 0, WATCH_STARTING, 0, "the start");
        assert_false(judge_look(&j, 10 + 0.1 * i));
    }
    judge_free(&j);
}

static void test_symptoms(void **state)
{
    struct watch_line ill = {.kind = WATCH_SYMPTOM};
    struct judge j;

    (void)state;
    join(&j, 10);
    stand(&j, 10, 10.5, (int[]){57, 56, 57, 57}, 0);
    snprintf(ill.beat.words, sizeof(ill.beat.words), "GPU 0000:1b:00.0 does not answer");
    judge_line(&j, 3, &ill, 10.5); /* complains first, but rank 1 is behind and complains too */
    assert_false(judge_look(&j, 10.6));
    judge_line(&j, 1, &ill, 10.7);
    assert_true(judge_look(&j, 10.85));
    assert_int_equal(j.verdict.kind, VERDICT_GPU);
    assert_int_equal(j.verdict.rank, 1);
    assert_non_null(strstr(j.verdict.text, "pid 101): GPU 0000:1b:00.0 does not answer, in all_"));
    judge_free(&j);
}

static void test_who_may_join(void **state)
{
    struct watch_hello twice = {.rank = 1, .ranks = N}, other = {.rank = 1, .ranks = N + 1};
    struct judge j;

    (void)state;
    join(&j, 10);
    assert_int_equal(judge_hello(&j, &twice, 10), -1);
    assert_int_equal(judge_hello(&j, &other, 10), -1);
    judge_free(&j);
}

static void test_lines(void **state)
{
    static const char *const bad[] = {
        "",
        "beat",
        "beat 1 2 3 0 0 0 0 - x",
        "beat 1 2 1 -1 0 0 0 - x",
        "beat 1 2 1 0 0 99999999999 0 - x",
        "beat 99999999999999999999999 2 1 0 0 0 0 - x",
        "beat 1 2 1 0 0 0 5 - x",
        "beat 1 2 1 0 0 0 0",
        "beat 1 2 1 0 0 0 0 01234567890123456789012345678901 x",
        "hello token 4 4 1 8000 n1",
        "hello token 0 9999999 1 8000 n1",
        "hello token 0 4 1 n1",
        "hello token 0 4 1 -1 n1",
        "hello token 0 4 1 8000 n1 more",
        "hello 0123456789012345678901234567890123 0 4 1 8000 n1",
        "goodbye",
        "bye ",
    };
    struct watch_beat b = {.moves = UINT64_MAX,
                           .steps = 7,
                           .state = WATCH_WAITING,
                           .expect = 2.5,
                           .kept = 3,
                           .total = 9,
                           .pulse = WATCH_HELD,
                           .call = "MPI_Bcast",
                           .words = "a b  c"};
    struct watch_line l;
    char text[WATCH_LINE];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (watch_line_parse(&l, bad[i]) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
    int n = watch_beat_format(text, &b);
    assert_int_equal(text[n - 1], '\n');
    text[n - 1] = '\0';
    assert_int_equal(watch_line_parse(&l, text), 0);
    assert_true(l.beat.moves == b.moves && l.beat.steps == 7 && l.beat.state == WATCH_WAITING);
    assert_true(l.beat.expect == 2.5 && l.beat.kept == 3 && l.beat.total == 9);
    assert_string_equal(l.beat.words, "a b  c");
    assert_int_equal(l.beat.pulse, WATCH_HELD);
    assert_string_equal(l.beat.call, "MPI_Bcast");
    assert_int_equal(watch_line_parse(&l, "beat 1 2 1 0 0 0 0 - x"), 0);
    assert_string_equal(l.beat.call, "");
    assert_int_equal(watch_line_parse(&l, "symptom bad\033[31m\xff"), 0);
    assert_string_equal(l.beat.words, "bad?[31m?");
}

static void test_where(void **state)
{
    static const char *const bad[] = {
        "",     "off",         "a:b",    "a::c",
        ":1:c", "1.2.3.4:80:", "h:8x:t", "1.2.3.4:80:0123456789012345678901234567890123"};
    struct watch_where w;

    (void)state;
    assert_int_equal(watch_where_parse(&w, "fe80::1:4711:abc"), 0);
    assert_string_equal(w.address, "fe80::1");
    assert_string_equal(w.port, "4711");
    assert_string_equal(w.token, "abc");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (watch_where_parse(&w, bad[i]) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
}

/* --- a listener and its sockets --- */

static int call(const struct listener *l, const char *text)
{
    struct watch_where w;
    int fd;

    assert_int_equal(watch_where_parse(&w, listen_where(l)), 0);
    fd = wire_connect(&w, 5, NULL);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    return fd;
}

/* What came back until the listener hung up or a line was whole, at most 60 s. */
static const char *answer(struct listener *l, int fd)
{
    static char text[WATCH_LINE];
    size_t n = 0;

    for (double end = log_now() + 60; log_now() < end;) {
        listen_turn(l, 10);
        ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT);
        n += got > 0 ? (size_t)got : 0;
        text[n] = '\0';
        if (got == 0 || (n && text[n - 1] == '\n'))
            return text;
    }
    return "no answer";
}

static void hello_of(const struct listener *l, char out[WATCH_LINE], int rank)
{
    struct watch_where w;
    struct watch_hello h = {.rank = rank, .ranks = 2, .pid = 1, .host = "elsewhere"};

    watch_where_parse(&w, listen_where(l));
    snprintf(h.token, sizeof(h.token), "%s", w.token);
    watch_hello_format(out, &h);
}

static void test_strangers_are_dropped(void **state)
{
    char hello[WATCH_LINE], wrong[WATCH_LINE], longer[2000];
    struct listener *l;

    (void)state;
    assert_int_equal(listen_open(&l, "127.0.0.1", 5, NULL, NULL), 0);
    hello_of(l, hello, 0);
    memcpy(wrong, hello, sizeof(wrong));
    wrong[6] = wrong[6] == '0' ? '1' : '0';
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    const char *const bad[] = {wrong, "GET / HTTP/1.0\r\n", "bye\n", longer, "hello  0 2 1 n\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int fd = call(l, bad[i]);
        assert_string_equal(answer(l, fd), "");
        close(fd);
    }
    assert_false(listen_met(l));
    int good = call(l, hello);
    assert_string_equal(answer(l, good), "welcome led\n");
    int again = call(l, hello); /* that rank is here already */
    assert_string_equal(answer(l, again), "");
    assert_true(listen_met(l));
    assert_null(listen_verdict(l));
    close(good);
    close(again);
    listen_close(l);
}

/* Who says nothing for 5 s goes; who has said it while nobody listened stays. */
static void test_late_are_dropped_but_not_for_our_delay(void **state)
{
    char hello[WATCH_LINE];
    struct listener *l;
    int fd[2];

    (void)state;
    assert_int_equal(listen_open(&l, "127.0.0.1", 5, NULL, NULL), 0);
    hello_of(l, hello, 0);
    for (int i = 0; i < 2; i++) {
        fd[i] = call(l, "");
        listen_turn(l, 1000); /* it is let in */
    }
    assert_int_equal(send(fd[0], hello, strlen(hello), 0), (ssize_t)strlen(hello));
    nanosleep(&(struct timespec){5, 100000000}, NULL);
    assert_string_equal(answer(l, fd[0]), "welcome led\n");
    assert_string_equal(answer(l, fd[1]), "");
    close(fd[0]);
    close(fd[1]);
    listen_close(l);
}

static void test_everybody_is_told(void **state)
{
    char hello[2][WATCH_LINE], *text, dir[] = "/tmp/rg-watch-XXXXXX", path[64];
    struct listener *l;
    int fd[2];
    size_t len;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/verdict.json", dir);
    assert_int_equal(listen_open(&l, "127.0.0.1", 5, dir, NULL), 0);
    for (int i = 0; i < 2; i++) {
        hello_of(l, hello[i], i);
        fd[i] = call(l, hello[i]);
        assert_string_equal(answer(l, fd[i]), "welcome led\n");
    }
    close(fd[1]);
    assert_string_equal(answer(l, fd[0]),
                        "verdict rank 1 (host elsewhere, pid 1) died in the start\n");
    assert_int_equal(listen_verdict(l)->rank, 1);
    assert_int_equal(file_read(&text, &len, path, 1 << 20, NULL), 0);
    assert_non_null(strstr(text, "\"kind\": \"dead\""));
    free(text);
    close(fd[0]);
    listen_close(l);
    unlink(path);
    rmdir(dir);
}

/* Loopback when every host is this one; names that do not resolve end at the default route, or at
 * loopback where there is none. */
static void test_address(void **state)
{
    char self[WATCH_HOST] = "", out[64];
    char *here[] = {(char *)"localhost", self}, *there[] = {self, (char *)"127.0.0.2"};

    (void)state;
    host_self(self, sizeof(self));
    listen_address(here, 2, out);
    assert_string_equal(out, "127.0.0.1");
    listen_address(there, 2, out);
    assert_string_equal(out, "127.0.0.1"); /* the address that a packet to 127.0.0.2 comes from */
    listen_address(NULL, 0, out);
    assert_true(out[0] >= '0' && out[0] <= '9');
}

/* Without a watch every call is allowed and does nothing. */
static void test_nothing_watches(void **state)
{
    struct err err = {0, ""};

    (void)state;
    watch_enter("%s", "x");
    watch_step();
    watch_call("x");
    watch_expect(1, 2);
    watch_enter("%s", "inside");
    watch_leave();
    assert_true(watch_expected() == 3); /* of the op outside */
    watch_waiting(true);
    watch_leave();
    assert_true(watch_expected() == 0);
    watch_points(1, 2);
    watch_stopping();
    watch_start(&world_solo, 12, NULL);
    assert_true(watch_hang_after() == 12);
    assert_int_equal(watch_verdict(&err), 0);
    watch_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_death_rules),
        cmocka_unit_test(test_all_die_at_once),
        cmocka_unit_test(test_goodbye_is_no_death),
        cmocka_unit_test(test_all_gone_after_goodbye),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_silence_of_all_or_of_the_listener),
        cmocka_unit_test(test_silence_on_a_loaded_host),
        cmocka_unit_test(test_stopped_on_a_loaded_host),
        cmocka_unit_test(test_stopped_in_a_call_on_a_loaded_host),
        cmocka_unit_test(test_the_one_behind_hangs),
        cmocka_unit_test(test_soon),
        cmocka_unit_test(test_nobody_behind_stalls),
        cmocka_unit_test(test_a_long_operation_is_no_hang),
        cmocka_unit_test(test_groups_and_waiting),
        cmocka_unit_test(test_alone_in_what_it_does),
        cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_when_evidence_is_told),
        cmocka_unit_test(test_the_last_one_hangs),
        cmocka_unit_test(test_what_a_thread_does),
        cmocka_unit_test(test_a_start_takes_its_time),
        cmocka_unit_test(test_symptoms),
        cmocka_unit_test(test_who_may_join),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_strangers_are_dropped),
        cmocka_unit_test(test_late_are_dropped_but_not_for_our_delay),
        cmocka_unit_test(test_everybody_is_told),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_nothing_watches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
