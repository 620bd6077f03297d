/* SPDX-License-Identifier: BSD-3-Clause */
/* parts_below.c - result of a lower-layer campaign for each part: NIC or software at fault. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "matrix/reference.h"
#include "verdict/below.h"
#include "verdict/parts_impl.h"

enum { ENDS = 128 }; /* endpoints sampled for pairs, of the part and of the rest */

/* Words for a part that is good or slow below too, and the kind of part that the campaign must have
 * measured completely if only its matrix is given. */
static const struct meaning {
    const char *good, *slow;
    enum seen seen;
} meaning[PART_KIND_COUNT] = {
    [PART_KIND_GPU] = {"its NIC is good", "its NIC, or its host", SEEN_NIC},
    [PART_KIND_CPU] = {"its NIC is good", "its NIC, or its host", SEEN_NIC},
    [PART_KIND_NIC] = {"the NIC is good", "NIC, cable or switch", SEEN_NIC},
    [PART_KIND_HOST] = {"its NICs are good", "its NICs, or what they share", SEEN_HOST},
    [PART_KIND_CABLE] = {"the path is good", "cable or switch", SEEN_CABLE},
    [PART_KIND_LINK] = {"the path is good", "cable or switch", SEEN_CABLE},
    [PART_KIND_LEAF] = {"the leaf is good", "the leaf", SEEN_NIC},
    [PART_KIND_UPLINKS] = {"the uplinks are good", "the uplinks", SEEN_UPLINKS},
    [PART_KIND_RACK] = {"its NICs are good", "what its NICs share", SEEN_HOST},
    [PART_KIND_RACK_PAIR] = {"what is between them is good", "what is between them",
                             SEEN_RACK_PAIR},
    [PART_KIND_DOMAIN] = {"its NICs are good", "what its NICs share", SEEN_HOST},
    [PART_KIND_FABRIC] = {"the network is good", "the network", SEEN_NIC},
};

/* --- pairs that cross a part --- */

struct crossing {
    const struct below *b;
    const struct matrix *m;
    const struct part_row *r;
    int tier; /* tier of the fabric's row; -1: no fabric */
};

static bool crosses(const void *of, int src, int dst)
{
    const struct crossing *c = of;
    const struct matrix *m = c->m;

    if (!below_crosses(&c->b->above, src, dst))
        return false;
    int tier = topo_nic_tier(&m->topo, src, dst);
    if (c->r->exception < 0)
        return tier == c->tier;
    const struct exception *e = &m->exception[c->r->exception];
    for (int i = 0; i < m->exceptions; i++)
        if (parts_same(&m->exception[i], e) && matrix_crosses(m, &m->exception[i], src, dst, tier))
            return true;
    return false;
}

/* List endpoints of the part and of the rest, each at most about ENDS, evenly sampled.  The caller
 * frees. */
static int *ends_of(const struct crossing *c, int *count)
{
    const struct matrix *m = c->m;
    const struct exception *e = c->r->exception < 0 ? NULL : &m->exception[c->r->exception];
    int *end = NULL, of[2] = {0, 0}, seen[2] = {0, 0};

    *count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->topo.endpoints; i++) {
            bool in = e && matrix_touches(m, e, i);
            if (!pass)
                of[in]++;
            else if (seen[in]++ % (1 + of[in] / ENDS) == 0)
                MEM_PUSH(end, *count) = i;
        }
    return end;
}

/* A pair of the part, with both endpoints known below if possible; -1: no pair crosses NICs. */
struct example {
    int src, dst;
    bool known;
};

static struct example example_of(const struct crossing *c, const int *end, int ends)
{
    struct example x = {-1, -1, false};

    for (int i = 0; i < ends && !x.known; i++)
        for (int k = 0; k < ends && !x.known; k++) {
            if (end[i] == end[k] || !crosses(c, end[i], end[k]))
                continue;
            const int *to = c->b->to, a = to[end[i]], b = to[end[k]];
            x = (struct example){end[i], end[k], a >= 0 && b >= 0 && a != b};
        }
    return x;
}

/* --- results --- */

/* A listed part is slow whatever its interval, so the bound lies above the interval. */
static double enough_for(const struct part_row *r)
{
    return fmax(BELOW_ENOUGH, (1 + (isnan(r->hi) ? r->factor : r->hi)) / 2);
}

