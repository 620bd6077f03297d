/* SPDX-License-Identifier: BSD-3-Clause */
/* below_said.c - result of comparing a pair in two layers: the verdict and its words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"
#include "verdict/below_impl.h"

const char *const below_name[BELOW_COUNT] = {"not-measured", "apart",      "good", "slow",  "both",
                                             "only-below",   "other-path", "fine", "unsure"};

/* --- the meaning of a comparison --- */

enum level_of { LOW, HIGH, AROUND, LEVELS };

static enum level_of level_at(const struct below_figure *f, double bound)
{
    return f->share_hi < bound ? LOW : f->share_lo >= bound ? HIGH : AROUND;
}

/* Neither layer is slow within its campaign: check if the whole upper layer is slower than the
 * lower one. */
static enum below_is by_rate(const struct below_figure *above, const struct below_figure *below)
{
    if (above->lo > below->hi / BELOW_ENOUGH)
        return BELOW_OTHER;
    return above->hi < BELOW_LEAST * below->lo ? BELOW_GOOD : BELOW_FINE;
}

enum below_is below_judge(const struct below_figure *above, const struct below_figure *below,
                          double enough)
{
    if (isnan(below->share))
        return BELOW_UNKNOWN;
    enum level_of a = level_at(above, enough);
    enum level_of b = level_at(below, a == LOW ? fmax(enough, (1 + above->share) / 2) : enough);

    if (a == AROUND || b == AROUND)
        return BELOW_UNSURE;
    if (a == LOW && b == HIGH)
        return BELOW_GOOD;
    if (a == LOW)
        return above->share_hi < BELOW_ENOUGH * below->share_lo ? BELOW_BOTH : BELOW_SLOW;
    if (b == LOW)
        return above->lo > below->hi ? BELOW_OTHER : BELOW_ONLY;
    return by_rate(above, below);
}

/* --- a pair --- */

/* Returns "mlx5_1 r00n04 -> mlx5_3 r01n04", with the second NIC only if it differs, or "r00n04:1 ->
 * r01n04:1" if a NIC is not visible.  The caller frees. */
static char *ends_text(const struct topo *t, int src, int dst)
{
    int x = t->endpoint[src].nic, y = t->endpoint[dst].nic;

    if (x < 0 || y < 0)
        return mem_printf("%s:%d -> %s:%d", below_host(t, src), t->endpoint[src].local,
                          below_host(t, dst), t->endpoint[dst].local);
    bool same = !strcmp(t->nic[x].name, t->nic[y].name);
    return mem_printf("%s %s -> %s%s%s", t->nic[x].name, below_host(t, src),
                      same ? "" : t->nic[y].name, same ? "" : " ", below_host(t, dst));
}

char *below_rates(const struct below *b, const struct below_said *s)
{
    const struct below_figure *f[] = {&s->below, &s->above};
    char *text = mem_strdup("");

    for (int i = 0; i < 2; i++) {
        char rate[UNITS_TEXT];
        if (isnan(f[i]->Bps))
            continue;
        text = mem_append(text, "%s%s %s", *text ? ", " : "", i ? b->upper : b->lower,
                          f[i]->Bps > 0 ? units_rate_text(rate, f[i]->Bps) : "nothing");
    }
    return text;
}

char *below_words(const struct below *b, const struct below_said *s, const char *good,
                  const char *slow)
{
    const char *up = b->upper;
    bool alike = s->is == BELOW_GOOD && s->above.share_lo >= BELOW_ENOUGH;

    switch (s->is) {
    case BELOW_UNKNOWN:
        return mem_strdup("not measured below");
    case BELOW_APART:
        return mem_printf("does not cross NICs: nothing below %s to compare", up);
    case BELOW_GOOD:
        return mem_printf("%s, %s is not%s", good, up,
                          alike ? ", nor is it on others like it" : "");
    case BELOW_SLOW:
        return mem_printf("slow below %s too: %s", up, slow);
    case BELOW_BOTH:
        return mem_printf("slow below %s too: %s; and %s loses more", up, slow, up);
    case BELOW_ONLY:
        return mem_printf("slow below %s only: %s", up, slow);
    case BELOW_OTHER:
        return mem_printf("%s is faster than what lies below: it took another path (NVLink, other "
                          "NICs)",
                          up);
    case BELOW_FINE:
        return mem_strdup("both as others like it");
    default:
        return mem_strdup("cannot be told: an interval reaches over the bound");
    }
}

