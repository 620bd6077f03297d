/* SPDX-License-Identifier: BSD-3-Clause */
/* models.c - railgauge models: the architectures known to predict, and their parts. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "step/predict.h"

enum { SEQ_MAX = 1 << 24 };

struct args {
    const char *name;
    int seq;
    bool json;
};

static const struct opt options[] = {
    {"seq", 0, "TOKENS", "tokens per sequence (default 8192)",
     OPT_INT(struct args, seq, 1, SEQ_MAX)},
    INPUT_JSON(struct args, json),
    {0},
};

static const struct opt words[] = {{"model", OPT_INTO(struct args, name), .values = model_each},
                                   {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "[NAME]",
    .doc = "List the models that railgauge predict knows, or describe one.\vNAME is a "
           "model of this list, or a file with \"/\" or \".json\" in its name. FLOPs are "
           "those of training per token, forward and backward, with a causal mask.",
    .examples =
        (const struct opt_example[]){OPT_EXAMPLE("List all models", "railgauge models"),
                                     OPT_EXAMPLE("Describe one model at another sequence length",
                                                 "railgauge models deepseek-v3 --seq 4096"),
                                     OPT_ELSEWHERE("Describe a model of your own, as JSON",
                                                   "railgauge models ./mine.json --json"),
                                     {0}},
    .exits = EXIT_CODES("", ""),
};

/* --- parts of a model --- */

/* Parameters in total, parameters used per token, and FLOPs per token (training, causal).  Parts
 * are those of weights, then norms, embedding, head and the attention core; their sum is the model
 * without mtp. */
struct model_part {
    const char *name;
    double total, active, flops;
};
enum { MODEL_PARTS = WEIGHT_COUNT + 4 };

enum { MODEL_TEXT = 96 };

enum { NORMS = WEIGHT_COUNT, EMBEDDING, HEAD, CORE };

static void sum_layer(struct model_part part[MODEL_PARTS], const struct layer *l, int seq)
{
    const struct weight *w = l->weight;
    double rest = l->sums.total;

    for (int i = 0; i < l->weights; i++) {
        struct model_part *p = &part[w[i].part];
        double matrix = w[i].in * w[i].out, one = matrix + (w[i].bias ? w[i].out : 0);
        p->total += l->count * w[i].copies * one;
        p->active += l->count * w[i].active * one;
        p->flops += l->count * 6 * w[i].active * matrix;
        rest -= w[i].copies * one;
    }
    part[NORMS].total += l->count * rest;
    part[CORE].flops += l->count * layer_core_flops(l, seq, true);
}

static void model_parts(struct model_part part[MODEL_PARTS], const struct model *m, int seq)
{
    static const char *const name[] = {"norms, vectors", "embedding", "head", "core"};
    struct params p;
    struct flops f;

    memset(part, 0, MODEL_PARTS * sizeof(*part));
    for (int i = 0; i < MODEL_PARTS; i++)
        part[i].name = i < WEIGHT_COUNT ? weight_part_name[i] : name[i - WEIGHT_COUNT];
    for (int i = 0; i < m->kinds; i++)
        sum_layer(part, &m->layer[i], seq);
    model_params(m, &p);
    model_flops(m, seq, true, &f);
    part[NORMS].total += m->hidden; /* the last norm */
    part[NORMS].active = part[NORMS].total;
    part[HEAD].total = part[HEAD].active = m->tied ? 0 : p.head;
    part[HEAD].flops = f.head;
    part[EMBEDDING].total = part[EMBEDDING].active = p.embedding - part[HEAD].total;
}

