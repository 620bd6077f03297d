/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted steps as stacked bars: tables and a terminal's lines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "emit/plot/plot_step_scene.h"
#include "emit/text/table.h"

enum {
    AREA_PIXELS = 1100,
    KEY_PIXELS = 70, /* square and gaps of an entry of the legend */
    NUMBER_PIXELS = 64
};

/* --- tables --- */

static void print_bar(FILE *out, const struct step_scene *s, int i)
{
    const struct step_bar *b = &s->bar[i];
    const double number[] = {b->ranks,          b->sec, b->lo, b->hi, b->measured, b->hidden,
                             b->tokens_per_gpu, b->mfu};
    char text[PLOT_TEXT];

    step_label(text, b);
    fprintf(out, "%d\t%s", i + 1, text);
    step_detail(text, s, b);
    fprintf(out, "\t%s", text);
    fprintf(out, "\t%s", plot_text(text, b->model, 100));
    fprintf(out, "\t%s", plot_text(text, b->layout, 100));
    for (size_t k = 0; k < sizeof(number) / sizeof(*number); k++)
        plot_number(out, number[k]);
    fputc('\n', out);
}

/* Where the share of a part can stand without being crossed by the interval or the measured mark;
 * NAN: nowhere. */
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

/* gnuplot takes an empty last cell for the one of the row before: empty ones are in the middle. */
static int write_bars(const struct step_scene *s, const char *dir, struct err *err)
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
        const struct step_bar *b = &s->bar[i];
        print_bar(bar.stream, s, i);
        print_parts(part.stream, s, i);
        step_label(label, b), step_detail(detail, s, b), step_time(time, b), step_speed(speed, b);
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
static int widest(const struct step_scene *s)
{
    char label[PLOT_TEXT], detail[PLOT_TEXT];
    int most = 1;

    for (int i = 0; i < s->bars; i++) {
        step_label(label, &s->bar[i]);
        step_detail(detail, s, &s->bar[i]);
        most = pixels_of(label) * 11 / 10 > most ? pixels_of(label) * 11 / 10 : most; /* bold */
        most = pixels_of(detail) > most ? pixels_of(detail) : most;
    }
    return most;
}

/* The legend fills lines as wide as labels and bars together. */
static int write_key(struct step_scene *s, const char *dir, struct err *err)
{
    int room = AREA_PIXELS + widest(s), at = 0, line = 0;
    struct file_out out;

    if (plot_begin(&out, dir, "step_key.tsv", "part\tname\trgb\tline\tat", err) < 0)
        return -1;
    for (int p = 0; p < STEP_WHOLE; p++) {
        if (!s->shown[p])
            continue;
        int width = KEY_PIXELS + pixels_of(step_look[p].name);
        if (at && at + width > room) {
            at = 0;
            line++;
        }
        fprintf(out.stream, "%d\t%s\t%u\t%d\t%d\n", p + 1, step_look[p].name, step_look[p].rgb,
                line, at);
        at += width;
    }
    s->key_lines = at ? line + 1 : 0;
    return file_commit(&out, err);
}

static int write_meta(const struct step_scene *s, const char *dir, struct err *err)
{
    struct file_out out;
    bool minutes = s->to > 300, small = s->to < 1;

    if (plot_begin(&out, dir, "step_meta.tsv", "key\tvalue", err) < 0)
        return -1;
    step_title(out.stream, s);
    fprintf(out.stream, "bars\t%d\nto_s\t%.6g\nscale\t%.6g\nunit\t%s\n", s->bars, s->to,
            minutes ? 1 / 60.
            : small ? 1e3
                    : 1,
            minutes ? "minutes"
            : small ? "ms"
                    : "s");
    char tokens[PLOT_TEXT];
    if (isnan(s->tokens))
        fputs("axis\ttime of a step\n", out.stream);
    else
        fprintf(out.stream, "axis\ttime for %.60s of a GPU\n",
                plot_count(tokens, lround(s->tokens), "token"));
    fprintf(out.stream, "label_pixels\t%d\narea_pixels\t%d\nkey_lines\t%d\nmeasured\t%d\n",
            widest(s), AREA_PIXELS, s->key_lines, s->measured);
    return file_commit(&out, err);
}

int plot_data_step(const struct step_bars *b, int top, const char *dir, struct err *err)
{
    struct step_scene s;

    if (step_scene_of(&s, b, top, err) < 0 || write_bars(&s, dir, err) < 0 ||
        write_key(&s, dir, err) < 0)
        return -1;
    return write_meta(&s, dir, err);
}

/* --- terminal --- */

/* Characters as long as the step is: computing, sending, the rest. */
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
    struct table t;
    struct step_scene s;

    if (step_scene_of(&s, b, top, err) < 0)
        return -1;
    int width = columns - widest(&s) / 14 - 60;
    table_init(&t, "lllrl");
    table_row(&t, "layout", "step", "interval", "tokens/s/GPU", "█ computes ▒ sends ░ waits");
    for (int i = 0; i < s.bars; i++) {
        const struct step_bar *one = &s.bar[i];
        step_label(label, one);
        step_time(time, one);
        snprintf(range, sizeof(range), "%s .. %s",
                 units_seconds_text(lo, one->lo / step_times(one)),
                 units_seconds_text(hi, one->hi / step_times(one)));
        plot_count(speed, isnan(one->tokens_per_gpu) ? 0 : lround(one->tokens_per_gpu), "");
        strip(bar, sizeof(bar), &s, i, width < 20 ? 20 : width > 100 ? 100 : width);
        table_row(&t, label, time, isnan(one->lo) ? NULL : range,
                  isnan(one->tokens_per_gpu) ? NULL : speed, bar);
    }
    table_print(out, &t, 0);
    table_free(&t);
    step_notes(note, &s);
    if (*note)
        fprintf(out, "\n%s\n", note);
    return 0;
}
