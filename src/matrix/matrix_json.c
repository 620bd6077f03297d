/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_json.c - matrix.json: a table of members for each kind of object, by which it is read and
 * written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "matrix/matrix_impl.h"

enum { POINTS_MAX = 4096, LIST_MAX = 1 << 20, EP_MAX = 1024 };
#define BYTES_MAX 1e18 /* and B/s */
#define SEC_MAX 1e9

/* --- curves --- */

static int read_point(void *whole, json_t *value, const char *where, struct err *err)
{
    struct curve *c = whole;

    if (!json_is_array(value) || json_array_size(value) != 5 ||
        !json_is_integer(json_array_get(value, 4)))
        return err_data(err, "%s is not [bytes, seconds, low, high, samples]", where);
    double v[4];
    for (size_t i = 0; i < 4; i++) {
        json_t *number = json_array_get(value, i);
        double max = i ? SEC_MAX : BYTES_MAX;
        if (!json_is_number(number))
            return err_data(err, "%s[%zu] is not a number", where, i);
        v[i] = json_number_value(number);
        if (!(v[i] >= 0 && v[i] <= max))
            return err_data(err, "%s[%zu] is %g, outside 0..%g", where, i, v[i], max);
    }
    long long n = json_integer_value(json_array_get(value, 4));
    if (n < 0 || n > LIST_MAX * 1024LL)
        return err_data(err, "%s: %lld samples", where, n);
    if (!(v[0] > 0 && v[1] > 0))
        return err_data(err, "%s: %g bytes in %g s: both must be positive", where, v[0], v[1]);
    if (c->points && c->point[c->points - 1].bytes >= v[0])
        return err_data(err, "%s: size %.9g does not come after %.9g", where, v[0],
                        c->point[c->points - 1].bytes);
    curve_add(c, (struct curve_point){v[0], v[1], v[2], v[3], (int)n});
    return 0;
}

static int read_points(void *whole, json_t *points, const char *where, struct err *err)
{
    char at[JSON_WHERE];

    where_at(at, "%s.points", where);
    if (!json_is_array(points) || !json_array_size(points) || json_array_size(points) > POINTS_MAX)
        return err_data(err, "%s is not a list of 1..%d points", at, POINTS_MAX);
    return json_each(points, at, read_point, whole, err);
}

static json_t *write_points(const void *whole)
{
    const struct curve *c = whole;
    json_t *points = json_array();

    for (int i = 0; i < c->points; i++) {
        const struct curve_point *p = &c->point[i];
        json_array_append_new(points,
                              json_pack("[f,f,f,f,i]", p->bytes, p->sec, p->lo, p->hi, p->n));
    }
    return points;
}

static const struct json_member curve_members[] = {
    JSON_ROW("alpha_s", NUMBER, struct curve, alpha, .max = SEC_MAX),
    JSON_ROW("beta_s_per_B", NUMBER, struct curve, beta, .max = SEC_MAX),
    {.key = "points", .kind = MEMBER_PART, .read = read_points, .write = write_points},
    {.key = NULL},
};

/* --- tiers --- */

static int read_same(void *whole, json_t *same, const char *where, struct err *err)
{
    struct tier *t = whole;

    if (!json_is_array(same))
        return err_data(err, "%s.same is not a list of levels", where);
    for (size_t i = 0; i < json_array_size(same); i++) {
        const char *level = json_string_value(json_array_get(same, i));
        int l = level ? level_find(level) : -1;
        if (l < 0)
            return err_data(err, "%s.same[%zu]: \"%s\" is no level", where, i, level ? level : "?");
        t->rule.same |= 1u << l;
    }
    return 0;
}

static json_t *write_same(const void *whole)
{
    const struct tier *t = whole;
    json_t *same = json_array();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (t->rule.same & 1u << l)
            json_array_append_new(same, json_string(level_name[l]));
    return same;
}

