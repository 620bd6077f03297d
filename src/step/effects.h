/* effects.h - what the constants leave open: how much longer compute takes with this model, this
 * software, this GPU than the constants say.  Part of their file (constants.h), fitted with them
 * (score/calibrate.h).
 *
 * Each effect is the log of a factor on all compute: of one level of a factor, such as the release
 * "megatron-bridge 26.04" or that model with that release.  Effects of one factor are draws from a
 * normal distribution round 0, whose deviation is estimated too, so few rows pull an effect little
 * (partial pooling: Gelman and Hill 2007, 12).  A level of which nothing was fitted is 0, and its
 * factor's deviation goes into the interval.
 *
 * A release is its publisher's word and a version; "26.04.01" is also a level of "26.04", so that a
 * version that nothing is known of takes what is known of the one it belongs to. */
#ifndef RG_EFFECTS_H
#define RG_EFFECTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum effect_factor {
    EFFECT_MODEL,
    EFFECT_PUBLISHER, /* whose figures */
    EFFECT_RELEASE,
    EFFECT_STACK,
    EFFECT_GPU,
    EFFECT_MODEL_PUBLISHER,
    EFFECT_MODEL_RELEASE,
    EFFECT_MODEL_GENERATION,
    EFFECT_RELEASE_GENERATION,
    EFFECT_RELEASE_EXPERTS, /* dense models, and those with routed experts */
    EFFECT_RECIPE,          /* model, release, GPU and dtype: what one anchor fixes */
    EFFECT_FACTORS
};
extern const char *const effect_factor_name[EFFECT_FACTORS];

/* What a question says of them; NULL: nothing. */
struct effect_key {
    const char *model, *publisher, *release, *stack, *gpu, *generation, *dtype;
    bool experts;
};

enum { EFFECT_LEVEL = 192, EFFECT_LEVELS = EFFECT_FACTORS + 4 };
struct effect {
    int factor;
    char *level; /* its parts, " | " between them */
    double value, error;
    int n; /* rows that it was fitted to */
};

/* How much of a question was met by the fit: all; its model with its software; its software with
 * other models; its GPU; none of them. */
enum known { KNOWN_RECIPE, KNOWN_MODEL, KNOWN_RELEASE, KNOWN_GPU, KNOWN_NOTHING, KNOWN_COUNT };
extern const char *const known_name[KNOWN_COUNT];

/* Nine of ten steps of such questions, left out of the fit with their group, lay between so many
 * deviations of what was predicted. */
struct effect_interval {
    double lo, hi;
    int n;
};

struct effects {
    struct effect *effect;
    int count;
    double spread[EFFECT_FACTORS];                   /* deviation of each factor's effects */
    double rest;                                     /* of a row, all of them known */
    struct effect_interval interval[KNOWN_COUNT][2]; /* of dense models, with routed experts */
};

/* Whose figures they are: the publisher, or the release's first word; "": nothing says. */
void effect_publisher(char out[EFFECT_LEVEL], const char *publisher, const char *release);

/* A level of a question: known or not. */
struct effect_level {
    int factor;
    char level[EFFECT_LEVEL]; /* "": the question does not say */
    bool known;
    double value, error; /* not known: 0, and the deviation of its factor */
    int n;
};
/* All levels of a question, at least one of each factor; returns how many. */
int effect_levels(struct effect_level out[EFFECT_LEVELS], const struct effects *e,
                  const struct effect_key *key);

/* What they sum to. */
struct effect_sum {
    double value;    /* log of the factor on compute */
    double variance; /* of it */
    enum known known;
};
/* No levels, as where compute was measured: 0, and KNOWN_RELEASE. */
void effect_sum_of(struct effect_sum *s, const struct effect_level *level, int n);

/* No effects: of deviation 0, and the intervals of a normal distribution. */
void effects_none(struct effects *e);
/* The object "effects" of a file; `where` names it in errors.  effects_free() also after an error. */
int effects_read(struct effects *e, json_t *object, const char *where, struct err *err);
/* As text, an effect a line, to follow a key. */
void effects_write(FILE *out, const struct effects *e);
void effects_copy(struct effects *e, const struct effects *from);
void effects_free(struct effects *e);

#endif
