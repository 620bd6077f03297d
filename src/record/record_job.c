/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/record_job.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Calls of an operation on a communicator, or messages between two of the ranks. */
struct record_lane {
    int comm, src, dst;
    enum op op;
    uint32_t least, most; /* range of numbers */
    int entries, base;    /* base: call of the smallest number */
};

void record_job_init(struct record_job *j)
{
    memset(j, 0, sizeof(*j));
    j->origin = INT64_MAX;
}

void record_job_free(struct record_job *j)
{
    for (int i = 0; i < j->processes; i++) {
        free(j->process[i].path);
        free(j->process[i].host);
    }
    for (int i = 0; i < j->teams; i++)
        free(j->team[i].member);
    for (int i = 0; i < j->axes; i++)
        free(j->axis[i].comm);
    for (int i = 0; i < j->saids; i++)
        free(j->said[i]);
    free(j->process);
    free(j->team);
    free(j->axis);
    free(j->kind);
    free(j->entry);
    free(j->call);
    free(j->part);
    free(j->said);
    free(j->lane);
    names_free(&j->words);
    names_free(&j->hosts);
    map_free(&j->kind_at);
    map_free(&j->lane_at);
    map_free(&j->comm_at);
    memset(j, 0, sizeof(*j));
}

void record_job_say(struct record_job *j, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    MEM_PUSH(j->said, j->saids) = mem_vprintf(fmt, ap);
    va_end(ap);
}

/* --- input from the reader --- */

struct record_process *record_job_process(struct record_job *j, const char *path, const char *host)
{
    struct record_process p = {.path = mem_strdup(path),
                               .host = mem_strdup(host),
                               .device = -1,
                               .rank = -1,
                               .first = j->entries};

    names_add(&j->hosts, host);
    MEM_PUSH(j->process, j->processes) = p;
    return &j->process[j->processes - 1];
}

int record_job_team(int *team, struct record_job *j, uint64_t id, int size, int rank,
                    struct err *err)
{
    int *at = map_at(&j->comm_at, id, NULL, NULL), me = j->processes - 1;

    if (*at == MAP_NONE) {
        *at = j->teams;
        MEM_PUSH(j->team, j->teams) =
            (struct record_team){.id = id, .size = size, .member = mem_ints(size, -1)};
    }
    struct record_team *c = &j->team[ *team = *at];
    if (c->size != size)
        return err_data(err,
                        "%s: communicator %016llx has %d ranks here and %d in other files: are "
                        "these of one job?",
                        j->process[me].path, (unsigned long long)id, size, c->size);
    if (c->member[rank] >= 0 && c->member[rank] != me)
        return err_data(err,
                        "%s: rank %d of communicator %016llx is in %s already: are these of one "
                        "job?",
                        j->process[me].path, rank, (unsigned long long)id,
                        j->process[c->member[rank]].path);
    c->member[rank] = me;
    return 0;
}

struct kind_wanted {
    const struct record_job *j;
    const struct record_what *kind;
};

static bool alike(const struct record_what *a, const struct record_what *b)
{
    return a->comm == b->comm && a->op == b->op && a->src == b->src && a->dst == b->dst &&
           a->bytes == b->bytes;
}

static bool same_kind(const void *wanted, int value)
{
    const struct kind_wanted *w = wanted;
    const struct record_what *k = &w->j->kind[value];

    return alike(k, w->kind) && k->algorithm == w->kind->algorithm &&
           k->protocol == w->kind->protocol && k->channels == w->kind->channels;
}

static bool like_kind(const void *wanted, int value)
{
    const struct kind_wanted *w = wanted;

    return alike(&w->j->kind[value], w->kind);
}

static uint64_t lane_key(const struct record_what *k)
{
    uint64_t key = map_mix((uint64_t)k->comm, (uint64_t)k->op);

    return map_mix(map_mix(key, (uint64_t)(k->src + 1)), (uint64_t)(k->dst + 1));
}

static bool same_lane(const void *wanted, int value)
{
    const struct kind_wanted *w = wanted;
    const struct record_lane *l = &w->j->lane[value];

    return l->comm == w->kind->comm && l->op == w->kind->op && l->src == w->kind->src &&
           l->dst == w->kind->dst;
}

static int new_kind(struct record_job *j, const struct record_what *kind)
{
    struct kind_wanted wanted = {j, kind};
    struct record_what k = *kind;
    uint64_t lane = lane_key(kind), key = map_mix(lane, kind->bytes);
    int *like = map_at(&j->kind_at, key, like_kind, &wanted);

    k.like = *like == MAP_NONE ? j->kinds : *like;
    *like = k.like;
    int *at = map_at(&j->lane_at, lane, same_lane, &wanted);
    if (*at == MAP_NONE) {
        *at = j->lanes;
        MEM_PUSH(j->lane, j->lanes) =
            (struct record_lane){kind->comm, kind->src, kind->dst, kind->op, UINT32_MAX, 0, 0, 0};
    }
    k.lane = *at;
    MEM_PUSH(j->kind, j->kinds) = k;
    return j->kinds - 1;
}

