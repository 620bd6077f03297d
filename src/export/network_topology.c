/* SPDX-License-Identifier: BSD-3-Clause */
/* network_topology.c - NetworkTopology of the NetworkOverhead plug-in of
 * kubernetes-sigs/scheduler-plugins: the measured cost between blocks of hosts.
 *
 * Fields are those of manifests/networktopology/crd.yaml (v1alpha1: configmapName,
 * weights[].topologyList[].originList[].costList[]); the example beside it has older names that the
 * CRD does not accept.  The plug-in uses two labels only (pkg/networkaware/util): zone inside a
 * region, region between regions.  The second file holds these labels for the nodes and replaces
 * those set by a cloud.  A zone is a block (export/blocks_impl.h); regions are spines if zones lie inside
 * them.
 *
 * networkCost is proportional to the time of moving `bytes` both ways between two hosts of the
 * blocks; the largest is 100 and the smallest 2.  The plug-in uses 1 inside a zone and 100 for
 * unknown pairs (networkoverhead.go: SameZone, MaxCost).  bandwidthCapacity is in bit/s, as usual
 * for Kubernetes.  Unknown pairs are left out.  A result larger than an object of etcd (1.5 MiB) is
 * refused. */
#include "export/export_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "export/blocks_impl.h"

#define ZONE "topology.kubernetes.io/zone"
#define REGION "topology.kubernetes.io/region"

static const double etcd_bytes = 1.5 * 1048576;
/* COST_BYTES: of an entry as JSON, without its name */
enum { COST_MAX = 100, COST_MIN = 2, COST_BYTES = 80 };

struct net_costs {
    const struct matrix *m;
    struct k8s k;
    struct blocks zone;
    const struct k8s_level *in; /* spines used as regions, or NULL */
    int *region;                /* region of each zone; 0 without regions */
    int regions;
    const char **zone_name; /* names as values of labels */
    double *between;        /* [regions][regions], s, median over their zones */
    double bytes, longest;
};

static double *zone_sec(const struct net_costs *n, int a, int b)
{
    return &n->zone.sec[(size_t)a * (size_t)n->zone.count + (size_t)b];
}

/* Names of the blocks as label values, from the level of the blocks. */
static int name_zones(struct net_costs *n, struct err *err)
{
    const struct k8s_level *v = NULL;

    for (int l = 0; l < n->k.levels; l++)
        if (n->k.level[l].level == n->zone.level)
            v = &n->k.level[l];
    n->zone_name = mem_calloc((size_t)n->zone.count + 1, sizeof(*n->zone_name));
    for (int z = 0; z < n->zone.count; z++)
        n->zone_name[z] = v->value[v->of[n->zone.block[z].host[0]]];
    if (n->zone.count < 2)
        return err_set(err, "one %s holds all hosts: there is no cost between zones",
                       level_name[n->zone.level]);
    return 0;
}

/* Use spines as regions if each zone lies inside a single spine. */
static void find_regions(struct net_costs *n)
{
    n->region = mem_calloc((size_t)n->zone.count + 1, sizeof(*n->region));
    n->regions = 1;
    for (int l = 0; l < n->k.levels && n->zone.level != LEVEL_SPINE; l++)
        if (n->k.level[l].level == LEVEL_SPINE)
            n->in = &n->k.level[l];
    for (int z = 0; z < n->zone.count && n->in; z++) {
        const struct block *b = &n->zone.block[z];
        for (int i = 0; i < b->hosts && n->in; i++)
            if (n->in->of[b->host[i]] < 0 || n->in->of[b->host[i]] != n->in->of[b->host[0]])
                n->in = NULL;
    }
    if (!n->in)
        return;
    n->regions = n->in->groups;
    for (int z = 0; z < n->zone.count; z++)
        n->region[z] = n->in->of[n->zone.block[z].host[0]];
}

struct region_zones {
    int *zone, zones;
};

/* Upper median over the known pairs of zones; NAN: none. */
static double usual(const struct net_costs *n, const struct region_zones *a,
                    const struct region_zones *b)
{
    double *sec = mem_calloc((size_t)a->zones * (size_t)b->zones + 1, sizeof(*sec)), median = NAN;
    int count = 0;

    for (int x = 0; x < a->zones; x++)
        for (int y = 0; y < b->zones; y++)
            if (isfinite(*zone_sec(n, a->zone[x], b->zone[y])))
                sec[count++] = *zone_sec(n, a->zone[x], b->zone[y]);
    stats_sort(sec, count);
    if (count)
        median = sec[count / 2];
    free(sec);
    return median;
}

static void find_between(struct net_costs *n)
{
    size_t regions = (size_t)n->regions;
    struct region_zones *of = mem_calloc(regions + 1, sizeof(*of));

    n->between = mem_calloc(regions * regions + 1, sizeof(*n->between));
    for (int z = 0; z < n->zone.count; z++) {
        struct region_zones *r = &of[n->region[z]];
        MEM_PUSH(r->zone, r->zones) = z;
    }
    for (size_t a = 0; a < regions; a++)
        for (size_t b = 0; b < regions; b++)
            if (a != b)
                n->between[a * regions + b] = usual(n, &of[a], &of[b]);
    for (size_t a = 0; a < regions; a++)
        free(of[a].zone);
    free(of);
}

