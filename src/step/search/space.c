/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/space.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const refusal_name[REFUSALS] = {
    [REFUSED_TP] = "tp does not divide heads, width or sequence",
    [REFUSED_CP] = "cp does not divide the sequence",
    [REFUSED_PP] = "pp does not divide the layers",
    [REFUSED_EXPERTS] = "ep and etp do not divide experts or ranks",
    [REFUSED_BATCH] = "the batch is no multiple of the data-parallel ranks",
    [REFUSED_OTHER] = "refused for another reason",
};

/* A walk over the space. */
struct space_walk {
    const struct space *s;
    const struct model *m;
    space_visit *visit;
    void *context;
    struct space_count *count;
    struct layout layout;
    struct recipe recipe;
    int *divisor, divisors; /* divisors of the ranks, ascending */
    int experts;            /* experts of the layer with most */
    int *micro, micros;
    int part, parts;
    long meshes, serial;
};

enum { SERIALS_PER_MESH = 1 << 20 };

static bool allows(const struct space_range *r, int value)
{
    if (value < r->min || value > r->max)
        return false;
    for (int i = 0; i < r->buts; i++)
        if (r->but[i] == value)
            return false;
    for (int i = 0; i < r->onlys; i++)
        if (r->only[i] == value)
            return true;
    return r->onlys == 0;
}

/* Check candidates and pass them on until the visitor refuses larger micro batches. */
static void each_micro(struct space_walk *w)
{
    long dp = (long)w->layout.size[AXIS_DP_SHARD] * w->layout.size[AXIS_DP_REPLICATE];
    struct recipe r = w->recipe;
    bool enough = false;

    r.micro_batch = 1;
    bool runs = layout_check_mesh(&w->layout, w->m, &r, NULL) == 0;
    for (int i = 0; i < w->micros && dp * w->micro[i] <= r.global_batch; i++) {
        r.micro_batch = w->micro[i];
        w->count->candidates++;
        if (!runs || layout_check_batch(&w->layout, &r, NULL) < 0)
            w->count->refused_candidates++;
        else if (enough)
            w->count->larger++;
        else
            enough = !w->visit(w->context, &w->layout, &r, ++w->serial);
    }
}

/* Chunks that divide the layers, with embedding and loss counted as layers or not; other numbers of
 * stages only if they are powers of two, the usual choice. */
static bool worth_trying(const struct space_walk *w, int stages)
{
    int chunks = w->layout.size[AXIS_PP] * stages, layers = w->m->layers;

    return layers % chunks == 0 || (layers + 2) % chunks == 0 || (stages & (stages - 1)) == 0;
}

static void each_stages(struct space_walk *w)
{
    const struct space_range *range = &w->s->number[NUMBER_STAGES];
    int pp = w->layout.size[AXIS_PP];

    if (w->recipe.schedule != SCHEDULE_INTERLEAVED) {
        w->recipe.stages = 1;
        if (allows(range, 1))
            each_micro(w);
        return;
    }
    for (int v = 2; pp > 1 && v * pp <= w->m->layers + 2; v++)
        if (allows(range, v) && (range->onlys || worth_trying(w, v))) {
            w->recipe.stages = v;
            each_micro(w);
        }
}

const struct space_choice space_choice[CHOICES] = {
    [CHOICE_STRATEGY] = {"strategy", offsetof(struct recipe, strategy), false,
                         1u << STRATEGY_ZERO1 | 1u << STRATEGY_FSDP | 1u << STRATEGY_HSDP},
    [CHOICE_RECOMPUTE] = {"recompute", offsetof(struct recipe, recompute), false,
                          (1u << RECOMPUTE_COUNT) - 1},
    [CHOICE_SCHEDULE] = {"schedule", offsetof(struct recipe, schedule), false,
                         1u << SCHEDULE_1F1B | 1u << SCHEDULE_INTERLEAVED},
    [CHOICE_CONTEXT] = {"context", offsetof(struct recipe, context), false, 0},
    [CHOICE_SEQUENCE] = {"sequence-parallel", offsetof(struct recipe, sequence_parallel), true, 0},
    [CHOICE_PREFETCH] = {"prefetch", offsetof(struct recipe, prefetch), true, 0},
    [CHOICE_RESHARD] = {"reshard", offsetof(struct recipe, reshard), true, 0},
    [CHOICE_DISPATCH] = {"dispatch", offsetof(struct recipe, dispatch), false, 0},
    [CHOICE_OVERLAP] = {"ep-overlap", offsetof(struct recipe, ep_overlap), true, 0},
    [CHOICE_GRAPHS] = {"cuda-graphs", offsetof(struct recipe, cuda_graphs), false, 0},
    [CHOICE_FUSION] = {"moe-fusion", offsetof(struct recipe, moe_fusion), true, 0},
};

