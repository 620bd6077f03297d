/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/watch_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

/* "none", "dead", ... */
static const char *const verdict_kind_name[] = {"none", "dead", "silent", "gpu", "hung", "stalled"};

/* Seconds: interval between two beats; delay before a death or a symptom is believed (others may
 * follow at once, because the launcher ends the rest a second after the first); silence allowed;
 * time by which a rank's own test of its GPU may exceed the listener's patience. */
static const double beat = 0.1, wait_death = 0.1, wait_symptom = 0.3, silence = 1.6, patience = 0.7;
/* Additional silence allowed at the start. */
static const double loading = 4.4;
/* Rank 0 reports what is kept, so a death waits for its next beat, at most this long. */
static const double wait_kept = 0.5;
/* Time before a verdict at which judge_soon() becomes true, at most half of the patience. */
static const double notice = 2.2;

void judge_open(struct judge *j, double hang_after)
{
    memset(j, 0, sizeof(*j));
    j->hang_after = hang_after;
    j->verdict.rank = -1;
}

void judge_free(struct judge *j)
{
    free(j->rank);
    j->rank = NULL;
    j->ranks = 0;
}

int judge_hello(struct judge *j, const struct watch_hello *h, double now)
{
    if (!j->ranks) {
        j->ranks = h->ranks;
        j->rank = mem_calloc((size_t)h->ranks, sizeof(*j->rank));
    }
    if (h->ranks != j->ranks || j->rank[h->rank].known)
        return -1;
    struct watched *r = &j->rank[h->rank];
    j->hang_after = fmax(j->hang_after, 1e-3 * h->patience_ms);
    r->known = true;
    r->pid = h->pid;
    snprintf(r->host, sizeof(r->host), "%s", h->host);
    snprintf(r->beat.words, sizeof(r->beat.words), "the start");
    r->heard = r->moved = now;
    return 0;
}

static void take_beat(struct judge *j, struct watched *r, const struct watch_beat *b, double now)
{
    if (b->moves != r->beat.moves)
        r->moved = now;
    r->beat = *b;
    if (b->total) {
        j->kept = b->kept;
        j->total = b->total;
    }
}

void judge_line(struct judge *j, int rank, const struct watch_line *l, double now)
{
    struct watched *r = &j->rank[rank];

    r->late = fmax(now - r->heard - beat, 0.98 * r->late);
    r->heard = now;
    switch (l->kind) {
    case WATCH_BEAT:
        take_beat(j, r, &l->beat, now);
        break;
    case WATCH_SYMPTOM:
        r->ill_at = r->symptom[0] ? r->ill_at : now;
        memcpy(r->symptom, l->beat.words, sizeof(r->symptom));
        break;
    case WATCH_FAILED:
        if (rank == 0)
            memcpy(j->failed, l->failed, sizeof(j->failed));
        break;
    case WATCH_STOP:
        j->stopped_at = j->stopped_at > 0 ? j->stopped_at : now;
        r->bye = true;
        break;
    default:
        r->bye = true;
    }
}

void judge_closed(struct judge *j, int rank, double now)
{
    j->rank[rank].gone = true;
    j->rank[rank].gone_at = now;
}

void judge_excuse(struct judge *j, double held_up)
{
    for (int i = 0; i < j->ranks; i++) {
        j->rank[i].heard += held_up;
        j->rank[i].moved += held_up;
    }
}

int judge_left(const struct judge *j)
{
    int n = 0;

    for (int i = 0; i < j->ranks; i++)
        n += j->rank[i].known && !j->rank[i].gone;
    return n;
}

/* --- the rank that hangs --- */

static bool is_here(const struct watched *r)
{
    return r->known && !r->bye && !r->gone;
}

/* True if a rank waits for others: its own idle wait, or a call of a library. */
static bool waits(const struct watched *r)
{
    return r->beat.state == WATCH_WAITING || r->beat.call[0];
}

