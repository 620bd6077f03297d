/* SPDX-License-Identifier: BSD-3-Clause */
/* published.c - how far prices of collectives between domains lie from published ones: Markdown tables.
 *
 *   published [-v] [POINTS.tsv]
 *
 * POINTS.tsv (default $RAILGAUGE_PUBLISHED, else ../shared/prototypes/collectives/published.tsv) has the columns source,
 * preset, op, ranks, domains, nics_per_domain, bytes and us; without it nothing is printed.  Each shape is priced by the model
 * and the curves of the same machine that are left:
 *
 *   shape    all but those of this shape
 *   source   all but those of this publisher, whose name may go on with a dash and a number
 *   alone    none
 *
 * Errors are |measured / priced|, or its inverse, less 1, in %, median / 90th percentile; inside: the share within the
 * stated interval.  -v: by shape, then each point.  Exit code 1 beyond the limits of holds(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/tsv.h"
#include "matrix/collective.h"

enum { LEFT_SHAPE, LEFT_SOURCE, LEFT_ALL, LEFTS };
static const char *const left_name[LEFTS] = {"shape left out", "source left out", "model alone"};

struct published {
    const char *source, *machine;
    struct collective c; /* curve of its points, unsettled */
    int per;
};

/* What was priced: a point of a curve, by what was left out. */
struct priced {
    const struct published *of;
    double bytes, error[LEFTS]; /* log of priced / measured */
    bool inside[LEFTS];
};

struct scoring {
    struct tsv table;
    struct published *curve;
    int curves;
    struct priced *priced;
    int points;
};

/* Machines of no preset: GPUDirect-TCPX has NICs of 200 Gb/s and a latency of 29 us. */
static void machine_open(struct matrix *m, const char *name, int domains)
{
    bool tcpx = !strcmp(name, "a3mega");
    struct fabric f;
    struct err err;

    if (fabric_load(&f, tcpx ? "hgx-h100" : name, &err) < 0) {
        fprintf(stderr, "published: %s\n", err.text);
        exit(1);
    }
    int of_rack = f.hosts_per_domain > 1 ? 1 : f.hosts_per_rack;
    for (int i = 0; tcpx && i < f.tiers; i++)
        if (f.tier[i].rule.same == 0 || f.tier[i].nic) {
            f.tier[i].alpha.value = 29e-6;
            f.tier[i].Bps.value = f.tier[i].bi_Bps.value = 24e9;
        }
    if (matrix_from_fabric(m, &f, (domains + of_rack - 1) / of_rack, &err) < 0) {
        fprintf(stderr, "published: %s\n", err.text);
        exit(1);
    }
    fabric_free(&f);
    int kept = 0;
    for (int i = 0; i < m->collectives; i++)
        if (m->collective[i].shape.domains == 1) {
            m->collective[kept++] = m->collective[i];
        } else {
            curve_free(&m->collective[i].curve);
            free(m->collective[i].source);
        }
    m->collectives = kept;
}

static int number(const struct tsv *t, int row, const char *name)
{
    struct err err;
    int value = 0;

    if (tsv_int(t, row, tsv_find(t, name), 1, 1 << 20, &value, &err) < 0)
        fprintf(stderr, "published: %s\n", err.text);
    return value;
}

static double real(const struct tsv *t, int row, const char *name)
{
    struct err err;
    double value = NAN;

    if (tsv_double(t, row, tsv_find(t, name), 0, 1e18, &value, &err) < 0)
        fprintf(stderr, "published: %s\n", err.text);
    return value;
}

static const char *text(const struct tsv *t, int row, const char *name)
{
    return t->row[row].cell[tsv_find(t, name)];
}

