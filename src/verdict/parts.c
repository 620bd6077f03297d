/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "matrix/reference.h"
#include "verdict/parts_impl.h"

/* --- rows --- */

static enum confidence confidence_of(const struct part_row *r)
{
    bool narrow = r->hi - r->lo <= 0.1 * r->factor;

    if (r->state == STATE_WRONG || r->state == STATE_DEAD)
        return r->partners >= 3 ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
    if ((r->partners >= 8 && narrow) || (r->partners >= 3 && r->alone >= 2))
        return CONFIDENCE_HIGH;
    return r->partners >= 3 || r->alone ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

/* Returns "all NICs", "mnnvl" or "all NICs and mnnvl": the tiers of all exceptions like `first`. */
static char *over_words(const struct matrix *m, int first)
{
    char *text = mem_strdup("");

    for (int i = first; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        if (parts_same(e, &m->exception[first]))
            text = parts_also(text, " and ",
                              mem_strdup(e->factor == 0 ? "everything"
                                         : e->tier < 0  ? "all NICs"
                                                        : m->tier[e->tier].rule.name));
    }
    return text;
}

static bool always(enum part_state state)
{
    return state != STATE_INTERMITTENT && state != STATE_SAMPLES && state != STATE_WRONG;
}

static void add_row(struct parts *all, const struct parts_input *in, int first)
{
    const struct matrix *m = in->m;
    const struct exception *e = &m->exception[first];
    struct part_shown on = {false, false};
    struct part_row r = {.state = matrix_state(e),
                         .side = e->side,
                         .exception = first,
                         .factor = matrix_depth(e),
                         .cost = NAN};

    for (int i = first; i < m->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        if (!parts_same(x, e))
            continue;
        struct part_shown here = matrix_shown(m, x);
        on.inside |= here.inside;
        on.nics |= here.nics;
        r.exceptions++;
        r.pairs += x->evidence;
        r.alone += x->alone;
        r.alpha_add = fmax(r.alpha_add, x->alpha_add);
        if (x->partners > r.partners)
            r.partners = x->partners;
        double depth = matrix_depth(x);
        if (isfinite(depth) && !(r.factor <= depth)) {
            r.factor = depth;
            r.exception = i;
        }
    }
    e = &m->exception[r.exception];
    r.lo = e->hi > 0 ? e->lo : NAN;
    r.hi = e->hi > 0 ? e->hi : NAN;
    r.share = always(r.state) ? 1 : e->share > 0 ? e->share : NAN;
    r.bytes = e->bytes;
    r.kind = matrix_kind(m, e, on);
    r.confidence = confidence_of(&r);
    parts_place(&r, &all->topo, e);
    r.why = mem_strdup(e->why ? e->why : "");
    r.over = over_words(m, first);
    MEM_PUSH(all->row, all->rows) = r;
}

static bool is_first(const struct matrix *m, int i)
{
    int k = 0;

    while (!parts_same(&m->exception[k], &m->exception[i]))
        k++;
    return k == i;
}

/* Add the fabric if all tiers that cross NICs, one of them, or one inside is below the reference as
 * a whole. */
static void add_fabric(struct parts *all, const struct parts_input *in)
{
    const double enough = in->enough > 0 ? in->enough : 0.9;
    const struct matrix *m = in->m;
    int below = 0, nics = 0;
    double worst = INFINITY;
    char *over = mem_strdup("");

    for (int i = 0; i < m->tiers && in->reference; i++) {
        double want = m->tier[i].pairs ? reference_rate(in->reference, m, &m->tier[i]) : NAN;
        double share = matrix_rate(m, i, DIR_UNI) / want;
        nics += m->tier[i].nic && !isnan(share);
        if (!(share < enough))
            continue;
        below += m->tier[i].nic;
        worst = fmin(worst, share);
        over = parts_also(over, " and ", mem_strdup(m->tier[i].rule.name));
    }
    if (!isfinite(worst)) {
        free(over);
        return;
    }
    struct part_row r = {.kind = PART_KIND_FABRIC,
                         .state = STATE_SLOW,
                         .exception = -1,
                         .factor = worst,
                         .share = 1,
                         .lo = NAN,
                         .hi = NAN,
                         .confidence = CONFIDENCE_HIGH,
                         .where = mem_strdup(""),
                         .missing = mem_strdup(""),
                         .why = mem_strdup(""),
                         .cost = NAN};
    r.name = below && below == nics
                 ? mem_printf("the whole fabric, beside %s", in->reference_name)
                 : mem_printf("all pairs of %s, beside %s", over, in->reference_name);
    for (int i = 0; i < m->tiers; i++)
        r.pairs += tier_pairs(&m->tier[i]);
    r.over = over;
    MEM_PUSH(all->row, all->rows) = r;
}

static int by_weight(const void *a, const void *b)
{
    const struct part_row *x = a, *y = b;
    double cx = isnan(x->cost) ? -1 : x->cost, cy = isnan(y->cost) ? -1 : y->cost;
    double fx = isnan(x->factor) ? 1 : x->factor, fy = isnan(y->factor) ? 1 : y->factor;
    int state_x = -part_severity(x->state), state_y = -part_severity(y->state);

    return stats_order((double[]){x->kind != PART_KIND_FABRIC, state_x, -cx, fx, x->exception},
                       (double[]){y->kind != PART_KIND_FABRIC, state_y, -cy, fy, y->exception}, 5);
}

static void look_at(struct topo *t, const struct parts_input *in)
{
    const struct topo *own = in->topo;

    *t = in->m->topo;
    t->endpoint = mem_calloc((size_t)t->endpoints + 1, sizeof(*t->endpoint));
    if (t->endpoints)
        memcpy(t->endpoint, in->m->topo.endpoint, (size_t)t->endpoints * sizeof(*t->endpoint));
    if (!own || own->endpoints != t->endpoints)
        return;
    t->nic = own->nic;
    t->nics = own->nics;
    t->gpu = own->gpu;
    t->gpus = own->gpus;
    for (int i = 0; i < t->endpoints; i++) {
        t->endpoint[i].nic = own->endpoint[i].nic;
        t->endpoint[i].gpu = own->endpoint[i].gpu;
    }
}

/* --- parts found only in the lower-layer campaign --- */

/* True if the part is listed by name, or shares a host with a listed part that is slow below
 * too. */
static bool is_told(const struct parts *p, const struct part_row *r, const struct topo *of)
{
    for (const struct part_row *x = p->row; p->rows && x < p->row + p->rows; x++) {
        bool too = x->below->is == BELOW_SLOW || x->below->is == BELOW_BOTH;
        if (!strcmp(x->name, r->name))
            return true;
        for (int i = 0; too && i < x->places; i++)
            for (int k = 0; k < r->places; k++)
                if (x->place[i].host >= 0 && r->place[k].host >= 0 &&
                    !strcmp(p->topo.host[x->place[i].host].name, of->host[r->place[k].host].name))
                    return true;
    }
    return false;
}

/* True if the campaign above has one of its endpoints. */
static bool is_here(const struct below *b, const struct part_row *r)
{
    const struct matrix *m = b->below.of.m;

    for (int i = 0; i < m->topo.endpoints; i++)
        if (b->first[i] >= 0 && matrix_touches(m, &m->exception[r->exception], i))
            return true;
    return false;
}

static int add_only(struct parts *p, const struct below *b, struct err *err)
{
    if (!b)
        return 0;
    const struct below_layer *of = &b->below.of;
    const struct parts_input in = {.m = of->m, .topo = of->t, .points = of->p, .no_cost = true};
    struct parts list;
    int rc = parts_list(&list, &in, err);

    for (const struct part_row *r = list.row; rc == 0 && list.rows && r < list.row + list.rows;
         r++) {
        char speed[PART_SPEED];
        if (r->exception >= 0 && is_here(b, r) && !is_told(p, r, &list.topo))
            MEM_PUSH(p->only, p->onlies) =
                mem_printf("%s: %s in %s, and no part above: slow below %s only", r->name,
                           part_words(r, speed), b->lower, b->upper);
    }
    parts_free(&list);
    return rc;
}

/* --- the list --- */

int parts_list(struct parts *p, const struct parts_input *in, struct err *err)
{
    *p = (struct parts){0};
    look_at(&p->topo, in);
    add_fabric(p, in);
    for (int i = 0; i < in->m->exceptions; i++)
        if (!in->m->exception[i].declared && is_first(in->m, i))
            add_row(p, in, i);
    parts_trouble(p, in);
    if (!in->no_cost)
        parts_price(p, in->m);
    if (p->rows)
        qsort(p->row, (size_t)p->rows, sizeof(*p->row), by_weight);
    parts_below(p, in);
    return add_only(p, in->below, err) < 0 ? -1 : parts_advise(p, in, err);
}

void parts_free(struct parts *p)
{
    for (struct part_row *r = p->row; p->rows && r < p->row + p->rows; r++) {
        char *text[] = {r->name,    r->where, r->missing, r->over,
                        r->trouble, r->next,  r->source,  r->why};
        for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
            free(text[i]);
        if (r->below)
            below_said_free(r->below);
        free(r->below);
    }
    for (int i = 0; i < p->onlies; i++)
        free(p->only[i]);
    free(p->only);
    free(p->topo.endpoint);
    free(p->row);
    free(p->job);
    *p = (struct parts){0};
}

/* --- as JSON --- */

json_t *parts_json(const struct parts *p)
{
    static const struct table_column columns[] = {{"name", NULL, "text"},
                                                  {"kind", NULL, "text"},
                                                  {"side", NULL, "text"},
                                                  {"effect", NULL, "text"},
                                                  {"state", NULL, "text"},
                                                  {"factor", NULL, "%.4g"},
                                                  {"factor_low", NULL, "%.4g"},
                                                  {"factor_high", NULL, "%.4g"},
                                                  {"share", NULL, "%.4g"},
                                                  {"alpha_add_s", NULL, "seconds"},
                                                  {"over", NULL, "text"},
                                                  {"step_share", NULL, "%.4g"},
                                                  {"pairs", NULL, "count"},
                                                  {"alone", NULL, "count"},
                                                  {"partners", NULL, "count"},
                                                  {"confidence", NULL, "text"},
                                                  {"where", NULL, "text"},
                                                  {"evidence", NULL, "text"},
                                                  {"missing", NULL, "text"},
                                                  {"counters", NULL, "text"},
                                                  {"below", NULL, "json"},
                                                  {"next", NULL, "text"},
                                                  {"next_source", NULL, "text"},
                                                  {"places", NULL, "json"},
                                                  {0}};
    char speed[PART_SPEED];
    struct table t;

    table_open(&t, columns);
    for (const struct part_row *r = p->row; p->rows && r < p->row + p->rows; r++)
        table_add(&t, r->name, part_kind_name[r->kind], side_name[r->side], part_speed(r, speed),
                  part_state_name[r->state], r->factor, r->lo, r->hi, r->share, r->alpha_add,
                  r->over, isinf(r->cost) ? NAN : r->cost, r->pairs, r->alone, r->partners,
                  confidence_name[r->confidence], r->where, r->why, r->missing, r->trouble,
                  r->below ? below_json(p->below, r->below) : NULL, r->next, r->source,
                  parts_places_json(&p->topo, r));
    json_t *all = json_pack("{s:s?, s:o}", "job", p->job, "parts", table_rows(&t));
    if (p->below)
        json_object_set_new(all, "below_only", json_texts(p->only, p->onlies));
    return all;
}
