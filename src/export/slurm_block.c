/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_block.c - topology.conf of topology/block: the blocks, their order, and the sizes at which
 * Slurm should join them.
 *
 * Slurm joins 2, 4, 8 ... consecutive blocks of the file.  The times between blocks show which
 * belong together: if the times have gaps, blocks on the near side of a gap form runs.  A run whose
 * length is not a power of two is padded with empty blocks, or its level is left out if the release
 * does not accept them. */
#include "export/export_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "topo/groups.h"
#include "topo/sources/sched/slurm.h"

/* --- runs of blocks near each other --- */

struct slurm_runs {
    int *run; /* run of each block, from 0 */
    int runs;
    double near, far; /* s: largest time inside a run, smallest between runs; NAN: by spines */
};

/* Times that differ by less than this are one class, because matrices are accurate to a few
 * percent. */
static const double gap = 1.15;

static double sec(const struct blocks *b, int i, int k)
{
    return b->sec[(size_t)i * (size_t)b->count + (size_t)k];
}

/* Form runs of blocks up to `limit` apart.  False unless blocks are near inside all runs and far
 * between them. */
static bool split_at(struct slurm_runs *p, const struct blocks *b, double limit)
{
    p->run = mem_calloc((size_t)b->count + 1, sizeof(*p->run));
    p->runs = 1;
    for (int i = 1, first = 0; i < b->count; i++) {
        if (!(sec(b, first, i) <= limit)) {
            first = i;
            p->runs++;
        }
        p->run[i] = p->runs - 1;
    }
    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < i; k++)
            if ((p->run[i] == p->run[k]) != (sec(b, i, k) <= limit))
                return false;
    return p->runs > 1 && p->runs < b->count;
}

/* Try every gap between sorted times, the near ones first. */
static void by_time(struct slurm_runs **p, int *parts, const struct blocks *b)
{
    size_t room = (size_t)b->count * (size_t)b->count / 2 + 1;
    double *v = mem_calloc(room, sizeof(*v));
    int n = 0;

    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < i; k++)
            if (isfinite(sec(b, i, k)) && (!n || v[n - 1] != sec(b, i, k)))
                v[n++] = sec(b, i, k); /* most neighbours are equal */
    stats_sort(v, n);
    for (int i = 1; i < n && *parts < SLURM_LEVELS - 1; i++) {
        struct slurm_runs one = {.near = v[i - 1], .far = v[i]};
        if (v[i] < gap * v[i - 1])
            continue;
        if (split_at(&one, b, v[i - 1]))
            MEM_PUSH(*p, *parts) = one;
        else
            free(one.run);
    }
    free(v);
}

/* Spine of each block; -1 unless all of its hosts share one. */
static int *spines_of(const struct blocks *b, const struct topo *t)
{
    int groups, *spine = mem_calloc((size_t)b->count + 1, sizeof(*spine));
    char **name;
    int *of = groups_of_hosts(t, LEVEL_SPINE, &name, &groups);

    for (int i = 0; i < b->count; i++) {
        spine[i] = b->block[i].hosts ? of[b->block[i].host[0]] : -1;
        for (int k = 0; k < b->block[i].hosts; k++)
            if (of[b->block[i].host[k]] != spine[i])
                spine[i] = -1;
    }
    hostlist_free(name, groups);
    free(of);
    return spine;
}

/* Without times: put blocks of a spine side by side, in order of appearance of the spines. */
static void by_spine(struct slurm_runs **p, int *parts, const struct blocks *b, int *order,
                     const struct topo *t)
{
    int *spine = spines_of(b, t), n = 0;
    struct slurm_runs one = {mem_calloc((size_t)b->count + 1, sizeof(int)), 0, NAN, NAN};
    bool known = b->level != LEVEL_SPINE;

    for (int i = 0; i < b->count; i++)
        known = known && spine[i] >= 0;
    for (int i = 0; known && i < b->count; i++) {
        if (spine[i] < 0)
            continue;
        for (int k = i, mine = spine[i]; k < b->count; k++)
            if (spine[k] == mine) {
                order[n++] = k;
                one.run[k] = one.runs;
                spine[k] = -1;
            }
        one.runs++;
    }
    if (known && one.runs > 1 && one.runs < b->count)
        MEM_PUSH(*p, *parts) = one;
    else
        free(one.run);
    free(spine);
}