static int choice_get(const struct recipe *r, int c)
{
    const void *at = (const char *)r + space_choice[c].at;

    return space_choice[c].is_switch ? *(const bool *)at : *(const int *)at;
}

static void choice_set(struct recipe *r, int c, int word)
{
    void *at = (char *)r + space_choice[c].at;

    if (space_choice[c].is_switch)
        *(bool *)at = word;
    else
        *(int *)at = word;
}

/* Without a pipeline all schedules are equal. */
static bool schedule_repeats(const struct space_walk *w, int word)
{
    unsigned plain = w->s->choice[CHOICE_SCHEDULE] & ~(1u << SCHEDULE_INTERLEAVED);

    return w->layout.size[AXIS_PP] == 1 && (plain & ((1u << word) - 1));
}

static void each_choice(struct space_walk *w, int c)
{
    if (c == CHOICES) {
        each_stages(w);
        return;
    }
    for (int word = 0; w->s->choice[c] >> word; word++) {
        if (!(w->s->choice[c] >> word & 1) || (c == CHOICE_SCHEDULE && schedule_repeats(w, word)))
            continue;
        choice_set(&w->recipe, c, word);
        each_choice(w, c + 1);
    }
}

static enum refusal why_refused(const char *text)
{
    static const char *const begins[REFUSALS] = {[REFUSED_TP] = "tp=",
                                                 [REFUSED_CP] = "cp=",
                                                 [REFUSED_PP] = "pp=",
                                                 [REFUSED_EXPERTS] = "e",
                                                 [REFUSED_BATCH] = "a batch"};

    for (int i = 0; i < REFUSED_OTHER; i++)
        if (!strncmp(text, begins[i], strlen(begins[i])))
            return i;
    return REFUSED_OTHER;
}

/* Try the mildest recipe first: a mesh impossible for it is impossible for all. */
static void mesh(struct space_walk *w)
{
    enum strategy strategy = w->recipe.strategy;
    struct recipe mild = w->s->base;
    struct err err;

    if (w->meshes++ % w->parts != w->part)
        return;
    w->serial = w->meshes * SERIALS_PER_MESH;
    w->count->meshes++;
    mild.strategy = strategy;
    mild.schedule = SCHEDULE_1F1B;
    mild.recompute = RECOMPUTE_NONE;
    mild.stages = 1;
    mild.micro_batch = w->micros ? w->micro[0] : 1;
    w->layout.order = w->s->order;
    if (layout_make(&w->layout, strategy, &err) < 0 ||
        layout_check(&w->layout, w->m, &mild, &err) < 0)
        w->count->refused[why_refused(err.text)]++;
    else
        each_choice(w, CHOICE_STRATEGY + 1);
}

static void each_expert(struct space_walk *w)
{
    const struct space_range *etp = &w->s->number[AXIS_ETP];
    int *size = w->layout.size;

    for (int i = 0; i < w->divisors && w->divisor[i] <= w->experts; i++) {
        size[AXIS_EP] = w->divisor[i];
        if (w->experts % size[AXIS_EP] || !allows(&w->s->number[AXIS_EP], size[AXIS_EP]))
            continue;
        for (int k = 0; k < w->divisors && w->divisor[k] <= size[AXIS_TP]; k++) {
            size[AXIS_ETP] = w->divisor[k];
            if (allows(etp, size[AXIS_ETP]) &&
                (etp->given || size[AXIS_ETP] == 1 || size[AXIS_ETP] == size[AXIS_TP]))
                mesh(w);
        }
        size[AXIS_ETP] = 1;
    }
    size[AXIS_EP] = 1;
}

static void experts(struct space_walk *w)
{
    const struct space_range *n = w->s->number;

    if (w->experts)
        each_expert(w);
    else if (allows(&n[AXIS_EP], 1) && allows(&n[AXIS_ETP], 1))
        mesh(w);
}

