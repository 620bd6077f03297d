/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_json.c - one collective of a campaign as the file of nccl-tests -J, for its readers:
 * analyze_perf_json.py of nccl-tests, CI, railgauge import.  --name selects the collective. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "export/export_impl.h"
#include "measure/plan.h"
#include "report/text/nccl_tests.h"

static const char *option(const json_t *options, const char *name)
{
    return json_string_value(json_array_get(json_object_get(options, name), 0));
}

/* Types and buffers from the campaign's options; defaults if there is no such file. */
static int read_options(struct nccl_tests_how *how, struct nccl_opts *o, const char *dir,
                        struct err *err)
{
    char *path = file_join(dir, "campaign.json");
    json_t *root = NULL;
    int rc = access(path, R_OK) ? 0 : json_open(&root, path, "railgauge-campaign", 1, err);
    const json_t *options = json_object_get(root, "options");
    const char *type = option(options, "datatype"), *redop = option(options, "redop"),
               *warmup = option(options, "warmup_iters");

    o->in_place = json_object_get(options, "in-place") != NULL;
    o->dtype_given = type && nccl_dtype_find(type) >= 0;
    if (o->dtype_given)
        o->dtype = nccl_dtype_find(type);
    if (redop && nccl_redop_find(redop) >= 0)
        o->redop = nccl_redop_find(redop);
    if (!warmup || units_int(&how->warmup, warmup, 0, 1 << 30, NULL) < 0)
        how->warmup = -1;
    json_decref(root);
    free(path);
    return rc;
}

/* "2026-11-22 16:01:00" for "2026-11-22T16:01:00Z"; NULL: not known. */
static const char *time_of(const struct matrix *m, char buf[24])
{
    const char *text = json_string_value(json_object_get(m->provenance, "time_utc"));

    if (!text || strlen(text) != strlen("2026-11-22T16:01:00Z"))
        return NULL;
    snprintf(buf, 24, "%.10s %.8s", text, text + 11);
    return buf;
}

static int read_plan(struct plan *plan, const struct export_run *e, struct err *err)
{
    char *path = file_join(e->ask->campaign, "plan.tsv");
    int rc = access(path, R_OK) ? 0 : plan_load(plan, path, e->points->endpoints, err);

    free(path);
    return rc;
}

int nccl_json_write(const struct export_run *e, struct err *err)
{
    struct near near = {.word = e->ask->name};
    struct nccl_opts opts = NCCL_OPTS_DEFAULTS;
    struct nccl_tests_how how = {.nccl = &opts};
    struct plan plan = {NULL, 0};
    char when[24];
    int op = e->ask->name ? op_find(e->ask->name) : -1, rc = 0;

    if (e->ask->name && (op < 0 || op_is_pair((enum op)op))) {
        op_each(near_try, &near);
        return err_usage(err, "--name: no collective \"%s\"%s", e->ask->name, near_text(&near));
    }
    if (read_options(&how, &opts, e->ask->campaign, err) < 0 || read_plan(&plan, e, err) < 0)
        return -1;
    json_t *root = nccl_tests_json(e->points, &plan, e->topo, &how, op, time_of(e->m, when), err);
    if (!root || json_print(e->out, root) < 0)
        rc = -1;
    json_decref(root);
    plan_free(&plan);
    return rc;
}
