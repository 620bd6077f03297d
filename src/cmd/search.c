/* search.c - railgauge search: the best layouts of a model on so many GPUs. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/search_args.h"
#include "cmd/search_text.h"
#include "step/anchor.h"

static int write_tsv(const struct search *s, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    search_tsv(f.stream, s);
    int rc = file_commit(&f, err);
    file_abort(&f);
    return rc;
}

static int answer(const struct search *s, const struct job *j, const struct search_args *a,
                  struct err *err)
{
    char *command = search_command(a, &s->best[0].candidate);
    json_t *json = search_json(s, j->model.name, command);
    bool tsv = a->tsv && !strcmp(a->tsv, "-");
    int rc = 0;

    if (a->output)
        rc = json_save(json, a->output, err);
    if (rc == 0 && a->tsv && !tsv)
        rc = write_tsv(s, a->tsv, err);
    if (rc == 0 && tsv)
        search_tsv(stdout, s);
    else if (rc == 0 && a->json) {
        json_print(stdout, json);
    } else if (rc == 0) {
        search_text(stdout, s, j, command);
    }
    json_decref(json);
    free(command);
    return rc;
}

static int find(struct search *s, const struct job *j, const struct search_args *a, int ranks,
                struct err *err)
{
    struct question q = job_question(j, &a->job);
    q.release = a->release;
    struct anchor anchor = {0};
    struct space space;

    if (a->anchor) {
        int rc = anchor_open(&anchor, a->anchor, q.constants, err) < 0 ||
                 anchor_apply(&anchor, &q, a->release, err) < 0;
        anchor_free(&anchor);
        if (rc)
            return -1;
    }
    space_init(&space, ranks, (enum mesh_order)a->job.mesh, &a->job.recipe);
    for (int i = 0; i < a->constraints; i++)
        if (space_constrain(&space, a->constraint[i], err) < 0)
            return -1;
    return search_run(s, &q, &space, a->top, 0, err);
}

int cmd_search(int argc, char **argv)
{
    struct search_args a;
    struct search s = {0};
    struct job j;
    struct err err = {0, ""};
    int ranks;

    search_args(&a, argc, argv);
    int rc = job_open_ranks(&j, &a.job, &ranks, &err) < 0 || find(&s, &j, &a, ranks, &err) < 0 ||
             answer(&s, &j, &a, &err) < 0;
    search_free(&s);
    job_free(&j);
    free(a.constraint);
    return rc ? cmd_fail("search", &err) : EXIT_GOOD;
}
