/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "cost/matrix_impl.h"

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

static json_t *pack_curve(const struct curve *c)
{
    json_t *points = json_array();

    for (int i = 0; i < c->points; i++) {
        const struct curve_point *p = &c->point[i];
        json_array_append_new(points,
                              json_pack("[f,f,f,f,i]", p->bytes, p->sec, p->lo, p->hi, p->n));
    }
    return json_pack("{s:f, s:f, s:o}", "alpha_s", c->alpha, "beta_s_per_B", c->beta, "points",
                     points);
}

json_t *coverage_pack(const struct tier *t)
{
    return json_pack("{s:I, s:I, s:i}", "measured_pairs", (json_int_t)llround(t->measured),
                     "possible_pairs", (json_int_t)llround(t->possible), "partners", t->partners);
}

static json_t *pack_tier(const struct tier *t)
{
    json_t *same = json_array(), *curves = json_object();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (t->rule.same & 1u << l)
            json_array_append_new(same, json_string(level_name[l]));
    for (int d = 0; d < DIR_COUNT; d++)
        if (t->curve[d].points)
            json_object_set_new(curves, direction_name[d], pack_curve(&t->curve[d]));
    json_t *out = json_pack("{s:s, s:o, s:s, s:i, s:f, s:f, s:b, s:o}", "name", t->rule.name,
                            "same", same, "basis", basis_name[t->basis], "pairs", t->pairs,
                            "spread", isnan(t->spread) ? 0 : t->spread, "peak_Bps", t->peak_Bps,
                            "nic", t->nic, "curves", curves);
    if (t->latency_spread > 0)
        json_object_set_new(out, "latency_spread", json_real(t->latency_spread));
    if (!isnan(t->loaded))
        json_object_set_new(out, "loaded", json_real(t->loaded));
    if (t->possible > 0)
        json_object_set_new(out, "coverage", coverage_pack(t));
    set_text(out, "source", t->source);
    return out;
}

static json_t *pack_collective(const struct collective *c)
{
    json_t *out =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:o}", "op", op_name(c->op), "ranks",
                  c->shape.ranks, "domains", c->shape.domains, "per_domain", c->shape.per_domain,
                  "nodes", c->shape.nodes, "nics", c->shape.nics, "racks", c->shape.racks, "basis",
                  basis_name[c->basis], "curve", pack_curve(&c->curve));

    if (c->crossings)
        json_object_set_new(out, "crossings", json_integer(c->crossings));
    if (c->at_once)
        json_object_set_new(out, "at_once", json_integer(c->at_once));
    set_text(out, "source", c->source);
    return out;
}

static json_t *pack_exception(const struct matrix *m, const struct exception *e)
{
    json_t *out = json_pack("{s:s, s:s, s:i, s:f, s:f, s:i}", "part", part_name[e->part], "side",
                            side_name[e->side], "a", e->a, "factor", e->factor, "alpha_add_s",
                            e->alpha_add, "evidence", e->evidence);

    if (e->b >= 0)
        json_object_set_new(out, "b", json_integer(e->b));
    if (e->wrong)
        json_object_set_new(out, "wrong", json_true());
    if (e->tier >= 0)
        set_text(out, "tier", m->tier[e->tier].rule.name);
    set_text(out, "why", e->why);
    return out;
}

static json_t *pack_kernels(const struct matrix *m)
{
    json_t *list = json_array();

    for (int i = 0; i < m->eps; i++) {
        const struct ep_curve *e = &m->ep[i];
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:s, s:s}", "kernel", e->kernel,
                            "ranks", e->ranks, "domains", e->domains, "alpha_s", e->alpha,
                            "dispatch_Bps", e->Bps[0], "combine_Bps", e->Bps[1], "basis",
                            basis_name[e->basis], "source", e->source ? e->source : ""));
    }
    return list;
}

static json_t *pack_list(const struct matrix *m, int what, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, what == 't'   ? pack_tier(&m->tier[i])
                                   : what == 'c' ? pack_collective(&m->collective[i])
                                   : what == 'e'
                                       ? pack_exception(m, &m->exception[i])
                                       : json_pack("{s:s, s:s}", "kind", m->finding[i].kind, "text",
                                                   m->finding[i].text));
    return out;
}

json_t *matrix_pack(const struct matrix *m)
{
    json_t *out =
        json_pack("{s:s, s:i, s:s, s:O?, s:o, s:o, s:o, s:o, s:o}", "format", MATRIX_FORMAT,
                  "version", MATRIX_VERSION, "transport", m->transport, "provenance", m->provenance,
                  "places", places_pack(&m->topo), "tiers", pack_list(m, 't', m->tiers),
                  "collectives", pack_list(m, 'c', m->collectives), "exceptions",
                  pack_list(m, 'e', m->exceptions), "findings", pack_list(m, 'f', m->findings));

    if (!out)
        return NULL;
    set_text(out, "fabric", m->fabric);
    if (m->eps)
        json_object_set_new(out, "ep_kernels", pack_kernels(m));
    json_t *compute = compute_pack(&m->compute);
    if (compute)
        json_object_set_new(out, "compute", compute);
    return out;
}

int matrix_save(const struct matrix *m, const char *path, struct err *err)
{
    json_t *root = matrix_pack(m);

    if (!root)
        return err_data(err, "%s: a name in the matrix is not UTF-8", path);
    json_object_set_new(root, SEAL_KEY, json_string(SEAL_EMPTY));
    int rc = json_save(root, path, err);
    json_decref(root);
    return rc;
}
