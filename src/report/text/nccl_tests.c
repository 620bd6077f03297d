/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/nccl_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/transports/transport.h"

/* nccl-tests' names of NCCL's types. */
static const char *const type_name[NCCL_DTYPES] = {
    [NCCL_INT8] = "int8",         [NCCL_UINT8] = "uint8",       [NCCL_INT32] = "int32",
    [NCCL_UINT32] = "uint32",     [NCCL_INT64] = "int64",       [NCCL_UINT64] = "uint64",
    [NCCL_FLOAT16] = "half",      [NCCL_FLOAT32] = "float",     [NCCL_FLOAT64] = "double",
    [NCCL_BFLOAT16] = "bfloat16", [NCCL_FLOAT8E4M3] = "f8e4m3", [NCCL_FLOAT8E5M2] = "f8e5m2",
};

/* Print as many decimals, at most two, as fit the width. */
static void print_number(FILE *out, double v, int width)
{
    char text[64];

    for (int decimals = 2; decimals >= 0; decimals--)
        if (snprintf(text, sizeof(text), "%*.*f", width, decimals, v) <= width) {
            fprintf(out, "  %s", text);
            return;
        }
    fprintf(out, "  %*.1e", width, v);
}

static void print_half(FILE *out, const struct epochs_point *s)
{
    const struct point *p = s->first;
    double rate = s->bytes / s->sec / 1e9;

    print_number(out, s->sec * 1e6, 7);
    print_number(out, rate, 6);
    print_number(out, rate * op_bus_factor(p->op, p->ranks), 6);
    if (s->checked)
        fprintf(out, "  %6d", s->wrong);
    else
        fprintf(out, "  %6s", "N/A");
}

static int type_of(const struct epochs_point *s, const struct nccl_opts *o)
{
    size_t count = s->bytes / (size_t)op_blocks(s->first->op, s->first->ranks);

    if (s->first->dtype && count % nccl_dtype_size(s->first->dtype - 1) == 0)
        return s->first->dtype - 1;
    return o && o->dtype_given ? o->dtype : count % 4 ? NCCL_UINT8 : NCCL_UINT32;
}

static const char *redop_of(const struct point *p, const struct nccl_opts *o)
{
    return !op_adds(p->op) ? "none"
           : p->redop      ? nccl_redop_name[p->redop - 1]
           : o             ? nccl_redop_name[o->redop]
                           : "sum";
}

static void print_row(FILE *out, const struct epochs_point *s, const struct nccl_tests_how *how)
{
    const struct point *p = s->first;
    const struct nccl_opts *o = how->nccl;
    size_t count = s->bytes / (size_t)op_blocks(p->op, p->ranks);
    int type = type_of(s, o);

    if (isnan(s->sec)) {
        fprintf(out, "# %zu bytes: not measured%s%s\n", s->bytes, p->note ? ": " : "",
                point_words(p));
        return;
    }
    fprintf(out, "%12zu  %12zu  %8s  %6s  %6d", s->bytes, count / nccl_dtype_size(type),
            type_name[type], redop_of(p, o), op_is_rooted(p->op) ? 0 : -1);
    for (int half = 0; half < 2; half++)
        if (half == (o && o->in_place))
            print_half(out, s);
        else
            fprintf(out, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    putc('\n', out);
}

static const struct plan_group *group_of(const struct plan *plan, const struct point *p)
{
    for (int i = 0; plan && i < plan->rounds; i++)
        if (plan->round[i].id == p->round && p->group < plan->round[i].groups)
            return &plan->round[i].group[p->group];
    return NULL;
}

static void print_devices(FILE *out, const struct point *p, const struct plan *plan,
                          const struct topo *topo)
{
    const struct plan_group *g = topo ? group_of(plan, p) : NULL;

    fputs("#\n# Using devices\n", out);
    if (!g)
        fprintf(out, "#  %d ranks: endpoints %d to %d\n", p->ranks, p->src, p->dst);
    for (int i = 0; g && i < g->size; i++) {
        if (g->members[i] < 0 || g->members[i] >= topo->endpoints)
            continue;
        const struct endpoint *e = &topo->endpoint[g->members[i]];
        fprintf(out, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%.*s] %s\n", i, p->group, 0,
                topo->host[e->place.at[LEVEL_HOST]].name, e->local,
                *e->busid ? (int)strcspn(e->busid, ".") : 3, *e->busid ? e->busid : "cpu",
                *e->model ? e->model : "unknown");
    }
    fputs("#\n", out);
}