/* "70.55 B" */
static char *count_text(char buf[UNITS_TEXT], double x)
{
    static const struct {
        double unit;
        const char *name;
    } scale[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
    size_t i = 0;

    while (i < 3 && x < 0.9995 * scale[i].unit)
        i++;
    double y = x / scale[i].unit;
    snprintf(buf, UNITS_TEXT, x > 0 ? "%.*f %s" : "-", y < 10 ? 2 : 1, y, scale[i].name);
    return buf;
}

/* in units of 1e9: "51.47", "-" */
static char *flops_text(char buf[UNITS_TEXT], double flops)
{
    double g = flops / 1e9;

    snprintf(buf, UNITS_TEXT, flops > 0 ? "%.*f" : "-", g < 100 ? 2 : 1, g);
    return buf;
}

static void attention_text(char buf[MODEL_TEXT], const struct attention *a)
{
    char window[24] = "", more[32] = "";

    if (a->window)
        snprintf(window, sizeof(window), ", window %d", a->window);
    switch (a->kind) {
    case MIXER_GQA:
        snprintf(buf, MODEL_TEXT, "gqa %d/%d x %d%s", a->heads, a->kv_heads, a->head_dim, window);
        break;
    case MIXER_MLA:
        snprintf(buf, MODEL_TEXT, "mla %d x (%d+%d, %d) by %d, %d%s", a->heads, a->nope_dim,
                 a->rope_dim, a->v_dim, a->q_rank, a->kv_rank, window);
        break;
    case MIXER_CSA:
        if (a->index_topk)
            snprintf(more, sizeof(more), " + %d x 1 of %d", a->index_topk, a->ratio);
        else if (a->ratio)
            snprintf(more, sizeof(more), " + 1 of %d", a->ratio);
        snprintf(buf, MODEL_TEXT, "csa %d/1 x %d by %d%s%s", a->heads, a->head_dim, a->q_rank,
                 window, more);
        break;
    case MIXER_MAMBA2:
        snprintf(buf, MODEL_TEXT, "mamba2 %d x %d, state %d", a->heads, a->head_dim, a->state);
        break;
    default:
        snprintf(buf, MODEL_TEXT, "-");
    }
}

static void mlp_text(char buf[2 * MODEL_TEXT], const struct mlp *p)
{
    char shared[32] = "", latent[32] = "", nodes[48] = "";

    if (p->shared_ffn)
        snprintf(shared, sizeof(shared), " + shared %d", p->shared_ffn);
    if (p->latent)
        snprintf(latent, sizeof(latent), " on latent %d", p->latent);
    if (p->groups)
        snprintf(nodes, sizeof(nodes), ", %d of %d groups", p->nodes_max, p->groups);
    if (p->kind == MLP_NONE)
        snprintf(buf, 2 * MODEL_TEXT, "-");
    else if (!p->experts)
        snprintf(buf, 2 * MODEL_TEXT, "%s %d", mlp_name[p->kind], p->ffn);
    else
        snprintf(buf, 2 * MODEL_TEXT, "%s %d x %d of %d experts%s%s%s", mlp_name[p->kind], p->ffn,
                 p->topk, p->experts, latent, nodes, shared);
}

static void layer_row(struct table *t, const char *mark, const struct layer *l)
{
    char count[24], mixer[MODEL_TEXT], mlp[2 * MODEL_TEXT];

    snprintf(count, sizeof(count), "%s%d", mark, l->count);
    attention_text(mixer, &l->attention);
    mlp_text(mlp, &l->mlp);
    table_add(t, count, mixer, mlp);
}

static void print_layers(FILE *out, const struct model *m)
{
    static const struct table_column columns[] = {
        {NULL, "layers", "figure"}, {NULL, "mixer", "text"}, {NULL, "mlp", "text"}, {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < m->kinds; i++)
        layer_row(&t, "", &m->layer[i]);
    if (m->mtp.count)
        layer_row(&t, "+", &m->mtp);
    table_print(out, &t, 2);
    table_free(&t);
}

static void add_part(struct table *t, const struct model_part *p)
{
    char total[UNITS_TEXT], active[UNITS_TEXT], flops[UNITS_TEXT];

    table_add(t, p->name, p->total, p->active, p->flops, count_text(total, p->total),
              count_text(active, p->active), flops_text(flops, p->flops));
}

/* One row per part; people: only parts that the model has, and their sum. */
static void parts_table(struct table *t, const struct model *m, int seq, bool people)
{
    static const struct table_column columns[] = {
        {"part", "part", "text"},         {"params", NULL, "exact"},
        {"active_params", NULL, "exact"}, {"flops_per_token", NULL, "exact"},
        {NULL, "params", "figure"},       {NULL, "active", "figure"},
        {NULL, "GFLOP/token", "figure"},  {0}};
    struct model_part part[MODEL_PARTS], sum = {.name = "all"};

    model_parts(part, m, seq);
    table_open(t, columns);
    for (const struct model_part *p = part; p < part + MODEL_PARTS; p++) {
        sum.total += p->total;
        sum.active += p->active;
        sum.flops += p->flops;
        if (!people || p->total > 0 || p->flops > 0)
            add_part(t, p);
    }
    if (people)
        add_part(t, &sum);
}

static void model_text(FILE *out, const struct model *m, int seq)
{
    struct flops full, mtp;
    char a[UNITS_TEXT], b[UNITS_TEXT];
    struct table parts;

    table_wrap(out, 2, "%s (%s): hidden %d, vocabulary %d%s", m->title, m->name, m->hidden,
               m->vocab, m->tied ? ", embedding and head are one" : "");
    table_wrap(out, 2, "from %s", m->source);
    fputc('\n', out);
    print_layers(out, m);
    fputc('\n', out);
    parts_table(&parts, m, seq, true);
    table_print(out, &parts, 2);
    table_free(&parts);
    model_flops(m, seq, false, &full);
    fprintf(out, "\nsequences of %d tokens, causal mask; without it %s GFLOP/token\n", seq,
            flops_text(a, flops_total(&full)));
    mtp_flops(m, seq, true, &mtp);
    if (m->mtp.count)
        table_wrap(
            out, 2,
            "+%d: trained beside to predict more tokens%s, %s parameters and %s GFLOP/token not "
            "counted above",
            m->mtp.count, m->mtp_shared && m->mtp.count > 1 ? " with the same weights" : "",
            count_text(a, mtp_params(m)), flops_text(b, flops_total(&mtp)));
}

/* --- the commands --- */

static const struct table_column model_columns[] = {{"name", "name", "text"},
                                                    {"title", NULL, "text"},
                                                    {"source", NULL, "text"},
                                                    {"layers", "layers", "count"},
                                                    {"hidden", NULL, "count"},
                                                    {"vocab", NULL, "count"},
                                                    {"params", NULL, "exact"},
                                                    {"active_params", NULL, "exact"},
                                                    {"expert_params", NULL, "exact"},
                                                    {"seq", NULL, "count"},
                                                    {"flops_per_token", NULL, "exact"},
                                                    {"flops_per_token_not_causal", NULL, "exact"},
                                                    {"mtp_params", NULL, "exact"},
                                                    {"mtp_flops_per_token", NULL, "exact"},
                                                    {NULL, "params", "figure"},
                                                    {NULL, "active", "figure"},
                                                    {NULL, "GFLOP/token", "figure"},
                                                    {NULL, "title", "text"},
                                                    {0}};

static void add_model(struct table *t, const struct model *m, int seq)
{
    char total[UNITS_TEXT], active[UNITS_TEXT], flops[UNITS_TEXT];
    struct params p;
    struct flops f, full, mtp;

    model_params(m, &p);
    model_flops(m, seq, true, &f);
    model_flops(m, seq, false, &full);
    mtp_flops(m, seq, true, &mtp);
    table_add(t, m->name, m->title, m->source, m->layers, m->hidden, m->vocab, p.total, p.active,
              p.expert, seq, flops_total(&f), flops_total(&full), mtp_params(m), flops_total(&mtp),
              count_text(total, p.total), count_text(active, p.active),
              flops_text(flops, flops_total(&f)), m->title);
}

static int list(const struct args *a, struct err *err)
{
    char **name;
    int n = model_names(&name), rc = n ? 0 : err_noinput(err, "no models are installed");
    struct table t;

    table_open(&t, model_columns);
    for (int i = 0; i < n; i++) {
        struct model m = {0};
        if (rc == 0)
            rc = model_load(&m, name[i], err);
        if (rc == 0)
            add_model(&t, &m, a->seq);
        model_free(&m);
        free(name[i]);
    }
    free(name);
    if (rc == 0 && !a->json) {
        table_print(stdout, &t, 0);
        printf("\nsequences of %d tokens, causal mask; railgauge models NAME says more\n", a->seq);
    }
    json_t *json = json_framed("railgauge-models", "models", table_rows(&t));
    return json_answer(json, NULL, rc == 0 && a->json, err) < 0 ? -1 : rc;
}

/* New reference. */
static json_t *model_json(const struct model *m, int seq)
{
    struct table one, parts;

    table_open(&one, model_columns);
    add_model(&one, m, seq);
    parts_table(&parts, m, seq, false);
    json_t *json = json_incref(json_array_get(one.rows, 0));
    table_free(&one);
    json_object_set_new(json, "parts", table_rows(&parts));
    return json;
}

static int one(const struct args *a, struct err *err)
{
    struct model m;
    int rc = model_load(&m, a->name, err);

    if (rc == 0 && a->json)
        rc = json_answer(json_framed("railgauge-models", NULL, model_json(&m, a->seq)), NULL, true,
                         err);
    else if (rc == 0)
        model_text(stdout, &m, a->seq);
    model_free(&m);
    return rc;
}

static int cmd_models(int argc, char **argv, struct err *err)
{
    struct args a = {.seq = 8192};

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    return a.name ? one(&a, err) : list(&a, err);
}

const struct command models_command = {&command, cmd_models};
