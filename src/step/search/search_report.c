/* SPDX-License-Identifier: BSD-3-Clause */
/* search_report.c - explain why one layout is faster than another, and write JSON. */
#include "step/search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

/* Comparison of two layouts term by term, with the cause of each difference. */

enum why_part {
    WHY_COMPUTE,
    WHY_TP,
    WHY_CP,
    WHY_EP,
    WHY_PP,
    WHY_WEIGHTS,
    WHY_GRADIENTS,
    WHY_BUBBLE,
    WHY_OPTIMIZER,
    WHY_PARTS
};

/* One layout in a comparison. */
struct compared {
    const struct search_candidate *c;
    struct eval *eval;
    struct evaluation v;
    double part[WHY_PARTS]; /* s of the step */
};

static enum why_part part_of(const struct message *m)
{
    switch (m->exposure) {
    case EXPOSE_TP:
    case EXPOSE_TP_PLAIN:
        return WHY_TP;
    case EXPOSE_CP:
        return WHY_CP;
    case EXPOSE_EP:
    case EXPOSE_EP_OVERLAP:
        return WHY_EP;
    case EXPOSE_PP:
    case EXPOSE_PP_INTERLEAVED:
        return WHY_PP;
    default:
        return m->op == OP_ALL_GATHER ? WHY_WEIGHTS : WHY_GRADIENTS;
    }
}

static void take_apart(struct compared *s, struct eval *e, const struct search_candidate *c)
{
    const struct timing *t = &s->v.timing;

    memset(s, 0, sizeof(*s));
    s->c = c;
    s->eval = e;
    eval_candidate(&s->v, e, &c->layout, &c->recipe);
    s->part[WHY_COMPUTE] = t->compute;
    for (int i = 0; i < s->v.traffic.messages; i++)
        s->part[part_of(&s->v.traffic.message[i])] += t->seen[i];
    s->part[WHY_BUBBLE] = t->bubble;
    s->part[WHY_OPTIMIZER] = t->optimizer;
}

/* Write "tp=8 inside a domain", "tp=16 over 2 domains" or "no tp", for the group with the most
 * domains. */
static void axis_words(char *buf, size_t size, const struct compared *s, enum axis axis)
{
    struct span span = layout_span(&s->c->layout, AXIS_BIT(axis));
    int domains = 1;

    if (span.size < 2) {
        snprintf(buf, size, "no %s", axis_name[axis]);
        return;
    }
    const struct groups *g = pricer_groups(s->eval->pricer, span);
    for (int k = 0; k < g->kinds; k++)
        if (g->kind[k].ring.shape.domains > domains)
            domains = g->kind[k].ring.shape.domains;
    if (domains == 1)
        snprintf(buf, size, "%s=%d inside a domain", axis_name[axis], span.size);
    else
        snprintf(buf, size, "%s=%d over %d domains", axis_name[axis], span.size, domains);
}

static void compute_words(char *buf, size_t size, const struct compared *s)
{
    const struct recipe *r = &s->c->recipe;

    snprintf(buf, size, "recompute %s, micro batch %d", recipe_name.recompute[r->recompute],
             r->micro_batch);
}

static void state_words(char *buf, size_t size, const struct compared *s)
{
    const struct recipe *r = &s->c->recipe;
    struct span span = layout_span(&s->c->layout, layout_data_axes(&s->c->layout, false));
    int microbatches = layout_microbatches(&s->c->layout, r);

    if (span.size < 2)
        snprintf(buf, size, "no copies");
    else if (recipe_gathers_weights(r))
        snprintf(buf, size, "%s of %d, %d time%s a step", recipe_name.strategy[r->strategy],
                 span.size, microbatches, microbatches == 1 ? "" : "s");
    else
        snprintf(buf, size, "%s of %d", recipe_name.strategy[r->strategy], span.size);
}

static void bubble_words(char *buf, size_t size, const struct compared *s)
{
    const struct recipe *r = &s->c->recipe;
    int microbatches = layout_microbatches(&s->c->layout, r), pp = s->c->layout.size[AXIS_PP];

    if (pp < 2)
        snprintf(buf, size, "no pipeline");
    else
        snprintf(buf, size, "pp=%d, %d stage%s a rank, %d microbatch%s", pp, r->stages,
                 r->stages == 1 ? "" : "s", microbatches, microbatches == 1 ? "" : "es");
}

static void shard_words(char *buf, size_t size, const struct compared *s)
{
    const struct layout *l = &s->c->layout;

    snprintf(buf, size, "states shared by %d",
             layout_span(l, layout_shard_axes(l, &s->c->recipe, false)).size);
}