/* Pairs of the NIC of `end` with others, used if the pair itself was not measured. */
struct of_nic {
    int end;
    bool sends;
};

static bool takes_nic(const void *of, int src, int dst)
{
    const struct of_nic *n = of;

    return (n->sends ? src : dst) == n->end;
}

static char *beside(const struct below *b, int src, int dst, double bytes)
{
    const struct of_nic end[] = {{src, true}, {dst, false}};
    char *text = mem_strdup("");

    for (int i = 0; i < 2 && bytes > 0; i++) {
        struct below_figure f = below_over(b, takes_nic, &end[i], bytes);
        char rate[UNITS_TEXT];
        if (f.pairs)
            text = mem_append(text, "; its %s %s %s of %d other pair%s", i ? "receiver" : "sender",
                              i ? "gets" : "gives", units_rate_text(rate, f.Bps), f.pairs,
                              units_s(f.pairs));
    }
    return text;
}

static double enough_for(const struct below *b, int src, int dst)
{
    double x = below_tier(&b->above, src, dst)->spread,
           y = below_tier(&b->below, b->to[src], b->to[dst])->spread;

    return fmin(BELOW_ENOUGH, 1 - 3 * 1.4826 * fmax(x, y));
}

void below_pair(struct below_said *s, const struct below *b, int src, int dst)
{
    int x = b->to[src], y = b->to[dst];

    *s = (struct below_said){
        .is = BELOW_UNKNOWN, .above = below_nothing(), .below = below_nothing()};
    if (!below_crosses(&b->above, src, dst))
        s->is = BELOW_APART;
    else if (x >= 0 && y >= 0 && below_crosses(&b->below, x, y)) {
        s->bytes = below_common_size(b, src, dst);
        s->above = below_pair_figure(&b->above, src, dst, s->bytes);
        s->below = below_pair_figure(&b->below, x, y, s->bytes);
        if (isnan(s->above.share))
            s->above = below_by_matrix(&b->above, src, dst, s->bytes);
        if (!isnan(s->above.share))
            s->is = below_judge(&s->above, &s->below, enough_for(b, src, dst));
    }
    char *ends = ends_text(b->above.t, src, dst), *rates = below_rates(b, s),
         *words = below_words(b, s, "the NICs and what is between them are good",
                              "NIC, cable or switch"),
         *more = s->is == BELOW_UNKNOWN && x >= 0 && y >= 0 ? beside(b, src, dst, s->bytes)
                                                            : mem_strdup("");
    s->text = mem_printf("%s: %s%s%s%s", ends, rates, *rates ? ": " : "", words, more);
    free(ends);
    free(rates);
    free(words);
    free(more);
}

void below_said_free(struct below_said *s)
{
    free(s->text);
    s->text = NULL;
}

static json_t *rate_json(const struct below_figure *f)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "Bps", json_finite(f->Bps), "low_Bps",
                     json_finite(f->lo), "high_Bps", json_finite(f->hi), "share",
                     json_finite(f->share));
}

json_t *below_json(const struct below *b, const struct below_said *s)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:i, s:o, s:o}", "verdict", below_name[s->is],
                     "text", s->text, "above", b->above.of.m->transport, "below",
                     b->below.of.m->transport, "bytes",
                     s->bytes > 0 ? json_real(s->bytes) : json_null(), "pairs", s->below.pairs,
                     "rate_above", rate_json(&s->above), "rate_below", rate_json(&s->below));
}
