/* effects.h - deviations that the constants do not explain: how much longer compute takes for this
 * model, software or GPU than the constants predict.  Part of the constants' file (constants.h),
 * fitted with them (calibrate/calibrate.h).
 *
 * Each effect is the log of a factor on all compute, for one level of a factor, such as the release
 * "megatron-bridge 26.04", or a model with that release.  Effects of one factor are draws from a
 * normal distribution about 0 with an estimated deviation, so few rows pull an effect little
 * (partial pooling: Gelman and Hill 2007, 12).  A level without fitted rows has effect 0, and its
 * factor's deviation enters the interval.
 *
 * A release is a publisher's name and a version.  "26.04.01" is also a level of "26.04", so that a
 * version without rows takes the effect of the one it belongs to. */
#ifndef RG_EFFECTS_H
#define RG_EFFECTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum effect_factor {
    EFFECT_MODEL,
    EFFECT_PUBLISHER, /* publisher of the figures */
    EFFECT_RELEASE,
    EFFECT_STACK,
    EFFECT_GPU,
    EFFECT_MODEL_PUBLISHER,
    EFFECT_MODEL_RELEASE,
    EFFECT_MODEL_GENERATION,
    EFFECT_RELEASE_GENERATION,
    EFFECT_RELEASE_EXPERTS, /* dense models; models with routed experts */
    EFFECT_RECIPE,          /* model, release, GPU and dtype: scope of one anchor */
    EFFECT_FACTORS
};
extern const char *const effect_factor_name[EFFECT_FACTORS];

/* Properties of a question that select levels; NULL: unknown. */
struct effect_key {
    const char *model, *publisher, *release, *stack, *gpu, *generation, *dtype;
    bool experts;
};

enum { EFFECT_LEVEL = 192, EFFECT_LEVELS = EFFECT_FACTORS + 4 };
struct effect {
    int factor;
    char *level; /* parts joined by " | " */
    double value, error;
    int n; /* number of rows it was fitted to */
};

/* Familiarity of a question to the fit: all of it; its model with its software; its software with
 * other models; its GPU; none. */
enum known { KNOWN_RECIPE, KNOWN_MODEL, KNOWN_RELEASE, KNOWN_GPU, KNOWN_NOTHING, KNOWN_COUNT };
extern const char *const known_name[KNOWN_COUNT];

/* Range, in predicted deviations, that contained nine of ten steps of such questions when their
 * group was left out of the fit. */
struct effect_interval {
    double lo, hi;
    int n;
};

struct effects {
    struct effect *effect;
    int count;
    double spread[EFFECT_FACTORS];                   /* deviation of each factor's effects */
    double rest;                                     /* deviation of a row with all effects known */
    struct effect_interval interval[KNOWN_COUNT][2]; /* dense models; models with routed experts */
};

/* Copy the publisher of the figures: `publisher`, or the first word of the release; "": unknown. */
void effect_publisher(char out[EFFECT_LEVEL], const char *publisher, const char *release);

/* One level of a question, known or not. */
struct effect_level {
    int factor;
    char level[EFFECT_LEVEL]; /* "": the question does not state it */
    bool known;
    double value, error; /* unknown level: 0, and the deviation of its factor */
    int n;
};
/* List all levels of a question, at least one per factor.  Returns their number. */
int effect_levels(struct effect_level out[EFFECT_LEVELS], const struct effects *e,
                  const struct effect_key *key);

/* Sum of the effects of a question. */
struct effect_sum {
    double value;    /* log of the factor on compute */
    double variance; /* variance of value */
    enum known known;
};
/* Sum the effects.  Without levels, as for a measured compute rate: 0, and KNOWN_RELEASE. */
void effect_sum_of(struct effect_sum *s, const struct effect_level *level, int n);

/* Set no effects: deviation 0, and the intervals of a normal distribution. */
void effects_none(struct effects *e);
/* Read the object "effects" of a file; `where` names it in errors.  Call effects_free() even after
 * an error. */
int effects_read(struct effects *e, json_t *object, const char *where, struct err *err);
/* Write as JSON text, one effect per line, to follow a key. */
void effects_write(FILE *out, const struct effects *e);
void effects_copy(struct effects *e, const struct effects *from);
void effects_free(struct effects *e);

#endif
