/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/anchor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "calibrate/batch_impl.h"
#include "step/search/eval.h"

/* --- comparison of anchor and question --- */

/* Arguments of a recipe that select software: an anchor with another value is less reliable. */
static const char *const of_software[] = {"dtype", "stack", "lora", "recompute"};

/* List the differences in words, "" for none.  Returns their number. */
static int differences(char *buf, size_t size, const struct anchor *a, const struct question *q,
                       const char *release)
{
    int n = 0;
    size_t used = 0;

    buf[0] = '\0';
    if (strcmp(a->model, q->model->name) != 0 && ++n)
        used += (size_t)snprintf(buf, size, "model %s", a->model);
    for (size_t i = 0; i < sizeof(of_software) / sizeof(*of_software); i++) {
        char mine[64], its[64];
        const struct argument *x = argument_find(recipe_argument, of_software[i]);
        argument_get(its, sizeof(its), &a->recipe, x);
        argument_get(mine, sizeof(mine), q->recipe, x);
        bool open = !strcmp(mine, "any");
        if (!open && strcmp(its, mine) != 0 && ++n && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "",
                                     of_software[i], its);
    }
    if (release && a->release && strcmp(release, a->release) != 0 && ++n && used < size)
        snprintf(buf + used, size - used, "%srelease %s", used ? ", " : "", a->release);
    return n;
}

static bool beyond_software(const struct anchor *a)
{
    return a->stretch < STRETCH_TRUST_MIN || a->stretch > STRETCH_TRUST_MAX;
}

int anchor_apply(const struct anchor *a, struct question *q, const char *release, struct err *err)
{
    const char *gpu = q->fabric ? q->fabric->gpu.name : NULL;
    const struct effects *e = &q->constants->effects;
    double alone = fmax(e->rest, hypot(e->spread[EFFECT_RELEASE], e->spread[EFFECT_MODEL_RELEASE]));
    char buf[256];

    if (gpu && a->gpu && strcmp(gpu, a->gpu) != 0)
        return err_set(err,
                       "anchor %s was measured on %s and the question is about %s: what one step "
                       "says of its software does not carry over to another GPU",
                       a->name, a->gpu, gpu);
    q->stretch = a->stretch;
    int n = differences(buf, sizeof(buf), a, q, release);
    q->doubt = alone * sqrt(n + (beyond_software(a) ? 4 : 0));
    return 0;
}

void anchor_notes(struct prediction *p, const struct anchor *a, const struct question *q,
                  const char *release, double without)
{
    char measured[UNITS_TEXT], predicted[UNITS_TEXT], was[UNITS_TEXT], buf[160];

    predict_note(p,
                 "anchor %.100s: %s measured, %s predicted without it; without it this step is %s",
                 a->name, units_seconds_text(measured, a->measured),
                 units_seconds_text(predicted, a->predicted), units_seconds_text(was, without));
    if (differences(buf, sizeof(buf), a, q, release))
        predict_note(p, "the anchor is of another recipe (%s): the interval is wider", buf);
    if (beyond_software(a))
        predict_note(
            p,
            "the anchor makes compute take %.3g of its time: no software explains that, so "
            "the set-ups may differ in more than is said; the interval is wider",
            a->stretch);
}

static double seconds_of(void *ctx, double stretch)
{
    struct question q = *(const struct question *)ctx;
    struct prediction p;

    q.stretch = stretch;
    double sec = predict_step(&p, &q, NULL) < 0 ? NAN : p.sec;
    prediction_free(&p);
    return sec;
}

/* Set everything except name, release and measured, from the question that was measured. */
static int solve(struct anchor *a, const struct question *q, struct err *err)
{
    struct question asked = *q;
    struct prediction p;

    a->model = mem_strdup(q->model->name);
    a->gpu = q->fabric ? mem_strdup(q->fabric->gpu.name) : NULL;
    a->recipe = *q->recipe;
    int rc = predict_step(&p, q, err);
    a->predicted = p.sec;
    prediction_free(&p);
    if (rc == 0)
        rc = timing_stretch(&a->stretch, seconds_of, &asked, a->measured, err);
    return rc < 0 ? err_wrap(err, "anchor %s", a->name) : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* --- a row of a table --- */

/* Returns the row with this id; -1: none. */
static int batch_find(const struct batch *b, const char *id)
{
    for (int i = 0; i < b->rows; i++)
        if (!strcmp(b->row[i].id, id))
            return i;
    return -1;
}

static int open_row(struct anchor *a, const char *table, const char *id, const struct constants *c,
                    struct err *err)
{
    struct batch b;

    a->name = mem_printf("row %s of %s", id, base_name(table));
    int rc = batch_load(&b, table, err);
    int at = rc == 0 ? batch_find(&b, id) : -1;
    if (rc == 0 && at < 0)
        rc = err_data(err, "%s: no row has the id \"%s\"", table, id);
    if (rc == 0) {
        batch_resolve_row(&b, at, c);
        const struct batch_row *r = &b.row[at];
        if (r->status != BATCH_PREDICTED) {
            rc = err_set(err, "anchor %s: %s", a->name, r->reason);
        } else {
            struct question q = batch_question(r, c);
            a->measured = r->measured;
            a->release = mem_strdup(r->release);
            rc = solve(a, &q, err);
        }
    }
    batch_free(&b);
    return rc;
}

/* --- a file --- */

static int set_job(struct job_opts *o, json_t *job, const char *path, struct err *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(job))
        return err_data(err, "%s: \"job\" is not an object", path);
    json_object_foreach(job, key, value)
    {
        struct err why;
        if (!json_is_string(value))
            return err_data(err, "%s: job: \"%s\" is not a text", path, key);
        if (job_set(o, key, json_string_value(value), &why) < 0)
            return err_data(err, "%s: job: %s", path, why.text);
    }
    return 0;
}

