/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

enum { WORST_SHOWN = 6, FINDINGS_SHOWN = 4 };

static void print_head(FILE *out, const char *dir, const struct matrix *m)
{
    static const enum level shown[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF};
    const struct topo *t = &m->topo;

    fprintf(out, "%s: %d endpoints on %d host%s over %s", dir, t->endpoints, t->hosts,
            t->hosts == 1 ? "" : "s", m->transport);
    if (m->fabric)
        fprintf(out, " (%s)", m->fabric);
    for (int i = 0; i < 3; i++) {
        int at = t->endpoint[0].place.at[shown[i]];
        if (at >= 0)
            fprintf(out, ", %d %s%s %s", t->group[shown[i]].count, level_name[shown[i]],
                    t->group[shown[i]].count == 1 ? ""
                    : shown[i] == LEVEL_LEAF      ? " switches"
                                                  : "s",
                    t->endpoint[0].source[shown[i]] == SOURCE_MEASURED ? "found by measuring"
                                                                       : "declared");
    }
    fputs("\n\n", out);
}

static const char *rate_or_dash(char buf[UNITS_TEXT], double Bps)
{
    return Bps > 0 ? units_rate_text(buf, Bps) : "-";
}

static void print_tiers(FILE *out, const struct matrix *m)
{
    char text[3][UNITS_TEXT];

    fprintf(out, "%-12s %7s %11s %12s %12s %8s\n", "tier", "pairs", "latency", "one way",
            "both ways", "of peak");
    for (int i = 0; i < m->tiers; i++) {
        const struct tier *t = &m->tier[i];
        double uni = matrix_rate(m, i, DIR_UNI),
               bi = t->curve[DIR_BI].points ? matrix_rate(m, i, DIR_BI) : 0;
        if (!t->pairs)
            continue;
        fprintf(out, "%-12s %7d %11s %12s %12s", t->rule.name, t->pairs,
                units_seconds_text(text[0], t->curve[DIR_ONEWAY].alpha), rate_or_dash(text[1], uni),
                rate_or_dash(text[2], bi));
        if (t->peak_Bps > 0)
            fprintf(out, " %7.0f%%", 100 * uni / t->peak_Bps);
        fputc('\n', out);
    }
}

static int by_factor(const void *a, const void *b)
{
    const struct exception *x = *(const struct exception *const *)a,
                           *y = *(const struct exception *const *)b;

    return (x->factor > y->factor) - (x->factor < y->factor);
}

static void print_worst(FILE *out, const struct matrix *m)
{
    const struct exception **e =
        mem_calloc((size_t)m->exceptions + 1, sizeof(const struct exception *));

    fputs("\nworst parts\n", out);
    for (int i = 0; i < m->exceptions; i++)
        e[i] = &m->exception[i];
    qsort(e, (size_t)m->exceptions, sizeof(const struct exception *), by_factor);
    for (int i = 0; i < m->exceptions && i < WORST_SHOWN; i++)
        fprintf(out, "  %.2f  %s\n", e[i]->factor, e[i]->why ? e[i]->why : part_name[e[i]->part]);
    if (!m->exceptions)
        fputs("  none stands out from its tier\n", out);
    else if (m->exceptions > WORST_SHOWN)
        fprintf(out, "  and %d more: railgauge show MATRIX findings\n",
                m->exceptions - WORST_SHOWN);
    free(e);
    for (int i = 0; i < m->findings && i < FINDINGS_SHOWN; i++)
        fprintf(out, "%s%s: %s\n", i ? "  " : "findings\n  ", m->finding[i].kind,
                m->finding[i].text);
    if (m->findings > FINDINGS_SHOWN)
        fprintf(out, "  and %d more: railgauge show MATRIX findings\n",
                m->findings - FINDINGS_SHOWN);
}

/* The curve of the largest group that has one for this op. */
static const struct collective *largest(const struct matrix *m, enum op op)
{
    const struct collective *best = NULL;

    for (int i = 0; i < m->collectives; i++)
        if (m->collective[i].op == op && m->collective[i].curve.points &&
            (!best || m->collective[i].shape.ranks > best->shape.ranks))
            best = &m->collective[i];
    return best;
}

/* Three sizes of the curve: its largest, 1/16 and 1/256 of that. */
static void print_collective(FILE *out, const struct matrix *m, const struct collective *c)
{
    char size[UNITS_TEXT], rate[UNITS_TEXT], shape[48];
    const struct curve *k = &c->curve;
    double factor = op_bus_factor(c->op, c->shape.ranks), top = k->point[k->points - 1].bytes;
    int n = c->shape.ranks, *ids = mem_calloc((size_t)n, sizeof(*ids));

    for (int i = 0; i < n; i++)
        ids[i] = i;
    fprintf(out, "  %-15s %-14s", op_name(c->op), shape_text(shape, &c->shape));
    for (double bytes = top / 256; bytes <= top * 1.001; bytes *= 16) {
        struct cost expected;
        double sec = curve_time(k, bytes);
        matrix_expected(m, c->op, ids, n, bytes, &expected);
        fprintf(out, "  %8s %9s", units_bytes_text(size, bytes),
                units_rate_text(rate, bytes * factor / sec));
        if (n == m->topo.endpoints && expected.sec > 0)
            fprintf(out, " %3.0f%%", 100 * expected.sec / sec);
    }
    fputc('\n', out);
    free(ids);
}

static void print_collectives(FILE *out, const struct matrix *m)
{
    static const enum op ops[] = {OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_ALL_TO_ALL, OP_ALL_REDUCE};
    bool any = false;

    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        const struct collective *c = largest(m, ops[i]);
        if (!c)
            continue;
        if (!any)
            fputs("\ncollectives: bus bandwidth and share of what the tiers let expect\n", out);
        any = true;
        print_collective(out, m, c);
    }
}

void summary_print(FILE *out, const char *dir, const struct matrix *m,
                   const struct summary_step *step, int steps, const char *const *files, int nfiles)
{
    char text[3][UNITS_TEXT];

    print_head(out, dir, m);
    print_tiers(out, m);
    print_worst(out, m);
    print_collectives(out, m);
    for (int i = 0; i < steps; i++)
        fprintf(out, "%s  %-14s %-24s %s  (%s to %s), %.0f%% exposed communication\n",
                i ? "" : "\npredicted training step\n", step[i].model, step[i].layout,
                units_seconds_text(text[0], step[i].sec), units_seconds_text(text[1], step[i].lo),
                units_seconds_text(text[2], step[i].hi), 100 * step[i].exposed);
    if (steps)
        fprintf(out, "  compute: %s\n", step[0].compute_source);
    fputs("\nfiles in ", out);
    fprintf(out, "%s:", dir);
    for (int i = 0; i < nfiles; i++)
        fprintf(out, " %s", files[i]);
    fputc('\n', out);
}
