/* SPDX-License-Identifier: BSD-3-Clause */
/* parts_place.c - place and name of a part, the facts missing for them, and counters of its
 * devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "measure/taint.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "verdict/parts_impl.h"

const char *const confidence_name[CONFIDENCE_COUNT] = {"low", "medium", "high"};

/* --- place of a part --- */

/* Returns the first endpoint of a group at a level; -1: the group is empty. */
static int first_in(const struct topo *t, int level, int group)
{
    for (int i = 0; i < t->endpoints; i++)
        if (topo_at(t, i, level) == group)
            return i;
    return -1;
}

/* Keep the coordinates that all endpoints of the group have in common. */
static void place_group(struct part_place *p, const struct topo *t, int level, int group)
{
    int first = first_in(t, level, group);

    for (int l = 0; l < LEVEL_COUNT; l++) {
        p->at[l] = first < 0 ? -1 : topo_at(t, first, l);
        for (int i = 0; i < t->endpoints && p->at[l] >= 0; i++)
            if (topo_at(t, i, level) == group && topo_at(t, i, l) != p->at[l])
                p->at[l] = -1;
    }
    p->at[level] = group;
    p->host = p->at[LEVEL_HOST];
    if (level == LEVEL_HOST && first >= 0)
        p->gpu = t->endpoint[first].gpu;
}

static struct part_place place_of(const struct topo *t, enum part part, int which)
{
    struct part_place p = {.endpoint = -1, .host = -1, .nic = -1, .gpu = -1};

    if (part_level[part] >= 0) {
        place_group(&p, t, part_level[part], which);
        return p;
    }
    const struct endpoint *e = &t->endpoint[which];
    p.endpoint = which;
    p.nic = e->nic;
    p.gpu = e->gpu;
    memcpy(p.at, e->place.at, sizeof(p.at));
    p.host = p.at[LEVEL_HOST];
    return p;
}

static const char *group_name(const struct topo *t, const struct part_place *p, enum level level)
{
    return p->at[level] < 0 ? NULL : t->group[level].name[p->at[level]];
}

/* --- position in words, and missing names --- */

char *parts_also(char *text, const char *separator, char *more)
{
    text = mem_append(text, "%s%s", *text && *more ? separator : "", more);
    free(more);
    return text;
}

static bool is_device(const struct part_row *r)
{
    return r->kind == PART_KIND_GPU || r->kind == PART_KIND_NIC || r->kind == PART_KIND_CABLE ||
           r->kind == PART_KIND_LINK || r->kind == PART_KIND_HOST || r->kind == PART_KIND_CPU;
}

static bool has_cable(const struct part_row *r)
{
    return r->kind == PART_KIND_NIC || r->kind == PART_KIND_CABLE;
}

static char *where_end(const struct topo *t, const struct part_row *r, const struct part_place *p)
{
    const struct gpu *g = p->gpu >= 0 ? &t->gpu[p->gpu] : NULL;
    const struct nic *n = p->nic >= 0 && has_cable(r) ? &t->nic[p->nic] : NULL;
    const char *rack = group_name(t, p, LEVEL_RACK), *leaf = group_name(t, p, LEVEL_LEAF);
    char *text = mem_strdup(rack && r->kind != PART_KIND_RACK ? rack : "");

    if (is_device(r) && g && g->tray >= 0)
        text = parts_also(text, ", ", mem_printf("tray %d", g->tray));
    if (is_device(r) && g && g->slot >= 0)
        text = parts_also(text, ", ", mem_printf("slot %d", g->slot));
    if (is_device(r) && g && *g->chassis)
        text = parts_also(text, ", ", mem_printf("chassis %s", g->chassis));
    if (r->kind == PART_KIND_GPU && g && *g->uuid)
        text = parts_also(text, ", ", mem_strdup(g->uuid));
    if (n && *n->leaf)
        text = parts_also(text, ", ",
                          mem_printf("%s port %s", n->leaf, *n->leaf_port ? n->leaf_port : "?"));
    else if (leaf && has_cable(r))
        text = parts_also(text, ", ", mem_strdup(leaf));
    return text;
}

/* List each name that is not visible with the source that would provide it. */
static char *missing_of(const struct topo *t, const struct part_row *r)
{
    const struct part_place *p = &r->place[0];
    const struct gpu *g = p->gpu >= 0 ? &t->gpu[p->gpu] : NULL;
    const struct nic *n = p->nic >= 0 ? &t->nic[p->nic] : NULL;
    const bool gpus = t->endpoint[0].kind == ENDPOINT_GPU;
    char *text = mem_strdup("");

    if (is_device(r) && !group_name(t, p, LEVEL_RACK))
        text = parts_also(text, "; ", mem_strdup("rack (--labels or --slurm)"));
    if (is_device(r) && gpus && !(g && g->tray >= 0))
        text = parts_also(text, "; ", mem_strdup("tray and slot (NVML: railgauge-probe discover)"));
    if (r->kind == PART_KIND_GPU && !(g && *g->uuid))
        text = parts_also(text, "; ", mem_strdup("UUID (NVML or --smi-xml)"));
    if (has_cable(r) && !n)
        text = parts_also(text, "; ", mem_strdup("NIC (sysfs: railgauge-probe discover)"));
    if (has_cable(r) && !(n && *n->leaf))
        text = parts_also(text, "; ", mem_strdup("switch port (--ibnet or --lldp)"));
    return text;
}

