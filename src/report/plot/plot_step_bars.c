/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_step_bars.c - predicted steps as stacked bars: tables, and lines for a terminal. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "report/plot/plot_data.h"

/* Blues and greens are compute, warm colours messages, greys waits; within a family light and dark
 * alternate, so that neighbours differ in lightness. */
struct step_look {
    const char *name;
    unsigned rgb;
    const char *fill; /* character in a terminal */
};

struct step_scene {
    const struct step_bars *all;
    /* bars drawn, with comparable times; contents are borrowed */
    struct step_bar bar[STEP_TOP_MAX];
    int bars;
    int alike;     /* number of first bars not distinguishable from the fastest; 0: none */
    double tokens; /* tokens per GPU that the times refer to if steps differ in tokens; else NAN */
    double part[STEP_TOP_MAX][STEP_PARTS];
    bool shown[STEP_PARTS];
    bool same_model, same_ranks, same_how, measured, intervals, hidden;
    double to; /* s, end of the axis */
};

/* Text on bars that are not distinguishable, and on times made comparable; "": neither. */
enum { STEP_NOTES = 320 };

enum { LABEL_CHARS = 56 };

static const double worth_showing = 0.02; /* share of a bar; smaller parts join "other" */

static const struct step_look step_look[STEP_PARTS] = {
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

/* --- choice of bars --- */

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

/* --- comparison --- */

/* Without common errors (with an anchor) predictions are still off by 1.6 %, the median of
 * `railgauge plot score` over published steps.  A smaller difference between two layouts is not
 * significant. */
static const double told_apart = 0.02;

/* True if the order of two steps is certain: the difference exceeds the accuracy of predictions,
 * and does not change sign if messages are slower or faster by as much as the step may be off. */
static bool apart(const struct step_bar *a, const struct step_bar *b)
{
    double x = step_messages(a), y = step_messages(b), ratio = a->sec / b->sec, r = log(ratio);
    double w = log(b->hi / b->lo) / 2, f = isfinite(w) ? exp(w) : 1;

    return fabs(r) > told_apart && r * log(step_ratio_if(ratio, x, y, f)) > 0 &&
           r * log(step_ratio_if(ratio, x, y, 1 / f)) > 0;
}

/* A search has compared without the errors that its layouts share; other steps are compared
 * here. */
static bool differs(const struct step_bar *a, const struct step_bar *first)
{
    bool said = a->alike >= 0 && first->alike == 1 && !strcmp(a->file, first->file);

    return said ? !a->alike : apart(a, first);
}

static int alike_of(const struct step_scene *s)
{
    int n = 1;

    while (n < s->bars && !differs(&s->bar[n], &s->bar[0]))
        n++;
    return n > 1 ? n : 0;
}

/* Factor of its times. */
static double step_times(const struct step_bar *b)
{
    return b->times > 0 ? b->times : 1;
}

/* Tokens per GPU in one step, or of all GPUs with of_all. */
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

/* Steps with different batches: use the time that each takes for the tokens per GPU of the first,
 * so that the shorter bar is the faster layout.  (A step of the same global batch on more GPUs is
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

static void step_notes(char out[STEP_NOTES], const struct step_scene *s)
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

/* Choose the first `top` bars (0: STEP_TOP), which must outlive the scene.  EXIT_DATA: no bars. */
static int step_scene_of(struct step_scene *s, const struct step_bars *b, int top, struct err *err)
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

/* Label of a bar; "": none. */
static char *step_label(char out[PLOT_TEXT], const struct step_bar *b)
{
    return plot_text(out, b->given ? b->given : *b->layout ? b->layout : "one GPU", LABEL_CHARS);
}

/* Properties in which the bars differ. */
static char *step_detail(char out[PLOT_TEXT], const struct step_scene *s, const struct step_bar *b)
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
    return plot_text(out, all, LABEL_CHARS);
}

/* "7.45 s, measured ..." */
static char *step_time(char out[PLOT_TEXT], const struct step_bar *b)
{
    char measured[UNITS_TEXT];
    size_t n = strlen(units_seconds_text(out, b->sec / step_times(b)));

    if (!isnan(b->measured))
        snprintf(out + n, PLOT_TEXT - n, ", measured %s: %+.1f%%",
                 units_seconds_text(measured, b->measured / step_times(b)),
                 100 * (b->sec / b->measured - 1));
    return out;
}

/* "714 tokens/s/GPU, MFU 41%" */
static char *step_speed(char out[PLOT_TEXT], const struct step_bar *b)
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
    return out;
}

