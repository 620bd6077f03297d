/* SPDX-License-Identifier: BSD-3-Clause */
/* models.c - railgauge models: the architectures that predict knows, and what one is made of. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cmd/command.h"
#include "step/model.h"

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

static const struct opt_line command = {
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

/* --- what one model is made of --- */

/* Parameters that exist, that a token meets, and FLOPs per token (training, causal).  The parts are
 * those of weights, then norms, embedding, head and the attention core; they add up to the model
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

/* room for any text made below */
static char *model_count_text(char buf[MODEL_TEXT], double x)
{
    static const struct {
        double unit;
        const char *name;
    } scale[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
    size_t i = 0;

    while (i < 3 && x < 0.9995 * scale[i].unit)
        i++;
    double y = x / scale[i].unit;
    snprintf(buf, MODEL_TEXT, x > 0 ? "%.*f %s" : "-", y < 10 ? 2 : 1, y, scale[i].name);
    return buf;
}

/* in units of 1e9: "51.47", "-" */
static char *model_flops_text(char buf[MODEL_TEXT], double flops)
{
    double g = flops / 1e9;

    snprintf(buf, MODEL_TEXT, flops > 0 ? "%.*f" : "-", g < 100 ? 2 : 1, g);
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
    table_row(t, count, mixer, mlp);
}

static void text_layers(FILE *out, const struct model *m)
{
    struct table t;

    table_init(&t, "rll");
    table_row(&t, "layers", "mixer", "mlp");
    for (int i = 0; i < m->kinds; i++)
        layer_row(&t, "", &m->layer[i]);
    if (m->mtp.count)
        layer_row(&t, "+", &m->mtp);
    table_print(out, &t, 2);
    table_free(&t);
}

static void part_row(struct table *t, const struct model_part *p)
{
    char total[MODEL_TEXT], active[MODEL_TEXT], flops[MODEL_TEXT];

    table_row(t, p->name, model_count_text(total, p->total), model_count_text(active, p->active),
              model_flops_text(flops, p->flops));
}

static void text_parts(FILE *out, const struct model *m, int seq)
{
    struct model_part part[MODEL_PARTS], sum = {.name = "all"};
    struct table t;

    model_parts(part, m, seq);
    table_init(&t, "lrrr");
    table_row(&t, "part", "params", "active", "GFLOP/token");
    for (int i = 0; i < MODEL_PARTS; i++) {
        sum.total += part[i].total;
        sum.active += part[i].active;
        sum.flops += part[i].flops;
        if (part[i].total > 0 || part[i].flops > 0)
            part_row(&t, &part[i]);
    }
    part_row(&t, &sum);
    table_print(out, &t, 2);
    table_free(&t);
}

static void model_text(FILE *out, const struct model *m, int seq)
{
    struct flops full, mtp;
    char a[MODEL_TEXT], b[MODEL_TEXT];

    fprintf(out, "%s (%s): hidden %d, vocabulary %d%s\nfrom %s\n\n", m->title, m->name, m->hidden,
            m->vocab, m->tied ? ", embedding and head are one" : "", m->source);
    text_layers(out, m);
    fputc('\n', out);
    text_parts(out, m, seq);
    model_flops(m, seq, false, &full);
    fprintf(out, "\nsequences of %d tokens, causal mask; without it %s GFLOP/token\n", seq,
            model_flops_text(a, flops_total(&full)));
    mtp_flops(m, seq, true, &mtp);
    if (m->mtp.count)
        fprintf(
            out,
            "+%d: trained beside to predict more tokens%s, %s parameters and %s GFLOP/token not "
            "counted above\n",
            m->mtp.count, m->mtp_shared && m->mtp.count > 1 ? " with the same weights" : "",
            model_count_text(a, mtp_params(m)), model_flops_text(b, flops_total(&mtp)));
}

/* --- the commands --- */

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

int cmd_models(int argc, char **argv, struct err *err)
{
    struct args a = {.seq = 8192};

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    return a.name ? one(&a, err) : list(&a, err);
}