void parts_place(struct part_row *r, const struct topo *t, const struct exception *e)
{
    r->place[0] = place_of(t, e->part, e->a);
    r->places = 1;
    if (part_is_two(e->part))
        r->place[r->places++] = place_of(t, e->part, e->b);
    r->name = mem_strdup(matrix_title(t, r->kind, e, (char[MATRIX_PART]){0}));
    r->where = where_end(t, r, &r->place[0]);
    if (r->places == 2)
        r->where = parts_also(r->where, " / ", where_end(t, r, &r->place[1]));
    r->missing = missing_of(t, r);
}

/* --- counters --- */

/* True if the subject of a tainted point ("endpoint 5 (node01:2)", "mlx5_2 port 1 on node03")
 * belongs to the part. */
static bool is_of(const struct topo *t, const struct part_row *r, const char *subject, int len)
{
    char text[128], *on;
    const struct part_place *p = r->place;

    snprintf(text, sizeof(text), "%.*s", len, subject);
    for (int i = 0; i < r->places; i++, p++) {
        int endpoint = -1;
        if (sscanf(text, "endpoint %d", &endpoint) == 1) {
            if (p->endpoint >= 0
                    ? endpoint == p->endpoint
                    : r->kind == PART_KIND_HOST && endpoint >= 0 && endpoint < t->endpoints &&
                          topo_at(t, endpoint, LEVEL_HOST) == p->host)
                return true;
            continue;
        }
        on = strstr(text, " on ");
        if (!on || p->host < 0 || strcmp(on + 4, t->host[p->host].name) != 0 ||
            r->kind == PART_KIND_GPU || r->kind == PART_KIND_LINK)
            continue;
        const char *nic = p->nic >= 0 ? t->nic[p->nic].name : NULL;
        if (r->kind == PART_KIND_HOST || !nic || !strncmp(text, nic, strlen(nic)))
            return true;
    }
    return false;
}

/* Number of points of one subject and the counter text of the first. */
struct suffered {
    const char *subject, *words;
    int len, points;
};

static struct suffered *all_suffered(const struct points *p, int *count)
{
    struct suffered *list = NULL;

    *count = 0;
    for (int i = 0; p && i < p->count; i++) {
        const char *subject;
        int k = 0, len = p->point[i].note ? taint_subject(&p->point[i], &subject) : 0;
        if (!len)
            continue;
        while (k < *count &&
               (list[k].len != len || strncmp(list[k].subject, subject, (size_t)len) != 0))
            k++;
        if (k == *count)
            MEM_PUSH(list, *count) = (struct suffered){subject, taint_words(&p->point[i]), len, 0};
        list[k].points++;
    }
    return list;
}

void parts_trouble(struct parts *all, const struct parts_input *in)
{
    int n;
    struct suffered *list = all_suffered(in->points, &n);

    for (struct part_row *r = all->row; all->rows && r < all->row + all->rows; r++) {
        r->trouble = mem_strdup("");
        for (int i = 0; i < n; i++)
            if (is_of(&all->topo, r, list[i].subject, list[i].len))
                r->trouble =
                    parts_also(r->trouble, "; ",
                               mem_printf("%.*s: %s, at %d point%s", list[i].len, list[i].subject,
                                          list[i].words, list[i].points, units_s(list[i].points)));
    }
    free(list);
}

/* --- as JSON --- */

static void set_name(json_t *o, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(o, key, json_string(text));
}

static void set_index(json_t *o, const char *key, int value)
{
    if (value >= 0)
        json_object_set_new(o, key, json_integer(value));
}

static json_t *part_place_json(const struct topo *t, const struct part_place *p)
{
    json_t *o = json_object();

    set_index(o, "endpoint", p->endpoint);
    set_index(o, "device", p->endpoint < 0 ? -1 : t->endpoint[p->endpoint].local);
    for (int l = 0; l < LEVEL_COUNT; l++)
        set_name(o, level_name[l], p->at[l] < 0 ? NULL : t->group[l].name[p->at[l]]);
    if (p->gpu >= 0) {
        const struct gpu *g = &t->gpu[p->gpu];
        set_name(o, "uuid", g->uuid);
        set_name(o, "busid", g->busid);
        set_name(o, "chassis", g->chassis);
        set_index(o, "tray", g->tray);
        set_index(o, "slot", g->slot);
    }
    if (p->nic >= 0) {
        const struct nic *n = &t->nic[p->nic];
        set_name(o, "nic", n->name);
        set_name(o, "guid", n->guid);
        set_name(o, "switch", n->leaf);
        set_name(o, "port", n->leaf_port);
    }
    return o;
}

json_t *parts_places_json(const struct topo *t, const struct part_row *r)
{
    json_t *list = json_array();

    for (int i = 0; i < r->places; i++)
        json_array_append_new(list, part_place_json(t, &r->place[i]));
    return list;
}