/* Write title and subtitle to the table of texts. */
static void step_title(FILE *out, const struct step_scene *s)
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
    fputc('\n', out);
    if (*notes) /* gnuplot reads the previous line's text for an empty cell */
        fprintf(out, "notes\t%s\n", notes);
}

enum {
    AREA_PIXELS = 1100,
    KEY_PIXELS = 70, /* square and gaps of a legend entry */
    NUMBER_PIXELS = 64
};

/* --- tables --- */

static void put_bars(FILE *out, const void *figure)
{
    const struct step_scene *s = figure;
    char text[PLOT_TEXT];

    for (int i = 0; i < s->bars; i++) {
        const struct step_bar *b = &s->bar[i];
        const double number[] = {b->ranks,          b->sec, b->lo, b->hi, b->measured, b->hidden,
                                 b->tokens_per_gpu, b->mfu};
        fprintf(out, "%d\t%s", i + 1, step_label(text, b));
        fprintf(out, "\t%s", step_detail(text, s, b));
        fprintf(out, "\t%s", plot_text(text, b->model, 100));
        fprintf(out, "\t%s", plot_text(text, b->layout, 100));
        for (size_t k = 0; k < sizeof(number) / sizeof(*number); k++)
            plot_number(out, number[k]);
        fputc('\n', out);
    }
}

/* Position at which the share of a part does not touch the interval or the measured mark; NAN:
 * none. */
static double place_for_number(const struct step_scene *s, const struct step_bar *b, double from,
                               double to)
{
    double need = NUMBER_PIXELS * s->to / AREA_PIXELS, mark = need / 3;
    double end = isnan(b->lo) ? to : fmin(to, fmax(from, b->lo));

    if (!isnan(b->measured) && b->measured + mark > from && b->measured - mark < end) {
        if (b->measured - mark - from > end - b->measured - mark)
            end = b->measured - mark;
        else
            from = b->measured + mark;
    }
    return end - from > need ? (from + end) / 2 : NAN;
}

static void print_parts(FILE *out, const struct step_scene *s, int i)
{
    double from = 0, sec = s->bar[i].sec;

    for (int p = 0; p < STEP_PARTS; p++) {
        double v = s->part[i][p];
        if (!(v > 0))
            continue;
        double at = p == STEP_WHOLE ? NAN : place_for_number(s, &s->bar[i], from, from + v);
        fprintf(out, "%d\t%d\t%s\t%.6g\t%.6g\t%u\t%u\t", i + 1, p + 1, step_look[p].name, from,
                from + v, step_look[p].rgb, plot_ink_on(step_look[p].rgb));
        if (!isnan(at))
            fprintf(out, "%.0f%%", 100 * v / sec);
        plot_number(out, at);
        fputc('\n', out);
        from += v;
    }
}

static void put_parts(FILE *out, const void *figure)
{
    const struct step_scene *s = figure;

    for (int i = 0; i < s->bars; i++)
        print_parts(out, s, i);
}

static void put_texts(FILE *out, const void *figure)
{
    const struct step_scene *s = figure;
    char label[PLOT_TEXT], detail[PLOT_TEXT], time[PLOT_TEXT], speed[PLOT_TEXT];

    for (int i = 0; i < s->bars; i++) {
        const struct step_bar *b = &s->bar[i];
        fprintf(out, "%d\t%s\t%s\t%s\t%s\n", i + 1, step_label(label, b), step_detail(detail, s, b),
                step_speed(speed, b), step_time(time, b));
    }
}

/* Approximate width in DejaVu Sans at the size of the labels. */
static int pixels_of(const char *text)
{
    double em = 0;

    for (const char *c = text; *c; c++)
        if ((*c & 0xc0) != 0x80)
            em += strchr("iljtf.,:;'|()[]! -", *c) ? 0.4 : strchr("mwMW@%", *c) ? 0.95 : 0.65;
    return (int)(em * 22);
}

/* Width of the longest label. */
static int widest(const struct step_scene *s)
{
    char text[PLOT_TEXT];
    int most = 1;

    for (int i = 0; i < s->bars; i++) {
        int bold = pixels_of(step_label(text, &s->bar[i])) * 11 / 10;
        int plain = pixels_of(step_detail(text, s, &s->bar[i]));
        most = bold > most ? bold : most;
        most = plain > most ? plain : most;
    }
    return most;
}

/* Write the legend, in lines as wide as labels and bars together; out may be NULL.  Returns the
 * number of lines. */
static int print_key(FILE *out, const struct step_scene *s)
{
    int room = AREA_PIXELS + widest(s), at = 0, line = 0;

    for (int p = 0; p < STEP_WHOLE; p++) {
        if (!s->shown[p])
            continue;
        int width = KEY_PIXELS + pixels_of(step_look[p].name);
        if (at && at + width > room) {
            at = 0;
            line++;
        }
        if (out)
            fprintf(out, "%d\t%s\t%u\t%d\t%d\n", p + 1, step_look[p].name, step_look[p].rgb, line,
                    at);
        at += width;
    }
    return at ? line + 1 : 0;
}