static const struct {
    const char *name;
    void (*words)(char *buf, size_t size, const struct compared *s); /* NULL: words of the axis */
    enum axis axis;
} parts[WHY_PARTS] = {
    [WHY_COMPUTE] = {"compute", .words = compute_words},
    [WHY_TP] = {"tp messages", .axis = AXIS_TP},
    [WHY_CP] = {"cp messages", .axis = AXIS_CP},
    [WHY_EP] = {"all_to_all", .axis = AXIS_EP},
    [WHY_PP] = {"pp messages", .axis = AXIS_PP},
    [WHY_WEIGHTS] = {"weights", .words = state_words},
    [WHY_GRADIENTS] = {"gradients", .words = state_words},
    [WHY_BUBBLE] = {"bubble", .words = bubble_words},
    [WHY_OPTIMIZER] = {"optimizer", .words = shard_words},
};

static void part_words(char *buf, size_t size, const struct compared *s, enum why_part p)
{
    if (parts[p].words)
        parts[p].words(buf, size, s);
    else
        axis_words(buf, size, s, parts[p].axis);
}

static void say(char *buf, size_t *used, const char *text)
{
    int n = snprintf(buf + *used, SEARCH_REASON - *used, "%s", text);

    *used += (size_t)n < SEARCH_REASON - *used ? (size_t)n : SEARCH_REASON - 1 - *used;
}

static void say_part(char *buf, size_t *used, const struct compared *a, const struct compared *b,
                     enum why_part p, const char *joint)
{
    char mine[80], theirs[80], text[280], sec[UNITS_TEXT];
    double more = a->part[p] - b->part[p];

    part_words(mine, sizeof(mine), a, p);
    part_words(theirs, sizeof(theirs), b, p);
    units_seconds_text(sec, fabs(more));
    if (strcmp(mine, theirs) != 0)
        snprintf(text, sizeof(text), "%s%s %s %s (%s; there %s)", joint, sec,
                 more < 0 ? "less" : "more", parts[p].name, mine, theirs);
    else
        snprintf(text, sizeof(text), "%s%s %s %s", joint, sec, more < 0 ? "less" : "more",
                 parts[p].name);
    say(buf, used, text);
}

/* Largest first, gains before losses. */
static int say_sign(char *buf, size_t *used, const struct compared *a, const struct compared *b,
                    double sign, double least, const char *first)
{
    bool said[WHY_PARTS] = {false};
    int count = 0;

    for (;; count++) {
        int most = -1;
        double top = least;
        for (int p = 0; p < WHY_PARTS; p++) {
            double d = sign * (a->part[p] - b->part[p]);
            if (!said[p] && d > top) {
                top = d;
                most = p;
            }
        }
        if (most < 0)
            return count;
        said[most] = true;
        say_part(buf, used, a, b, (enum why_part)most, count ? ", " : first);
    }
}

char *search_compare(char buf[SEARCH_REASON], struct eval *e, const struct search_candidate *a,
                     const struct search_candidate *b)
{
    struct compared *x = mem_calloc(2, sizeof(*x)), *y = x + 1;
    double least = 0;
    size_t used = 0;

    buf[0] = '\0';
    take_apart(x, e, a);
    take_apart(y, e, b);
    for (int p = 0; p < WHY_PARTS; p++) /* leave out parts below a tenth of the largest */
        least = fmax(least, 0.1 * fabs(x->part[p] - y->part[p]));
    int gains = say_sign(buf, &used, x, y, -1, least, "");
    int losses = say_sign(buf, &used, x, y, 1, least, gains ? ", but " : "");
    if (gains + losses == 0)
        say(buf, &used, "the same time in every term");
    free(x);
    return buf;
}

/* --- nothing found --- */

int search_none_runs(const struct search *s, struct err *err)
{
    int most = 0;

    if (s->unknown)
        return err_set(err,
                       "no layout of %d GPUs can be priced: %ld need a cost that the matrix "
                       "does not have",
                       s->ranks, s->unknown);
    if (s->dead)
        return err_set(err, "no layout of %d GPUs runs: %ld need a dead part", s->ranks, s->dead);
    if (s->unfit)
        return err_code(err, EXIT_BELOW,
                        "none of %ld layouts and recipes fits in the %.1f GB of a GPU", s->unfit,
                        s->capacity / 1e9);
    if (!s->count.meshes)
        return err_usage(err, "no layout of %d GPUs meets the constraints", s->ranks);
    for (int i = 1; i < REFUSALS; i++)
        if (s->count.refused[i] > s->count.refused[most])
            most = i;
    if (s->count.refused_candidates)
        return err_usage(err,
                         "no layout of %d GPUs meets the constraints: of %ld recipes no "
                         "stages and micro batch divide layers and batch",
                         s->ranks, s->count.refused_candidates);
    return err_usage(err,
                     "no layout of %d GPUs divides the model: of %ld most, %ld, are refused "
                     "because %s",
                     s->ranks, s->count.meshes, s->count.refused[most], refusal_name[most]);
}

