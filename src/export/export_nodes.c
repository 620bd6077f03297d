/* SPDX-License-Identifier: BSD-3-Clause */
/* export_nodes.c - choice and names of endpoints and hosts in an export. */
#include "export/export_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/yaml.h"

/* Index of each host within its rack. */
static int count_in_racks(const struct topo *t, int *in_rack, struct err *err)
{
    int *seen = mem_calloc((size_t)t->group[LEVEL_RACK].count + 1, sizeof(*seen)), rc = 0;
    bool *done = mem_calloc((size_t)t->hosts + 1, sizeof(*done));

    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        const int *at = t->endpoint[i].place.at;
        if (at[LEVEL_RACK] < 0)
            rc = err_usage(err, "--hosts-per-rack: the rack of endpoint %d is not known", i);
        else if (!done[at[LEVEL_HOST]]) {
            done[at[LEVEL_HOST]] = true;
            in_rack[at[LEVEL_HOST]] = seen[at[LEVEL_RACK]]++;
        }
    }
    free(seen);
    free(done);
    return rc;
}

static int check_limit(const struct export_nodes *n, const struct export_limit *l, struct err *err)
{
    char size[UNITS_TEXT] = "";
    double pairs = (double)n->count * (n->count - 1);

    if (n->count < l->min)
        return err_usage(err, "%d node%s: %s needs %d", n->count, n->count == 1 ? "" : "s",
                         l->format, l->min);
    if (n->count <= l->max)
        return 0;
    if (l->pair_bytes > 0)
        units_bytes_text(size, pairs * l->pair_bytes);
    return err_usage(
        err,
        "%d nodes have %.0f pairs, as %s %s: more than %d nodes are not written; choose "
        "--per host, fewer --racks or --hosts-per-rack",
        n->count, pairs, l->format, size, l->max);
}

static void add_node(struct export_nodes *n, const struct topo *t, int id, bool endpoints,
                     char separator)
{
    const struct endpoint *e = &t->endpoint[id];
    const char *host = t->host[e->place.at[LEVEL_HOST]].name;
    int names = n->count;

    MEM_PUSH(n->id, n->count) = id;
    MEM_PUSH(n->name, names) =
        endpoints ? mem_printf("%s%c%d", host, separator, e->local) : mem_strdup(host);
}

int export_nodes_choose(struct export_nodes *n, const struct export_run *e,
                        const struct export_limit *limit, struct err *err)
{
    const struct topo *t = &e->m->topo;
    int *in_rack = mem_calloc((size_t)t->hosts + 1, sizeof(*in_rack)), rc = 0;
    int most = e->ask->hosts_per_rack;
    bool *taken = mem_calloc((size_t)t->hosts + 1, sizeof(*taken)), all = e->ask->endpoints;

    memset(n, 0, sizeof(*n));
    if (most)
        rc = count_in_racks(t, in_rack, err);
    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        int host = t->endpoint[i].place.at[LEVEL_HOST];
        if ((most && in_rack[host] >= most) || (!all && taken[host]))
            continue;
        taken[host] = true;
        add_node(n, t, i, all, limit->separator);
    }
    free(in_rack);
    free(taken);
    return rc < 0 ? -1 : check_limit(n, limit, err);
}

void export_nodes_free(struct export_nodes *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    free(n->id);
    memset(n, 0, sizeof(*n));
}

struct by_place {
    const struct export_nodes *nodes;
    const struct topo *t;
    const enum level *level;
    int levels;
};

static int by_place(const void *a, const void *b, void *arg)
{
    const struct by_place *o = arg;
    int i = *(const int *)a, k = *(const int *)b;
    const int *p = o->t->endpoint[o->nodes->id[i]].place.at;
    const int *q = o->t->endpoint[o->nodes->id[k]].place.at;

    for (int l = 0; l < o->levels; l++)
        if (p[o->level[l]] != q[o->level[l]])
            return p[o->level[l]] < q[o->level[l]] ? -1 : 1;
    return i < k ? -1 : i > k;
}

int *export_nodes_order(const struct export_nodes *n, const struct topo *t, const enum level *level,
                        int levels)
{
    int *order = mem_calloc((size_t)n->count + 1, sizeof(*order));

    for (int i = 0; i < n->count; i++)
        order[i] = i;
    qsort_r(order, (size_t)n->count, sizeof(*order), by_place,
            &(struct by_place){n, t, level, levels});
    return order;
}

void export_nodes_put(const struct export_run *e, const struct export_nodes *n)
{
    for (int i = 0; e->second && i < n->count; i++)
        fprintf(e->second, "%s\n", n->name[i]);
}

int export_complete(const struct export_run *e, const int *of, const char *why, struct err *err)
{
    enum { SHOWN = 120 };
    const struct export_ask *ask = e->ask;
    const struct topo *t = &e->m->topo;
    char **name = mem_calloc((size_t)t->hosts + 1, sizeof(*name));
    int names = 0, rc = 0;

    for (int h = 0; h < t->hosts; h++)
        if (of[h] < 0)
            name[names++] = t->host[h].name;
    char *list = hostlist_fold(name, names);
    char *text = mem_printf("%d of %d hosts %s not in it, because %s: %.*s%s", names, t->hosts,
                            units_plural(names, "is", "are"), why, SHOWN, list,
                            strlen(list) > SHOWN ? "..." : "");
    if (names && !ask->partial)
        rc = err_set(err, "%s; --partial writes it all the same", text);
    if (names && ask->partial && ask->left) {
        free(*ask->left);
        *ask->left = mem_strdup(text);
    }
    free(text);
    free(list);
    free(name);
    return rc;
}

void export_yaml(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    yaml_put(out, text);
    fputs(after, out);
}

char *export_xml(const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    char *out = mem_strdup("");

    while (*text) {
        size_t plain = strcspn(text, special);
        const char *at = text[plain] ? strchr(special, text[plain]) : NULL;
        out = mem_append(out, "%.*s%s", (int)plain, text, at ? entity[at - special] : "");
        text += plain + (at != NULL);
    }
    return out;
}
