/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_step_read.c - read predicted steps from files. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "report/plot/plot_step.h"

static const double longest = 1e9; /* s, longest accepted step */

/* Where a file of this format keeps its steps, and their names. */
struct source {
    const char *format;
    const char *list; /* NULL: the file is one step */
    const char *sec;
    const char *status; /* skip entries with another "status" */
};

static const struct source source[] = {
    {"railgauge-prediction", NULL, "step_s", NULL},
    {"railgauge-predictions", "predictions", "step_s", NULL},
    {"railgauge-search", "best", "step_s", NULL},
    {"railgauge-batch", "rows", "predicted_s", "predicted"},
};
enum { SOURCES = sizeof(source) / sizeof(*source) };

/* Part of the step for a term: the first row with matching kind and word. */
static const struct {
    const char *kind, *word; /* in the label of compute, in the axes of a message; "": any */
    enum step_part part;
} sorting[] = {
    {"compute", "matrix products", STEP_LINEAR},
    {"compute", "experts", STEP_EXPERT},
    {"compute", "output head", STEP_HEAD},
    {"compute", "attention core", STEP_CORE},
    {"compute", "between products", STEP_MEMORY},
    {"compute", "scan", STEP_CORE},
    {"compute", "launches", STEP_LAUNCH},
    {"message", "dp", STEP_DP}, /* dp_shard, dp_replicate, edp, alone or with cp */
    {"message", "pp", STEP_PP},
    {"message", "ep", STEP_EP},
    {"message", "cp", STEP_CP},
    {"message", "tp", STEP_TP}, /* also etp */
    {"bubble", "", STEP_BUBBLE},
    {"optimizer", "", STEP_OPTIMIZER},
    {"", "", STEP_OTHER},
};

static enum step_part sort(const char *kind, const char *text)
{
    size_t i = 0;

    while ((*sorting[i].kind && strcmp(sorting[i].kind, kind) != 0) ||
           !strstr(text, sorting[i].word))
        i++;
    return sorting[i].part;
}

/* Read a number that may be absent or null. */
static int number(json_t *o, const char *where, const char *key, double min, double *out,
                  struct err *err)
{
    *out = NAN;
    if (json_is_null(json_object_get(o, key)))
        return 0;
    return json_number(o, where, key, min, 1e30, 1, out, err);
}

