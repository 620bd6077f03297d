/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "calibrate/case_impl.h"

enum { LIST_MAX = 64 };

static const struct case_unit units[] = {
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

/* or NULL */
static const struct case_unit *unit_find(const char *name)
{
    for (const struct case_unit *u = units; u->name; u++)
        if (!strcmp(u->name, name))
            return u;
    return NULL;
}

static int read_unit(const struct case_unit **out, const char *name, const char *where,
                     struct err *err)
{
    const char *names[32];
    struct err why;
    int n = 0;

    *out = unit_find(name);
    if (*out)
        return 0;
    for (const struct case_unit *u = units; u->name; u++)
        if (*u->name)
            names[n++] = u->name;
    recipe_word("unit", name, names, n, &why);
    return err_data(err, "%s: %s", where, why.text);
}

/* Returns a value of the file as the word for job_set(); NULL: it has no such form. */
static const char *word_of(struct casefile *c, const json_t *v)
{
    char *text = NULL;

    if (json_is_string(v))
        return json_string_value(v);
    if (json_is_boolean(v))
        return json_is_true(v) ? "on" : "off";
    if (json_is_integer(v))
        text = mem_printf("%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        text = mem_printf("%.17g", json_real_value(v));
    else
        return NULL;
    MEM_PUSH(c->text, c->texts) = text;
    return text;
}

static int set_word(struct casefile *c, struct job_opts *o, const char *key, const json_t *value,
                    const char *where, struct err *err)
{
    const char *word = word_of(c, value);
    struct err why;

    if (!word)
        return err_data(err, "%s.%s: a text, a number, true or false is needed", where, key);
    const struct argument *a = argument_find(job_argument, key);
    if (a && a->kind == ARGUMENT_TEXT && !json_is_string(value))
        return err_data(err, "%s.%s: not a text", where, key);
    if (!strcmp(key, "matrix"))
        o->matrix = word;
    else if (job_set(o, key, word, &why) < 0)
        return err_data(err, "%s: %s", where, why.text);
    return 0;
}

static int find_job(const struct casefile *c, const char *name)
{
    for (int i = 0; i < c->jobs; i++)
        if (!strcmp(c->job[i].name, name))
            return i;
    return -1;
}

static int read_job(struct casefile *c, const char *name, json_t *settings,
                    const struct job_opts *base, const char *where, struct err *err)
{
    struct case_job job = {.name = name};
    const char *key;
    json_t *value, *like = json_object_get(settings, "like");

    if (!expression_is_name(name))
        return err_data(err, "%s: a job's name is a letter, then letters, digits and \"_\"", where);
    if (!json_is_object(settings))
        return err_data(err, "%s: not an object of settings", where);
    job_defaults(&job.opts);
    if (base)
        job.opts.constants = base->constants;
    job.opts.shipped = c->constants;
    if (like) {
        int from = json_is_string(like) ? find_job(c, json_string_value(like)) : -1;
        if (from < 0)
            return err_data(err, "%s.like: no job of this name before it", where);
        job.opts = c->job[from].opts;
    }
    json_object_foreach(settings, key,
                        value) if (strcmp(key, "like") != 0 &&
                                   set_word(c, &job.opts, key, value, where, err) < 0) return -1;
    MEM_PUSH(c->job, c->jobs) = job;
    return 0;
}

static int read_jobs(struct casefile *c, json_t *jobs, const struct job_opts *base, struct err *err)
{
    const char *name;
    json_t *settings;

    if (!json_is_object(jobs) || json_object_size(jobs) > CASE_JOBS_MAX)
        return err_data(err, "%s: \"jobs\" is not an object of at most %d jobs", c->path,
                        CASE_JOBS_MAX);
    json_object_foreach(jobs, name, settings)
    {
        char *where = mem_printf("%s: jobs.%s", c->path, name);
        int rc = read_job(c, name, settings, base, where, err);
        free(where);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Read "jobs": names; missing: all jobs. */
static int read_names(const struct casefile *c, bool out[CASE_JOBS_MAX], json_t *list,
                      const char *where, struct err *err)
{
    size_t i;
    json_t *item;

    for (int k = 0; k < c->jobs; k++)
        out[k] = list == NULL;
    if (list && !json_is_array(list))
        return err_data(err, "%s.jobs: not a list of names", where);
    json_array_foreach(list, i, item)
    {
        int k = json_is_string(item) ? find_job(c, json_string_value(item)) : -1;
        if (k < 0)
            return err_data(err, "%s.jobs[%zu]: no job \"%s\"", where, i,
                            json_is_string(item) ? json_string_value(item) : "(not a text)");
        out[k] = true;
    }
    return 0;
}

static int read_unknown(struct casefile *c, json_t *from, const char *where, struct err *err)
{
    struct case_unknown *u = &c->unknown[c->unknowns++];
    json_t *jobs = NULL, *values = NULL, *item;
    size_t i;

    if (json_take(from, where, err, "{s:s, s:o, s:s, s?o}", "setting", &u->key, "values", &values,
                  "why", &u->why, "jobs", &jobs) < 0 ||
        read_names(c, u->job, jobs, where, err) < 0)
        return -1;
    if (!json_is_array(values) || json_array_size(values) < 1 ||
        json_array_size(values) > CASE_VALUES_MAX)
        return err_data(err, "%s.values: not a list of 1..%d values", where, CASE_VALUES_MAX);
    json_array_foreach(values, i, item)
    {
        struct job_opts trial;
        job_defaults(&trial);
        if (set_word(c, &trial, u->key, item, where, err) < 0)
            return -1;
        u->value[u->values++] = word_of(c, item);
    }
    return 0;
}

/* Check that the expression parses and names existing jobs and quantities. */
static int check_expression(const struct casefile *c, const char *text, const char *where,
                            struct err *err)
{
    struct case_values none = {.file = c, .scaled = -1};
    struct expression_names names = {case_value_find, &none};
    struct err why;
    double value;

    if (expression_value(&value, text, &names, &why) < 0)
        return err_data(err, "%s: %s", where, why.text);
    return 0;
}

static int read_solve(struct casefile *c, json_t *from, const char *where, struct err *err)
{
    struct case_solve *s = &c->solve[c->solves++];
    json_t *jobs = NULL;
    const char *unit;
    struct job_opts trial;
    struct err why;
    char low[32];

    if (json_take(from, where, err, "{s:s, s:s, s:F, s:s, s:F, s:F, s:s, s?o}", "setting", &s->key,
                  "value", &s->expression, "published", &s->published, "unit", &unit, "min",
                  &s->min, "max", &s->max, "why", &s->why, "jobs", &jobs) < 0 ||
        read_names(c, s->job, jobs, where, err) < 0 || read_unit(&s->unit, unit, where, err) < 0 ||
        check_expression(c, s->expression, where, err) < 0)
        return -1;
    if (!(s->min > 0) || !(s->max > s->min) || !isfinite(s->max))
        return err_data(err, "%s: min %g and max %g do not enclose anything above 0", where, s->min,
                        s->max);
    job_defaults(&trial);
    snprintf(low, sizeof(low), "%.0f", s->min);
    if (strcmp(s->key, "stretch") != 0 && job_set(&trial, s->key, low, &why) < 0)
        return err_data(err, "%s: %s", where, why.text);
    return 0;
}

static int read_readings(struct casefile *c, struct case_claim *k, json_t *list, const char *where,
                         struct err *err)
{
    size_t i;
    json_t *item;

    if (list && (!json_is_array(list) || json_array_size(list) > LIST_MAX))
        return err_data(err, "%s.readings: not a list of at most %d", where, LIST_MAX);
    json_array_foreach(list, i, item)
    {
        struct case_reading r = {0};
        if (json_take(item, where, err, "{s:s, s:s}", "as", &r.text, "value", &r.expression) < 0 ||
            check_expression(c, r.expression, where, err) < 0)
            return -1;
        MEM_PUSH(k->reading, k->readings) = r;
    }
    return 0;
}

static int read_published(struct case_claim *k, const json_t *v, const char *where, struct err *err)
{
    if (k->unit->fits ? !json_is_boolean(v) : !json_is_number(v))
        return err_data(err, "%s.published: %s is needed", where,
                        k->unit->fits ? "true or false" : "a number");
    k->published = k->unit->fits ? json_is_true(v) : json_number_value(v);
    if (!k->unit->fits && !k->unit->points && !(k->published > 0))
        return err_data(err, "%s.published: %g is not above 0", where, k->published);
    return 0;
}

/* Find the claim, above this one and in its unit, that it follows; NULL: none. */
static int read_follows(const struct casefile *c, struct case_claim *k, const char *text,
                        const char *where, struct err *err)
{
    k->follows = -1;
    for (int i = 0; i < c->claims && text; i++)
        if (!strcmp(c->claim[i].text, text) && c->claim[i].unit == k->unit)
            k->follows = i;
    return text && k->follows < 0
               ? err_data(err, "%s.follows: no claim \"%s\" of this unit above", where, text)
               : 0;
}

static int read_claim(struct casefile *c, json_t *from, const char *where, struct err *err)
{
    struct case_claim k = {.within = 2};
    json_t *published, *readings = NULL;
    const char *unit, *expect, *follows = NULL;
    int at_least = 0;
    struct err why;

    if (json_take(from, where, err, "{s:s, s:s, s:o, s:s, s:s, s?b, s?F, s?s, s?o, s?s}", "claim",
                  &k.text, "value", &k.expression, "published", &published, "unit", &unit, "expect",
                  &expect, "at_least", &at_least, "within", &k.within, "note", &k.note, "readings",
                  &readings, "follows", &follows) < 0 ||
        read_unit(&k.unit, unit, where, err) < 0 || read_published(&k, published, where, err) < 0 ||
        check_expression(c, k.expression, where, err) < 0 ||
        read_follows(c, &k, follows, where, err) < 0)
        return -1;
    int verdict = recipe_word("verdict", expect, case_verdict_name, CASE_VERDICTS, &why);
    if (verdict < 0)
        return err_data(err, "%s.expect: %s", where, why.text);
    if (!(k.within > 0) || k.within > 100)
        return err_data(err, "%s.within: %g is outside 0..100", where, k.within);
    k.expect = (enum verdict_of)verdict;
    k.at_least = at_least;
    int rc = read_readings(c, &k, readings, where, err);
    MEM_PUSH(c->claim, c->claims) = k;
    return rc;
}

/* Read each item of an optional list. */
static int each(struct casefile *c, json_t *list, const char *key, size_t max,
                int (*read)(struct casefile *, json_t *, const char *, struct err *),
                struct err *err)
{
    size_t i;
    json_t *item;

    if (list && (!json_is_array(list) || json_array_size(list) > max))
        return err_data(err, "%s: \"%s\" is not a list of at most %zu", c->path, key, max);
    json_array_foreach(list, i, item)
    {
        char *where = mem_printf("%s: %s[%zu]", c->path, key, i);
        int rc = read(c, item, where, err);
        free(where);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int read_assumed(struct casefile *c, json_t *item, const char *where, struct err *err)
{
    if (!json_is_string(item))
        return err_data(err, "%s: not a text", where);
    MEM_PUSH(c->assumed, c->assumes) = json_string_value(item);
    return 0;
}

static int check_combinations(const struct casefile *c, struct err *err)
{
    int n = 1;

    for (int i = 0; i < c->unknowns; i++)
        n *= c->unknown[i].values;
    return n > CASE_COMBINATIONS_MAX ? err_data(err,
                                                "%s: the unknowns make %d combinations, more than "
                                                "%d",
                                                c->path, n, CASE_COMBINATIONS_MAX)
                                     : 0;
}

static int read_fitted(struct casefile *c, json_t *list, struct err *err)
{
    bool fitted[CASE_JOBS_MAX] = {false};
    char *where = mem_printf("%s: fitted", c->path);
    int rc = list ? read_names(c, fitted, list, where, err) : 0;

    for (int i = 0; i < c->jobs; i++)
        c->job[i].fitted = fitted[i];
    free(where);
    return rc;
}

/* Read c->root into the rest of c. */
static int case_read(struct casefile *c, const struct job_opts *base, struct err *err)
{
    json_t *source, *jobs, *assumed = NULL, *unknown = NULL, *solve = NULL, *claims, *fitted = NULL;
    const char *format;
    int version;
    char *where = mem_printf("%s: source", c->path);
    int rc = json_take(c->root, c->path, err, "{s:s, s:i, s:s, s:o, s:o, s:o, s?o, s?o, s?o, s?o}",
                       "format", &format, "version", &version, "title", &c->title, "source",
                       &source, "jobs", &jobs, "claims", &claims, "assumed", &assumed, "unknown",
                       &unknown, "solve", &solve, "fitted", &fitted);

    if (rc == 0)
        rc = json_take(source, where, err, "{s:s, s:s, s?s}", "publication", &c->publication,
                       "date", &c->date, "url", &c->url);
    free(where);
    if (rc < 0 || read_jobs(c, jobs, base, err) < 0 || read_fitted(c, fitted, err) < 0 ||
        each(c, assumed, "assumed", LIST_MAX, read_assumed, err) < 0 ||
        each(c, unknown, "unknown", CASE_UNKNOWNS_MAX, read_unknown, err) < 0 ||
        each(c, solve, "solve", CASE_UNKNOWNS_MAX, read_solve, err) < 0 ||
        each(c, claims, "claims", CASE_CLAIMS_MAX, read_claim, err) < 0)
        return -1;
    if (c->claims == 0)
        return err_data(err, "%s: claims: none", c->path);
    return check_combinations(c, err);
}

const char *const case_verdict_name[CASE_VERDICTS] = {"reproduced", "consistent", "undecided",
                                                      "direction wrong", "cannot follow"};
static const char *const basis_word[CASE_BASES] = {"predicted", "anchored", "fitted"};
static const char *const kind_name[CASE_KINDS] = {"time", "memory", "arithmetic"};

int case_parse(struct casefile *c, const char *text, size_t len, const char *path,
               const struct job_opts *base, struct err *err)
{
    *c = (struct casefile){.path = mem_strdup(path)};
    if (json_parse(&c->root, text, len, path, "railgauge-case", 1, err) < 0)
        return -1;
    return case_read(c, base, err);
}

static const char folder[] = "jobs/training/cases";

int case_names(char ***names)
{
    return file_data_names(folder, names);
}

int case_load(struct casefile *c, const char *name, const struct job_opts *base, struct err *err)
{
    struct near near = {.word = name};

    *c = (struct casefile){.path = file_data_named(folder, name)};
    if (!c->path) {
        file_data_each(folder, near_try, &near);
        return err_usage(err,
                         "no case \"%s\"%s in %s; or give a file with a \"/\" or \".json\" in its "
                         "name",
                         name, near_text(&near), folder);
    }
    c->constants = mem_calloc(1, sizeof(*c->constants));
    if (constants_load(c->constants, NULL, err) < 0 ||
        json_open(&c->root, c->path, "railgauge-case", 1, err) < 0)
        return -1;
    return case_read(c, base, err);
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
    if (c->constants)
        constants_free(c->constants);
    free(c->constants);
    json_decref(c->root);
    *c = (struct casefile){0};
}

/* JSON has no NaN; an unknown number is null. */
static json_t *claim_json(const struct case_claim *k)
{
    json_t *readings = json_array();

    for (int i = 0; i < k->readings; i++)
        json_array_append_new(readings, json_pack("{s:s, s:o}", "as", k->reading[i].text, "value",
                                                  json_finite(k->reading[i].value)));
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:s, s:s, s:o}", "claim",
        k->text, "kind", kind_name[k->kind], "value", k->expression, "unit", k->unit->name,
        "published", k->unit->fits ? json_boolean(k->published > 0) : json_finite(k->published),
        "ours", json_finite(k->ours), "lo", json_finite(k->lo), "hi", json_finite(k->hi), "off",
        json_finite(k->off), "factor", json_finite(k->factor), "choosers", k->choosers, "verdict",
        case_verdict_name[k->verdict], "expect", case_verdict_name[k->expect], "reason", k->reason,
        "readings", readings);
    if (k->note)
        json_object_set_new(o, "note", json_string(k->note));
    if (k->kind == CASE_TIME)
        json_object_set_new(o, "basis", json_string(basis_word[k->basis]));
    return o;
}

static json_t *job_json(const struct case_job *j)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "name", j->name, "model", j->opts.model,
                     "layout", j->opts.layout ? j->opts.layout : "dp=auto", "gpus", j->gpus,
                     "step_s", json_finite(j->sec), "memory_bytes", json_finite(j->bytes),
                     "capacity_bytes", j->capacity > 0 ? json_real(j->capacity) : json_null());
}

static json_t *case_json(const struct casefile *c)
{
    json_t *jobs = json_array(), *claims = json_array(), *solved = json_array(),
           *assumed = json_array();

    for (int i = 0; i < c->claims; i++)
        json_array_append_new(claims, claim_json(&c->claim[i]));
    for (int i = 0; i < c->jobs; i++)
        json_array_append_new(jobs, job_json(&c->job[i]));
    for (int i = 0; i < c->solves; i++)
        json_array_append_new(solved,
                              json_pack("{s:s, s:o, s:s}", "setting", c->solve[i].key, "found",
                                        json_finite(c->solve[i].found), "why", c->solve[i].why));
    for (int i = 0; i < c->assumes; i++)
        json_array_append_new(assumed, json_string(c->assumed[i]));
    json_t *together =
        json_pack("{s:i, s:i, s:s}", "held", c->held, "of", c->held_of, "unknowns", c->held_by);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "file", c->path, "title",
                     c->title, "publication", c->publication, "date", c->date, "assumed", assumed,
                     "solved", solved, "claims", claims, "together", together, "jobs", jobs);
}

/* {"time": {"reproduced": 3, ...}, ...} */
static json_t *counts_json(const int (*of)[CASE_VERDICTS], int n, const char *const *names)
{
    json_t *all = json_object();

    for (int k = 0; k < n; k++) {
        json_t *one = json_object();
        for (int v = 0; v < CASE_VERDICTS; v++)
            json_object_set_new(one, case_verdict_name[v], json_integer(of[k][v]));
        json_object_set_new(all, names[k], one);
    }
    return all;
}

json_t *cases_json(const struct casefile *c, int n)
{
    struct case_counts counts = cases_count(c, n);
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, case_json(&c[i]));
    return json_pack("{s:o, s:o, s:o}", "cases", list, "counts",
                     counts_json(counts.of, CASE_KINDS, kind_name), "times",
                     counts_json(counts.times, CASE_BASES, basis_word));
}