static void add_row(struct scoring *s, int row)
{
    const struct tsv *t = &s->table;
    struct published curve = {.source = text(t, row, "source"), .machine = text(t, row, "preset")};
    int ranks = number(t, row, "ranks"), domains = number(t, row, "domains"), at = 0;
    double sec = 1e-6 * real(t, row, "us");

    if (domains < 2)
        return;
    curve.per = ranks / domains;
    curve.c = (struct collective){
        .op = (enum op)op_find(text(t, row, "op")),
        .basis = BASIS_PRESET,
        .at_once = 1,
        .shape = {ranks, domains, curve.per, domains, number(t, row, "nics_per_domain"), 0}};
    while (at < s->curves &&
           (strcmp(s->curve[at].source, curve.source) != 0 || s->curve[at].c.op != curve.c.op ||
            !shape_equal(&s->curve[at].c.shape, &curve.c.shape)))
        at++;
    if (at == s->curves)
        MEM_PUSH(s->curve, s->curves) = curve;
    curve_add(&s->curve[at].c.curve, (struct curve_point){real(t, row, "bytes"), sec, sec, sec, 0});
}

/* Letters of the name that are the publisher's: "coreweave" of "coreweave-43". */
static size_t publisher(const char *source)
{
    const char *dash = strrchr(source, '-');

    return dash && dash[1 + strspn(dash + 1, "0123456789")] == '\0' ? (size_t)(dash - source)
                                                                    : strlen(source);
}

static bool left(const struct published *a, const struct published *asked, int without)
{
    size_t n = publisher(a->source), k = publisher(asked->source);

    if (strcmp(a->machine, asked->machine) != 0 || a->c.op != asked->c.op || without == LEFT_ALL)
        return false;
    if (without == LEFT_SHAPE)
        return !shape_equal(&a->c.shape, &asked->c.shape);
    return n != k || strncmp(a->source, asked->source, n) != 0;
}

static void price(struct scoring *s, const struct published *p, int without, struct priced *priced)
{
    struct matrix m;
    int n = p->c.shape.ranks, *ids = mem_calloc((size_t)n, sizeof(*ids));

    machine_open(&m, p->machine, p->c.shape.domains);
    int widest =
        m.topo.endpoints /
        (m.topo.group[LEVEL_DOMAIN].count ? m.topo.group[LEVEL_DOMAIN].count : m.topo.hosts);
    int inside = m.collectives;
    for (int i = 0; i < s->curves; i++)
        if (left(&s->curve[i], p, without))
            MEM_PUSH(m.collective, m.collectives) = s->curve[i].c;
    for (int i = 0; i < n; i++)
        ids[i] = i / p->per * widest + i % p->per;
    for (int i = 0; i < p->c.curve.points; i++) {
        const struct curve_point *x = &p->c.curve.point[i];
        struct cost c;
        matrix_collective(&m, p->c.op, ids, n, x->bytes, &c);
        priced[i].of = p;
        priced[i].bytes = x->bytes;
        priced[i].error[without] = log(c.sec / x->sec);
        priced[i].inside[without] = c.lo <= x->sec && x->sec <= c.hi;
    }
    m.collectives = inside; /* the others are the scoring's */
    matrix_free(&m);
    free(ids);
}

static const char *regime(double bytes)
{
    return bytes <= 256 << 10 ? "up to 256 KiB" : bytes < 256 << 20 ? "between" : "from 256 MiB";
}

/* A row of the table: of the points that match. */
static void row_of(const struct scoring *s, const char *name, int op, const char *of_regime,
                   const struct published *of)
{
    double *v = mem_calloc((size_t)s->points + 1, sizeof(*v));

    for (int k = 0; k < LEFTS; k++) {
        int n = 0, in = 0;
        for (int i = 0; i < s->points; i++) {
            const struct priced *p = &s->priced[i];
            if ((op >= 0 && (int)p->of->c.op != op) || (of && p->of != of) ||
                (of_regime && strcmp(regime(p->bytes), of_regime) != 0))
                continue;
            in += p->inside[k];
            v[n++] = 100 * expm1(fabs(p->error[k]));
        }
        if (!n)
            break;
        if (!k)
            printf("| %s | %d", name, n);
        stats_sort(v, n);
        printf(" | %.0f / %.0f | %.0f", stats_quantile(v, n, 0.5), stats_quantile(v, n, 0.9),
               100.0 * in / n);
        if (k == LEFTS - 1)
            printf(" |\n");
    }
    free(v);
}

static void head(void)
{
    printf("| | points");
    for (int k = 0; k < LEFTS; k++)
        printf(" | %s | inside", left_name[k]);
    printf(" |\n|---|---|---|---|---|---|---|---|\n");
}

