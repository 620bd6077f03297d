/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/plot/plot_step_scene.h"

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
            const struct step_bar *b = &s->bar[i];
            s->shown[p] |= b->part[p] >= worth_showing * b->sec;
        }
    for (int i = 0; i < s->bars; i++)
        for (int p = 0; p < STEP_PARTS; p++) {
            double v = s->bar[i].part[p];
            s->part[i][s->shown[p] ? p : STEP_OTHER] += v;
            s->shown[STEP_OTHER] |= !s->shown[p] && v > 0;
        }
}

/* --- comparing --- */

/* Predictions from which the common errors are gone (by an anchor) are still off by 1.6 %, the
 * median of `railgauge plot score` over published steps: less between two layouts says nothing. */
static const double told_apart = 0.02;

double step_messages(const struct step_bar *b)
{
    double sum = 0;

    for (int p = STEP_TP; p <= STEP_PP; p++)
        sum += b->part[p];
    return b->part[STEP_WHOLE] > 0 ? NAN : sum / b->sec;
}

/* By how much a is slower than b (their ratio) if all messages of both took f times as long. */
static double ratio_if(const struct step_bar *a, const struct step_bar *b, double f)
{
    double x = step_messages(a), y = step_messages(b);

    return a->sec / b->sec * (1 + (f - 1) * (isnan(x) ? 0 : x)) /
           (1 + (f - 1) * (isnan(y) ? 0 : y));
}

/* Their order holds: the difference is not lost in what a prediction is good for, nor turned round
 * when messages take more or less time by as much as the step may be off. */
static bool apart(const struct step_bar *a, const struct step_bar *b)
{
    double r = log(ratio_if(a, b, 1)), w = log(b->hi / b->lo) / 2;
    double f = isfinite(w) ? exp(w) : 1;

    return fabs(r) > told_apart && r * log(ratio_if(a, b, f)) > 0 &&
           r * log(ratio_if(a, b, 1 / f)) > 0;
}

static int alike_of(const struct step_scene *s)
{
    int n = 1;

    while (n < s->bars && !apart(&s->bar[n], &s->bar[0]))
        n++;
    return n > 1 ? n : 0;
}

double step_times(const struct step_bar *b)
{
    return b->times > 0 ? b->times : 1;
}

/* Tokens of a GPU, or of all with of_all, in one step. */
static double tokens_of(const struct step_bar *b, bool of_all)
{
    return b->tokens_per_gpu * b->sec * (of_all ? b->ranks : 1);
}

static bool same_tokens(const struct step_scene *s, bool of_all)
{
    for (int i = 1; i < s->bars; i++)
        if (!(fabs(tokens_of(&s->bar[i], of_all) / tokens_of(&s->bar[0], of_all) - 1) < 0.005))
            return false;
    return true;
}

static void multiply(struct step_bar *b, double times)
{
    double *const all[] = {&b->sec, &b->lo, &b->hi, &b->measured, &b->hidden};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        *all[i] *= times;
    for (int p = 0; p < STEP_PARTS; p++)
        b->part[p] *= times;
    b->times = times;
}

/* Steps of different batches: the time that each takes for as many tokens of a GPU as the first.
 * The shorter bar is then the faster layout.  (A step of the same global batch on more GPUs is
 * compared as it is.) */
static void make_comparable(struct step_scene *s)
{
    double first = tokens_of(&s->bar[0], false);

    s->tokens = NAN;
    for (int i = 0; i < s->bars; i++)
        if (!(tokens_of(&s->bar[i], true) > 0))
            return;
    if (same_tokens(s, true) || same_tokens(s, false))
        return;
    s->tokens = first;
    for (int i = 0; i < s->bars; i++)
        multiply(&s->bar[i], first / tokens_of(&s->bar[i], false));
}

void step_notes(char out[STEP_NOTES], const struct step_scene *s)
{
    char tokens[PLOT_TEXT], note[PLOT_TEXT] = "";

    *out = '\0';
    if (s->alike)
        snprintf(out, STEP_NOTES, "%s %d cannot be told apart",
                 s->alike == s->bars ? "the" : "the first", s->alike);
    if (!isnan(s->tokens))
        snprintf(note, sizeof(note), "%sdifferent batches: bars are the time for %.60s of a GPU",
                 *out ? "; " : "", plot_count(tokens, lround(s->tokens), "token"));
    strncat(out, note, STEP_NOTES - strlen(out) - 1);
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
    memcpy(s->bar, b->bar, (size_t)s->bars * sizeof(*b->bar));
    make_comparable(s);
    s->alike = alike_of(s);
    choose_parts(s);
    for (int i = 0; i < s->bars; i++) {
        const struct step_bar *x = &s->bar[i], *first = &s->bar[0];
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

static const char *devices(char buf[PLOT_TEXT], const struct step_bar *b)
{
    *buf = '\0';
    if (!isnan(b->ranks))
        plot_count(buf, (long)b->ranks, b->cpu ? "CPU rank" : "GPU");
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
        join(all, devices(count, b));
    if (!s->same_how)
        join(all, b->how);
    plot_text(out, all, LABEL_CHARS);
}

void step_time(char out[PLOT_TEXT], const struct step_bar *b)
{
    char sec[UNITS_TEXT], measured[UNITS_TEXT];

    units_seconds_text(sec, b->sec / step_times(b));
    if (isnan(b->measured))
        snprintf(out, PLOT_TEXT, "%s", sec);
    else
        snprintf(out, PLOT_TEXT, "%s, measured %s: %+.1f%%", sec,
                 units_seconds_text(measured, b->measured / step_times(b)),
                 100 * (b->sec / b->measured - 1));
}

void step_speed(char out[PLOT_TEXT], const struct step_bar *b)
{
    char rate[PLOT_TEXT], mfu[32];

    *out = '\0';
    if (!isnan(b->tokens_per_gpu)) {
        if (b->tokens_per_gpu < 10)
            snprintf(rate, sizeof(rate), "%.2g", b->tokens_per_gpu);
        else
            plot_count(rate, lround(b->tokens_per_gpu), "");
        snprintf(out, PLOT_TEXT, "%.40s tokens/s/%s", rate, b->cpu ? "rank" : "GPU");
    }
    snprintf(mfu, sizeof(mfu), "MFU %.0f%%", 100 * b->mfu);
    if (!isnan(b->mfu))
        join(out, mfu);
}

void step_title(FILE *out, const struct step_scene *s)
{
    const struct step_bar *b = &s->bar[0];
    char title[PLOT_TEXT] = "Predicted step time", count[PLOT_TEXT], text[PLOT_TEXT];
    char words[400] = "", notes[STEP_NOTES];

    if (s->same_model && *b->model)
        join(title, b->model);
    if (s->same_ranks)
        join(title, devices(count, b));
    if (s->same_how && *b->how)
        snprintf(words, sizeof(words), "%.100s; ", b->how);
    fprintf(out, "title\t%s\n", plot_text(text, title, 90));
    fprintf(out, "subtitle\t%s%s%s%s", words,
            s->intervals ? "line: interval of the prediction" : "",
            s->measured ? "; diamond: measured" : "",
            s->hidden ? "; below a bar: messages hidden behind computing" : "");
    if (s->bars < s->all->bars)
        fprintf(out, "; the first %d of %d", s->bars, s->all->bars);
    step_notes(notes, s);
    fprintf(out, "\nnotes\t%s", notes);
    fputc('\n', out);
}
