/* SPDX-License-Identifier: BSD-3-Clause */
/* batch.c - rows of a table as questions; batch_predict.c predicts them. */
#include "calibrate/batch.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "calibrate/batch_impl.h"

static const char shipped[] = "jobs/training/publications.json";

/* --- publications.json, with checks --- */

static int check_settings(json_t *settings, const char *where, struct err *err)
{
    struct batch_row r = {.line = 0};
    struct err why;

    recipe_defaults(&r.recipe);
    if (settings && !json_is_null(settings) && !json_is_object(settings))
        return err_data(err, "%s: not an object of settings", where);
    return batch_set(&r, settings, &why) < 0 ? err_data(err, "%s: %s", where, why.text) : 0;
}

static int check_recipe(json_t *one, const char *where, struct err *err)
{
    const char *text;
    json_t *set = NULL, *when = NULL, *any;
    int odd;

    if (json_take(one, where, err, "{s?s, s?o, s?o, s?s, s?s, s?o, s?o, s?o, s?s, s?s, s?b}",
                  "model", &text, "hardware", &any, "dtype", &any, "since", &text, "before", &text,
                  "when", &when, "set", &set, "chunks", &any, "why", &text, "remark", &text, "odd",
                  &odd) < 0)
        return -1;
    if (when && !json_is_object(when))
        return err_data(err, "%s: \"when\" is not an object of columns", where);
    return check_settings(set, where, err);
}

static int check_word(json_t *one, const char *where, struct err *err)
{
    const char *text;
    json_t *set = NULL;
    int odd;

    if (json_take(one, where, err, "{s:s, s?s, s?s, s?s, s?o, s?s, s?b, s?s}", "column", &text,
                  "is", &text, "begins", &text, "has", &text, "set", &set, "remark", &text, "odd",
                  &odd, "cite", &text) < 0)
        return -1;
    return check_settings(set, where, err);
}

static int check_hardware(json_t *one, const char *where, struct err *err)
{
    const char *text;

    return json_take(one, where, err, "{s:s, s?s, s:s}", "hardware", &text, "fabric", &text,
                     "preset", &text);
}

