/* SPDX-License-Identifier: BSD-3-Clause */
/* librailgauge: a matrix compiled for queries.  Curves become grids of 16 cells an octave, indexed
 * by the exponent and upper mantissa bits of the size; exceptions become lists per endpoint and per
 * rack, empty for almost all. */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"
#include "matrix/api_impl.h"

enum {
    OCTAVES = 50, /* 1 B .. 2^50 B; beyond, the last cell's line goes on */
    CELLS = OCTAVES * 16,
    MANTISSA_SHIFT = 52 - 4,
};

struct cell {
    double sec, slope; /* seconds at the cell's lower end; s/B inside */
};

static double cell_bytes(int i)
{
    return ldexp(1 + (i % 16) / 16.0, i / 16);
}

static void compile_tier(struct cell *grid, const struct tier *t)
{
    for (int i = 0; i < CELLS; i++) {
        double a = matrix_tier_time(t, cell_bytes(i), 1),
               b = matrix_tier_time(t, cell_bytes(i + 1), 1);
        grid[i].sec = a;
        grid[i].slope = (b - a) / (cell_bytes(i + 1) - cell_bytes(i));
    }
}

union bits {
    double d;
    uint64_t u;
};

/* Index of the cell of a size; *from: its lower end.  Beyond the last cell its line goes on. */
static inline int64_t cell_of(double bytes, union bits *from)
{
    *from = (union bits){bytes};
    int64_t i = (int64_t)(from->u >> MANTISSA_SHIFT) - (1023 << 4);

    i = i < CELLS ? i : CELLS - 1;
    from->u = (uint64_t)(i + (1023 << 4)) << MANTISSA_SHIFT;
    return i;
}

static inline double look_up(const struct cell *grid, double bytes)
{
    union bits from;
    int64_t i = cell_of(bytes, &from);

    return grid[i].sec + (bytes - from.d) * grid[i].slope;
}

/* matrix_tier_time() between the sizes of the cells. */
static inline double stretched(const struct tier_line (*line)[2], double bytes, double factor)
{
    union bits from, per_octave;
    const struct tier_line(*at)[2] = line + cell_of(bytes, &from);
    double sec[2], by = 1 / factor;

    /* 1 / the power of two below: a cell is a sixteenth of that */
    per_octave.u = (2046 - (from.u >> 52)) << 52;
    double share = (bytes - from.d) * 16 * per_octave.d;
    for (int k = 0; k < 2; k++) {
        double a = at[0][k].fixed + at[0][k].scaled * by, b = at[1][k].fixed + at[1][k].scaled * by;
        sec[k] = a + (b - a) * share;
    }
    return sec[0] > sec[1] ? sec[0] : sec[1];
}

/* --- exceptions by what they concern --- */

/* Endpoints by group, for the levels that exceptions name. */
static const struct lists *members_of(const struct railgauge *r, struct lists *members, int level)
{
    const struct topo *t = &r->m.topo;

    if (level == LEVEL_HOST)
        return &r->by_host;
    if (!members[level].start)
        lists_make(&members[level], stairs_column(&r->stairs, level), NULL, t->endpoints,
                   t->group[level].count);
    return &members[level];
}

/* The endpoints or racks that an exception hangs on; count of keys written. */
static int keys_of(const struct railgauge *r, struct lists *members, const struct exception *e,
                   int *key)
{
    int n = 0;

    if (e->part == PART_LEAF || e->part == PART_RACK || e->part == PART_HOST) {
        const struct lists *l = members_of(r, members, part_level[e->part]);
        for (int k = l->start[e->a]; k < l->start[e->a + 1]; k++)
            key[n++] = l->at[k];
        return n;
    }
    key[n++] = e->a;
    if (part_is_two(e->part))
        key[n++] = e->b;
    return n;
}

static void compile_lists(struct railgauge *r, struct lists *l, int items, bool racks)
{
    const struct matrix *m = &r->m;
    int *one = mem_calloc((size_t)m->topo.endpoints + 2, sizeof(*one));
    int *key = NULL, *which = NULL, keys = 0, n = 0;
    struct lists members[LEVEL_COUNT] = {{NULL, NULL}};

    for (int i = 0; i < m->exceptions; i++) {
        enum part part = m->exception[i].part;
        if ((part == PART_RACK_PAIR || part == PART_RACK_UPLINKS) != racks)
            continue;
        for (int k = keys_of(r, members, &m->exception[i], one); k-- > 0;) {
            MEM_PUSH(key, keys) = one[k];
            MEM_PUSH(which, n) = i;
        }
    }
    lists_make(l, key, which, n, items);
    for (int i = 0; i < LEVEL_COUNT; i++)
        lists_free(&members[i]);
    free(one);
    free(key);
    free(which);
}

