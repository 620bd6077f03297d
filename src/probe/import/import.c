/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/import/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/import/import_ranks.h"

enum { NOTE = 64 };

void import_init(struct import *im, const struct import_opts *o)
{
    memset(im, 0, sizeof(*im));
    im->opts = o;
    topo_init(&im->topo);
    if (o->topo) {
        topo_copy(&im->topo, o->topo);
        import_hosts(im);
    }
}

static void say(struct import *im, char *sentence)
{
    MEM_PUSH(im->said, im->saids) = sentence;
}

/* The operation of a table; said: that of the options, -1: none. */
static int op_of(const struct recording *r, const struct recording_table *t, int said,
                 struct err *err)
{
    size_t n = strlen(t->program), tail = strlen("_perf");
    char name[sizeof(t->program)];

    if (!n && said < 0)
        return err_data(err,
                        "%s:%d: which collective this is was printed from nccl-tests 2.16 on only: "
                        "say it with --op",
                        r->path, t->line);
    if (!n)
        return said;
    memcpy(name, t->program, n + 1);
    if (n > tail && !strcmp(name + n - tail, "_perf"))
        name[n - tail] = '\0';
    int op = op_find(name);
    if (op < 0 || op_is_pair((enum op)op))
        return err_data(err, "%s:%d: %s is no operation that is known here", r->path, t->line,
                        t->program);
    if (said >= 0 && op != said)
        return err_data(err, "%s:%d: %s is not the operation of --op, %s", r->path, t->line,
                        t->program, op_name((enum op)said));
    return op;
}

static bool same_kind(const struct recording_row *a, const struct recording_row *b)
{
    return !strcmp(a->type, b->type) && !strcmp(a->redop, b->redop) && a->root == b->root;
}

/* How often this size came before, in rows that count. */
static int epoch_of(const struct import *im, int round, size_t bytes)
{
    int n = 0;

    for (int i = im->points - 1; i >= 0 && im->point[i].round == round; i--)
        n += im->point[i].bytes == bytes && im->point[i].group == 0;
    return n;
}

static void fill(struct point *p, const struct recording_half *h, int groups)
{
    char note[NOTE] = "";

    if (h->mean)
        snprintf(note, sizeof(note), "mean of %d iterations", h->sec.n);
    if (groups > 1)
        snprintf(note + strlen(note), sizeof(note) - strlen(note), "%saverage of %d groups",
                 *note ? ", " : "", groups);
    p->sec = h->sec;
    p->stop = STOP_COUNT;
    p->checked = h->wrong >= 0;
    p->wrong = h->wrong > 0;
    snprintf(p->note, sizeof(p->note), "%s", note);
}

/* What of a table did not become a point. */
struct left {
    int empty, half, kind, cycles;
};

/* Another operation or number of ranks would have another busbw / algbw. */
static int check_factor(const struct recording *r, const struct recording_row *row,
                        const struct recording_half *h, const struct round *round, struct err *err)
{
    int ranks = round->group[0].size;
    double want = op_bus_factor(round->op, ranks);
    char at[320];

    if (h->bus <= 0 || fabs(h->bus / want - 1) < 0.03)
        return 0;
    return err_data(err,
                    "%s: busbw / algbw is %.3f, but %s of %d ranks has %.3f: another operation "
                    "or number of ranks",
                    recording_at(r, "results", row->line, at), h->bus, op_name(round->op), ranks,
                    want);
}

static void add_point(struct import *im, struct round *round, const struct recording_half *h,
                      size_t bytes, int epoch)
{
    for (int g = 0; g < round->groups; g++) {
        struct point p;
        point_describe(&p, round, g, epoch, bytes);
        fill(&p, h, round->groups);
        MEM_PUSH(im->point, im->points) = p;
    }
    round->epochs |= 1u << epoch;
    round->first = round->first && round->first < bytes ? round->first : bytes;
    round->last = round->last > bytes ? round->last : bytes;
}

