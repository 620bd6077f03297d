/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/placement.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"

enum { FILE_MAX = 64 << 20 };

struct state {
    const struct topo *topo;
    int *order, ranks;
    int *rank_of; /* per endpoint: rank + 1; 0 while free */
    const char *where;
};

static int take(struct state *s, int endpoint, struct err *err)
{
    if (s->rank_of[endpoint])
        return err_data(err, "%s: endpoint %d is taken by rank %d already", s->where, endpoint,
                        s->rank_of[endpoint] - 1);
    MEM_PUSH(s->order, s->ranks) = endpoint;
    s->rank_of[endpoint] = s->ranks;
    return 0;
}

/* local >= 0: that endpoint; else the first `slots` free ones (-1: all of the host, which must be
 * free). */
static int take_host(struct state *s, const char *name, int local, int slots, struct err *err)
{
    int host = topo_find_host(s->topo, name), taken = 0, seen = 0;

    if (host < 0)
        return err_data(err, "%s: host \"%s\" is not in the matrix", s->where, name);
    for (int i = 0; i < s->topo->endpoints; i++) {
        const struct endpoint *e = &s->topo->endpoint[i];
        if (e->place.at[LEVEL_HOST] != host)
            continue;
        seen++;
        bool want = local >= 0 ? e->local == local : slots < 0 || (taken < slots && !s->rank_of[i]);
        if (want && take(s, i, err) < 0)
            return -1;
        taken += want;
    }
    if (local >= 0 && !taken)
        return err_data(err, "%s: host \"%s\" has no endpoint %d, it has %d", s->where, name, local,
                        seen);
    if (slots > taken)
        return err_data(err, "%s: host \"%s\" has %d free endpoints, not %d", s->where, name, taken,
                        slots);
    return 0;
}

/* Parse the second word: "slots=2", "3", or nothing; or ":2" at the end of the first word. */
static int parse_count(const struct state *s, char *name, const char *second, int *local,
                       int *slots, struct err *err)
{
    char *colon = strrchr(name, ':');
    struct err why;
    int rc = 0;

    *local = *slots = -1;
    if (second && !strncmp(second, "slots=", 6))
        rc = units_int(slots, second + 6, 1, 1 << 20, &why);
    else if (second)
        rc = units_int(local, second, 0, 1 << 20, &why);
    else if (colon) {
        rc = units_int(slots, colon + 1, 1, 1 << 20, &why);
        *colon = '\0';
    }
    return rc < 0 ? err_data(err, "%s: %s", s->where, why.text) : 0;
}

static int parse_line(struct state *s, char *line, struct err *err)
{
    char *rest = NULL, **hosts, *first, *second;
    int count, local, slots, endpoint;
    struct err why;

    line[strcspn(line, "#\r\n")] = '\0';
    first = strtok_r(line, " \t", &rest);
    second = first ? strtok_r(NULL, " \t", &rest) : NULL;
    if (!first)
        return 0;
    if (second && strtok_r(NULL, " \t", &rest))
        return err_data(err, "%s: a host and one word after it are all that is understood",
                        s->where);
    if (!second && first[strspn(first, "0123456789")] == '\0' &&
        topo_find_host(s->topo, first) < 0) {
        if (units_int(&endpoint, first, 0, s->topo->endpoints - 1, &why) < 0)
            return err_data(err, "%s: endpoint %s", s->where, why.text);
        return take(s, endpoint, err);
    }
    if (parse_count(s, first, second, &local, &slots, err) < 0)
        return -1;
    if (hostlist_expand(&hosts, &count, first, &why) < 0)
        return err_data(err, "%s: %s", s->where, why.text);
    int rc = 0;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = take_host(s, hosts[i], local, slots, err);
    hostlist_free(hosts, count);
    return rc;
}

int placement_parse(int **order, int *ranks, const struct topo *t, char *text, const char *path,
                    struct err *err)
{
    struct state s = {.topo = t, .rank_of = mem_calloc((size_t)t->endpoints, sizeof(int))};
    int rc = 0, number = 0;

    for (char *line; rc == 0 && (line = strsep(&text, "\n")) != NULL;) {
        char *where = mem_printf("%s:%d", path, ++number);
        s.where = where;
        rc = parse_line(&s, line, err);
        free(where);
    }
    if (rc == 0 && s.ranks == 0)
        rc = err_data(err, "%s: no host and no endpoint is named", path);
    free(s.rank_of);
    if (rc < 0) {
        free(s.order);
        return -1;
    }
    *order = s.order;
    *ranks = s.ranks;
    return 0;
}

