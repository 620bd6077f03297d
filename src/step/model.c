/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "step/model_read.h"

static int read_model(struct model *m, json_t *root, const char *path, struct err *err)
{
    const char *format, *name, *title, *source;
    json_t *layers, *hidden, *vocab, *positions = NULL, *mtp = NULL;
    int version, tied;

    if (json_take(root, path, err, "{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:b, s?o, s?o, s:o}",
                  "format", &format, "version", &version, "name", &name, "title", &title, "source",
                  &source, "hidden", &hidden, "vocab", &vocab, "tied_embeddings", &tied,
                  "positions", &positions, "mtp", &mtp, "layers", &layers) < 0)
        return -1;
    m->name = mem_strdup(name);
    m->title = mem_strdup(title);
    m->source = mem_strdup(source);
    m->tied = tied;
    if (model_read_int(root, path, "hidden", 1, MODEL_DIM_MAX, false, &m->hidden, err) < 0 ||
        model_read_int(root, path, "vocab", 1, MODEL_DIM_MAX, false, &m->vocab, err) < 0 ||
        model_read_int(root, path, "positions", 1, MODEL_DIM_MAX, true, &m->positions, err) < 0 ||
        model_read_layers(m, layers, path, err) < 0)
        return -1;
    return model_read_mtp(m, mtp, path, err);
}

int model_names(char ***names)
{
    return file_data_names("jobs/training/models", names);
}

static char *model_path(const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json")))
        return mem_strdup(name);
    char *file = mem_printf("jobs/training/models/%s.json", name);
    char *path = file_data(file);
    free(file);
    if (!path)
        err_usage(
            err,
            "no model \"%s\"; \"railgauge models\" lists the shipped ones; or give a file with "
            "a \"/\" or \".json\" in its name",
            name);
    return path;
}

int model_load(struct model *m, const char *name, struct err *err)
{
    json_t *root = NULL;
    char *path;

    memset(m, 0, sizeof(*m));
    path = model_path(name, err);
    if (!path)
        return -1;
    int rc = json_open(&root, path, "railgauge-model", 1, err);
    if (rc == 0)
        rc = read_model(m, root, path, err);
    for (int i = 0; rc == 0 && i < m->kinds; i++)
        layer_sum(&m->layer[i].sums, m, &m->layer[i]);
    if (rc == 0 && m->mtp.count)
        layer_sum(&m->mtp.sums, m, &m->mtp);
    json_decref(root);
    free(path);
    return rc;
}

void model_free(struct model *m)
{
    free(m->name);
    free(m->title);
    free(m->source);
    free(m->layer);
    memset(m, 0, sizeof(*m));
}
