/* SPDX-License-Identifier: BSD-3-Clause */
/* Random subnets: units of hosts with rails, hosts that lack adapters, storage hosts, one to five
 * tiers of switches.  What is read of them groups the hosts as they are cabled, at every tier, and
 * exports hold every host.  A failure prints its seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/stats.h"
#include "export/export.h"
#include "test.h"
#include "topo/groups.h"
#include "topo/lint/lint.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "topo/sources/net/ibnet.h"
#include "topo/sources/sched/slurm.h"
#include "topo/sources/sources.h"

enum { SEEDS = 60, TIERS = 5, HOSTS = 400, RECORDS = 1 << 14 };

/* What is built: the truth. */
struct subnet_plan {
    unsigned seed;
    struct rng rng;
    int rails, tiers, fan[TIERS]; /* groups of the tier below in one of a tier; fan[0]: units */
    int units, hosts;
    struct {
        char name[24];
        int unit, hcas, rail[8];
    } host[HOSTS];
};

static int below(struct subnet_plan *p, int n)
{
    return (int)rng_below(&p->rng, (unsigned)n);
}

static void add_host(struct subnet_plan *p, int unit, bool storage)
{
    int h = p->hosts++, rail[8];

    p->host[h].unit = unit;
    for (int r = 0; r < p->rails; r++)
        rail[r] = r;
    p->host[h].hcas = p->rails;
    if (storage || below(p, 10) == 0) { /* some of its adapters, in any order */
        rng_shuffle(&p->rng, rail, p->rails);
        p->host[h].hcas = storage ? 1 : 1 + below(p, p->rails);
    }
    memcpy(p->host[h].rail, rail, sizeof(rail));
    snprintf(p->host[h].name, sizeof(p->host[h].name), storage ? "store%d-%d" : "gpu-%03d-%d", h,
             unit);
}

static void make_plan(struct subnet_plan *p, unsigned seed)
{
    memset(p, 0, sizeof(*p));
    p->seed = seed;
    rng_seed(&p->rng, seed);
    p->rails = 1 << below(p, 4);
    p->tiers = 1 + below(p, TIERS);
    p->units = p->tiers > 1 ? 2 + below(p, 3) : 1;
    p->fan[1] = p->units;
    for (int t = 2; t < p->tiers; t++) {
        p->fan[t] = 2;
        p->units *= 2;
    }
    for (int u = 0; u < p->units; u++) {
        int hosts = 4 + below(p, 5), storage = below(p, 4) ? 0 : 1 + below(p, 3);
        for (int h = 0; h < hosts; h++)
            add_host(p, u, false);
        p->host[p->hosts - 1].hcas = p->rails; /* one at least is whole */
        for (int h = 0; h < storage; h++)
            add_host(p, u, true);
    }
}

/* The group of a unit at a tier: units that share the switches of that tier. */
static int group_at(const struct subnet_plan *p, int unit, int tier)
{
    for (int t = 1; t <= tier; t++)
        unit /= p->fan[t];
    return unit;
}

/* --- as ibnetdiscover's text --- */

struct text {
    struct subnet_plan *p;
    char *record[RECORDS];
    int records, ports; /* of the record at hand */
};

static void cable(struct text *x, const char *kind, const char *from, int port, const char *to,
                  int to_port, const char *name)
{
    char *more;

    for (int i = 0; i < x->records; i++) {
        size_t len = strlen(from);
        const char *id = strchr(x->record[i], '"') + 1;
        if (strncmp(id, from, len) != 0 || id[len] != '"')
            continue;
        more = mem_printf("%s[%d]\t\"%s\"[%d]\t\t# \"%s\" lid 1 4xNDR\n", x->record[i], port, to,
                          to_port, name);
        free(x->record[i]);
        x->record[i] = more;
        return;
    }
    assert_true(x->records < RECORDS);
    x->record[x->records++] = mem_printf("%s 254 \"%s\"\t\t# \"%s\"\n[%d]\t\"%s\"[%d]\t\t# \"%s\" "
                                         "lid 1 4xNDR\n",
                                         kind, from, name, port, to, to_port, name);
}

