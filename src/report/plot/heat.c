/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/plot/heat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct anchor {
    double pos;
    unsigned rgb;
};

/* Viridis by nine anchors (matplotlib's table, public domain), and an own ramp for shares of 50 to
 * 105 percent. */
static const struct anchor amount_rgb[] = {
    {0, 0x440154},      {1 / 8., 0x472c7a}, {2 / 8., 0x3b518b},
    {3 / 8., 0x2c718e}, {4 / 8., 0x21908d}, {5 / 8., 0x27ad81},
    {6 / 8., 0x5cc863}, {7 / 8., 0xaadc32}, {1, 0xfde725}};
static const struct anchor share_rgb[] = {
    {0, 0x4a0018},        {10 / 55., 0x8b0f2a}, {20 / 55., 0xc8373f}, {30 / 55., 0xee8565},
    {40 / 55., 0xfbd0b5}, {46 / 55., 0xf6efe9}, {50 / 55., 0xf7f7f5}, {1, 0xd3e5f0}};

unsigned heat_rgb(enum heat_palette palette, double pos)
{
    const struct anchor *a = palette == HEAT_SHARE ? share_rgb : amount_rgb;
    unsigned rgb = 0;

    pos = pos > 0 ? fmin(pos, 1) : 0;
    while (pos > a[1].pos)
        a++;
    double f = (pos - a->pos) / (a[1].pos - a->pos);
    for (int shift = 16; shift >= 0; shift -= 8) {
        double from = a->rgb >> shift & 255, to = a[1].rgb >> shift & 255;
        rgb |= (unsigned)lround(from + f * (to - from)) << shift;
    }
    return rgb;
}

char *heat_number(char buf[HEAT_NUMBER], double v)
{
    double a = fabs(v);
    int decimals = a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3;

    snprintf(buf, HEAT_NUMBER, a < 1e9 ? "%.*f" : "%.*e", decimals, v);
    return buf;
}

/* Set ink (text) or paper (background) to 0xRRGGBB: 24-bit if $COLORTERM is "truecolor" or "24bit",
 * else the nearest of the 6 x 6 x 6 colours of xterm's 256. */
enum ground { INK = 38, PAPER = 48 };

static void paint(FILE *out, enum ground ground, unsigned rgb)
{
    const char *deep = getenv("COLORTERM");
    unsigned r = rgb >> 16 & 255, g = rgb >> 8 & 255, b = rgb & 255;

    if (deep && (!strcmp(deep, "truecolor") || !strcmp(deep, "24bit")))
        fprintf(out, "\033[%d;2;%u;%u;%um", ground, r, g, b);
    else
        fprintf(out, "\033[%d;5;%um", ground,
                16 + 36 * ((r * 5 + 127) / 255) + 6 * ((g * 5 + 127) / 255) + (b * 5 + 127) / 255);
}

static void paint_plain(FILE *out)
{
    fputs("\033[0m", out);
}

enum { NUMBERS_MAX = 16, LABEL_MAX = 20, ROWS_CAP = 4096 };

enum style {
    STYLE_NUMBERS, /* one number per cell */
    STYLE_WIDE,    /* two characters per cell: nearly square */
    STYLE_HALF     /* one character for two rows, by the upper half block; needs colour */
};

struct grid {
    const struct heat *h;
    FILE *out;
    bool colour;
    enum style style;
    int blocks, label_width;
    double *cell; /* blocks x blocks; NAN: no data */
    double lo, hi;
    long pairs, missing;
};

enum { SELF_RGB = 0x30343c };

/* All blocks but the last have the same span. */
static int block_first(const struct heat *h, int blocks, int b)
{
    long first = (long)b * (h->span ? h->span : (h->n + blocks - 1) / blocks);

    return first < h->n ? (int)first : h->n;
}

/* Choose the rows that represent block b: at most HEAT_LOOK / blocks even samples (at least 4),
 * plus special ones.  Returns their number, at most ROWS_CAP. */
static int rows_of(const struct heat *h, int blocks, int b, int *rows)
{
    int first = block_first(h, blocks, b), end = block_first(h, blocks, b + 1), count = 0;
    int look = HEAT_LOOK / blocks > 4 ? HEAT_LOOK / blocks : 4;
    int span = end - first, step = (span + look - 1) / look;

    for (int i = first; i < end && count < ROWS_CAP; i++) {
        /* Include the second row: the first two are neighbours on one host, the closest tier. */
        bool even = (i - first) % step == 0 || i - first == 1;
        if (even || (h->special && h->special(h->arg, i)))
            rows[count++] = i;
    }
    return count;
}

/* Worst of some values; missing: number without data. */
struct worst {
    double value;
    int missing;
};

static inline void worse(struct worst *w, double v)
{
    if (isnan(v))
        w->missing++;
    else if (!(w->value <= v))
        w->value = v;
}

/* A block mostly without data is shown as such; its few values would hide a dead host. */
static double settled(const struct worst *w, int pairs)
{
    return 2 * w->missing > pairs ? NAN : w->value;
}

