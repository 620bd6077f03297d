/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_read.c - contents of the files of a preset and of its GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/fabrics/fabric.h"

enum {
    VERSION = 1, /* version of a GPU's file */
    POINTS_MAX = 256,
    WHERE = 320
}; /* characters of a place such as "m.json: tiers[2].alpha_s" */

struct fabric_reader {
    const char *path;
    json_t *sources; /* short name to text */
    struct err *err;
};

static int find_kind(const char *name)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (!strcmp(fabric_kind_name[i], name))
            return i;
    return -1;
}

/* Look up the kind called `name`, and the source of `key` with the note (or NULL) in brackets. */
static int read_cite(const struct fabric_reader *r, enum fabric_kind *kind, char **source,
                     const char *at, const char *name, const char *key, const char *note)
{
    const char *text = json_string_value(json_object_get(r->sources, key));

    if (find_kind(name) < 0)
        return err_data(r->err, "%s: kind \"%s\" is not measured, stated, spec or inferred", at,
                        name);
    if (!text)
        return err_data(r->err, "%s: source \"%s\" is not in \"sources\"", at, key);
    *kind = find_kind(name);
    *source = note ? mem_printf("%s (%s)", text, note) : mem_strdup(text);
    return 0;
}

/* {"value": 5e-6, "kind": "spec", "source": "data-sheet", "note": "18 links x 50 GB/s"} */
static int read_number(const struct fabric_reader *r, struct fabric_number *n, json_t *from,
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
    return read_cite(r, &n->kind, &n->source, at, kind, source, note);
}

