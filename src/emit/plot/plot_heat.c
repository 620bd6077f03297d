/* SPDX-License-Identifier: BSD-3-Clause */
/* The pair maps: bandwidth and share of expected, blocks of endpoints beyond BLOCKS_MAX. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "emit/plot/heat.h"
#include "emit/plot/plot_calls.h"
#include "emit/plot/plot_data.h"

enum { BLOCKS_MAX = 1024, NUMBERS_MAX = 12, ROWS_CAP = 4096, MAP_PIXELS = 1200 };

struct heat_map {
    const struct pair_map *ps;
    struct heat heat; /* n, special: which endpoints stand for a block */
    int blocks, span;
    float *rate, *share; /* blocks x blocks; GB/s and percent, NAN: no data */
    float *seen;         /* 1: measured (or nothing was at all), 0: from the cost matrix */
    long pairs, missing;
    double lo, hi;
    bool log;
};

static bool is_special(void *arg, int place)
{
    const struct pair_map *ps = arg;

    return ps->special[ps->order[place]];
}

/* The worst of the block (r, c): the smallest rate and the smallest share. */
static void fill_block(struct heat_map *g, int r, int c, const int *row, int rows, const int *col,
                       int cols)
{
    float rate = NAN, share = NAN;
    int missing = 0, pairs = 0;

    for (int i = 0; i < rows; i++)
        for (int k = 0; k < cols; k++) {
            int src = g->ps->order[row[i]], dst = g->ps->order[col[k]];
            if (src == dst)
                continue;
            double v = pair_map_rate(g->ps, src, dst);
            pairs++;
            missing += isnan(v);
            rate = fminf(rate, (float)(v / 1e9));
            share = fminf(share, (float)(100 * pair_map_share(g->ps, src, dst, v)));
        }
    g->pairs += pairs;
    g->missing += missing;
    if (2 * missing > pairs) /* mostly without data: must not hide behind the few that have some */
        rate = share = NAN;
    g->rate[(size_t)r * (size_t)g->blocks + (size_t)c] = rate;
    g->share[(size_t)r * (size_t)g->blocks + (size_t)c] = share;
}

/* Sampling looks at few pairs of a large block; what was measured is looked at in full. */
static void add_samples(struct heat_map *g)
{
    for (int i = 0; i < g->ps->samples; i++) {
        const struct pair_sample *s = &g->ps->sample[i];
        size_t at = (size_t)(g->ps->place[s->src] / g->span) * (size_t)g->blocks +
                    (size_t)(g->ps->place[s->dst] / g->span);
        g->rate[at] = fminf(g->rate[at], (float)(s->Bps / 1e9));
        g->share[at] =
            fminf(g->share[at], (float)(100 * pair_map_share(g->ps, s->src, s->dst, s->Bps)));
    }
}

/* Cells of which no pair was measured; where no pair was, there is nothing to tell apart. */
static void mark_seen(struct heat_map *g)
{
    size_t cells = (size_t)g->blocks * (size_t)g->blocks;

    for (size_t i = 0; i < cells; i++)
        g->seen[i] = !g->ps->samples || isnan(g->rate[i]);
    for (int i = 0; i < g->ps->samples; i++) {
        const struct pair_sample *s = &g->ps->sample[i];
        g->seen[(size_t)(g->ps->place[s->src] / g->span) * (size_t)g->blocks +
                (size_t)(g->ps->place[s->dst] / g->span)] = 1;
    }
}

static void fill(struct heat_map *g)
{
    int *rows = mem_calloc(ROWS_CAP, sizeof(int)), *cols = mem_calloc(ROWS_CAP, sizeof(int));

    for (int r = 0; r < g->blocks; r++) {
        int nr = heat_rows(&g->heat, g->blocks, r, rows, ROWS_CAP);
        for (int c = 0; c < g->blocks; c++) {
            int nc = heat_rows(&g->heat, g->blocks, c, cols, ROWS_CAP);
            fill_block(g, r, c, rows, nr, cols, nc);
        }
    }
    if (g->ps->n > HEAT_LOOK)
        add_samples(g);
    mark_seen(g);
    free(rows);
    free(cols);
}

