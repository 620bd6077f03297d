/* noise.h - name the parts of a fabric that stand out in measured pairs.  The noise is estimated from the same
 * campaign.
 *
 *   y = usual(class) + turn + min(effect of sender, effect of receiver) + block noise + point noise | stray
 *
 *   y       log of B/s; of latencies -log of s; of the spread -log(sec_p95 / sec)
 *   class   operation, size, tier, alone or beside other pairs
 *   turn    looks measured at the same time; block: a stretch of the campaign (an epoch)
 *   stray   a slow point that neither of its two ends causes
 *
 * Each step is a weighted median by a key, or a sum, so that a campaign costs O(points).  The module depends on
 * no files, plans or simulator.  Threads: no shared state.
 *
 * Example:
 *
 *     #include <math.h>
 *     #include <stdio.h>
 *     struct topo t;
 *     const struct look look[] = {{.src = 0, .dst = 1, .y = 24.6f}, {.src = 1, .dst = 2, .y = 24.1f}};  // and many more
 *     struct noise n;
 *
 *     if (topo_load(&t, "topology.json", err) < 0)
 *         return -1;
 *     noise_judge(&n, &(struct noise_input){.topo = &t, .look = look, .looks = 2}, NULL);
 *     for (int i = 0; i < n.founds; i++)
 *         printf("part %d %d: %g\n", n.found[i].part, n.found[i].a, exp(n.found[i].effect));
 *     noise_free(&n);
 *     topo_free(&t);
 *     return 0; */
#ifndef RG_NOISE_H
#define RG_NOISE_H

#include <stdbool.h>

#include "topo/part.h"
#include "topo/topo.h"

/* Quantity of a look: bandwidth at the size of the pair matrix, one way and both ways at once; bandwidth at a
 * small and at a large size; latency. */
enum look_kind { LOOK_RATE, LOOK_BOTH_WAYS, LOOK_SMALL, LOOK_LARGE, LOOK_LATENCY, LOOK_COUNT };

/* One measured pair. */
struct look {
    int turn;     /* ascending in time */
    int src, dst; /* endpoints */
    float y;      /* value, see above; -INFINITY: no answer */
    float tail;   /* log(sec_p95 / sec), 0 or more; NAN: not known */
    enum look_kind kind : 4;
    int tier : 6;        /* tier of the pair */
    int block : 8;       /* ascending in time; the second stage has numbers of its own */
    int looks_at : 3;    /* second stage: the end it was measured for, 0: src, 1: dst; -1: both */
    bool alone : 1;      /* measured alone */
    bool fresh : 1;      /* measured in the second stage, among suspects and controls */
    bool same_pair : 1;  /* second stage: the same pair again, because the pair stood out */
    bool unselected : 1; /* drawn at random to be measured alone: the reference for "under load" */
};
_Static_assert(sizeof(struct look) == 24 && TIER_MAX <= 32, "millions are held");

/* A part that stands out, or a suspect. */
struct found {
    enum part part;
    enum side side;
    int a, b; /* indices as in struct exception; b: -1 for single parts */
    int tier; /* -1: every tier that crosses NICs */
    enum part_state state;
    enum look_kind kind; /* the looks that show it */
    double effect;       /* log(value / usual); latencies: -log((usual + added) / usual) */
    double sd;           /* standard error of effect */
    double share;        /* share of looks or samples that show the effect; 1: all */
    double p;            /* chance that a healthy part looks as slow */
    double usual_s;      /* LOOK_LATENCY: usual latency, s */
    enum part also; /* part that explains the looks equally well; PART_COUNT: no part.  PART_LEAF of
                      * uplinks: no pair within the leaf was measured */
    int looks, alone, partners, blocks; /* evidence: looks with a fine partner */
};

struct noise_input {
    const struct topo *topo;
    const struct look *look;
    int looks;
    bool crosses[TIER_MAX]; /* tiers that cross NICs */
};

/* Usual value of a class, for the costs and for accept. */
struct usual {
    enum look_kind kind;
    int tier;
    bool alone;
    double y, sigma; /* location and robust standard deviation of healthy looks, log */
    int looks;
};

struct noise {
    struct found *found; /* named parts, the widest first; without fresh looks from stage 1 alone */
    int founds;
    struct found *suspect; /* parts to measure again: the suspects of stage 1, the surest first */
    int suspects;
    struct usual *usual;
    int usuals;
    /* Speed under load / alone by tier, over unselected pairs; NAN: not measured. */
    double loaded[TIER_MAX];
    bool hashed
        [TIER_MAX]; /* pairs beside others share uplinks by chance, so that pairs alone tell more */
    /* Standard deviations of y by level of the campaign: of a look, between turns, between blocks of an
     * endpoint, between endpoints; log; NAN: too few. */
    double sd_look, sd_turn, sd_block, sd_part;
};

/* Results of stage 1 without its looks: stage 2 continues from them. */
struct noise_court;

/* Run stage 1 alone: fills suspect (parts to measure again), usual and loaded.  The caller frees the result with
 * noise_court_free(). */
struct noise_court *noise_suspects(struct noise *n, const struct noise_input *in);
void noise_court_free(struct noise_court *c);
/* Run both stages, the second if it has looks.  kept: NULL, or from noise_suspects(): stage 1 is reused from kept
 * if the looks and places are the same, else judged again.  kept is empty afterwards.  The caller frees
 * with noise_free(). */
void noise_judge(struct noise *n, const struct noise_input *in, struct noise_court *kept);
void noise_free(struct noise *n);

#endif
