/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/looks.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static bool is_look(const struct point *p, bool by_nic)
{
    return op_is_pair(p->op) && stage_by_nic(p->stage) == by_nic && p->stage != STAGE_LADDER &&
           p->stage != STAGE_NIC_LADDER;
}

/* Most frequent size of pair_bw points that no earlier point decided; in a tie the smaller one. */
static size_t matrix_size(const struct points *p, bool by_nic)
{
    struct {
        size_t bytes;
        int points;
    } *size = NULL;
    int sizes = 0, at = 0, most = 0;

    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        if (q->op != OP_PAIR_BW || !is_look(q, by_nic) || stage_is_retest(q->stage))
            continue;
        /* usually the same size as the point before */
        if (!(at < sizes && size[at].bytes == q->bytes))
            for (at = 0; at < sizes && size[at].bytes != q->bytes; at++)
                ;
        if (at == sizes) {
            MEM_PUSH(size, sizes).bytes = q->bytes;
            size[at].points = 0;
        }
        size[at].points++;
    }
    for (int i = 1; i < sizes; i++)
        if (size[i].points > size[most].points ||
            (size[i].points == size[most].points && size[i].bytes < size[most].bytes))
            most = i;
    size_t bytes = sizes ? size[most].bytes : 0;
    free(size);
    return bytes;
}

static enum look_kind kind_of(const struct point *p, size_t matrix)
{
    return p->op == OP_PAIR_LATENCY ? LOOK_LATENCY
           : p->op == OP_PAIR_BIBW  ? LOOK_BOTH_WAYS
           : p->bytes < matrix      ? LOOK_SMALL
           : p->bytes > matrix      ? LOOK_LARGE
                                    : LOOK_RATE;
}

static struct look look_of(const struct point *p, const struct topo_tiers *t, bool by_nic,
                           size_t matrix)
{
    const double sec = point_sec(point_time(p->sec.median));
    struct look k = {.src = p->src,
                     .dst = p->dst,
                     .y = -INFINITY,
                     .tail = NAN,
                     .kind = kind_of(p, matrix),
                     .tier = topo_tiers_of(t, p->src, p->dst, by_nic),
                     .block = p->epoch + (stage_is_retest(p->stage) ? PLAN_EPOCHS : 0),
                     .looks_at = stage_looks_at(p->stage),
                     .alone = p->flows == 1,
                     .fresh = stage_is_retest(p->stage),
                     .same_pair = p->stage == STAGE_RETEST || p->stage == STAGE_NIC_RETEST};

    if (p->stop != STOP_FAILED && sec > 0) {
        k.y = (float)log(k.kind == LOOK_LATENCY ? 1 / sec : (double)p->bytes / sec);
        k.tail = (float)point_tail_log(p);
    }
    k.unselected = k.alone && !stage_is_retest(p->stage);
    return k;
}

/* With fewer epochs the noise between blocks is not known, so turns are distributed over
 * PLAN_EPOCHS stretches of time. */
enum { BLOCKS_LEAST = 5 };

static void split_blocks(struct look *look, int n, bool fresh)
{
    unsigned blocks = 0;
    int first = -1, last = -1;

    for (int i = 0; i < n; i++) {
        if (look[i].fresh != fresh)
            continue;
        blocks |= 1u << look[i].block;
        first = first < 0 ? look[i].turn : first;
        last = look[i].turn;
    }
    if (first < 0 || __builtin_popcount(blocks) >= BLOCKS_LEAST)
        return;
    for (int i = 0; i < n; i++)
        if (look[i].fresh == fresh)
            look[i].block = (fresh ? PLAN_EPOCHS : 0) +
                            (int)((long)PLAN_EPOCHS * (look[i].turn - first) / (last - first + 1));
}

struct look *looks_of(const struct points *p, const struct topo *t, bool by_nic, int **point_of,
                      int *count)
{
    const size_t matrix = matrix_size(p, by_nic);
    struct look *look = mem_calloc((size_t)p->count + 1, sizeof(*look));
    int *of = point_of ? mem_calloc((size_t)p->count + 1, sizeof(*of)) : NULL, turn = -1, n = 0;
    struct topo_tiers tiers;

    topo_tiers_make(&tiers, t);
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        turn +=
            i == 0 || q->round != q[-1].round || q->epoch != q[-1].epoch || q->bytes != q[-1].bytes;
        if (!is_look(q, by_nic) || q->wrong)
            continue;
        look[n] = look_of(q, &tiers, by_nic, matrix);
        look[n].turn = turn;
        if (of)
            of[n] = i;
        n++;
    }
    free(tiers.at);
    split_blocks(look, n, false);
    split_blocks(look, n, true);
    if (point_of)
        *point_of = of;
    *count = n;
    return look;
}

void looks_crossing(const struct topo *t, bool by_nic, bool crosses[TIER_MAX])
{
    for (int i = 0; i < TIER_MAX; i++)
        crosses[i] = i < t->tiers &&
                     (by_nic || !(t->tier[i].same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN)));
}