static bool concerned(const struct lists *l, int item)
{
    return item >= 0 && l->start[item + 1] > l->start[item];
}

/* --- keys --- */

/* Codes of a level: its groups, then one for each endpoint of which it is not known. */
static uint64_t codes(const struct topo *t, int level, const int *at)
{
    uint64_t n = (uint64_t)(level == LEVEL_HOST ? t->hosts : t->group[level].count);

    for (int i = 0; i < t->endpoints; i++)
        n += at[i] < 0;
    return n;
}

static void pack_level(struct railgauge *r, int level, const int *at, int shift)
{
    const struct topo *t = &r->m.topo;
    uint64_t unknown = (uint64_t)(level == LEVEL_HOST ? t->hosts : t->group[level].count);

    for (int i = 0; i < t->endpoints; i++)
        r->key[i] |= (at[i] < 0 ? unknown++ : (uint64_t)at[i]) << shift;
}

static void pack(struct railgauge *r)
{
    const struct topo *t = &r->m.topo;
    int bits[LEVEL_COUNT] = {0}, used = 1;
    unsigned asked = 0;

    for (int i = 0; i < t->tiers; i++)
        asked |= t->tier[i].same;
    for (int l = 0; l < LEVEL_COUNT; l++) {
        for (uint64_t n = asked >> l & 1 ? codes(t, l, stairs_column(&r->stairs, l)) : 1; n > 1;
             n = (n + 1) / 2)
            bits[l]++;
        used += bits[l];
    }
    r->packed = used <= KEY_BITS;
    if (used <= NARROW_BITS)
        r->narrow = mem_calloc((size_t)t->endpoints + 1, sizeof(*r->narrow));
    for (int l = 0, shift = 1; l < LEVEL_COUNT && r->packed; shift += bits[l++]) {
        if (!bits[l])
            continue;
        pack_level(r, l, stairs_column(&r->stairs, l), shift);
        for (int i = 0; i < t->tiers; i++)
            if (t->tier[i].same >> l & 1)
                r->differ[i] |= (UINT64_MAX >> (KEY_BITS - bits[l])) << shift;
    }
}

static void mark_odd(struct railgauge *r, const int *rack)
{
    const struct topo *t = &r->m.topo;

    for (int i = 0; i < t->endpoints; i++)
        if (concerned(&r->by_endpoint, i) || concerned(&r->by_rack, rack[i]))
            r->key[i] |= KEY_ODD;
    for (int i = 0; i < t->endpoints; i++)
        if (r->key[i] & KEY_ODD)
            MEM_PUSH(r->odd, r->odds) = i;
    for (int i = 0; r->narrow && i < t->endpoints; i++)
        r->narrow[i] = (uint32_t)r->key[i];
}

/* --- effects of exceptions, by endpoint --- */

static size_t sheet_size(const struct railgauge *r)
{
    return 4 * (size_t)r->m.tiers;
}

/* First tier of the effects of a sheet on pairs that the endpoint sends or receives. */
static inline const struct effect *effects_of(const struct railgauge *r, unsigned sheet,
                                              bool receives, bool far)
{
    return r->effect + (size_t)(4 * sheet + 2 * receives + far) * (size_t)r->m.tiers;
}

/* Add an exception to the sheet `to`, as matrix_crosses() has it. */
static void add_effect(const struct railgauge *r, struct effect *to, const struct exception *e)
{
    const int tiers = r->m.tiers;

    for (int receives = 0; receives < 2; receives++) {
        if (e->side == (receives ? SIDE_TX : SIDE_RX))
            continue;
        for (int far = e->part == PART_RACK_UPLINKS; far < 2; far++)
            for (int i = 0; i < tiers; i++) {
                struct effect *x = &to[(2 * receives + far) * tiers + i];
                if (e->tier >= 0 ? e->tier != i : !r->m.tier[i].nic && e->factor > 0)
                    continue;
                x->factor = fmin(x->factor, e->factor);
                x->add = fmax(x->add, e->alpha_add);
            }
    }
}

