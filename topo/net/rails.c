/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/groups.h"
#include "topo/host/nic.h"
#include "topo/net/rails_impl.h"

/* --- opening --- */

/* Parts of the switched network by the names of its leaves. */
static void find_parts(struct rails *r)
{
    const struct topo *t = r->t;
    struct names names = {0};
    int *of = NULL, count = 0;

    if (!t->net)
        return;
    int parts, *part = net_parts(t->net, &parts);
    char **label = net_labels(t->net);
    for (int n = 0; n < t->net->nodes; n++)
        if (t->net->node[n].kind == NET_SWITCH && names_add(&names, label[n]) == count)
            MEM_PUSH(of, count) = part[n];
    for (int i = 0; i < t->nics; i++) {
        int at = t->nic[i].leaf_source == SOURCE_IBNET ? names_add(&names, t->nic[i].leaf) : count;
        r->part[i] = at < count ? of[at] : -1;
    }
    names_free(&names);
    hostlist_free(label, t->net->nodes);
    free(part);
    free(of);
}

/* --- planes and rails of compute NICs ---
 *
 * A leaf's number is the position that most of its NICs have on their hosts; leaves with the same
 * number (one in each unit) are a rail.  So a NIC that is cabled to the wrong leaf counts to the
 * rail that it is really on. */

enum { PLANES = 8, POSITIONS = 64 };

struct leaves {
    struct names names;             /* by plane */
    int (*votes)[POSITIONS], count; /* NICs by position */
    int *plane;                     /* of each leaf */
    int *number;                    /* rail of each leaf; -1 */
};

static bool counts(const struct nic *n)
{
    return n->rdma && n->use == NIC_COMPUTE;
}

static int port_of(const struct nic *n)
{
    const char *colon = strchr(n->name, ':');
    int port = 1;

    if (colon && units_int(&port, colon + 1, 1, 255, NULL) < 0)
        port = 1;
    return port;
}

/* --- planes --- */

/* Networks that no cable joins, in the order of their number among compute NICs. */
static int plane_by_part(const struct rails *r, int *plane)
{
    int of[PLANES], planes = 0;

    for (int p = 0; p < 1024 && planes < PLANES; p++) {
        bool used = false;
        for (int i = 0; i < r->t->nics && !used; i++)
            used = r->part[i] == p && counts(&r->t->nic[i]);
        if (used)
            of[planes++] = p;
        else if (p > 64)
            break;
    }
    for (int i = 0; i < r->t->nics && planes > 1; i++)
        for (int k = 0; k < planes; k++)
            if (r->part[i] == of[k])
                plane[i] = k;
    return planes;
}

/* Ports 1 and 2 of all cards on leaves that never have both. */
static void plane_by_port(const struct rails *r, int *plane)
{
    struct names names = {0};
    int ports[2] = {0, 0}, count = 0, *seen = NULL;
    bool both = false;

    for (int i = 0; i < r->t->nics && !both; i++) {
        const struct nic *n = &r->t->nic[i];
        int port = port_of(n);
        if (!counts(n))
            continue;
        both = n->leaf_source == SOURCE_NONE || port > 2; /* not to be known */
        ports[port == 2]++;
        int at = names_add(&names, n->leaf);
        if (at == count)
            MEM_PUSH(seen, count) = 0;
        seen[at] |= port;
        both = both || seen[at] == 3;
    }
    for (int i = 0; i < r->t->nics && !both && ports[0] == ports[1]; i++)
        if (counts(&r->t->nic[i]))
            plane[i] = port_of(&r->t->nic[i]) - 1;
    names_free(&names);
    free(seen);
}

/* --- rails --- */

static int leaf_at(struct leaves *l, const struct nic *n, int plane)
{
    char key[80];

    snprintf(key, sizeof(key), "%d %s", plane, n->leaf);
    int at = names_add(&l->names, key);
    if (at == l->count) {
        int(*more)[POSITIONS] = mem_calloc(1, sizeof(*more));
        int leaves = l->count;
        MEM_PUSH(l->plane, leaves) = plane;
        MEM_PUSH(l->votes, l->count);
        memcpy(l->votes[at], more, sizeof(*more));
        free(more);
    }
    return at;
}

