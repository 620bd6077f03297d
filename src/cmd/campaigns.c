/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/campaigns_impl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "measure/plan.h"

struct opened_campaign {
    struct input in;
    struct plan plan;
};

/* --- start times --- */

static double time_of(json_t *provenance)
{
    const char *text = json_string_value(json_object_get(provenance, "time_utc"));
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;

    return end && !*end ? (double)timegm(&tm) : 0;
}

/* The second line of the points is the provenance of their first writer; a matrix may have been
 * fitted later. */
static double begun(const char *dir, const struct matrix *m)
{
    char *path = file_join(dir, "points.tsv"), *line = NULL;
    FILE *f = fopen(path, "re");
    json_t *told = NULL;
    size_t size = 0;

    free(path);
    for (int i = 0; i < 2; i++)
        if (!f || getline(&line, &size, f) < 0)
            i = 2;
        else if (i == 1 && line[0] == '#')
            told = json_loads(line + 1, 0, NULL);
    if (f)
        fclose(f);
    double when = time_of(told);
    json_decref(told);
    free(line);
    return when > 0 ? when : time_of(m->provenance);
}

/* --- opening --- */

static const struct input_ask points = {INPUT_MATRIX, INPUT_MATRIX | INPUT_POINTS, INPUT_TOPO},
                              any = {INPUT_MATRIX, INPUT_MATRIX, INPUT_TOPO | INPUT_POINTS};

/* A plan that differs from that of the points is not used. */
static bool has_plan(struct opened_campaign *o, const char *dir)
{
    char *path = file_join(dir, "plan.tsv");
    bool fits = access(path, R_OK) == 0 &&
                plan_load(&o->plan, path, o->in.p.endpoints, NULL) == 0 &&
                plan_crc(&o->plan) == o->in.p.plan_crc;

    free(path);
    return fits;
}

static int open_one(struct campaign *c, struct opened_campaign *o, const char *dir, bool measured,
                    struct err *err)
{
    bool preset = !measured && access(dir, F_OK) < 0 && fabric_shipped(dir);
    const struct input_args one = {.file = preset ? NULL : dir, .fabric = preset ? dir : NULL};

    input_init(&o->in);
    if (input_open(&o->in, &one, measured ? &points : &any, err) < 0)
        return -1;
    if (!o->in.dir && measured)
        return err_data(err, "%s is not a campaign's directory: points are compared", dir);
    bool told = o->in.has & INPUT_POINTS;
    *c = (struct campaign){.path = dir,
                           .begun = begun(dir, &o->in.m),
                           .matrix = &o->in.m,
                           .topo = &o->in.t,
                           .points = told ? &o->in.p : NULL,
                           .plan = told && has_plan(o, dir) ? &o->plan : NULL};
    return 0;
}

int campaigns_open(struct campaigns *c, const char *const *dir, int dirs, bool measured,
                   struct err *err)
{
    *c = (struct campaigns){.campaign = mem_calloc((size_t)dirs, sizeof(*c->campaign)),
                            .opened = mem_calloc((size_t)dirs, sizeof(*c->opened))};
    while (c->count < dirs) {
        int i = c->count++;
        if (open_one(&c->campaign[i], &c->opened[i], dir[i], measured, err) < 0)
            return -1;
    }
    return 0;
}

void campaigns_free(struct campaigns *c)
{
    for (int i = 0; i < c->count; i++) {
        plan_free(&c->opened[i].plan);
        input_free(&c->opened[i].in);
    }
    free(c->opened);
    free(c->campaign);
    *c = (struct campaigns){0};
}
