/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "topo/fabrics/fabric_reader.h"

int fabric_read_cite(const struct fabric_reader *r, enum kind *kind, char **source, const char *at,
                     const char *name, const char *key, const char *note)
{
    const char *text = json_string_value(json_object_get(r->sources, key));

    if (kind_find(name) < 0)
        return err_data(r->err, "%s: kind \"%s\" is not measured, stated, spec or inferred", at,
                        name);
    if (!text)
        return err_data(r->err, "%s: source \"%s\" is not in \"sources\"", at, key);
    *kind = kind_find(name);
    *source = note ? mem_printf("%s (%s)", text, note) : mem_strdup(text);
    return 0;
}

/* {"value": 5e-6, "kind": "spec", "source": "data-sheet", "note": "18 links x 50 GB/s"} */
int fabric_read_number(const struct fabric_reader *r, struct number *n, json_t *from,
                       const char *where, const char *key)
{
    const char *kind, *source, *note = NULL;
    char at[WHERE];
    json_t *value;

    snprintf(at, sizeof(at), "%s.%s", where, key);
    if (json_take(from, at, r->err, "{s:o, s:s, s:s, s?s}", "value", &value, "kind", &kind,
                  "source", &source, "note", &note) < 0 ||
        json_number(from, at, "value", 1e-12, 1e30, 0, &n->value, r->err) < 0)
        return -1;
    return fabric_read_cite(r, &n->kind, &n->source, at, kind, source, note);
}

int fabric_read_int(const struct fabric_reader *r, json_t *object, const char *where,
                    const char *key, int min, int max, int *out)
{
    double x;

    if (json_number(object, where, key, min, max, 0, &x, r->err) < 0)
        return -1;
    if (!json_is_integer(json_object_get(object, key)))
        return err_data(r->err, "%s: \"%s\" is %g, not a whole number", where, key, x);
    *out = (int)x;
    return 0;
}

static int read_gpu(const struct fabric_reader *r, struct fabric_gpu *g, json_t *from)
{
    json_t *memory, *hbm, *peaks, *flops;
    const char *name, *dtype, *generation = NULL;
    char where[WHERE];

    snprintf(where, sizeof(where), "%s: gpu", r->path);
    if (json_take(from, where, r->err, "{s:s, s?s, s:o, s:o, s:o}", "name", &name, "generation",
                  &generation, "memory_bytes", &memory, "hbm_Bps", &hbm, "peaks", &peaks) < 0)
        return -1;
    g->name = mem_strdup(name);
    g->generation = generation ? mem_strdup(generation) : NULL;
    if (fabric_read_number(r, &g->memory_bytes, memory, where, "memory_bytes") < 0 ||
        fabric_read_number(r, &g->hbm_Bps, hbm, where, "hbm_Bps") < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(peaks); i++) {
        snprintf(where, sizeof(where), "%s: gpu.peaks[%zu]", r->path, i);
        if (json_take(json_array_get(peaks, i), where, r->err, "{s:s, s:o}", "dtype", &dtype,
                      "flops", &flops) < 0)
            return -1;
        if (strlen(dtype) >= sizeof(g->peak->dtype))
            return err_data(r->err, "%s: dtype \"%s\" is too long", where, dtype);
        MEM_PUSH(g->peak, g->peaks) = (__typeof__(*g->peak)){0};
        strncpy(g->peak[i].dtype, dtype, sizeof(g->peak[i].dtype) - 1);
        if (fabric_read_number(r, &g->peak[i].flops, flops, where, "flops") < 0)
            return -1;
    }
    return g->peaks ? 0 : err_data(r->err, "%s: gpu.peaks is empty", r->path);
}

static int read_nic(const struct fabric_reader *r, struct fabric *f, json_t *from)
{
    const char *name, *layer;
    char where[WHERE];
    json_t *Bps;
    int rdma;

    snprintf(where, sizeof(where), "%s: nic", r->path);
    if (json_take(from, where, r->err, "{s:s, s:s, s:b, s:o}", "name", &name, "link_layer", &layer,
                  "rdma", &rdma, "bandwidth_Bps", &Bps) < 0)
        return -1;
    f->nic.layer = !strcmp(layer, "infiniband") ? LINK_INFINIBAND
                   : !strcmp(layer, "ethernet") ? LINK_ETHERNET
                                                : LINK_UNKNOWN;
    if (f->nic.layer == LINK_UNKNOWN)
        return err_data(r->err, "%s: link_layer \"%s\" is not infiniband or ethernet", where,
                        layer);
    f->nic.name = mem_strdup(name);
    f->nic.rdma = rdma;
    return fabric_read_number(r, &f->nic.Bps, Bps, where, "bandwidth_Bps");
}

