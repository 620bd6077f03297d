/* SPDX-License-Identifier: BSD-3-Clause */
/* openmetrics.c - measurements and verdict as metrics: a .prom file for the textfile collector of
 * Prometheus' node_exporter, which OpenMetrics readers accept as well.
 *
 *   names     prometheus.io/docs/practices/naming: base units (bytes, seconds, ratio), samples of a
 *             family together
 *   values    gauges: results of the last campaign; its time is a gauge of its own, because the
 *             collector refuses timestamps
 *   text      prometheus.io/docs/instrumenting/exposition_formats; HELP has no quote, so that both
 *             formats escape alike */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "export/export_impl.h"
#include "matrix/reference.h"
#include "measure/point.h"
#include "topo/nic.h"
#include "verdict/accept.h"
#include "verdict/parts.h"

struct metrics {
    FILE *out;
    const struct export_run *e;
    const char *family;
};

static void family(struct metrics *s, const char *name, const char *help)
{
    s->family = name;
    fprintf(s->out, "# HELP railgauge_%s %s\n# TYPE railgauge_%s gauge\n", name, help, name);
}

static void put_label(FILE *out, const char *before, const char *name, const char *value)
{
    fprintf(out, "%s%s=\"", before, name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            putc('\\', out);
        putc(*value, out);
    }
    putc('"', out);
}

/* Write a value with its labels, names and texts in turn; unknown values are left out. */
#define sample(...) put_sample(__VA_ARGS__, (const char *)NULL)
static void put_sample(struct metrics *s, double value, ...)
{
    const char *before = "{", *name, *campaign = s->e->ask->name;
    va_list ap;

    if (isnan(value))
        return;
    fprintf(s->out, "railgauge_%s", s->family);
    if (campaign)
        put_label(s->out, before, "campaign", campaign), before = ",";
    va_start(ap, value);
    while ((name = va_arg(ap, const char *))) {
        put_label(s->out, before, name, va_arg(ap, const char *));
        before = ",";
    }
    va_end(ap);
    fputs(*before == ',' ? "} " : " ", s->out);
    if (isinf(value))
        fputs("+Inf\n", s->out);
    else /* nine digits are not enough for a time */
        fprintf(s->out, value == floor(value) && value < 1e12 ? "%.0f\n" : "%.9g\n", value);
}

/* --- the verdict --- */

/* Seconds since 1970 of "2026-11-22T16:01:00Z"; NAN: not known. */
static double when(const struct matrix *m)
{
    const char *text = json_string_value(json_object_get(m->provenance, "time_utc"));
    struct tm tm = {0};

    return text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (double)timegm(&tm) : NAN;
}

static void put_campaign(struct metrics *s)
{
    const struct matrix *m = s->e->m;

    family(s, "info", "What was measured, by which version of railgauge, against what.");
    sample(s, 1, "version", RG_VERSION, "transport", m->transport, "fabric",
           m->fabric ? m->fabric : "", "against", s->e->against ? s->e->against : "");
    family(s, "campaign_timestamp_seconds", "When the cost matrix was made, seconds since 1970.");
    sample(s, when(m));
    family(s, "hosts", "Hosts that took part.");
    sample(s, m->topo.hosts);
    family(s, "endpoints", "GPUs, or CPU sockets, that took part.");
    sample(s, m->topo.endpoints);
}

static void put_verdict(struct metrics *s)
{
    const struct accept *a = s->e->accept;

    family(s, "verdict", "1 at the verdict of the campaign, 0 at the others.");
    for (int i = 0; i < ACCEPT_IS_COUNT; i++)
        sample(s, (int)a->verdict == i, "verdict", accept_name[i]);
    family(s, "checks", "Checks of the campaign with this verdict.");
    for (int i = 0; i < ACCEPT_IS_COUNT; i++)
        sample(s, a->count[i], "verdict", accept_name[i]);
    family(s, "check_state",
           "Verdict of a check as Nagios counts: 0 PASS, 1 WARN, 2 FAIL, "
           "3 UNKNOWN; the worst of its rows.");
    for (int c = 0; c < CHECK_COUNT; c++) {
        static const int bad[ACCEPT_IS_COUNT] = {
            [ACCEPT_PASS] = 0, [ACCEPT_UNKNOWN] = 1, [ACCEPT_WARN] = 2, [ACCEPT_FAIL] = 3};
        static const int state[] = {0, 3, 1, 2};
        int worst = -1;
        for (int i = 0; i < a->rows; i++)
            if ((int)a->row[i].limit->check == c && bad[a->row[i].is] > worst)
                worst = bad[a->row[i].is];
        if (worst >= 0)
            sample(s, state[worst], "check", limit_check[c].name);
    }
}

/* --- tiers --- */

