/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_heat.c - pair maps: bandwidth and share of expected, with blocks of endpoints beyond
 * BLOCKS_MAX. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "report/plot/heat.h"
#include "report/plot/plot_calls_impl.h"
#include "report/plot/plot_data.h"

enum {
    BLOCKS_MAX = 1024,
    NUMBERS_MAX = 12,
    SELF_MAX = 128,
    MAP_PIXELS = 1200,
    SHARE_LO = 50,
    SHARE_HI = 105 /* ends of the scale of shares, percent */
};

struct heat_map {
    const struct pair_map *ps;
    int blocks, span;
    /* blocks x blocks, the worst value of each; GB/s and percent, NAN: no data */
    float *rate, *share;
    bool *seen; /* measured (or nothing was at all); else from the cost matrix */
    long pairs, missing;
    struct scale {
        enum heat_palette palette;
        double lo, hi, wide; /* ends of the scale, and their distance */
        bool log;
    } of_rate, of_share; /* GB/s; percent */
    struct plot_axis axis;
    struct plot_calls calls;
};

static size_t cells_of(const struct heat_map *g)
{
    return (size_t)g->blocks * (size_t)g->blocks;
}

/* Convert to the type of the tables; frees cell. */
static float *narrow(const struct heat_map *g, double *cell)
{
    float *out = mem_calloc(cells_of(g), sizeof(*out));

    for (size_t i = 0; i < cells_of(g); i++)
        out[i] = (float)cell[i];
    free(cell);
    return out;
}

static void make_cells(struct heat_map *g)
{
    struct heat heat = pair_map_heat(g->ps, HEAT_AMOUNT);
    double *share = mem_calloc(cells_of(g), sizeof(*share));

    heat.span = g->span;
    g->rate = narrow(g, heat_cells(&heat, g->blocks, share, &g->pairs, &g->missing));
    g->share = narrow(g, share);
}

static size_t cell_of(const struct heat_map *g, const struct pair_sample *s)
{
    return (size_t)(g->ps->place[s->src] / g->span) * (size_t)g->blocks +
           (size_t)(g->ps->place[s->dst] / g->span);
}

/* Sampling covers few pairs of a large block, so add all measured pairs. */
static void add_samples(struct heat_map *g)
{
    for (int i = 0; i < g->ps->samples; i++) {
        const struct pair_sample *s = &g->ps->sample[i];
        double share = pair_map_share(g->ps, s->src, s->dst, s->Bps);
        float *at = &g->rate[cell_of(g, s)], *of = &g->share[cell_of(g, s)];
        *at = fminf(*at, (float)(s->Bps / 1e9));
        *of = fminf(*of, (float)(100 * share));
    }
}

/* Mark cells without a measured pair; if no pair was measured, mark none. */
static void mark_seen(struct heat_map *g)
{
    for (size_t i = 0; i < cells_of(g); i++)
        g->seen[i] = !g->ps->samples || isnan(g->rate[i]);
    for (int i = 0; i < g->ps->samples; i++)
        g->seen[cell_of(g, &g->ps->sample[i])] = true;
}

static int choose_scales(struct heat_map *g, struct err *err)
{
    double lo = INFINITY, hi = 0;

    for (size_t i = 0; i < cells_of(g); i++)
        if (!isnan(g->rate[i])) {
            lo = fmin(lo, g->rate[i]);
            hi = fmax(hi, g->rate[i]);
        }
    if (!(hi > 0))
        return err_data(err, "no pairs to plot: none of %ld has data", g->pairs);
    bool by_decade = hi / lo > 3;
    if (by_decade) {
        hi = plot_nice(hi, true);
        lo = plot_nice(lo, false);
    } else { /* whole steps over at least a third of the scale, so that noise does not fill it */
        double from = fmin(lo, 0.67 * hi), step = plot_nice((hi - from) / 4, false);
        hi = ceil(hi / step) * step;
        lo = floor(from / step) * step;
    }
    g->of_rate = (struct scale){HEAT_AMOUNT, lo, hi, by_decade ? log(hi / lo) : hi - lo, by_decade};
    g->of_share = (struct scale){HEAT_SHARE, SHARE_LO, SHARE_HI, SHARE_HI - SHARE_LO, false};
    return 0;
}

/* --- files --- */

