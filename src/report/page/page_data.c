/* SPDX-License-Identifier: BSD-3-Clause */
/* page_data.c - contents of a page as JSON (report.schema.json); page.js draws the map from it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "report/page/page_impl.h"
#include "report/text/report.h"
#include "topo/nic.h"

enum {
    BLOCKS_MOST = 256, /* blocks, up to which the smallest shares between them are included */
    /* Flag in a share; flag in its lower end; largest share; codes instead of a share. */
    SHARE_ALONE = 0x8000,
    LOW_BY_NIC = 0x8000,
    SHARE_MOST = 0x7ffd,
    SHARE_FAILED = 0x7ffe,
    SHARE_WRONG = 0x7fff
};

static json_t *names(const struct names *n)
{
    return json_texts(n->name, n->count);
}

/* --- endpoints, in the order of pictures --- */

typedef int end_value(const struct page_facts *f, int endpoint);

static int end_id(const struct page_facts *f, int endpoint)
{
    (void)f;
    return endpoint;
}

static int end_local(const struct page_facts *f, int endpoint)
{
    return f->t->endpoint[endpoint].local;
}

static int end_mark(const struct page_facts *f, int endpoint)
{
    return (int)f->end[endpoint].mark;
}

static json_t *column(const struct page_facts *f, end_value *value)
{
    json_t *list = json_array();

    for (int i = 0; i < f->t->endpoints; i++)
        json_array_append_new(list, json_integer(value(f, f->order[i])));
    return list;
}

static int permille(double share)
{
    return isfinite(share) ? (int)lround(1000 * fmin(share, 9)) : -1;
}

static json_t *shares(const struct page_facts *f, enum page_way way)
{
    json_t *list = json_array();

    for (int i = 0; i < f->t->endpoints; i++)
        json_array_append_new(list, json_integer(permille(f->end[f->order[i]].way[way].mid)));
    return list;
}

/* Indices into a list of distinct NIC names. */
static json_t *nics(const struct page_facts *f, json_t **list)
{
    json_t *at = json_object(), *column = json_array();

    *list = json_array();
    for (int i = 0; i < f->t->endpoints; i++) {
        int nic = f->hw->endpoint[f->order[i]].nic;
        const char *name = nic >= 0 ? f->hw->nic[nic].name : NULL;
        json_t *known = name ? json_object_get(at, name) : NULL;
        if (name && !known) {
            known = json_integer((json_int_t)json_array_size(*list));
            json_array_append_new(*list, json_string(name));
            json_object_set_new(at, name, known);
        }
        json_array_append_new(column, known ? json_incref(known) : json_integer(-1));
    }
    json_decref(at);
    return column;
}

static json_t *coordinates(const struct page_facts *f, int level)
{
    json_t *list = json_array();

    for (int i = 0; i < f->t->endpoints; i++)
        json_array_append_new(list, json_integer(topo_at(f->t, f->order[i], level)));
    return list;
}

static json_t *ends(const struct page_facts *f, json_t **nic_names)
{
    json_t *out = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "endpoint", column(f, end_id), "local",
        column(f, end_local), "nic", nics(f, nic_names), "mark", column(f, end_mark), "inside_tx",
        shares(f, WAY_NEAR_TX), "inside_rx", shares(f, WAY_NEAR_RX), "network_tx",
        shares(f, WAY_NIC_TX), "network_rx", shares(f, WAY_NIC_RX));

    for (int level = 0; level < LEVEL_COUNT; level++)
        json_object_set_new(out, level_name[level], coordinates(f, level));
    return out;
}

/* --- pairs --- */

struct packed {
    unsigned char *byte;
    size_t len;
    int rows;
};

static void put(struct packed *to, unsigned long value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to->byte[to->len++] = (unsigned char)(value >> 8 * i & 255);
}

static unsigned share_code(double share)
{
    return (unsigned)lround(fmax(0, fmin(1e4 * share, SHARE_MOST)));
}

static void put_pair(struct packed *to, const struct page_facts *f, const struct page_pair *p,
                     int id_bytes)
{
    unsigned code = p->wrong ? SHARE_WRONG : isnan(p->share) ? SHARE_FAILED : share_code(p->share);

    put(to, (unsigned long)f->place[p->src], id_bytes);
    put(to, (unsigned long)f->place[p->dst], id_bytes);
    put(to, code | (p->alone ? SHARE_ALONE : 0), 2);
    put(to, (isfinite(p->lo) ? share_code(p->lo) : 0) | (p->by_nic ? LOW_BY_NIC : 0), 2);
    put(to, isfinite(p->hi) ? share_code(p->hi) : 0, 2);
    to->rows++;
}

static json_t *pairs(const struct page_facts *f)
{
    int id_bytes = f->t->endpoints > 65536 ? 4 : 2, seen[2] = {0, 0};
    struct packed to = {
        mem_calloc((size_t)(f->keep[0] + f->keep[1]) + 1, (size_t)(2 * id_bytes + 6)), 0, 0};

    for (int i = 0; i < f->pairs; i++) {
        bool odd = page_odd(f, &f->pair[i]);
        if (page_keeps(seen[odd]++, f->keep[odd], f->all[odd]))
            put_pair(&to, f, &f->pair[i], id_bytes);
    }
    char *text = html_base64(to.byte, to.len);
    json_t *out = json_pack("{s:s, s:i, s:[s, s, s, s, s], s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:s}",
                            "encoding", "base64 of little-endian integers", "id_bytes", id_bytes,
                            "columns", "source", "target", "share", "low", "high", "unit", 1e-4,
                            "measured", f->pairs, "kept", to.rows, "slow", f->slow, "wrong",
                            f->wrong, "failed", f->failed, "by_nic", f->by_nic, "rows", text);
    free(text);
    free(to.byte);
    return out;
}