static void add_effects(const struct railgauge *r, struct effect *to, const struct lists *l,
                        int item)
{
    if (item < 0)
        return;
    for (int k = l->start[item]; k < l->start[item + 1]; k++)
        if (!part_is_two(r->m.exception[l->at[k]].part))
            add_effect(r, to, &r->m.exception[l->at[k]]);
}

struct wanted_sheet {
    const struct railgauge *r;
    const struct effect *sheet;
};

static bool same_sheet(const void *wanted, int sheet)
{
    const struct wanted_sheet *w = wanted;
    const size_t n = sheet_size(w->r);

    return !memcmp(w->sheet, w->r->effect + (size_t)sheet * n, n * sizeof(*w->sheet));
}

static uint64_t hash_sheet(const struct effect *sheet, size_t n)
{
    uint64_t hash = 0, bits[2];

    for (size_t i = 0; i < n; i++) {
        memcpy(bits, &sheet[i], sizeof(bits));
        hash = map_mix(map_mix(hash, bits[0]), bits[1]);
    }
    return hash;
}

/* The sheet behind the last one becomes the endpoint's, unless an equal one is there. */
static void keep_sheet(struct railgauge *r, struct map *known, int *sheets, int endpoint)
{
    const size_t n = sheet_size(r);
    struct wanted_sheet w = {r, r->effect + (size_t)*sheets * n};
    int *at = map_at(known, hash_sheet(w.sheet, n), same_sheet, &w);

    if (*at == MAP_NONE)
        *at = (*sheets)++;
    r->place[endpoint].sheet = (unsigned)*at & (ODD_SHEETS - 1);
}

static void clear_sheet(struct railgauge *r, int sheet)
{
    const size_t n = sheet_size(r);

    for (size_t i = 0; i < n; i++)
        r->effect[(size_t)sheet * n + i] = (struct effect){1, 0};
}

/* Returns the number of sheets. */
static int compile_sheets(struct railgauge *r, const int *rack)
{
    const struct topo *t = &r->m.topo;
    int sheets = 0, room = 64;
    struct map known = {0};

    r->effect = mem_calloc((size_t)room * sheet_size(r), sizeof(*r->effect));
    for (int i = -1; i < t->endpoints; i++) {
        if (i >= 0 && !concerned(&r->by_endpoint, i) && !concerned(&r->by_rack, rack[i]))
            continue;
        if (sheets == room)
            r->effect =
                mem_realloc(r->effect, (size_t)(room *= 2) * sheet_size(r), sizeof(*r->effect));
        clear_sheet(r, sheets);
        if (i >= 0)
            add_effects(r, r->effect + (size_t)sheets * sheet_size(r), &r->by_endpoint, i);
        if (i >= 0)
            add_effects(r, r->effect + (size_t)sheets * sheet_size(r), &r->by_rack, rack[i]);
        keep_sheet(r, &known, &sheets, i < 0 ? 0 : i); /* sheet 0: no effect */
    }
    map_free(&known);
    return sheets;
}

static void mark_partners(struct railgauge *r)
{
    for (int i = 0; i < r->m.exceptions; i++) {
        const struct exception *e = &r->m.exception[i];
        if (e->part == PART_PAIR) {
            r->place[e->a].pairs = r->place[e->b].pairs = 1;
        } else if (e->part == PART_RACK_PAIR) {
            r->rack_partners[e->a] |= (uint64_t)1 << e->b % 64;
            r->rack_partners[e->b] |= (uint64_t)1 << e->a % 64;
        }
    }
}

enum { ODD_CROWD = 8 }; /* one endpoint in so many is odd, or more: most pairs ask for effects */