static int read_curves(void *whole, json_t *curves, const char *where, struct err *err)
{
    struct tier *t = whole;
    char at[JSON_WHERE];
    const char *key;
    json_t *value;

    if (!json_is_object(curves))
        return err_data(err, "%s.curves is not an object", where);
    json_object_foreach(curves, key, value)
    {
        int d = 0;
        while (d < DIR_COUNT && strcmp(direction_name[d], key))
            d++;
        where_at(at, "%s.curves.%s", where, key);
        if (d == DIR_COUNT)
            return err_data(err, "%s: \"%s\" is no direction", at, key);
        if (json_read(value, at, curve_members, &t->curve[d], err) < 0)
            return -1;
    }
    return 0;
}

static json_t *write_curves(const void *whole)
{
    const struct tier *t = whole;
    json_t *curves = json_object();

    for (int d = 0; d < DIR_COUNT; d++)
        if (t->curve[d].points)
            json_object_set_new(curves, direction_name[d], json_write(curve_members, &t->curve[d]));
    return curves;
}

static const struct json_member coverage_members[] = {
    JSON_ROW("measured_pairs", COUNT, struct tier, measured),
    JSON_ROW("possible_pairs", COUNT, struct tier, possible),
    JSON_ROW("partners", INT, struct tier, partners),
    {.key = NULL},
};

json_t *coverage_pack(const struct tier *t)
{
    return json_write(coverage_members, t);
}

static bool is_covered(const void *whole)
{
    return ((const struct tier *)whole)->possible > 0;
}

static const struct json_member tier_members[] = {
    JSON_ROW("name", NAME, struct tier, rule.name, .room = sizeof(((struct tier_rule *)0)->name)),
    {.key = "same", .kind = MEMBER_PART, .read = read_same, .write = write_same},
    JSON_ROW("basis", WORD, struct tier, basis, JSON_WORDS(basis_name), .what = "basis"),
    JSON_ROW("pairs", INT, struct tier, pairs),
    JSON_ROW("spread", NUMBER, struct tier, spread, .max = 1e3),
    JSON_ROW("peak_Bps", NUMBER, struct tier, peak_Bps, .max = BYTES_MAX),
    JSON_ROW("nic", FLAG, struct tier, nic),
    {.key = "curves", .kind = MEMBER_PART, .read = read_curves, .write = write_curves},
    JSON_ROW("latency_spread", NUMBER, struct tier, latency_spread, .optional = true, .max = 1e3),
    JSON_ROW("loaded", NUMBER, struct tier, loaded, .optional = true, .absent = NAN, .max = 1e3),
    JSON_ROW("loaded_pairs", INT, struct tier, loaded_pairs, .optional = true),
    {.key = "coverage",
     .kind = MEMBER_OBJECT,
     .optional = true,
     .when = is_covered,
     .members = coverage_members},
    JSON_ROW("source", TEXT, struct tier, source, .optional = true),
    {.key = NULL},
};

static int read_tier(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;
    struct tier *t = &m->tier[m->tiers++];

    if (json_read(value, where, tier_members, t, err) < 0)
        return -1;
    if (t->pairs < 0)
        return err_data(err, "%s: %d pairs", where, t->pairs);
    if (t->measured < 0 || t->possible < t->measured || t->partners < 0)
        return err_data(err, "%s: %.0f of %.0f pairs, %d partners", where, t->measured, t->possible,
                        t->partners);
    m->topo.tier[m->topo.tiers++] = t->rule;
    return 0;
}

static json_t *write_tier(const struct matrix *m, int i)
{
    return json_write(tier_members, &m->tier[i]);
}

/* --- collectives --- */

#define OP_TEXT(ID, name, ...) #name,
static const char *const op_word[OP_COUNT] = {OP_TABLE(OP_TEXT)};