/* Smallest share between each two blocks, row by row: -1 not measured, -2 wrong data.  Omitted for
 * too many blocks. */
static json_t *worst(const struct page_facts *f)
{
    size_t n = f->blocks <= BLOCKS_MOST ? (size_t)f->blocks : 0;
    int *least = mem_ints((int)(n * n), -1);
    json_t *list = json_array();

    for (int i = 0; n && i < f->pairs; i++) {
        const struct page_pair *p = &f->pair[i];
        int *at = &least[(size_t)f->end[p->src].block * n + (size_t)f->end[p->dst].block];
        int share = p->wrong ? -2 : isnan(p->share) ? 0 : permille(p->share);
        if (*at != -2 && (*at == -1 || share < *at))
            *at = share;
    }
    for (size_t i = 0; i < n * n; i++)
        json_array_append_new(list, json_integer(least[i]));
    free(least);
    return list;
}

/* --- tables --- */

static json_t *levels(unsigned mask)
{
    json_t *list = json_array();

    for (int level = 0; level < LEVEL_COUNT; level++)
        if (mask & 1u << level)
            json_array_append_new(list, json_string(level_name[level]));
    return list;
}

static json_t *tiers(const struct page_facts *f)
{
    json_t *list = json_array();

    for (int i = 0; i < f->m->tiers; i++) {
        const struct tier *t = &f->m->tier[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "name", t->rule.name, "nic",
                      t->nic, "same", levels(t->rule.same), "measured", json_real(t->measured),
                      "possible", json_real(t->possible), "expected_Bps",
                      json_finite(f->bytes > 0 ? f->expected[i] : NAN), "latency_s",
                      json_finite(t->curve[DIR_ONEWAY].points ? t->curve[DIR_ONEWAY].alpha : NAN),
                      "spread", json_finite(t->pairs ? t->spread : NAN)));
    }
    return list;
}

static json_t *blocks(const struct page_facts *f)
{
    json_t *list = json_array();

    for (int i = 0; i < f->blocks; i++) {
        const struct page_block *b = &f->block[i];
        json_t *rows = json_array();
        for (int k = 0; k < b->hosts; k++)
            json_array_append_new(rows, json_integer(b->host[k]));
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:o, s:i, s:o}", "name", b->name,
                                              "first", b->first, "count", b->count, "rows", rows,
                                              "marked", b->marked, "least", json_finite(b->least)));
    }
    return list;
}

/* Exceptions with tiers and directions, for pairs that were not measured. */
static json_t *exceptions(const struct page_facts *f)
{
    json_t *list = json_array();

    for (int i = 0; i < f->m->exceptions; i++) {
        const struct exception *e = &f->m->exception[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:b}", "part",
                                              part_name[e->part], "side", side_name[e->side], "a",
                                              e->a, "b", e->b, "tier", e->tier, "factor", e->factor,
                                              "wrong", e->wrong));
    }
    return list;
}

static const char *time_of(const json_t *provenance)
{
    return json_string_value(json_object_get(provenance, "time_utc"));
}

static json_t *machine(const struct page_facts *f)
{
    const struct topo *t = f->t;

    return json_pack("{s:i, s:i, s:i, s:s, s:s?, s:s?, s:s?, s:s?, s:s?}", "endpoints",
                     t->endpoints, "hosts", t->hosts, "racks", t->group[LEVEL_RACK].count, "kind",
                     endpoint_kind_name[t->endpoints ? t->endpoint[0].kind : ENDPOINT_CPU], "model",
                     t->endpoints && *t->endpoint[0].model ? t->endpoint[0].model : NULL,
                     "transport", f->m->transport, "fabric", f->m->fabric, "began_utc",
                     time_of(f->provenance), "ended_utc", time_of(f->m->provenance));
}

static json_t *hosts(const struct page_facts *f)
{
    json_t *list = json_array();

    for (int i = 0; i < f->t->hosts; i++)
        json_array_append_new(list, json_string(f->t->host[i].name));
    return list;
}

static json_t *history(const struct history *h)
{
    if (!h)
        return json_null();
    char *line = history_line(h);
    json_t *out = history_json(h);
    json_object_set_new(out, "line", json_string(line));
    free(line);
    return out;
}

json_t *page_data(const struct page_facts *f)
{
    const struct page *in = f->in;
    json_t *nic_names, *of_ends = ends(f, &nic_names);
    json_t *data = json_pack("{s:s, s:i, s:o, s:s?, s:s, s:b, s:s, s:s, s:s?, s:s, s:O, s:o, s:o}",
                             "format", PAGE_FORMAT, "version", PAGE_VERSION, "provenance",
                             json_provenance(), "title", in->title, "campaign", in->path,
                             "simulated", f->simulated, "verdict", accept_name[in->accept->verdict],
                             "line", in->line, "against", in->against, "limits", in->limits_name,
                             "checks", in->checks, "machine", machine(f), "tiers", tiers(f));

    json_object_update(data, in->told);
    json_object_set_new(data, "pair_bytes", f->bytes > 0 ? json_bytes(f->bytes) : json_null());
    json_object_set_new(data, "slow_below", json_real(f->limit));
    json_object_set_new(data, "blocks", blocks(f));
    json_object_set_new(data, "hosts", hosts(f));
    json_object_set_new(data, "leaves", names(&f->t->group[LEVEL_LEAF]));
    json_object_set_new(data, "nics", nic_names);
    json_object_set_new(data, "ends", of_ends);
    json_object_set_new(data, "exceptions", exceptions(f));
    json_object_set_new(data, "pairs", pairs(f));
    json_object_set_new(data, "worst", worst(f));
    json_object_set_new(data, "history", history(in->history));
    return data;
}