static int kind_of(struct record_job *j, const struct record_what *kind)
{
    struct kind_wanted wanted = {j, kind};
    uint64_t key = map_mix(lane_key(kind), kind->bytes);

    /* Distinguish from the keys of `like`. */
    key = map_mix(map_mix(key, 1 + (uint64_t)kind->algorithm * 1000 + (uint64_t)kind->protocol),
                  (uint64_t)kind->channels);
    int found = map_find(&j->kind_at, key, same_kind, &wanted);
    if (found == MAP_NONE) {
        found = new_kind(j, kind);
        wanted.kind = &j->kind[found];
        *map_at(&j->kind_at, key, same_kind, &wanted) = found;
    }
    return found;
}

void record_job_add(struct record_job *j, const struct record_what *kind, uint32_t number,
                    int64_t start, int64_t end, double wait)
{
    int at = kind_of(j, kind);
    struct record_lane *lane = &j->lane[j->kind[at].lane];

    lane->least = number < lane->least ? number : lane->least;
    lane->most = number > lane->most ? number : lane->most;
    lane->entries++;
    MEM_PUSH(j->entry, j->entries) = (struct record_entry){.kind = at,
                                                           .call = (int)number,
                                                           .start = start,
                                                           .end = end,
                                                           .wait = (float)wait,
                                                           .process = j->processes - 1};
    j->process[j->processes - 1].entries++;
}

/* --- processes, sorted by rank --- */

/* Use the ranks of the largest communicator if the files have none. */
static void find_ranks(struct record_job *j)
{
    int most = -1;

    for (int i = 0; i < j->processes; i++)
        if (j->process[i].rank < 0)
            most = 0;
    if (most < 0)
        return;
    for (int i = 1; i < j->teams; i++)
        most = j->team[i].size > j->team[most].size ? i : most;
    for (int i = 0; i < j->processes; i++)
        j->process[i].rank = -1;
    for (int r = 0; j->teams && r < j->team[most].size; r++)
        if (j->team[most].member[r] >= 0)
            j->process[j->team[most].member[r]].rank = r;
}

struct placed {
    const struct record_process *p;
    int at;
};

static int by_rank(const void *a, const void *b)
{
    const struct record_process *x = ((const struct placed *)a)->p,
                                *y = ((const struct placed *)b)->p;
    unsigned rx = (unsigned)x->rank, ry = (unsigned)y->rank; /* unknown ranks last */
    int host = rx == ry ? strcmp(x->host, y->host) : 0;

    if (rx != ry || host)
        return rx != ry ? (rx > ry) - (rx < ry) : host;
    return x->device != y->device ? (x->device > y->device) - (x->device < y->device)
                                  : (x->pid > y->pid) - (x->pid < y->pid);
}

static void order_processes(struct record_job *j)
{
    struct placed *placed = mem_calloc((size_t)j->processes, sizeof(*placed));
    struct record_process *now = mem_calloc((size_t)j->processes, sizeof(*now));
    int *to = mem_ints(j->processes, 0), known = 0;

    for (int i = 0; i < j->processes; i++)
        placed[i] = (struct placed){&j->process[i], i};
    qsort(placed, (size_t)j->processes, sizeof(*placed), by_rank);
    for (int i = 0; i < j->processes; i++) {
        now[i] = *placed[i].p;
        to[placed[i].at] = i;
        known = now[i].rank >= known ? now[i].rank + 1 : known;
    }
    for (int i = 0; i < j->processes; i++)
        if (now[i].rank < 0)
            now[i].rank = known++;
    for (int c = 0; c < j->teams; c++)
        for (int r = 0; r < j->team[c].size; r++)
            if (j->team[c].member[r] >= 0)
                j->team[c].member[r] = to[j->team[c].member[r]];
    for (int e = 0; e < j->entries; e++)
        j->entry[e].process = to[j->entry[e].process];
    free(j->process);
    j->process = now;
    free(placed);
    free(to);
}