static int scale(struct heat_map *g, struct err *err)
{
    double lo = INFINITY, hi = 0;

    for (size_t i = 0; i < (size_t)g->blocks * (size_t)g->blocks; i++)
        if (!isnan(g->rate[i])) {
            lo = fmin(lo, g->rate[i]);
            hi = fmax(hi, g->rate[i]);
        }
    if (!(hi > 0))
        return err_data(err, "no pairs to plot: none of %ld has data", g->pairs);
    g->log = hi / lo > 3;
    g->hi = g->log ? plot_nice(hi, true) : hi;
    g->lo = g->log ? plot_nice(lo, false) : lo;
    if (!g->log) { /* whole steps, over a third of the scale at least: noise must not fill it */
        double from = fmin(lo, 0.67 * hi), step = plot_nice((hi - from) / 4, false);
        g->hi = ceil(hi / step) * step;
        g->lo = floor(from / step) * step;
    }
    return 0;
}

/* --- files --- */

static int write_matrix(const struct heat_map *g, const float *v, const char *dir, const char *name,
                        struct err *err)
{
    struct file_out out;
    float head = (float)g->blocks;

    if (plot_begin(&out, dir, name, NULL, err) < 0)
        return -1;
    fwrite(&head, sizeof(head), 1, out.stream);
    for (int i = 0; i < g->blocks; i++) {
        float place = (float)i;
        fwrite(&place, sizeof(place), 1, out.stream);
    }
    for (int r = 0; r < g->blocks; r++) {
        float place = (float)r;
        fwrite(&place, sizeof(place), 1, out.stream);
        fwrite(v + (size_t)r * (size_t)g->blocks, sizeof(*v), (size_t)g->blocks, out.stream);
    }
    return file_commit(&out, err);
}

/* Numbers in the cells of small tables; the colours follow the palettes of heat.gp. */
static int write_cells(const struct heat_map *g, const char *dir, struct err *err)
{
    struct file_out out;
    char text[HEAT_NUMBER];

    if (plot_begin(&out, dir, "heat_cell.tsv", "column\trow\tGBps\tshare\tink_GBps\tink_share",
                   err) < 0)
        return -1;
    for (int i = 0; g->ps->n <= NUMBERS_MAX && i < g->blocks * g->blocks; i++) {
        double v = g->rate[i], s = g->share[i];
        if (isnan(v)) {
            if (i / g->blocks != i % g->blocks)
                fprintf(out.stream, "%d\t%d\tno data\tno data\t%u\t%u\n", i % g->blocks,
                        i / g->blocks, 0xffffffu, 0xffffffu);
            continue;
        }
        double at = g->log ? log(v / g->lo) / log(g->hi / g->lo) : (v - g->lo) / (g->hi - g->lo);
        fprintf(out.stream, "%d\t%d\t%s\t%.0f%%\t%u\t%u\n", i % g->blocks, i / g->blocks,
                heat_number(text, v), s, plot_ink_on(heat_rgb(HEAT_AMOUNT, at)),
                s < 78 ? 0xffffffu : 0x1a1a1au);
    }
    return file_commit(&out, err);
}

