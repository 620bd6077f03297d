/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/plot_step_scene.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

enum { LABEL_CHARS = 56 };

static const double worth_showing = 0.02; /* of any bar; a smaller part joins "other" */

const struct step_look step_look[STEP_PARTS] = {
    [STEP_LINEAR] = {"matrix products", 0x00527f, "█"},
    [STEP_EXPERT] = {"routed experts", 0x3f97cf, "█"},
    [STEP_HEAD] = {"output head", 0xa6d3ef, "█"},
    [STEP_CORE] = {"attention core", 0x00785a, "█"},
    [STEP_MEMORY] = {"between products", 0x5cc2a3, "█"},
    [STEP_LAUNCH] = {"kernel launches", 0xc3e8da, "█"},
    [STEP_TP] = {"tp messages", 0xb34700, "▒"},
    [STEP_CP] = {"cp messages", 0xf7e08a, "▒"},
    [STEP_EP] = {"ep messages", 0xcc79a7, "▒"},
    [STEP_DP] = {"dp messages", 0xf0a830, "▒"},
    [STEP_PP] = {"pp messages", 0x8a3f6a, "▒"},
    [STEP_BUBBLE] = {"pipeline bubble", 0x6b7280, "░"},
    [STEP_OPTIMIZER] = {"optimizer", 0xa8aeb8, "░"},
    [STEP_OTHER] = {"other", 0xdcdfe4, "░"},
    [STEP_WHOLE] = {"step", 0x3f97cf, "█"},
};

/* --- choosing --- */

static void choose_parts(struct step_scene *s)
{
    for (int p = 0; p < STEP_PARTS; p++)
        for (int i = 0; i < s->bars; i++) {
            const struct step_bar *b = &s->all->bar[i];
            s->shown[p] |= b->part[p] >= worth_showing * b->sec;
        }
    for (int i = 0; i < s->bars; i++)
        for (int p = 0; p < STEP_PARTS; p++) {
            double v = s->all->bar[i].part[p];
            s->part[i][s->shown[p] ? p : STEP_OTHER] += v;
            s->shown[STEP_OTHER] |= !s->shown[p] && v > 0;
        }
}

static double at_most(double x, double y)
{
    return isnan(y) ? x : fmax(x, y);
}

int step_scene_of(struct step_scene *s, const struct step_bars *b, int top, struct err *err)
{
    *s = (struct step_scene){.all = b, .same_model = true, .same_ranks = true, .same_how = true};
    if (!b->bars)
        return err_data(err, "no predicted step to draw");
    s->bars = top > 0 ? top : STEP_TOP;
    s->bars = s->bars > STEP_TOP_MAX ? STEP_TOP_MAX : s->bars;
    s->bars = s->bars > b->bars ? b->bars : s->bars;
    choose_parts(s);
    for (int i = 0; i < s->bars; i++) {
        const struct step_bar *x = &b->bar[i], *first = &b->bar[0];
        s->same_model &= !strcmp(x->model, first->model);
        s->same_how &= !strcmp(x->how, first->how);
        s->same_ranks &= x->ranks == first->ranks || (isnan(x->ranks) && isnan(first->ranks));
        s->measured |= !isnan(x->measured);
        s->intervals |= !isnan(x->lo) && !isnan(x->hi);
        s->hidden |= x->hidden > 0;
        s->to = at_most(at_most(at_most(fmax(s->to, x->sec), x->hi), x->measured), x->hidden);
    }
    s->to *= 1.02;
    return 0;
}

/* --- words --- */

static void join(char buf[PLOT_TEXT], const char *word)
{
    size_t n = strlen(buf);

    snprintf(buf + n, PLOT_TEXT - n, "%s%s", n && *word ? ", " : "", word);
}

static const char *gpus(char buf[PLOT_TEXT], double ranks)
{
    *buf = '\0';
    if (!isnan(ranks))
        plot_count(buf, (long)ranks, "GPU");
    return buf;
}

void step_label(char out[PLOT_TEXT], const struct step_bar *b)
{
    const char *label = b->given ? b->given : *b->layout ? b->layout : "one GPU";

    plot_text(out, label, LABEL_CHARS);
}

void step_detail(char out[PLOT_TEXT], const struct step_scene *s, const struct step_bar *b)
{
    char all[PLOT_TEXT] = "", count[PLOT_TEXT];

    if (b->given && *b->layout)
        join(all, b->layout);
    if (!s->same_model)
        join(all, b->model);
    if (!s->same_ranks)
        join(all, gpus(count, b->ranks));
    if (!s->same_how)
        join(all, b->how);
    plot_text(out, all, LABEL_CHARS);
}

void step_time(char out[PLOT_TEXT], const struct step_bar *b)
{
    char sec[UNITS_TEXT], measured[UNITS_TEXT];

    units_seconds_text(sec, b->sec);
    if (isnan(b->measured))
        snprintf(out, PLOT_TEXT, "%s", sec);
    else
        snprintf(out, PLOT_TEXT, "%s, measured %s: %+.1f%%", sec,
                 units_seconds_text(measured, b->measured), 100 * (b->sec / b->measured - 1));
}

void step_speed(char out[PLOT_TEXT], const struct step_bar *b)
{
    char rate[PLOT_TEXT], mfu[32];

    *out = '\0';
    if (!isnan(b->tokens_per_gpu)) {
        plot_count(rate, lround(b->tokens_per_gpu), "");
        snprintf(out, PLOT_TEXT, "%.40s tokens/s/GPU", rate);
    }
    snprintf(mfu, sizeof(mfu), "MFU %.0f%%", 100 * b->mfu);
    if (!isnan(b->mfu))
        join(out, mfu);
}

void step_title(FILE *out, const struct step_scene *s)
{
    const struct step_bar *b = &s->all->bar[0];
    char title[PLOT_TEXT] = "Predicted step time", count[PLOT_TEXT], text[PLOT_TEXT];
    char words[400] = "";

    if (s->same_model && *b->model)
        join(title, b->model);
    if (s->same_ranks)
        join(title, gpus(count, b->ranks));
    if (s->same_how && *b->how)
        snprintf(words, sizeof(words), "%.100s; ", b->how);
    fprintf(out, "title\t%s\n", plot_text(text, title, 90));
    fprintf(out, "subtitle\t%s%s%s%s", words,
            s->intervals ? "line: interval of the prediction" : "",
            s->measured ? "; diamond: measured" : "",
            s->hidden ? "; below a bar: messages hidden behind computing" : "");
    if (s->bars < s->all->bars)
        fprintf(out, "; the first %d of %d", s->bars, s->all->bars);
    fputc('\n', out);
}