static int placement_load(int **order, int *ranks, const struct topo *t, const char *path,
                          struct err *err)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    int rc = placement_parse(order, ranks, t, text, path, err);
    free(text);
    return rc;
}

/* --- endpoints by host --- */

void host_slots_make(struct host_slots *s, const struct topo *t)
{
    int *fill = mem_calloc((size_t)t->hosts + 1, sizeof(int));

    s->first = mem_calloc((size_t)t->hosts + 1, sizeof(int));
    s->endpoint = mem_calloc((size_t)t->endpoints + 1, sizeof(int));
    for (int i = 0; i < t->endpoints; i++)
        s->first[topo_at(t, i, LEVEL_HOST) + 1]++;
    for (int h = 0; h < t->hosts; h++)
        s->first[h + 1] += s->first[h];
    memcpy(fill, s->first, (size_t)t->hosts * sizeof(int));
    for (int i = 0; i < t->endpoints; i++)
        s->endpoint[fill[topo_at(t, i, LEVEL_HOST)]++] = i;
    free(fill);
}

void host_slots_free(struct host_slots *s)
{
    free(s->first);
    free(s->endpoint);
    *s = (struct host_slots){NULL, NULL};
}

void host_slots_keep(struct host_slots *s, int hosts, const uint64_t *mask)
{
    int kept = 0;

    for (int h = 0, from = 0; h < hosts; h++) { /* first[h] already has the new value */
        int to = s->first[h + 1];
        for (int i = from; i < to; i++)
            if (mask[h] >> (i - from) & 1)
                s->endpoint[kept++] = s->endpoint[i];
        from = to;
        s->first[h + 1] = kept;
    }
}

int host_slots_deal(const struct host_slots *s, const int *host, int hosts, int per_host,
                    int spread, int ranks, int *order)
{
    int n = 0, turns = 1;

    for (int i = 0; i < hosts && spread == SPREAD_CYCLIC; i++) {
        int room = host_slots_room(s, host[i], per_host);
        turns = room > turns ? room : turns;
    }
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < hosts; i++) {
            int room = host_slots_room(s, host[i], per_host);
            int from = spread == SPREAD_CYCLIC ? turn : 0;
            int to = spread == SPREAD_CYCLIC && turn + 1 < room ? turn + 1 : room;
            for (int k = from; k < to && n < ranks; k++)
                order[n++] = s->endpoint[s->first[host[i]] + k];
        }
    return n;
}

/* --- nodes in a row --- */

struct row {
    const struct topo *topo;
    struct host_slots of;
    int *host, hosts; /* in the order used by ranks */
};

static int room(const struct row *r, int host)
{
    return host_slots_room(&r->of, host, 0);
}

static int take_list(struct row *r, const char *list, struct err *err)
{
    char **name;
    struct err why;
    int count, rc = 0;
    bool *taken;

    if (hostlist_expand(&name, &count, list, &why) < 0)
        return err_usage(err, "--nodes: %s", why.text);
    taken = mem_calloc((size_t)r->topo->hosts + 1, sizeof(bool));
    for (int i = 0; rc == 0 && i < count; i++) {
        int host = topo_find_host(r->topo, name[i]);
        if (host < 0)
            rc = err_usage(err, "--nodes: node \"%s\" is not among the %d of the matrix (%s .. %s)",
                           name[i], r->topo->hosts, r->topo->host[0].name,
                           r->topo->host[r->topo->hosts - 1].name);
        else if (taken[host])
            rc = err_usage(err, "--nodes: node \"%s\" is listed twice", name[i]);
        else {
            taken[host] = true;
            MEM_PUSH(r->host, r->hosts) = host;
        }
    }
    free(taken);
    hostlist_free(name, count);
    return rc;
}

static void take_all(struct row *r)
{
    for (int h = 0; h < r->topo->hosts; h++)
        MEM_PUSH(r->host, r->hosts) = h;
}

/* Nodes of each rack, in the order of the row. */
struct rack {
    int *host, hosts, used;
};

static int rack_of(const struct row *r, int host)
{
    return room(r, host) ? r->topo->endpoint[r->of.endpoint[r->of.first[host]]].place.at[LEVEL_RACK]
                         : -1;
}

static int by_rack(struct rack *rack, const struct row *r, struct err *err)
{
    for (int i = 0; i < r->hosts; i++) {
        int k = rack_of(r, r->host[i]);
        if (k < 0)
            return err_usage(err, "--segment: the rack of node \"%s\" is not known",
                             r->topo->host[r->host[i]].name);
        MEM_PUSH(rack[k].host, rack[k].hosts) = r->host[i];
    }
    return 0;
}

