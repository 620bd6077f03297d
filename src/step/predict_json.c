/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "step/predict.h"

char *predict_exception_text(char *buf, int size, const struct matrix *m, int exception)
{
    const struct exception *x = &m->exception[exception];
    enum part_state state = matrix_state(x);
    char part[MATRIX_PART], effect[MATRIX_EFFECT];
    const char *why = x->why ? x->why : "";

    matrix_part(m, x, part);
    if (state == STATE_WRONG)
        snprintf(buf, (size_t)size, "%s: %s", part, *why ? why : "wrong data");
    else
        snprintf(buf, (size_t)size, "%s: %s%s%s", part, matrix_effect(x, true, effect),
                 *why ? ", " : "", why);
    return buf;
}

static const char *const phase_name[PHASE_COUNT] = {"layer", "boundary", "forward", "backward"};

/* JSON has no NaN; an unknown number is null. */
static json_t *message_json(const struct term *t, const struct matrix *m)
{
    char axes[AXES_TEXT], text[320];

    json_t *o =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:s}", "axes", axes_text(axes, t->axes),
                  "op", op_name(t->op), "phase", phase_name[t->phase], "bytes",
                  json_finite(t->bytes), "count", json_finite(t->count), "one_s",
                  json_finite(t->one), "formula", t->formula, "slowest", t->slowest);
    json_object_set_new(o, "groups", json_integer(t->groups));
    json_object_set_new(o, "distinct", json_integer(t->distinct));
    json_object_set_new(o, "shape",
                        json_pack("{s:i, s:i, s:i, s:i, s:i}", "ranks", t->shape.ranks, "domains",
                                  t->shape.domains, "per_domain", t->shape.per_domain, "nodes",
                                  t->shape.nodes, "nics", t->shape.nics));
    if (t->exception >= 0)
        json_object_set_new(
            o, "exception",
            json_string(predict_exception_text(text, sizeof(text), m, t->exception)));
    return o;
}

static json_t *term_json(const struct term *t, const struct prediction *p, const struct matrix *m)
{
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s}", "kind", term_name[t->kind], "label",
                  t->label, "s", json_finite(t->sec), "share", json_finite(t->sec / p->sec),
                  "hidden_s", json_finite(t->hidden), "error_s", json_finite(t->error), "basis",
                  basis_name[t->basis], "source", t->source);

    if (t->kind == TERM_MESSAGE)
        json_object_set_new(o, "message", message_json(t, m));
    return o;
}

static json_t *memory_json(const struct memory *m)
{
    enum memory_fit fit = memory_fit(m);
    double e = memory_error(m, MEMORY_DEVICE);
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "total_bytes", json_finite(m->total),
        "lo_bytes", json_finite(m->total - e), "hi_bytes", json_finite(m->total + e),
        "reserved_bytes", json_finite(memory_of_kind(m, MEMORY_RESERVED)), "capacity_bytes",
        m->capacity > 0 ? json_finite(m->capacity) : json_null(), "fits",
        fit == MEMORY_MAY_NOT_FIT || !(m->capacity > 0) ? json_null()
                                                        : json_boolean(fit == MEMORY_FITS),
        "verdict", m->capacity > 0 ? json_string(memory_fit_text(m)) : json_null(), "stage",
        m->stage);
    json_t *parts = json_object();

    for (int i = 0; i < MEMORY_PARTS; i++)
        json_object_set_new(
            parts, memory_part[i].name,
            json_bytes(*(const double *)(const void *)((const char *)m + memory_part[i].at)));
    json_object_set_new(o, "parts", parts);
    return o;
}

/* null: no faster placement is known. */
static json_t *faster_json(const struct faster *f)
{
    return f->sec > 0 ? json_pack("{s:s, s:s, s:o, s:o}", "groups", f->groups, "option", f->option,
                                  "step_s", json_finite(f->sec), "racks",
                                  f->racks ? json_integer(f->racks) : json_null())
                      : json_null();
}

/* Levels that the question does not state have only their factor's deviation. */
static json_t *effects_json(const struct prediction *p)
{
    json_t *list = json_array();

    for (int i = 0; i < p->effects; i++) {
        const struct effect_level *e = &p->effect[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o, s:o, s:i}", "factor",
                                              effect_factor_name[e->factor], "level", e->level,
                                              "known", e->known, "value", json_finite(e->value),
                                              "error", json_finite(e->error), "n", e->n));
    }
    return list;
}

json_t *predict_json(const struct prediction *p, const struct matrix *m)
{
    json_t *terms = json_array(), *notes = json_array();

    for (int i = 0; i < p->terms; i++)
        json_array_append_new(terms, term_json(&p->term[i], p, m));
    for (int i = 0; i < p->notes; i++)
        json_array_append_new(notes, json_string(p->note[i]));
    json_t *o = json_pack("{s:s, s:i, s:o, s:s, s:s, s:s, s:i, s:i}", "format",
                          "railgauge-prediction", "version", 1, "provenance", json_provenance(),
                          "model", p->model, "layout", p->layout, "strategy", p->strategy, "ranks",
                          p->ranks, "microbatches", p->microbatches);
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"step_s", p->sec},
                   {"lo_s", p->lo},
                   {"hi_s", p->hi},
                   {"compute_s", p->compute},
                   {"exposed_s", p->exposed},
                   {"hidden_s", p->hidden},
                   {"bubble_share", p->bubble_share},
                   {"tokens", p->tokens},
                   {"tokens_per_s_per_gpu", p->tokens_per_gpu},
                   {"model_flops", p->model_flops},
                   {"mfu", p->mfu}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_object_set_new(o, numbers[i].key, json_finite(numbers[i].value));
    json_object_set_new(o, "mfu_causal", json_boolean(p->causal));
    json_object_set_new(o, "anchored", json_boolean(p->anchored));
    if (m->topo.endpoints && m->topo.endpoint[0].kind != ENDPOINT_GPU)
        json_object_set_new(o, "devices", json_string("cpu"));
    json_object_set_new(o, "compute_rate",
                        json_pack("{s:o, s:o, s:o, s:s, s:s}", "linear_flops",
                                  json_finite(p->rate.of[WORK_LINEAR]), "core_flops",
                                  json_finite(p->rate.of[WORK_CORE]), "peak_flops",
                                  json_finite(p->rate.peak), "basis", basis_name[p->rate.basis],
                                  "source", p->rate.source));
    json_object_set_new(o, "effects", effects_json(p));
    json_object_set_new(o, "known", json_string(known_name[p->known]));
    json_object_set_new(o, "memory", memory_json(&p->memory));
    json_object_set_new(o, "faster_placement", faster_json(&p->faster));
    json_object_set_new(o, "terms", terms);
    json_object_set_new(o, "notes", notes);
    return o;
}
