/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_readback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "measure/device/gpu_binding.h"
#include "measure/transports/nccl_opts.h"
#include "measure/transports/nccl_path.h"
#include "topo/sources/nccl/nccl_log.h"

enum { SET_MAX = 8 };

enum { LOG, TOPO, GRAPH, FILES };

struct nccl_readback {
    struct world *w;
    int file[FILES];          /* -1: set by the user, or not written by this rank */
    bool dumps;               /* this rank dumps the topology of its host */
    const char *set[SET_MAX]; /* variables that were not set before */
    int sets;
    struct nccl_log_mark *mark; /* owned */
    int marks;
};

static struct nccl_readback *now; /* the readback that is open */

static void set(struct nccl_readback *r, const char *name, const char *value)
{
    if (!getenv(name))
        r->set[r->sets++] = name;
    setenv(name, value, 1);
}

static char *path_of(const struct nccl_readback *r, int which)
{
    return mem_printf("/proc/self/fd/%d", r->file[which]);
}

/* Set a variable to a file of this process that has no name, so that nothing remains if the rank is
 * killed.  NCCL opens it by its path and writes from the beginning. */
static int set_file(struct nccl_readback *r, int which, const char *variable, struct err *err)
{
    static const char *const name[] = {"nccl-log", "nccl-topo", "nccl-graph"};

    r->file[which] = memfd_create(name[which], MFD_CLOEXEC);
    if (r->file[which] < 0)
        return err_io(err, "a file in memory for %s: %s", variable, strerror(errno));
    char *path = path_of(r, which);
    set(r, variable, path);
    free(path);
    return 0;
}

/* True on the first rank of its host. */
static int find_leader(struct nccl_readback *r, struct err *err)
{
    struct gpu_binding *all;
    int first = 0, rc = gpu_binding_trade(r->w, &all, err);

    while (rc == 0 && strcmp(all[first].host, all[r->w->rank].host) != 0)
        first++;
    r->dumps = rc == 0 && first == r->w->rank;
    free(all);
    return rc;
}

/* Add the user's subsystems; "^X" (all but X) is replaced, because the file is not the user's. */
static void set_subsystems(struct nccl_readback *r, bool tuning)
{
    const char *user = getenv("NCCL_DEBUG_SUBSYS");
    char *all = mem_printf("INIT,GRAPH,NET,ENV%s%s%s", tuning ? ",TUNING" : "",
                           user && *user && *user != '^' ? "," : "",
                           user && *user && *user != '^' ? user : "");

    set(r, "NCCL_DEBUG_SUBSYS", all);
    free(all);
}

static int set_up(struct nccl_readback *r, bool tuning, struct err *err)
{
    const char *level = getenv("NCCL_DEBUG");
    char rank[16];

    if (getenv("NCCL_DEBUG_FILE"))
        return 0;
    if (set_file(r, LOG, "NCCL_DEBUG_FILE", err) < 0)
        return -1;
    if (!level || strcasecmp(level, "TRACE") != 0)
        set(r, "NCCL_DEBUG", "INFO");
    set_subsystems(r, tuning);
    if (!r->dumps || getenv("NCCL_TOPO_DUMP_FILE"))
        return 0;
    /* The dump is written by the rank of a communicator with this process's number. */
    snprintf(rank, sizeof(rank), "%d", r->w->rank);
    set(r, "NCCL_TOPO_DUMP_FILE_RANK", rank);
    set(r, "NCCL_GRAPH_DUMP_FILE_RANK", rank);
    return set_file(r, TOPO, "NCCL_TOPO_DUMP_FILE", err) < 0
               ? -1
               : set_file(r, GRAPH, "NCCL_GRAPH_DUMP_FILE", err);
}

int nccl_readback_open(struct nccl_readback **out, struct world *w, bool tuning, struct err *err)
{
    struct nccl_readback *r = mem_calloc(1, sizeof(*r));

    r->w = w;
    for (int i = 0; i < FILES; i++)
        r->file[i] = -1;
    int rc = w->agree(w, find_leader(r, err), err);
    if (rc == 0)
        rc = w->agree(w, set_up(r, tuning, err), err);
    if (rc < 0) {
        nccl_readback_close(r);
        r = NULL;
    }
    *out = now = r;
    return rc;
}

void nccl_readback_mark(const void *comm)
{
    struct nccl_readback *r = now;
    unsigned long long address = (unsigned long long)(uintptr_t)comm;
    struct stat log;

    if (!r || r->file[LOG] < 0 || (r->marks && r->mark[r->marks - 1].comm == address) ||
        fstat(r->file[LOG], &log) != 0)
        return;
    if (r->marks && r->mark[r->marks - 1].from == log.st_size)
        r->marks--; /* nothing was written in between */
    MEM_PUSH(r->mark, r->marks) = (struct nccl_log_mark){log.st_size, address};
}

