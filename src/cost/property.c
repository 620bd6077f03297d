/* SPDX-License-Identifier: BSD-3-Clause */
/* property.c - "properties" of matrix.json: how the fabric was built, which is nobody's fault. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/matrix_impl.h"

static const char *const property_name[PROPERTY_COUNT] = {"class", "taper", "collisions"};

void property_free(struct property *p)
{
    free(p->what);
    free(p->text);
}

struct property *matrix_property(struct matrix *m, enum property_kind kind, int tier, double ratio)
{
    MEM_PUSH(m->property, m->properties) = (struct property){
        .kind = kind, .tier = tier, .level = -1, .ratio = ratio, .declared = NAN, .Bps = NAN};
    return &m->property[m->properties - 1];
}

int matrix_faults(const struct matrix *m)
{
    int n = 0;

    for (int i = 0; i < m->exceptions; i++)
        n += !m->exception[i].declared;
    return n;
}

/* --- in the file --- */

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

int property_read(void *whole, json_t *value, const char *where, struct err *err)
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

json_t *property_write(const struct matrix *m, int i)
{
    struct property_row row = {m->property[i], m->tier[m->property[i].tier].rule.name,
                               m->property[i].level < 0 ? NULL : level_name[m->property[i].level]};

    row.p.declared = isnan(row.p.declared) ? 0 : row.p.declared;
    row.p.Bps = isnan(row.p.Bps) ? 0 : row.p.Bps;
    return json_write(property_members, &row);
}
