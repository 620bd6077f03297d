/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"

/* Goes over the wire as it is, between equal programs. */
struct row {
    int ranks, made, slow_init, slow_first, op; /* op -1: none was done */
    double init, first;                         /* s */
    size_t bytes;
    char members[64]; /* "0-7", cut with "..." */
};

static struct row *rows;
static int count;

static void spell(char text[64], const int *member, int n)
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

int nccl_cost_made(const int *members, int size, double sec, int slowest)
{
    struct row r = {.ranks = size, .op = -1, .first = NAN};
    int i = 0;

    spell(r.members, members, size);
    while (i < count && (rows[i].ranks != size || strcmp(rows[i].members, r.members)))
        i++;
    if (i == count)
        MEM_PUSH(rows, count) = r;
    rows[i].made++;
    if (sec >= rows[i].init) {
        rows[i].init = sec;
        rows[i].slow_init = slowest;
    }
    return i;
}

void nccl_cost_first(int row, enum op op, size_t bytes, double sec, int slowest)
{
    struct row *r = &rows[row];

    if (r->op >= 0 && r->first >= sec)
        return;
    r->op = (int)op;
    r->bytes = bytes;
    r->first = sec;
    r->slow_first = slowest;
}

static void print_row(FILE *out, const struct row *r)
{
    fprintf(out, "%d\t%s\t%d\t%.9f\t%d\t", r->ranks, r->members, r->made, r->init, r->slow_init);
    if (r->op < 0)
        fputs("-\t-\t-\t-\n", out);
    else
        fprintf(out, "%.9f\t%d\t%s\t%zu\n", r->first, r->slow_first, op_name((enum op)r->op),
                r->bytes);
}

static int save(const struct row *all, int n, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    fputs("ranks\tmembers\tmade\tinit_s\tinit_slowest\tfirst_s\tfirst_slowest\tfirst_op\t"
          "first_bytes\n",
          f.stream);
    for (int i = 0; i < n; i++)
        print_row(f.stream, &all[i]);
    int rc = file_commit(&f, err);
    file_abort(&f);
    return rc;
}

static char *sentence(const struct row *all, int n)
{
    double *init = mem_calloc((size_t)n + 1, sizeof(*init)), *first = mem_calloc((size_t)n + 1, 8);
    int worst = 0, firsts = 0;

    for (int i = 0; i < n; i++) {
        init[i] = all[i].init;
        worst = all[i].init > all[worst].init ? i : worst;
        if (all[i].op >= 0)
            first[firsts++] = all[i].first;
    }
    char *text =
        n ? mem_printf("%d communicator%s: made in %.3g s (median; slowest %.3g s, ranks %s, rank "
                       "%d), first operation %.3g s (median)",
                       n, n == 1 ? "" : "s", stats_median(init, n), all[worst].init,
                       all[worst].members, all[worst].slow_init,
                       firsts ? stats_median(first, firsts) : 0.0)
          : mem_strdup("");
    free(init);
    free(first);
    return text;
}

/* Every rank sends as many rows as the one that has most. */
static int collect(struct world *w, struct row **all, int *n, struct err *err)
{
    int *each = mem_calloc((size_t)w->size, sizeof(int)), most = 0;
    void *told = &most;
    size_t len = sizeof(most);

    if (w->gather(w, &count, sizeof(count), each, err) < 0)
        goto out;
    for (int r = 0; r < w->size; r++)
        most = each[r] > most ? each[r] : most;
    if (w->share(w, &told, &len, err) < 0)
        goto out;
    memcpy(&most, told, sizeof(most));
    if (told != &most)
        free(told);
    struct row *mine = mem_calloc((size_t)most + 1, sizeof(*mine));
    if (count)
        memcpy(mine, rows, sizeof(*rows) * (size_t)count);
    struct row *box = mem_calloc((size_t)most * (size_t)w->size + 1, sizeof(*box));
    int rc = most ? w->gather(w, mine, sizeof(*mine) * (size_t)most, box, err) : 0;
    for (int r = 0; rc == 0 && w->rank == 0 && r < w->size; r++)
        for (int i = 0; i < each[r]; i++)
            MEM_PUSH(*all, *n) = box[r * most + i];
    free(box);
    free(mine);
    free(each);
    return rc;
out:
    free(each);
    return -1;
}

int nccl_cost_write(struct world *w, const char *path, char **words, struct err *err)
{
    struct row *all = NULL;
    int n = 0, rc = collect(w, &all, &n, err);

    *words = NULL;
    if (rc == 0 && w->rank == 0) {
        *words = sentence(all, n);
        rc = n ? save(all, n, path, err) : 0;
    }
    free(all);
    free(rows);
    rows = NULL;
    count = 0;
    return w->agree(w, rc, err);
}
