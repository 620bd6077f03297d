/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/case.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "step/score/case_value.h"

const char *const case_verdict_name[CASE_VERDICTS] = {"reproduced", "consistent", "cannot follow"};

const struct case_unit case_unit[] = {
    {"s", " s", 1, false, false},
    {"min", " min", 60, false, false},
    {"h", " h", 3600, false, false},
    {"%", " %", 0.01, true, false},
    {"x", "x", 1, false, false},
    {"GB", " GB", 1e9, false, false},
    {"GB/s", " GB/s", 1e9, false, false},
    {"tokens/s", " tokens/s", 1, false, false},
    {"TFLOP/s", " TFLOP/s", 1e12, false, false},
    {"fits", "", 1, false, true},
    {"", "", 1, false, false},
    {NULL, NULL, 0, false, false},
};

const struct case_unit *case_unit_find(const char *name)
{
    for (const struct case_unit *u = case_unit; u->name; u++)
        if (!strcmp(u->name, name))
            return u;
    return NULL;
}

int case_parse(struct casefile *c, const char *text, size_t len, const char *path,
               const struct job_opts *base, struct err *err)
{
    *c = (struct casefile){.path = mem_strdup(path)};
    if (json_parse(&c->root, text, len, path, "railgauge-case", 1, err) < 0)
        return -1;
    return case_read(c, base, err);
}

int case_names(char ***names)
{
    return file_data_names("jobs/training/cases", names);
}

int case_load(struct casefile *c, const char *name, const struct job_opts *base, struct err *err)
{
    size_t n = strlen(name);
    char *path = NULL;

    *c = (struct casefile){0};
    if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"))) {
        path = mem_strdup(name);
    } else {
        char *file = mem_printf("jobs/training/cases/%s.json", name);
        path = file_data(file);
        free(file);
    }
    if (!path)
        return err_usage(err,
                         "no case \"%s\" in jobs/training/cases; or give a file with a \"/\" "
                         "or \".json\" in its name",
                         name);
    int rc = json_open(&c->root, path, "railgauge-case", 1, err);
    c->path = path;
    return rc < 0 ? -1 : case_read(c, base, err);
}

void case_free(struct casefile *c)
{
    for (int i = 0; i < c->claims; i++)
        free(c->claim[i].reading);
    for (int i = 0; i < c->texts; i++)
        free(c->text[i]);
    free(c->text);
    free(c->claim);
    free(c->job);
    free(c->assumed);
    free(c->path);
    json_decref(c->root);
    *c = (struct casefile){0};
}