/* Input of heat_cells(): the rows that represent block b, from start[b] on. */
struct look {
    const struct heat *h;
    int blocks, *row, *start;
};

static void look_at(struct look *l, const struct heat *h, int blocks)
{
    *l = (struct look){h, blocks, mem_ints(h->n, 0), mem_ints(blocks, 0)};
    for (int b = 0; b < blocks; b++)
        l->start[b + 1] = l->start[b] + rows_of(h, blocks, b, l->row + l->start[b]);
}

/* Add the values of sampled row i to the cells w. */
static void add_row(const struct look *l, int i, const double *v, struct worst *w)
{
    for (int c = 0; c < l->blocks; c++) {
        struct worst worst = w[c];
        for (int j = l->start[c]; j < l->start[c + 1]; j++)
            if (j != i)
                worse(&worst, v[j]);
        w[c] = worst;
    }
}

/* Compute the cells of block row r in both tables. */
static void add_block(const struct look *l, int r, double *v, struct worst *w)
{
    const int count = l->start[l->blocks];

    for (int c = 0; c < 2 * l->blocks; c++)
        w[c] = (struct worst){NAN, 0};
    for (int i = l->start[r]; i < l->start[r + 1]; i++) {
        l->h->values(l->h->arg, l->row[i], l->row, count, v, v + count);
        add_row(l, i, v, w);
        add_row(l, i, v + count, w + l->blocks);
    }
}

double *heat_cells(const struct heat *h, int blocks, double *other, long *pairs, long *missing)
{
    double *cell = mem_calloc((size_t)blocks * (size_t)blocks, sizeof(*cell));
    struct worst *w = mem_calloc(2 * (size_t)blocks, sizeof(*w));
    struct look l;

    *pairs = *missing = 0;
    look_at(&l, h, blocks);
    double *v = mem_calloc(2 * (size_t)l.start[blocks], sizeof(*v));
    for (int at = 0; at < blocks * blocks; at++) {
        int r = at / blocks, c = at % blocks, rows = l.start[r + 1] - l.start[r];
        int n = rows * (l.start[c + 1] - l.start[c] - (r == c));
        if (c == 0)
            add_block(&l, r, v, w);
        cell[at] = settled(&w[c], n);
        if (other)
            other[at] = settled(&w[blocks + c], n);
        *pairs += n;
        *missing += w[c].missing;
    }
    free(l.row);
    free(l.start);
    free(v);
    free(w);
    return cell;
}

static void scale(struct grid *g)
{
    g->lo = g->h->lo, g->hi = g->h->hi;
    if (g->lo < g->hi)
        return;
    g->lo = INFINITY, g->hi = -INFINITY;
    for (int i = 0; i < g->blocks * g->blocks; i++)
        if (!isnan(g->cell[i])) {
            g->lo = fmin(g->lo, g->cell[i]);
            g->hi = fmax(g->hi, g->cell[i]);
        }
    if (!(g->lo <= g->hi))
        g->lo = 0, g->hi = 1;
}

static double position(const struct grid *g, double v)
{
    if (!(g->hi > g->lo))
        return 1;
    if (g->h->log && g->lo > 0)
        return v > 0 ? log(v / g->lo) / log(g->hi / g->lo) : 0;
    return (v - g->lo) / (g->hi - g->lo);
}

static unsigned cell_rgb(const struct grid *g, int r, int c)
{
    double v = g->cell[r * g->blocks + c];

    if (isnan(v))
        return r == c && g->blocks == g->h->n ? SELF_RGB : HEAT_MISSING;
    return heat_rgb(g->h->palette, position(g, v));
}

static const char *const shades[] = {"░", "▒", "▓", "█"};

static const char *shade(const struct grid *g, double v)
{
    double p = position(g, v);

    return shades[p >= 1 ? 3 : p > 0 ? (int)(p * 4) : 0];
}

static void print_cell(const struct grid *g, int r, int c)
{
    double v = g->cell[r * g->blocks + c];
    bool self = r == c && g->blocks == g->h->n;
    char text[HEAT_NUMBER];

    if (g->style == STYLE_NUMBERS) {
        const char *say = self ? "" : isnan(v) ? "·" : heat_number(text, v);
        if (g->colour && !self) {
            unsigned rgb = cell_rgb(g, r, c);
            bool dark = (rgb >> 16 & 255) * 3 + (rgb >> 8 & 255) * 6 + (rgb & 255) < 1280;
            paint(g->out, PAPER, rgb);
            paint(g->out, INK, dark ? 0xffffff : 0x000000);
        }
        /* "·" has two bytes and one column. */
        fprintf(g->out, "%*s%s", self || !isnan(v) ? 6 : 7, say,
                g->colour || self ? " "
                : isnan(v)        ? " "
                                  : shade(g, v));
    } else if (g->colour) {
        paint(g->out, PAPER, cell_rgb(g, r, c));
        fputs("  ", g->out);
    } else {
        const char *s = self ? " " : isnan(v) ? "·" : shade(g, v);
        fprintf(g->out, "%s%s", s, s);
    }
}

