/* plot_step.h - predicted steps as pictures: their parts side by side, their scaling, their error.
 * What is drawn of them stands in plot_data.h. */
#ifndef RG_PLOT_STEP_H
#define RG_PLOT_STEP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/tsv.h"

/* What a step is made of, in the order that the bars are stacked. */
enum step_part {
    STEP_LINEAR,
    STEP_EXPERT,
    STEP_HEAD,
    STEP_CORE,
    STEP_MEMORY,
    STEP_LAUNCH,
    STEP_TP,
    STEP_CP,
    STEP_EP,
    STEP_DP,
    STEP_PP,
    STEP_BUBBLE,
    STEP_OPTIMIZER,
    STEP_OTHER,
    STEP_WHOLE, /* a step that came without its terms */
    STEP_PARTS
};

/* One predicted step; NAN is not known. */
struct step_bar {
    char *file;                        /* it came from */
    char *given;                       /* label of the caller's, or NULL */
    char *model, *layout, *how;        /* how: strategy and other settings, "" */
    double sec, lo, hi, measured;      /* s */
    double hidden;                     /* s of messages that nobody waits for */
    double tokens_per_gpu, mfu, ranks; /* per second */
    double part[STEP_PARTS];           /* s, they add up to sec */
    bool cpu;                          /* its ranks are no GPUs */
    int alike; /* a search says that it cannot be told apart from the fastest: 1, or can: 0; -1: it
                  is not known */
    double times; /* all times above are multiplied with this, so that equal numbers of tokens are
                     compared; 0: they are those of one step */
};

struct step_bars {
    struct step_bar *bar;
    int bars;
};

/* Append what a file holds: one prediction, the several of `railgauge run`, the best of `railgauge
 * search --json`, or the predicted rows of `railgauge predict --batch --json`.  label: NULL, or
 * what names them instead of their layout.  step_bars_free() also after an error. */
int step_bars_add(struct step_bars *b, const char *label, const char *path, struct err *err);
/* "1.23,-,0.98": measured seconds of the bars in their order, "-" for none. */
int step_bars_measured(struct step_bars *b, const char *list, struct err *err);
void step_bars_free(struct step_bars *b);

/* The share of a step that waits for messages; NAN: it came without its terms. */
double step_messages(const struct step_bar *b);
/* The ratio of two speeds, or of two times, if all messages of both steps took f times as long.
 * above and below: the shares of messages (step_messages) of the step whose time stands above and
 * below the line; NAN counts as none. */
double step_ratio_if(double ratio, double above, double below, double f);

/* Does the file begin as JSON does?  (The others are tables.) */
bool step_is_json(const char *path);

enum { STEP_TOP = 20, STEP_TOP_MAX = 60 };

/* The first `top` bars in their order (0: STEP_TOP) in a terminal. */
int plot_text_step(FILE *out, const struct step_bars *b, int top, int columns, struct err *err);

/* --- scaling: speed of a GPU against how many there are --- */

struct scaling_point {
    double gpus;
    double value, lo, hi, measured; /* tokens/s of a GPU, or of unknown unit when only seconds and
                                       an equal batch of each GPU are known; NAN: not known */
    double messages;                /* share of the step that waits for messages; NAN: not known */
};

struct scaling_series {
    char *name;
    struct scaling_point *point; /* ascending in gpus */
    int points;
};

enum { SCALING_SERIES_MAX = 12 };

struct scaling {
    struct scaling_series *series;
    int count;
    bool tokens; /* values are tokens/s of a GPU */
};

/* From a table: series, gpus, then tokens_per_gpu (per second) or seconds (of a step, and each GPU
 * has the same batch at any size, unless a column tokens says the tokens of the step); lo, hi and
 * measured, if there, in the unit of that column.  scaling_free() also after an error. */
int scaling_load(struct scaling *s, const char *path, struct err *err);
/* From predictions: a series is what has the same label, else the same model, layout without its
 * data-parallel axes, and strategy. */
int scaling_of_steps(struct scaling *s, const struct step_bars *b, struct err *err);
void scaling_free(struct scaling *s);

int plot_text_scaling(FILE *out, const struct scaling *s, struct err *err);

/* --- score: predicted against measured --- */

/* The table of `railgauge predict --batch`, or its JSON. */
int score_table_load(struct tsv *t, const char *path, struct err *err);
int plot_text_score(FILE *out, const struct tsv *t, const char *by, struct err *err);

#endif
