/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm with every protocol. */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "probe/measure.h"
#include "probe/nccl/nccl_conn.h"
#include "probe/nccl/transport_nccl.h"
#include "probe/probe_args.h"

/* all_to_all and sendrecv are sends and receives: nothing to choose. */
static bool has_algorithms(const struct round *r)
{
    return r->stage == STAGE_COLLECTIVE && !op_is_pair(r->op) && r->op != OP_ALL_TO_ALL &&
           r->op != OP_SENDRECV;
}

static void copy_round(struct plan *out, const struct round *r)
{
    struct round *to = plan_add(out, r->stage, r->op, r->groups);

    to->first = r->first;
    to->last = r->last;
    to->factor = r->factor;
    to->epochs = 1;
    for (int g = 0; g < r->groups; g++) {
        size_t bytes = sizeof(int) * (size_t)r->group[g].size;
        to->group[g].size = r->group[g].size;
        to->group[g].members = mem_calloc((size_t)r->group[g].size, sizeof(int));
        memcpy(to->group[g].members, r->group[g].members, bytes);
    }
}

static char *beside(const char *points, const char *name)
{
    char *copy = mem_strdup(points), *dir = file_join(dirname(copy), "sweep");
    char *path = name ? file_join(dir, name) : mem_strdup(dir);

    free(dir);
    free(copy);
    return path;
}

static int save_plan(const struct plan *p, const char *points, struct err *err)
{
    char *dir = beside(points, NULL), *path = beside(points, "plan.tsv");
    int rc = file_mkdir(dir, err);

    if (rc == 0)
        rc = plan_save(p, path, err);
    free(path);
    free(dir);
    return rc;
}

/* One combination into its file. */
static int measure_one(const struct transport *tr, struct world *w, const struct topo *topo,
                       struct plan *plan, const struct measure_opts *m, const char *path,
                       struct err *err)
{
    struct points_log *log = NULL;
    int rc = 0;

    if (w->rank == 0)
        rc = points_open(&log, path, plan_crc(plan), topo, tr->name, err);
    rc = w->agree(w, rc, err);
    if (rc == 0)
        rc = measure_plan(w, tr, topo, plan, m, log, err);
    if (points_close(log, rc < 0 ? NULL : err) < 0)
        rc = -1;
    return w->agree(w, rc, err);
}

static int sweep_pair(const struct transport *tr, const struct nccl_opts *o, struct world *w,
                      const struct topo *topo, struct plan *plan, const struct measure_opts *m,
                      const char *points, struct err *err)
{
    char *name = mem_printf("%s-%s.tsv", o->algo, o->proto), *path = beside(points, name);

    if (w->rank == 0)
        log_info("sweep: %s with %s", o->algo, o->proto);
    nccl_conn_close_all();
    int rc = w->agree(w, nccl_opts_apply(o, w->rank, false, err), err);
    if (rc == 0)
        rc = measure_one(tr, w, topo, plan, m, path, err);
    free(path);
    free(name);
    return rc;
}

int nccl_sweep(const struct transport *tr, const struct probe_args *a, struct world *w,
               const struct topo *topo, const struct plan *plan, const char *points,
               struct err *err)
{
    struct nccl_opts one = a->nccl;
    struct measure_opts how = a->probe.measure;
    struct plan some = {NULL, 0};
    int rc;

    how.retest = false;
    for (int i = 0; i < plan->rounds; i++)
        if (has_algorithms(&plan->round[i]))
            copy_round(&some, &plan->round[i]);
    rc = w->agree(w, w->rank == 0 ? save_plan(&some, points, err) : 0, err);
    for (int k = 0; nccl_algo_name[k] && rc == 0; k++)
        for (int p = 0; nccl_proto_name[p] && rc == 0; p++) {
            one.algo = nccl_algo_name[k];
            one.proto = nccl_proto_name[p];
            rc = sweep_pair(tr, &one, w, topo, &some, &how, points, err);
        }
    nccl_conn_close_all();
    nccl_opts_apply(&a->nccl, w->rank, false, NULL);
    plan_free(&some);
    return rc;
}