static void tables(const struct scoring *s, bool all)
{
    static const char *const regimes[] = {"up to 256 KiB", "between", "from 256 MiB"};

    head();
    for (int op = 0; op < OP_COUNT; op++) {
        row_of(s, op_name((enum op)op), op, NULL, NULL);
        for (int r = 0; r < 3; r++)
            row_of(s, regimes[r], op, regimes[r], NULL);
    }
    row_of(s, "all", -1, NULL, NULL);
    if (!all)
        return;
    printf("\n");
    head();
    for (int i = 0; i < s->curves; i++) {
        char name[128], shape[48];
        const struct published *p = &s->curve[i];
        snprintf(name, sizeof(name), "%s %s %s", p->source, op_name(p->c.op),
                 shape_text(shape, &p->c.shape));
        row_of(s, name, -1, NULL, p);
    }
    for (int i = 0; i < s->points; i++) {
        const struct priced *p = &s->priced[i];
        printf("%s\t%s\t%d\t%d\t%.0f\t%+.0f\t%+.0f\t%+.0f\n", p->of->source, op_name(p->of->c.op),
               p->of->c.shape.ranks, p->of->c.shape.domains, p->bytes,
               100 * expm1(p->error[LEFT_SHAPE]), 100 * expm1(p->error[LEFT_SOURCE]),
               100 * expm1(p->error[LEFT_ALL]));
    }
}

/* Limits of an operation over all sizes: median and 90th percentile of the errors with the shape left out; with the
 * publisher left out 12 and 40, and the share inside the interval, which all_reduce has points enough for, between 85 and
 * 95 %. */
static bool holds(const struct scoring *s, enum op op, double median, double p90)
{
    double *v = mem_calloc((size_t)s->points + 1, sizeof(*v));
    bool good = true;

    for (int k = LEFT_SHAPE; k <= LEFT_SOURCE; k++) {
        int n = 0, in = 0;
        for (int i = 0; i < s->points; i++)
            if (s->priced[i].of->c.op == op) {
                in += s->priced[i].inside[k];
                v[n++] = 100 * expm1(fabs(s->priced[i].error[k]));
            }
        stats_sort(v, n);
        good = good && stats_quantile(v, n, 0.5) <= (k ? 12 : median) + 0.5 &&
               stats_quantile(v, n, 0.9) <= (k ? 40 : p90);
        good = good && (!k || in >= 0.85 * n) && (!k || op == OP_ALL_TO_ALL || in <= 0.95 * n);
    }
    free(v);
    if (!good)
        fprintf(stderr, "published: %s is beyond its limits\n", op_name(op));
    return good;
}

int main(int argc, char **argv)
{
    const char *given = getenv("RAILGAUGE_PUBLISHED");
    bool all = argc > 1 && !strcmp(argv[1], "-v");
    const char *path = argc > 1 + all ? argv[1 + all]
                       : given        ? given
                                      : "../shared/prototypes/collectives/published.tsv";
    struct scoring s = {.curves = 0};
    struct err err;

    if (access(path, R_OK) < 0) {
        fprintf(stderr, "published: no table of published points (%s)\n", path);
        return 0;
    }
    if (tsv_load(&s.table, path, &err) < 0) {
        fprintf(stderr, "published: %s\n", err.text);
        return 1;
    }
    for (int i = 0; i < s.table.rows; i++)
        add_row(&s, i);
    for (int i = 0; i < s.curves; i++)
        s.points += s.curve[i].c.curve.points;
    s.priced = mem_calloc((size_t)s.points, sizeof(*s.priced));
    for (int i = 0, at = 0; i < s.curves; at += s.curve[i++].c.curve.points)
        for (int k = 0; k < LEFTS; k++)
            price(&s, &s.curve[i], k, s.priced + at);
    tables(&s, all);
    bool good = holds(&s, OP_ALL_REDUCE, 8, 30);
    good = holds(&s, OP_ALL_GATHER, 10, 35) && good;
    return holds(&s, OP_ALL_TO_ALL, 10, 35) && good ? 0 : 1;
}
