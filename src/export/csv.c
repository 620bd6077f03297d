/* SPDX-License-Identifier: BSD-3-Clause */
/* csv.c - every measured pair with names, for spreadsheets and data frames: RFC 4180, a header,
 * units in the column names, an empty cell for unknown values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "export/export_impl.h"
#include "measure/point.h"
#include "report/plot/pair_map.h"
#include "topo/nic.h"

/* RFC 4180, 2.5 to 2.7. */
static void put_text(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fprintf(out, "%s,", text);
        return;
    }
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    fputs("\",", out);
}

static void put_number(FILE *out, double v, char end)
{
    if (isfinite(v))
        fprintf(out, "%.9g", v);
    putc(end, out);
}

static const char *group_name(const struct topo *t, int endpoint, enum level level)
{
    int at = topo_at(t, endpoint, (int)level);

    return at >= 0 ? t->group[level].name[at] : "";
}

/* Write host, gpu, bus id, nic and rack from the topology of the campaign. */
static void put_end(FILE *out, const struct topo *t, int id)
{
    const struct endpoint *e = &t->endpoint[id];

    put_text(out, t->host[e->place.at[LEVEL_HOST]].name);
    fprintf(out, "%d,", e->local);
    put_text(out, e->busid);
    put_text(out, e->nic >= 0 && e->nic < t->nics ? t->nic[e->nic].name : "");
    put_text(out, group_name(t, id, LEVEL_RACK));
}

/* --- latencies: from a ping-pong, so a single number for both directions --- */

struct latency {
    int a, b; /* a < b */
    double sec;
};

static int by_ends(const void *x, const void *y)
{
    const struct latency *p = x, *q = y;

    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    if (p->b != q->b)
        return p->b < q->b ? -1 : 1;
    return p->sec < q->sec ? -1 : p->sec > q->sec;
}

/* Median over epochs for each pair, at the smallest size; sorted.  Returns their number. */
static int latencies(struct latency **out, const struct points *p)
{
    size_t least = SIZE_MAX;
    struct latency *l = NULL;
    int n = 0, kept = 0;

    for (int i = 0; i < p->count; i++)
        if (p->point[i].op == OP_PAIR_LATENCY && p->point[i].bytes < least)
            least = p->point[i].bytes;
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        int a = q->src < q->dst ? q->src : q->dst, b = q->src < q->dst ? q->dst : q->src;
        if (q->op == OP_PAIR_LATENCY && q->bytes == least && q->stop != STOP_FAILED && !q->wrong)
            MEM_PUSH(l, n) = (struct latency){a, b, q->sec.median};
    }
    if (n)
        qsort(l, (size_t)n, sizeof(*l), by_ends);
    for (int i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && l[i + same].a == l[i].a && l[i + same].b == l[i].b; same++)
            ;
        double sec = (l[i + (same - 1) / 2].sec + l[i + same / 2].sec) / 2;
        l[kept++] = (struct latency){l[i].a, l[i].b, sec};
    }
    *out = l;
    return kept;
}

static double latency_of(const struct latency *l, int n, int src, int dst)
{
    int lo = 0, hi = n, a = src < dst ? src : dst, b = src < dst ? dst : src;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (l[mid].a == a && l[mid].b == b)
            return l[mid].sec;
        if (l[mid].a < a || (l[mid].a == a && l[mid].b < b))
            lo = mid + 1;
        else
            hi = mid;
    }
    return NAN;
}

/* --- the file --- */

static void put_pair(const struct export_run *e, const struct pair_map *ps,
                     const struct pair_sample *s, double latency)
{
    const struct topo *t = e->topo;

    put_end(e->out, t, s->src);
    put_end(e->out, t, s->dst);
    put_text(e->out, e->m->tier[pair_map_tier(ps, s->src, s->dst)].rule.name);
    fprintf(e->out, "%.0f,%s,", ps->bytes, s->rank ? "alone" : "loaded");
    put_number(e->out, units_out(FOREIGN_TABLE_RATE, s->Bps), ',');
    put_number(e->out, units_out(FOREIGN_TABLE_TIME, latency), ',');
    put_number(e->out, pair_map_share(ps, s->src, s->dst, s->Bps), '\r');
    putc('\n', e->out);
}

int csv_write(const struct export_run *e, struct err *err)
{
    struct pair_map ps;
    struct latency *l = NULL;

    if (pair_map_init(&ps, e->m, e->points, NULL, err) < 0)
        return -1;
    if (ps.samples == 0) {
        pair_map_free(&ps);
        return err_data(err, "no bandwidth of a pair was measured: csv has a row for each");
    }
    int n = latencies(&l, e->points);
    fputs(
        "src_host,src_gpu,src_bus_id,src_nic,src_rack,dst_host,dst_gpu,dst_bus_id,dst_nic,dst_rack,"
        "tier,message_bytes,measured,bandwidth_GB_per_s,latency_us,share_of_tier\r\n",
        e->out);
    for (int i = 0; i < ps.samples && !ferror(e->out); i++) {
        const struct pair_sample *s = &ps.sample[i];
        put_pair(e, &ps, s, latency_of(l, n, s->src, s->dst));
    }
    free(l);
    pair_map_free(&ps);
    return 0;
}