static void print_header(FILE *out, const struct epochs_point *s, int n,
                         const struct nccl_tests_how *how)
{
    const struct point *p = s[0].first;
    size_t factor = n > 1 ? s[1].bytes / s[0].bytes : 1;

    fprintf(out, "# railgauge %s: measured medians in the layout of nccl-tests\n", RG_VERSION);
    fprintf(out, "# Collective test starting: %s\n", op_table[p->op].program);
    fprintf(out,
            "# nThread 1 nGpus 1 minBytes %zu maxBytes %zu step: %zu(factor) warmup iters: %d "
            "iters: %d agg iters: 1 validation: %d graph: %d\n",
            s[0].bytes, s[n - 1].bytes, factor, how->warmup, s[0].samples, s[0].checked > 0,
            how->nccl && how->nccl->graph);
}

static void print_columns(FILE *out)
{
    static const char *const name[2][13] = {{"size", "count", "type", "redop", "root", "time",
                                             "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
                                             "#wrong"},
                                            {"(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
                                             "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", ""}};
    static const int width[13] = {10, 12, 8, 6, 6, 7, 6, 6, 6, 7, 6, 6, 6};

    fprintf(out, "# %61sout-of-place%23sin-place%10s\n", "", "", "");
    for (int line = 0; line < 2; line++) {
        putc('#', out);
        for (int i = 0; i < 13; i++)
            fprintf(out, "%*s%*s", i ? 2 : 1, "", width[i], name[line][i]);
        putc('\n', out);
    }
}

/* Print the n sizes of one group. */
static void print_table(FILE *out, const struct epochs_point *s, int n, const struct plan *plan,
                        const struct topo *topo, const struct nccl_tests_how *how)
{
    const struct point *p = s[0].first;
    double sum = 0;
    int measured = 0, wrong = 0;

    print_header(out, s, n, how);
    print_devices(out, p, plan, topo);
    print_columns(out);
    for (int i = 0; i < n; i++) {
        print_row(out, &s[i], how);
        wrong += s[i].wrong;
        if (isnan(s[i].sec))
            continue;
        sum += s[i].bytes / s[i].sec / 1e9 * op_bus_factor(p->op, p->ranks);
        measured++;
    }
    fprintf(out, "# %-20s : %d %s\n", "Out of bounds values", wrong, wrong ? "FAILED" : "OK");
    fprintf(out, "# %-20s : %g \n", "Avg bus bandwidth", measured ? sum / measured : 0.0);
    fprintf(out, "#\n# Collective test concluded: %s\n\n", op_table[p->op].program);
}

int nccl_tests_print(FILE *out, const struct points *p, const struct plan *plan,
                     const struct topo *topo, const struct nccl_tests_how *how, struct err *err)
{
    const struct transport *t = transport_find(p->transport);
    struct nccl_tests_how plain = {.warmup = how->warmup};
    struct epochs_point *s;
    int count = epochs_merge(&s, p), tables = 0;

    if (!t || !t->typed)
        how = &plain;
    for (int i = 0, n; i < count; i += n) {
        const struct point *first = s[i].first;
        for (n = 1; i + n < count && s[i + n].first->round == first->round &&
                    s[i + n].first->group == first->group;
             n++)
            ;
        if (op_is_pair(first->op))
            continue;
        print_table(out, &s[i], n, plan, topo, how);
        tables++;
    }
    free(s);
    return tables ? 0
                  : err_data(err, "no collective was measured: %d points of pairs only", p->count);
}