static int read_layout(const struct fabric_reader *r, struct fabric *f, json_t *from)
{
    const struct {
        const char *key;
        int min, max, *out;
    } counts[] = {
        {"gpus_per_host", 1, 64, &f->gpus_per_host},
        {"nics_per_host", 1, 64, &f->nics_per_host},
        {"hosts_per_domain", 0, 4096, &f->hosts_per_domain},
        {"hosts_per_rack", 1, 4096, &f->hosts_per_rack},
        {"hosts_per_leaf", 0, 65536, &f->hosts_per_leaf},
        {"default_racks", 1, 4096, &f->default_racks},
        {"hosts_per_spine", 1, 65536, &f->hosts_per_spine}, /* the one that may be missing */
    };
    enum { COUNTS = sizeof(counts) / sizeof(*counts) };
    json_t *value[COUNTS] = {NULL}, *share;
    char where[WHERE];
    const char *note;
    int rail;

    snprintf(where, sizeof(where), "%s: layout", r->path);
    if (json_take(from, where, r->err, "{s:o, s:o, s:o, s:o, s:o, s:o, s?o, s:b, s:o, s:s}",
                  counts[0].key, &value[0], counts[1].key, &value[1], counts[2].key, &value[2],
                  counts[3].key, &value[3], counts[4].key, &value[4], counts[5].key, &value[5],
                  counts[6].key, &value[6], "rail_optimised", &rail, "uplink_share", &share, "note",
                  &note) < 0)
        return -1;
    for (int i = 0; i < COUNTS; i++)
        if (value[i] && fabric_read_int(r, from, where, counts[i].key, counts[i].min, counts[i].max,
                                        counts[i].out) < 0)
            return -1;
    f->rail_optimised = rail;
    return json_number(from, where, "uplink_share", 1e-3, 1, 0, &f->uplink_share, r->err);
}

static int read_tier(const struct fabric_reader *r, struct fabric_tier *t, json_t *from,
                     const char *where)
{
    json_t *same, *alpha, *bps, *bi, *peak;
    const char *name;
    int nic;

    if (json_take(from, where, r->err, "{s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "name", &name, "same",
                  &same, "nic", &nic, "alpha_s", &alpha, "bandwidth_Bps", &bps, "bidirectional_Bps",
                  &bi, "peak_Bps", &peak) < 0 ||
        topo_same_read(&t->rule.same, same, where, r->err) < 0)
        return -1;
    if (!*name || strlen(name) >= sizeof(t->rule.name))
        return err_data(r->err, "%s: name \"%s\" has not 1..%zu characters", where, name,
                        sizeof(t->rule.name) - 1);
    strncpy(t->rule.name, name, sizeof(t->rule.name) - 1);
    t->nic = nic;
    return fabric_read_number(r, &t->alpha, alpha, where, "alpha_s") < 0 ||
                   fabric_read_number(r, &t->Bps, bps, where, "bandwidth_Bps") < 0 ||
                   fabric_read_number(r, &t->bi_Bps, bi, where, "bidirectional_Bps") < 0 ||
                   fabric_read_number(r, &t->peak, peak, where, "peak_Bps") < 0
               ? -1
               : 0;
}

static int read_tiers(const struct fabric_reader *r, struct fabric *f, json_t *from)
{
    size_t n = json_array_size(from);
    char where[WHERE];

    if (!n || n > TIER_MAX)
        return err_data(r->err, "%s: tiers: %zu of them where 1..%d are possible", r->path, n,
                        TIER_MAX);
    for (size_t i = 0; i < n; i++) {
        snprintf(where, sizeof(where), "%s: tiers[%zu]", r->path, i);
        MEM_PUSH(f->tier, f->tiers) = (struct fabric_tier){0};
        struct tier_rule *rule = &f->tier[i].rule;
        if (read_tier(r, &f->tier[i], json_array_get(from, i), where) < 0)
            return -1;
        if ((rule->same == 0) != (i == n - 1))
            return err_data(r->err, "%s: \"same\" must be empty in the last tier and only there",
                            where);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(f->tier[k].rule.name, rule->name))
                return err_data(r->err, "%s: a second tier \"%s\"", where, rule->name);
    }
    return 0;
}

int fabric_read(struct fabric *f, json_t *root, const char *path, struct err *err)
{
    json_t *gpu, *nic, *layout, *tiers, *collectives, *ep = NULL, *format, *version;
    const char *name, *title;
    struct fabric_reader r = {path, NULL, err};

    if (json_take(root, r.path, r.err, "{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s?o}",
                  "format", &format, "version", &version, "name", &name, "title", &title, "sources",
                  &r.sources, "gpu", &gpu, "nic", &nic, "layout", &layout, "tiers", &tiers,
                  "collectives", &collectives, "ep_kernels", &ep) < 0)
        return -1;
    f->name = mem_strdup(name);
    f->title = mem_strdup(title);
    return read_gpu(&r, &f->gpu, gpu) < 0 || read_nic(&r, f, nic) < 0 ||
                   read_layout(&r, f, layout) < 0 || read_tiers(&r, f, tiers) < 0 ||
                   fabric_read_collectives(&r, f, collectives) < 0 ||
                   (ep && fabric_read_ep(&r, f, ep) < 0)
               ? -1
               : 0;
}