/* "leaf-3-1", "t2-0-1": switch i of a group at a tier; tier 0 has one a rail, the others two. */
static char *switch_name(char buf[64], int tier, int group, int i)
{
    if (tier)
        snprintf(buf, 64, "t%d-%d-%d", tier, group, i);
    else
        snprintf(buf, 64, "leaf-%d-%d", group, i);
    return buf;
}

static char *subnet(struct subnet_plan *p)
{
    struct text *x = mem_calloc(1, sizeof(*x));
    int *port = mem_calloc(1 << 20, sizeof(*port)); /* the last one of switch tier, group, i */
    char *all = mem_strdup(""), a[64], b[64];

    x->p = p;
#define NEXT(tier, group, i) (++port[((tier) << 16) + ((group) << 4) + (i)])
    for (int h = 0; h < p->hosts; h++)
        for (int k = 0; k < p->host[h].hcas; k++) {
            int rail = p->host[h].rail[k], up = NEXT(0, p->host[h].unit, rail);
            char *id = mem_printf("%s.%d", p->host[h].name, rail);
            char *name = mem_printf("%s mlx5_%d", p->host[h].name, rail);
            switch_name(a, 0, p->host[h].unit, rail);
            cable(x, "Ca", id, 1, a, up, name);
            cable(x, "Switch", a, up, id, 1, a);
            free(name);
            free(id);
        }
    for (int t = 1, groups = p->units; t < p->tiers; t++) {
        for (int g = 0; g < groups; g++)
            for (int i = 0; i < (t == 1 ? p->rails : 2); i++)
                for (int s = 0; s < 2; s++) {
                    int over = g / p->fan[t], from = NEXT(t - 1, g, i), to = NEXT(t, over, s);
                    if (!port[((t - 1) << 16) + (g << 4) + i])
                        continue;
                    switch_name(a, t - 1, g, i);
                    switch_name(b, t, over, s);
                    cable(x, "Switch", a, from, b, to, a);
                    cable(x, "Switch", b, to, a, from, b);
                }
        groups /= p->fan[t];
    }
#undef NEXT
    int *order = mem_calloc((size_t)x->records + 1, sizeof(*order));
    for (int i = 0; i < x->records; i++)
        order[i] = i;
    rng_shuffle(&p->rng, order, x->records);
    size_t len;
    free(all);
    FILE *f = open_memstream(&all, &len);
    for (int i = 0; i < x->records; i++) {
        fprintf(f, "%s\n", x->record[order[i]]);
        free(x->record[order[i]]);
    }
    fclose(f);
    free(order);
    free(port);
    free(x);
    return all;
}

/* --- read back --- */

enum how { HOSTS_ONLY, GPUS_BY_NAME, GPUS_NEAR_NICS, HOWS };

/* A host as its own probe tells it: an endpoint for each rail, near the NIC of that name. */
static void tell_host(struct topo *t, const struct subnet_plan *p, int h, enum how how)
{
    int host = topo_add_host(t, p->host[h].name);

    for (int r = 0; r < p->rails && how != HOSTS_ONLY; r++) {
        int id = topo_add_endpoint(t, host, ENDPOINT_GPU);
        struct nic n;
        nic_init(&n, host);
        n.source = SOURCE_SYSFS;
        n.layer = LINK_INFINIBAND;
        n.rdma = n.up = true;
        snprintf(n.name, sizeof(n.name), "mlx5_%d", r);
        if (how == GPUS_NEAR_NICS) {
            t->endpoint[id].nic = t->nics;
            MEM_PUSH(t->nic, t->nics) = n;
        }
    }
}

static void read_back(struct topo *t, const struct subnet_plan *p, const char *path, enum how how)
{
    struct err err = {0, ""};

    topo_init(t);
    for (int h = 0; h < p->hosts; h++)
        tell_host(t, p, h, how);
    if (ibnet_read(t, -1, path, &err) < 0)
        fail_msg("seed %u: %s", p->seed, err.text);
    sources_done(t);
    if (!t->tiers)
        topo_default_tiers(t);
}

