/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_xml.c - the machine as an hwloc 2 topology (XML version 2.0, which 2.x and 3.x read;
 * include/hwloc.dtd), with the cost matrix as distances between its PUs.
 *
 * hwloc has no machines of several hosts.  Therefore a host is a Package (info "HostName"), a rack
 * a Group (subtype "Rack"), and a node of the export a PU with the info "Name".  Distances
 * "RailgaugeBandwidth" (kind 10, user and bandwidth, MB/s) and "RailgaugeLatency" (kind 6, user and
 * latency, ns) are whole numbers; the diagonal is the largest bandwidth and 0 ns. The second file
 * is one of them as text for `hwloc-annotate FILE OUT root distances TEXT`: name=, kind, number of
 * objects, objects, values. */
#include "export/export_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/units.h"
#include "export/pair_cost.h"

enum { HWLOC_XML_MAX = 1024 };

/* Kinds of hwloc/distances.h: 2 from the user, plus 4 latency or 8 bandwidth. */
static const struct {
    const char *name;
    int kind;
    enum foreign unit;
} table[] = {[QUANTITY_BANDWIDTH] = {"RailgaugeBandwidth", 10, FOREIGN_HWLOC_BANDWIDTH},
             [QUANTITY_LATENCY] = {"RailgaugeLatency", 6, FOREIGN_HWLOC_LATENCY}};

struct hwloc_draw {
    FILE *f;
    const struct matrix *m;
    struct export_nodes nodes;
    int *order;                    /* PU -> index into nodes, sorted by rack, host and rank */
    bool racks;                    /* the rack of every node is known */
    int objects;                   /* objects so far, for gp_index */
    double *value[QUANTITY_COUNT]; /* [row * count + column]; PUs */
};

static const int *place(const struct hwloc_draw *d, int pu)
{
    return d->m->topo.endpoint[d->nodes.id[d->order[pu]]].place.at;
}

static void put_in_order(struct hwloc_draw *d)
{
    static const enum level level[] = {LEVEL_RACK, LEVEL_HOST};

    d->racks = true;
    for (int i = 0; i < d->nodes.count; i++)
        d->racks &= d->m->topo.endpoint[d->nodes.id[i]].place.at[LEVEL_RACK] >= 0;
    d->order = export_nodes_order(&d->nodes, &d->m->topo, level + !d->racks, 1 + d->racks);
}

/* --- numbers --- */

static int ask_pair(struct hwloc_draw *d, const struct pair_cost *q, int row, int column, double *v,
                    struct err *err)
{
    int a = d->order[row], b = d->order[column];

    *v = pair_cost_of(q, d->nodes.id[a], d->nodes.id[b]);
    if (pair_cost_known(q, *v, d->nodes.id[a], d->nodes.id[b], err) < 0)
        return -1;
    if (isinf(*v))
        return err_data(err, "%s does not reach %s: a distance is a whole number", d->nodes.name[a],
                        d->nodes.name[b]);
    *v = round(units_out(table[q->quantity].unit, *v));
    return 0;
}

static int read_values(struct hwloc_draw *d, enum quantity quantity, double bytes, struct err *err)
{
    int n = d->nodes.count, rc = 0;
    double *v = d->value[quantity] = mem_calloc((size_t)n * (size_t)n, sizeof(double)), most = 0;
    struct pair_cost q;

    pair_cost_init(&q, d->m, quantity, bytes);
    for (int i = 0; i < n && rc == 0; i++)
        for (int k = 0; k < n && rc == 0; k++)
            if (i != k) {
                rc = ask_pair(d, &q, i, k, &v[i * n + k], err);
                most = fmax(most, v[i * n + k]);
            }
    for (int i = 0; i < n && quantity == QUANTITY_BANDWIDTH; i++)
        v[i * n + i] = most;
    pair_cost_free(&q);
    return rc;
}

/* --- objects --- */

/* Write PUs from .. to - 1 in hwloc's format of sets: words of 32 bits, the highest first. */
static void put_set(FILE *f, const char *name, int from, int to)
{
    fprintf(f, " %s=\"", name);
    for (int w = (to - 1) / 32; w >= 0; w--) {
        unsigned bits = 0;
        for (int b = 0; b < 32; b++)
            if (w * 32 + b >= from && w * 32 + b < to)
                bits |= 1u << b;
        fprintf(f, "%s0x%08x", w == (to - 1) / 32 ? "" : ",", bits);
    }
    fputc('"', f);
}

static void put_object(struct hwloc_draw *d, const char *type, int os_index, int from, int to)
{
    fprintf(d->f, "<object type=\"%s\"", type);
    if (os_index >= 0)
        fprintf(d->f, " os_index=\"%d\"", os_index);
    put_set(d->f, "cpuset", from, to);
    put_set(d->f, "complete_cpuset", from, to);
    put_set(d->f, "nodeset", 0, 1);
    put_set(d->f, "complete_nodeset", 0, 1);
    fprintf(d->f, " gp_index=\"%d\"", ++d->objects);
}

static void put_info(struct hwloc_draw *d, const char *name, const char *value)
{
    char *text = export_xml(value);

    fprintf(d->f, "<info name=\"%s\" value=\"%s\"/>\n", name, text);
    free(text);
}