static int read_file(struct anchor *a, json_t *root, const char *path, const struct constants *c,
                     struct err *err)
{
    const char *format, *release = NULL, *matrix = NULL;
    json_t *provenance = NULL, *job, *number;
    struct job_opts o;
    struct job j;
    int version;

    job_defaults(&o);
    if (json_take(root, path, err, "{s:s, s:i, s?o, s:o, s?s, s?s, s:o}", "format", &format,
                  "version", &version, "provenance", &provenance, "seconds", &number, "release",
                  &release, "matrix", &matrix, "job", &job) < 0 ||
        json_number(root, path, "seconds", 1e-9, 1e9, 0, &a->measured, err) < 0 ||
        set_job(&o, job, path, err) < 0)
        return -1;
    o.matrix = matrix;
    o.constants = c->path;
    a->release = release ? mem_strdup(release) : NULL;
    int rc = job_open(&j, &o, err);
    if (rc < 0) {
        err_wrap(err, "anchor %s", path);
    } else {
        struct question q = job_question(&j, &o);
        q.constants = c;
        q.release = a->release;
        rc = solve(a, &q, err);
    }
    job_free(&j);
    return rc;
}

static int open_file(struct anchor *a, const char *path, const struct constants *c, struct err *err)
{
    json_t *root = NULL;

    a->name = mem_strdup(base_name(path));
    int rc = json_open(&root, path, "railgauge-anchor", 1, err);
    if (rc == 0)
        rc = read_file(a, root, path, c, err);
    json_decref(root);
    return rc;
}

int anchor_open(struct anchor *a, const char *text, const struct constants *c, struct err *err)
{
    const char *row = strstr(text, ".tsv:");

    memset(a, 0, sizeof(*a));
    if (!row)
        return open_file(a, text, c, err);
    char *table = mem_printf("%.*s", (int)(row + 4 - text), text);
    int rc = open_row(a, table, row + 5, c, err);
    free(table);
    return rc;
}

void anchor_free(struct anchor *a)
{
    free(a->name);
    free(a->model);
    free(a->gpu);
    free(a->release);
    memset(a, 0, sizeof(*a));
}

/* --- saving --- */

static void put(json_t *job, const char *key, const char *text)
{
    json_object_set_new(job, key, json_string(text));
}

/* True if the argument was given for the measured step and is not written separately below. */
static bool is_kept(const struct job_opts *o, const struct argument *a)
{
    static const char *const not_kept[] = {"layout", "gpus", "accumulation", "constants", "order"};

    for (size_t i = 0; i < sizeof(not_kept) / sizeof(*not_kept); i++)
        if (!strcmp(a->key, not_kept[i]))
            return false;
    return a->kind == ARGUMENT_WORD || argument_given(o, a);
}

static json_t *job_json(const struct job_opts *o, const struct job *j)
{
    struct recipe usual;
    char text[256], was[256];
    json_t *job = json_object();

    recipe_defaults(&usual);
    for (const struct argument *a = job_argument; a->key; a++)
        if (is_kept(o, a))
            put(job, a->key, argument_get(text, sizeof(text), o, a));
    put(job, "layout", layout_text(text, sizeof(text), &j->layout));
    if (o->place.order)
        put(job, "order", o->place.order);
    for (const struct argument *a = recipe_argument; a->key; a++) {
        argument_get(text, sizeof(text), &o->recipe, a);
        if (strcmp(text, argument_get(was, sizeof(was), &usual, a)) != 0)
            put(job, a->key, text);
    }
    return job;
}

int anchor_save(const struct job_opts *o, const struct job *j, double seconds, const char *release,
                const char *path, struct err *err)
{
    json_t *root = json_pack("{s:s, s:i, s:o, s:f, s:s*, s:s*, s:o}", "format", "railgauge-anchor",
                             "version", 1, "provenance", json_provenance(), "seconds", seconds,
                             "release", release, "matrix", o->matrix, "job", job_json(o, j));
    int rc = json_save(root, path, err);

    json_decref(root);
    return rc;
}

/* --- rows of a table as anchors of each other --- */

struct anchor_solving {
    const struct batch_row *row;
    const struct constants *constants;
};

