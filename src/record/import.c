/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "kernels/nccl_api.h"
#include "topo/gpu.h"

enum { NOTE = 64 };

/* --- ranks of a table as groups of endpoints.  A rank is a device of a host: an existing endpoint
 * of the given topology, or an endpoint made at the first appearance of the rank --- */

enum { DEVICES_MAX = 1024 };

struct import_gpu {
    int device, endpoint;
};
/* Devices of a host with their endpoints, in order of appearance. */
struct import_host {
    struct import_gpu *gpu;
    int gpus;
};

static void note_gpu(struct import *im, int host, int device, int endpoint)
{
    struct import_host *h = &im->host[host];

    MEM_PUSH(h->gpu, h->gpus) = (struct import_gpu){device, endpoint};
}

static void fill_hosts(struct import *im)
{
    im->hosts = im->topo.hosts;
    im->host = mem_calloc((size_t)im->hosts, sizeof(*im->host));
    for (int i = 0; i < im->topo.endpoints; i++)
        note_gpu(im, im->topo.endpoint[i].place.at[LEVEL_HOST], im->topo.endpoint[i].local, i);
}

static void free_hosts(struct import *im)
{
    for (int i = 0; i < im->hosts; i++)
        free(im->host[i].gpu);
    free(im->host);
}

/* Index of the host, with room for devices; -1: not in the given topology. */
static int add_host(struct import *im, const char *name)
{
    int before = im->topo.hosts, host = topo_add_host(&im->topo, name);

    if (host < before)
        return host;
    if (im->opts->topo)
        return -1;
    MEM_PUSH(im->host, im->hosts) = (struct import_host){.gpus = 0};
    return host;
}

static int new_endpoint(struct import *im, int host, const struct recording_rank *k)
{
    int id = topo_add_endpoint(&im->topo, host, ENDPOINT_GPU);
    struct endpoint *e = &im->topo.endpoint[id];

    e->local = k->device;
    e->source[LEVEL_HOST] = SOURCE_USER;
    memcpy(e->busid, k->busid, sizeof(e->busid));
    memcpy(e->model, k->model, sizeof(e->model));
    note_gpu(im, host, k->device, id);
    return id;
}

int import_endpoint(struct import *im, const char *path, const struct recording_rank *k,
                    struct err *err)
{
    int host = add_host(im, k->host);

    if (host < 0)
        return err_data(err, "%s: rank %d ran on host %s, which the topology does not have", path,
                        k->rank, k->host);
    for (int i = 0; i < im->host[host].gpus; i++)
        if (im->host[host].gpu[i].device == k->device)
            return im->host[host].gpu[i].endpoint;
    if (im->opts->topo)
        return err_data(err, "%s: rank %d ran on device %d of %s, which the topology does not have",
                        path, k->rank, k->device, k->host);
    if (k->device >= DEVICES_MAX)
        return err_data(err, "%s: rank %d ran on device %d: no host has so many", path, k->rank,
                        k->device);
    return new_endpoint(im, host, k);
}