/* Take `segment` nodes of a rack, then as many of the next, cycling over the racks until `ranks`
 * fit (0: until no rack has that many left).  Returns the number of segments; *fits: endpoints in
 * them. */
static int deal_segments(struct row *r, struct rack *rack, int racks, int segment, int ranks,
                         int *fits)
{
    int segments = 0, idle = 0;

    *fits = r->hosts = 0;
    for (int k = 0; idle < racks && (ranks == 0 || *fits < ranks); k = (k + 1) % racks) {
        struct rack *from = &rack[k];
        if (from->hosts - from->used < segment) {
            idle++;
            continue;
        }
        for (int i = 0; i < segment; i++, from->used++) {
            r->host[r->hosts++] = from->host[from->used];
            *fits += room(r, from->host[from->used]);
        }
        segments++;
        idle = 0;
    }
    return segments;
}

static int take_segments(struct row *r, int segment, int ranks, struct err *err)
{
    int racks = r->topo->group[LEVEL_RACK].count, fits = 0, segments = 0;
    struct rack *rack = mem_calloc((size_t)racks + 1, sizeof(*rack));
    int rc = by_rack(rack, r, err);

    if (rc == 0)
        segments = deal_segments(r, rack, racks, segment, ranks, &fits);
    if (rc == 0 && (fits < ranks || segments == 0))
        rc = err_usage(err,
                       "--segment: the racks have room for %d segments of %d nodes, which hold %d "
                       "ranks, and the job has %d",
                       segments, segment, fits, ranks);
    for (int k = 0; k < racks; k++)
        free(rack[k].host);
    free(rack);
    return rc;
}

/* A row without a node list ends with the job. */
static void cut(struct row *r, int ranks)
{
    int fits = 0;

    for (int i = 0; ranks > 0 && i < r->hosts; i++) {
        fits += room(r, r->host[i]);
        if (fits >= ranks)
            r->hosts = i + 1;
    }
}

static int deal_nodes(int **order, int *given, const struct topo *t, const struct placement *p,
                      int ranks, struct err *err)
{
    struct row r = {.topo = t};
    int rc = 0;

    host_slots_make(&r.of, t);
    if (p->nodes)
        rc = take_list(&r, p->nodes, err);
    else
        take_all(&r);
    if (rc == 0 && p->segment > 0)
        rc = take_segments(&r, p->segment, ranks, err);
    if (rc == 0 && !p->nodes)
        cut(&r, ranks);
    if (rc == 0) {
        *order = mem_calloc((size_t)t->endpoints + 1, sizeof(int));
        *given = host_slots_deal(&r.of, r.host, r.hosts, 0, p->spread, t->endpoints, *order);
    }
    free(r.host);
    host_slots_free(&r.of);
    if (rc == 0 && *given < ranks && p->nodes) {
        rc = err_usage(err, "--nodes: %s has %d endpoints, and the job has %d ranks", p->nodes,
                       *given, ranks);
        free(*order);
        *order = NULL;
    }
    return rc;
}

int placement_make(int **order, int *given, const struct topo *t, const struct placement *p,
                   int ranks, struct err *err)
{
    *order = NULL;
    *given = t->endpoints;
    if (p->order && (p->nodes || p->segment || p->spread))
        return err_usage(err, "--order says where each rank is; --nodes, --segment and --spread "
                              "say it another way");
    if (p->order)
        return placement_load(order, given, t, p->order, err);
    if (!p->nodes && !p->segment && !p->spread)
        return 0;
    return deal_nodes(order, given, t, p, ranks, err);
}

/* Returns the number of racks that hold these nodes of a preset, named like "r03n17"
 * (fabric_topo). */
static int racks_named(const char *nodes)
{
    char **name;
    int count, racks = 0;

    if (hostlist_expand(&name, &count, nodes, NULL) < 0)
        return 0; /* placement_make() gives the reason */
    for (int i = 0; i < count; i++) {
        int rack = -1;
        if (sscanf(name[i], "r%4dn", &rack) == 1 && rack >= racks)
            racks = rack + 1;
    }
    hostlist_free(name, count);
    return racks;
}

int placement_racks(const struct placement *p, const struct fabric *f, int ranks)
{
    int hosts = f->hosts_per_rack > 0 ? f->hosts_per_rack : 1, segment = p->segment;
    int per =
        f->gpus_per_host * (segment > 0 && segment < hosts ? hosts / segment * segment : hosts);

    if (p->nodes)
        return racks_named(p->nodes);
    return ranks > 0 && per > 0 ? (ranks + per - 1) / per : 0;
}
