/* SPDX-License-Identifier: BSD-3-Clause */
/* place_pool.c - free slots by host and group; free hosts in rows, and blocks of ranks filled into
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* Group of free host `host` at a level; -1: unknown. */
static int node_pool_group(const struct node_pool *p, int host, int level)
{
    if (p->start[host] == p->start[host + 1])
        return -1;
    return topo_at(&p->matrix->topo, p->endpoint[p->start[host]], level);
}

static bool is_pair_of(const struct exception *x, int rack)
{
    return x->part == PART_RACK_PAIR && (x->a == rack || x->b == rack);
}

/* Mark racks with slow uplinks, and racks to leave out so that no slow pair of racks remains:
 * repeatedly the rack in most such pairs. */
static bool *racks_to_avoid(const struct matrix *m)
{
    int racks = m->topo.group[LEVEL_RACK].count, most = 1;
    bool *avoid = mem_calloc((size_t)racks + 1, sizeof(bool));

    for (int i = 0; i < m->exceptions; i++)
        if (m->exception[i].part == PART_RACK_UPLINKS)
            avoid[m->exception[i].a] = true;
    while (most > 0) {
        int worst = 0;
        most = 0;
        for (int r = 0; r < racks; r++) {
            int pairs = 0;
            for (int i = 0; i < m->exceptions && !avoid[r]; i++) {
                const struct exception *x = &m->exception[i];
                pairs += is_pair_of(x, r) && !avoid[x->a] && !avoid[x->b];
            }
            worst = pairs >= most ? r : worst;
            most = pairs > most ? pairs : most;
        }
        if (most > 0)
            avoid[worst] = true;
    }
    return avoid;
}

/* Mark hosts that an exception makes slower: of the host, its endpoints, its leaf, or both ends of
 * a pair. */
static void mark_slow(struct node_pool *p)
{
    const struct matrix *m = p->matrix;
    bool *slow = mem_calloc((size_t)m->topo.hosts + 1, sizeof(bool));

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        bool ends_told = x->part == PART_ENDPOINT || x->part == PART_PAIR;
        int ends[2] = {x->a, x->b};
        for (int e = 0; e < m->topo.endpoints; e++)
            if ((x->part == PART_LEAF || x->part == PART_RACK) && matrix_touches(m, x, e))
                slow[topo_at(&m->topo, e, LEVEL_HOST)] = true;
        for (int e = 0; e < 2; e++)
            if (x->part == PART_HOST && ends[e] >= 0)
                slow[ends[e]] = true;
            else if (ends_told && ends[e] >= 0)
                slow[topo_at(&m->topo, ends[e], LEVEL_HOST)] = true;
    }
    bool *avoid = racks_to_avoid(m);
    p->slow = mem_calloc((size_t)p->hosts + 1, sizeof(bool));
    for (int i = 0; i < p->hosts; i++) {
        int rack = node_pool_group(p, i, LEVEL_RACK);
        p->slow[i] = slow[p->host[i]] || (rack >= 0 && avoid[rack]);
    }
    free(avoid);
    free(slow);
}

static int take_hosts(struct node_pool *p, const int *host, int hosts, struct err *err)
{
    const struct topo *t = &p->matrix->topo;
    int count = host ? hosts : t->hosts;

    p->host = mem_calloc((size_t)count + 1, sizeof(int));
    p->row = mem_calloc((size_t)t->hosts + 1, sizeof(int));
    for (int h = 0; h < t->hosts; h++)
        p->row[h] = -1;
    for (int i = 0; i < count; i++) {
        int h = host ? host[i] : i;
        if (h < 0 || h >= t->hosts)
            return err_usage(err, "there is no host %d: the matrix has %d, from 0", h, t->hosts);
        if (p->row[h] >= 0)
            return err_usage(err, "host %.200s is listed twice", t->host[h].name);
        p->row[h] = p->hosts;
        p->host[p->hosts++] = h;
    }
    return 0;
}

int node_pool_make(struct node_pool *p, const struct matrix *m, const struct host_slots *of,
                   const int *host, int hosts, int per_host, struct err *err)
{
    *p = (struct node_pool){.matrix = m, .of = of, .asked = per_host};
    if (take_hosts(p, host, hosts, err) < 0)
        return -1;
    p->start = mem_calloc((size_t)p->hosts + 2, sizeof(int));
    for (int i = 0; i < p->hosts; i++) {
        int room = host_slots_room(of, p->host[i], per_host);
        p->start[i + 1] = p->start[i] + room;
        p->per_host = room > p->per_host ? room : p->per_host;
    }
    p->slots = p->start[p->hosts];
    p->endpoint = mem_calloc((size_t)p->slots + 1, sizeof(int));
    host_slots_deal(of, p->host, p->hosts, per_host, SPREAD_BLOCK, p->slots, p->endpoint);
    p->row_of = mem_calloc((size_t)m->topo.endpoints + 1, sizeof(int));
    for (int i = 0; i < p->hosts; i++)
        for (int s = p->start[i]; s < p->start[i + 1]; s++)
            p->row_of[p->endpoint[s]] = i;
    mark_slow(p);
    return 0;
}