/* Partitions of the blocks, the finest first, *parts of them: at every gap of the times between
 * blocks at which near blocks are neighbours in one run and far ones are not.  Without usable
 * times: blocks of one spine; order[] (indices of blocks) then puts them side by side. */
static struct slurm_runs *runs_make(int *parts, const struct blocks *b, int *order,
                                    const struct topo *t)
{
    struct slurm_runs *p = NULL;

    *parts = 0;
    by_time(&p, parts, b);
    if (!*parts)
        by_spine(&p, parts, b, order, t);
    return p;
}

static void runs_free(struct slurm_runs *p, int parts)
{
    for (int i = 0; i < parts; i++)
        free(p[i].run);
    free(p);
}

/* --- notes --- */

static void note(struct slurm_layout *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void note(struct slurm_layout *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    MEM_PUSH(l->note, l->notes) = mem_vprintf(fmt, ap);
    va_end(ap);
}

/* --- the base size --- */

static void count_hosts(const struct slurm_layout *l, int *least, int *most, int *usual)
{
    const struct blocks *b = &l->blocks;
    int often = 0;

    *least = *most = *usual = b->block[0].hosts;
    for (int i = 0; i < b->count; i++) {
        int hosts = b->block[i].hosts, same = 0;
        for (int k = 0; k < b->count; k++)
            same += b->block[k].hosts == hosts;
        if (same > often || (same == often && hosts > *usual)) {
            often = same;
            *usual = hosts;
        }
        *least = hosts < *least ? hosts : *least;
        *most = hosts > *most ? hosts : *most;
    }
}

static int too_short(const struct slurm_layout *l, int base, int least,
                     const struct slurm_release *release, struct err *err)
{
    for (int i = 0; i < l->blocks.count; i++) {
        const struct block *b = &l->blocks.block[i];
        if (b->hosts < base)
            return err_usage(err,
                             "Slurm %s refuses a block with fewer nodes than the base size of "
                             "BlockSizes (\"children count lower than bblock_node_cnt\"): %.80s "
                             "has %d, the base size is %d; say --hosts-per-rack %d, or --release "
                             "25.05 or later",
                             release->name, b->name, b->hosts, base, least);
    }
    return 0;
}

/* Use the requested size, else that of most blocks.  A release that needs all blocks to have it
 * gets the smallest, unless that would waste more than a quarter of the others. */
static int choose_base(struct slurm_layout *l, int asked, const struct slurm_release *release,
                       struct err *err)
{
    int least, most, usual, base;

    count_hosts(l, &least, &most, &usual);
    base = asked ? asked : usual;
    if (!release->any_block && !asked && 4 * least >= 3 * usual)
        base = least;
    if (!release->any_block && base > least)
        return too_short(l, base, least, release, err);
    if (base > most)
        return err_usage(err, "--hosts-per-rack %d: the largest block has %d", base, most);
    if (base < usual)
        note(l, "BlockSizes starts at %d, %s: --segment is at most that", base,
             asked ? "as asked" : "the smallest block");
    else if (base > least)
        note(l, "blocks of %d to %d nodes; most have %d, with which BlockSizes starts", least, most,
             base);
    if (base < most)
        note(l, "blocks of %d have %d to spare when a node fails", most, most - base);
    l->size[l->sizes++] = base;
    return 0;
}

/* --- slots: blocks, and empty ones between them --- */

static int power_of_two(int n)
{
    int p = 1;

    while (p < n)
        p *= 2;
    return p;
}

/* Length of the longest run in units of the level below, rounded up to a power of two.  *even: all
 * runs but the last have this length already. */
static int run_units(const struct slurm_layout *l, const struct slurm_runs *p, int unit, bool *even)
{
    int longest = 0, *units = mem_calloc((size_t)p->runs + 1, sizeof(*units));

    for (int s = 0; s < l->slots; s += unit) /* the first slot of a unit is never empty */
        units[p->run[l->slot[s]]]++;
    for (int r = 0; r < p->runs; r++)
        longest = units[r] > longest ? units[r] : longest;
    longest = power_of_two(longest);
    *even = true;
    for (int r = 0; r + 1 < p->runs; r++)
        *even = *even && units[r] == longest;
    free(units);
    return longest;
}

/* Fill each run but the last with empty slots up to `wanted`. */
static void fill_up(struct slurm_layout *l, const struct slurm_runs *p, int wanted)
{
    int *slot = NULL, slots = 0, start = 0;

    for (int s = 0; s < l->slots; s++) {
        int run = l->slot[s] < 0 ? -1 : p->run[l->slot[s]];
        int last = slots ? slot[start] : -1;
        if (run >= 0 && last >= 0 && run != p->run[last]) {
            while (slots - start < wanted)
                MEM_PUSH(slot, slots) = -1;
            start = slots;
        }
        MEM_PUSH(slot, slots) = l->slot[s];
    }
    free(l->slot);
    l->slot = slot;
    l->slots = slots;
}

/* True if every run of `fine` lies inside a single run of p. */
static bool holds(const struct slurm_runs *p, const struct slurm_runs *fine, int count)
{
    for (int i = 1; i < count; i++)
        if (fine->run[i] == fine->run[i - 1] && p->run[i] != p->run[i - 1])
            return false;
    return true;
}

static void say_level(struct slurm_layout *l, const struct slurm_runs *p, int blocks, double bytes)
{
    char size[UNITS_TEXT], near[UNITS_TEXT], far[UNITS_TEXT];
    int nodes = l->size[l->sizes - 1];

    if (isnan(p->near))
        note(l, "size %d: %d blocks each, below the same spine", nodes, blocks);
    else
        note(l,
             "size %d: %d blocks each; %s both ways take up to %s inside and %s or more to others",
             nodes, blocks, units_bytes_text(size, bytes), units_seconds_text(near, p->near),
             units_seconds_text(far, p->far));
}

/* Add the level of a partition above units of `unit` slots.  Returns the new unit. */
static int add_level(struct slurm_layout *l, const struct slurm_runs *p, int unit, double bytes,
                     const struct slurm_release *release)
{
    bool even;
    int n = run_units(l, p, unit, &even);
    long long size = (long long)l->size[0] * unit * n;

    if (n == 1 || unit * n > 1 << (SLURM_LEVELS - 1) || size > 1 << 30)
        return unit;
    if (!even && !release->any_block) {
        note(l,
             "blocks come in %d groups that are no power of two long: Slurm %s, which takes no "
             "empty block to fill them up, cannot join them",
             p->runs, release->name);
        return unit;
    }
    if (!even)
        fill_up(l, p, unit * n);
    l->size[l->sizes++] = (int)size;
    say_level(l, p, unit * n, bytes);
    return unit * n;
}

static void add_levels(struct slurm_layout *l, const struct matrix *m, double bytes,
                       const struct slurm_release *release)
{
    int parts, unit = 1;
    struct slurm_runs *p = runs_make(&parts, &l->blocks, l->slot, &m->topo);
    const struct slurm_runs *below = NULL;

    for (int i = 0; i < parts; i++) {
        if (below && !holds(&p[i], below, l->blocks.count))
            continue;
        unit = add_level(l, &p[i], unit, bytes, release);
        below = &p[i];
    }
    runs_free(p, parts);
}

/* --- the layout --- */

int slurm_layout_make(struct slurm_layout *l, const struct export_run *e,
                      const struct slurm_release *release, struct err *err)
{
    double bytes = export_bytes(e);

    *l = (struct slurm_layout){.slot = NULL};
    if (blocks_make(&l->blocks, e->m, -1, bytes, err) < 0)
        return -1;
    for (int i = 0; i < l->blocks.count; i++)
        MEM_PUSH(l->slot, l->slots) = i;
    if (choose_base(l, e->ask->hosts_per_rack, release, err) < 0)
        return -1;
    add_levels(l, e->m, bytes, release);
    int empty = 0;
    for (int s = 0; s < l->slots; s++)
        empty += l->slot[s] < 0;
    if (empty)
        note(l, "%d empty block%s keep%s the others aligned with these sizes", empty,
             units_s(empty), empty == 1 ? "s" : "");
    return 0;
}

void slurm_layout_free(struct slurm_layout *l)
{
    blocks_free(&l->blocks);
    hostlist_free(l->note, l->notes);
    free(l->slot);
    *l = (struct slurm_layout){.slot = NULL};
}

/* --- the file --- */

/* Names of the blocks in the file. */
static char **block_names(const struct blocks *b)
{
    char **was = mem_calloc((size_t)b->count + 1, sizeof(*was));

    for (int i = 0; i < b->count; i++)
        was[i] = b->block[i].name;
    char **now = slurm_names_make(was, b->count, "block");
    free(was);
    return now;
}

void slurm_layout_put(const struct export_run *e, const struct slurm_layout *l,
                      void (*put)(FILE *f, const char *name, const char *nodes))
{
    const struct blocks *b = &l->blocks;
    char **name = block_names(b);
    int empty = 0;

    for (int s = 0; s < l->slots; s++) {
        if (l->slot[s] < 0) {
            char *unit = mem_printf("railgauge-empty%d", ++empty);
            put(e->out, unit, "");
            free(unit);
            continue;
        }
        const struct block *k = &b->block[l->slot[s]];
        char *nodes = slurm_fold(&e->m->topo, k->host, k->hosts);
        slurm_renamed(e->out, name[l->slot[s]], k->name);
        put(e->out, name[l->slot[s]], nodes);
        free(nodes);
    }
    hostlist_free(name, b->count);
}

char *slurm_layout_notes(const struct export_run *e, const struct slurm_layout *l)
{
    char *sizes = mem_strdup("");

    for (int i = 0; i < l->notes; i++)
        slurm_comment(e->out, "%s", l->note[i]);
    for (int i = 0; i < l->sizes; i++)
        sizes = mem_append(sizes, "%s%d", i ? "," : "", l->size[i]);
    return sizes;
}

static void put_conf_block(FILE *f, const char *name, const char *nodes)
{
    fprintf(f, *nodes ? "BlockName=%s Nodes=%s\n" : "BlockName=%s\n", name, nodes);
}

int slurm_block_write(const struct export_run *e, struct err *err)
{
    const struct slurm_release *release = slurm_release_of(e, false, err);
    struct slurm_layout l;

    if (!release)
        return -1;
    int rc = slurm_layout_make(&l, e, release, err);
    if (rc == 0)
        rc = slurm_complete(e, &l.blocks, err);
    if (rc == 0) {
        slurm_head(e, "topology.conf for topology/block", release);
        slurm_comment(e->out, "slurm.conf needs: TopologyPlugin=topology/block");
        slurm_groups_from(e->out, &l.blocks, "block");
        char *sizes = slurm_layout_notes(e, &l);
        slurm_comment(e->out,
                      "A job that measures pairs of nodes needs --segment=1: other jobs stay in a "
                      "block.");
        if (release->yaml)
            slurm_comment(e->out, "A flat topology for that beside this one: --format slurm-yaml.");
        slurm_left_over(e, &l.blocks);
        slurm_layout_put(e, &l, put_conf_block);
        fprintf(e->out, "BlockSizes=%s\n", sizes);
        free(sizes);
    }
    slurm_layout_free(&l);
    return rc;
}