static int read_int(const struct fabric_reader *r, json_t *object, const char *where,
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

static int read_peak(const struct fabric_reader *r, struct fabric_gpu *g, json_t *from,
                     const char *where)
{
    const char *dtype;
    json_t *flops;

    if (json_take(from, where, r->err, "{s:s, s:o}", "dtype", &dtype, "flops", &flops) < 0)
        return -1;
    if (strlen(dtype) >= sizeof(g->peak->dtype))
        return err_data(r->err, "%s: dtype \"%s\" is too long", where, dtype);
    MEM_PUSH(g->peak, g->peaks) = (__typeof__(*g->peak)){0};
    memcpy(g->peak[g->peaks - 1].dtype, dtype, strlen(dtype));
    return read_number(r, &g->peak[g->peaks - 1].flops, flops, where, "flops");
}

static int read_gpu(const struct fabric_reader *r, struct fabric_gpu *g, json_t *from)
{
    json_t *memory, *hbm, *peaks, *link = NULL, *power = NULL;
    const char *name, *generation = NULL;
    char where[WHERE];
    int untested = 0;

    snprintf(where, sizeof(where), "%s: gpu", r->path);
    if (json_take(from, where, r->err, "{s:s, s?s, s?b, s:o, s:o, s?o, s?o, s:o}", "name", &name,
                  "generation", &generation, "untested", &untested, "memory_bytes", &memory,
                  "hbm_Bps", &hbm, "power_W", &power, "nvlink_Bps", &link, "peaks", &peaks) < 0)
        return -1;
    g->name = mem_strdup(name);
    g->generation = generation ? mem_strdup(generation) : NULL;
    g->untested = untested;
    if (read_number(r, &g->memory_bytes, memory, where, "memory_bytes") < 0 ||
        read_number(r, &g->hbm_Bps, hbm, where, "hbm_Bps") < 0 ||
        (power && read_number(r, &g->power_W, power, where, "power_W") < 0) ||
        (link && read_number(r, &g->nvlink_Bps, link, where, "nvlink_Bps") < 0))
        return -1;
    for (size_t i = 0; i < json_array_size(peaks); i++) {
        snprintf(where, sizeof(where), "%s: gpu.peaks[%zu]", r->path, i);
        if (read_peak(r, g, json_array_get(peaks, i), where) < 0)
            return -1;
    }
    return g->peaks ? 0 : err_data(r->err, "%s: gpu.peaks is empty", r->path);
}

/* Read a GPU given in place or by the name of a file in topo/gpus: {"format": "railgauge-gpu",
 * "sources": {...}, "gpu": {...}}. */
static int find_gpu(const struct fabric_reader *r, struct fabric_gpu *g, json_t *from)
{
    const char *name = json_string_value(from), *format;
    char *path = name ? file_data_named("topo/gpus", name) : NULL;
    struct fabric_reader of = {path, NULL, r->err};
    json_t *root = NULL, *gpu;
    int version, rc;

    if (!name)
        return read_gpu(r, g, from);
    if (!path)
        return err_data(r->err, "%s: gpu \"%s\" is not a file of topo/gpus", r->path, name);
    rc = json_open(&root, path, "railgauge-gpu", VERSION, r->err);
    if (rc == 0)
        rc = json_take(root, path, r->err, "{s:s, s:i, s:o, s:o}", "format", &format, "version",
                       &version, "sources", &of.sources, "gpu", &gpu);
    if (rc == 0)
        rc = read_gpu(&of, g, gpu);
    json_decref(root);
    free(path);
    return rc;
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
    return read_number(r, &f->nic.Bps, Bps, where, "bandwidth_Bps");
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
        {"hosts_per_spine", 1, 65536, &f->hosts_per_spine}, /* optional */
        {"job_hosts_per_rack", 1, 4096, &f->job_hosts},     /* optional */
    };
    enum { COUNTS = sizeof(counts) / sizeof(*counts), RAIL = COUNTS, SHARE, NOTE, KEYS };
    struct json_key key[KEYS] = {[RAIL] = {"rail_optimised", false, 'b'},
                                 [SHARE].name = "uplink_share",
                                 [NOTE] = {"note", false, 's'}};
    json_t *value[KEYS];
    char where[WHERE];

    snprintf(where, sizeof(where), "%s: layout", r->path);
    for (int i = 0; i < COUNTS; i++)
        key[i] = (struct json_key){
            counts[i].key, counts[i].out == &f->hosts_per_spine || counts[i].out == &f->job_hosts,
            0};
    if (json_take_keys(from, where, key, KEYS, value, r->err) < 0)
        return -1;
    for (int i = 0; i < COUNTS; i++)
        if (value[i] && read_int(r, from, where, counts[i].key, counts[i].min, counts[i].max,
                                 counts[i].out) < 0)
            return -1;
    if (f->job_hosts > f->hosts_per_rack)
        return err_data(r->err, "%s: \"job_hosts_per_rack\" is %d, and a rack has %d", where,
                        f->job_hosts, f->hosts_per_rack);
    f->rail_optimised = json_is_true(value[RAIL]);
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
    return read_number(r, &t->alpha, alpha, where, "alpha_s") < 0 ||
                   read_number(r, &t->Bps, bps, where, "bandwidth_Bps") < 0 ||
                   read_number(r, &t->bi_Bps, bi, where, "bidirectional_Bps") < 0 ||
                   read_number(r, &t->peak, peak, where, "peak_Bps") < 0
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

/* Refuse a tier inside the domain that is faster than all NVLinks of a GPU. */
static int check_links(const struct fabric_reader *r, const struct fabric *f)
{
    double most = f->gpu.nvlink_Bps.value;

    for (int i = 0; f->hosts_per_domain && most > 0 && i < f->tiers; i++)
        if (!f->tier[i].nic && f->tier[i].peak.value > most)
            return err_data(r->err,
                            "%s: tiers[%d].peak_Bps is %g, and all NVLinks of %s carry %g in one "
                            "direction",
                            r->path, i, f->tier[i].peak.value, f->gpu.name, most);
    return 0;
}

/* Read one element of a list of numbers, which must rise (bytes) or be positive (sec). */
static int read_item(const struct fabric_reader *r, json_t *list, size_t i, const char *where,
                     const char *key, double above, double *out)
{
    json_t *item = json_array_get(list, i);
    double x = json_number_value(item);

    if (!json_is_number(item) || !(x > above) || x > 1e18)
        return err_data(r->err, "%s: %s[%zu] is not a number above %g", where, key, i, above);
    *out = x;
    return 0;
}

/* {"kind": ..., "source": ..., "note"?: ..., "bytes": [512, ...], "sec": [5.2e-6, ...]} */
static int read_points(const struct fabric_reader *r, struct fabric_collective *c, json_t *from,
                       const char *where)
{
    const char *kind, *source, *note = NULL;
    json_t *bytes, *sec;
    char at[WHERE + 16];

    snprintf(at, sizeof(at), "%s.points", where);
    if (json_take(from, at, r->err, "{s:s, s:s, s?s, s:o, s:o}", "kind", &kind, "source", &source,
                  "note", &note, "bytes", &bytes, "sec", &sec) < 0 ||
        read_cite(r, &c->points_kind, &c->points_source, at, kind, source, note) < 0)
        return -1;
    size_t n = json_array_size(bytes);
    if (n < 2 || n > POINTS_MAX || json_array_size(sec) != n)
        return err_data(r->err, "%s: %zu bytes and %zu sec where as many, 2..%d, are needed", at, n,
                        json_array_size(sec), POINTS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct fabric_point p;
        double before = c->points ? c->point[c->points - 1].bytes : 0;
        if (read_item(r, bytes, i, at, "bytes", i ? before : 0, &p.bytes) < 0 ||
            read_item(r, sec, i, at, "sec", 0, &p.sec) < 0)
            return -1;
        /* Published points begin above 8 bytes: add the latency as a point at 8 bytes.  Not
         * between domains if it is inferred, because the model knows more there. */
        if (i == 0 && p.bytes > 8 && (c->domains == 1 || c->alpha.kind == KIND_MEASURED))
            MEM_PUSH(c->point, c->points) = (struct fabric_point){8, fmin(c->alpha.value, p.sec)};
        MEM_PUSH(c->point, c->points) = p;
    }
    return 0;
}

/* Read ranks and domains; the ranks must divide evenly into domains. */
static int read_group(const struct fabric_reader *r, json_t *from, const char *where, int *ranks,
                      int *domains)
{
    if (read_int(r, from, where, "ranks", 2, 1 << 20, ranks) < 0 ||
        read_int(r, from, where, "domains", 1, *ranks, domains) < 0)
        return -1;
    if (*ranks % *domains)
        return err_data(r->err, "%s: %d ranks do not divide into %d domains", where, *ranks,
                        *domains);
    return 0;
}

static int read_collective(const struct fabric_reader *r, struct fabric *f, json_t *c,
                           const char *where)
{
    struct fabric_collective *to = &MEM_PUSH(f->collective, f->collectives);
    json_t *ranks, *domains, *alpha, *busbw, *points = NULL;
    const char *op;

    *to = (struct fabric_collective){0};
    if (json_take(c, where, r->err, "{s:s, s:o, s:o, s:o, s:o, s?o}", "op", &op, "ranks", &ranks,
                  "domains", &domains, "alpha_s", &alpha, "busbw_Bps", &busbw, "points",
                  &points) < 0 ||
        read_group(r, c, where, &to->ranks, &to->domains) < 0 ||
        read_number(r, &to->alpha, alpha, where, "alpha_s") < 0 ||
        read_number(r, &to->busbw, busbw, where, "busbw_Bps") < 0)
        return -1;
    int o = op_find(op);
    if (o < 0 || op_is_pair(o))
        return err_data(r->err, "%s: op \"%s\" is not a collective", where, op);
    to->op = o;
    return points ? read_points(r, to, points, where) : 0;
}

static int read_kernel(const struct fabric_reader *r, struct fabric *f, json_t *from,
                       const char *where)
{
    struct fabric_ep *to = &MEM_PUSH(f->ep, f->eps);
    json_t *ranks, *domains, *alpha, *dispatch, *combine;
    const char *kernel;

    *to = (struct fabric_ep){0};
    if (json_take(from, where, r->err, "{s:s, s:o, s:o, s:o, s:o, s:o}", "kernel", &kernel, "ranks",
                  &ranks, "domains", &domains, "alpha_s", &alpha, "dispatch_Bps", &dispatch,
                  "combine_Bps", &combine) < 0)
        return -1;
    to->kernel = mem_strdup(kernel);
    return read_group(r, from, where, &to->ranks, &to->domains) < 0 ||
                   read_number(r, &to->alpha, alpha, where, "alpha_s") < 0 ||
                   read_number(r, &to->Bps[0], dispatch, where, "dispatch_Bps") < 0 ||
                   read_number(r, &to->Bps[1], combine, where, "combine_Bps") < 0
               ? -1
               : 0;
}

static int read_list(const struct fabric_reader *r, struct fabric *f, json_t *from, const char *key,
                     int (*read)(const struct fabric_reader *r, struct fabric *f, json_t *from,
                                 const char *where))
{
    char where[WHERE];

    if (!json_is_array(from))
        return err_data(r->err, "%s: \"%s\" is not a list", r->path, key);
    for (size_t i = 0; i < json_array_size(from); i++) {
        snprintf(where, sizeof(where), "%s: %s[%zu]", r->path, key, i);
        if (read(r, f, json_array_get(from, i), where) < 0)
            return -1;
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
    return find_gpu(&r, &f->gpu, gpu) < 0 || read_nic(&r, f, nic) < 0 ||
                   read_layout(&r, f, layout) < 0 || read_tiers(&r, f, tiers) < 0 ||
                   check_links(&r, f) < 0 ||
                   read_list(&r, f, collectives, "collectives", read_collective) < 0 ||
                   (ep && read_list(&r, f, ep, "ep_kernels", read_kernel) < 0)
               ? -1
               : 0;
}

/* --- shipped presets --- */

void fabric_each(name_taker *take, void *to)
{
    file_data_each("topo/fabrics", take, to);
}

bool fabric_shipped(const char *name)
{
    char *relative = mem_printf("topo/fabrics/%s.json", name), *path = file_data(relative);
    bool found = path && !strchr(name, '/') && access(path, R_OK) == 0;

    free(relative);
    free(path);
    return found;
}
