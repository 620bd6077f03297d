/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/json.h"
#include "step/search/search.h"

/* JSON has no NaN; an unknown number is null. */
/* Every setting by its key: numbers and switches as such, words as text. */
static json_t *recipe_json(const struct recipe *r)
{
    json_t *o = json_object();

    for (int i = 0; i < recipe_settings; i++) {
        const struct setting *s = &recipe_setting[i];
        const void *at = (const char *)r + s->at;
        json_t *value;
        if (s->kind == SETTING_INT)
            value = json_integer(*(const int *)at);
        else if (s->kind == SETTING_SWITCH)
            value = json_boolean(*(const bool *)at);
        else if (s->kind == SETTING_WORD)
            value = json_string(s->words[*(const int *)at]);
        else
            value = json_finite(*(const double *)at);
        json_object_set_new(o, s->key, value);
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

    for (int i = 0; i < f->terms; i++) {
        const struct search_term *t = &f->term[i];
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

    return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}",
                     "layout", f->layout, "axes", axes_json(&c->layout), "mesh_order",
                     order_name[c->layout.order], "family", f->family, "step_s",
                     json_finite(f->sec), "lo_s", json_finite(f->lo), "hi_s", json_finite(f->hi),
                     "table_step_s", json_finite(c->sec), "tokens_per_s_per_gpu",
                     json_finite(f->tokens_per_gpu), "mfu", json_finite(f->mfu), "memory_bytes",
                     json_finite(c->bytes), "front", f->front, "recipe", recipe_json(&c->recipe),
                     "terms", terms_json(f));
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
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s}", "against", f->layout, "family", f->family,
                            "slower_s", json_finite(f->sec - s->best[0].sec), "text", s->why[i]));
    }
    return list;
}

static json_t *walk_json(const struct search *s)
{
    json_t *refused = json_object();

    for (int i = 0; i < REFUSALS; i++)
        json_object_set_new(refused, refusal_key[i], json_integer(s->count.refused[i]));
    return json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "meshes",
                     (json_int_t)s->count.meshes, "refused_meshes", refused, "candidates",
                     (json_int_t)s->count.settings, "refused_settings",
                     (json_int_t)s->count.refused_settings, "priced", (json_int_t)s->priced,
                     "do_not_fit", (json_int_t)s->unfit, "dead", (json_int_t)s->dead, "unknown",
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