static int scale(struct net_costs *n, struct err *err)
{
    for (int a = 0; a < n->zone.count; a++)
        for (int b = 0; b < n->zone.count; b++)
            if (a != b && isfinite(*zone_sec(n, a, b)))
                n->longest = fmax(n->longest, *zone_sec(n, a, b));
    if (n->longest > 0)
        return 0;
    return err_set(err, "no time between two zones is known, each a %s", level_name[n->zone.level]);
}

static void put_cost(FILE *out, const struct net_costs *n, const char *to, double sec)
{
    long cost = lround(COST_MAX * sec / n->longest);

    export_yaml(out, "          - destination: ", to, "\n");
    fprintf(out, "            bandwidthCapacity: %.0fM\n            networkCost: %ld\n",
            8 * n->bytes / sec / 1e6, cost > COST_MIN ? cost : COST_MIN);
}

/* Time between zones of one region, or between regions; NAN: no cost is written. */
static double seconds(const struct net_costs *n, bool regions, int a, int b)
{
    double sec =
        regions ? n->between[(size_t)a * (size_t)n->regions + (size_t)b] : *zone_sec(n, a, b);
    bool apart = a != b && (regions || n->region[a] == n->region[b]);

    return apart && isfinite(sec) ? sec : NAN;
}

/* Write a key and an origin only if there is a cost, because an empty list would be null. */
static void put_list(FILE *out, const struct net_costs *n, bool regions)
{
    int count = regions ? n->regions : n->zone.count;
    const char *const *name = regions ? (const char *const *)n->in->value : n->zone_name;
    bool key = false;

    for (int a = 0; a < count; a++) {
        bool origin = false;
        for (int b = 0; b < count; b++) {
            double sec = seconds(n, regions, a, b);
            if (isnan(sec))
                continue;
            if (!key)
                fprintf(out, "    - topologyKey: %s\n      originList:\n", regions ? REGION : ZONE);
            if (!origin)
                export_yaml(out, "      - origin: ", name[a], "\n        costList:\n");
            key = origin = true;
            put_cost(out, n, name[b], sec);
        }
    }
}

static int check_size(const struct net_costs *n, struct err *err)
{
    double bytes = (double)n->regions * n->regions * COST_BYTES, costs = 0;

    for (int a = 0; a < n->zone.count; a++)
        for (int b = 0; b < n->zone.count; b++)
            if (a != b && n->region[a] == n->region[b]) {
                bytes += COST_BYTES + (double)strlen(n->zone_name[b]);
                costs++;
            }
    if (bytes <= etcd_bytes)
        return 0;
    return err_data(err,
                    "%.0f costs between %d zones make an object of about %.1f MiB: etcd takes "
                    "1.5 MiB",
                    costs, n->zone.count, bytes / 1048576);
}

/* Write the labels that the plug-in uses. */
static void put_labels(FILE *out, const struct net_costs *n)
{
    k8s_comment(out, &n->k,
                "kubectl apply --server-side --force-conflicts --field-manager=railgauge -f THIS "
                "(replaces zones and regions of a cloud)");
    k8s_list_begin(out);
    for (int h = 0; h < n->m->topo.hosts; h++) {
        int z = n->zone.of[h];
        struct k8s_label label[2] = {{ZONE, z < 0 ? NULL : n->zone_name[z]},
                                     {REGION, z < 0 || !n->in ? NULL : n->in->value[n->region[z]]}};
        if (z >= 0)
            k8s_list_node(out, n->k.node[h], label, n->in ? 2 : 1);
    }
}

static int make(struct net_costs *n, const struct export_run *e, struct err *err)
{
    if (k8s_make(&n->k, &n->m->topo, NULL, err) < 0 ||
        blocks_make(&n->zone, n->m, -1, n->bytes, err) < 0 || name_zones(n, err) < 0 ||
        export_complete(e, n->zone.of, "their zone is not known", err) < 0)
        return -1;
    find_regions(n);
    if (scale(n, err) < 0 || check_size(n, err) < 0)
        return -1;
    find_between(n);
    return 0;
}

static void put_costs(FILE *out, const struct net_costs *n, const char *name)
{
    fprintf(out,
            "# for the NetworkOverhead plug-in; a zone is a %s, nodes need the labels of --second\n"
            "apiVersion: networktopology.diktyo.x-k8s.io/v1alpha1\nkind: NetworkTopology\n",
            level_name[n->zone.level]);
    export_yaml(out, "metadata:\n  name: ", name, "\n  namespace: default\nspec:\n");
    export_yaml(out, "  configmapName: ", name,
                "\n  weights:\n  - name: UserDefined\n    topologyList:\n");
    if (n->in)
        put_list(out, n, true);
    put_list(out, n, false);
}

int network_topology_write(const struct export_run *e, struct err *err)
{
    struct net_costs n = {.m = e->m, .bytes = export_bytes(e), .k.t = &e->m->topo};
    const char *name;
    int rc = -1;

    if (k8s_object_name(&name, e->ask->name, err) == 0 && make(&n, e, err) == 0) {
        put_costs(e->out, &n, name);
        if (e->second)
            put_labels(e->second, &n);
        rc = 0;
    }
    free(n.region);
    free(n.zone_name);
    free(n.between);
    blocks_free(&n.zone);
    k8s_free(&n.k);
    return rc;
}
