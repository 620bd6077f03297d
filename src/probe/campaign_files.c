/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/campaign_files.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "probe/taint.h"
#include "probe/watch/watch.h"

int campaign_files_plan(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        struct err *err)
{
    int rc = 0;

    if (w->rank == 0)
        rc = a->plan ? plan_load(&f->plan, a->plan, f->topo.endpoints, err)
                     : plan_make(&f->plan, &f->topo, &a->probe.plan, err);
    rc = w->agree(w, rc, err);
    if (rc == 0)
        rc = plan_share(&f->plan, "the plan of rank 0", w, f->topo.endpoints, err);
    return w->agree(w, rc, err);
}

int campaign_files_save_topology(const struct campaign_files *f, struct err *err)
{
    char *path = file_beside(f->output, "topology.json");
    int rc = topo_save(&f->topo, path, err);

    free(path);
    return rc;
}

static int save_inputs(const struct campaign_files *f, const struct probe_args *a, struct err *err)
{
    char *plan = file_beside(f->output, "plan.tsv");
    int rc = a->topology ? 0 : campaign_files_save_topology(f, err);

    if (rc == 0 && !a->plan)
        rc = plan_save(&f->plan, plan, err);
    free(plan);
    return rc;
}

/* The log comes first: it refuses another plan's points before that plan's file is replaced. */
int campaign_files_open(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        const char *transport, struct err *err)
{
    int rc = 0;

    f->output = a->output ? a->output : "points.tsv";
    if (w->rank == 0)
        rc = points_open(&f->log, f->output, plan_crc(&f->plan), &f->topo, transport, err);
    if (rc == 0 && w->rank == 0)
        rc = save_inputs(f, a, err);
    return w->agree(w, rc, err);
}

static void stop(int sig)
{
    (void)sig;
    measure_stop = 1;
    watch_stopping();
}

void campaign_files_catch_signals(void)
{
    struct sigaction act = {.sa_handler = stop, .sa_flags = SA_RESTART};
    struct signals before;

    signals_catch(&before, stop);
    sigaction(SIGUSR1, &act, NULL); /* what schedulers send before the end */
}

char *campaign_files_trouble(const struct points *all)
{
    int wrong = 0, failed = 0, tainted = 0;
    const char *first = NULL, *taint = NULL;

    for (int i = 0; i < all->count; i++) {
        const struct point *p = &all->point[i];
        bool bad = p->wrong || p->stop == STOP_FAILED;
        wrong += p->wrong;
        failed += p->stop == STOP_FAILED;
        tainted += taint_is(p);
        first = !first && bad ? p->note : first;
        taint = !taint && taint_is(p) ? p->note : taint;
    }
    char *text = first ? mem_printf("data were wrong in %d of %d points and %d failed; first: %s",
                                    wrong, all->count, failed, first)
                       : NULL;
    if (taint)
        text = mem_append(text, "%s%d of %d points are tainted; first: %s", first ? "; " : "",
                          tainted, all->count, taint);
    return text;
}

bool campaign_files_failed(const struct points *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->point[i].wrong || all->point[i].stop == STOP_FAILED)
            return true;
    return false;
}

int campaign_files_close(struct campaign_files *f, int rc, struct err *err)
{
    char *trouble = f->log ? campaign_files_trouble(points_all(f->log)) : NULL;
    bool failed = trouble && campaign_files_failed(points_all(f->log));

    if (points_close(f->log, rc < 0 ? NULL : err) < 0)
        rc = -1;
    f->log = NULL;
    if (trouble && (rc < 0 || !failed))
        log_warn("%s: %s", f->output, trouble);
    else if (trouble)
        rc = err_set(err, "%s: %s", f->output, trouble);
    free(trouble);
    return rc;
}
