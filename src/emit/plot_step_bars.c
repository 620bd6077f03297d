/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted steps as stacked bars: which parts are told apart, what is written where. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "emit/plot_data.h"
#include "emit/plot_step.h"
#include "emit/table.h"

enum {
    AREA_PIXELS = 1100,
    KEY_PIXELS = 70, /* square and gaps of an entry of the legend */
    NUMBER_PIXELS = 64,
    LABEL_CHARS = 56
};

static const double worth_showing = 0.02; /* of any bar; a smaller part joins "other" */

/* Blues and greens compute, warm colours send, greys wait; inside a family light and dark, so that
 * neighbours differ in lightness too.  fill: in a terminal. */
static const struct {
    const char *name;
    unsigned rgb;
    const char *fill;
} look[STEP_PARTS] = {
    [STEP_LINEAR] = {"matrix products", 0x00527f, "█"},
    [STEP_EXPERT] = {"routed experts", 0x3f97cf, "█"},
    [STEP_HEAD] = {"output head", 0xa6d3ef, "█"},
    [STEP_CORE] = {"attention core", 0x00785a, "█"},
    [STEP_MEMORY] = {"memory-bound", 0x5cc2a3, "█"},
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

/* What is drawn of all bars. */
struct scene {
    const struct step_bars *all;
    int bars;
    double part[STEP_TOP_MAX][STEP_PARTS];
    bool shown[STEP_PARTS];
    bool same_model, same_ranks, same_how, measured, intervals, hidden;
    double to; /* s, end of the axis */
    int key_lines;
};

/* --- choosing --- */

static void choose_parts(struct scene *s)
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

static int choose(struct scene *s, const struct step_bars *b, int top, struct err *err)
{
    *s = (struct scene){.all = b, .same_model = true, .same_ranks = true, .same_how = true};
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

static void label_of(char out[PLOT_TEXT], const struct step_bar *b)
{
    const char *label = b->given ? b->given : *b->layout ? b->layout : "one GPU";

    plot_text(out, label, LABEL_CHARS);
}

/* What the bars do not have in common. */
static void detail_of(char out[PLOT_TEXT], const struct scene *s, const struct step_bar *b)
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

static void time_of(char out[PLOT_TEXT], const struct step_bar *b)
{
    char sec[UNITS_TEXT], measured[UNITS_TEXT];

    units_seconds_text(sec, b->sec);
    if (isnan(b->measured))
        snprintf(out, PLOT_TEXT, "%s", sec);
    else
        snprintf(out, PLOT_TEXT, "%s, measured %s: %+.1f%%", sec,
                 units_seconds_text(measured, b->measured), 100 * (b->sec / b->measured - 1));
}

static void speed_of(char out[PLOT_TEXT], const struct step_bar *b)
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

/* --- tables --- */

static void print_number(FILE *out, double v)
{
    if (isfinite(v))
        fprintf(out, "\t%.6g", v);
    else
        fputs("\tNaN", out);
}

static void print_bar(FILE *out, const struct scene *s, int i)
{
    const struct step_bar *b = &s->all->bar[i];
    const double number[] = {b->ranks,          b->sec, b->lo, b->hi, b->measured, b->hidden,
                             b->tokens_per_gpu, b->mfu};
    char text[PLOT_TEXT];

    label_of(text, b);
    fprintf(out, "%d\t%s", i + 1, text);
    detail_of(text, s, b);
    fprintf(out, "\t%s", text);
    fprintf(out, "\t%s", plot_text(text, b->model, 100));
    fprintf(out, "\t%s", plot_text(text, b->layout, 100));
    for (size_t k = 0; k < sizeof(number) / sizeof(*number); k++)
        print_number(out, number[k]);
    fputc('\n', out);
}

static unsigned ink_on(unsigned rgb)
{
    unsigned light = (rgb >> 16 & 255) * 3 + (rgb >> 8 & 255) * 6 + (rgb & 255);

    return light < 1280 ? 0xffffff : 0x1a1a1a;
}

/* Where the share of a part can stand without being crossed by the interval or the measured mark;
 * NAN: nowhere. */
static double place_for_number(const struct scene *s, const struct step_bar *b, double from,
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

static void print_parts(FILE *out, const struct scene *s, int i)
{
    double from = 0, sec = s->all->bar[i].sec;

    for (int p = 0; p < STEP_PARTS; p++) {
        double v = s->part[i][p];
        if (!(v > 0))
            continue;
        double at = p == STEP_WHOLE ? NAN : place_for_number(s, &s->all->bar[i], from, from + v);
        fprintf(out, "%d\t%d\t%s\t%.6g\t%.6g\t%u\t%u\t", i + 1, p + 1, look[p].name, from, from + v,
                look[p].rgb, ink_on(look[p].rgb));
        if (!isnan(at))
            fprintf(out, "%.0f%%", 100 * v / sec);
        print_number(out, at);
        fputc('\n', out);
        from += v;
    }
}

/* gnuplot takes an empty last cell for the one of the row before: empty ones are in the middle. */
static int write_bars(const struct scene *s, const char *dir, struct err *err)
{
    struct file_out bar = {0}, part = {0}, text = {0};
    char label[PLOT_TEXT], detail[PLOT_TEXT], time[PLOT_TEXT], speed[PLOT_TEXT];
    int rc = -1;

    if (plot_begin(&bar, dir, "step.tsv",
                   "row\tlabel\tdetail\tmodel\tlayout\tranks\tstep_s\tlo_s\thi_s\tmeasured_s\t"
                   "hidden_s\ttokens_per_s_per_gpu\tmfu",
                   err) < 0 ||
        plot_begin(&part, dir, "step_part.tsv",
                   "row\tpart\tname\tfrom_s\tto_s\trgb\tink\ttext\tat_s", err) < 0 ||
        plot_begin(&text, dir, "step_text.tsv", "row\tlabel\tdetail\tspeed\ttime", err) < 0)
        goto out;
    for (int i = 0; i < s->bars; i++) {
        const struct step_bar *b = &s->all->bar[i];
        print_bar(bar.stream, s, i);
        print_parts(part.stream, s, i);
        label_of(label, b), detail_of(detail, s, b), time_of(time, b), speed_of(speed, b);
        fprintf(text.stream, "%d\t%s\t%s\t%s\t%s\n", i + 1, label, detail, speed, time);
    }
    rc = file_commit(&bar, err) < 0 || file_commit(&part, err) < 0 || file_commit(&text, err) < 0
             ? -1
             : 0;
out:
    file_abort(&bar);
    file_abort(&part);
    file_abort(&text);
    return rc;
}

/* About as wide as DejaVu Sans sets it in the labels' size. */
static int pixels_of(const char *text)
{
    double em = 0;

    for (const char *c = text; *c; c++)
        if ((*c & 0xc0) != 0x80)
            em += strchr("iljtf.,:;'|()[]! -", *c) ? 0.4 : strchr("mwMW@%", *c) ? 0.95 : 0.65;
    return (int)(em * 22);
}

/* Of the longest label. */
static int widest(const struct scene *s)
{
    char label[PLOT_TEXT], detail[PLOT_TEXT];
    int most = 1;

    for (int i = 0; i < s->bars; i++) {
        label_of(label, &s->all->bar[i]);
        detail_of(detail, s, &s->all->bar[i]);
        most = pixels_of(label) * 11 / 10 > most ? pixels_of(label) * 11 / 10 : most; /* bold */
        most = pixels_of(detail) > most ? pixels_of(detail) : most;
    }
    return most;
}

/* The legend fills lines as wide as labels and bars together. */
static int write_key(struct scene *s, const char *dir, struct err *err)
{
    int room = AREA_PIXELS + widest(s), at = 0, line = 0;
    struct file_out out;

    if (plot_begin(&out, dir, "step_key.tsv", "part\tname\trgb\tline\tat", err) < 0)
        return -1;
    for (int p = 0; p < STEP_WHOLE; p++) {
        if (!s->shown[p])
            continue;
        int width = KEY_PIXELS + pixels_of(look[p].name);
        if (at && at + width > room) {
            at = 0;
            line++;
        }
        fprintf(out.stream, "%d\t%s\t%u\t%d\t%d\n", p + 1, look[p].name, look[p].rgb, line, at);
        at += width;
    }
    s->key_lines = at ? line + 1 : 0;
    return file_commit(&out, err);
}

static void print_words(FILE *out, const struct scene *s)
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

static int write_meta(const struct scene *s, const char *dir, struct err *err)
{
    struct file_out out;
    bool minutes = s->to > 300, small = s->to < 1;

    if (plot_begin(&out, dir, "step_meta.tsv", "key\tvalue", err) < 0)
        return -1;
    print_words(out.stream, s);
    fprintf(out.stream, "bars\t%d\nto_s\t%.6g\nscale\t%.6g\nunit\t%s\n", s->bars, s->to,
            minutes ? 1 / 60.
            : small ? 1e3
                    : 1,
            minutes ? "minutes"
            : small ? "ms"
                    : "s");
    fprintf(out.stream, "label_pixels\t%d\narea_pixels\t%d\nkey_lines\t%d\nmeasured\t%d\n",
            widest(s), AREA_PIXELS, s->key_lines, s->measured);
    return file_commit(&out, err);
}

int plot_data_step(const struct step_bars *b, int top, const char *dir, struct err *err)
{
    struct scene s;

    if (choose(&s, b, top, err) < 0 || write_bars(&s, dir, err) < 0 || write_key(&s, dir, err) < 0)
        return -1;
    return write_meta(&s, dir, err);
}

/* --- terminal --- */

/* Characters as long as the step is: computing, sending, the rest. */
static void strip(char *out, size_t size, const struct scene *s, int i, int width)
{
    double upto = 0;
    int done = 0;
    size_t n = 0;

    *out = '\0';
    for (int p = 0; p < STEP_PARTS; p++) {
        upto += s->part[i][p];
        for (int end = (int)lround(upto / s->to * width); done < end && n + 4 < size; done++)
            n += (size_t)snprintf(out + n, size - n, "%s", look[p].fill);
    }
}

int plot_text_step(FILE *out, const struct step_bars *b, int top, int columns, struct err *err)
{
    char label[PLOT_TEXT], time[PLOT_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT], range[PLOT_TEXT];
    char bar[400], speed[PLOT_TEXT];
    struct table t;
    struct scene s;

    if (choose(&s, b, top, err) < 0)
        return -1;
    int width = columns - widest(&s) / 14 - 60;
    table_init(&t, "lllrl");
    table_row(&t, "layout", "step", "interval", "tokens/s/GPU", "█ computes ▒ sends ░ waits");
    for (int i = 0; i < s.bars; i++) {
        const struct step_bar *one = &b->bar[i];
        label_of(label, one);
        time_of(time, one);
        snprintf(range, sizeof(range), "%s .. %s", units_seconds_text(lo, one->lo),
                 units_seconds_text(hi, one->hi));
        plot_count(speed, isnan(one->tokens_per_gpu) ? 0 : lround(one->tokens_per_gpu), "");
        strip(bar, sizeof(bar), &s, i, width < 20 ? 20 : width > 100 ? 100 : width);
        table_row(&t, label, time, isnan(one->lo) ? NULL : range,
                  isnan(one->tokens_per_gpu) ? NULL : speed, bar);
    }
    table_print(out, &t, 0);
    table_free(&t);
    return 0;
}
