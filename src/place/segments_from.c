/* SPDX-License-Identifier: BSD-3-Clause */
#include "place/segments_from.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/groups.h"
#include "topo/sched/slurm.h"

static const enum level finest[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF};
enum { FINEST = sizeof(finest) / sizeof(*finest) };

static int take_addr(struct segments *s, const struct self_report *list, int count, struct err *err)
{
    int o = -1;

    for (int i = 0; i < count; i++) {
        const struct self_report *t = &list[i];
        struct slurm_addr a;
        if (!t->addr || !t->pattern)
            continue;
        int rc = slurm_addr_parse(&a, t->addr, t->pattern, t->node, err);
        const struct slurm_addr_part *above = rc == 0 ? slurm_addr_above(&a) : NULL;
        if (above && o < 0)
            o = segments_add_opinion(s, "SLURM_TOPOLOGY_ADDR");
        if (above)
            segments_say(s, o, i, above->text);
        slurm_addr_free(&a);
        if (rc < 0)
            return err_wrap(err, "%.80s", t->node);
    }
    return 0;
}

int segments_from_told(struct segments *s, const struct self_report *list, int count,
                       struct err *err)
{
    int nvml = -1, label = -1;

    for (int i = 0; i < count; i++)
        segments_add_node(s, list[i].node);
    for (int i = 0; i < count; i++)
        if (list[i].nvlink) {
            nvml = nvml < 0 ? segments_add_opinion(s, "NVML") : nvml;
            segments_say(s, nvml, i, list[i].nvlink);
        }
    for (int i = 0; i < count; i++)
        if (list[i].label) {
            label = label < 0 ? segments_add_opinion(s, "label") : label;
            segments_say(s, label, i, list[i].label);
        }
    return take_addr(s, list, count, err);
}

/* group[] of each host of t, -1 not known. */
static void say_all(struct segments *s, const struct topo *t, const char *who, const int *of,
                    char *const *name)
{
    int o = -1;

    for (int i = 0; i < s->nodes; i++) {
        int host = topo_find_host(t, s->node[i]);
        if (host < 0 || of[host] < 0)
            continue;
        if (o < 0)
            o = segments_add_opinion(s, who);
        segments_say(s, o, i, name[of[host]]);
    }
}

/* Do two hosts share a group? */
static bool groups_hosts(const int *of, int hosts, int groups)
{
    int *held = mem_calloc((size_t)groups + 1, sizeof(*held));
    bool found = false;

    for (int h = 0; h < hosts; h++)
        found = found || (of[h] >= 0 && ++held[of[h]] > 1);
    free(held);
    return found;
}

/* What the file's coordinates say; which source that is from, or -1. */
static int from_places(struct segments *s, const struct topo *t, const char *name)
{
    for (int k = 0; k < FINEST; k++) {
        char **group;
        int groups, source = -1;
        for (int i = 0; i < t->endpoints && source < 0; i++)
            if (t->endpoint[i].place.at[finest[k]] >= 0)
                source = t->endpoint[i].source[finest[k]];
        if (source < 0)
            continue;
        int *of = groups_of_hosts(t, finest[k], &group, &groups);
        bool good = groups_hosts(of, t->hosts, groups);
        if (good) {
            char *who = mem_printf("%s (%s)", name, level_name[finest[k]]);
            say_all(s, t, who, of, group);
            free(who);
        }
        hostlist_free(group, groups);
        free(of);
        if (good)
            return source;
    }
    return -1;
}

static int rank_of(enum level level)
{
    for (int k = 0; k < FINEST; k++)
        if (finest[k] == level)
            return k;
    return FINEST;
}

/* A source speaks of several levels: its finest counts. */
static bool has_finer(const struct group_set *set, int count, int i)
{
    for (int k = 0; k < count; k++)
        if (set[k].source == set[i].source && rank_of(set[k].level) < rank_of(set[i].level))
            return true;
    return false;
}

void segments_from_topo(struct segments *s, const struct topo *t, const char *name)
{
    int places = from_places(s, t, name), count;
    struct group_set *set = group_sets(t, &count);

    for (int i = 0; i < count; i++) {
        if ((int)set[i].source == places || rank_of(set[i].level) == FINEST || set[i].above ||
            has_finer(set, count, i))
            continue;
        int *of = group_set_of(&set[i], t);
        char **group = mem_calloc((size_t)set[i].groups + 1, sizeof(*group));
        char *who = mem_printf("%s (%s)", set[i].origin, level_name[set[i].level]);
        for (int k = 0; k < set[i].groups; k++)
            group[k] = set[i].group[k]->name;
        say_all(s, t, who, of, group);
        free(who);
        free(group);
        free(of);
    }
    group_sets_free(set, count);
}