/* --- as JSON --- */

static json_t *half_json(const struct epochs_point *s)
{
    const struct point *p = s->first;
    double rate = s->bytes / s->sec / 1e9;

    return json_pack("{s:f, s:f, s:f, s:o}", "time", s->sec * 1e6, "alg_bw", rate, "bus_bw",
                     rate * op_bus_factor(p->op, p->ranks), "nwrong",
                     s->checked ? json_integer(s->wrong) : json_null());
}

static json_t *row_json(const struct epochs_point *s, const struct nccl_opts *o)
{
    const struct point *p = s->first;
    size_t count = s->bytes / (size_t)op_blocks(p->op, p->ranks);
    int type = type_of(s, o);
    bool in_place = o && o->in_place;
    char root[16];

    snprintf(root, sizeof(root), "%6d", op_is_rooted(p->op) ? 0 : -1);
    return json_pack("{s:I, s:I, s:s, s:s, s:s, s:o, s:o, s:i, s:n}", "size", (json_int_t)s->bytes,
                     "count", (json_int_t)(count / nccl_dtype_size(type)), "type", type_name[type],
                     "redop", redop_of(p, o), "root", root, "out_of_place",
                     in_place ? json_null() : half_json(s), "in_place",
                     in_place ? half_json(s) : json_null(), "actual_iterations", s->samples,
                     "experiment_name");
}

static json_t *devices_json(const struct plan_group *g, const struct topo *t)
{
    json_t *list = json_array();

    for (int i = 0; g && t && i < g->size; i++) {
        if (g->members[i] < 0 || g->members[i] >= t->endpoints)
            continue;
        const struct endpoint *e = &t->endpoint[g->members[i]];
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:i, s:s, s:i, s:s%, s:s}", "rank", i, "group", 0, "pid", 0,
                            "hostname", t->host[e->place.at[LEVEL_HOST]].name, "device", e->local,
                            "device_hex", e->busid, strcspn(e->busid, "."), "device_info",
                            *e->model ? e->model : "unknown"));
    }
    return list;
}

static json_t *config_json(const struct epochs_point *s, int n, const struct plan_group *g,
                           const struct topo *t, const struct nccl_tests_how *how)
{
    return json_pack("{s:i, s:i, s:I, s:I, s:I, s:o, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:o}",
                     "nthreads", 1, "ngpus", 1, "minimum_bytes", (json_int_t)s[0].bytes,
                     "maximum_bytes", (json_int_t)s[n - 1].bytes, "step_factor",
                     (json_int_t)(n > 1 ? s[1].bytes / s[0].bytes : 2), "warmup_iters",
                     how->warmup < 0 ? json_null() : json_integer(how->warmup), "iterations",
                     s[0].samples, "aggregated_iterations", 1, "validation", s[0].checked > 0,
                     "graph", how->nccl && how->nccl->graph, "blocking_collectives", "false",
                     "per_iter_timing", "false", "parallel_init", "false", "devices",
                     devices_json(g, t));
}

/* Convert the n sizes of one group. */
static json_t *run_json(const struct epochs_point *s, int n, const struct plan *plan,
                        const struct topo *topo, const struct nccl_tests_how *how, const char *when)
{
    const struct point *p = s[0].first;
    json_t *results = json_array();
    double sum = 0;
    int measured = 0, wrong = 0;

    for (int i = 0; i < n; i++) {
        wrong += s[i].wrong;
        if (isnan(s[i].sec))
            continue;
        json_array_append_new(results, row_json(&s[i], how->nccl));
        sum += s[i].bytes / s[i].sec / 1e9 * op_bus_factor(p->op, p->ranks);
        measured++;
    }
    return json_pack(
        "{s:i, s:s?, s:[s], s:[], s:n, s:o, s:o, s:{s:i, s:s}, s:{s:f, s:s}, s:[], s:s?}",
        "version", 2, "start_time", when, "args", op_table[p->op].program, "env", "nccl_version",
        "config", config_json(s, n, group_of(plan, p), topo, how), "results", results,
        "out_of_bounds", "count", wrong, "okay", wrong ? "false" : "true", "average_bus_bandwidth",
        "bandwidth", measured ? sum / measured : 0.0, "okay", "unchecked", "errors", "end_time",
        when);
}