static const struct json_member collective_members[] = {
    JSON_ROW("op", WORD, struct collective, op, JSON_WORDS(op_word), .find = op_find,
             .what = "collective"),
    JSON_ROW("ranks", INT, struct collective, shape.ranks),
    JSON_ROW("domains", INT, struct collective, shape.domains),
    JSON_ROW("per_domain", INT, struct collective, shape.per_domain),
    JSON_ROW("nodes", INT, struct collective, shape.nodes),
    JSON_ROW("nics", INT, struct collective, shape.nics),
    JSON_ROW("racks", INT, struct collective, shape.racks),
    JSON_ROW("basis", WORD, struct collective, basis, JSON_WORDS(basis_name), .what = "basis"),
    JSON_ROW("curve", OBJECT, struct collective, curve, .members = curve_members),
    JSON_ROW("crossings", INT, struct collective, crossings, .optional = true),
    JSON_ROW("at_once", INT, struct collective, at_once, .optional = true),
    JSON_ROW("source", TEXT, struct collective, source, .optional = true),
    JSON_ROW("data", TEXT, struct collective, data, .optional = true),
    {.key = NULL},
};

static int read_collective(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;

    MEM_PUSH(m->collective, m->collectives) = (struct collective){0};
    struct collective *c = &m->collective[m->collectives - 1];
    const struct shape *s = &c->shape;
    if (json_read(value, where, collective_members, c, err) < 0)
        return -1;
    if (op_is_pair(c->op))
        return err_data(err, "%s: \"%s\" is no collective", where, op_name(c->op));
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
    return 0;
}

static json_t *write_collective(const struct matrix *m, int i)
{
    return json_write(collective_members, &m->collective[i]);
}

/* --- kernels of expert parallelism --- */

static const struct json_member kernel_members[] = {
    JSON_ROW("kernel", TEXT, struct ep_curve, kernel),
    JSON_ROW("ranks", INT, struct ep_curve, ranks),
    JSON_ROW("domains", INT, struct ep_curve, domains),
    JSON_ROW("alpha_s", NUMBER, struct ep_curve, alpha, .max = SEC_MAX),
    JSON_ROW("dispatch_Bps", NUMBER, struct ep_curve, Bps[0], .min = 1, .max = BYTES_MAX),
    JSON_ROW("combine_Bps", NUMBER, struct ep_curve, Bps[1], .min = 1, .max = BYTES_MAX),
    JSON_ROW("basis", WORD, struct ep_curve, basis, JSON_WORDS(basis_name)),
    JSON_ROW("source", TEXT, struct ep_curve, source),
    {.key = NULL},
};

static int read_kernel(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;

    MEM_PUSH(m->ep, m->eps) = (struct ep_curve){0};
    struct ep_curve *e = &m->ep[m->eps - 1];
    if (json_read(value, where, kernel_members, e, err) < 0)
        return -1;
    if (e->ranks < 2 || e->ranks > PLACES_MAX || e->domains < 1 || e->domains > e->ranks)
        return err_data(err, "%s: no group has %d ranks in %d domains", where, e->ranks,
                        e->domains);
    return 0;
}

static json_t *write_kernel(const struct matrix *m, int i)
{
    return json_write(kernel_members, &m->ep[i]);
}

/* --- exceptions, and findings --- */

struct exception_row {
    struct exception e;
    const char *tier; /* name of the tier; NULL: not of one tier */
};