/* Cells that come from the cost matrix are drawn pale. */
static bool some_unseen(const struct heat_map *g)
{
    for (size_t i = 0; i < (size_t)g->blocks * (size_t)g->blocks; i++)
        if (!(g->seen[i] > 0))
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

/* The worst part that is called out, or the shape of the fabric where none is. */
static const struct plot_call *worst_call(const struct plot_calls *calls)
{
    const struct plot_call *worst = NULL;

    for (int i = 0; i < calls->count; i++)
        if (!worst || calls->call[i].factor < worst->factor)
            worst = &calls->call[i];
    return worst;
}

static void write_title(const struct heat_map *g, const struct plot_calls *calls, FILE *out)
{
    const struct plot_call *worst = worst_call(calls);
    const struct topo *t = &g->ps->m->topo;
    char a[PLOT_TEXT], b[PLOT_TEXT], c[PLOT_TEXT];
    bool gpus = t->endpoint[0].kind == ENDPOINT_GPU;

    fprintf(out, "title\tPair bandwidth, %s on %s", plot_count(a, g->ps->n, gpus ? "GPU" : "rank"),
            plot_count(b, t->hosts, "host"));
    if (t->group[LEVEL_RACK].count > 1)
        fprintf(out, " in %s", plot_count(c, t->group[LEVEL_RACK].count, "rack"));
    if (worst)
        fprintf(out, ": %s%s %s", worst->name, worst->factor > 0 && worst->factor < 1 ? " at" : "",
                worst->what);
    if (calls->count + calls->more > 1)
        fprintf(out, ", and %d more", calls->count + calls->more - 1);
    putc('\n', out);
}

static int write_meta(const struct heat_map *g, const struct plot_axis *axis,
                      const struct plot_calls *calls, const char *dir, struct err *err)
{
    struct file_out out;
    int cell = MAP_PIXELS / g->blocks;

    if (plot_begin(&out, dir, "heat_meta.tsv", "key\tvalue", err) < 0)
        return -1;
    write_title(g, calls, out.stream);
    subtitle(g, out.stream);
    fprintf(
        out.stream,
        "blocks\t%d\nspan\t%d\ncell_pixels\t%d\naxis\t%s\nlo_GBps\t%.6f\nhi_GBps\t%.6f\nlog\t%d\n",
        g->blocks, g->span, cell > 0 ? cell : 1, axis->title, g->lo, g->hi, g->log);
    fprintf(out.stream, "missing\t%ld\ncells\t%d\nlines\t%d\ncalls\t%d\nmore\t%d\n", g->missing,
            g->ps->n <= NUMBERS_MAX, axis->lines, calls->count, calls->more);
    return file_commit(&out, err);
}

static int write_all(const struct heat_map *g, const char *dir, struct err *err)
{
    struct plot_axis axis;
    struct plot_calls calls;
    int rc = -1;

    plot_axis_of(&axis, g->ps, g->span, MAP_PIXELS);
    plot_calls_of(&calls, g->ps, g->rate, g->blocks, g->span);
    if (write_matrix(g, g->rate, dir, "heat_GBps.bin", err) == 0 &&
        write_matrix(g, g->share, dir, "heat_share.bin", err) == 0 &&
        write_matrix(g, g->seen, dir, "heat_seen.bin", err) == 0 && write_cells(g, dir, err) == 0 &&
        plot_axis_write(&axis, dir, err) == 0 && plot_calls_write(&calls, dir, err) == 0)
        rc = write_meta(g, &axis, &calls, dir, err);
    plot_axis_free(&axis);
    return rc;
}

/* --- cells --- */

/* How many endpoints in a row share a coordinate, where all such runs are equally long; else 0. */
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

/* Endpoints of a cell: a cell never holds parts of two racks (else hosts) where these are of one
 * size, or the border between them would be drawn where it is not. */
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

int plot_data_heat(const struct pair_map *ps, const char *dir, struct err *err)
{
    struct heat_map g = {.ps = ps, .heat = {.n = ps->n, .arg = (void *)ps, .special = is_special}};
    int rc = -1;

    g.span = g.heat.span = span_of(ps);
    g.blocks = (ps->n + g.span - 1) / g.span;
    g.rate = mem_calloc((size_t)g.blocks * (size_t)g.blocks, sizeof(float));
    g.share = mem_calloc((size_t)g.blocks * (size_t)g.blocks, sizeof(float));
    g.seen = mem_calloc((size_t)g.blocks * (size_t)g.blocks, sizeof(float));
    fill(&g);
    if (scale(&g, err) == 0)
        rc = write_all(&g, dir, err);
    free(g.rate);
    free(g.share);
    free(g.seen);
    return rc;
}