static double metrics_rate(const struct metrics *s, int i)
{
    return matrix_rate(s->e->m, i, DIR_UNI);
}

static double latency_of(const struct metrics *s, int i)
{
    const struct curve *c = &s->e->m->tier[i].curve[DIR_ONEWAY];

    return c->points ? c->alpha : NAN;
}

static double expected_of(const struct metrics *s, int i)
{
    const struct matrix *ref = s->e->reference;

    return ref ? metrics_rate(s, i) / reference_rate(ref, s->e->m, &s->e->m->tier[i]) : NAN;
}

static double spread_of(const struct metrics *s, int i)
{
    return s->e->m->tier[i].pairs ? s->e->m->tier[i].spread : NAN;
}

static double loaded_of(const struct metrics *s, int i)
{
    return s->e->m->tier[i].loaded;
}

static double coverage_of(const struct metrics *s, int i)
{
    const struct tier *t = &s->e->m->tier[i];

    return t->possible > 0 ? t->measured / t->possible : NAN;
}

static void put_tiers(struct metrics *s)
{
    static const struct {
        const char *name, *help;
        double (*of)(const struct metrics *s, int tier);
    } figure[] = {
        {"tier_bandwidth_bytes_per_second", "One way bandwidth of a healthy pair, large messages.",
         metrics_rate},
        {"tier_latency_seconds", "One way latency of a healthy pair, small messages.", latency_of},
        {"tier_expected_ratio", "Bandwidth of a healthy pair as a share of the reference.",
         expected_of},
        {"tier_spread_ratio", "MAD of the bandwidth of healthy pairs as a share of its median.",
         spread_of},
        {"tier_loaded_ratio", "Bandwidth while all pairs run as a share of that of one alone.",
         loaded_of},
        {"tier_coverage_ratio", "Share of the pairs of the tier that were measured.", coverage_of},
    };

    for (size_t f = 0; f < sizeof(figure) / sizeof(*figure); f++) {
        family(s, figure[f].name, figure[f].help);
        for (int i = 0; i < s->e->m->tiers; i++)
            sample(s, figure[f].of(s, i), "tier", s->e->m->tier[i].rule.name);
    }
}

/* --- parts --- */

static double speed_of(const struct part_row *r)
{
    return r->factor;
}

static double share_of(const struct part_row *r)
{
    return r->share;
}

static double latency_added(const struct part_row *r)
{
    return r->alpha_add;
}

static double cost_of(const struct part_row *r)
{
    return r->cost;
}

static void put_part(struct metrics *s, const struct part_row *r, double value)
{
    const struct topo *t = s->e->topo;
    int host = r->places ? r->place[0].host : -1, nic = r->places ? r->place[0].nic : -1;

    sample(s, value, "kind", part_kind_name[r->kind], "part", r->name, "state",
           part_state_name[r->state], "host",
           host >= 0 && host < t->hosts ? t->host[host].name : "", "nic",
           nic >= 0 && nic < t->nics ? t->nic[nic].name : "", "over", r->over);
}

static void put_parts(struct metrics *s)
{
    static const struct {
        const char *name, *help;
        double (*of)(const struct part_row *r);
    } figure[] = {
        {"part_speed_ratio",
         "Speed of a part to act on, while its state shows, as a share of its tier, of the fabric "
         "as a share of the reference; 0: dead or wrong data.",
         speed_of},
        {"part_state_ratio",
         "Share of the time, messages or checks in which the state of a part to act on shows.",
         share_of},
        {"part_latency_seconds", "Latency that a part to act on adds one way.", latency_added},
        {"part_step_cost_ratio",
         "How much longer a training step takes with this part only, as a share of it.", cost_of},
    };
    const struct parts *p = s->e->parts;
    int count[PART_KIND_COUNT] = {0};

    for (int i = 0; i < p->rows; i++)
        count[p->row[i].kind]++;
    family(s, "parts", "Parts of a kind to act on, in any state.");
    for (int k = 0; k < PART_KIND_COUNT; k++)
        sample(s, count[k], "kind", part_kind_name[k]);
    for (size_t f = 0; f < sizeof(figure) / sizeof(*figure); f++) {
        family(s, figure[f].name, figure[f].help);
        for (int i = 0; i < p->rows; i++)
            put_part(s, &p->row[i], figure[f].of(&p->row[i]));
    }
}

/* --- collectives: the largest size of each curve --- */

struct collective_figure {
    double bytes, sec, Bps, share;
};

static void look_at(struct collective_figure *f, const struct reference *r,
                    const struct collective *c)
{
    const struct curve_point *last = &c->curve.point[c->curve.points - 1];
    int *ids = shape_group(&r->measured->topo, &c->shape);
    struct cost want;

    reference_of_curve(r, c, ids, &last->bytes, 1, &want);
    *f = (struct collective_figure){last->bytes, last->sec,
                                    last->bytes / last->sec * op_bus_factor(c->op, c->shape.ranks),
                                    reference_curve_share(c, &want, last->sec)};
    free(ids);
}