static const struct json_member exception_members[] = {
    JSON_ROW("part", WORD, struct exception_row, e.part, JSON_WORDS(part_name), .what = "part"),
    JSON_ROW("side", WORD, struct exception_row, e.side, JSON_WORDS(side_name), .what = "side"),
    JSON_ROW("a", INT, struct exception_row, e.a),
    JSON_ROW("factor", NUMBER, struct exception_row, e.factor, .max = 1),
    JSON_ROW("alpha_add_s", NUMBER, struct exception_row, e.alpha_add, .max = SEC_MAX),
    JSON_ROW("evidence", INT, struct exception_row, e.evidence),
    JSON_ROW("alone", INT, struct exception_row, e.alone, .optional = true),
    JSON_ROW("partners", INT, struct exception_row, e.partners, .optional = true),
    JSON_ROW("factor_low", NUMBER, struct exception_row, e.lo, .optional = true, .max = 1e3),
    JSON_ROW("factor_high", NUMBER, struct exception_row, e.hi, .optional = true, .max = 1e3),
    JSON_ROW("b", INT, struct exception_row, e.b, .optional = true, .absent = -1),
    JSON_ROW("wrong", FLAG, struct exception_row, e.wrong, .optional = true),
    JSON_ROW("declared", FLAG, struct exception_row, e.declared, .optional = true),
    JSON_ROW("state", WORD, struct exception_row, e.state, JSON_WORDS(part_state_name),
             .what = "state", .optional = true),
    JSON_ROW("depth", NUMBER, struct exception_row, e.depth, .optional = true, .max = 1),
    JSON_ROW("share", NUMBER, struct exception_row, e.share, .optional = true, .max = 1),
    JSON_ROW("bytes", NUMBER, struct exception_row, e.bytes, .optional = true, .max = BYTES_MAX),
    JSON_ROW("tier", LOANED, struct exception_row, tier, .optional = true),
    JSON_ROW("why", TEXT, struct exception_row, e.why, .optional = true),
    {.key = NULL},
};

static int read_exception(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;
    struct exception_row row = {.tier = NULL};
    int rc = json_read(value, where, exception_members, &row, err);

    MEM_PUSH(m->exception, m->exceptions) = row.e;
    struct exception *e = &m->exception[m->exceptions - 1];
    if (rc < 0)
        return -1;
    if (e->wrong && e->factor > 0)
        return err_data(err, "%s: wrong data at a factor of %g; it must be 0", where, e->factor);
    if ((e->state == STATE_WRONG || e->state == STATE_DEAD) && e->factor > 0)
        return err_data(err, "%s: state %s at a factor of %g; it must be 0", where,
                        part_state_name[e->state], e->factor);
    e->wrong |= e->state == STATE_WRONG;
    bool two = e->part == PART_RACK_PAIR || e->part == PART_PAIR;
    int limit = part_count(m, e->part);
    if (e->a < 0 || e->a >= limit || (two ? e->b < 0 || e->b >= limit : e->b != -1))
        return err_data(err, "%s: %s %d, %d where there are %d", where, part_name[e->part], e->a,
                        e->b, limit);
    e->tier = -1;
    for (int i = 0; row.tier && i < m->tiers; i++)
        if (!strcmp(m->tier[i].rule.name, row.tier))
            e->tier = i;
    return row.tier && e->tier < 0 ? err_data(err, "%s: no tier \"%s\"", where, row.tier) : 0;
}

static json_t *write_exception(const struct matrix *m, int i)
{
    const struct exception *e = &m->exception[i];
    const char *tier = e->tier >= 0 ? m->tier[e->tier].rule.name : NULL;

    struct exception_row row = {*e, tier};

    row.e.state = matrix_state(e);
    return json_write(exception_members, &row);
}

static const struct json_member finding_members[] = {
    JSON_ROW("kind", TEXT, struct finding, kind),
    JSON_ROW("text", TEXT, struct finding, text),
    {.key = NULL},
};

static int read_finding(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;

    MEM_PUSH(m->finding, m->findings) = (struct finding){0};
    return json_read(value, where, finding_members, &m->finding[m->findings - 1], err);
}

static json_t *write_finding(const struct matrix *m, int i)
{
    return json_write(finding_members, &m->finding[i]);
}

/* --- all of it --- */

/* --- properties --- */

static const char *const property_name[PROPERTY_COUNT] = {"class", "taper", "collisions"};

struct property_row {
    struct property p; /* declared and Bps are 0 where they are not known */
    const char *tier, *level;
};