static void slow(struct below_said *s, const struct crossing *c, const struct example *x,
                 const int *end, int ends)
{
    const struct part_row *r = c->r;
    const struct below_side *above = &c->b->above, *below = &c->b->below;
    bool shared = r->kind == PART_KIND_UPLINKS; /* uplinks show only under load: use the fit */
    double like;

    s->bytes = below_size(c->b, x->src, x->dst);
    like = below_like(above, x->src, x->dst, s->bytes);
    s->above = (struct below_figure){
        .share = r->factor,
        .share_lo = isnan(r->lo) ? r->factor : r->lo,
        .share_hi = isnan(r->hi) ? r->factor : r->hi,
        .Bps = like * r->factor,
        .lo = like * (isnan(r->lo) ? r->factor : r->lo),
        .hi = like * (isnan(r->hi) ? r->factor : r->hi),
        .pairs = r->pairs,
    };
    s->below = below->of.p && !shared ? below_over(c->b, crosses, c, s->bytes)
                                      : below_over_matrix(c->b, crosses, c, s->bytes,
                                                          meaning[r->kind].seen, end, ends);
    s->is = below_judge(&s->above, &s->below, enough_for(r));
}

/* Compare the worst tier of add_fabric() at the same rate. */
static void whole(struct below_said *s, struct crossing *c, const struct matrix *reference,
                  const int *end, int ends)
{
    const struct part_row *r = c->r;

    for (int i = 0; i < c->m->tiers; i++) {
        double want = reference_rate(reference, c->m, &c->m->tier[i]);
        if (matrix_rate(c->m, i, DIR_UNI) / want != r->factor)
            continue;
        c->tier = i;
        struct example x = example_of(c, end, ends);
        if (x.src < 0)
            s->is = BELOW_APART;
        if (!x.known)
            return;
        s->bytes = below_size(c->b, x.src, x.dst);
        s->below = c->b->below.of.p
                       ? below_over(c->b, crosses, c, s->bytes)
                       : below_over_matrix(c->b, crosses, c, s->bytes, SEEN_NIC, end, ends);
        s->below.share = s->below.Bps / want;
        s->below.share_lo = s->below.lo / want;
        s->below.share_hi = s->below.hi / want;
        s->above =
            (struct below_figure){r->factor * want, r->factor * want, r->factor * want, r->factor,
                                  r->factor,        r->factor,        r->pairs};
        s->is = below_judge(&s->above, &s->below, BELOW_ENOUGH);
        return;
    }
}

/* Late below as well if most of the added latency is added there. */
static char *late(struct below_said *s, const struct crossing *c)
{
    struct below_figure f = below_late(c->b, crosses, c);
    char x[UNITS_TEXT], y[UNITS_TEXT];
    double half = c->r->alpha_add / 2;

    if (isnan(f.Bps))
        return mem_strdup("");
    s->is = f.hi < half ? BELOW_GOOD : f.lo > half ? BELOW_SLOW : BELOW_UNSURE;
    s->below.pairs = f.pairs;
    return mem_printf("%s +%s, %s +%s", c->b->lower, units_seconds_text(x, fmax(0, f.Bps)),
                      c->b->upper, units_seconds_text(y, c->r->alpha_add));
}

static char *wrong(struct below_said *s, const struct crossing *c)
{
    int bad, checked = below_checked(c->b, crosses, c, &bad);

    if (!checked)
        return mem_strdup("");
    s->is = bad ? BELOW_SLOW : BELOW_GOOD;
    return mem_printf("%s gave wrong data at %d of %d points, %s here", c->b->lower, bad, checked,
                      c->b->upper);
}

static void said_of(struct below_said *s, struct crossing *c, const struct parts_input *in)
{
    const struct part_row *r = c->r;
    int ends, *end = ends_of(c, &ends);
    char *rates = NULL;

    *s = (struct below_said){.is = BELOW_UNKNOWN,
                             .above = {NAN, NAN, NAN, NAN, NAN, NAN, 0},
                             .below = {NAN, NAN, NAN, NAN, NAN, NAN, 0}};
    if (r->exception < 0)
        whole(s, c, in->reference, end, ends);
    else {
        struct example x = example_of(c, end, ends);
        if (x.src < 0)
            s->is = BELOW_APART;
        else if (x.known && r->state == STATE_LATE)
            rates = late(s, c);
        else if (x.known && r->state == STATE_WRONG)
            rates = wrong(s, c);
        else if (x.known)
            slow(s, c, &x, end, ends);
    }
    if (!rates)
        rates = below_rates(c->b, s);
    char *words = below_words(c->b, s, meaning[r->kind].good, meaning[r->kind].slow);
    s->text = mem_printf("%s%s%s", rates, *rates ? ": " : "", words);
    free(rates);
    free(words);
    free(end);
}

void parts_below(struct parts *p, const struct parts_input *in)
{
    p->below = in->below;
    for (struct part_row *r = p->row; in->below && p->rows && r < p->row + p->rows; r++) {
        struct crossing c = {in->below, in->m, r, -1};
        r->below = mem_calloc(1, sizeof(*r->below));
        said_of(r->below, &c, in);
    }
}