void nccl_readback_close(struct nccl_readback *r)
{
    if (!r)
        return;
    now = NULL;
    for (int i = 0; i < r->sets; i++)
        unsetenv(r->set[i]);
    for (int i = 0; i < FILES; i++)
        if (r->file[i] >= 0)
            close(r->file[i]);
    free(r->mark);
    free(r);
}

/* The dump refers to the newest communicator in which this process has its own number. */
static void add_dump(struct nccl_profile *p, const char *path, int rank)
{
    struct nccl_paths dump;
    struct err err = {0};
    struct stat there;
    int comm = p->comms - 1, at = p->n_paths;

    if (stat(path, &there) != 0 || there.st_size == 0)
        return; /* no communicator yet */
    if (nccl_xml_load(&dump, path, &err) < 0) {
        char *text =
            mem_printf("rank %d: NCCL's topology dump cannot be read: %.300s", rank, err.text);
        nccl_profile_note(&p->finding, &p->findings, text);
        free(text);
        return;
    }
    while (comm >= 0 && p->comm[comm].rank != rank)
        comm--;
    MEM_PUSH(p->paths_comm, at) = comm;
    MEM_PUSH(p->paths, p->n_paths) = dump;
}

/* This rank's profile as JSON text; an empty log gives an empty profile.  The caller frees. */
static char *own_text(const struct nccl_readback *r)
{
    struct nccl_profile p = {.lines = 0};
    char *text, *log = r->file[LOG] >= 0 ? path_of(r, LOG) : NULL;
    char *xml = r->file[TOPO] >= 0 ? path_of(r, TOPO) : NULL;

    if (!log)
        nccl_profile_note(&p.finding, &p.findings,
                          "NCCL_DEBUG_FILE is set: what NCCL built cannot be read back");
    else if (nccl_log_read(&p, log, r->mark, r->marks, NULL) == 0 && xml)
        add_dump(&p, xml, r->w->rank);
    free(log);
    free(xml);
    json_t *json = nccl_profile_json(&p);
    text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(json);
    nccl_profile_free(&p);
    return text ? text : mem_strdup("");
}

static int merge_texts(struct nccl_profile *p, char *const *texts, int n, struct err *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++) {
        struct nccl_profile one;
        json_error_t e;
        char where[48];
        snprintf(where, sizeof(where), "what rank %d read of NCCL", i);
        json_t *json = json_loads(texts[i], 0, &e);
        rc = json ? nccl_profile_read(&one, json, where, err)
                  : err_set(err, "%s: %s", where, e.text);
        json_decref(json);
        if (rc == 0)
            nccl_merge(p, &one, i);
    }
    return rc;
}

int nccl_readback_collect(struct nccl_readback *r, struct nccl_profile *p, const struct topo *t,
                          struct err *err)
{
    struct world *w = r->w;
    char **texts = mem_calloc((size_t)w->size, sizeof(*texts)), *mine = own_text(r);
    size_t *len = mem_calloc((size_t)w->size, sizeof(*len));

    memset(p, 0, sizeof(*p));
    int rc = w->agree(w, world_collect(w, mine, strlen(mine), texts, len, err), err);
    if (rc == 0 && w->rank == 0) {
        rc = merge_texts(p, texts, w->size, err);
        nccl_merge_end(p);
        if (rc == 0)
            nccl_judge(p, t);
    }
    for (int i = 0; i < w->size; i++)
        free(texts[i]);
    free(texts);
    free(len);
    free(mine);
    return w->agree(w, rc, err);
}

/* --- store in the topology --- */

/* NCCL's choices differ by size; a few sizes show where they change. */
static const size_t size[] = {1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26};

static int run_all(const struct transport *tr, void *ctx, struct err *err)
{
    static const enum op ops[] = {OP_ALL_REDUCE, OP_ALL_GATHER, OP_ALL_TO_ALL};
    double sec;

    for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
        for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
            if (tr->calls->run(ctx, ops[o], size[i], 1, &sec, err) < 0)
                return -1;
    return 0;
}