static const struct json_member property_members[] = {
    JSON_ROW("kind", WORD, struct property_row, p.kind, JSON_WORDS(property_name), .what = "kind"),
    JSON_ROW("tier", LOANED, struct property_row, tier),
    JSON_ROW("level", LOANED, struct property_row, level, .optional = true),
    JSON_ROW("ratio", NUMBER, struct property_row, p.ratio, .max = 1e3),
    JSON_ROW("declared", NUMBER, struct property_row, p.declared, .optional = true, .max = 1e3),
    JSON_ROW("devices", TEXT, struct property_row, p.what, .optional = true),
    JSON_ROW("endpoints", INT, struct property_row, p.endpoints, .optional = true),
    JSON_ROW("bandwidth_Bps", NUMBER, struct property_row, p.Bps, .optional = true, .max = 1e15),
    JSON_ROW("seen", TEXT, struct property_row, p.text, .optional = true),
    {.key = NULL},
};

static int tier_named(const struct matrix *m, const char *name)
{
    for (int i = 0; i < m->tiers; i++)
        if (!strcmp(m->tier[i].rule.name, name))
            return i;
    return -1;
}

static int property_read(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;
    struct property_row row = {.tier = NULL};
    int rc = json_read(value, where, property_members, &row, err);

    MEM_PUSH(m->property, m->properties) = row.p;
    struct property *p = &m->property[m->properties - 1];
    if (rc < 0)
        return -1;
    p->tier = tier_named(m, row.tier);
    p->level = row.level ? level_find(row.level) : -1;
    p->declared = p->declared > 0 ? p->declared : NAN;
    p->Bps = p->Bps > 0 ? p->Bps : NAN;
    if (p->tier < 0)
        return err_data(err, "%s: no tier \"%s\"", where, row.tier);
    if (row.level && p->level < 0)
        return err_data(err, "%s: no level \"%s\"", where, row.level);
    return p->kind == PROPERTY_TAPER && (p->ratio < 1 || p->level < 0)
               ? err_data(err, "%s: a taper has a level and a ratio of 1 or more, not %g", where,
                          p->ratio)
               : 0;
}

static json_t *property_write(const struct matrix *m, int i)
{
    struct property_row row = {m->property[i], m->tier[m->property[i].tier].rule.name,
                               m->property[i].level < 0 ? NULL : level_name[m->property[i].level]};

    row.p.declared = isnan(row.p.declared) ? 0 : row.p.declared;
    row.p.Bps = isnan(row.p.Bps) ? 0 : row.p.Bps;
    return json_write(property_members, &row);
}

/* The lists of the file, in their order there: the later ones point into the earlier ones. */
static const struct section {
    const char *key;
    int min, max;
    json_read_fn *read;
    json_t *(*write)(const struct matrix *m, int i);
    size_t count; /* offsetof() the number of items */
} sections[] = {
    {"tiers", 1, TIER_MAX, read_tier, write_tier, offsetof(struct matrix, tiers)},
    {"collectives", 0, LIST_MAX, read_collective, write_collective,
     offsetof(struct matrix, collectives)},
    {"exceptions", 0, LIST_MAX, read_exception, write_exception,
     offsetof(struct matrix, exceptions)},
    {"findings", 0, LIST_MAX, read_finding, write_finding, offsetof(struct matrix, findings)},
    {"ep_kernels", 0, EP_MAX, read_kernel, write_kernel, offsetof(struct matrix, eps)},
    {"seen", 0, SEEN_COUNT, seen_read, seen_write, offsetof(struct matrix, seens)},
    {"properties", 0, LIST_MAX, property_read, property_write, offsetof(struct matrix, properties)},
};
enum { SECTIONS = sizeof(sections) / sizeof(*sections), SECTION_EP = SECTIONS - 3 };

static int read_section(struct matrix *m, const struct section *s, json_t *list, const char *path,
                        struct err *err)
{
    size_t n = json_array_size(list);
    char at[JSON_WHERE];

    where_at(at, "%s: %s", path, s->key);
    if (json_is_array(list) && n >= (size_t)s->min && n <= (size_t)s->max)
        return json_each(list, at, s->read, m, err);
    return s >= &sections[SECTION_EP]
               ? err_data(err, "%s is not a list of at most %d", at, s->max)
               : err_data(err, "%s is not a list of %d..%d", at, s->min, s->max);
}