/* True if two ranks work on the same op. */
static bool same_op(const struct watched *a, const struct watched *b)
{
    return !strcmp(a->beat.words, b->beat.words);
}

/* True if a working rank is alone in its op, or has made fewer steps than all others in it. */
static bool is_behind(const struct judge *j, int rank)
{
    const struct watched *me = &j->rank[rank];

    for (int i = 0; i < j->ranks; i++) {
        const struct watched *r = &j->rank[i];
        if (i != rank && is_here(r) && r->beat.state == WATCH_BUSY && same_op(me, r) &&
            r->beat.steps <= me->beat.steps)
            return false;
    }
    return true;
}

/* The only rank that is behind, else -1; also -1 if a rank is not watched, because it may be that
 * one.  A rank that waits in a call may be behind because a rank ahead of it hung before its
 * messages had left; `waiting` counts it all the same. */
static int find_behind(const struct judge *j, bool waiting)
{
    int found = -1;

    for (int i = 0; i < j->ranks; i++)
        if (!j->rank[i].known)
            return -1;
        else if (is_here(&j->rank[i]) && j->rank[i].beat.state == WATCH_BUSY && is_behind(j, i)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found >= 0 && (waiting || !j->rank[found].beat.call[0]) ? found : -1;
}

/* The only rank that waits for no other, else -1. */
static int find_outside(const struct judge *j)
{
    int found = -1;

    for (int i = 0; i < j->ranks; i++)
        if (!j->rank[i].known)
            return -1;
        else if (is_here(&j->rank[i]) && !waits(&j->rank[i])) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

/* The first rank with this pulse; -1: none.  *n: their number. */
static int find_pulse(const struct judge *j, enum watch_pulse pulse, int *n)
{
    int first = -1;

    *n = 0;
    for (int i = 0; i < j->ranks; i++)
        if (is_here(&j->rank[i]) && j->rank[i].beat.pulse == pulse) {
            first = first < 0 ? i : first;
            ++*n;
        }
    return first;
}

static int count_here(const struct judge *j)
{
    int n = 0;

    for (int i = 0; i < j->ranks; i++)
        n += is_here(&j->rank[i]);
    return n;
}

static bool stopped_too(const struct judge *j, int i)
{
    return is_here(&j->rank[i]) && j->rank[i].beat.pulse == WATCH_STOPPED;
}

/* The only rank that spins, else -1.  Many ranks that spin are no evidence: a library may wait
 * so. */
static int find_spinner(const struct judge *j)
{
    int spins, live, spinner = find_pulse(j, WATCH_SPINS, &spins);

    find_pulse(j, WATCH_LIVE, &live);
    return spins == 1 && (live > 0 || count_here(j) == 1) ? spinner : -1;
}

/* The rank that hangs, else -1. */
static int find_hung(const struct judge *j)
{
    int n, stopped = find_pulse(j, WATCH_STOPPED, &n), held = find_pulse(j, WATCH_HELD, &n);
    int spinner = find_spinner(j);

    if (stopped >= 0 || held >= 0)
        return stopped >= 0 ? stopped : held;
    if (spinner >= 0)
        return spinner;
    int outside = find_outside(j);
    return outside >= 0 ? outside : find_behind(j, false);
}

/* --- messages --- */

/* Append what is kept, at the end of every verdict. */
static void add_kept(const struct judge *j, char *text, size_t size)
{
    size_t n = strlen(text);

    if (j->total)
        snprintf(text + n, size - n, "; %d of %d points are kept, --resume measures the rest",
                 j->kept, j->total > j->kept ? j->total : j->kept);
}

/* "rank 3 (host n1, pid 812)" */
static void name_rank(const struct judge *j, int rank, char out[128])
{
    snprintf(out, 128, "rank %d (host %s, pid %d)", rank, j->rank[rank].host, j->rank[rank].pid);
}

/* ", ranks 4, 5 and 3 more with it" for other ranks with the same condition; "" for none. */
static void name_others(const struct judge *j, int culprit,
                        bool (*is)(const struct judge *j, int i), char out[96])
{
    int n = 0;
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < j->ranks; i++)
        if (i != culprit && is(j, i) && n++ < 4)
            used +=
                (size_t)snprintf(out + used, 96 - used, "%s%d", n > 1 ? ", " : "; so did rank ", i);
    if (n > 4)
        snprintf(out + used, 96 - used, " and %d more", n - 4);
}

static bool is_gone(const struct judge *j, int i)
{
    return j->rank[i].gone && !j->rank[i].bye;
}

static const char *hang_words(const struct watched *r)
{
    return r->beat.pulse == WATCH_STOPPED ? "its measuring thread is stopped (debugger or signal)"
           : r->beat.pulse == WATCH_HELD
               ? "its measuring thread is held in the kernel (driver or file system)"
           : r->beat.pulse == WATCH_SPINS ? "its measuring thread spins in one place"
                                          : "it is behind the others";
}

/* True if all ranks died, and within wait_death. */
static bool all_died(const struct judge *j, int first)
{
    for (int i = 0; i < j->ranks; i++)
        if (!is_gone(j, i) || j->rank[i].gone_at - j->rank[first].gone_at > wait_death)
            return false;
    return true;
}

/* No rank is the cause then: it may be the first by chance. */
static void describe_all_died(const struct judge *j, int first, char *text, size_t size)
{
    double last = j->rank[first].gone_at;
    char who[128], took[UNITS_TEXT];

    for (int i = 0; i < j->ranks; i++)
        last = fmax(last, j->rank[i].gone_at);
    name_rank(j, first, who);
    units_seconds_text(took, last - j->rank[first].gone_at);
    snprintf(text, size,
             "all %d ranks died within %s in %s, %s as the first: no single rank is the "
             "cause",
             j->ranks, took, j->rank[first].beat.words, who);
}

static bool decide(struct judge *j, enum verdict_kind kind, int rank, double since)
{
    struct verdict *v = &j->verdict;
    const struct watched *r = rank < 0 ? NULL : &j->rank[rank];
    char who[128] = "", others[96] = "", took[UNITS_TEXT];

    v->kind = kind;
    v->rank = rank;
    v->since = since;
    units_seconds_text(took, since);
    if (r)
        name_rank(j, rank, who);
    switch (kind) {
    case VERDICT_DEAD:
        if (all_died(j, rank)) {
            describe_all_died(j, rank, v->text, sizeof(v->text));
            v->rank = -1;
            break;
        }
        name_others(j, rank, is_gone, others);
        snprintf(v->text, sizeof(v->text), "%s died in %s%s", who, r->beat.words, others);
        break;
    case VERDICT_SILENT:
        if (!r) {
            snprintf(v->text, sizeof(v->text),
                     "no rank was heard for %s: the job is suspended, or its network is gone",
                     took);
            break;
        }
        snprintf(v->text, sizeof(v->text),
                 "%s said nothing for %s in %s: it is stopped, or its node is gone", who, took,
                 r->beat.words);
        break;
    case VERDICT_GPU:
        snprintf(v->text, sizeof(v->text), "%s: %s, in %s", who, r->symptom, r->beat.words);
        break;
    case VERDICT_HUNG:
        if (r->left) {
            snprintf(v->text, sizeof(v->text), "%s did not end within %s of its goodbye", who,
                     took);
            break;
        }
        name_others(j, rank, stopped_too, others);
        snprintf(v->text, sizeof(v->text), "%s hangs in %s: %s for %s, and %s%s%s%s", who,
                 r->beat.words,
                 r->beat.pulse == WATCH_STOPPED ? "it did not move" : "nothing moved", took,
                 hang_words(r), r->beat.call[0] ? " in " : "", r->beat.call,
                 r->beat.pulse == WATCH_STOPPED ? others : "");
        break;
    default:
        snprintf(v->text, sizeof(v->text), "nothing moved for %s, and %s", took,
                 find_behind(j, true) < 0
                     ? "no rank is behind the others"
                     : "each rank waits for others: the network, or a library");
    }
    add_kept(j, v->text, sizeof(v->text));
    return true;
}

/* --- rules, in order --- */

/* True if rank 0 was heard since then, or cannot be waited for any longer. */
static bool kept_is_told(const struct judge *j, double since, double now)
{
    return !is_here(&j->rank[0]) || j->rank[0].heard > since || now - since >= wait_kept;
}

static bool look_dead(struct judge *j, double now)
{
    int first = -1;

    for (int i = 0; i < j->ranks; i++)
        if (is_gone(j, i) && (first < 0 || j->rank[i].gone_at < j->rank[first].gone_at))
            first = i;
    if (first < 0 || now - j->rank[first].gone_at < wait_death ||
        !kept_is_told(j, j->rank[first].gone_at, now) ||
        (j->stopped_at > 0 && j->stopped_at <= j->rank[first].gone_at))
        return false;
    return decide(j, VERDICT_DEAD, first, now - j->rank[first].heard);
}

/* With a short --hang-after, report a stopped rank as stopped before it counts as hung.  Users who
 * set it run on dedicated hosts, so that a shorter silence is safe. */
static double least_silence(const struct judge *j)
{
    return fmax(1, fmin(silence, j->hang_after));
}

/* A loaded host delays the beats of all its ranks.  Therefore eight times the worst recent lateness
 * is added, at most 10 s. */
static double silence_limit(const struct judge *j)
{
    double late = 0;

    for (int i = 0; i < j->ranks; i++)
        if (is_here(&j->rank[i]))
            late = fmax(late, j->rank[i].late);
    return least_silence(j) + fmin(8 * late, 10);
}

/* If all ranks are silent at once, the cause is the listener's network, or a scheduler that
 * suspends the job. */
static bool look_silent(struct judge *j, double now)
{
    double limit = silence_limit(j);
    int worst = -1, others = 0, silent = 0;

    for (int i = 0; i < j->ranks; i++) {
        const struct watched *r = &j->rank[i];
        others += is_here(r) || r->bye; /* those that left show that the network is not the cause */
        if (!is_here(r))
            continue;
        /* At the start libraries are loaded, on all ranks of a host at once. */
        if (now - r->heard > limit + (r->beat.state == WATCH_STARTING ? loading : 0)) {
            silent++;
            worst = worst < 0 || r->heard < j->rank[worst].heard ? i : worst;
        }
    }
    return silent && silent < others &&
           decide(j, VERDICT_SILENT, worst, now - j->rank[worst].heard);
}

/* If several ranks report symptoms, take the one that is behind, else the first. */
static bool look_ill(struct judge *j, double now)
{
    int first = -1;

    for (int i = 0; i < j->ranks; i++)
        if (j->rank[i].symptom[0] && (first < 0 || j->rank[i].ill_at < j->rank[first].ill_at))
            first = i;
    if (first < 0 || now - j->rank[first].ill_at < wait_symptom)
        return false;
    int behind = find_behind(j, true);
    if (behind >= 0 && j->rank[behind].symptom[0])
        first = behind;
    return decide(j, VERDICT_GPU, first, now - j->rank[first].moved);
}

/* Find the allowed time without progress, and the time of the last progress.  False: a hang is not
 * possible now. */
static bool find_still(const struct judge *j, double *limit, double *since)
{
    double moved = 0, expect = 0;
    int here = 0;

    if (j->stopped_at > 0)
        return false;
    for (int i = 0; i < j->ranks; i++) {
        const struct watched *r = &j->rank[i];
        if (!is_here(r))
            continue;
        if (r->beat.state == WATCH_STARTING)
            return false;
        here++;
        moved = fmax(moved, r->moved);
        if (r->beat.state == WATCH_BUSY)
            expect = fmax(expect, r->beat.expect);
    }
    *limit = j->hang_after + patience + expect;
    *since = moved;
    return here > 0;
}

/* A stopped thread and a lone one that spins are evidence of their own, which waits neither for the
 * others' steps nor for the tests of GPUs.  If the threads of all ranks are stopped, a parallel
 * debugger has the job. */
static bool look_held(struct judge *j, double now)
{
    int n, stopped = find_pulse(j, WATCH_STOPPED, &n), spinner = find_spinner(j);
    double limit, moved;
    int here = count_here(j); /* 1: the others have left */

    if (stopped >= 0 && (n < here || here == 1) && j->rank[stopped].beat.state != WATCH_STARTING &&
        now - j->rank[stopped].moved > least_silence(j))
        return decide(j, VERDICT_HUNG, stopped, now - j->rank[stopped].moved);
    return spinner >= 0 && find_still(j, &limit, &moved) && now - moved > j->hang_after &&
           decide(j, VERDICT_HUNG, spinner, now - moved);
}

/* Time at which any rank was heard last. */
static double last_heard(const struct judge *j)
{
    double last = 0;

    for (int i = 0; i < j->ranks; i++)
        if (is_here(&j->rank[i]))
            last = fmax(last, j->rank[i].heard);
    return last;
}

/* True if this rank has been silent for long while another one was heard. */
static bool alone_silent(const struct judge *j, int rank, double now)
{
    return now - j->rank[rank].heard > least_silence(j) && now - last_heard(j) <= least_silence(j);
}

/* The rank that was heard least recently.  *others: the longest silence of another one, now or
 * recently. */
static int find_most_silent(const struct judge *j, double now, double *others)
{
    int worst = -1;

    for (int i = 0; i < j->ranks; i++)
        if (is_here(&j->rank[i]) && (worst < 0 || j->rank[i].heard < j->rank[worst].heard))
            worst = i;
    *others = 0;
    for (int i = 0; i < j->ranks; i++)
        if (is_here(&j->rank[i]) && i != worst)
            *others = fmax(*others, fmax(j->rank[i].late + beat, now - j->rank[i].heard));
    return worst;
}

/* Nothing moves, and no rank is behind.  A rank that is silent for much longer than each other one,
 * and than its beats were ever late, is the cause.  While one may be silent because of load, wait:
 * it will be heard, or look_silent() finds it. */
static bool decide_stalled(struct judge *j, double now, double since)
{
    double others;
    int worst = find_most_silent(j, now, &others);
    const struct watched *r = &j->rank[worst];

    if (now - r->heard <= least_silence(j))
        return decide(j, VERDICT_STALLED, -1, since);
    return now - r->heard > 2 * others && now - r->heard > 4 * r->late &&
           decide(j, VERDICT_SILENT, worst, now - r->heard);
}

/* With late beats, a stopped rank may be silent for longer than the patience with hangs; report it
 * as stopped, not as hung. */
static bool look_hung(struct judge *j, double now)
{
    double limit, moved;

    if (!find_still(j, &limit, &moved))
        return false;
    /* Watch threads beat whatever a step may take. */
    if (now - last_heard(j) > fmax(j->hang_after, silence_limit(j)))
        return decide(j, VERDICT_SILENT, -1, now - last_heard(j));
    if (now - moved <= limit)
        return false;
    int who = find_hung(j);
    if (who >= 0 && alone_silent(j, who, now))
        return decide(j, VERDICT_SILENT, who, now - j->rank[who].heard);
    return who < 0 ? decide_stalled(j, now, now - moved)
                   : decide(j, VERDICT_HUNG, who, now - moved);
}

/* True if a hang becomes a verdict in about 2 s; `expect`: with the time that steps may take. */
static bool is_near(const struct judge *j, double now, bool expect)
{
    double limit, moved;

    if (!find_still(j, &limit, &moved))
        return false;
    limit = expect ? limit : j->hang_after;
    return now - moved > limit - fmin(notice, limit / 2);
}

enum judge_need judge_soon(const struct judge *j, double now)
{
    for (int i = 0; i < j->ranks; i++)
        if (j->rank[i].symptom[0])
            return JUDGE_SOON;
    return is_near(j, now, true) ? JUDGE_SOON : is_near(j, now, false) ? JUDGE_LOOK : JUDGE_NOTHING;
}

/* What keeps the launcher after all goodbyes: a process that is stopped, or whose libraries do not
 * let it end. */
static bool look_left(struct judge *j, double now)
{
    for (int i = 0; i < j->ranks; i++)
        if (j->rank[i].left)
            return decide(j, VERDICT_HUNG, i, now - j->rank[i].heard);
    return false;
}

bool judge_look(struct judge *j, double now)
{
    return j->verdict.kind != VERDICT_NONE || look_dead(j, now) || look_silent(j, now) ||
           look_ill(j, now) || look_held(j, now) || look_hung(j, now) || look_left(j, now);
}

/* --- verdict.json: the listener's knowledge of every rank at the decision --- */

static const char *state_name(const struct watched *r)
{
    static const char *const name[] = {"starting", "busy", "waiting"};

    return !r->known ? "unknown" : r->bye ? "left" : r->gone ? "dead" : name[r->beat.state];
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *rank_json(const struct watched *r, int rank, double now)
{
    static const char *const pulse[] = {"unseen", "live", "stopped", "spins", "held"};
    json_t *o = json_pack("{s:i, s:s}", "rank", rank, "state", state_name(r));

    if (r->known)
        json_object_update_new(
            o, json_pack("{s:s, s:i, s:s, s:I, s:I, s:f, s:f, s:o, s:o, s:s}", "host", r->host,
                         "pid", r->pid, "what", r->beat.words, "moves", (json_int_t)r->beat.moves,
                         "steps", (json_int_t)r->beat.steps, "silent_s",
                         round(1e3 * (now - r->heard)) / 1e3, "still_s",
                         round(1e3 * (now - r->moved)) / 1e3, "symptom", text_or_null(r->symptom),
                         "call", text_or_null(r->beat.call), "thread", pulse[r->beat.pulse]));
    return o;
}

static json_t *culprit_json(const struct judge *j)
{
    const struct verdict *v = &j->verdict;
    const struct watched *r = v->rank < 0 ? NULL : &j->rank[v->rank];

    if (!r)
        return json_null();
    return json_pack("{s:i, s:i, s:s, s:i, s:s}", "rank", v->rank, "endpoint", v->rank, "host",
                     r->host, "pid", r->pid, "what", r->beat.words);
}

int judge_save(const struct judge *j, const char *dir, double now, struct err *err)
{
    const struct verdict *v = &j->verdict;
    json_t *ranks = json_array();
    char *path = file_join(dir, "verdict.json");

    for (int i = 0; i < j->ranks; i++)
        json_array_append_new(ranks, rank_json(&j->rank[i], i, now));
    json_t *root =
        json_pack("{s:s, s:i, s:o, s:s, s:o, s:s, s:f, s:f, s:{s:i, s:i}, s:o}", "format",
                  "railgauge-verdict", "version", 1, "provenance", json_provenance(), "kind",
                  verdict_kind_name[v->kind], "culprit", culprit_json(j), "text", v->text,
                  "since_s", round(1e3 * v->since) / 1e3, "hang_after_s", j->hang_after, "points",
                  "kept", j->kept, "total", j->total, "ranks", ranks);
    int rc = root ? json_save(root, path, err) : err_io(err, "%s: no memory", path);
    json_decref(root);
    free(path);
    return rc;
}
