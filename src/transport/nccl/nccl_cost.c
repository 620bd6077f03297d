/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"

const char *const nccl_way_name[NCCL_WAYS + 1] = {"own", "split", "shared", NULL};

/* Sent as bytes between equal programs. */
struct nccl_cost {
    int ranks, made, slow_init, slow_first, op; /* op -1: no operation yet */
    enum nccl_way way;
    double init, first; /* s */
    size_t bytes;
    char members[64]; /* "0-7", cut with "..." */
};

static struct nccl_cost *costs; /* communicators whose first member is this rank */
static int cost_count;
static struct { /* splits seen by this process: every rank takes part in each */
    int count;
    double sec, longest;
} splits;

void nccl_cost_split(double sec)
{
    splits.count++;
    splits.sec += sec;
    splits.longest = fmax(splits.longest, sec);
}

static void spell_members(char text[64], const int *member, int n)
{
    size_t used = 0;

    for (int i = 0, last; i < n; i = last + 1) {
        char one[32];
        for (last = i; last + 1 < n && member[last + 1] == member[last] + 1; last++)
            ;
        int len = last == i ? snprintf(one, sizeof(one), "%d", member[i])
                            : snprintf(one, sizeof(one), "%d-%d", member[i], member[last]);
        if (used + (size_t)len + 5 > 64) {
            snprintf(text + used, 64 - used, "...");
            return;
        }
        used += (size_t)snprintf(text + used, 64 - used, "%s%s", used ? "," : "", one);
    }
}

int nccl_cost_made(const int *members, int size, enum nccl_way way, double sec, int slowest)
{
    struct nccl_cost r = {.ranks = size, .op = -1, .way = way, .first = NAN};
    int i = 0;

    spell_members(r.members, members, size);
    while (i < cost_count &&
           (costs[i].ranks != size || costs[i].way != way || strcmp(costs[i].members, r.members)))
        i++;
    if (i == cost_count)
        MEM_PUSH(costs, cost_count) = r;
    costs[i].made++;
    if (sec >= costs[i].init) {
        costs[i].init = sec;
        costs[i].slow_init = slowest;
    }
    return i;
}

void nccl_cost_first(int row, enum op op, size_t bytes, double sec, int slowest)
{
    struct nccl_cost *r = &costs[row];

    if (r->op >= 0 && r->first >= sec)
        return;
    r->op = (int)op;
    r->bytes = bytes;
    r->first = sec;
    r->slow_first = slowest;
}

static void print_cost(FILE *out, const struct nccl_cost *r)
{
    fprintf(out, "%d\t%s\t%d\t%.9f\t%d\t", r->ranks, r->members, r->made, r->init, r->slow_init);
    if (r->op < 0)
        fputs("-\t-\t-\t-", out);
    else
        fprintf(out, "%.9f\t%d\t%s\t%zu", r->first, r->slow_first, op_name((enum op)r->op),
                r->bytes);
    fprintf(out, "\t%s\n", nccl_way_name[r->way]);
}

static int save_costs(const struct nccl_cost *all, int n, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    fputs("ranks\tmembers\tmade\tinit_s\tinit_slowest\tfirst_s\tfirst_slowest\tfirst_op\t"
          "first_bytes\t"
          "how\n",
          f.stream);
    for (int i = 0; i < n; i++)
        print_cost(f.stream, &all[i]);
    int rc = file_commit(&f, err);
    file_abort(&f);
    return rc;
}

/* " by 12 splits of all ranks (3.4 s, at most 0.3 s)"; "" without splits. */
static char *split_words(int made)
{
    return splits.count ? mem_printf("; %d of them by %d split%s of all ranks' (%.3g s in all, at "
                                     "most %.3g s)",
                                     made, splits.count, splits.count == 1 ? "" : "s", splits.sec,
                                     splits.longest)
                        : mem_strdup("");
}

/* Shared communicators cost nothing to make. */
static char *costs_sentence(const struct nccl_cost *all, int n)
{
    double *init = mem_calloc((size_t)n + 1, sizeof(*init)), *first = mem_calloc((size_t)n + 1, 8);
    int worst = 0, firsts = 0, inits = 0, split = 0, shared = 0;

    for (int i = 0; i < n; i++) {
        split += all[i].way == NCCL_SPLIT;
        shared += all[i].way == NCCL_SHARED;
        if (all[i].way != NCCL_SHARED)
            init[inits++] = all[i].init;
        worst = all[i].init > all[worst].init ? i : worst;
        if (all[i].op >= 0)
            first[firsts++] = all[i].first;
    }
    char *by = split_words(split);
    char *on = shared ? mem_printf("; %d pairs on one that all share", shared) : mem_strdup("");
    char *text = !n ? mem_strdup("")
                    : mem_printf("%d communicator%s: made in %.3g s (median; slowest %.3g s, ranks "
                                 "%s, rank %d), first operation %.3g s (median)%s%s",
                                 inits, inits == 1 ? "" : "s", stats_median(init, inits),
                                 all[worst].init, all[worst].members, all[worst].slow_init,
                                 firsts ? stats_median(first, firsts) : 0.0, by, on);
    free(by);
    free(on);
    free(init);
    free(first);
    return text;
}

static int gather_costs(struct world *w, struct nccl_cost **all, int *n, struct err *err)
{
    char **part = mem_calloc((size_t)w->size, sizeof(*part));
    size_t *len = mem_calloc((size_t)w->size, sizeof(*len));
    int rc = world_collect(w, costs, sizeof(*costs) * (size_t)cost_count, part, len, err);

    for (int r = 0; r < w->size; r++) {
        struct nccl_cost one;
        for (size_t at = 0; rc == 0 && part[r] && at < len[r]; at += sizeof(one)) {
            memcpy(&one, part[r] + at, sizeof(one));
            MEM_PUSH(*all, *n) = one;
        }
        free(part[r]);
    }
    free(len);
    free(part);
    return rc;
}

int nccl_cost_finish(struct world *w, const char *path, char **words, struct err *err)
{
    struct nccl_cost *all = NULL;
    int n = 0, rc = gather_costs(w, &all, &n, err);

    *words = NULL;
    if (rc == 0 && w->rank == 0) {
        *words = costs_sentence(all, n);
        rc = n ? save_costs(all, n, path, err) : 0;
    }
    free(all);
    free(costs);
    costs = NULL;
    cost_count = 0;
    return rc;
}