static double seconds_with(void *ctx, double stretch)
{
    const struct anchor_solving *s = ctx;

    return batch_seconds(s->row, s->constants, stretch, NULL);
}

/* Negative: a is the better anchor. */
static int anchor_order(const struct batch_row *a, const struct batch_row *b)
{
    bool a_test = batch_is_test(a), b_test = batch_is_test(b);

    if (a->gpus != b->gpus)
        return a->gpus < b->gpus ? -1 : 1;
    if (a->recipe.global_batch != b->recipe.global_batch)
        return a->recipe.global_batch < b->recipe.global_batch ? -1 : 1;
    return (int)a_test - (int)b_test;
}

static const char *key_of(const struct batch_row *r, bool same_layout)
{
    return same_layout ? r->same : r->family;
}

/* Returns the factor on compute that makes the prediction equal the measurement; NAN if none
 * does. */
static double anchor_stretch(const struct batch_row *r, const struct constants *c)
{
    struct anchor_solving s = {r, c};
    double stretch;

    return timing_stretch(&stretch, seconds_with, &s, r->measured, NULL) < 0 ? NAN : stretch;
}

/* List the rows that may anchor row i: same key, smallest job. */
static int *smallest(const struct batch *b, int i, bool same_layout, int *count)
{
    const char *key = key_of(&b->row[i], same_layout);
    int *at = NULL, n = 0;

    for (int k = 0; k < b->rows; k++) {
        const struct batch_row *r = &b->row[k];
        if (r->status != BATCH_PREDICTED || strcmp(key_of(r, same_layout), key) != 0)
            continue;
        int order = n ? anchor_order(r, &b->row[at[0]]) : 0;
        if (order < 0)
            n = 0;
        if (order <= 0)
            MEM_PUSH(at, n) = k;
    }
    *count = n;
    return at;
}

/* Move the rows of the job measured most often to the front of n.  Returns their number. */
static int most_measured(const struct batch *b, int *at, int n)
{
    int best = 0, most = 0, kept = 0;

    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int k = 0; k < n; k++)
            same += !strcmp(b->row[at[i]].job, b->row[at[k]].job);
        if (same > most) {
            most = same;
            best = at[i];
        }
    }
    for (int i = 0; i < n; i++)
        if (!strcmp(b->row[at[i]].job, b->row[best].job))
            at[kept++] = at[i];
    return kept;
}

/* Returns the median of several measurements, because a single machine may be odd. */
static int middle(const struct batch *b, const int *at, int n)
{
    for (int i = 0; i < n; i++) {
        int below = 0;
        for (int k = 0; k < n; k++) {
            double x = b->row[at[k]].measured, y = b->row[at[i]].measured;
            below += x < y || (x == y && k < i);
        }
        if (below == (n - 1) / 2)
            return at[i];
    }
    return at[0];
}

static int anchor_of(const struct batch *b, int i, bool same_layout)
{
    int n, *at = smallest(b, i, same_layout, &n), anchor = i;

    n = most_measured(b, at, n);
    if (n)
        anchor = middle(b, at, n);
    free(at);
    return anchor;
}

/* Returns the stretch that solves row k; if compute alone cannot, -ratio, which scales the whole
 * step. */
static double solve_row(const struct batch *b, int k, const struct constants *c)
{
    double stretch = anchor_stretch(&b->row[k], c);

    return isnan(stretch) ? -b->row[k].measured / b->row[k].predicted : stretch;
}

static double apply_row(const struct batch_row *r, const struct constants *c, double solved)
{
    return solved > 0 ? batch_seconds(r, c, solved, NULL) : r->predicted * -solved;
}

static void remark_stretch(struct batch_row *r, double solved)
{
    if (solved < 0)
        batch_remark(r, "compute alone cannot meet the anchor: the whole step is scaled by %.3f",
                     -solved);
    else if (solved < STRETCH_TRUST_MIN || solved > STRETCH_TRUST_MAX)
        batch_remark(r, "the anchor stretches compute by %.3g: that is no matter of software",
                     solved);
}

void anchor_row(struct batch *b, int row, const struct constants *c, double *solved)
{
    struct batch_row *r = &b->row[row];

    if (r->status != BATCH_PREDICTED)
        return;
    r->anchor = anchor_of(b, row, false);
    r->same_anchor = anchor_of(b, row, true);
    for (int k = 0; k < 2; k++) {
        int at = k ? r->same_anchor : r->anchor;
        if (!solved[at])
            solved[at] = solve_row(b, at, c);
        *(k ? &r->same_anchored : &r->anchored) = apply_row(r, c, solved[at]);
    }
    r->stretch = solved[r->anchor] > 0 ? solved[r->anchor] : NAN;
    remark_stretch(r, solved[r->anchor]);
}

void anchor_batch(struct batch *b, const struct constants *c)
{
    double *solved = mem_calloc((size_t)b->rows + 1, sizeof(*solved));

    for (int i = 0; i < b->rows; i++)
        anchor_row(b, i, c, solved);
    free(solved);
}
