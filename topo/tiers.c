/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "topo/topo.h"

static bool shares(unsigned same, const struct place *a, const struct place *b)
{
    for (; same; same &= same - 1) {
        int l = __builtin_ctz(same);
        if (a->at[l] < 0 || a->at[l] != b->at[l])
            return false;
    }
    return true;
}

int topo_tier(const struct tier_rule *tier, int tiers, const struct place *a, const struct place *b)
{
    for (int i = 0; i < tiers; i++)
        if (shares(tier[i].same, a, b))
            return i;
    return tiers - 1;
}

/* Does this level join endpoints that no tier so far joins?  Each endpoint is compared with the
 * first one of its group: enough to see that a level adds something, in O(n). */
static bool adds_pairs(const struct topo *t, enum level level)
{
    int count = t->group[level].count, found = 0;
    int *first = mem_calloc((size_t)count + 1, sizeof(*first)); /* id + 1 */

    for (int i = 0; i < t->endpoints && !found; i++) {
        int g = t->endpoint[i].place.at[level];
        if (g < 0)
            continue;
        if (!first[g]) {
            first[g] = i + 1;
            continue;
        }
        const struct place *a = &t->endpoint[first[g] - 1].place, *b = &t->endpoint[i].place;
        found = 1;
        for (int k = 0; k < t->tiers; k++)
            found = found && !shares(t->tier[k].same, a, b);
    }
    free(first);
    return found;
}

static void add_tier(struct topo *t, const char *name, unsigned same)
{
    struct tier_rule *r = &t->tier[t->tiers++];

    snprintf(r->name, sizeof(r->name), "%s", name);
    r->same = same;
}

static const char *host_tier(const struct topo *t)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].kind == ENDPOINT_CPU)
            return "shm";
    return t->group[LEVEL_DOMAIN].count ? "nvlink" : "host";
}

static const char *rest_tier(const struct topo *t)
{
    bool tcp = t->nics > 0;

    for (int i = 0; i < t->nics; i++)
        tcp = tcp && !t->nic[i].rdma && t->nic[i].layer == LINK_ETHERNET;
    return tcp ? "tcp" : "fabric";
}

void topo_default_tiers(struct topo *t)
{
    static const struct {
        enum level level;
        const char *name; /* NULL: host_tier() */
    } steps[] = {{LEVEL_HOST, NULL},
                 {LEVEL_DOMAIN, "mnnvl"},
                 {LEVEL_LEAF, "rail"},
                 {LEVEL_RACK, "rack"},
                 {LEVEL_SPINE, "spine"}};

    memset(t->tier, 0, sizeof(t->tier));
    t->tiers = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (adds_pairs(t, steps[i].level))
            add_tier(t, steps[i].name ? steps[i].name : host_tier(t), 1u << steps[i].level);
    add_tier(t, rest_tier(t), 0);
}

int topo_text_check(const char *text, size_t max, const char *where, struct err *err)
{
    size_t len = text ? strlen(text) : 0;

    if (!text)
        return err_data(err, "%s: no text", where);
    if (!len || len > max)
        return err_data(err, "%s: a text of %zu characters where 1..%zu are possible", where, len,
                        max);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)) /* C0, C1 */
            return err_data(err, "%s: a control character (0x%02x) at position %td", where, *c,
                            (const char *)c - text);
    json_t *utf8 = json_string(text); /* what cannot be saved is not taken */
    json_decref(utf8);
    return utf8 ? 0 : err_data(err, "%s: a text that is not UTF-8", where);
}

int topo_same_read(unsigned *mask, const json_t *from, const char *where, struct err *err)
{
    *mask = 0;
    if (!json_is_array(from))
        return err_data(err, "%s: \"same\" is not a list of levels", where);
    for (size_t i = 0; i < json_array_size(from); i++) {
        const char *name = json_string_value(json_array_get(from, i));
        int level = name ? level_find(name) : -1;
        if (level < 0 || (*mask >> level & 1))
            return err_data(err, "%s: same[%zu] \"%.60s\" is %s", where, i, name ? name : "",
                            level < 0 ? "not host, domain, leaf, rack, rail or spine"
                                      : "there twice");
        *mask |= 1u << level;
    }
    return 0;
}

json_t *topo_same_json(unsigned mask)
{
    json_t *same = json_array();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (mask >> l & 1)
            json_array_append_new(same, json_string(level_name[l]));
    return same;
}