json_t *nccl_tests_json(const struct points *p, const struct plan *plan, const struct topo *topo,
                        const struct nccl_tests_how *how, int op, const char *when, struct err *err)
{
    const struct transport *t = transport_find(p->transport);
    struct nccl_tests_how plain = {.warmup = how->warmup};
    struct epochs_point *s;
    int count = epochs_merge(&s, p), best = -1, sizes = 0;
    json_t *out = NULL;

    if (!t || !t->typed)
        how = &plain;
    for (int i = 0, n; i < count; i += n) {
        const struct point *first = s[i].first, *held = best < 0 ? NULL : s[best].first;
        for (n = 1; i + n < count && s[i + n].first->round == first->round &&
                    s[i + n].first->group == first->group;
             n++)
            ;
        bool any = false;
        for (int k = i; k < i + n; k++)
            any |= !isnan(s[k].sec);
        if (!any || op_is_pair(first->op) || (op >= 0 && (int)first->op != op) ||
            (held && op < 0 && held->op == OP_ALL_REDUCE && first->op != OP_ALL_REDUCE))
            continue;
        bool other = held && op < 0 && held->op != first->op;
        if (!held || (other ? first->op == OP_ALL_REDUCE : first->ranks > held->ranks)) {
            best = i;
            sizes = n;
        }
    }
    if (best >= 0)
        out = run_json(&s[best], sizes, plan, topo, how, when);
    else
        err_data(err, "%s was not measured: %d points of %s",
                 op >= 0 ? op_name((enum op)op)
                         : "a "
                           "collective",
                 p->count, op >= 0 ? "others" : "pairs only");
    free(s);
    return out;
}

/* --- epochs --- */

static int by_key(const void *x, const void *y)
{
    const struct point *a = *(const struct point *const *)x, *b = *(const struct point *const *)y;

    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static bool same_key(const struct point *a, const struct point *b)
{
    return a->round == b->round && a->group == b->group && a->bytes == b->bytes;
}

/* Merge n epochs of one key. */
static struct epochs_point merge(const struct point *const *p, int n)
{
    struct epochs_point s = {.first = p[0], .bytes = p[0]->bytes, .sec = NAN, .lo = NAN, .hi = NAN};
    double *median = mem_calloc((size_t)n, sizeof(*median));

    for (int i = 0; i < n; i++) {
        s.checked += p[i]->checked;
        s.wrong += p[i]->wrong;
        if (p[i]->stop == STOP_FAILED || !(p[i]->sec.median > 0))
            continue;
        median[s.epochs++] = p[i]->sec.median;
        s.samples += p[i]->n;
        s.lo = point_sec(p[i]->sec.lo);
        s.hi = point_sec(p[i]->sec.hi);
    }
    if (s.epochs)
        s.sec = stats_median(median, s.epochs);
    if (s.epochs > 1) {
        s.lo = median[0];
        s.hi = median[s.epochs - 1];
    }
    free(median);
    return s;
}

int epochs_merge(struct epochs_point **out, const struct points *p)
{
    const struct point **order = mem_calloc((size_t)p->count + 1, sizeof(*order));
    int count = 0;

    for (int i = 0; i < p->count; i++)
        order[i] = &p->point[i];
    qsort(order, (size_t)p->count, sizeof(*order), by_key);
    *out = mem_calloc((size_t)p->count + 1, sizeof(**out));
    for (int i = 0, n; i < p->count; i += n) {
        for (n = 1; i + n < p->count && same_key(order[i], order[i + n]); n++)
            ;
        (*out)[count++] = merge(order + i, n);
    }
    free(order);
    return count;
}