static int check_each(json_t *list, const char *path, const char *key,
                      int (*check)(json_t *, const char *, struct err *), struct err *err)
{
    size_t i;
    json_t *one;

    if (list && !json_is_array(list))
        return err_data(err, "%s: \"%s\" is not a list", path, key);
    json_array_foreach(list, i, one)
    {
        char *where = mem_printf("%s: %s[%zu]", path, key, i);
        int rc = check(one, where, err);
        free(where);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* {"reads": "reserved", "gb": 1073741824}: kind of reading, and bytes of its GB. */
static int check_memory(json_t *memory, const char *where, struct err *err)
{
    const char *reads;
    double gb;

    if (!memory)
        return 0;
    return json_take(memory, where, err, "{s:s, s:F}", "reads", &reads, "gb", &gb) < 0 ||
                   recipe_word("memory", reads, batch_memory_kind, MEMORY_KINDS, err) < 0
               ? -1
               : 0;
}

static int check_publication(json_t *one, const char *where, struct err *err)
{
    const char *text;
    json_t *set = NULL, *release = NULL, *recipes = NULL, *bytes, *memory = NULL;

    if (json_take(one, where, err, "{s:s, s:s, s?o, s?o, s?s, s?s, s?o, s?o, s?o}", "source", &text,
                  "cite", &text, "set", &set, "release", &release, "flops", &text, "fits_by", &text,
                  "memory_bytes", &bytes, "memory", &memory, "recipes", &recipes) < 0 ||
        check_memory(memory, where, err) < 0 ||
        (release && json_take(release, where, err, "{s:s, s:s, s:s}", "name", &text, "after", &text,
                              "until", &text) < 0) ||
        check_settings(set, where, err) < 0)
        return -1;
    return check_each(recipes, where, "recipes", check_recipe, err);
}

static int publications_load(json_t **out, struct err *err)
{
    json_t *publications, *hardware, *words, *otherwise, *claims, *value;
    const char *format, *key;
    char *path = file_data(shipped);
    int version;

    *out = NULL;
    if (!path)
        return err_noinput(err, "%s is not installed", shipped);
    int rc = json_open(out, path, "railgauge-publications", 1, err);
    if (rc == 0)
        rc = json_take(*out, path, err, "{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "format", &format,
                       "version", &version, "publications", &publications, "hardware", &hardware,
                       "words", &words, "otherwise", &otherwise, "claims", &claims);
    if (rc == 0 && (check_each(publications, path, "publications", check_publication, err) < 0 ||
                    check_each(hardware, path, "hardware", check_hardware, err) < 0 ||
                    check_each(words, path, "words", check_word, err) < 0))
        rc = -1;
    if (rc == 0)
        json_object_foreach(otherwise, key, value) rc |= check_settings(value, path, err);
    free(path);
    return rc;
}

/* --- rows --- */

const char *const batch_status_name[BATCH_STATUS_COUNT] = {"predicted", "miss", "claim"};

static const char *const columns[] = {
    "id",        "model",          "params",      "hardware",  "gpus",        "gpus_per_node",
    "dtype",     "nvlink_domain",  "seq_len",     "tp",        "pp",          "internode_fabric",
    "cp",        "global_batch",   "micro_batch", "recompute", "ep",          "zero_stage/fsdp",
    "dp",        "metric",         "value",       "unit",      "vp",          "source",
    "ga",        "layout_known",   "split",       "notes",     "publication", "release",
    "memory_GB", "memory_read_GB",
};
static const char *const required[] = {"model", "hardware", "gpus", "value"};

/* Metrics equivalent to the time of a step.  Claims, which are not, are data. */
struct metric {
    const char *name;
    enum metric_kind kind;
    const char *unit; /* NULL: any */
    double scale;     /* factor to seconds; tokens/s and FLOP/s per GPU */
};
static const struct metric metrics[] = {
    {"step_time", METRIC_SECONDS, "s", 1},
    {"step_time", METRIC_SECONDS, "s/it", 1},
    {"step_time", METRIC_SECONDS, "ms", 1e-3},
    {"step_time", METRIC_SECONDS, "min", 60},
    {"step_time", METRIC_SECONDS, "", 1},
    {"tps_per_gpu", METRIC_TOKENS, NULL, 1},
    {"tflops_per_gpu", METRIC_FLOPS, "TFLOP/s/GPU", 1e12},
    {"tflops_per_gpu", METRIC_FLOPS, "PFLOP/s/GPU", 1e15},
};

/* Units end at a space: "tok/s/GPU (median)". */
static bool same_unit(const char *want, const char *unit)
{
    size_t n = strcspn(unit, " ");

    return !want || (strlen(want) == n && !strncmp(want, unit, n));
}

static const struct metric *find_metric(const char *name, const char *unit, struct err *err)
{
    bool known = false;

    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        if (strcmp(metrics[i].name, name) != 0)
            continue;
        known = true;
        if (same_unit(metrics[i].unit, unit))
            return &metrics[i];
    }
    if (known)
        err_set(err, "unit \"%s\" of metric %s is not known", unit, name);
    else
        err_set(err, "metric \"%s\" is not known", name);
    return NULL;
}

/* Integers of a row; 0: the cell is empty. */
struct counts {
    int gpus, seq, batch, micro, tp, pp, cp, ep, dp, vp, ga;
};

static int count_cell(int *out, const struct batch_row *r, const char *column, struct err *err)
{
    const char *text = batch_cell(r, column);
    struct err why;

    *out = 0;
    if (*text && units_int(out, text, 1, 1 << 28, &why) < 0)
        return err_set(err, "%s: %s", column, why.text);
    return 0;
}

static int take_counts(struct counts *c, const struct batch_row *r, struct err *err)
{
    const struct {
        int *out;
        const char *column;
    } cells[] = {{&c->gpus, "gpus"},
                 {&c->seq, "seq_len"},
                 {&c->batch, "global_batch"},
                 {&c->micro, "micro_batch"},
                 {&c->tp, "tp"},
                 {&c->pp, "pp"},
                 {&c->cp, "cp"},
                 {&c->ep, "ep"},
                 {&c->dp, "dp"},
                 {&c->vp, "vp"},
                 {&c->ga, "ga"}};

    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
        if (count_cell(cells[i].out, r, cells[i].column, err) < 0)
            return -1;
    if (!c->gpus)
        return err_set(err, "gpus is not stated");
    return 0;
}

/* Derive missing values: axes not stated are 1, dp is the rest of the GPUs, and of batch, micro
 * batch and accumulation each follows from the other two. */
static int complete(struct counts *c, struct batch_row *r, struct err *err)
{
    int *const axes[] = {&c->tp, &c->pp, &c->cp, &c->ep, &c->vp};

    for (size_t i = 0; i < sizeof(axes) / sizeof(*axes); i++)
        *axes[i] = *axes[i] ? *axes[i] : 1;
    long inner = (long)c->tp * c->pp * c->cp;
    if (c->gpus % inner)
        return err_set(err, "tp=%d pp=%d cp=%d do not divide %d GPUs", c->tp, c->pp, c->cp,
                       c->gpus);
    int dp = (int)(c->gpus / inner);
    if (c->dp && c->dp != dp)
        batch_remark(r, "dp is printed as %d, and %d GPUs leave %d", c->dp, c->gpus, dp);
    c->dp = dp;
    if (!c->batch && c->ga && c->micro)
        c->batch = dp * c->ga * c->micro;
    if (!c->batch || !c->seq)
        return err_set(err, "%s not stated: only ratios between such rows can be compared",
                       c->batch || c->seq ? (c->seq ? "global_batch is" : "seq_len is")
                                          : "global_batch and seq_len are");
    if (!c->micro && c->ga && c->batch % (dp * c->ga) == 0)
        c->micro = c->batch / (dp * c->ga);
    if (!c->micro) {
        c->micro = 1;
        batch_remark(r, "micro_batch is not stated: 1 is assumed");
    }
    return 0;
}

/* "FSDP-64" shards over 64 ranks, "ZeRO-1-HYBRID8" over 8; further data-parallel ranks are
 * replicas. */
static int shard_of(struct batch_row *r, const struct counts *c, const char *words, int *shard,
                    struct err *err)
{
    const char *dash = strstr(words, "FSDP-");
    const char *hsdp = strstr(words, "HSDP"), *hybrid = strstr(words, "HYBRID");
    const char *number = hybrid ? hybrid + 6
                         : dash ? dash + 5
                         : hsdp ? hsdp + 4 + strspn(hsdp + 4, "- ")
                                : "";
    int n = (int)strtol(number, NULL, 10), ranks = c->dp * c->cp;

    *shard = c->dp;
    if (n > 0 && n < ranks && ranks % n == 0 && n % c->cp == 0) {
        *shard = n / c->cp;
        if (!hybrid)
            r->recipe.strategy = STRATEGY_HSDP;
    } else if (hsdp) {
        return err_set(err, "hsdp over %d ranks, and \"%s\" does not say how many share", ranks,
                       words);
    }
    return 0;
}

static int take_layout(struct batch_row *r, const struct counts *c, const char *words,
                       struct err *err)
{
    int shard;

    if (shard_of(r, c, words, &shard, err) < 0)
        return -1;
    bool ddp = r->recipe.strategy == STRATEGY_DDP;
    snprintf(r->layout, sizeof(r->layout),
             "pp=%d,dp_replicate=%d,dp_shard=%d,cp=%d,tp=%d,ep=%d,etp=%d", c->pp,
             ddp ? c->dp : c->dp / shard, ddp ? 1 : shard, c->cp, c->tp, c->ep,
             r->etp > 0 ? r->etp : 1);
    r->recipe.seq = c->seq;
    r->recipe.global_batch = c->batch;
    r->recipe.micro_batch = c->micro;
    r->recipe.stages = c->pp > 1 ? c->vp : 1;
    return 0;
}

static void name_family(struct batch_row *r)
{
    const char *lora = r->recipe.lora ? ", lora" : "";

    r->family = mem_printf("%s, %s, %s, %s%s", r->model, r->hardware, r->dtype, r->release, lora);
}

/* Fill an empty cell from the column named like the option: "seq" for seq_len. */
static void same_number(int *count, int def, int said)
{
    if (!*count && said != def)
        *count = said;
}

/* -1: no question; err has the reason. */
static int take_question(struct batch_row *r, struct err *err)
{
    struct counts c;
    struct recipe plain;

    recipe_defaults(&plain);
    r->recipe = plain;
    r->mesh = ORDER_MEGATRON;
    if (take_counts(&c, r, err) < 0)
        return -1;
    r->gpus = c.gpus;
    if (batch_words(r, err) < 0)
        return -1;
    same_number(&c.seq, 0, *batch_cell(r, "seq") ? r->recipe.seq : 0);
    same_number(&c.batch, plain.global_batch, r->recipe.global_batch);
    same_number(&c.micro, plain.micro_batch, r->recipe.micro_batch);
    same_number(&c.vp, plain.stages, r->recipe.stages);
    r->chunks_said = c.vp > 0;
    batch_machine(r);
    if (complete(&c, r, err) < 0 || take_layout(r, &c, batch_cell(r, "zero_stage/fsdp"), err) < 0)
        return -1;
    name_family(r);
    return 0;
}

static int take_value(struct batch_row *r, const struct metric *m, const char *text,
                      struct err *err)
{
    struct err why;

    if (units_double(&r->printed, text, 1e-9, 1e12, &why) < 0)
        return err_set(err, "value: %s", why.text);
    r->printed *= m->scale;
    return 0;
}

/* Returns the meaning of a metric that is no step time; NULL: unknown metric. */
static const char *batch_claim(const json_t *publications, const char *metric)
{
    return json_string_value(json_object_get(json_object_get(publications, "claims"), metric));
}

static void take_row(struct batch_row *r)
{
    struct err err = {0, ""};

    r->line = r->table->row[r->at].line;
    snprintf(r->own_id, sizeof(r->own_id), "line %d", r->line);
    r->id = *batch_cell(r, "id") ? batch_cell(r, "id") : r->own_id;
    r->model = batch_cell(r, "model");
    r->hardware = batch_cell(r, "hardware");
    r->dtype = batch_cell(r, "dtype");
    r->split = batch_cell(r, "split");
    r->source = batch_cell(r, "source");
    batch_release(r);
    const char *name = batch_cell(r, "metric");
    name = *name ? name : "step_time";
    const char *why = batch_claim(r->publications, name);
    const struct metric *m = why ? NULL : find_metric(name, batch_cell(r, "unit"), &err);
    if (why) {
        r->status = BATCH_CLAIM;
        batch_remark(r, "%s: %s", name, why);
    } else if (!m || take_value(r, m, batch_cell(r, "value"), &err) < 0 ||
               take_question(r, &err) < 0) {
        r->status = BATCH_MISS;
        batch_remark(r, "%s", err.text);
    } else {
        r->metric = m->kind;
    }
}

static int check_columns(struct batch *b, const struct tsv *t, struct err *err)
{
    for (size_t i = 0; i < sizeof(required) / sizeof(*required); i++)
        if (tsv_column(t, required[i], err) < 0)
            return -1;
    for (int i = 0; i < t->columns; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
            known |= !strcmp(columns[k], t->name[i]);
        known |= argument_find(recipe_argument, t->name[i]) != NULL ||
                 argument_find(batch_argument, t->name[i]) != NULL;
        if (!known)
            MEM_PUSH(b->note, b->notes) =
                mem_printf("%s: column \"%s\" is not known and was ignored", t->path, t->name[i]);
    }
    return 0;
}

/* Ids identify rows in messages and as anchors. */
static int check_ids(const struct batch *b, struct err *err)
{
    for (int i = 0; i < b->rows; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(b->row[i].id, b->row[k].id))
                return err_data(err, "%s:%d: a second row with the id \"%s\"",
                                b->row[i].table->path, b->row[i].line, b->row[i].id);
    return 0;
}

static int take_table(struct batch *b, const struct tsv *t, struct err *err)
{
    int first = b->rows;

    if (check_columns(b, t, err) < 0)
        return -1;
    if (!t->rows)
        return err_data(err, "%s: no rows", t->path);
    b->rows += t->rows;
    b->row = mem_realloc(b->row, (size_t)b->rows + 1, sizeof(*b->row));
    memset(b->row + first, 0, ((size_t)t->rows + 1) * sizeof(*b->row));
    for (int i = 0; i < t->rows; i++) {
        struct batch_row *r = &b->row[first + i];
        r->publications = b->publications;
        r->table = t;
        r->at = i;
        r->anchor = r->same_anchor = r->other_dtype = -1;
        r->read_bytes = r->bytes = r->bytes_lo = r->bytes_hi = NAN;
        r->printed = r->measured = r->predicted = r->lo = r->hi = r->tokens = NAN;
        r->stretch = r->anchored = r->same_anchored = NAN;
        take_row(r);
    }
    return 0;
}

int batch_load(struct batch *b, const char *path, struct err *err)
{
    memset(b, 0, sizeof(*b));
    if (tsv_load(&b->table, path, err) < 0 || publications_load(&b->publications, err) < 0 ||
        take_table(b, &b->table, err) < 0)
        return -1;
    return check_ids(b, err);
}

static int add_table(struct batch *b, const char *path, struct err *err)
{
    struct tsv *t = mem_calloc(1, sizeof(*t));

    MEM_PUSH(b->more, b->mores) = t;
    if (tsv_load(t, path, err) < 0 || take_table(b, t, err) < 0)
        return -1;
    /* own ids have moved, and lines of several tables may be equal */
    for (int i = 0; i < b->rows; i++) {
        struct batch_row *r = &b->row[i];
        if (*batch_cell(r, "id"))
            continue;
        if (r->table == t)
            snprintf(r->own_id, sizeof(r->own_id), "%d, line %d", b->mores + 1, r->line);
        r->id = r->own_id;
    }
    return check_ids(b, err);
}

/* --- selection of rows by their cells --- */

struct condition {
    char column[64], op[3], value[160];
};

static int read_condition(struct condition *c, const char *text, size_t length, struct err *err)
{
    size_t name = strcspn(text, "=!<>"), op = strspn(text + name, "=!<>"), from = name + op;

    if (!name || !op || op > 2 || from >= length || name >= sizeof(c->column) ||
        length - from >= sizeof(c->value) || (op == 1 && text[name] == '!'))
        return err_usage(err, "\"%.*s\" is no condition: COLUMN=VALUE, with = != < <= > or >=",
                         (int)length, text);
    snprintf(c->column, sizeof(c->column), "%.*s", (int)name, text);
    snprintf(c->op, sizeof(c->op), "%.*s", (int)op, text + name);
    snprintf(c->value, sizeof(c->value), "%.*s", (int)(length - from), text + from);
    return 0;
}

/* A cell without a number satisfies neither < nor >. */
static bool holds(const struct condition *c, const char *cell)
{
    double x, y;

    if (*c->op == '=' || *c->op == '!')
        return (fnmatch(c->value, cell, 0) == 0) == (*c->op == '=');
    if (units_double(&x, cell, -1e30, 1e30, NULL) < 0 ||
        units_double(&y, c->value, -1e30, 1e30, NULL) < 0)
        return false;
    return (*c->op == '<' ? x < y : x > y) || (c->op[1] && x == y);
}

void batch_drop(struct batch_row *r)
{
    if (r->status == BATCH_PREDICTED)
        batch_remark(r, "left out as asked");
    r->status = r->status == BATCH_PREDICTED ? BATCH_CLAIM : r->status;
}

static int pick(const struct batch *b, const char *text, bool *picked, struct err *err)
{
    bool *all = mem_calloc((size_t)b->rows + 1, sizeof(*all));
    int rc = 0, n = 0;

    memset(all, 1, (size_t)b->rows);
    while (rc == 0 && *text) {
        struct condition c;
        size_t length = strcspn(text, ",");
        bool known = false;
        rc = read_condition(&c, text, length, err);
        for (int i = 0; i < b->rows && rc == 0; i++) {
            known |= tsv_find(b->row[i].table, c.column) >= 0;
            all[i] = all[i] && holds(&c, batch_cell(&b->row[i], c.column));
        }
        if (rc == 0 && !known)
            rc = err_usage(err, "no table has a column \"%s\"", c.column);
        text += length + (text[length] == ',');
        n++;
    }
    for (int i = 0; i < b->rows && n; i++)
        picked[i] |= all[i];
    free(all);
    return rc;
}

int batch_load_tables(struct batch *b, const struct batch_tables *from, bool **left,
                      struct err *err)
{
    int rc = batch_load(b, from->table[0], err);

    for (int i = 1; i < from->tables && rc == 0; i++)
        rc = add_table(b, from->table[i], err);
    *left = mem_calloc((size_t)b->rows + 1, sizeof(**left));
    for (int i = 0; i < from->leave_outs && rc == 0; i++)
        rc = pick(b, from->leave_out[i], *left, err);
    return rc;
}