static const char *label_of(const struct grid *g, int row)
{
    const char *label = g->h->label ? g->h->label(g->h->arg, row) : NULL;

    return label ? label : "";
}

/* Columns of a label: bytes that do not continue a UTF-8 character, at most LABEL_MAX. */
static int text_width(const char *s)
{
    int width = 0;

    for (; *s; s++)
        width += (*s & 0xc0) != 0x80;
    return width < LABEL_MAX ? width : LABEL_MAX;
}

static void print_label(const struct grid *g, const char *s)
{
    int left = g->label_width;

    for (; *s; s++) {
        if ((*s & 0xc0) != 0x80 && left-- == 0)
            break;
        putc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, g->out);
    }
    fprintf(g->out, "%*s", left > 0 ? left + 1 : 1, "");
}

static void print_rows(const struct grid *g)
{
    char last[256] = "";
    int step = g->style == STYLE_HALF ? 2 : 1;

    for (int r = 0; r < g->blocks; r += step) {
        const char *label = label_of(g, block_first(g->h, g->blocks, r));
        print_label(g, strcmp(label, last) ? label : "");
        snprintf(last, sizeof(last), "%s", label);
        if (g->style == STYLE_NUMBERS)
            fprintf(g->out, "%3d ", r);
        for (int c = 0; c < g->blocks; c++) {
            if (g->style != STYLE_HALF) {
                print_cell(g, r, c);
                continue;
            }
            paint(g->out, INK, cell_rgb(g, r, c));
            if (r + 1 < g->blocks)
                paint(g->out, PAPER, cell_rgb(g, r + 1, c));
            else
                fputs("\033[49m", g->out);
            fputs("▀", g->out);
        }
        fputs(g->colour ? "\033[0m\n" : "\n", g->out);
    }
}

static void print_legend(const struct grid *g)
{
    static const int steps = 16;
    char lo[HEAT_NUMBER], hi[HEAT_NUMBER];
    int span = (g->h->n + g->blocks - 1) / g->blocks, indent = g->label_width + 1;

    fprintf(g->out, "%*s%s ", indent, "", heat_number(lo, g->lo));
    for (int i = 0; i < steps; i++) {
        double at = (i + 0.5) / steps;
        if (g->colour)
            paint(g->out, PAPER, heat_rgb(g->h->palette, at));
        fputs(g->colour ? " " : shades[(int)(at * 4)], g->out);
    }
    if (g->colour)
        paint_plain(g->out);
    fprintf(g->out, " %s %s%s\n", heat_number(hi, g->hi), g->h->unit ? g->h->unit : "",
            g->h->log ? " (log)" : "");
    if (g->missing) {
        bool block = g->colour && g->style != STYLE_NUMBERS;
        fprintf(g->out, "%*s", indent, "");
        if (block)
            paint(g->out, PAPER, HEAT_MISSING);
        fputs(block ? "  " : "·", g->out);
        if (block)
            paint_plain(g->out);
        fprintf(g->out, " no data: %ld of %ld pairs\n", g->missing, g->pairs);
    }
    if (span > 1)
        fprintf(g->out, "%*seach cell: the worst of %d x %d%s\n", indent, "", span, span,
                g->h->n > HEAT_LOOK ? ", sampled" : "");
}

static void layout(struct grid *g, int columns)
{
    int n = g->h->n, room;

    for (int i = 0; i < n; i++) {
        int width = text_width(label_of(g, i));
        g->label_width = width > g->label_width ? width : g->label_width;
    }
    room = (columns < 40 ? 40 : columns) - g->label_width - 1;
    int most = g->colour ? room : room / 2;
    if (n <= NUMBERS_MAX && n * 7 + 4 <= room)
        g->style = STYLE_NUMBERS;
    else
        g->style = n * 2 > room && g->colour ? STYLE_HALF : STYLE_WIDE;
    int span = g->style == STYLE_NUMBERS ? 1 : (n + most - 1) / most;
    g->blocks = (n + span - 1) / span;
}

void heat_print(FILE *out, const struct heat *h, int columns, bool colour)
{
    struct grid g = {.h = h, .out = out, .colour = colour};

    if (h->title)
        fprintf(out, "%s\n", h->title);
    if (h->n < 2) {
        fputs("  (fewer than two endpoints: no pairs)\n", out);
        return;
    }
    layout(&g, columns);
    g.cell = heat_cells(h, g.blocks, NULL, &g.pairs, &g.missing);
    scale(&g);
    if (g.style == STYLE_NUMBERS) {
        fprintf(out, "%*s    ", g.label_width + 1, "");
        for (int c = 0; c < g.blocks; c++)
            fprintf(out, "%6d ", c);
        putc('\n', out);
    }
    print_rows(&g);
    print_legend(&g);
    free(g.cell);
}