static void put_matrix(FILE *out, const struct heat_map *g, const float *v)
{
    float head = (float)g->blocks;

    fwrite(&head, sizeof(head), 1, out);
    for (int i = 0; i < g->blocks; i++) {
        float place = (float)i;
        fwrite(&place, sizeof(place), 1, out);
    }
    for (int r = 0; r < g->blocks; r++) {
        float place = (float)r;
        fwrite(&place, sizeof(place), 1, out);
        fwrite(v + (size_t)r * (size_t)g->blocks, sizeof(*v), (size_t)g->blocks, out);
    }
}

static void put_rates(FILE *out, const void *figure)
{
    const struct heat_map *g = figure;

    put_matrix(out, g, g->rate);
}

static void put_shares(FILE *out, const void *figure)
{
    const struct heat_map *g = figure;

    put_matrix(out, g, g->share);
}

/* Mix rgb with white, in 255ths. */
static void paint(unsigned char to[3], unsigned rgb, unsigned white)
{
    for (int k = 0; k < 3; k++, rgb <<= 8)
        to[k] = (unsigned char)(((rgb >> 16 & 255) * (255 - white) + 255 * white + 127) / 255);
}

/* The colours of a scale, as many as can be distinguished, and their mix with white for cells that
 * were not measured. */
enum { SHADES = 2048, VEIL = 110 };
struct shades {
    unsigned char measured[SHADES + 1][3], pale[SHADES + 1][3], missing[3], self[3];
};

static struct shades *mix(enum heat_palette palette)
{
    struct shades *s = mem_calloc(1, sizeof(*s));

    for (int i = 0; i <= SHADES; i++) {
        unsigned rgb = heat_rgb(palette, i / (double)SHADES);
        paint(s->measured[i], rgb, 0);
        paint(s->pale[i], rgb, VEIL);
    }
    paint(s->missing, HEAT_MISSING, 0);
    paint(s->self, 0xf1f2f4, 0);
    return s;
}

/* Position on the scale: 0 at the low end, 1 at the high end. */
static double place_of(const struct scale *s, double v)
{
    return (s->log ? log(v / s->lo) : v - s->lo) / s->wide;
}

static void put_colours(FILE *out, const struct heat_map *g, const struct scale *scale,
                        const float *v)
{
    const size_t n = (size_t)g->blocks;
    /* The diagonal is not a pair; if single cells are visible, it must not look like missing
     * data. */
    const bool alone = g->span == 1 && g->blocks <= SELF_MAX;
    unsigned char(*row)[3] = mem_calloc(n, sizeof(*row));
    struct shades *s = mix(scale->palette);

    for (size_t i = 0; i < cells_of(g); i++) {
        double at = fmax(0, fmin(1, place_of(scale, v[i])));
        int shade = (int)(at * SHADES + 0.5);
        const unsigned char *rgb = g->seen[i] ? s->measured[shade] : s->pale[shade];
        if (isnan(v[i]))
            rgb = alone && i / n == i % n ? s->self : s->missing;
        memcpy(row[i % n], rgb, sizeof(*row));
        if (i % n == n - 1)
            fwrite(row, sizeof(*row), n, out);
    }
    free(row);
    free(s);
}

/* Write red, green and blue of each cell, with white over cells that were not measured: bandwidth,
 * then share.  gnuplot would take twice as long to find the colours itself. */
static void put_maps(FILE *out, const void *figure)
{
    const struct heat_map *g = figure;

    put_colours(out, g, &g->of_rate, g->rate);
    put_colours(out, g, &g->of_share, g->share);
}

/* Write the colours of a scale at this number of steps; between them it is linear. */
static void put_palette(FILE *out, enum heat_palette palette, int steps)
{
    for (int i = 0; i <= steps; i++) {
        unsigned rgb = heat_rgb(palette, i / (double)steps);
        fprintf(out, "%.6f\t%.6f\t%.6f\t%.6f\n", i / (double)steps, (rgb >> 16) / 255.,
                (rgb >> 8 & 255) / 255., (rgb & 255) / 255.);
    }
}

static void put_rate_palette(FILE *out, const void *figure)
{
    (void)figure;
    put_palette(out, HEAT_AMOUNT, 8);
}

static void put_share_palette(FILE *out, const void *figure)
{
    (void)figure;
    put_palette(out, HEAT_SHARE, SHARE_HI - SHARE_LO);
}