/* Two hosts are together in of[] where they are in the plan's groups of a tier. */
static void same_groups(const struct subnet_plan *p, const int *of, int tier, const char *what)
{
    for (int a = 0; a < p->hosts; a++)
        for (int b = 0; b < a; b++) {
            bool is = of[a] >= 0 && of[a] == of[b];
            bool wanted = group_at(p, p->host[a].unit, tier) == group_at(p, p->host[b].unit, tier);
            if (is != wanted || of[a] < 0)
                fail_msg("seed %u: %s: %s and %s are %stogether (%d, %d)", p->seed, what,
                         p->host[a].name, p->host[b].name, is ? "" : "not ", of[a], of[b]);
        }
}

static void check_levels(const struct subnet_plan *p, const struct topo *t)
{
    static const enum level level[] = {LEVEL_LEAF, LEVEL_SPINE};

    for (int tier = 0; tier < 2 && (tier == 0 || tier + 1 < p->tiers); tier++) {
        char **name;
        int groups, *of = groups_of_hosts(t, level[tier], &name, &groups);
        same_groups(p, of, p->rails == 1 && tier == 0 ? 0 : tier, level_name[level[tier]]);
        hostlist_free(name, groups);
        free(of);
    }
    int sets, wanted = p->tiers > 3 ? p->tiers - 3 : 0;
    struct group_set *s = group_sets_above(t, &sets);
    if (sets != wanted)
        fail_msg("seed %u: %d tiers above the spine where %d are", p->seed, sets, wanted);
    for (int i = 0; i < sets; i++) {
        int *of = group_set_of(&s[i], t);
        assert_int_equal(s[i].above, i + 1);
        same_groups(p, of, 2 + i, "above spines");
        free(of);
    }
    group_sets_free(s, sets);
}

/* Storage hosts are no compute hosts, and lint does not call them bad; hosts that lack adapters
 * stay what they are. */
static void check_uses(const struct subnet_plan *p, const struct topo *t)
{
    struct lint l = {0};

    for (int i = 0; i < t->nics; i++) {
        bool storage = !strncmp(t->host[t->nic[i].host].name, "store", 5);
        if ((t->nic[i].use == NIC_COMPUTE) == storage)
            fail_msg("seed %u: %s %s is %s", p->seed, t->host[t->nic[i].host].name, t->nic[i].name,
                     nic_use_name[t->nic[i].use]);
    }
    lint_hosts(&l, t);
    lint_net(&l, t);
    for (int i = 0; i < l.findings; i++)
        if (l.finding[i].bad && !strncmp(l.finding[i].what, "store", 5))
            fail_msg("seed %u: %s", p->seed, l.finding[i].text);
    lint_free(&l);
}

/* --- exports --- */

static char *exported(const struct subnet_plan *p, const struct matrix *m, const char *format,
                      size_t *length)
{
    struct export_ask ask = {0};
    struct err err = {0, ""};
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    const struct exporter *x = exporter_find(format, &err);
    int rc = x ? x->write(&(struct export_run){.out = out, .m = m, .ask = &ask}, &err) : -1;

    fclose(out);
    if (rc < 0) { /* one group of all hosts is no tree of labels */
        if (p->tiers > 2 || err.code != EXIT_UNJUDGED)
            fail_msg("seed %u: %s: %s", p->seed, format, err.text);
        free(text);
        return NULL;
    }
    return text;
}

