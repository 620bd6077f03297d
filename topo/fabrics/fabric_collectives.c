/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "topo/fabrics/fabric_reader.h"

enum { POINTS_MAX = 256 };

/* One value of a list of numbers that must rise (bytes) or be positive (sec). */
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
        fabric_read_cite(r, &c->points_kind, &c->points_source, at, kind, source, note) < 0)
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
        if (i == 0 && p.bytes > 8) /* what was published begins above: latency from 8 bytes on */
            MEM_PUSH(c->point, c->points) = (struct fabric_point){8, fmin(c->alpha.value, p.sec)};
        MEM_PUSH(c->point, c->points) = p;
    }
    return 0;
}

/* Whole groups: ranks that divide into domains. */
static int read_group(const struct fabric_reader *r, json_t *from, const char *where, int *ranks,
                      int *domains)
{
    if (fabric_read_int(r, from, where, "ranks", 2, 1 << 20, ranks) < 0 ||
        fabric_read_int(r, from, where, "domains", 1, *ranks, domains) < 0)
        return -1;
    if (*ranks % *domains)
        return err_data(r->err, "%s: %d ranks do not divide into %d domains", where, *ranks,
                        *domains);
    return 0;
}

static int read_collective(const struct fabric_reader *r, struct fabric_collective *to, json_t *c,
                           const char *where)
{
    json_t *ranks, *domains, *alpha, *busbw, *points = NULL;
    const char *op;

    if (json_take(c, where, r->err, "{s:s, s:o, s:o, s:o, s:o, s?o}", "op", &op, "ranks", &ranks,
                  "domains", &domains, "alpha_s", &alpha, "busbw_Bps", &busbw, "points",
                  &points) < 0 ||
        read_group(r, c, where, &to->ranks, &to->domains) < 0 ||
        fabric_read_number(r, &to->alpha, alpha, where, "alpha_s") < 0 ||
        fabric_read_number(r, &to->busbw, busbw, where, "busbw_Bps") < 0)
        return -1;
    int o = op_find(op);
    if (o < 0 || op_is_pair(o))
        return err_data(r->err, "%s: op \"%s\" is not a collective", where, op);
    to->op = o;
    return points ? read_points(r, to, points, where) : 0;
}

int fabric_read_collectives(const struct fabric_reader *r, struct fabric *f, json_t *from)
{
    char where[WHERE];

    if (!json_is_array(from))
        return err_data(r->err, "%s: \"collectives\" is not a list", r->path);
    for (size_t i = 0; i < json_array_size(from); i++) {
        snprintf(where, sizeof(where), "%s: collectives[%zu]", r->path, i);
        MEM_PUSH(f->collective, f->collectives) = (struct fabric_collective){0};
        if (read_collective(r, &f->collective[i], json_array_get(from, i), where) < 0)
            return -1;
    }
    return 0;
}

static int read_kernel(const struct fabric_reader *r, struct fabric_ep *to, json_t *from,
                       const char *where)
{
    json_t *ranks, *domains, *alpha, *dispatch, *combine;
    const char *kernel;

    if (json_take(from, where, r->err, "{s:s, s:o, s:o, s:o, s:o, s:o}", "kernel", &kernel, "ranks",
                  &ranks, "domains", &domains, "alpha_s", &alpha, "dispatch_Bps", &dispatch,
                  "combine_Bps", &combine) < 0)
        return -1;
    to->kernel = mem_strdup(kernel);
    return read_group(r, from, where, &to->ranks, &to->domains) < 0 ||
                   fabric_read_number(r, &to->alpha, alpha, where, "alpha_s") < 0 ||
                   fabric_read_number(r, &to->Bps[0], dispatch, where, "dispatch_Bps") < 0 ||
                   fabric_read_number(r, &to->Bps[1], combine, where, "combine_Bps") < 0
               ? -1
               : 0;
}

int fabric_read_ep(const struct fabric_reader *r, struct fabric *f, json_t *from)
{
    char where[WHERE];

    if (!json_is_array(from))
        return err_data(r->err, "%s: \"ep_kernels\" is not a list", r->path);
    for (size_t i = 0; i < json_array_size(from); i++) {
        snprintf(where, sizeof(where), "%s: ep_kernels[%zu]", r->path, i);
        MEM_PUSH(f->ep, f->eps) = (struct fabric_ep){0};
        if (read_kernel(r, &f->ep[i], json_array_get(from, i), where) < 0)
            return -1;
    }
    return 0;
}