static void put_collective(struct metrics *s, const struct collective *c, double bytes,
                           double value)
{
    char group[48], racks[16], at_once[16], size[32];

    snprintf(racks, sizeof(racks), "%d", c->shape.racks);
    snprintf(at_once, sizeof(at_once), "%d", c->at_once);
    snprintf(size, sizeof(size), "%.0f", bytes);
    snprintf(
        group, sizeof(group), "%dr %dd x%d", c->shape.ranks, c->shape.domains,
        c->shape.per_domain); /* short, and the same in all releases: dashboards select by it */
    sample(s, value, "op", op_name(c->op), "group", group, "racks", racks, "at_once", at_once,
           "bytes", size);
}

/* True if an earlier curve has the same labels; only the first is shown. */
static bool again(const struct matrix *m, int at)
{
    const struct collective *c = &m->collective[at];

    for (int i = 0; i < at; i++) {
        const struct collective *d = &m->collective[i];
        if (d->op == c->op && d->shape.ranks == c->shape.ranks &&
            d->shape.domains == c->shape.domains && d->shape.per_domain == c->shape.per_domain &&
            d->shape.racks == c->shape.racks && d->at_once == c->at_once && d->curve.points)
            return true;
    }
    return false;
}

static void put_collectives(struct metrics *s)
{
    const struct matrix *m = s->e->m;
    struct collective_figure *f = mem_calloc((size_t)m->collectives + 1, sizeof(*f));
    bool *shown = mem_calloc((size_t)m->collectives + 1, sizeof(*shown));
    struct reference r;

    reference_open(&r, m);
    for (int i = 0; i < m->collectives; i++)
        if ((shown[i] = m->collective[i].curve.points && !again(m, i)))
            look_at(&f[i], &r, &m->collective[i]);
    family(s, "collective_bus_bandwidth_bytes_per_second",
           "Bus bandwidth of a collective at its largest size, as nccl-tests defines it.");
    for (int i = 0; i < m->collectives; i++)
        if (shown[i])
            put_collective(s, &m->collective[i], f[i].bytes, f[i].Bps);
    family(s, "collective_seconds", "Time of a collective at its largest size.");
    for (int i = 0; i < m->collectives; i++)
        if (shown[i])
            put_collective(s, &m->collective[i], f[i].bytes, f[i].sec);
    family(s, "collective_expected_ratio",
           "Speed of a collective as a share of what a healthy fabric gives.");
    for (int i = 0; i < m->collectives; i++)
        if (shown[i])
            put_collective(s, &m->collective[i], f[i].bytes, f[i].share);
    reference_free(&r);
    free(shown);
    free(f);
}

/* --- findings --- */

static void put_points(struct metrics *s)
{
    const struct points *p = s->e->points;
    int failed = 0, wrong = 0;

    if (!p)
        return;
    for (int i = 0; i < p->count; i++) {
        failed += p->point[i].stop == STOP_FAILED;
        wrong += p->point[i].wrong;
    }
    family(s, "points", "Measured points of the campaign by what became of them.");
    sample(s, p->count - failed - wrong, "state", "good");
    sample(s, failed, "state", "failed");
    sample(s, wrong, "state", "wrong_data");
}

static void put_seen(struct metrics *s)
{
    const struct matrix *m = s->e->m;

    family(s, "seen_ratio", "Share of the parts of a kind that met enough others to be judged.");
    for (int i = 0; i < m->seens; i++)
        if (m->seen[i].parts > 0)
            sample(s, m->seen[i].judged / m->seen[i].parts, "kind", seen_name[m->seen[i].kind]);
}

static void put_findings(struct metrics *s)
{
    const struct matrix *m = s->e->m;
    struct names kinds = {0};

    family(s, "findings",
           "Findings of a kind that are no slow part: contention, taints and others.");
    for (int i = 0; i < m->findings; i++)
        names_add(&kinds, m->finding[i].kind);
    for (int k = 0; k < kinds.count; k++) {
        int n = 0;
        for (int i = 0; i < m->findings; i++)
            n += !strcmp(m->finding[i].kind, kinds.name[k]);
        sample(s, n, "kind", kinds.name[k]);
    }
    names_free(&kinds);
}

int openmetrics_write(const struct export_run *e, struct err *err)
{
    struct metrics s = {.out = e->out, .e = e};

    (void)err;
    put_campaign(&s);
    put_verdict(&s);
    put_tiers(&s);
    put_parts(&s);
    put_collectives(&s);
    put_points(&s);
    put_seen(&s);
    put_findings(&s);
    fputs("# EOF\n", e->out);
    return 0;
}
