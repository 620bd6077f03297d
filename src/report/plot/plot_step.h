/* plot_step.h - pictures of predicted steps: their parts side by side, their scaling, their error.
 * The tables are described in plot_data.h. */
#ifndef RG_PLOT_STEP_H
#define RG_PLOT_STEP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/tsv.h"

/* Parts of a step, in the order in which bars are stacked. */
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
    STEP_WHOLE, /* a step without its terms */
    STEP_PARTS
};

/* A predicted step; NAN: not known. */
struct step_bar {
    char *file;                        /* file of the prediction */
    char *given;                       /* label of the caller, or NULL */
    char *model, *layout, *how;        /* how: strategy and other settings; "" */
    double sec, lo, hi, measured;      /* s */
    double hidden;                     /* s of messages hidden by compute */
    double tokens_per_gpu, mfu, ranks; /* per second */
    double part[STEP_PARTS];           /* s, sum is sec */
    bool cpu;                          /* ranks are not GPUs */
    /* result of a search: 1: not distinguishable from the fastest, 0: distinguishable; -1: not
     * known */
    int alike;
    /* factor of all times above, so that equal numbers of tokens are compared; 0: times of one
     * step */
    double times;
};

struct step_bars {
    struct step_bar *bar;
    int bars;
};

/* Append the contents of a file: one prediction, the predictions of `railgauge run`, the best of
 * `railgauge search --json`, or the predicted rows of `railgauge predict --batch --json`.  label:
 * name instead of the layout, or NULL.  Call step_bars_free() also after an error. */
int step_bars_add(struct step_bars *b, const char *label, const char *path, struct err *err);
/* Parse "1.23,-,0.98": measured seconds of the bars in order, "-" for none. */
int step_bars_measured(struct step_bars *b, const char *list, struct err *err);
void step_bars_free(struct step_bars *b);

/* Share of exposed messages in a step; NAN: a step without terms. */
double step_messages(const struct step_bar *b);
/* Ratio of two speeds, or of two times, if all messages of both steps took f times as long.  above,
 * below: share of messages (step_messages()) of the step whose time is above and below the line;
 * NAN counts as 0. */
double step_ratio_if(double ratio, double above, double below, double f);

/* True if the file begins like JSON.  (Other files are tables.) */
bool step_is_json(const char *path);

enum { STEP_TOP = 20, STEP_TOP_MAX = 60 };

/* Print the first `top` bars in order (0: STEP_TOP) in a terminal. */
int plot_text_step(FILE *out, const struct step_bars *b, int top, int columns, struct err *err);

/* --- scaling: speed per GPU over the number of GPUs --- */

struct scaling_point {
    double gpus;
    /* tokens/s per GPU; of unknown unit if only seconds and an equal batch per GPU are known; NAN:
     * not known */
    double value, lo, hi, measured;
    double messages; /* share of exposed messages in the step; NAN: not known */
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
    bool tokens; /* values are tokens/s per GPU */
};

/* Load a table: series, gpus, then tokens_per_gpu (per second) or seconds (of a step; each GPU has
 * the same batch at any size, unless a column tokens has the tokens per step); optional lo, hi and
 * measured in the unit of that column.  Call scaling_free() also after an error. */
int scaling_load(struct scaling *s, const char *path, struct err *err);
/* Make series from predictions: those with the same label, else the same model, strategy, and
 * layout without its data-parallel axes. */
int scaling_of_steps(struct scaling *s, const struct step_bars *b, struct err *err);
void scaling_free(struct scaling *s);

int plot_text_scaling(FILE *out, const struct scaling *s, struct err *err);

/* --- score: predicted against measured --- */

/* Load the table of `railgauge predict --batch`, or its JSON. */
int score_table_load(struct tsv *t, const char *path, struct err *err);
int plot_text_score(FILE *out, const struct tsv *t, const char *by, struct err *err);

#endif
