/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cost/matrix_impl.h"

enum { POINTS_MAX = 4096, LIST_MAX = 1 << 20, EP_MAX = 1024 };
static const double bytes_max = 1e18, sec_max = 1e9;

static int find(const char *const *names, int count, const char *name, const char *where,
                const char *what, struct err *err)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return err_data(err, "%s: \"%s\" is no %s", where, name, what);
}

static char *text(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

static int unpack_point(struct curve *c, json_t *value, const char *where, struct err *err)
{
    struct curve_point p;

    if (!json_is_array(value) || json_array_size(value) != 5 ||
        !json_is_integer(json_array_get(value, 4)))
        return err_data(err, "%s is not [bytes, seconds, low, high, samples]", where);
    double v[4];
    for (size_t i = 0; i < 4; i++) {
        json_t *number = json_array_get(value, i);
        if (!json_is_number(number))
            return err_data(err, "%s[%zu] is not a number", where, i);
        v[i] = json_number_value(number);
        if (!(v[i] >= 0 && v[i] <= (i ? sec_max : bytes_max)))
            return err_data(err, "%s[%zu] is %g, outside 0..%g", where, i, v[i],
                            i ? sec_max : bytes_max);
    }
    long long n = json_integer_value(json_array_get(value, 4));
    p = (struct curve_point){v[0], v[1], v[2], v[3], (int)n};
    if (n < 0 || n > LIST_MAX * 1024LL)
        return err_data(err, "%s: %lld samples", where, n);
    if (!(p.bytes > 0 && p.sec > 0))
        return err_data(err, "%s: %g bytes in %g s: both must be positive", where, p.bytes, p.sec);
    if (c->points && c->point[c->points - 1].bytes >= p.bytes)
        return err_data(err, "%s: size %.9g does not come after %.9g", where, p.bytes,
                        c->point[c->points - 1].bytes);
    curve_add(c, p);
    return 0;
}

static int unpack_curve(struct curve *c, json_t *value, const char *where, struct err *err)
{
    char at[WHERE];
    json_t *alpha, *beta, *points;

    if (json_take(value, where, err, "{s:o, s:o, s:o}", "alpha_s", &alpha, "beta_s_per_B", &beta,
                  "points", &points) < 0 ||
        json_number(value, where, "alpha_s", 0, sec_max, 0, &c->alpha, err) < 0 ||
        json_number(value, where, "beta_s_per_B", 0, sec_max, 0, &c->beta, err) < 0)
        return -1;
    if (!json_is_array(points) || !json_array_size(points) || json_array_size(points) > POINTS_MAX)
        return err_data(err, "%s.points is not a list of 1..%d points", where, POINTS_MAX);
    for (size_t i = 0; i < json_array_size(points); i++)
        if (unpack_point(c, json_array_get(points, i), where_at(at, "%s.points[%zu]", where, i),
                         err) < 0)
            return -1;
    return 0;
}

static int unpack_rule(struct tier_rule *r, const char *name, json_t *same, const char *where,
                       struct err *err)
{
    if (!*name || strlen(name) >= sizeof(r->name))
        return err_data(err, "%s.name: \"%s\" has not 1..%zu characters", where, name,
                        sizeof(r->name) - 1);
    snprintf(r->name, sizeof(r->name), "%s", name);
    if (!json_is_array(same))
        return err_data(err, "%s.same is not a list of levels", where);
    for (size_t i = 0; i < json_array_size(same); i++) {
        const char *level = json_string_value(json_array_get(same, i));
        int l = level ? level_find(level) : -1;
        if (l < 0)
            return err_data(err, "%s.same[%zu]: \"%s\" is no level", where, i, level ? level : "?");
        r->same |= 1u << l;
    }
    return 0;
}

static int unpack_curves(struct tier *t, json_t *curves, const char *where, struct err *err)
{
    char at[WHERE];
    const char *key;
    json_t *value;

    if (!json_is_object(curves))
        return err_data(err, "%s.curves is not an object", where);
    json_object_foreach(curves, key, value)
    {
        where_at(at, "%s.curves.%s", where, key);
        int d = find(direction_name, DIR_COUNT, key, at, "direction", err);
        if (d < 0 || unpack_curve(&t->curve[d], value, at, err) < 0)
            return -1;
    }
    return 0;
}

static int unpack_coverage(struct tier *t, json_t *value, const char *where, struct err *err)
{
    json_int_t measured, possible;

    if (!value)
        return 0;
    if (json_take(value, where, err, "{s:I, s:I, s:i}", "measured_pairs", &measured,
                  "possible_pairs", &possible, "partners", &t->partners) < 0)
        return -1;
    if (measured < 0 || possible < measured || t->partners < 0)
        return err_data(err, "%s: %lld of %lld pairs, %d partners", where, (long long)measured,
                        (long long)possible, t->partners);
    t->measured = (double)measured;
    t->possible = (double)possible;
    return 0;
}

static int unpack_tier(struct tier *t, json_t *value, const char *where, struct err *err)
{
    const char *name, *basis, *source = NULL;
    json_t *same, *curves, *coverage = NULL, *number[4] = {NULL};
    int nic;

    t->loaded = NAN;
    if (json_take(value, where, err, "{s:s, s:o, s:s, s:i, s:o, s?o, s?o, s:o, s:b, s?s, s:o, s?o}",
                  "name", &name, "same", &same, "basis", &basis, "pairs", &t->pairs, "spread",
                  &number[0], "latency_spread", &number[3], "loaded", &number[1], "peak_Bps",
                  &number[2], "nic", &nic, "source", &source, "curves", &curves, "coverage",
                  &coverage) < 0 ||
        unpack_coverage(t, coverage, where, err) < 0 ||
        json_number(value, where, "spread", 0, 1e3, 0, &t->spread, err) < 0 ||
        json_number(value, where, "latency_spread", 0, 1e3, 1, &t->latency_spread, err) < 0 ||
        json_number(value, where, "loaded", 0, 1e3, 1, &t->loaded, err) < 0 ||
        json_number(value, where, "peak_Bps", 0, 1e18, 0, &t->peak_Bps, err) < 0)
        return -1;
    t->nic = nic;
    t->source = text(source);
    int b = find(basis_name, BASIS_COUNT, basis, where, "basis", err);
    if (b < 0 || unpack_rule(&t->rule, name, same, where, err) < 0)
        return -1;
    t->basis = b;
    if (t->pairs < 0)
        return err_data(err, "%s: %d pairs", where, t->pairs);
    return unpack_curves(t, curves, where, err);
}

static int unpack_collective(struct collective *c, json_t *value, const char *where,
                             struct err *err)
{
    struct shape *s = &c->shape;
    const char *op, *basis, *source = NULL;
    char at[WHERE];
    json_t *curve;

    if (json_take(value, where, err, "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s?i, s?i, s:s, s?s, s:o}",
                  "op", &op, "ranks", &s->ranks, "domains", &s->domains, "per_domain",
                  &s->per_domain, "nodes", &s->nodes, "nics", &s->nics, "racks", &s->racks,
                  "crossings", &c->crossings, "at_once", &c->at_once, "basis", &basis, "source",
                  &source, "curve", &curve) < 0)
        return -1;
    c->source = text(source);
    int o = op_find(op), b = find(basis_name, BASIS_COUNT, basis, where, "basis", err);
    if (b < 0)
        return -1;
    if (o < 0 || op_is_pair(o))
        return err_data(err, "%s: \"%s\" is no collective", where, op);
    if (s->ranks < 2 || s->domains < 1 || s->domains > s->ranks || s->per_domain < 1 ||
        s->per_domain > s->ranks || s->nodes < 1 || s->nodes > s->ranks || s->nics < 1 ||
        s->racks < 0 || s->ranks > PLACES_MAX)
        return err_data(err,
                        "%s: no group has %d ranks, %d domains, %d a domain, %d nodes, %d NICs "
                        "and %d racks",
                        where, s->ranks, s->domains, s->per_domain, s->nodes, s->nics, s->racks);
    if (c->crossings < 0 || c->crossings > s->ranks || c->at_once < 0 || c->at_once > PLACES_MAX)
        return err_data(err, "%s: no ring of %d ranks has %d crossings, no %d groups run at once",
                        where, s->ranks, c->crossings, c->at_once);
    c->op = o;
    c->basis = b;
    return unpack_curve(&c->curve, curve, where_at(at, "%s.curve", where), err);
}

static int unpack_kernel(struct ep_curve *e, json_t *value, const char *where, struct err *err)
{
    const char *kernel, *basis, *source;
    json_t *number[3];

    if (json_take(value, where, err, "{s:s, s:i, s:i, s:o, s:o, s:o, s:s, s:s}", "kernel", &kernel,
                  "ranks", &e->ranks, "domains", &e->domains, "alpha_s", &number[0], "dispatch_Bps",
                  &number[1], "combine_Bps", &number[2], "basis", &basis, "source", &source) < 0 ||
        json_number(value, where, "alpha_s", 0, 1e9, 0, &e->alpha, err) < 0 ||
        json_number(value, where, "dispatch_Bps", 1, 1e18, 0, &e->Bps[0], err) < 0 ||
        json_number(value, where, "combine_Bps", 1, 1e18, 0, &e->Bps[1], err) < 0)
        return -1;
    e->kernel = mem_strdup(kernel);
    e->source = mem_strdup(source);
    if (e->ranks < 2 || e->ranks > PLACES_MAX || e->domains < 1 || e->domains > e->ranks)
        return err_data(err, "%s: no group has %d ranks in %d domains", where, e->ranks,
                        e->domains);
    for (int b = 0; b < BASIS_COUNT; b++)
        if (!strcmp(basis_name[b], basis)) {
            e->basis = b;
            return 0;
        }
    return err_data(err, "%s: basis \"%s\" is not known", where, basis);
}

static int unpack_kernels(struct matrix *m, json_t *list, const char *where, struct err *err)
{
    char at[WHERE];

    if (!json_is_array(list) || json_array_size(list) > EP_MAX)
        return err_data(err, "%s is not a list of at most %d", where, EP_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        MEM_PUSH(m->ep, m->eps) = (struct ep_curve){0};
        if (unpack_kernel(&m->ep[i], json_array_get(list, i), where_at(at, "%s[%zu]", where, i),
                          err) < 0)
            return -1;
    }
    return 0;
}

/* How many things of this kind there are to point at. */
static int part_limit(const struct matrix *m, enum part part)
{
    switch (part) {
    case PART_HOST:
        return m->topo.hosts;
    case PART_LEAF:
        return m->topo.group[LEVEL_LEAF].count;
    case PART_RACK:
    case PART_RACK_PAIR:
    case PART_RACK_UPLINKS:
        return m->topo.group[LEVEL_RACK].count;
    default:
        return m->topo.endpoints;
    }
}

static int unpack_exception(struct matrix *m, struct exception *e, json_t *value, const char *where,
                            struct err *err)
{
    const char *part, *side, *tier = NULL, *why = NULL;
    json_t *number[2];
    int wrong = 0;

    e->b = e->tier = -1;
    if (json_take(value, where, err, "{s:s, s:s, s:i, s?i, s?s, s:o, s:o, s:i, s?b, s?s}", "part",
                  &part, "side", &side, "a", &e->a, "b", &e->b, "tier", &tier, "factor", &number[0],
                  "alpha_add_s", &number[1], "evidence", &e->evidence, "wrong", &wrong, "why",
                  &why) < 0 ||
        json_number(value, where, "factor", 0, 1, 0, &e->factor, err) < 0 ||
        json_number(value, where, "alpha_add_s", 0, sec_max, 0, &e->alpha_add, err) < 0)
        return -1;
    e->why = text(why);
    e->wrong = wrong;
    if (e->wrong && e->factor > 0)
        return err_data(err, "%s: wrong data at a factor of %g; it must be 0", where, e->factor);
    int p = find(part_name, PART_COUNT, part, where, "part", err);
    int s = p < 0 ? -1 : find(side_name, SIDE_COUNT, side, where, "side", err);
    if (s < 0)
        return -1;
    e->part = p;
    e->side = s;
    bool two = p == PART_RACK_PAIR || p == PART_PAIR;
    int limit = part_limit(m, p);
    if (e->a < 0 || e->a >= limit || (two ? e->b < 0 || e->b >= limit : e->b != -1))
        return err_data(err, "%s: %s %d, %d where there are %d", where, part, e->a, e->b, limit);
    for (int i = 0; tier && i < m->tiers; i++)
        if (!strcmp(m->tier[i].rule.name, tier))
            e->tier = i;
    return tier && e->tier < 0 ? err_data(err, "%s: no tier \"%s\"", where, tier) : 0;
}

static int unpack_finding(struct finding *f, json_t *value, const char *where, struct err *err)
{
    const char *kind, *words;

    if (json_take(value, where, err, "{s:s, s:s}", "kind", &kind, "text", &words) < 0)
        return -1;
    f->kind = mem_strdup(kind);
    f->text = mem_strdup(words);
    return 0;
}

static int check_list(json_t *list, const char *key, const char *path, size_t min, size_t max,
                      struct err *err)
{
    size_t n = json_array_size(list);

    if (!json_is_array(list) || n < min || n > max)
        return err_data(err, "%s: %s is not a list of %zu..%zu", path, key, min, max);
    return 0;
}

static int unpack_tiers(struct matrix *m, json_t *list, const char *path, struct err *err)
{
    char at[WHERE];

    if (check_list(list, "tiers", path, 1, TIER_MAX, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct tier *t = &m->tier[m->tiers++];
        if (unpack_tier(t, json_array_get(list, i), where_at(at, "%s: tiers[%zu]", path, i), err) <
            0)
            return -1;
        m->topo.tier[m->topo.tiers++] = t->rule;
    }
    return 0;
}

static int unpack_lists(struct matrix *m, json_t *collectives, json_t *exceptions, json_t *findings,
                        const char *path, struct err *err)
{
    char at[WHERE];
    json_t *value;
    size_t i;

    if (check_list(collectives, "collectives", path, 0, LIST_MAX, err) < 0 ||
        check_list(exceptions, "exceptions", path, 0, LIST_MAX, err) < 0 ||
        check_list(findings, "findings", path, 0, LIST_MAX, err) < 0)
        return -1;
    json_array_foreach(collectives, i, value)
    {
        MEM_PUSH(m->collective, m->collectives) = (struct collective){0};
        if (unpack_collective(&m->collective[i], value,
                              where_at(at, "%s: collectives[%zu]", path, i), err) < 0)
            return -1;
    }
    json_array_foreach(exceptions, i, value)
    {
        MEM_PUSH(m->exception, m->exceptions) = (struct exception){0};
        if (unpack_exception(m, &m->exception[i], value,
                             where_at(at, "%s: exceptions[%zu]", path, i), err) < 0)
            return -1;
    }
    json_array_foreach(findings, i, value)
    {
        MEM_PUSH(m->finding, m->findings) = (struct finding){0};
        if (unpack_finding(&m->finding[i], value, where_at(at, "%s: findings[%zu]", path, i), err) <
            0)
            return -1;
    }
    return 0;
}

static int unpack_all(struct matrix *m, json_t *root, const char *path, struct err *err)
{
    const char *format, *transport, *fabric = NULL;
    json_t *places, *tiers, *collectives, *exceptions, *findings, *compute = NULL, *eps = NULL,
                                                                  *seal = NULL;
    char at[WHERE];
    int version;

    if (json_take(root, path, err,
                  "{s:s, s:i, s:s, s?s, s:O, s:o, s:o, s:o, s:o, s:o, s?o, s?o, s?o}", "format",
                  &format, "version", &version, "transport", &transport, "fabric", &fabric,
                  "provenance", &m->provenance, "places", &places, "tiers", &tiers, "collectives",
                  &collectives, "exceptions", &exceptions, "findings", &findings, "ep_kernels",
                  &eps, "compute", &compute, SEAL_KEY, &seal) < 0)
        return -1;
    if (!seal)
        json_unsealed(path);
    m->transport = mem_strdup(transport);
    m->fabric = text(fabric);
    if (!json_is_object(m->provenance) && !json_is_null(m->provenance))
        return err_data(err, "%s: provenance is not an object", path);
    if (places_unpack(&m->topo, places, where_at(at, "%s: places", path), err) < 0 ||
        unpack_tiers(m, tiers, path, err) < 0 ||
        unpack_lists(m, collectives, exceptions, findings, path, err) < 0 ||
        (eps && unpack_kernels(m, eps, where_at(at, "%s: ep_kernels", path), err) < 0))
        return -1;
    m->topo.fabric = text(fabric);
    where_at(at, "%s: compute", path);
    return compute ? compute_unpack(&m->compute, compute, at, err) : 0;
}

int matrix_unpack(struct matrix *m, json_t *root, const char *path, struct err *err)
{
    matrix_init(m);
    int rc = unpack_all(m, root, path, err);
    if (rc < 0)
        matrix_free(m);
    return rc;
}

int matrix_parse(struct matrix *m, const char *text_in, size_t len, const char *path,
                 struct err *err)
{
    json_t *root;

    if (json_parse(&root, text_in, len, path, MATRIX_FORMAT, MATRIX_VERSION, err) < 0)
        return -1;
    int rc = matrix_unpack(m, root, path, err);
    json_decref(root);
    return rc;
}

int matrix_load(struct matrix *m, const char *path, struct err *err)
{
    struct stat st;
    bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *file = dir ? file_join(path, "matrix.json") : mem_strdup(path);
    json_t *root;
    int rc = json_open(&root, file, MATRIX_FORMAT, MATRIX_VERSION, err);

    if (rc == 0) {
        rc = matrix_unpack(m, root, file, err);
        json_decref(root);
    }
    free(file);
    return rc;
}