/* First PU after pu with a different coordinate at this level. */
static int run_end(const struct hwloc_draw *d, int pu, enum level level)
{
    int end = pu + 1;

    while (end < d->nodes.count && place(d, end)[level] == place(d, pu)[level])
        end++;
    return end;
}

static void put_hosts(struct hwloc_draw *d, int from, int to)
{
    for (int a = from, b; a < to; a = b) {
        int host = place(d, a)[LEVEL_HOST];
        b = run_end(d, a, LEVEL_HOST);
        put_object(d, "Package", host, a, b);
        fputs(">\n", d->f);
        put_info(d, "HostName", d->m->topo.host[host].name);
        for (int pu = a; pu < b; pu++) {
            put_object(d, "PU", pu, pu, pu + 1);
            fputs(">\n", d->f);
            put_info(d, "Name", d->nodes.name[d->order[pu]]);
            fputs("</object>\n", d->f);
        }
        fputs("</object>\n", d->f);
    }
}

static void put_racks(struct hwloc_draw *d)
{
    for (int a = 0, b; a < d->nodes.count; a = b) {
        b = run_end(d, a, LEVEL_RACK);
        put_object(d, "Group", -1, a, b);
        fputs(" subtype=\"Rack\" kind=\"0\" subkind=\"0\" dont_merge=\"1\">\n", d->f);
        put_info(d, "Name", d->m->topo.group[LEVEL_RACK].name[place(d, a)[LEVEL_RACK]]);
        put_hosts(d, a, b);
        fputs("</object>\n", d->f);
    }
}

static void put_machine(struct hwloc_draw *d)
{
    int n = d->nodes.count;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n",
          d->f);
    put_object(d, "Machine", 0, 0, n);
    put_set(d->f, "allowed_cpuset", 0, n);
    put_set(d->f, "allowed_nodeset", 0, 1);
    fputs(">\n", d->f);
    put_info(d, "Backend", "railgauge " RG_VERSION);
    put_object(d, "NUMANode", 0, 0, n);
    fputs("/>\n", d->f);
    if (d->racks)
        put_racks(d);
    else
        put_hosts(d, 0, n);
    fputs("</object>\n", d->f);
}

/* --- distances --- */

/* Write whole numbers, each with a space after it, and the number of characters, which the reader
 * needs. */
static void put_numbers(FILE *f, const char *tag, const double *v, int n)
{
    int length = 0;

    for (int i = 0; i < n; i++)
        length += snprintf(NULL, 0, "%.0f ", v[i]);
    fprintf(f, "<%s length=\"%d\">", tag, length);
    for (int i = 0; i < n; i++)
        fprintf(f, "%.0f ", v[i]);
    fprintf(f, "</%s>\n", tag);
}

static void put_distances(struct hwloc_draw *d, enum quantity quantity)
{
    int n = d->nodes.count;
    double *index = mem_calloc((size_t)n, sizeof(*index));

    for (int i = 0; i < n; i++)
        index[i] = i;
    fprintf(d->f,
            "<distances2 type=\"PU\" nbobjs=\"%d\" kind=\"%d\" name=\"%s\" indexing=\"os\">\n", n,
            table[quantity].kind, table[quantity].name);
    put_numbers(d->f, "indexes", index, n);
    for (int i = 0; i < n; i++)
        put_numbers(d->f, "u64values", d->value[quantity] + i * n, n);
    fputs("</distances2>\n", d->f);
    free(index);
}

static void put_annotation(FILE *f, const struct hwloc_draw *d, enum quantity quantity)
{
    int n = d->nodes.count;

    fprintf(f, "name=%s\n%d\n%d\n", table[quantity].name, table[quantity].kind, n);
    for (int i = 0; i < n; i++)
        fprintf(f, "pu:%d\n", i);
    for (int i = 0; i < n * n; i++)
        fprintf(f, "%.0f\n", d->value[quantity][i]);
}

/* EXIT_DATA: pairs that are not known or dead; EXIT_USAGE: too many nodes. */
int hwloc_xml_write(const struct export_run *e, struct err *err)
{
    const struct export_limit limit = {"hwloc", 2, HWLOC_XML_MAX, 14, ':'};
    struct hwloc_draw d = {.f = e->out, .m = e->m};
    enum quantity quantity = export_quantity(e, QUANTITY_BANDWIDTH);

    if (quantity == QUANTITY_TIME)
        return err_usage(err, "hwloc knows bandwidth and latency, not time");
    int rc = export_nodes_choose(&d.nodes, e, &limit, err);
    if (rc == 0) {
        put_in_order(&d);
        rc = read_values(&d, QUANTITY_BANDWIDTH, e->ask->bytes, err);
    }
    if (rc == 0)
        rc = read_values(&d, QUANTITY_LATENCY, e->ask->bytes, err);
    if (rc == 0) {
        put_machine(&d);
        put_distances(&d, QUANTITY_BANDWIDTH);
        put_distances(&d, QUANTITY_LATENCY);
        fputs("</topology>\n", e->out);
        if (e->second)
            put_annotation(e->second, &d, quantity);
    }
    free(d.value[QUANTITY_BANDWIDTH]);
    free(d.value[QUANTITY_LATENCY]);
    free(d.order);
    export_nodes_free(&d.nodes);
    return rc;
}