static int most(const int votes[POSITIONS])
{
    int best = 0;

    for (int p = 1; p < POSITIONS; p++)
        if (votes[p] > votes[best])
            best = p;
    return best;
}

/* The numbers that occur in a plane, made dense; returns how many. */
static int number_leaves(struct leaves *l, int plane)
{
    bool used[POSITIONS] = {false};
    int dense[POSITIONS], rails = 0;

    for (int i = 0; i < l->count; i++)
        if (l->plane[i] == plane)
            used[most(l->votes[i])] = true;
    for (int p = 0; p < POSITIONS; p++)
        dense[p] = used[p] ? rails++ : -1;
    for (int i = 0; i < l->count; i++)
        if (l->plane[i] == plane)
            l->number[i] = dense[most(l->votes[i])];
    return rails;
}

/* Position of each compute NIC among those of its host and plane. */
static int *positions(const struct rails *r, const int *plane)
{
    int *position = mem_calloc((size_t)r->t->nics + 1, sizeof(*position));

    for (int h = 0; h < r->t->hosts; h++) {
        int next[PLANES] = {0};
        for (int i = r->of.first[h]; i < r->of.first[h + 1]; i++) {
            int nic = r->of.nic[i], p = plane[nic] < 0 ? 0 : plane[nic];
            if (counts(&r->t->nic[nic]))
                position[nic] = next[p]++;
        }
    }
    return position;
}

static void say_unseen(struct rails *r)
{
    int *nics = mem_calloc((size_t)r->t->hosts + 1, sizeof(*nics)), many = 0;

    for (int i = 0; i < r->t->nics; i++) {
        const struct nic *n = &r->t->nic[i];
        if (counts(n) && n->rail < 0 && n->leaf_source == SOURCE_NONE && n->up)
            many = ++nics[n->host] > many ? nics[n->host] : many;
    }
    if (many > 1)
        topo_unseen(r->t, "rails",
                    "the leaf switches of compute NICs are not known; ibnetdiscover or lldpcli "
                    "tells them");
    free(nics);
}

static void find_rails(struct rails *r)
{
    struct topo *t = r->t;
    int *plane = mem_ints(t->nics, -1), rails[PLANES] = {0};
    struct leaves l = {.count = 0};

    if (plane_by_part(r, plane) < 2)
        plane_by_port(r, plane);
    int *position = positions(r, plane);
    for (int i = 0; i < t->nics; i++) {
        const struct nic *n = &t->nic[i];
        if (!counts(n) || n->leaf_source == SOURCE_NONE || position[i] >= POSITIONS)
            continue;
        int at = leaf_at(&l, n, plane[i] < 0 ? 0 : plane[i]); /* moves l.votes */
        l.votes[at][position[i]]++;
    }
    l.number = mem_calloc((size_t)l.count + 1, sizeof(int));
    for (int p = 0; p < PLANES; p++)
        rails[p] = number_leaves(&l, p);
    for (int i = 0; i < t->nics; i++) {
        struct nic *n = &t->nic[i];
        int p = plane[i] < 0 ? 0 : plane[i];
        if (!counts(n))
            continue;
        if (n->plane < 0 && plane[i] >= 0) {
            n->plane = plane[i];
            n->plane_source = n->leaf_source;
        }
        if (n->rail < 0 && n->leaf_source != SOURCE_NONE && position[i] < POSITIONS &&
            rails[p] > 1) {
            n->rail = l.number[leaf_at(&l, n, p)];
            n->rail_source = n->leaf_source;
        }
    }
    say_unseen(r);
    names_free(&l.names);
    free(l.votes);
    free(l.plane);
    free(l.number);
    free(position);
    free(plane);
}

/* --- leaves by LLDP --- */

