/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/products.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The side that is not `whole`, the vector between layers, is cut. */
void product_cut(const struct weight *w, double whole, double n, double *in, double *out)
{
    bool by_rows = w->out == whole && w->in != whole;

    *in = by_rows ? w->in / n : w->in;
    *out = by_rows ? w->out : w->out / n;
}

/* gate and up, and q, k and v, are one product with one input. */
bool product_shares_input(const struct weight *w, const struct layer *k)
{
    return !strcmp(w->name, "k") || !strcmp(w->name, "v") ||
           (!strcmp(w->name, "up") && k->mlp.kind == MLP_SWIGLU);
}

static int add_layer(struct product *out, int n, const struct model *model, const struct layer *k,
                     double tokens, double tp)
{
    struct weight w[LAYER_WEIGHTS];
    int weights = layer_weights(model, k, w), last = -1;

    for (int i = 0; i < weights; i++) {
        double in, wide;
        if (w[i].part == WEIGHT_EXPERTS || w[i].part == WEIGHT_ROUTER)
            continue;
        product_cut(&w[i], model->hidden, tp, &in, &wide);
        if (last >= 0 && product_shares_input(&w[i], k) && out[last].k == in) {
            out[last].n += wide;
            continue;
        }
        if (n == PRODUCTS_MAX)
            return n;
        last = n;
        out[n++] = (struct product){WORK_LINEAR, tokens, wide, in, k->count * w[i].active};
    }
    return n;
}

int products_of(struct product out[PRODUCTS_MAX], const struct model *model, double tokens,
                double tp)
{
    int n = 0;

    for (int i = 0; i < model->kinds; i++)
        n = add_layer(out, n, model, &model->layer[i], tokens, tp);
    if (n < PRODUCTS_MAX)
        out[n++] = (struct product){WORK_HEAD, tokens, model->vocab / tp, model->hidden, 1};
    return n;
}

void product_pass(const struct product *p, int pass, double *m, double *n, double *k)
{
    *m = pass == PASS_WEIGHTS ? p->n : p->m;
    *n = pass == PASS_FORWARD ? p->n : p->k;
    *k = pass == PASS_FORWARD ? p->k : pass == PASS_INPUT ? p->n : p->m;
}

static void add_shape(struct gemm_shape **list, int *count, enum gemm_dtype dtype,
                      const struct product *p, int pass)
{
    double m, n, k;

    product_pass(p, pass, &m, &n, &k);
    struct gemm_shape s = {dtype, (int)m, (int)n, (int)k};
    if (s.m != m || s.n != n || s.k != k || s.m < 1 || s.n < 1 || s.k < 1)
        return; /* tp does not divide it: no such product exists */
    for (int i = 0; i < *count; i++)
        if (!memcmp(&(*list)[i], &s, sizeof(s)))
            return;
    MEM_PUSH(*list, *count) = s;
}

static void add_model(struct gemm_shape **list, int *count, const struct model *model)
{
    static const double tokens[] = {8192, 2048};
    struct product *p = mem_calloc(PRODUCTS_MAX, sizeof(*p));

    for (int tp = 1; tp <= 8; tp *= 2)
        for (int t = 0; t < 2; t++) {
            int n = products_of(p, model, tokens[t], tp);
            for (int i = 0; i < n; i++)
                for (int pass = 0; pass < (t ? 1 : PASS_COUNT); pass++)
                    for (int d = 0; d < (p[i].part == WORK_HEAD ? 1 : GEMM_DTYPES); d++)
                        add_shape(list, count, (enum gemm_dtype)d, &p[i], pass);
        }
    free(p);
}

int products_shapes(struct gemm_shape **out, int *count, const char *models, struct err *err)
{
    char *copy = mem_strdup(models), *save = NULL;
    int rc = 0;

    *out = NULL;
    *count = 0;
    for (char *t = strtok_r(copy, ",", &save); t && rc == 0; t = strtok_r(NULL, ",", &save)) {
        struct model model = {0};
        rc = model_load(&model, t, err);
        if (rc == 0)
            add_model(out, count, &model);
        model_free(&model);
    }
    free(copy);
    if (rc == 0 && !*count)
        rc = err_usage(err, "no model in \"%s\"", models);
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
