/* parts_impl.h - parts of one scope and the samples that cross them: what the hunt for slow ones
 * (parts.c) and the look at its evidence (parts_evidence.c) share. */
#ifndef RG_PARTS_IMPL_H
#define RG_PARTS_IMPL_H

#include "base/map.h"
#include "cost/fit/fit_impl.h"

enum { SCOPE_NICS = -1 }; /* all tiers that cross NICs */

/* Factors that differ less belong to one cause. */
static const double same_factor = 0.1;

struct element {
    struct exception e;
    const int *index;
    int samples;
    int inside; /* how many of them, the last ones, do not leave the group */
    double score;
};

/* How a sample passes a group of endpoints. */
enum pass { PASS_OUT, PASS_IN, PASS_WITHIN, PASS_COUNT };

/* known: parts that another tier named already are looked for in this one, which has too few pairs
 * to tell by itself; [2 * endpoint + received]. */
struct hunt {
    struct fit *f;
    int scope;    /* a tier, or SCOPE_NICS */
    double sigma; /* of the healthy, share */
    const bool *known;
    struct lists by[3];              /* samples by sender, by receiver, by rack pair */
    struct lists group[LEVEL_COUNT]; /* of some levels: by PASS_COUNT * group + enum pass */
    bool *broken;                    /* endpoints that nobody can be measured with */
    bool *low;                       /* by sample: may it be evidence against a part? */
    int parts;                       /* with enough samples; of these, those that have a low one: */
    struct element *element;
    int elements;
    double *v;  /* scratch */
    int *stamp; /* [0]: the last mark given; [1 + host], [1 + hosts + endpoint]: its mark */
};

static inline bool hunt_has(const struct hunt *h, int tier)
{
    return h->scope == SCOPE_NICS ? h->f->m->tier[tier].nic : tier == h->scope;
}

static inline bool hunt_nics(const struct hunt *h)
{
    return h->scope == SCOPE_NICS || h->f->m->tier[h->scope].nic;
}

/* A low sample: nearer to the factor than to normal.  What is looked for again must be seen alone,
 * too. */
static inline bool hunt_shows(const struct hunt *h, const struct fit_sample *s, double factor)
{
    return s->explained < 0 && s->residual <= (1 + factor) / 2 && (s->alone || !h->known);
}

/* Is it as slow in every tier of the scope, and the evidence independent?  Three partners, or two
 * alone, on two hosts (rack pairs: two hosts on either side), or all that
 * there are; fewer do where the same factor is known from another tier.  Of a group: three of its
 * endpoints on two hosts or all that there are, none that is fine, partners in two other groups, and
 * nearly all of it as slow. */
bool parts_enough(struct hunt *h, const struct element *x);
/* A sample beside which this factor is no explanation: clearly faster. */
static inline double hunt_fine(const struct hunt *h, double factor)
{
    double likely = factor * (1 + same_factor), halfway = (1 + factor) / 2;

    return (likely < halfway ? likely : halfway) + 1.5 * h->sigma;
}

#endif
