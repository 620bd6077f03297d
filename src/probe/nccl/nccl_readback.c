/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_readback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "topo/nccl/nccl_log.h"

enum { SET_MAX = 8, HOST_LEN = 256, PIECE = 1 << 16 };
#define TEXT_MAX ((uint64_t)256 << 20) /* of one rank */

enum { LOG, TOPO, GRAPH, FILES };

struct nccl_readback {
    struct world *w;
    int file[FILES];          /* -1: not ours, or not written by this rank */
    bool dumps;               /* this rank dumps the topology of its host */
    const char *set[SET_MAX]; /* variables that were not there before */
    int sets;
    struct nccl_log_mark *mark; /* owned */
    int marks;
};

static struct nccl_readback *now; /* the one that is open */

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

/* A file of ours as the value of a variable: without a name anywhere, so that nothing is left of a
 * rank that is killed.  NCCL opens it by its path, to write from the beginning. */
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

/* Rank 0 finds the first rank of each host; everybody learns whether it is one. */
static int find_leader(struct nccl_readback *r, struct err *err)
{
    struct world *w = r->w;
    char mine[HOST_LEN] = "", *all = NULL;
    void *flags = NULL;
    size_t len = (size_t)w->size;

    host_self(mine, sizeof(mine));
    if (w->rank == 0)
        all = mem_calloc((size_t)w->size, HOST_LEN);
    int rc = w->gather(w, mine, sizeof(mine), all, err);
    if (w->rank == 0) {
        char *f = flags = mem_calloc(len, 1);
        for (int i = 0; i < w->size; i++) {
            int k = 0;
            while (k < i && strcmp(all + k * HOST_LEN, all + i * HOST_LEN) != 0)
                k++;
            f[i] = (char)(k == i);
        }
    }
    free(all);
    if (rc == 0)
        rc = w->share(w, &flags, &len, err);
    r->dumps = rc == 0 && ((char *)flags)[w->rank];
    free(flags);
    return rc;
}

/* The user's subsystems stay beside ours; "^X" (all but X) is replaced, the file is not his. */
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
    /* The rank of a communicator that has this process's number writes it. */
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
        r->marks--; /* nothing was written meanwhile */
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

/* The dump names the ranks of the newest communicator in which this process has its own number. */
static void add_dump(struct nccl_profile *p, const char *path, int rank)
{
    struct nccl_paths dump;
    struct err err = {0};
    struct stat there;
    int comm = p->comms - 1, at = p->n_paths;

    if (stat(path, &there) != 0 || there.st_size == 0)
        return; /* before the first communicator */
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

/* This rank's profile as JSON text; the caller frees.  Nothing there is an empty profile. */
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

/* Everybody's length, the longest of them to everybody. */
static int longest(struct world *w, uint64_t len, uint64_t *all, uint64_t *most, struct err *err)
{
    size_t size = sizeof(*most);
    void *told = NULL;
    int rc = w->gather(w, &len, sizeof(len), all, err);

    *most = 0;
    for (int i = 0; w->rank == 0 && i < w->size; i++)
        *most = all[i] > *most ? all[i] : *most;
    if (w->rank == 0) {
        told = mem_calloc(1, sizeof(*most));
        memcpy(told, most, sizeof(*most));
    }
    if (rc == 0)
        rc = w->share(w, &told, &size, err);
    if (rc == 0)
        memcpy(most, told, sizeof(*most));
    free(told);
    return rc;
}

/* Texts of any length through gather(), which takes equal ones: in pieces. */
static int gather_texts(struct world *w, const char *mine, char **texts, struct err *err)
{
    uint64_t *len = mem_calloc((size_t)w->size, sizeof(*len)), most;
    char piece[PIECE], *all = w->rank == 0 ? mem_calloc((size_t)w->size, PIECE) : NULL;
    int rc = longest(w, strlen(mine), len, &most, err);

    for (int i = 0; rc == 0 && w->rank == 0 && i < w->size; i++)
        texts[i] = mem_calloc((size_t)(len[i] < TEXT_MAX ? len[i] : TEXT_MAX) + 1, 1);
    for (uint64_t at = 0; rc == 0 && at < most && at < TEXT_MAX; at += PIECE) {
        size_t n = strlen(mine) > at ? strlen(mine + at) : 0;
        memset(piece, 0, sizeof(piece));
        memcpy(piece, n ? mine + at : mine, n < PIECE ? n : PIECE);
        rc = w->gather(w, piece, sizeof(piece), all, err);
        for (int i = 0; rc == 0 && w->rank == 0 && i < w->size; i++)
            if (len[i] > at)
                memcpy(texts[i] + at, all + (size_t)i * PIECE,
                       len[i] - at < PIECE ? len[i] - at : PIECE);
    }
    free(all);
    free(len);
    return rc;
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
    int rc;

    memset(p, 0, sizeof(*p));
    rc = w->agree(w, gather_texts(w, mine, texts, err), err);
    if (rc == 0 && w->rank == 0) {
        rc = merge_texts(p, texts, w->size, err);
        nccl_merge_end(p);
        if (rc == 0)
            nccl_judge(p, t);
    }
    for (int i = 0; i < w->size; i++)
        free(texts[i]);
    free(texts);
    free(mine);
    return w->agree(w, rc, err);
}