static int by_rank(const void *a, const void *b)
{
    const struct recording_rank *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_group(const void *a, const void *b)
{
    const struct recording_rank *x = a, *y = b;

    return x->group == y->group ? by_rank(a, b) : (x->group > y->group) - (x->group < y->group);
}

/* Add `ranks` ranks in blocks on the hosts, devices from 0. */
static int deal_ranks(struct recording_table *t, const struct recording *r, char *const *host,
                      int hosts, int ranks, struct err *err)
{
    if (!hosts || ranks % hosts)
        return err_usage(err, "%d ranks on %d hosts: no whole number of ranks a host", ranks,
                         hosts);
    for (int i = 0, each = ranks / hosts; i < ranks; i++) {
        struct recording_rank k = {.line = t->line, .rank = i, .device = i % each};
        const char *name = host[i / each];
        if (recording_plain(r, t->line, "a host's name", name, sizeof(k.host) - 1, err) < 0)
            return -1;
        memcpy(k.host, name, strlen(name) + 1);
        MEM_PUSH(t->rank, t->ranks) = k;
    }
    return 0;
}

/* Ranks of recordings without rank lines. */
static int ranks_of_options(struct recording_table *t, const struct recording *r,
                            const struct import_opts *o, struct err *err)
{
    char **host = NULL;
    int hosts = 0;

    if (!o->hosts || !o->ranks)
        return err_data(err,
                        "%s:%d: no line \"#  Rank\" says which GPUs took part; --hosts LIST "
                        "--ranks N can",
                        r->path, t->line);
    if (hostlist_expand(&host, &hosts, o->hosts, err) < 0)
        return -1;
    int rc = deal_ranks(t, r, host, hosts, o->ranks, err);
    hostlist_free(host, hosts);
    return rc;
}

/* Check that ranks are 0..n-1, each on an identified GPU, and make endpoints in their order. */
static int check_ranks(struct import *im, const struct recording *r, struct recording_table *t,
                       struct err *err)
{
    char at[320];

    qsort(t->rank, (size_t)t->ranks, sizeof(*t->rank), by_rank);
    for (int i = 0; i < t->ranks; i++) {
        const struct recording_rank *k = &t->rank[i];
        if (k->rank != i)
            return err_data(err, "%s: rank %d %s; %d ranks are listed",
                            recording_at(r, "devices", k->line, at), k->rank,
                            k->rank < i ? "is listed twice" : "while lower ones are missing",
                            t->ranks);
        if (import_endpoint(im, r->path, k, err) < 0)
            return -1;
    }
    return 0;
}

/* Group g is member[at[g]] .. member[at[g + 1] - 1]: endpoints in rank order. */
struct import_groups {
    int *member, *at, count;
};

static int check_sizes(const struct import_groups *g, const struct recording *r,
                       const struct recording_table *t, struct err *err)
{
    for (int i = 0; i < g->count; i++)
        if (g->at[i + 1] - g->at[i] != g->at[1])
            return err_data(err,
                            "%s:%d: groups of %d and of %d ranks: the rows are the average of both",
                            r->path, t->line, g->at[1], g->at[i + 1] - g->at[i]);
    return g->at[1] >= 2 ? 0
                         : err_data(err, "%s:%d: groups of one rank move nothing between GPUs",
                                    r->path, t->line);
}

/* Check that no endpoint is a member twice.  mark[] has room for every endpoint. */
static int check_members(const struct import_groups *g, const struct import *im,
                         const struct recording *r, const struct recording_table *t,
                         struct err *err)
{
    char *mark = mem_calloc((size_t)im->topo.endpoints, 1), at[320];
    int rc = 0;

    for (int i = 0; i < g->at[g->count] && rc == 0; i++)
        if (mark[g->member[i]]++)
            rc = err_data(err, "%s: rank %d shares device %d of %s with another rank",
                          recording_at(r, "devices", t->rank[i].line, at), t->rank[i].rank,
                          t->rank[i].device, t->rank[i].host);
    free(mark);
    return rc;
}

/* Sort t's ranks by group; default: the groups of im->opts.  EXIT_DATA unless groups are of equal
 * size, at least 2, and without a common endpoint.  Call free_groups() also after an error. */
static int make_groups(struct import_groups *g, struct import *im, const struct recording *r,
                       struct recording_table *t, struct err *err)
{
    if ((!t->ranks && ranks_of_options(t, r, im->opts, err) < 0) || check_ranks(im, r, t, err) < 0)
        return -1;
    qsort(t->rank, (size_t)t->ranks, sizeof(*t->rank), by_group);
    g->member = mem_calloc((size_t)t->ranks, sizeof(*g->member));
    for (int i = 0; i < t->ranks; i++) {
        if (i == 0 || t->rank[i].group != t->rank[i - 1].group)
            MEM_PUSH(g->at, g->count) = i;
        if ((g->member[i] = import_endpoint(im, r->path, &t->rank[i], err)) < 0)
            return -1;
    }
    MEM_PUSH(g->at, g->count) = t->ranks;
    g->count--;
    return check_sizes(g, r, t, err) < 0 ? -1 : check_members(g, im, r, t, err);
}

static void free_groups(struct import_groups *g)
{
    free(g->member);
    free(g->at);
}

/* --- tables --- */

void import_init(struct import *im, const struct import_opts *o)
{
    memset(im, 0, sizeof(*im));
    im->opts = o;
    topo_init(&im->topo);
    if (o->topo) {
        topo_copy(&im->topo, o->topo);
        fill_hosts(im);
    }
}

void import_say(struct import *im, char *sentence)
{
    MEM_PUSH(im->said, im->saids) = sentence;
}

/* Operation of a table; said: from the options, -1: none. */
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

/* Number of earlier rows with this size that count. */
static int epoch_of(const struct import *im, int round, size_t bytes)
{
    int n = 0;

    for (int i = im->rows - 1; i >= 0 && im->row[i].point.round == round; i--)
        n += im->row[i].point.bytes == bytes && im->row[i].point.group == 0;
    return n;
}

static void fill(struct point_row *row, const struct recording_half *h, int groups)
{
    struct point *p = &row->point;
    char note[NOTE] = "";

    if (h->mean)
        snprintf(note, sizeof(note), "mean of %d iterations", h->sec.n);
    if (groups > 1)
        snprintf(note + strlen(note), sizeof(note) - strlen(note), "%saverage of %d groups",
                 *note ? ", " : "", groups);
    point_summary(row, &h->sec);
    p->stop = STOP_COUNT;
    p->checked = h->wrong >= 0;
    p->wrong = h->wrong > 0;
    if (*note)
        point_note(p, "%s", note);
}

/* Parts of tables that did not become points. */
struct import_left {
    int empty, half, kind, cycles;
};

/* Check busbw / algbw, which would differ for another operation or number of ranks. */
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

/* Type and reduction as printed; of a name unknown here, not known. */
static void set_kind(struct point *p, const struct recording_row *row)
{
    p->dtype = (unsigned)(1 + nccl_dtype_find(row->type)) & 15;
    p->redop = op_adds(p->op) ? (unsigned)(1 + nccl_redop_find(row->redop)) & 7 : 0;
}

/* Check that earlier points of the operation, also those of other files, are of the same kind. */
static int check_kind(const struct import *im, const struct recording *r,
                      const struct recording_row *row, enum op op, struct err *err)
{
    struct point next = {.op = op};
    char a[POINT_KIND], b[POINT_KIND], at[320];

    set_kind(&next, row);
    for (int i = 0; i < im->rows; i++) {
        const struct point *p = &im->row[i].point;
        if (p->op == op && point_kind(p) != point_kind(&next))
            return err_data(
                err,
                "%s: %s of %s, but earlier ones are of %s: times of different types are "
                "not mixed (import them into a folder of their own)",
                recording_at(r, "results", row->line, at), op_name(op),
                point_kind_text(point_kind(&next), a), point_kind_text(point_kind(p), b));
    }
    return 0;
}

static void add_point(struct import *im, struct round *round, const struct recording_row *from,
                      int epoch)
{
    const struct recording_half *h = &from->half[im->opts->in_place];
    size_t bytes = from->bytes;

    for (int g = 0; g < round->groups; g++) {
        struct point_row row;
        point_describe(&row, round, g, epoch, bytes);
        set_kind(&row.point, from);
        fill(&row, h, round->groups);
        MEM_PUSH(im->row, im->rows) = row;
    }
    round->epochs |= 1u << epoch;
    round->first = round->first && round->first < bytes ? round->first : bytes;
    round->last = round->last > bytes ? round->last : bytes;
}

static int add_rows(struct import *im, const struct recording *r, const struct recording_table *t,
                    struct round *round, struct import_left *left, struct err *err)
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
        else if (check_factor(r, row, h, round, err) < 0 ||
                 (i == 0 && check_kind(im, r, row, round->op, err) < 0))
            return -1;
        else
            add_point(im, round, row, epoch);
    }
    return 0;
}