static void split(struct space_walk *w, int shard, int replicate)
{
    const struct space_range *n = w->s->number;

    if (!allows(&n[AXIS_DP_SHARD], shard) || !allows(&n[AXIS_DP_REPLICATE], replicate))
        return;
    w->layout.size[AXIS_DP_SHARD] = shard;
    w->layout.size[AXIS_DP_REPLICATE] = replicate;
    experts(w);
}

static void each_split(struct space_walk *w, int dp)
{
    int strategy = w->recipe.strategy;

    if (strategy == STRATEGY_DDP)
        split(w, 1, dp);
    else if (strategy != STRATEGY_HSDP)
        split(w, dp, 1);
    for (int i = 1; strategy == STRATEGY_HSDP && i < w->divisors && 2 * w->divisor[i] <= dp; i++)
        if (dp % w->divisor[i] == 0)
            split(w, w->divisor[i], dp / w->divisor[i]);
}

/* Without sharding, the first strategy stands for all. */
static void each_strategy(struct space_walk *w, int dp)
{
    bool alone = dp * w->layout.size[AXIS_CP] == 1;

    for (int word = 0; word < STRATEGY_COUNT; word++) {
        if (!(w->s->choice[CHOICE_STRATEGY] >> word & 1))
            continue;
        w->recipe.strategy = word;
        each_split(w, dp);
        if (alone && word != STRATEGY_HSDP)
            return;
    }
}

/* tp, cp and pp in order take a divisor of the remaining ranks; the rest is data parallel. */
static void each_axis(struct space_walk *w, int turn, int left)
{
    static const enum axis order[] = {AXIS_PP, AXIS_TP, AXIS_CP};

    if (turn == 3) {
        if (allows(&w->s->number[NUMBER_DP], left))
            each_strategy(w, left);
        return;
    }
    for (int i = 0; i < w->divisors && w->divisor[i] <= left; i++)
        if (left % w->divisor[i] == 0 && allows(&w->s->number[order[turn]], w->divisor[i])) {
            w->layout.size[order[turn]] = w->divisor[i];
            each_axis(w, turn + 1, left / w->divisor[i]);
        }
}

static void find_divisors(struct space_walk *w)
{
    for (int d = 1; d <= w->s->ranks; d++)
        if (w->s->ranks % d == 0)
            MEM_PUSH(w->divisor, w->divisors) = d;
}

static void find_micros(struct space_walk *w)
{
    const struct space_range *r = &w->s->number[NUMBER_MICRO];

    for (int b = 1; b <= w->s->base.global_batch && b <= 1 << 20; b++) {
        bool usual = (b & (b - 1)) == 0 || r->onlys;
        if (usual && allows(r, b))
            MEM_PUSH(w->micro, w->micros) = b;
    }
}

void space_each(const struct space *s, const struct model *m, int part, int parts,
                space_visit *visit, void *context, struct space_count *count)
{
    struct space_walk w = {.s = s,
                           .m = m,
                           .part = part,
                           .parts = parts,
                           .visit = visit,
                           .context = context,
                           .count = count,
                           .recipe = s->base};

    memset(count, 0, sizeof(*count));
    for (int i = 0; i < AXIS_COUNT; i++)
        w.layout.size[i] = 1;
    for (int i = 0; i < m->kinds; i++)
        if (m->layer[i].mlp.experts > w.experts)
            w.experts = m->layer[i].mlp.experts;
    find_divisors(&w);
    find_micros(&w);
    each_axis(&w, 0, s->ranks);
    free(w.divisor);
    free(w.micro);
}

static void fix(struct space_range *r, int value)
{
    r->only[0] = value;
    r->onlys = 1;
}

void space_init(struct space *s, int ranks, enum mesh_order order, const struct recipe *base)
{
    *s = (struct space){.ranks = ranks, .order = order, .base = *base};
    if (!s->base.global_batch)
        s->base.global_batch = ranks;
    for (int i = 0; i < NUMBERS; i++)
        s->number[i] = (struct space_range){.min = 1, .max = INT_MAX};
    if (base->micro_batch > 0)
        fix(&s->number[NUMBER_MICRO], base->micro_batch);
    if (base->stages > 0)
        fix(&s->number[NUMBER_STAGES], base->stages);
    for (int c = 0; c < CHOICES; c++) {
        int word = choice_get(base, c);
        s->choice[c] = word < 0 ? space_choice[c].usual : 1u << word;
    }
    if (base->stages > 1 && base->schedule < 0)
        s->choice[CHOICE_SCHEDULE] = 1u << SCHEDULE_1F1B | 1u << SCHEDULE_INTERLEAVED;
}