void node_pool_free(struct node_pool *p)
{
    free(p->host);
    free(p->start);
    free(p->endpoint);
    free(p->slow);
    free(p->row);
    free(p->row_of);
    memset(p, 0, sizeof(*p));
}

/* Returns the number of different groups of the free hosts; 0 if a host's group is not visible. */
static int groups_at(const struct node_pool *p, int level)
{
    int most = p->matrix->topo.group[level].count, groups = 0;
    bool *seen = mem_calloc((size_t)most + 1, sizeof(bool));

    for (int i = 0; i < p->hosts; i++) {
        int g = node_pool_group(p, i, level);
        if (g < 0 && p->start[i] < p->start[i + 1]) {
            groups = 0;
            break;
        }
        if (g >= 0 && !seen[g]) {
            seen[g] = true;
            groups++;
        }
    }
    free(seen);
    return groups;
}

int node_pool_levels(const struct node_pool *p, int level[LEVEL_COUNT])
{
    static const int asked[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};
    int count[LEVEL_COUNT] = {0}, n = 0;

    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        int groups = groups_at(p, asked[i]), at = n;
        if (groups < 1 || groups >= p->hosts)
            continue; /* unknown, or each host has a group of its own */
        for (; at > 0 && count[at - 1] < groups; at--) {
            count[at] = count[at - 1];
            level[at] = level[at - 1];
        }
        count[at] = groups;
        level[at] = asked[i];
        n++;
    }
    return n;
}

int *node_pool_group_slots(const struct node_pool *p, int level, bool healthy)
{
    int *slots = mem_calloc((size_t)p->matrix->topo.group[level].count + 1, sizeof(int));

    for (int i = 0; i < p->hosts; i++)
        if (node_pool_group(p, i, level) >= 0 && !(healthy && p->slow[i]))
            slots[node_pool_group(p, i, level)] += node_pool_slots(p, i);
    return slots;
}

void node_pool_in_slot_order(const struct node_pool *p, int *order, int ranks)
{
    int *taken = mem_calloc((size_t)p->hosts + 1, sizeof(int));

    for (int r = 0; r < ranks; r++) {
        int i = p->row_of[order[r]];
        order[r] = p->endpoint[p->start[i] + taken[i]++];
    }
    free(taken);
}

struct near_key {
    int at[LEVEL_COUNT];
};

static int by_place(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct near_key));
}

int node_pool_peers(const struct node_pool *p, int tier)
{
    const struct topo *t = &p->matrix->topo;
    struct near_key *key = mem_calloc((size_t)p->slots + 1, sizeof(*key));
    int n = 0, most = 1, run = 0;

    for (int i = 0; i < p->slots; i++) {
        const int *at = t->endpoint[p->endpoint[i]].place.at;
        bool known = true;
        for (int l = 0; l < LEVEL_COUNT; l++) {
            bool asked = t->tier[tier].same & 1u << l;
            key[n].at[l] = asked ? at[l] : 0;
            known &= !asked || at[l] >= 0;
        }
        n += known;
    }
    qsort(key, (size_t)n, sizeof(*key), by_place);
    for (int i = 0; i < n; i++) {
        run = i && by_place(&key[i - 1], &key[i]) == 0 ? run + 1 : 1;
        most = run > most ? run : most;
    }
    free(key);
    return most - 1;
}

/* --- rows --- */

/* Sort keys of a host. */
struct host_key {
    int at[LEVEL_COUNT + 4], host;
};

