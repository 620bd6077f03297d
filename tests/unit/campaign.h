/* campaign.h - a simulated campaign in this process, from the first draw to the matrix. */
#ifndef RG_TESTS_CAMPAIGN_H
#define RG_TESTS_CAMPAIGN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fit/fit.h"
#include "measure/measure.h"
#include "transport/sim/sim_bed.h"

/* Where points are written, in memory if that can be: each is synced to the disk.  NULL: not made.
 */
static char *campaign_dir(char dir[64])
{
    snprintf(dir, 64, "%s/rg-campaign-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(dir);
}

/* Setup and teardown of a group of tests: the folder, and the file of points in it. */
static char campaign_folder[64], campaign_points[96];
static inline int campaign_setup(void **state)
{
    (void)state;
    if (!campaign_dir(campaign_folder))
        return -1;
    snprintf(campaign_points, sizeof(campaign_points), "%s/points.tsv", campaign_folder);
    return 0;
}

static inline int campaign_teardown(void **state)
{
    (void)state;
    unlink(campaign_points);
    return rmdir(campaign_folder);
}

/* path: of the points while it lasts; the caller frees all three.  declare: makes what is told of the machine
 * unlike the truth; NULL: nothing is. */
static inline void campaign_told(struct matrix *m, struct plan *plan, struct points *points,
                                 const struct sim_opts *o, const struct plan_opts *p,
                                 const char *path, void (*declare)(struct topo *t, const void *of),
                                 const void *of)
{
    struct sim_bed bed;
    struct topo told, seen; /* seen: the matrix's in the end */
    struct measure_opts how;
    struct fit_opts fit;
    struct points_log *log = NULL;
    struct err err = {0, ""};

    how = MEASURE_DEFAULTS;
    how.check = false;
    fit_defaults(&fit);
    unlink(path);
    if (sim_bed_open(&bed, o, &err) < 0)
        fail_msg("%s", err.text);
    topo_copy(&told, &bed.seen);
    if (declare)
        declare(&told, of);
    if (plan_make(plan, &told, p, &err) < 0 ||
        points_open(&log, path, plan_crc(plan), &told, "sim", &err) < 0 ||
        measure_plan(&world_solo, transport_find("sim"), &told, plan, &how, log, &err) < 0)
        fail_msg("%s", err.text);
    topo_copy(&seen, &told);
    if (fit_matrix(m, &seen, plan, points_all(log), &fit, &err) < 0)
        fail_msg("%s", err.text);
    points_take(log, points);
    points_close(log, &err);
    topo_free(&told);
    sim_bed_free(&bed);
}

static inline void campaign_measure(struct matrix *m, struct plan *plan, struct points *points,
                                    const struct sim_opts *o, const struct plan_opts *p,
                                    const char *path)
{
    campaign_told(m, plan, points, o, p, path, NULL, NULL);
}

/* The same; only the matrix is left. */
static inline void campaign_of(struct matrix *m, const struct sim_opts *o,
                               const struct plan_opts *p, const char *path,
                               void (*declare)(struct topo *t, const void *of), const void *of)
{
    struct points points = {0};
    struct plan plan;

    campaign_told(m, &plan, &points, o, p, path, declare, of);
    points_free(&points);
    plan_free(&plan);
}

static inline void campaign(struct matrix *m, const struct sim_opts *o, const struct plan_opts *p,
                            const char *path)
{
    campaign_of(m, o, p, path, NULL, NULL);
}

#endif