static void compile_effects(struct railgauge *r, const int *rack)
{
    const struct topo *t = &r->m.topo;

    if (t->group[LEVEL_RACK].count >= ODD_RACK_NONE)
        return;
    r->place = mem_calloc((size_t)t->endpoints + 1, sizeof(*r->place));
    for (int i = 0; i < t->endpoints; i++) {
        r->place[i].key = r->narrow ? r->narrow[i] : 0;
        r->place[i].rack = rack[i] < 0 ? ODD_RACK_NONE : (unsigned)rack[i] & ODD_RACK_NONE;
    }
    if (compile_sheets(r, rack) > ODD_SHEETS) {
        free(r->place);
        r->place = NULL;
        return;
    }
    r->rack_partners = mem_calloc((size_t)t->group[LEVEL_RACK].count + 1, sizeof(uint64_t));
    mark_partners(r);
    r->line = mem_calloc((size_t)r->m.tiers * (CELLS + 1) + 1, sizeof(*r->line));
    for (int i = 0; i < r->m.tiers; i++)
        for (int k = 0; k <= CELLS; k++)
            matrix_tier_lines(&r->m.tier[i], cell_bytes(k), r->line[i * (CELLS + 1) + k]);
    r->beside = r->narrow && r->odds >= t->endpoints / ODD_CROWD;
    if (r->beside) {
        free(r->narrow);
        r->narrow = NULL;
    }
}

static void compile(struct railgauge *r)
{
    const struct topo *t = &r->m.topo;

    r->key = mem_calloc((size_t)t->endpoints + 1, sizeof(*r->key));
    r->differ = mem_calloc((size_t)t->tiers + 1, sizeof(*r->differ));
    r->grid = mem_calloc((size_t)r->m.tiers * CELLS, sizeof(*r->grid));
    for (int i = 0; i < r->m.tiers; i++)
        compile_tier(r->grid + (size_t)i * CELLS, &r->m.tier[i]);
    stairs_make(&r->stairs, t);
    r->known = mem_calloc(1, sizeof(*r->known));
    /* ids ascend, so does the index on the host */
    lists_make(&r->by_host, stairs_column(&r->stairs, LEVEL_HOST), NULL, t->endpoints, t->hosts);
    compile_lists(r, &r->by_endpoint, t->endpoints, false);
    compile_lists(r, &r->by_rack, t->group[LEVEL_RACK].count, true);
    pack(r);
    mark_odd(r, stairs_column(&r->stairs, LEVEL_RACK));
    if (r->m.exceptions)
        compile_effects(r, stairs_column(&r->stairs, LEVEL_RACK));
    free(r->stairs.column);
    r->stairs.column = NULL;
}

const struct matrix *api_matrix(const struct railgauge *r)
{
    return &r->m;
}

struct opening {
    struct railgauge *r;
    const char *path;
    struct err *err;
};

/* "preset:NAME" or "preset:NAME:RACKS"; NULL: none. */
static const char *preset_of(const char *path)
{
    static const char mark[] = "preset:";

    return strncmp(path, mark, sizeof(mark) - 1) ? NULL : path + sizeof(mark) - 1;
}

static int open_preset(struct matrix *m, const char *words, struct err *err)
{
    char *name = mem_strdup(words), *colon = strchr(name, ':');
    int racks = 0, rc = 0;
    struct err why;

    if (colon && units_int(&racks, colon + 1, 1, INT_MAX, &why) < 0)
        rc = err_usage(err, "preset:%.80s: racks %.100s", words, why.text);
    if (colon)
        *colon = '\0';
    if (rc == 0 && (strchr(name, '/') || !*name))
        rc = err_usage(err, "preset:%.80s: a preset has a name, and is no file", words);
    if (rc == 0)
        rc = matrix_open(m, NULL, name, racks, err);
    if (rc == 0) { /* as one that is read for prices */
        free(m->topo.nic);
        m->topo.nic = NULL;
    }
    free(name);
    return rc;
}