static int by_start(const void *a, const void *b)
{
    const struct record_entry *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static void order_entries(struct record_job *j)
{
    for (int p = 0; p < j->processes; p++) {
        struct record_entry *e = &j->entry[j->process[p].first];
        int n = j->process[p].entries, i = 1;
        while (i < n && e[i - 1].start <= e[i].start)
            i++;
        if (i < n)
            qsort(e, (size_t)n, sizeof(*e), by_start);
        if (n && j->origin == INT64_MAX)
            j->origin = e[0].start;
    }
}

/* --- calls --- */

/* Turn the numbers of each lane into a range of calls. */
static int number_calls(struct record_job *j, struct err *err)
{
    long long all = 0;

    for (int i = 0; i < j->lanes; i++) {
        struct record_lane *l = &j->lane[i];
        long long range = (long long)l->most - l->least + 1;
        if (range > 64LL * l->entries + 1024)
            return err_data(err,
                            "%s: calls are numbered from %u to %u, but only %d are recorded: are "
                            "these of one job?",
                            j->process[0].path, l->least, l->most, l->entries);
        l->base = (int)all;
        all += range;
        if (all > INT_MAX / 2)
            return err_data(err, "%s: more than %d calls", j->process[0].path, INT_MAX / 2);
    }
    j->calls = (int)all;
    j->call = mem_calloc((size_t)all + 1, sizeof(*j->call));
    for (int i = 0; i < j->calls; i++)
        j->call[i].kind = -1;
    for (int e = 0; e < j->entries; e++) {
        const struct record_lane *l = &j->lane[j->kind[j->entry[e].kind].lane];
        j->entry[e].call = l->base + (int)((uint32_t)j->entry[e].call - l->least);
        j->call[j->entry[e].call].entries++;
    }
    return 0;
}

/* Add entry e to its call, in order of processes; false: the process already has an entry. */
static bool fill(struct record_job *j, int e)
{
    struct record_entry *x = &j->entry[e];
    struct record_call *c = &j->call[x->call];

    if (c->entries && j->entry[j->part[c->first + c->entries - 1]].process == x->process)
        return false;
    if (!c->entries)
        c->kind = x->kind;
    j->part[c->first + c->entries++] = e;
    return true;
}

static void fill_calls(struct record_job *j)
{
    int at = 0, twice = 0;

    for (int i = 0; i < j->calls; i++) {
        j->call[i].first = at;
        at += j->call[i].entries;
        j->call[i].entries = 0;
    }
    j->part = mem_calloc((size_t)at + 1, sizeof(*j->part));
    for (int p = 0; p < j->processes; p++)
        for (int i = 0; i < j->process[p].entries; i++) {
            int e = j->process[p].first + i;
            if (!fill(j, e)) {
                j->entry[e].call = -1;
                twice++;
            }
        }
    if (twice)
        record_job_say(j, "records of calls that their process had recorded already, left out: %d",
                       twice);
}

/* Drop calls whose ranks disagree on the kind of call. */
static void drop_unlike(struct record_job *j)
{
    for (int i = 0; i < j->calls; i++) {
        struct record_call *c = &j->call[i];
        bool unlike = false;
        for (int k = 1; k < c->entries; k++)
            unlike |= j->kind[record_call_entry(j, i, k)->kind].like != j->kind[c->kind].like;
        if (unlike) {
            c->kind = -1;
            j->unlike++;
        }
    }
    if (j->unlike)
        record_job_say(j, "calls of which ranks recorded different sizes, left out: %d", j->unlike);
}

int record_job_end(struct record_job *j, struct err *err)
{
    if (!j->entries)
        return err_data(err, "%s: no collective was recorded%s%s",
                        j->processes ? j->process[0].path : "the folder",
                        j->processes > 1 ? ", nor in the other files" : "",
                        j->engines ? ", of which NCCL told the end: copy engines ran them "
                                     "(NCCL_CTA_POLICY=DEFAULT runs kernels)"
                        : j->untimed
                            ? ", of which NCCL told the end: without proxies it does so from "
                              "2.26 on"
                            : "");
    find_ranks(j);
    order_processes(j);
    order_entries(j);
    record_axes_make(j);
    if (number_calls(j, err) < 0)
        return -1;
    fill_calls(j);
    drop_unlike(j);
    return 0;
}

void record_call_span(struct record_span *s, const struct record_job *j, int call)
{
    const struct record_call *c = &j->call[call];
    int want = c->kind < 0                            ? -1
               : record_is_message(&j->kind[c->kind]) ? 2
                                                      : j->team[j->kind[c->kind].comm].size;

    *s = (struct record_span){.entries = c->entries,
                              .whole = c->entries == want,
                              .first = INT64_MAX,
                              .last = INT64_MIN,
                              .second = INT64_MIN,
                              .end = INT64_MIN,
                              .latest = -1,
                              .earliest = -1};
    for (int i = 0; i < c->entries; i++) {
        const struct record_entry *e = record_call_entry(j, call, i);
        if (e->start < s->first) {
            s->first = e->start;
            s->earliest = e->process;
        }
        if (e->start > s->last) {
            s->second = s->last;
            s->last = e->start;
            s->latest = e->process;
        } else if (e->start > s->second)
            s->second = e->start;
        s->end = e->end > s->end ? e->end : s->end;
    }
    if (s->entries < 2)
        s->second = s->last;
}