static int one_communicator(const struct transport *tr, struct world *w, struct err *err)
{
    int *members = mem_calloc((size_t)w->size, sizeof(*members));
    struct group g = {.members = members, .size = w->size, .self = w->rank};
    void *ctx = NULL;

    for (int i = 0; i < w->size; i++)
        members[i] = i;
    int rc = w->enter(w, members, w->size, 0, &g.comm, err);
    if (rc == 0)
        rc = w->agree(w, tr->calls->open(&ctx, &g, size[sizeof(size) / sizeof(*size) - 1], err),
                      err);
    if (rc == 0)
        rc = w->agree(w, run_all(tr, ctx, err), err);
    if (ctx)
        tr->calls->close(ctx);
    w->leave(w, &g.comm);
    free(members);
    return rc;
}

/* Store the profile in the topology, replacing an earlier one. */
static void keep_profile(struct topo *t, const struct nccl_profile *p)
{
    json_decref(t->nccl);
    t->nccl = nccl_profile_json(p);
}

int nccl_readback_build(struct nccl_readback *r, const struct transport *tr, struct world *w,
                        struct topo *t, struct err *err)
{
    struct nccl_profile p = {.lines = 0};

    int rc = one_communicator(tr, w, err);
    if (rc == 0)
        rc = nccl_readback_collect(r, &p, t, err);
    if (rc == 0 && w->rank == 0)
        keep_profile(t, &p);
    nccl_profile_free(&p);
    return rc;
}

/* Smaller messages are limited by latency, for which NCCL assumes nothing comparable. */
enum { LARGE = 32 << 20 };

/* Bandwidth (busbw, B/s) of an operation's largest message on this number of ranks, the best of its
 * epochs; 0: not measured. */
static double busbw_measured(const struct points *all, enum op op, int ranks)
{
    size_t most = LARGE;
    double best = 0;

    for (int i = 0; i < all->count; i++) {
        const struct point *p = &all->point[i];
        if (p->op != op || p->ranks != ranks || p->wrong || !(p->sec.median > 0) || p->bytes < most)
            continue;
        double busbw = (double)p->bytes / p->sec.median * op_bus_factor(op, ranks);
        best = p->bytes > most || busbw > best ? busbw : best;
        most = p->bytes;
    }
    return best;
}

static void compare_busbw(struct nccl_profile *p, const struct points *points)
{
    static const enum op ops[] = {OP_ALL_REDUCE, OP_ALL_GATHER};

    for (int c = 0; c < p->comms; c++)
        for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
            if (p->comm[c].ranks > 2)
                nccl_judge_measured(p, c, op_name(ops[o]),
                                    busbw_measured(points, ops[o], p->comm[c].ranks));
}

/* Windows alone do not make a kernel symmetric: NCCL decides by type, operation and size, and does
 * not tell the caller. */
static void judge_kernels(struct nccl_profile *p)
{
    char text[256], at[UNITS_TEXT];

    for (int op = 0; op < OP_COUNT; op++) {
        const struct nccl_choice *first = NULL;
        int ordinary = 0, all = 0;
        for (int i = 0; i < p->choices; i++) {
            const struct nccl_choice *c = &p->choice[i];
            if (strcmp(c->op, op_name((enum op)op)) != 0)
                continue;
            bool own = !strcmp(c->algo, "symmetric") || !strcmp(c->algo, "copy_engine") ||
                       !strcmp(c->algo, "rma");
            all++;
            ordinary += !own;
            first = first || own ? first : c;
        }
        if (!first)
            continue;
        snprintf(
            text, sizeof(text),
            "--register symmetric: %s ran ordinary kernels at %d of %d sizes, such as %s %s at "
            "%s a rank",
            op_name((enum op)op), ordinary, all, first->algo, first->proto,
            units_bytes_text(at, (double)first->bytes));
        nccl_profile_note(&p->finding, &p->findings, text);
    }
    if (p->lines && !p->choices)
        nccl_profile_note(&p->finding, &p->findings,
                          "--register symmetric: the log of NCCL names no kernel: not proven");
}

int nccl_readback_campaign(struct nccl_readback *r, struct world *w, struct topo *t,
                           const char *path, const struct points *points, struct err *err)
{
    struct nccl_profile p;
    int rc = nccl_readback_collect(r, &p, t, err);

    if (rc == 0 && w->rank == 0) {
        compare_busbw(&p, points);
        if (nccl_opts_now()->registration == NCCL_REG_SYMMETRIC)
            judge_kernels(&p);
        keep_profile(t, &p);
        for (int i = 0; i < p.findings; i++)
            log_warn("NCCL: %s", p.finding[i]);
        if (path)
            rc = nccl_path_judge(&p, t, path, err);
    }
    nccl_profile_free(&p);
    return w->agree(w, rc, err);
}