/* --- JSON --- */

/* Write every argument by its key: numbers and switches as such, words as text. */
static json_t *recipe_json(const struct recipe *r)
{
    json_t *o = json_object();

    for (const struct argument *a = recipe_argument; a->key; a++) {
        const void *at = (const char *)r + a->at;
        json_t *value;
        if (a->kind == ARGUMENT_INT)
            value = json_integer(*(const int *)at);
        else if (a->kind == ARGUMENT_SWITCH)
            value = json_boolean(*(const bool *)at);
        else if (a->kind == ARGUMENT_WORD)
            value = json_string(a->words[*(const int *)at]);
        else
            value = json_finite(*(const double *)at);
        json_object_set_new(o, a->key, value);
    }
    return o;
}

static json_t *axes_json(const struct layout *l)
{
    json_t *o = json_object();

    for (int i = AXIS_COUNT - 1; i >= 0; i--)
        if (i != AXIS_EDP)
            json_object_set_new(o, axis_name[i], json_integer(l->size[i]));
    return o;
}

static json_t *terms_json(const struct search_finalist *f)
{
    json_t *list = json_array();
    char axes[AXES_TEXT];

    for (int i = 0; i < f->step.terms; i++) {
        const struct term *t = &f->step.term[i];
        json_t *o = json_pack("{s:s, s:s, s:o, s:o}", "kind", term_name[t->kind], "label", t->label,
                              "s", json_finite(t->sec), "hidden_s", json_finite(t->hidden));
        if (t->kind == TERM_MESSAGE)
            json_object_set_new(o, "axes", json_string(axes_text(axes, t->axes)));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *finalist_json(const struct search_finalist *f)
{
    const struct search_candidate *c = &f->candidate;

    return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:s, "
                     "s:b, s:o, s:o}",
                     "layout", f->step.layout, "axes", axes_json(&c->layout), "mesh_order",
                     order_name[c->layout.order], "family", f->family, "step_s",
                     json_finite(f->step.sec), "lo_s", json_finite(f->step.lo), "hi_s",
                     json_finite(f->step.hi), "over_fastest", json_finite(f->over), "over_error",
                     json_finite(f->error), "alike", f->alike, "table_step_s", json_finite(c->sec),
                     "tokens_per_s_per_gpu", json_finite(f->step.tokens_per_gpu), "mfu",
                     json_finite(f->step.mfu), "memory_bytes", json_finite(c->bytes),
                     "memory_verdict", memory_fit_text(&f->step.memory), "front", f->front,
                     "recipe", recipe_json(&c->recipe), "terms", terms_json(f));
}

static json_t *list_json(const struct search_finalist *f, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, finalist_json(&f[i]));
    return list;
}

static json_t *why_json(const struct search *s)
{
    json_t *list = json_array();
    int next = s->whys - s->rivals;

    for (int i = 0; i < s->whys; i++) {
        const struct search_finalist *f = i < next ? &s->best[1] : &s->rival[i - next];
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s}", "against", f->step.layout,
                                              "family", f->family, "slower_s",
                                              json_finite(f->step.sec - s->best[0].step.sec),
                                              "text", s->why[i]));
    }
    return list;
}

/* "tp" */
static const char *const refusal_key[REFUSALS] = {"tp", "cp", "pp", "experts", "batch", "other"};

static json_t *walk_json(const struct search *s)
{
    json_t *refused = json_object();

    for (int i = 0; i < REFUSALS; i++)
        json_object_set_new(refused, refusal_key[i], json_integer(s->count.refused[i]));
    return json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "meshes",
                     (json_int_t)s->count.meshes, "refused_meshes", refused, "candidates",
                     (json_int_t)s->count.candidates, "refused_settings",
                     (json_int_t)s->count.refused_candidates, "priced", (json_int_t)s->priced,
                     "bounded", (json_int_t)s->bounded, "do_not_fit", (json_int_t)s->unfit,
                     "may_fit", (json_int_t)s->may_fit, "dead", (json_int_t)s->dead, "unknown",
                     (json_int_t)s->unknown, "seconds", s->sec);
}

json_t *search_json(const struct search *s, const char *model, const char *command)
{
    return json_pack("{s:s, s:i, s:o, s:s, s:i, s:i, s:i, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
                     "format", "railgauge-search", "version", 1, "provenance", json_provenance(),
                     "model", model, "ranks", s->ranks, "batch", s->batch, "seq", s->seq,
                     "capacity_bytes", s->capacity > 0 ? json_real(s->capacity) : json_null(),
                     "command", command, "best", list_json(s->best, s->bests), "front",
                     list_json(s->front, s->fronts), "rivals", list_json(s->rival, s->rivals),
                     "why", why_json(s), "walk", walk_json(s));
}