static void put_key(FILE *out, const void *figure)
{
    print_key(out, figure);
}

static void put_meta(FILE *out, const void *figure)
{
    const struct step_scene *s = figure;
    bool minutes = s->to > 300, small = s->to < 1;
    char tokens[PLOT_TEXT];

    step_title(out, s);
    fprintf(out, "bars\t%d\nto_s\t%.6g\nscale\t%.6g\nunit\t%s\n", s->bars, s->to,
            minutes ? 1 / 60.
            : small ? 1e3
                    : 1,
            minutes ? "minutes"
            : small ? "ms"
                    : "s");
    if (isnan(s->tokens))
        fputs("axis\ttime of a step\n", out);
    else
        fprintf(out, "axis\ttime for %.60s of a GPU\n",
                plot_count(tokens, lround(s->tokens), "token"));
    fprintf(out, "label_pixels\t%d\narea_pixels\t%d\nkey_lines\t%d\nmeasured\t%d\n", widest(s),
            AREA_PIXELS, print_key(NULL, s), s->measured);
}

/* gnuplot takes the previous row's value for an empty last cell, so empty cells are in the
 * middle. */
static const struct plot_table tables[] = {
    /* The numbers that are drawn; NaN: none. */
    {"step.tsv",
     "row\tlabel\tdetail\tmodel\tlayout\tranks\tstep_s\tlo_s\thi_s\tmeasured_s\thidden_s\t"
     "tokens_per_s_per_gpu\tmfu",
     put_bars},
    {"step_part.tsv", "row\tpart\tname\tfrom_s\tto_s\trgb\tink\ttext\tat_s", put_parts},
    {"step_text.tsv", "row\tlabel\tdetail\tspeed\ttime", put_texts},
    {"step_key.tsv", "part\tname\trgb\tline\tat", put_key}, /* legend: line, pixels from the left */
    {"step_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

int plot_data_step(const struct plot_source *from, const char *dir, struct err *err)
{
    struct step_scene s;

    if (step_scene_of(&s, from->steps, from->top, err) < 0)
        return -1;
    return plot_tables_write(tables, &s, dir, err);
}

/* --- terminal --- */

/* A bar of characters as long as the step: compute, messages, the rest. */
static void strip(char *out, size_t size, const struct step_scene *s, int i, int width)
{
    double upto = 0;
    int done = 0;
    size_t n = 0;

    *out = '\0';
    for (int p = 0; p < STEP_PARTS; p++) {
        upto += s->part[i][p];
        for (int end = (int)lround(upto / s->to * width); done < end && n + 4 < size; done++)
            n += (size_t)snprintf(out + n, size - n, "%s", step_look[p].fill);
    }
}

int plot_text_step(FILE *out, const struct step_bars *b, int top, int columns, struct err *err)
{
    char label[PLOT_TEXT], time[PLOT_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT], range[PLOT_TEXT];
    char bar[400], speed[PLOT_TEXT], note[STEP_NOTES];
    static const struct table_column heads[] = {{NULL, "layout", "text"},
                                                {NULL, "step", "text"},
                                                {NULL, "interval", "text"},
                                                {NULL, "tokens/s/GPU", "figure"},
                                                {NULL, "█ computes ▒ sends ░ waits", "text"},
                                                {0}};
    struct table t;
    struct step_scene s;

    if (step_scene_of(&s, b, top, err) < 0)
        return -1;
    int width = columns - widest(&s) / 14 - 60;
    table_open(&t, heads);
    for (int i = 0; i < s.bars; i++) {
        const struct step_bar *one = &s.bar[i];
        snprintf(range, sizeof(range), "%s .. %s",
                 units_seconds_text(lo, one->lo / step_times(one)),
                 units_seconds_text(hi, one->hi / step_times(one)));
        plot_count(speed, isnan(one->tokens_per_gpu) ? 0 : lround(one->tokens_per_gpu), "");
        strip(bar, sizeof(bar), &s, i, width < 20 ? 20 : width > 100 ? 100 : width);
        table_add(&t, step_label(label, one), step_time(time, one), isnan(one->lo) ? NULL : range,
                  isnan(one->tokens_per_gpu) ? NULL : speed, bar);
    }
    table_print(out, &t, 0);
    table_free(&t);
    step_notes(note, &s);
    if (*note)
        fprintf(out, "\n%s\n", note);
    return 0;
}