static int read_all(struct matrix *m, json_t *root, enum matrix_depth depth, const char *path,
                    struct err *err)
{
    const char *format, *transport, *fabric = NULL;
    json_t *places, *list[SECTIONS] = {NULL}, *compute = NULL, *seal = NULL;
    char at[JSON_WHERE];
    int version, rc = 0;

    if (json_take(root, path, err,
                  "{s:s, s:i, s:s, s?s, s:O, s:o, s:o, s:o, s:o, s:o, s?o, s?o, s?o, s?o, s?o}",
                  "format", &format, "version", &version, "transport", &transport, "fabric",
                  &fabric, "provenance", &m->provenance, "places", &places, "tiers", &list[0],
                  "collectives", &list[1], "exceptions", &list[2], "findings", &list[3],
                  "ep_kernels", &list[4], "seen", &list[5], "properties", &list[6], "compute",
                  &compute, SEAL_KEY, &seal) < 0)
        return -1;
    m->transport = mem_strdup(transport);
    m->fabric = fabric ? mem_strdup(fabric) : NULL;
    if (!json_is_object(m->provenance) && !json_is_null(m->provenance))
        return err_data(err, "%s: provenance is not an object", path);
    if (places_unpack(&m->topo, places, depth, where_at(at, "%s: places", path), err) < 0)
        return -1;
    m->topo.fabric = fabric ? mem_strdup(fabric) : NULL;
    for (int i = 0; i < SECTIONS && rc == 0; i++)
        rc = list[i] ? read_section(m, &sections[i], list[i], path, err) : 0;
    where_at(at, "%s: compute", path);
    if (rc == 0 && compute)
        rc = compute_unpack(&m->compute, compute, at, err);
    return rc == 0 && !seal ? json_unsealed(m->provenance, path, err) : rc;
}

int matrix_unpack(struct matrix *m, json_t *root, enum matrix_depth depth, const char *path,
                  struct err *err)
{
    matrix_init(m);
    int rc = read_all(m, root, depth, path, err);
    if (rc < 0)
        matrix_free(m);
    return rc;
}

int matrix_parse(struct matrix *m, const char *text, size_t len, const char *path, struct err *err)
{
    json_t *root;

    if (json_parse(&root, text, len, path, MATRIX_FORMAT, MATRIX_VERSION, err) < 0)
        return -1;
    int rc = matrix_unpack(m, root, MATRIX_WHOLE, path, err);
    json_decref(root);
    return rc;
}

/* 0, or -1: a text is not UTF-8. */
static int write_section(json_t *out, const struct matrix *m, const struct section *s)
{
    json_t *list = json_array();
    int count = *(const int *)(const void *)((const char *)m + s->count),
        rc = json_object_set_new(out, s->key, list);

    for (int i = 0; i < count && rc == 0; i++)
        rc = json_array_append_new(list, s->write(m, i));
    return rc;
}

json_t *matrix_pack(const struct matrix *m)
{
    json_t *out = json_pack("{s:s, s:i, s:s, s:O?, s:o}", "format", MATRIX_FORMAT, "version",
                            MATRIX_VERSION, "transport", m->transport, "provenance", m->provenance,
                            "places", places_pack(&m->topo));
    json_t *compute = compute_pack(&m->compute);
    int rc = out ? 0 : -1;

    for (int i = 0; i < SECTION_EP && rc == 0; i++)
        rc = write_section(out, m, &sections[i]);
    if (rc == 0 && m->fabric)
        rc = json_object_set_new(out, "fabric", json_string(m->fabric));
    const int optional[] = {m->eps, m->seens, m->properties};
    for (int i = SECTION_EP; i < SECTIONS && rc == 0; i++)
        rc = optional[i - SECTION_EP] ? write_section(out, m, &sections[i]) : 0;
    if (rc == 0 && compute)
        rc = json_object_set(out, "compute", compute);
    json_decref(compute);
    if (rc == 0)
        return out;
    json_decref(out);
    return NULL;
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