/* Identity of the matrix's file; zeros for a preset and for a missing file. */
static void see(struct file_seen *s, const char *path)
{
    struct stat st = {0};

    if (!preset_of(path) && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        char *file = file_join(path, "matrix.json");
        if (stat(file, &st) < 0)
            st = (struct stat){0};
        free(file);
    }
    *s = (struct file_seen){(uint64_t)st.st_dev, (uint64_t)st.st_ino, (int64_t)st.st_size,
                            st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
}

static int open_matrix(void *opening)
{
    struct opening *o = opening;
    struct railgauge *r = mem_calloc(1, sizeof(*r));
    const char *preset = preset_of(o->path);

    see(&r->seen, o->path); /* before it is read: one that is replaced meanwhile has changed */
    if ((preset ? open_preset(&r->m, preset, o->err)
                : matrix_load(&r->m, o->path, MATRIX_PRICES, o->err)) < 0) {
        free(r);
        return -1;
    }
    r->path = mem_strdup(o->path);
    compile(r);
    o->r = r;
    return 0;
}

int railgauge_open(struct railgauge **out, const char *path, char text[256])
{
    struct err err = {0, ""};
    struct opening o = {NULL, path, &err};
    int rc = guarded(open_matrix, &o, &err, text);

    *out = o.r;
    return rc;
}

struct looking {
    const struct railgauge *r;
    struct file_seen now;
};

static int look(void *looking)
{
    struct looking *l = looking;

    see(&l->now, l->r->path);
    return 0;
}

int railgauge_changed(const struct railgauge *r)
{
    struct looking l = {.r = r};
    struct err err;
    const struct file_seen *a = &l.now, *b = &r->seen;

    if (mem_guarded(look, &l, &err) < 0)
        return 0; /* no memory to know it: the next time, then */
    return a->device != b->device || a->inode != b->inode || a->size != b->size ||
           a->sec != b->sec || a->nsec != b->nsec;
}

void railgauge_close(struct railgauge *r)
{
    if (!r)
        return;
    free(r->path);
    matrix_free(&r->m);
    free(r->key);
    free(r->narrow);
    free(r->differ);
    free(r->grid);
    lists_free(&r->by_endpoint);
    lists_free(&r->by_rack);
    lists_free(&r->by_host);
    stairs_free(&r->stairs);
    if (r->known)
        known_free(r->known);
    free(r->known);
    free(r->odd);
    free(r->place);
    free(r->effect);
    free(r->line);
    free(r->rack_partners);
    free(r);
}

int railgauge_count(const struct railgauge *r)
{
    return r->m.topo.endpoints;
}

int railgauge_find(const struct railgauge *r, const char *host, int gpu)
{
    int h = topo_find_host(&r->m.topo, host);
    const int *start = r->by_host.start;

    return h < 0 || gpu < 0 || gpu >= start[h + 1] - start[h] ? -1 : r->by_host.at[start[h] + gpu];
}

int railgauge_hosts_range(const struct railgauge *r, int first, int count,
                          struct railgauge_range *range)
{
    const int *start = r->by_host.start, *at = r->by_host.at;

    if (first < 0 || count < 1 || count > r->m.topo.hosts - first)
        return -1;
    int from = start[first], end = start[first + count];
    for (int k = from; k < end; k++)
        if (at[k] != at[from] + k - from)
            return -1;
    if (end == from)
        return -1;
    *range = (struct railgauge_range){at[from], end - from, 1};
    return 0;
}

int railgauge_host_count(const struct railgauge *r)
{
    return r->m.topo.hosts;
}

const char *railgauge_host_name(const struct railgauge *r, int host)
{
    return host >= 0 && host < r->m.topo.hosts ? r->m.topo.host[host].name : NULL;
}

int railgauge_host_find(const struct railgauge *r, const char *name)
{
    return name ? topo_find_host(&r->m.topo, name) : -1;
}

int railgauge_hosts_in(const struct railgauge *r, const uint64_t *bits, int *hosts)
{
    int n = 0;

    for (int h = 0; h < r->m.topo.hosts; h++)
        if (bits[h / 64] >> h % 64 & 1)
            hosts[n++] = h;
    return n;
}

const char *railgauge_level(const struct railgauge *r, int id, const char *level)
{
    const struct topo *t = &r->m.topo;
    int l = level ? level_find(level) : -1;

    if (l < 0 || id < 0 || id >= t->endpoints)
        return NULL;
    int at = topo_at(t, id, l);
    if (at < 0)
        return NULL;
    return l == LEVEL_HOST ? t->host[at].name : t->group[l].name[at];
}

static void slow_down(const struct railgauge *r, const struct lists *l, int item, int src, int dst,
                      int tier, double *factor, double *add)
{
    for (int k = l->start[item]; k < l->start[item + 1]; k++) {
        const struct exception *e = &r->m.exception[l->at[k]];
        if (matrix_crosses(&r->m, e, src, dst, tier)) {
            *factor = fmin(*factor, e->factor);
            *add = fmax(*add, e->alpha_add);
        }
    }
}

/* topo_tier() of two keys: every rule is asked, so that nothing waits for a guess of which comes first. */
static inline int tier_of(const struct railgauge *r, uint64_t differ)
{
    int last = r->m.topo.tiers - 1, tier = last;

    for (int i = last - 1; i >= 0; i--)
        tier = differ & r->differ[i] ? tier : i;
    return tier;
}

/* Effects by lists, for machines of more racks than place[] has room for. */
static double listed_pair(const struct railgauge *r, int src, int dst, int tier, double size)
{
    const struct topo *t = &r->m.topo;
    const int rack[] = {topo_at(t, src, LEVEL_RACK), topo_at(t, dst, LEVEL_RACK)};
    double factor = 1, add = 0;

    slow_down(r, &r->by_endpoint, src, src, dst, tier, &factor, &add);
    slow_down(r, &r->by_endpoint, dst, src, dst, tier, &factor, &add);
    for (int k = 0; k < 2; k++)
        if (rack[k] >= 0)
            slow_down(r, &r->by_rack, rack[k], src, dst, tier, &factor, &add);
    if (factor >= 1)
        return look_up(r->grid + (size_t)tier * CELLS, size) + add;
    return matrix_tier_time(&r->m.tier[tier], size, factor) + add;
}

/* A pair that an exception may concern. */
static inline double placed_pair(const struct railgauge *r, int src, int dst, int tier, double size)
{
    const struct odd_place a = r->place[src], b = r->place[dst];
    const bool far = a.rack != b.rack && a.rack != ODD_RACK_NONE && b.rack != ODD_RACK_NONE;
    const struct effect *tx = effects_of(r, a.sheet, false, far) + tier,
                        *rx = effects_of(r, b.sheet, true, far) + tier;
    double factor = tx->factor < rx->factor ? tx->factor : rx->factor,
           add = tx->add > rx->add ? tx->add : rx->add;

    if (far && r->rack_partners[a.rack] >> b.rack % 64 & 1)
        slow_down(r, &r->by_rack, (int)a.rack, src, dst, tier, &factor, &add);
    if (a.pairs & b.pairs)
        slow_down(r, &r->by_endpoint, src, src, dst, tier, &factor, &add);
    if (factor >= 1)
        return look_up(r->grid + (size_t)tier * CELLS, size) + add;
    return factor > 0 ? stretched(r->line + tier * (CELLS + 1), size, factor) + add : INFINITY;
}

static double odd_pair(const struct railgauge *r, int src, int dst, int tier, double size)
{
    return r->place ? placed_pair(r, src, dst, tier, size) : listed_pair(r, src, dst, tier, size);
}

/* Tier of two endpoints whose keys are wide, hold KEY_ODD alone, or lie beside effects. */
static double wide_pair(const struct railgauge *r, int src, int dst, double size)
{
    if (r->beside)
        return placed_pair(r, src, dst, tier_of(r, r->place[src].key ^ r->place[dst].key), size);
    uint64_t a = r->key[src], b = r->key[dst];
    int tier = r->packed ? tier_of(r, a ^ b) : topo_tier(&r->m.topo, src, dst);
    if ((a | b) & KEY_ODD)
        return odd_pair(r, src, dst, tier, size);
    return look_up(r->grid + (size_t)tier * CELLS, size);
}

/* The rare case is called last, so that no register has to be kept over the call. */
static inline double pair(const struct railgauge *r, int src, int dst, double size)
{
    unsigned count = (unsigned)r->m.topo.endpoints;

    if ((unsigned)src >= count || (unsigned)dst >= count)
        return NAN;
    if (src == dst)
        return 0;
    if (!r->narrow)
        return wide_pair(r, src, dst, size);
    uint32_t a = r->narrow[src], b = r->narrow[dst];
    int tier = tier_of(r, a ^ b);
    if ((a | b) & KEY_ODD)
        return odd_pair(r, src, dst, tier, size);
    return look_up(r->grid + (size_t)tier * CELLS, size);
}

static double size_of(size_t bytes)
{
    return bytes ? (double)bytes : 1;
}

double railgauge_pair(const struct railgauge *r, int src, int dst, size_t bytes)
{
    return pair(r, src, dst, size_of(bytes));
}

void railgauge_pairs(const struct railgauge *r, const int *src, const int *dst, size_t n,
                     size_t bytes, double *seconds)
{
    double size = size_of(bytes);

    for (size_t i = 0; i < n; i++)
        seconds[i] = pair(r, src[i], dst[i], size);
}
