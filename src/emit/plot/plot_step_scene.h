/* plot_step_scene.h - which bars and parts of predicted steps are drawn, and the words beside them;
 * for plot_step_bars.c. */
#ifndef RG_PLOT_STEP_SCENE_H
#define RG_PLOT_STEP_SCENE_H

#include <stdbool.h>

#include "emit/plot/plot_data.h"
#include "emit/plot/plot_step.h"

/* Blues and greens compute, warm colours send, greys wait; inside a family light and dark, so that
 * neighbours differ in lightness too. */
struct step_look {
    const char *name;
    unsigned rgb;
    const char *fill; /* in a terminal */
};
extern const struct step_look step_look[STEP_PARTS];

/* What is drawn of all bars. */
struct step_scene {
    const struct step_bars *all;
    struct step_bar bar[STEP_TOP_MAX]; /* those that are drawn, their times made comparable; nothing
                                          in it is owned */
    int bars;
    int alike;     /* so many from the first on cannot be told apart from it; 0: none */
    double tokens; /* of one GPU behind the times, where steps have different numbers; else NAN */
    double part[STEP_TOP_MAX][STEP_PARTS];
    bool shown[STEP_PARTS];
    bool same_model, same_ranks, same_how, measured, intervals, hidden;
    double to; /* s, end of the axis */
    int key_lines;
};

/* The first `top` bars (0: STEP_TOP); they must outlive the scene.  No bars: EXIT_DATA. */
int step_scene_of(struct step_scene *s, const struct step_bars *b, int top, struct err *err);

/* Words of one bar, "" where there is nothing to say. */
void step_label(char out[PLOT_TEXT], const struct step_bar *b);
/* What the bars do not have in common. */
void step_detail(char out[PLOT_TEXT], const struct step_scene *s, const struct step_bar *b);
void step_time(char out[PLOT_TEXT], const struct step_bar *b);  /* "7.45 s, measured ..." */
void step_speed(char out[PLOT_TEXT], const struct step_bar *b); /* "714 tokens/s/GPU, MFU 41%" */
/* What its times were multiplied with. */
double step_times(const struct step_bar *b);
/* Which bars cannot be told apart, and what was made equal; "" where neither. */
enum { STEP_NOTES = 320 };
void step_notes(char out[STEP_NOTES], const struct step_scene *s);
/* Lines of the table of words: title and subtitle. */
void step_title(FILE *out, const struct step_scene *s);

#endif