/* The unit of each host in a file for Slurm and what is above it: up[tier][host]. */
static int climb(const struct slurm_topology *s, const struct subnet_plan *p, int (*up)[HOSTS])
{
    struct names names = {0};
    int *parent = mem_calloc((size_t)s->units + 1, sizeof(int)), tiers = 1;

    for (int u = 0; u < s->units; u++) {
        names_add(&names, s->unit[u].name);
        parent[u] = -1;
    }
    for (int h = 0; h < p->hosts; h++)
        up[0][h] = -1;
    for (int u = 0; u < s->units; u++) {
        for (int k = 0; k < s->unit[u].children; k++)
            parent[names_add(&names, s->unit[u].child[k])] = u;
        for (int k = 0; k < s->unit[u].nodes; k++)
            for (int h = 0; h < p->hosts; h++)
                if (!strcmp(p->host[h].name, s->unit[u].node[k])) {
                    if (up[0][h] >= 0)
                        fail_msg("seed %u: %s is there twice", p->seed, p->host[h].name);
                    up[0][h] = u;
                }
    }
    for (bool more = true; more; tiers += more) {
        more = false;
        for (int h = 0; h < p->hosts && tiers < TIERS + 2; h++) {
            up[tiers][h] = up[tiers - 1][h] < 0 ? -1 : parent[up[tiers - 1][h]];
            more = more || up[tiers][h] >= 0;
        }
    }
    names_free(&names);
    free(parent);
    return tiers;
}

static void check_slurm(const struct subnet_plan *p, const struct matrix *m, const char *format)
{
    static int up[TIERS + 2][HOSTS];
    struct slurm_file f;
    struct err err = {0, ""};
    size_t len;
    char *text = exported(p, m, format, &len);

    if (!text || slurm_parse(&f, text, len, format, &err) < 0)
        fail_msg("seed %u: %s: %s\n%s", p->seed, format, err.text, text ? text : "");
    for (int i = 0; i < f.topologies; i++) {
        if (f.topology[i].kind == SLURM_FLAT)
            continue;
        int tiers = climb(&f.topology[i], p, up);
        same_groups(p, up[0], 0, format);
        if (f.topology[i].kind != SLURM_TREE)
            continue;
        if (tiers != (p->tiers == 1 ? 1 : p->tiers))
            fail_msg("seed %u: %s: %d tiers where %d are:\n%s", p->seed, format, tiers, p->tiers,
                     text);
        for (int t = 1; t < tiers; t++)
            same_groups(p, up[t], t, format);
    }
    slurm_file_free(&f);
    free(text);
}

static void check_exports(const struct subnet_plan *p, struct topo *t)
{
    static const char *const slurm[] = {"slurm-tree", "slurm-block", "slurm-yaml"};
    static const char *const named[] = {"k8s-labels", "volcano", "topograph"};
    struct matrix m;

    export_wrap(&m, t);
    for (size_t i = 0; i < sizeof(slurm) / sizeof(*slurm); i++)
        check_slurm(p, &m, slurm[i]);
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
        size_t len;
        char *text = exported(p, &m, named[i], &len);
        for (int h = 0; text && h < p->hosts; h++)
            if (!strstr(text, p->host[h].name))
                fail_msg("seed %u: %s lacks %s", p->seed, named[i], p->host[h].name);
        free(text);
    }
    matrix_free(&m);
}

TEST(subnets_are_recovered)
{
    struct subnet_plan *p = mem_calloc(1, sizeof(*p));
    char path[] = "/tmp/subnetsXXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        make_plan(p, seed);
        char *text = subnet(p);
        rewind(f);
        assert_int_equal(ftruncate(fd, 0), 0);
        fputs(text, f);
        fflush(f);
        for (enum how how = HOSTS_ONLY; how < HOWS; how++) {
            struct topo t, again;
            struct err err;
            read_back(&t, p, path, how);
            check_levels(p, &t);
            if (p->rails > 1 && how == HOSTS_ONLY)
                check_uses(p, &t);
            char *saved = topo_text(&t);
            if (topo_parse(&again, saved, strlen(saved), "t.json", &err) < 0)
                fail_msg("seed %u: %s", seed, err.text);
            check_levels(p, &again);
            check_exports(p, &again);
            free(saved);
            topo_free(&t);
            topo_free(&again);
        }
        free(text);
    }
    fclose(f);
    remove(path);
    free(p);
}