static void say_left(struct import *im, const struct recording *r, const struct recording_table *t,
                     const struct import_left *left)
{
    const char *path = r->path;

    if (left->empty)
        import_say(im, mem_printf("%s: rows of 0 bytes left out (less than 16 bytes a rank): %d",
                                  path, left->empty));
    if (left->kind)
        import_say(im,
                   mem_printf("%s: rows of another type, reduction or root than \"%s %s %d\" left "
                              "out: %d",
                              path, t->row[0].type, t->row[0].redop, t->row[0].root, left->kind));
    if (left->half)
        import_say(im, mem_printf("%s: rows with N/A %s place: %d", path,
                                  im->opts->in_place ? "in" : "out of", left->half));
    if (left->cycles)
        import_say(im, mem_printf("%s: rows of sizes that came %d times already left out: %d", path,
                                  PLAN_EPOCHS, left->cycles));
    if (!t->ended)
        import_say(im,
                   mem_printf("%s:%d: the run was cut: its last line is not there", path, t->line));
}

static int add_table(struct import *im, const struct recording *r, struct recording_table *t,
                     struct err *err)
{
    struct import_groups g = {NULL, NULL, 0};
    struct import_left left = {0};
    int op = op_of(r, t, im->opts->op, err), rc = op < 0 ? -1 : make_groups(&g, im, r, t, err);

    if (rc < 0) {
        free_groups(&g);
        return -1;
    }
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
    free_groups(&g);
    return rc;
}

int import_add(struct import *im, const struct recording *r, struct err *err)
{
    for (int i = 0; i < r->tables; i++) {
        struct recording_table *t = &r->table[i];
        if (t->rows && add_table(im, r, t, err) < 0)
            return -1;
        if (!t->rows)
            import_say(im, mem_printf("%s:%d: a run%s%s ended before its first row", r->path,
                                      t->line, *t->program ? " of " : "", t->program));
    }
    return 0;
}

void import_end(struct import *im, const char *why)
{
    static const char *const unseen[] = {"NVLink domains", "NICs and rails", "racks and leaves",
                                         "transport"};

    if (im->opts->topo)
        return;
    for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++)
        topo_unseen(&im->topo, unseen[i], "%s", why);
    topo_default_tiers(&im->topo);
}

void import_free(struct import *im)
{
    free_hosts(im);
    for (int i = 0; i < im->saids; i++)
        free(im->said[i]);
    free(im->said);
    free(im->row);
    plan_free(&im->plan);
    topo_free(&im->topo);
    memset(im, 0, sizeof(*im));
}
