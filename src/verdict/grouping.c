/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/grouping.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/stats.h"

void grouping_free(struct grouping *g)
{
    free(g->origin);
    free(g->of);
    hostlist_free(g->name, g->groups);
    free(g->stranger);
    memset(g, 0, sizeof(*g));
}

char *grouping_title(const struct grouping *g)
{
    if (g->source == SOURCE_MEASURED)
        return mem_printf("measured %s (by %s)", level_many[g->level], g->origin);
    if (g->above)
        return mem_printf("%s %s, %s+%d", source_name[g->source], g->origin, level_name[g->level],
                          g->above);
    return mem_printf("%s %s, %s", source_name[g->source], g->origin, level_name[g->level]);
}

/* Number of hosts that are in group a of one grouping and in group b of the other. */
struct cell {
    int a, b, hosts;
};

struct cells {
    struct cell *cell;
    int cells, hosts;
    int *a_size, *b_size;   /* hosts known to both */
    int *a_parts, *b_parts; /* number of cells of each group */
};

static void cells_make(struct cells *c, const struct grouping *a, const struct grouping *b, int n)
{
    struct cell *v = mem_calloc((size_t)n + 1, sizeof(*v));
    int kept = 0;

    *c = (struct cells){.cell = v};
    c->a_size = mem_calloc((size_t)a->groups + 1, sizeof(int));
    c->b_size = mem_calloc((size_t)b->groups + 1, sizeof(int));
    c->a_parts = mem_calloc((size_t)a->groups + 1, sizeof(int));
    c->b_parts = mem_calloc((size_t)b->groups + 1, sizeof(int));
    for (int h = 0; h < n; h++)
        if (a->of[h] >= 0 && b->of[h] >= 0) {
            v[c->hosts++] = (struct cell){a->of[h], b->of[h], 1};
            c->a_size[a->of[h]]++;
            c->b_size[b->of[h]]++;
        }
    qsort(v, (size_t)c->hosts, sizeof(*v), stats_by_2ints);
    for (int i = 0; i < c->hosts; i++)
        if (kept && stats_by_2ints(&v[kept - 1], &v[i]) == 0) {
            v[kept - 1].hosts++;
        } else {
            c->a_parts[v[i].a]++;
            c->b_parts[v[i].b]++;
            v[kept++] = v[i];
        }
    c->cells = kept;
}

static void cells_free(struct cells *c)
{
    free(c->cell);
    free(c->a_size);
    free(c->b_size);
    free(c->a_parts);
    free(c->b_parts);
}

static double pairs(int n)
{
    return 0.5 * n * (n - 1);
}

static double sum_pairs(const int *size, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += pairs(size[i]);
    return sum;
}

static bool all_whole(const int *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (parts[i] > 1)
            return false;
    return true;
}

static void relate(struct compared *out, const struct cells *c, const struct grouping *a,
                   const struct grouping *b)
{
    double in_a = sum_pairs(c->a_size, a->groups), in_b = sum_pairs(c->b_size, b->groups), both = 0;
    bool finer = all_whole(c->a_parts, a->groups), coarser = all_whole(c->b_parts, b->groups);

    for (int i = 0; i < c->cells; i++) {
        both += pairs(c->cell[i].hosts);
        out->same += c->a_parts[c->cell[i].a] == 1 && c->b_parts[c->cell[i].b] == 1;
    }
    out->hosts = c->hosts;
    out->together = in_a + in_b > both ? both / (in_a + in_b - both) : 0;
    out->relation = in_a <= 0 || in_b <= 0 ? RELATION_NONE
                    : finer && coarser     ? RELATION_EQUAL
                    : finer                ? RELATION_FINER
                    : coarser              ? RELATION_COARSER
                                           : RELATION_CROSSING;
}

/* Returns image[b], the group of a with most hosts of b (if equal, the one with more of its hosts
 * there), or the reverse. */
static int *images(const struct cells *c, int groups, bool of_b)
{
    int *image = mem_calloc((size_t)groups + 1, sizeof(*image));
    int *most = mem_calloc((size_t)groups + 1, sizeof(*most));
    double *share = mem_calloc((size_t)groups + 1, sizeof(*share));

    for (int i = 0; i < c->cells; i++) {
        const struct cell *k = &c->cell[i];
        int from = of_b ? k->b : k->a;
        double whole = (double)k->hosts / (of_b ? c->a_size[k->a] : c->b_size[k->b]);
        if (k->hosts < most[from] || (k->hosts == most[from] && whole <= share[from]))
            continue;
        most[from] = k->hosts;
        share[from] = whole;
        image[from] = of_b ? k->a : k->b;
    }
    free(most);
    free(share);
    return image;
}

/* Find hosts whose group in the finer grouping mostly belongs elsewhere in the coarser one. */
static void find_misfits(struct compared *out, const struct cells *c, const struct grouping *a,
                         const struct grouping *b, int n)
{
    bool of_b = b->groups >= a->groups;
    int *image = images(c, of_b ? b->groups : a->groups, of_b);

    for (int h = 0; h < n; h++) {
        int x = a->of[h], y = b->of[h];
        if (x < 0 || y < 0 || (of_b ? image[y] == x : image[x] == y))
            continue;
        MEM_PUSH(out->misfit, out->misfits) = (struct misfit){h, x, of_b ? image[y] : -1, y, -1};
    }
    free(image);
}

/* Pair misfits that belong in each other's group; each host is in one swap at most. */
static void find_swaps(struct compared *out)
{
    for (int i = 0; i < out->misfits; i++)
        for (int k = i + 1; k < out->misfits && out->misfit[i].swap < 0; k++) {
            struct misfit *x = &out->misfit[i], *y = &out->misfit[k];
            if (y->swap < 0 && x->with >= 0 && x->in == y->with && x->with == y->in) {
                x->swap = y->host;
                y->swap = x->host;
            }
        }
}

void grouping_compare(struct compared *out, const struct grouping *a, const struct grouping *b,
                      int n)
{
    struct cells c;

    memset(out, 0, sizeof(*out));
    cells_make(&c, a, b, n);
    relate(out, &c, a, b);
    if (out->relation == RELATION_CROSSING) {
        find_misfits(out, &c, a, b, n);
        find_swaps(out);
    }
    cells_free(&c);
}

void compared_free(struct compared *c)
{
    free(c->misfit);
    memset(c, 0, sizeof(*c));
}