static const char *text(json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static int take_term(struct step_bar *b, json_t *term, const char *where, struct err *err)
{
    const char *kind = text(term, "kind"), *label = text(term, "label");
    double sec, hidden;

    if (json_number(term, where, "s", 0, longest, 0, &sec, err) < 0 ||
        number(term, where, "hidden_s", 0, &hidden, err) < 0)
        return -1;
    if (!strcmp(kind, "message")) /* terms of a search have only this */
        label = text(json_object_get(term, "message") ? json_object_get(term, "message") : term,
                     "axes");
    b->part[sort(kind, label)] += sec;
    if (hidden > 0)
        b->hidden = (isnan(b->hidden) ? 0 : b->hidden) + hidden;
    return 0;
}

/* Terms must add up to the step; otherwise the picture would show a different one. */
static int take_terms(struct step_bar *b, json_t *terms, const char *where, struct err *err)
{
    double sum = 0;
    size_t i;
    json_t *term;

    if (!terms) {
        b->part[STEP_WHOLE] = b->sec;
        return 0;
    }
    if (!json_is_array(terms))
        return err_data(err, "%s: \"terms\" is not a list", where);
    json_array_foreach(terms, i, term)
    {
        char *at = mem_printf("%s: terms[%zu]", where, i);
        int rc = take_term(b, term, at, err);
        free(at);
        if (rc < 0)
            return -1;
    }
    for (int p = 0; p < STEP_PARTS; p++)
        sum += b->part[p];
    if (!(fabs(sum - b->sec) <= 0.01 * b->sec))
        return err_data(err, "%s: its terms add up to %.6g s, and the step is %.6g s", where, sum,
                        b->sec);
    return 0;
}

static int take_numbers(struct step_bar *b, json_t *o, const struct source *s, const char *where,
                        struct err *err)
{
    if (json_number(o, where, s->sec, 1e-9, longest, 0, &b->sec, err) < 0 ||
        number(o, where, "lo_s", 0, &b->lo, err) < 0 ||
        number(o, where, "hi_s", 0, &b->hi, err) < 0 ||
        number(o, where, "measured_s", 1e-9, &b->measured, err) < 0 ||
        number(o, where, "tokens_per_s_per_gpu", 0, &b->tokens_per_gpu, err) < 0 ||
        number(o, where, "mfu", 0, &b->mfu, err) < 0 ||
        number(o, where, "ranks", 1, &b->ranks, err) < 0 ||
        number(o, where, "hidden_s", 0, &b->hidden, err) < 0)
        return -1;
    if (b->lo > b->sec || b->hi < b->sec)
        return err_data(err, "%s: the step of %.6g s is outside its interval %.6g..%.6g", where,
                        b->sec, b->lo, b->hi);
    b->hidden = NAN; /* set from the terms, so that both agree */
    return 0;
}

/* Settings that distinguish steps; usual: not worth mentioning. */
static const struct {
    const char *key, *usual;
    const char *before, *after;
} said[] = {
    {"strategy", "", "", ""},
    {"recompute", "none", "recompute ", ""},
    {"schedule", "1f1b", "", ""},
    {"stages-per-rank", "1", "", " stages a rank"},
    {"micro-batch", "1", "micro batch ", ""},
    {"dispatch", "nccl", "dispatch ", ""},
    {"ep-overlap", "no", "ep overlap ", ""},
    {"prefetch", "yes", "prefetch ", ""},
    {"reshard", "yes", "reshard ", ""},
};

static void value_text(char *buf, size_t size, const json_t *v)
{
    *buf = '\0';
    if (json_is_string(v))
        snprintf(buf, size, "%s", json_string_value(v));
    else if (json_is_integer(v))
        snprintf(buf, size, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        snprintf(buf, size, "%s", json_is_true(v) ? "yes" : "no");
}

/* "fsdp, recompute full, micro batch 2" */
static char *how(json_t *o)
{
    json_t *recipe = json_object_get(o, "recipe");
    char *all = mem_strdup(""), value[64];

    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        json_t *v = json_object_get(o, said[i].key);
        value_text(value, sizeof(value), v ? v : json_object_get(recipe, said[i].key));
        if (!*value || !strcmp(value, said[i].usual))
            continue;
        char *more =
            mem_printf("%s%s%s%s%s", all, *all ? ", " : "", said[i].before, value, said[i].after);
        free(all);
        all = more;
    }
    return all;
}

/* root: root of the file, with values common to all entries. */
static int take(struct step_bars *b, const struct source *s, json_t *root, json_t *o,
                const char *label, const char *path, const char *where, struct err *err)
{
    if (!json_is_object(o))
        return err_data(err, "%s: no object", where);
    if (s->status && strcmp(text(o, "status"), s->status) != 0)
        return 0;
    struct step_bar *one = &MEM_PUSH(b->bar, b->bars);
    *one = (struct step_bar){.file = mem_strdup(path)};
    if (label || *text(o, "id"))
        one->given = mem_strdup(label ? label : text(o, "id"));
    one->model = mem_strdup(text(*text(o, "model") ? o : root, "model"));
    one->layout = mem_strdup(text(o, "layout"));
    one->how = how(o);
    one->cpu = !strcmp(text(o, "devices"), "cpu");
    json_t *alike = json_object_get(o, "alike");
    one->alike = json_is_boolean(alike) ? json_is_true(alike) : -1;
    if (take_numbers(one, o, s, where, err) < 0 ||
        (isnan(one->ranks) && number(root, path, "ranks", 1, &one->ranks, err) < 0))
        return -1;
    return take_terms(one, json_object_get(o, "terms"), where, err);
}

/* Row of the format named in the file; if unknown, the first, whose reader reports the error. */
static const struct source *source_of(const char *path)
{
    json_t *root = json_load_file(path, 0, NULL);
    const char *format = text(root, "format");
    int found = 0;

    for (int i = 0; i < SOURCES; i++)
        if (!strcmp(source[i].format, format))
            found = i;
    json_decref(root);
    return &source[found];
}

bool step_is_json(const char *path)
{
    FILE *f = fopen(path, "rb");
    int c = EOF;

    while (f && isspace(c = getc(f)))
        ;
    if (f)
        fclose(f);
    return c == '{' || c == '[';
}

int step_bars_add(struct step_bars *b, const char *label, const char *path, struct err *err)
{
    const struct source *s = source_of(path);
    json_t *root, *list, *one;
    size_t i;
    int rc = 0, before = b->bars;

    if (json_open(&root, path, s->format, 1, err) < 0)
        return -1;
    list = s->list ? json_object_get(root, s->list) : NULL;
    if (!s->list)
        rc = take(b, s, root, root, label, path, path, err);
    else if (!json_is_array(list))
        rc = err_data(err, "%s: \"%s\" is %s", path, s->list, list ? "no list" : "missing");
    json_array_foreach(list, i, one)
    {
        char *where = mem_printf("%s: %s[%zu]", path, s->list, i);
        rc = rc < 0 ? rc : take(b, s, root, one, label, path, where, err);
        free(where);
    }
    json_decref(root);
    if (rc == 0 && b->bars == before)
        rc = err_data(err, "%s: it holds no predicted step", path);
    return rc;
}

int step_bars_measured(struct step_bars *b, const char *list, struct err *err)
{
    char *copy = mem_strdup(list), *rest = copy, *word;
    int n = 0, rc = 0;

    while (rc == 0 && (word = strsep(&rest, ","))) {
        if (n >= b->bars)
            rc = err_usage(err, "\"%s\" is one of more measured steps than the %d predicted ones",
                           word, b->bars);
        else if (strcmp(word, "-") != 0)
            rc = units_seconds(&b->bar[n].measured, word, err);
        if (rc == 0 && b->bar[n].measured <= 0)
            rc = err_usage(err, "\"%s\" is no time of a step", word);
        n++;
    }
    if (rc == 0 && n < b->bars)
        rc = err_usage(err, "\"%s\" has %d of the %d steps; - stands for one that was not measured",
                       list, n, b->bars);
    free(copy);
    return rc < 0 ? err_wrap(err, "--measured") : 0;
}

void step_bars_free(struct step_bars *b)
{
    for (int i = 0; i < b->bars; i++) {
        free(b->bar[i].file);
        free(b->bar[i].given);
        free(b->bar[i].model);
        free(b->bar[i].layout);
        free(b->bar[i].how);
    }
    free(b->bar);
    *b = (struct step_bars){0};
}

double step_messages(const struct step_bar *b)
{
    double sum = 0;

    for (int p = STEP_TP; p <= STEP_PP; p++)
        sum += b->part[p];
    return b->part[STEP_WHOLE] > 0 ? NAN : sum / b->sec;
}

double step_ratio_if(double ratio, double above, double below, double f)
{
    return ratio * (1 + (f - 1) * (isnan(above) ? 0 : above)) /
           (1 + (f - 1) * (isnan(below) ? 0 : below));
}
