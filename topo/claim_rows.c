/* SPDX-License-Identifier: BSD-3-Clause */
/* claim_rows.c - the tables "claims" and "spines" of topology.json: groups of hosts by name. */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/groups.h"
#include "topo/topo_impl.h"

enum { NAME = 255, HOSTS_TEXT = 8 << 20 };

const char *const claim_columns[CLAIM_COLUMNS] = {"source", "level", "origin", "group", "hosts"};
const char *const spine_columns[SPINE_COLUMNS] = {"name", "source", "hosts"};

static json_t *hosts_json(char *const *host, int hosts)
{
    char *text = hostlist_fold(host, hosts);
    json_t *out = hosts ? json_string(text) : json_null();

    free(text);
    return out;
}

/* "spine+1" is a tier of switches above the spine. */
static json_t *level_json(const struct declared_group *c)
{
    return c->above ? json_sprintf("%s+%d", level_name[c->level], c->above)
                    : json_string(level_name[c->level]);
}

json_t *claim_row(const struct declared_group *c)
{
    return json_pack("[s, o, s, s, o]", source_name[c->source], level_json(c), c->origin, c->name,
                     hosts_json(c->host, c->hosts));
}

static int load_level(const struct topo_table *b, int col, int *level, int *above)
{
    const char *text = json_string_value(json_array_get(b->row, (size_t)col));
    size_t spine = strlen(level_name[LEVEL_SPINE]);

    *above = 0;
    *level = LEVEL_SPINE;
    if (!text || strncmp(text, level_name[LEVEL_SPINE], spine) != 0 || text[spine] != '+')
        return cell_name(b, col, level_name, LEVEL_COUNT, level);
    if (units_int(above, text + spine + 1, 1, GROUP_ABOVE_MAX, NULL) < 0)
        return cell_bad(b, col, "no tier of switches above the spine");
    return 0;
}

static int load_hosts(const struct topo_table *b, int col, char ***host, int *hosts)
{
    const char *text;

    *host = NULL;
    *hosts = 0;
    if (cell_text(b, col, HOSTS_TEXT, true, &text) < 0)
        return -1;
    if (text && hostlist_expand(host, hosts, text, b->err) < 0)
        return err_wrap(b->err, "%s: %s.rows[%zu]", b->path, b->name, b->at - 1);
    return 0;
}

int claim_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0;

    if (topo_table_open(&b, path, "claims", table, claim_columns, CLAIM_COLUMNS, err) < 0)
        return -1;
    while (topo_table_next(&b, CLAIM_COLUMNS, &rc)) {
        int source, level, above, hosts;
        const char *origin, *group;
        char **host;
        if (cell_name(&b, 0, source_name, SOURCE_COUNT, &source) < 0 ||
            load_level(&b, 1, &level, &above) < 0 || cell_text(&b, 2, NAME, false, &origin) < 0 ||
            cell_text(&b, 3, NAME, false, &group) < 0 || load_hosts(&b, 4, &host, &hosts) < 0)
            return -1;
        group_add(t, (enum source)source, (enum level)level, origin, group, host, hosts);
        t->declared_group[t->declared_groups - 1].above = above;
        hostlist_free(host, hosts);
    }
    return rc;
}

json_t *spine_row(const struct topo *t, int spine)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of)), n = 0, source = SOURCE_NONE;
    char **host = mem_calloc((size_t)t->hosts + 1, sizeof(*host));

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_SPINE] == spine) {
            of[t->endpoint[i].place.at[LEVEL_HOST]] = 1;
            source = t->endpoint[i].source[LEVEL_SPINE];
        }
    for (int h = 0; h < t->hosts; h++)
        if (of[h])
            host[n++] = t->host[h].name;
    json_t *row = json_pack("[s, s, o]", t->group[LEVEL_SPINE].name[spine], source_name[source],
                            hosts_json(host, n));
    free(host);
    free(of);
    return row;
}

static int load_spine(struct topo *t, int *of, struct topo_table *b)
{
    const char *name;
    int source, hosts, rc = 0;
    char **host;

    if (cell_text(b, 0, NAME, false, &name) < 0 ||
        cell_name(b, 1, source_name, SOURCE_COUNT, &source) < 0)
        return -1;
    if (topo_add_group(t, LEVEL_SPINE, name) != (int)b->at - 1)
        return cell_bad(b, 0, "there twice");
    if (load_hosts(b, 2, &host, &hosts) < 0)
        return -1;
    for (int i = 0; i < hosts && rc == 0; i++) {
        int h = topo_find_host(t, host[i]);
        if (h < 0 || of[h])
            rc = cell_bad(b, 2, h < 0 ? "with an unknown host" : "with a host of another spine");
        else
            of[h] = (int)b->at << 8 | source;
    }
    hostlist_free(host, hosts);
    return rc;
}

int spine_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of)), rc = 0; /* row << 8 | source */
    struct topo_table b;

    if (topo_table_open(&b, path, "spines", table, spine_columns, SPINE_COLUMNS, err) < 0)
        rc = -1;
    while (rc == 0 && topo_table_next(&b, SPINE_COLUMNS, &rc))
        rc = load_spine(t, of, &b);
    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        int at = of[t->endpoint[i].place.at[LEVEL_HOST]];
        t->endpoint[i].place.at[LEVEL_SPINE] = at ? (at >> 8) - 1 : -1;
        t->endpoint[i].source[LEVEL_SPINE] = (unsigned char)(at & 0xff);
    }
    free(of);
    return rc;
}