/* Write numbers for the cells of small tables. */
static void put_cells(FILE *out, const void *figure)
{
    const struct heat_map *g = figure;
    char text[HEAT_NUMBER];

    for (int i = 0; g->ps->n <= NUMBERS_MAX && i < g->blocks * g->blocks; i++) {
        int column = i % g->blocks, row = i / g->blocks;
        double v = g->rate[i], s = g->share[i];
        if (isnan(v)) {
            if (row != column)
                fprintf(out, "%d\t%d\tno data\tno data\t%u\t%u\n", column, row, 0xffffffu,
                        0xffffffu);
            continue;
        }
        double at = place_of(&g->of_rate, v);
        fprintf(out, "%d\t%d\t%s\t%.0f%%\t%u\t%u\n", column, row, heat_number(text, v), s,
                plot_ink_on(heat_rgb(HEAT_AMOUNT, at)), s < 78 ? 0xffffffu : 0x1a1a1au);
    }
}

static void put_ticks(FILE *out, const void *figure)
{
    const struct plot_axis *a = &((const struct heat_map *)figure)->axis;

    for (int i = 0; i < a->ticks; i++)
        fprintf(out, "%g\t%s\n", a->tick[i].place, a->tick[i].name);
}

static void put_lines(FILE *out, const void *figure)
{
    const struct plot_axis *a = &((const struct heat_map *)figure)->axis;

    for (int i = 0; i < a->lines; i++)
        fprintf(out, "%g\n", a->line[i]);
}

static void put_calls(FILE *out, const void *figure)
{
    const struct plot_calls *c = &((const struct heat_map *)figure)->calls;

    for (int i = 0; i < c->count; i++)
        fprintf(out, "%g\t%g\t%s\t%s\n", c->call[i].place, c->call[i].at, c->call[i].name,
                c->call[i].what);
}

/* True if some cells come from the cost matrix; they are drawn pale. */
static bool some_unseen(const struct heat_map *g)
{
    for (size_t i = 0; i < cells_of(g); i++)
        if (!g->seen[i])
            return true;
    return false;
}

static void subtitle(const struct heat_map *g, FILE *out)
{
    const struct pair_map *ps = g->ps;
    char size[UNITS_TEXT], side[PLOT_TEXT];
    double all = (double)ps->n * (ps->n - 1);

    fprintf(out, "subtitle\t%s messages%s; row sends, column receives",
            units_bytes_text(size, ps->bytes),
            ps->dir == DIR_BI ? ", each direction while both run" : "");
    if (!ps->samples)
        fprintf(out, "; from the tiers and exceptions of the cost matrix");
    else if (ps->samples < all * 0.995)
        fprintf(out, "; %.2g%% of the pairs measured, the others%s from the cost matrix",
                fmin(99, 100 * ps->samples / all), some_unseen(g) ? " (pale)" : "");
    if (g->span > 1)
        fprintf(out, "; a cell is the worst of %s x %d", plot_count(side, g->span, ""), g->span);
    putc('\n', out);
}

/* The worst annotated part; NULL: show the shape of the fabric instead. */
static const struct plot_call *worst_call(const struct plot_calls *calls)
{
    const struct plot_call *worst = NULL;

    for (int i = 0; i < calls->count; i++)
        if (!worst || calls->call[i].factor < worst->factor)
            worst = &calls->call[i];
    return worst;
}

/* Number of groups of a level in the map. */
static int groups_of(const struct pair_map *ps, enum level level)
{
    const struct topo *t = &ps->m->topo;
    bool *seen = mem_calloc((size_t)t->group[level].count + 1, sizeof(*seen));
    int n = 0;

    for (int i = 0; i < ps->n; i++) {
        int at = topo_at(t, ps->order[i], level);
        n += at >= 0 && !seen[at];
        if (at >= 0)
            seen[at] = true;
    }
    free(seen);
    return n;
}

static void write_title(const struct heat_map *g, const struct plot_calls *calls, FILE *out)
{
    const struct plot_call *worst = worst_call(calls);
    const struct topo *t = &g->ps->m->topo;
    char a[PLOT_TEXT], b[PLOT_TEXT], c[PLOT_TEXT];
    int racks = groups_of(g->ps, LEVEL_RACK);
    bool gpus = t->endpoint[0].kind == ENDPOINT_GPU;

    fprintf(out, "title\tPair bandwidth, %s on %s", plot_count(a, g->ps->n, gpus ? "GPU" : "rank"),
            plot_count(b, groups_of(g->ps, LEVEL_HOST), "host"));
    if (racks > 1)
        fprintf(out, " in %s", plot_count(c, racks, "rack"));
    if (worst)
        fprintf(out, ": %s%s %s", worst->name, worst->factor > 0 && worst->factor < 1 ? " at" : "",
                worst->what);
    if (calls->count + calls->more > 1)
        fprintf(out, ", and %d more", calls->count + calls->more - 1);
    putc('\n', out);
}

