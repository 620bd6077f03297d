/* models.c - railgauge models: the architectures that predict knows, and what one is made of. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cmd/command.h"
#include "emit/text/model_text.h"
#include "emit/text/table.h"

enum { SEQ_MAX = 1 << 24 };

struct args {
    const char *name;
    int seq;
    bool json;
};

static const struct opt options[] = {
    {"seq", 0, "TOKENS", "length of a sequence (default: 8192)",
     OPT_INT(struct args, seq, 1, SEQ_MAX)},
    {"json", 0, NULL, "print JSON", OPT_INTO(struct args, json)},
    {0},
};

static const struct opt words[] = {{"model", OPT_INTO(struct args, name)}, {0}};

static const struct command command = {
    .options = options,
    .words = words,
    .usage = "[NAME]",
    .doc = "List the models that railgauge predict knows, or say what one is made of."
           "\vNAME is a shipped model, or a file with a \"/\" or \".json\" in its name.  FLOPs are "
           "those of training, forward and backward, per token, with a causal mask.\n\n"
           "  railgauge models\n"
           "  railgauge models deepseek-v3 --seq 4096\n"
           "  railgauge models ./mine.json --json\n\n" EXIT_CODES("", ""),
};

static json_t *json_parts(const struct model *m, int seq)
{
    struct model_part part[MODEL_PARTS];
    json_t *out = json_array();

    model_parts(part, m, seq);
    for (int i = 0; i < MODEL_PARTS; i++)
        json_array_append_new(out, json_pack("{s:s, s:f, s:f, s:f}", "part", part[i].name, "params",
                                             part[i].total, "active_params", part[i].active,
                                             "flops_per_token", part[i].flops));
    return out;
}

static json_t *json_model(const struct model *m, int seq, bool detail)
{
    struct params p;
    struct flops f, full, mtp;

    model_params(m, &p);
    model_flops(m, seq, true, &f);
    model_flops(m, seq, false, &full);
    mtp_flops(m, seq, true, &mtp);
    json_t *out = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:f}", "name", m->name,
        "title", m->title, "source", m->source, "layers", m->layers, "hidden", m->hidden, "vocab",
        m->vocab, "params", p.total, "active_params", p.active, "expert_params", p.expert, "seq",
        seq, "flops_per_token", flops_total(&f), "flops_per_token_not_causal", flops_total(&full),
        "mtp_params", mtp_params(m), "mtp_flops_per_token", flops_total(&mtp));
    if (detail)
        json_object_set_new(out, "parts", json_parts(m, seq));
    return out;
}

static void list_row(struct table *t, const struct model *m, int seq)
{
    char layers[24], total[MODEL_TEXT], active[MODEL_TEXT], flops[MODEL_TEXT];
    struct params p;
    struct flops f;

    model_params(m, &p);
    model_flops(m, seq, true, &f);
    snprintf(layers, sizeof(layers), "%d", m->layers);
    table_row(t, m->name, layers, model_count_text(total, p.total),
              model_count_text(active, p.active), model_flops_text(flops, flops_total(&f)),
              m->title);
}

static int list(const struct args *a, struct err *err)
{
    char **name;
    int n = model_names(&name), rc = n ? 0 : err_noinput(err, "no models are installed");
    json_t *out = json_array();
    struct table t;

    table_init(&t, "lrrrrl");
    table_row(&t, "name", "layers", "params", "active", "GFLOP/token", "title");
    for (int i = 0; i < n; i++) {
        struct model m = {0};
        if (rc == 0)
            rc = model_load(&m, name[i], err);
        if (rc == 0) {
            json_array_append_new(out, json_model(&m, a->seq, false));
            list_row(&t, &m, a->seq);
        }
        model_free(&m);
        free(name[i]);
    }
    free(name);
    if (rc == 0 && a->json)
        json_print(stdout, out);
    if (rc == 0 && !a->json) {
        table_print(stdout, &t, 0);
        printf("\nsequences of %d tokens, causal mask; railgauge models NAME says more\n", a->seq);
    }
    table_free(&t);
    json_decref(out);
    return rc;
}

static int one(const struct args *a, struct err *err)
{
    struct model m;
    int rc = model_load(&m, a->name, err);
    json_t *json = rc == 0 && a->json ? json_model(&m, a->seq, true) : NULL;

    if (json)
        json_print(stdout, json);
    else if (rc == 0)
        model_text(stdout, &m, a->seq);
    json_decref(json);
    model_free(&m);
    return rc;
}

int cmd_models(int argc, char **argv)
{
    struct args a = {.seq = 8192};
    struct err err = {0};

    command_parse(&command, argc, argv, &a);
    return (a.name ? one(&a, &err) : list(&a, &err)) < 0 ? cmd_fail("models", &err) : EXIT_GOOD;
}