static int by_key(const void *a, const void *b)
{
    const struct host_key *x = a, *y = b;

    for (int i = 0; i < LEVEL_COUNT + 4; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return x->host - y->host;
}

/* Number the groups of a level in order of appearance among the given hosts. */
static int *met(const struct node_pool *p, int level)
{
    int *order = mem_calloc((size_t)p->matrix->topo.group[level].count + 1, sizeof(int)), n = 0;

    for (int i = 0; i < p->hosts; i++) {
        int g = node_pool_group(p, i, level);
        if (g >= 0 && !order[g])
            order[g] = ++n;
    }
    return order;
}

static void keys_of(struct host_key *key, const struct node_pool *p, int level, enum row_how how)
{
    int levels[LEVEL_COUNT], n = node_pool_levels(p, levels), used = 0;

    if (how == ROW_HEALTHY)
        for (int i = 0; i < p->hosts; i++)
            key[i].at[used] = p->slow[i];
    used++;
    if (how != ROW_NEAR && level >= 0) {
        int *slots = node_pool_group_slots(p, level, how == ROW_HEALTHY);
        for (int i = 0; i < p->hosts; i++)
            key[i].at[used] =
                node_pool_group(p, i, level) < 0 ? 0 : -slots[node_pool_group(p, i, level)];
        free(slots);
    }
    used++;
    for (int k = n; k-- > 0; used++) {
        int *order = met(p, levels[k]);
        for (int i = 0; i < p->hosts; i++)
            key[i].at[used] =
                node_pool_group(p, i, levels[k]) < 0 ? 0 : order[node_pool_group(p, i, levels[k])];
        free(order);
    }
}

static void cut(struct row *r, const struct node_pool *p)
{
    r->first = mem_calloc((size_t)r->hosts + 1, sizeof(int));
    for (int i = 0; i < r->hosts; i++)
        if (i == 0 || (r->level >= 0 && node_pool_group(p, r->host[i], r->level) !=
                                            node_pool_group(p, r->host[i - 1], r->level)))
            r->first[r->boxes++] = i;
    r->first[r->boxes] = r->hosts;
}

void row_make(struct row *r, const struct node_pool *p, int level, enum row_how how, int within,
              int group)
{
    struct host_key *key = mem_calloc((size_t)p->hosts + 1, sizeof(*key));

    *r = (struct row){.level = level, .host = mem_calloc((size_t)p->hosts + 1, sizeof(int))};
    for (int i = 0; i < p->hosts; i++)
        key[i].host = i;
    keys_of(key, p, level, how);
    qsort(key, (size_t)p->hosts, sizeof(*key), by_key);
    for (int i = 0; i < p->hosts; i++)
        if (within < 0 || node_pool_group(p, key[i].host, within) == group)
            r->host[r->hosts++] = key[i].host;
    free(key);
    cut(r, p);
}

int row_slots(const struct row *r, const struct node_pool *p, int box)
{
    int from = box < 0 ? 0 : r->first[box], to = box < 0 ? r->hosts : r->first[box + 1], slots = 0;

    for (int i = from; i < to; i++)
        slots += node_pool_slots(p, r->host[i]);
    return slots;
}

int row_largest(const struct row *r, const struct node_pool *p)
{
    int most = 0;

    for (int b = 0; b < r->boxes; b++) {
        int slots = row_slots(r, p, b);
        most = slots > most ? slots : most;
    }
    return most;
}

bool row_again(const struct row *row, int i)
{
    const struct row *b = &row[i];
    bool again = false;

    for (const struct row *a = row; a < b && !again; a++)
        again = a->hosts == b->hosts && a->boxes == b->boxes &&
                !memcmp(a->host, b->host, (size_t)a->hosts * sizeof(int)) &&
                !memcmp(a->first, b->first, (size_t)a->boxes * sizeof(int));
    return again;
}

void row_free(struct row *r)
{
    free(r->host);
    free(r->first);
    memset(r, 0, sizeof(*r));
}

/* List the slots of the row in order, and the start of each box among them. */
static int *flatten(const struct row *r, const struct node_pool *p, int *begin)
{
    int *flat = mem_calloc((size_t)p->slots + 1, sizeof(int)), n = 0;

    for (int b = 0; b < r->boxes; b++) {
        begin[b] = n;
        for (int i = r->first[b]; i < r->first[b + 1]; i++)
            for (int s = p->start[r->host[i]]; s < p->start[r->host[i] + 1]; s++)
                flat[n++] = p->endpoint[s];
    }
    begin[r->boxes] = n;
    return flat;
}

struct box_room {
    int box, room;
};

static int by_room(const void *a, const void *b)
{
    const struct box_room *x = a, *y = b;

    return x->room != y->room ? y->room - x->room : x->box - y->box;
}

/* Order of the boxes: as in the row, or the most free slots first. */
static void turn_of(struct box_room *turn, const int *begin, const int *used, int boxes, bool roomy)
{
    for (int b = 0; b < boxes; b++)
        turn[b] = (struct box_room){b, begin[b + 1] - begin[b] - used[b]};
    if (roomy)
        qsort(turn, (size_t)boxes, sizeof(*turn), by_room);
}

bool row_fill(const struct row *r, const struct node_pool *p, const int *block, int blocks,
              int ranks, bool roomy, int *slot)
{
    int *begin = mem_calloc((size_t)r->boxes + 2, sizeof(int));
    int *used = mem_calloc((size_t)r->boxes + 1, sizeof(int));
    struct box_room *turn = mem_calloc((size_t)r->boxes + 1, sizeof(*turn));
    int *flat = flatten(r, p, begin), next = 0;

    for (int k = 0; k < blocks; k++) {
        turn_of(turn, begin, used, r->boxes, roomy && k > 0);
        for (int i = 0; i < r->boxes; i++) {
            int b = turn[i].box, room = turn[i].room;
            int left = (ranks - next) / block[k];
            int take = (room / block[k] < left ? room / block[k] : left) * block[k];
            memcpy(slot + next, flat + begin[b] + used[b], (size_t)take * sizeof(int));
            used[b] += take;
            next += take;
        }
    }
    free(begin);
    free(used);
    free(turn);
    free(flat);
    return next == ranks;
}

void row_fill_parts(const struct row *r, const struct node_pool *p, int unit,
                    const struct row_part *part, int parts, int *slot)
{
    int *begin = mem_calloc((size_t)r->boxes + 2, sizeof(int)), *flat = flatten(r, p, begin);

    for (int i = 0; i < parts; i++) {
        int take = part[i].units * unit;
        memcpy(slot, flat + begin[part[i].box], (size_t)take * sizeof(int));
        begin[part[i].box] += take;
        slot += take;
    }
    free(begin);
    free(flat);
}
