/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_layout.c - which blocks, in which order, and at which sizes Slurm shall join them.
 *
 * Slurm joins 2, 4, 8 ... blocks that follow each other in the file.  Time between blocks says
 * which belong together: where it has gaps, blocks on the near side of a gap form runs.  A run that
 * is no power of two long is filled up with empty blocks, or its level is left out where the
 * release knows none. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "emit/export/slurm.h"
#include "emit/export/slurm_runs.h"

static const double DEFAULT_BYTES = 64 << 20;

static const struct slurm_release releases[] = {
    {"24.11", false, false},
    {"25.05", true, true},
    {"25.11", true, true},
    {"26.05", true, true},
};
enum { RELEASES = sizeof(releases) / sizeof(*releases) };

const struct slurm_release *slurm_release_find(const char *name, struct err *err)
{
    if (!name)
        return &releases[RELEASES - 1];
    for (int i = 0; i < RELEASES; i++)
        if (!strcmp(releases[i].name, name))
            return &releases[i];
    err_usage(err,
              "--release: Slurm %.40s is not one of 24.11, 25.05, 25.11 and 26.05, whose "
              "rules are known",
              name);
    return NULL;
}

static void note(struct slurm_layout *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void note(struct slurm_layout *l, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    MEM_PUSH(l->note, l->notes) = mem_strdup(text);
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

/* As asked; else what most blocks have.  A release that wants all blocks to have it gets the
 * smallest, unless that would waste more than a quarter of the others. */
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

/* --- slots: blocks and the empty ones between them --- */

static int power_of_two(int n)
{
    int p = 1;

    while (p < n)
        p *= 2;
    return p;
}

/* Slots of each run; the longest in units of the level below, rounded up.  *even: all runs but the
 * last are that long already. */
static int run_units(const struct slurm_layout *l, const struct slurm_runs *p, int unit, bool *even)
{
    int longest = 0, *units = mem_calloc((size_t)p->runs + 1, sizeof(*units));

    for (int s = 0; s < l->slots; s += unit) /* the first of a unit is never empty */
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

/* Is every run of `fine` inside one of p? */
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

/* The level of one partition above units of `unit` slots; returns the new unit. */
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
    struct slurm_runs *p = slurm_runs_make(&parts, &l->blocks, l->slot, &m->topo);
    const struct slurm_runs *below = NULL;

    for (int i = 0; i < parts; i++) {
        if (below && !holds(&p[i], below, l->blocks.count))
            continue;
        unit = add_level(l, &p[i], unit, bytes, release);
        below = &p[i];
    }
    slurm_runs_free(p, parts);
}

/* --- both --- */

int slurm_layout_make(struct slurm_layout *l, const struct matrix *m, const struct export_ask *ask,
                      const struct slurm_release *release, struct err *err)
{
    double bytes = ask->bytes > 0 ? ask->bytes : DEFAULT_BYTES;

    *l = (struct slurm_layout){.slot = NULL};
    if (blocks_make(&l->blocks, m, -1, bytes, err) < 0)
        return -1;
    for (int i = 0; i < l->blocks.count; i++)
        MEM_PUSH(l->slot, l->slots) = i;
    if (choose_base(l, ask->hosts_per_rack, release, err) < 0)
        return -1;
    add_levels(l, m, bytes, release);
    int empty = 0;
    for (int s = 0; s < l->slots; s++)
        empty += l->slot[s] < 0;
    if (empty)
        note(l, "%d empty block%s keep%s the others aligned with these sizes", empty,
             empty == 1 ? "" : "s", empty == 1 ? "s" : "");
    return 0;
}

void slurm_layout_free(struct slurm_layout *l)
{
    blocks_free(&l->blocks);
    hostlist_free(l->note, l->notes);
    free(l->slot);
    *l = (struct slurm_layout){.slot = NULL};
}
