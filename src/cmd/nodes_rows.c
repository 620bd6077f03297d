/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/nodes_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/hostlist.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

static void add(struct rows *rows, const struct topo *t, double sec, int segment, const int *host,
                int hosts)
{
    char **name = mem_calloc((size_t)hosts, sizeof(*name));

    for (int i = 0; i < hosts; i++)
        name[i] = t->host[host[i]].name;
    MEM_PUSH(rows->row, rows->count) = (struct row){sec, segment, hostlist_fold(name, hosts)};
    free(name);
}

/* Segments of this size as wide as they may lie; 0 when the racks have no room for them. */
static int add_segment(struct rows *rows, const struct nodes_job *j, const struct rows_ask *a,
                       int segment, struct err *err)
{
    const struct topo *t = &j->matrix.topo;
    const struct placement wide = {.nodes = a->free_nodes, .segment = segment};
    int *order, given, hosts = 0, *host, ranks = a->need * (j->first[1] - j->first[0]);

    if (placement_make(&order, &given, t, &wide, ranks, err) < 0)
        return 0;
    host = mem_calloc((size_t)given + 1, sizeof(*host));
    for (int i = 0; i < given && hosts < a->need; i++) {
        int h = t->endpoint[order[i]].place.at[LEVEL_HOST];
        if (!hosts || host[hosts - 1] != h)
            host[hosts++] = h;
    }
    double sec = nodes_cost(j, host, hosts, err);
    if (!isnan(sec))
        add(rows, t, sec, segment, host, hosts);
    free(host);
    free(order);
    return isnan(sec) ? -1 : 0;
}

int rows_segments(struct rows *rows, const struct nodes_job *j, const struct rows_ask *a,
                  struct err *err)
{
    for (int segment = 1; segment <= a->need; segment++)
        if (a->need % segment == 0 && add_segment(rows, j, a, segment, err) < 0)
            return -1;
    rows->exact = true;
    return rows->count ? 0 : -1; /* err is of the last one */
}

int rows_sets(struct rows *rows, const struct nodes_job *j, const struct rows_ask *a,
              const int *host, int hosts, struct err *err)
{
    struct nodes_best b;
    int rc = nodes_best(&b, j, host, hosts, a->need, a->best ? a->best : 1, err);

    for (int i = 0; rc == 0 && i < b.count; i++)
        add(rows, &j->matrix.topo, b.sec[i], 0, b.host + (size_t)i * (size_t)a->need, a->need);
    rows->exact = b.exact;
    rows->priced = b.priced;
    nodes_best_free(&b);
    return rc;
}

int rows_price(struct rows *rows, const struct nodes_job *j, const int *host, int hosts,
               struct err *err)
{
    double sec = nodes_cost(j, host, hosts, err);

    if (isnan(sec))
        return -1;
    if (isinf(sec))
        log_warn("%s", err->text);
    rows->exact = true;
    rows->priced = 1;
    add(rows, &j->matrix.topo, sec, 0, host, hosts);
    return 0;
}

json_t *rows_json(const struct rows *rows, const char *job)
{
    json_t *sets = json_array();

    for (int i = 0; i < rows->count; i++) {
        const struct row *r = &rows->row[i];
        json_t *set = json_pack("{s:o, s:s}", "seconds", json_finite(r->sec), "nodes", r->nodes);
        if (r->segment)
            json_object_set_new(set, "segment", json_integer(r->segment));
        json_array_append_new(sets, set);
    }
    json_t *out = json_pack("{s:s, s:o, s:b}", "job", job, "sets", sets, "exact", rows->exact);
    if (rows->priced)
        json_object_set_new(out, "priced", json_integer(rows->priced));
    return out;
}

void rows_table(FILE *out, const struct rows *rows, bool segments)
{
    fputs(segments ? "seconds\tsegment\tnodes\n" : "seconds\tnodes\n", out);
    for (int i = 0; i < rows->count; i++) {
        const struct row *r = &rows->row[i];
        if (segments)
            fprintf(out, "%.9g\t%d\t%s\n", r->sec, r->segment, r->nodes);
        else
            fprintf(out, "%.9g\t%s\n", r->sec, r->nodes);
    }
}

void rows_free(struct rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        free(rows->row[i].nodes);
    free(rows->row);
}