static int add_rows(struct import *im, const struct recording *r, const struct recording_table *t,
                    struct round *round, struct left *left, struct err *err)
{
    for (int i = 0; i < t->rows; i++) {
        const struct recording_row *row = &t->row[i];
        const struct recording_half *h = &row->half[im->opts->in_place];
        int epoch;
        if (!row->bytes)
            left->empty++;
        else if (!same_kind(row, &t->row[0]))
            left->kind++;
        else if (!h->sec.n)
            left->half++;
        else if ((epoch = epoch_of(im, round->id, row->bytes)) >= PLAN_EPOCHS)
            left->cycles++;
        else if (check_factor(r, row, h, round, err) < 0)
            return -1;
        else
            add_point(im, round, h, row->bytes, epoch);
    }
    return 0;
}

static void say_left(struct import *im, const struct recording *r, const struct recording_table *t,
                     const struct left *left)
{
    const char *path = r->path;

    if (left->empty)
        say(im, mem_printf("%s: rows of 0 bytes left out (less than 16 bytes a rank): %d", path,
                           left->empty));
    if (left->kind)
        say(im, mem_printf("%s: rows of another type, reduction or root than \"%s %s %d\" left "
                           "out: %d",
                           path, t->row[0].type, t->row[0].redop, t->row[0].root, left->kind));
    if (left->half)
        say(im, mem_printf("%s: rows with N/A %s place: %d", path,
                           im->opts->in_place ? "in" : "out of", left->half));
    if (left->cycles)
        say(im, mem_printf("%s: rows of sizes that came %d times already left out: %d", path,
                           PLAN_EPOCHS, left->cycles));
    if (!t->ended)
        say(im, mem_printf("%s:%d: the run was cut: its last line is not there", path, t->line));
}

static int add_table(struct import *im, const struct recording *r, struct recording_table *t,
                     struct err *err)
{
    struct import_groups g = {NULL, NULL, 0};
    struct left left = {0};
    int op = op_of(r, t, im->opts->op, err), rc = op < 0 ? -1 : import_groups(&g, im, r, t, err);

    if (rc < 0)
        goto out;
    struct round *round = plan_add(&im->plan, STAGE_COLLECTIVE, (enum op)op, g.count);
    for (int i = 0; i < g.count; i++)
        for (int k = g.at[i]; k < g.at[i + 1]; k++)
            MEM_PUSH(round->group[i].members, round->group[i].size) = g.member[k];
    round->factor = t->factor >= 2 && t->factor <= 1024 ? (int)t->factor : 2;
    rc = add_rows(im, r, t, round, &left, err);
    say_left(im, r, t, &left);
    if (rc == 0 && !round->first)
        rc = err_data(err, "%s:%d: no row has a time %s place", r->path, t->line,
                      im->opts->in_place ? "in" : "out of");
out:
    import_groups_free(&g);
    return rc;
}

int import_add(struct import *im, const struct recording *r, struct err *err)
{
    for (int i = 0; i < r->tables; i++) {
        struct recording_table *t = &r->table[i];
        if (t->rows && add_table(im, r, t, err) < 0)
            return -1;
        if (!t->rows)
            say(im, mem_printf("%s:%d: a run%s%s ended before its first row", r->path, t->line,
                               *t->program ? " of " : "", t->program));
    }
    return 0;
}

void import_end(struct import *im)
{
    static const char *const unseen[] = {"NVLink domains", "NICs and rails", "racks and leaves",
                                         "transport"};

    if (im->opts->topo)
        return;
    for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++)
        topo_unseen(&im->topo, unseen[i], "nccl-tests does not print them");
    topo_default_tiers(&im->topo);
}

void import_free(struct import *im)
{
    import_hosts_free(im);
    for (int i = 0; i < im->saids; i++)
        free(im->said[i]);
    free(im->said);
    free(im->point);
    plan_free(&im->plan);
    topo_free(&im->topo);
    memset(im, 0, sizeof(*im));
}