static int by_text(const void *x, const void *y)
{
    return strverscmp(*(char *const *)x, *(char *const *)y);
}

/* The leaves of a host's NICs, each once, sorted; *count of them, borrowed texts. */
static char **leaves_of(const struct rails *r, int host, int *count)
{
    char **leaf = NULL;
    int n = 0, kept = 0;

    for (int i = r->of.first[host]; i < r->of.first[host + 1]; i++) {
        struct nic *nic = &r->t->nic[r->of.nic[i]];
        if (nic->leaf_source == SOURCE_LLDP && (nic->use == NIC_COMPUTE || nic->use == NIC_UNKNOWN))
            MEM_PUSH(leaf, n) = nic->leaf;
    }
    if (n)
        qsort(leaf, (size_t)n, sizeof(*leaf), by_text);
    for (int i = 0; i < n; i++)
        if (!kept || strcmp(leaf[kept - 1], leaf[i]) != 0)
            leaf[kept++] = leaf[i];
    *count = kept;
    return leaf;
}

/* "leaf-01", "leaf-01+leaf-02", or "leaf-01..leaf-08 (8)" where that is long. */
static char *set_name(char *const *leaf, int count)
{
    size_t length = 0;

    for (int i = 0; i < count; i++)
        length += strlen(leaf[i]) + 1;
    if (length > 200)
        return mem_printf("%s..%s (%d)", leaf[0], leaf[count - 1], count);
    char *name = mem_strdup(leaf[0]);
    for (int i = 1; i < count; i++)
        name = mem_append(name, "+%s", leaf[i]);
    return name;
}

static void claim_lldp(struct rails *r)
{
    struct topo *t = r->t;
    bool *claimed = mem_calloc((size_t)t->hosts + 1, sizeof(*claimed));

    for (int i = 0; i < t->declared_groups; i++)
        for (int k = 0;
             k < t->declared_group[i].hosts && t->declared_group[i].source == SOURCE_LLDP; k++) {
            int h = topo_find_host(t, t->declared_group[i].host[k]);
            if (h >= 0)
                claimed[h] = true;
        }
    for (int h = 0; h < t->hosts; h++) {
        int count = 0;
        char **leaf = claimed[h] ? NULL : leaves_of(r, h, &count);
        if (count) {
            char *name = set_name(leaf, count);
            group_add_host(t, SOURCE_LLDP, LEVEL_LEAF, "lldp", name, t->host[h].name);
            free(name);
        }
        free(leaf);
    }
    free(claimed);
}

/* --- endpoints --- */

static void tell_endpoints(struct topo *t)
{
    char name[32];

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        const struct nic *n = e->nic < 0 ? NULL : &t->nic[e->nic];
        if (n && n->leaf_source == SOURCE_LLDP && e->place.at[LEVEL_LEAF] < 0)
            topo_place(t, e, LEVEL_LEAF, n->leaf, SOURCE_LLDP);
        if (n && n->rail >= 0 && e->place.at[LEVEL_RAIL] < 0) {
            snprintf(name, sizeof(name), "rail-%d", n->rail);
            topo_place(t, e, LEVEL_RAIL, name, n->rail_source);
        }
    }
}

void rails_find(struct topo *t)
{
    struct rails r = {.t = t};
    int leaves = t->group[LEVEL_LEAF].count;

    r.of = net_nics_of(t, true);
    r.near = mem_calloc((size_t)t->nics + 1, sizeof(int));
    r.part = mem_ints(t->nics, -1);
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].nic >= 0 && t->endpoint[i].kind == ENDPOINT_GPU)
            r.near[t->endpoint[i].nic]++;
    find_parts(&r);
    nic_uses(&r);
    find_rails(&r);
    claim_lldp(&r);
    tell_endpoints(t);
    if (t->group[LEVEL_LEAF].count > leaves)
        topo_default_tiers(t);
    net_nics_free(&r.of);
    free(r.near);
    free(r.part);
}
