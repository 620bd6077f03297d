/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/placement.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"

enum { FILE_MAX = 64 << 20 };

struct state {
    const struct topo *topo;
    int *order, ranks;
    int *rank_of; /* by endpoint: rank + 1, 0 while free */
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

/* local >= 0: that endpoint; else the first `slots` free ones (-1: all, and none may be taken). */
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

/* The second word: "slots=2", "3", or nothing; or ":2" at the end of the first. */
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

int placement_load(int **order, int *ranks, const struct topo *t, const char *path, struct err *err)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    int rc = placement_parse(order, ranks, t, text, path, err);
    free(text);
    return rc;
}