static void put_meta(FILE *out, const void *figure)
{
    const struct heat_map *g = figure;
    int cell = MAP_PIXELS / g->blocks;

    write_title(g, &g->calls, out);
    subtitle(g, out);
    fprintf(out,
            "blocks\t%d\nspan\t%d\ncell_pixels\t%d\naxis\t%s\nlo_GBps\t%.6f\nhi_GBps\t%.6f\n"
            "log\t%d\n",
            g->blocks, g->span, cell > 0 ? cell : 1, g->axis.title, g->of_rate.lo, g->of_rate.hi,
            g->of_rate.log);
    fprintf(out, "missing\t%ld\ncells\t%d\nlines\t%d\ncalls\t%d\nmore\t%d\n", g->missing,
            g->ps->n <= NUMBERS_MAX, g->axis.lines, g->calls.count, g->calls.more);
}

/* --- cells --- */

/* Number of consecutive endpoints with one coordinate if all such runs have the same length; else
 * 0. */
static int even_run(const struct pair_map *ps, enum level level)
{
    int run = 0, length = 0;

    for (int i = 0; i <= ps->n; i++) {
        const int *at = i < ps->n ? ps->m->topo.endpoint[ps->order[i]].place.at : NULL;
        if (i && (!at || at[level] != ps->m->topo.endpoint[ps->order[i - 1]].place.at[level])) {
            if (run && length != run)
                return 0;
            run = length;
            length = 0;
        }
        length++;
    }
    return run;
}

/* Endpoints per cell.  A cell never holds parts of two racks (else hosts) if these have equal
 * sizes; otherwise the border between them would be drawn at the wrong place. */
static int span_of(const struct pair_map *ps)
{
    int least = (ps->n + BLOCKS_MAX - 1) / BLOCKS_MAX;
    int rack = even_run(ps, LEVEL_RACK), host = even_run(ps, LEVEL_HOST);
    int unit = rack && rack < ps->n ? rack : host ? host : 1;

    for (int span = least; span <= unit; span++)
        if (unit % span == 0)
            return span;
    return (least + unit - 1) / unit * unit;
}

static const struct plot_table tables[] = {
    {"heat_GBps.bin", NULL, put_rates}, /* rows send, columns receive */
    {"heat_share.bin", NULL, put_shares},
    {"heat_rgb.bin", NULL, put_maps},
    {"heat_GBps_palette.tsv", "place\tred\tgreen\tblue", put_rate_palette},
    {"heat_share_palette.tsv", "place\tred\tgreen\tblue", put_share_palette},
    {"heat_cell.tsv", "column\trow\tGBps\tshare\tink_GBps\tink_share", put_cells},
    {"heat_tick.tsv", "place\tname", put_ticks},
    {"heat_line.tsv", "place", put_lines},
    {"heat_call.tsv", "place\tlabel_place\tname\twhat", put_calls}, /* parts that stand out */
    {"heat_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

int plot_data_heat(const struct plot_source *s, const char *dir, struct err *err)
{
    const struct pair_map *ps = plot_pairs(s, err);

    if (!ps)
        return -1;
    struct heat_map g = {.ps = ps, .span = span_of(ps)};
    g.blocks = (ps->n + g.span - 1) / g.span;
    make_cells(&g);
    g.seen = mem_calloc(cells_of(&g), sizeof(*g.seen));
    if (ps->n > HEAT_LOOK)
        add_samples(&g);
    mark_seen(&g);
    int rc = choose_scales(&g, err);
    if (rc == 0) {
        plot_axis_of(&g.axis, ps, g.span, MAP_PIXELS);
        plot_calls_of(&g.calls, ps, g.rate, g.blocks, g.span);
        rc = plot_tables_write(tables, &g, dir, err);
        plot_axis_free(&g.axis);
    }
    free(g.rate);
    free(g.share);
    free(g.seen);
    return rc;
}
