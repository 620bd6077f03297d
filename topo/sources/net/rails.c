/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/net/rails.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"
#include "topo/sources/net/lldp_impl.h"
#include "topo/sources/net/rails_impl.h"

/* --- opening --- */

/* Find the part of the network of each NIC, by the names of leaves. */
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

/* --- compute, storage or management: by GPUs nearby, speed, link and network --- */

/* source: that of the deciding fact. */
static void put(struct nic *n, enum nic_use use, enum source source, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void put(struct nic *n, enum nic_use use, enum source source, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(n->why, sizeof(n->why), fmt, args);
    va_end(args);
    n->use = use;
    n->use_source = use == NIC_UNKNOWN ? SOURCE_NONE : source;
}

static bool same_kind(const struct nic *a, const struct nic *b)
{
    return a->rdma == b->rdma && a->layer == b->layer && a->rate_Bps == b->rate_Bps;
}

static bool same_board(const struct nic *a, const struct nic *b)
{
    return !a->board[0] || !b->board[0] || !strcmp(a->board, b->board);
}

/* NIC of the compute kind, or NULL: among kinds of RDMA NICs that are up, the kind nearest to most
 * GPUs, then that with the largest total bandwidth. */
static const struct nic *compute_kind(const struct rails_host *v)
{
    const struct nic *best = NULL;
    double best_Bps = -1;
    int best_near = -1;

    for (int i = 0; i < v->nics; i++) {
        double Bps = 0;
        int near = 0;
        if (!rails_nic(v, i)->rdma || !rails_nic(v, i)->up)
            continue;
        for (int k = 0; k < v->nics; k++)
            if (same_kind(rails_nic(v, i), rails_nic(v, k)) && rails_nic(v, k)->up) {
                near += v->r->near[v->nic[k]];
                Bps += rails_nic(v, k)->rate_Bps;
            }
        if (near > best_near || (near == best_near && Bps > best_Bps)) {
            best = rails_nic(v, i);
            best_near = near;
            best_Bps = Bps;
        }
    }
    return best;
}

static uint64_t kind_key(const char *name, const struct nic *kind)
{
    return map_mix(map_mix(map_text(name), (uint64_t)kind->layer), (uint64_t)kind->rate_Bps);
}

/* True if most NICs of this name, on all hosts, are of the compute kind: this one has lost lanes or
 * speed.  Storage NICs have names of their own. */
static bool is_degraded(const struct rails *r, const struct nic *n, const struct nic *kind)
{
    int named = map_find(&r->named, map_text(n->name), NULL, NULL),
        alike = map_find(&r->alike, kind_key(n->name, kind), NULL, NULL);

    return alike != MAP_NONE && 2 * alike > named;
}

static void count_kinds(struct rails *r)
{
    for (int i = 0; i < r->t->nics; i++) {
        const struct nic *n = &r->t->nic[i];
        if (!n->rdma || !n->up)
            continue;
        int *named = map_at(&r->named, map_text(n->name), NULL, NULL);
        *named = *named == MAP_NONE ? 1 : *named + 1;
        int *alike = map_at(&r->alike, kind_key(n->name, n), NULL, NULL);
        *alike = *alike == MAP_NONE ? 1 : *alike + 1;
    }
}

static void rdma_use(const struct rails *r, struct nic *n, const struct nic *kind, int near)
{
    char is[UNITS_TEXT] = "?", other[UNITS_TEXT] = "?";

    if (n->rate_Bps > 0)
        units_rate_text(is, n->rate_Bps);
    if (kind->rate_Bps > 0)
        units_rate_text(other, kind->rate_Bps);
    if (n->up && same_kind(n, kind))
        put(n, NIC_COMPUTE, nic_teller(n),
            near ? "nearest to %d GPU%s" : "of the kind of those near GPUs", near,
            near == 1 ? "" : "s");
    else if (!n->up && n->layer == kind->layer && same_board(n, kind))
        put(n, NIC_COMPUTE, nic_teller(n), "down; of the compute NICs' link and board");
    else if (n->up && n->layer == kind->layer && near && same_board(n, kind))
        put(n, NIC_COMPUTE, nic_teller(n), "nearest to a GPU, at %s where others have %s", is,
            other);
    else if (n->up && n->layer == kind->layer && is_degraded(r, n, kind))
        put(n, NIC_COMPUTE, nic_teller(n), "at %s where %.31s of most hosts has %s", is, n->name,
            other);
    else
        put(n, NIC_STORAGE, nic_teller(n), "%s at %s, compute: %s at %s", nic_layer_text[n->layer],
            is, nic_layer_text[kind->layer], other);
}

/* RDMA NIC behind a plain interface (a bond); the interface gets the same use. */
static const struct nic *twin(const struct rails_host *v, const struct nic *n)
{
    for (int i = 0; i < v->nics; i++)
        if (rails_nic(v, i)->rdma && n->netdev[0] && !strcmp(rails_nic(v, i)->netdev, n->netdev))
            return rails_nic(v, i);
    return NULL;
}

/* Use of NICs on a host without RDMA: the fastest NICs do everything. */
static void plain_use(const struct rails_host *v, struct nic *n, double fastest, int up)
{
    char unit[UNITS_TEXT];

    if (!n->up)
        put(n, NIC_UNKNOWN, nic_teller(n), "down");
    else if (up == 1)
        put(n, NIC_COMPUTE, nic_teller(n), "the only NIC that is up");
    else if (fastest <= 0)
        put(n, NIC_UNKNOWN, nic_teller(n), "no speed of the %d NICs is visible", v->nics);
    else if (n->rate_Bps == fastest)
        put(n, NIC_COMPUTE, nic_teller(n), "the fastest of a host without RDMA");
    else
        put(n, NIC_MANAGEMENT, nic_teller(n), "slower than %s", units_rate_text(unit, fastest));
}

/* Mark compute NICs as storage that are near no GPU and on a network with fewer NICs of this host
 * than the main network: these are no plane. */
static void other_networks(const struct rails_host *v, const bool *set)
{
    enum { PARTS = 64 };
    int count[PARTS] = {0}, main = -1;

    for (int i = 0; i < v->nics; i++) {
        int part = v->r->part[v->nic[i]];
        if (rails_nic(v, i)->use == NIC_COMPUTE && part >= 0 && part < PARTS)
            count[part]++;
    }
    for (int p = 0; p < PARTS; p++)
        main = count[p] && (main < 0 || count[p] > count[main]) ? p : main;
    for (int i = 0; i < v->nics; i++) {
        int nic = v->nic[i], part = v->r->part[nic];
        if (rails_nic(v, i)->use == NIC_COMPUTE && !set[nic] && part >= 0 && part < PARTS &&
            count[part] < count[main] && !v->r->near[nic])
            put(rails_nic(v, i), NIC_STORAGE, SOURCE_IBNET, "on another network than %d others",
                count[main]);
    }
}

static void host_uses(const struct rails_host *v, const bool *set)
{
    const struct nic *kind = compute_kind(v);
    double fastest = 0;
    int up = 0, rdma = 0;

    for (int i = 0; i < v->nics; i++) {
        up += rails_nic(v, i)->up;
        rdma += rails_nic(v, i)->rdma && rails_nic(v, i)->up;
        if (rails_nic(v, i)->up && rails_nic(v, i)->rate_Bps > fastest)
            fastest = rails_nic(v, i)->rate_Bps;
    }
    for (int i = 0; i < v->nics; i++)
        if (kind && rails_nic(v, i)->rdma && !set[v->nic[i]])
            rdma_use(v->r, rails_nic(v, i), kind, v->r->near[v->nic[i]]);
    other_networks(v, set);
    for (int i = 0; i < v->nics; i++) {
        struct nic *n = rails_nic(v, i);
        const struct nic *same = n->rdma ? NULL : twin(v, n);
        if (set[v->nic[i]] || (n->rdma && kind))
            continue;
        if (same)
            put(n, same->use, same->use_source, "its ports are those of %.31s", same->name);
        else if (kind)
            put(n, NIC_MANAGEMENT, nic_teller(n), "no RDMA, beside %d that have it", rdma);
        else if (!n->rdma)
            plain_use(v, n, fastest, up);
    }
}

/* Number of compute NICs of a host that is known from the subnet only; -1: other hosts, or none. */
static int told_by_net(const struct rails_host *v)
{
    int count = 0;

    for (int i = 0; i < v->nics; i++) {
        if (rails_nic(v, i)->source != SOURCE_IBNET || v->r->near[v->nic[i]])
            return -1;
        count += rails_nic(v, i)->use == NIC_COMPUTE;
    }
    return count ? count : -1;
}

/* Reset the use of NICs on hosts of another kind (storage, login, UFM): known from the subnet
 * only, and with at most half of the NICs that most hosts have.  But if a host with the same name,
 * numbers aside, has more, NICs are just missing. */
static void other_hosts(struct rails *r, const bool *set)
{
    enum { COUNTS = 65 };
    const struct topo *t = r->t;
    int *count = mem_calloc((size_t)t->hosts + 1, sizeof(*count)), times[COUNTS] = {0}, most = 0;
    struct names compute = {0}; /* host families */

    for (int h = 0; h < t->hosts; h++) {
        struct rails_host v = rails_host(r, h);
        count[h] = told_by_net(&v);
        if (count[h] > 0 && count[h] < COUNTS && ++times[count[h]] > times[most])
            most = count[h];
    }
    for (int h = 0; h < t->hosts; h++) {
        char *family = topo_host_family(t->host[h].name);
        if (2 * count[h] > most)
            names_add(&compute, family);
        free(family);
    }
    int families = compute.count;
    for (int h = 0; h < t->hosts && times[most] >= 3; h++) {
        char *family = topo_host_family(t->host[h].name);
        bool other =
            count[h] > 0 && 2 * count[h] <= most && names_add(&compute, family) >= families;
        free(family);
        struct rails_host v = rails_host(r, h);
        for (int i = 0; i < v.nics && other; i++)
            if (!set[v.nic[i]])
                put(rails_nic(&v, i), NIC_UNKNOWN, SOURCE_NONE,
                    "%d adapter%s where most hosts have %d, and another name", count[h],
                    units_s(count[h]), most);
    }
    names_free(&compute);
    free(count);
}

static void find_uses(struct rails *r)
{
    const struct topo *t = r->t;
    bool *set = mem_calloc((size_t)t->nics + 1, sizeof(*set));

    for (int i = 0; i < t->nics; i++)
        set[i] = t->nic[i].use != NIC_UNKNOWN;
    count_kinds(r);
    for (int h = 0; h < t->hosts; h++) {
        struct rails_host v = rails_host(r, h);
        host_uses(&v, set);
    }
    other_hosts(r, set);
    map_free(&r->named);
    map_free(&r->alike);
    free(set);
}

/* --- planes and rails of compute NICs ---
 *
 * The number of a leaf is the position that most of its NICs have on their hosts; leaves with the
 * same number (one in each unit) form a rail.  So a NIC cabled to the wrong leaf counts for the
 * rail that it is really on. */

enum { PLANES = 8, POSITIONS = 64 };

struct leaves {
    struct names names; /* leaf names with plane */
    struct leaf {
        int plane, rail, votes[POSITIONS]; /* number of NICs by position */
    } * leaf;
    int count;
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

/* Planes from networks that no cable joins, in the order of their numbers among compute NICs. */
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

/* Planes from ports 1 and 2 of all cards, if no leaf has both. */
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
        both = n->leaf_source == SOURCE_NONE || port > 2; /* undecidable */
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

static struct leaf *leaf_at(struct leaves *l, const struct nic *n, int plane)
{
    char key[80];

    snprintf(key, sizeof(key), "%d %s", plane, n->leaf);
    int at = names_add(&l->names, key);
    if (at == l->count)
        MEM_PUSH(l->leaf, l->count) = (struct leaf){.plane = plane};
    return &l->leaf[at];
}

static int most(const int votes[POSITIONS])
{
    int best = 0;

    for (int p = 1; p < POSITIONS; p++)
        if (votes[p] > votes[best])
            best = p;
    return best;
}

/* Renumber the rails of a plane densely; returns their number. */
static int number_leaves(struct leaves *l, int plane)
{
    bool used[POSITIONS] = {false};
    int dense[POSITIONS], rails = 0;

    for (int i = 0; i < l->count; i++)
        if (l->leaf[i].plane == plane)
            used[most(l->leaf[i].votes)] = true;
    for (int p = 0; p < POSITIONS; p++)
        dense[p] = used[p] ? rails++ : -1;
    for (int i = 0; i < l->count; i++)
        if (l->leaf[i].plane == plane)
            l->leaf[i].rail = dense[most(l->leaf[i].votes)];
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
        if (counts(n) && n->rail < 0 && n->leaf_source == SOURCE_NONE && n->up && !nic_is_efa(n))
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
        leaf_at(&l, n, plane[i] < 0 ? 0 : plane[i])->votes[position[i]]++;
    }
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
            n->rail = leaf_at(&l, n, p)->rail;
            n->rail_source = n->leaf_source;
        }
    }
    say_unseen(r);
    names_free(&l.names);
    free(l.leaf);
    free(position);
    free(plane);
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
    find_uses(&r);
    find_rails(&r);
    lldp_declare(t);
    tell_endpoints(t);
    if (t->group[LEVEL_LEAF].count > leaves)
        topo_default_tiers(t);
    net_nics_free(&r.of);
    free(r.near);
    free(r.part);
}
