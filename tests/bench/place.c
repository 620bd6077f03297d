/* place.c - how long placing takes (processor time of its one thread), and how good it is; lines
 * "name value".
 *
 *   place            8,192 and 65,536 ranks, and the instances beside an annealer and Scotch
 *   place N FROM     only the instances, from a seed: seed, ranks, step, default, bound, time
 *
 * An instance is a fabric with holes in its racks, slow parts and a step whose messages run along
 * several axes.  The annealer is a yardstick: it swaps blocks and single ranks by the same price,
 * ANNEALED orders from the default one.  Scotch maps the ties of the ranks onto the boxes by
 * scotch_gmap where that is on PATH; what it puts into a box that is full goes to the next. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../unit/small.h"
#include "place/place_impl.h"

enum { INSTANCES = 20, ANNEALED = 5000 };

static const struct mix {
    const char *fabric, *model, *layout;
    int racks;
    enum strategy strategy;
} mixes[] = {
    {"gb200-nvl72", "mixtral-8x7b", "dp_shard=128,ep=8", 4, STRATEGY_FSDP},
    {"gb200-nvl72", "llama3.1-70b", "tp=8,pp=4,dp=8", 6, STRATEGY_ZERO1},
    {"gb200-nvl72", "llama3.1-70b", "tp=4,cp=4,dp=16", 6, STRATEGY_ZERO1},
    {"gb200-nvl72", "deepseek-v3", "pp=4,dp=64,ep=32", 5, STRATEGY_ZERO1},
    {"gb200-nvl72", "mixtral-8x7b", "tp=2,pp=2,dp=48,ep=8", 5, STRATEGY_ZERO1},
    {"gb200-nvl72", "llama3.1-405b", "tp=8,pp=2,dp_shard=14", 5, STRATEGY_FSDP},
    {"hgx-h100", "mixtral-8x7b", "tp=2,dp=64,ep=8", 40, STRATEGY_ZERO1},
    {"hgx-h100", "llama3.1-70b", "tp=8,cp=2,dp=12", 40, STRATEGY_ZERO1},
};

struct instance {
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct place_step step;
    int *host, hosts;
};

static void close_instance(struct instance *x)
{
    free(x->host);
    matrix_free(&x->matrix);
    fabric_free(&x->fabric);
    model_free(&x->model);
    constants_free(&x->constants);
}

static int open_step(struct instance *x, const struct mix *mix, int racks, struct err *err)
{
    if (fabric_load(&x->fabric, mix->fabric, err) < 0 ||
        matrix_from_fabric(&x->matrix, &x->fabric, racks, err) < 0 ||
        model_load(&x->model, mix->model, err) < 0 || constants_load(&x->constants, NULL, err) < 0)
        return -1;
    recipe_defaults(&x->recipe);
    x->recipe.strategy = mix->strategy;
    if (layout_parse(&x->layout, mix->layout, mix->strategy, ORDER_MEGATRON, 0, err) < 0 ||
        layout_check(&x->layout, &x->model, &x->recipe, err) < 0)
        return -1;
    struct question q = {.matrix = &x->matrix,
                         .fabric = &x->fabric,
                         .model = &x->model,
                         .layout = &x->layout,
                         .recipe = &x->recipe,
                         .constants = &x->constants};
    return place_step_of(&x->step, &q, err);
}

/* A host less here and there, as long as the ranks find room; slow hosts, NICs and a pair of racks. */
static int open_instance(struct instance *x, unsigned seed, struct err *err)
{
    const struct mix *mix = &mixes[seed % (sizeof(mixes) / sizeof(*mixes))];
    struct rng rng;

    memset(x, 0, sizeof(*x));
    rng_seed(&rng, seed);
    if (open_step(x, mix, mix->racks, err) < 0)
        return -1;
    int hosts = x->matrix.topo.hosts, per = x->matrix.topo.endpoints / hosts, left = hosts;
    for (int h = 0; h < hosts; h++)
        if ((left - 1) * per >= x->step.ranks && rng_below(&rng, 6) == 0)
            left--;
        else
            MEM_PUSH(x->host, x->hosts) = h;
    if (rng_below(&rng, 3) == 0)
        rng_shuffle(&rng, x->host, x->hosts);
    for (unsigned n = rng_below(&rng, 3); n > 0; n--)
        small_exception(&x->matrix, PART_HOST, (int)rng_below(&rng, (unsigned)hosts), -1, -1,
                        0.3 + 0.5 * rng_uniform(&rng));
    for (unsigned n = rng_below(&rng, 3); n > 0; n--)
        small_exception(&x->matrix, PART_ENDPOINT, (int)rng_below(&rng, (unsigned)(hosts * per)),
                        -1, -1, 0.3 + 0.5 * rng_uniform(&rng));
    if (rng_below(&rng, 2))
        small_exception(&x->matrix, PART_RACK_PAIR, 0, 1 + (int)rng_below(&rng, 3), -1, 0.5);
    return 0;
}

static struct place_ask ask_of(const struct instance *x)
{
    return (struct place_ask){
        .step = &x->step, .matrix = &x->matrix, .host = x->host, .hosts = x->hosts, .seed = 1};
}

/* --- yardsticks --- */

static void swap(int *a, int *b)
{
    int keep = *a;

    *a = *b;
    *b = keep;
}

/* Blocks of a power of two or of whole hosts; free slots stand behind those that are taken. */
static double anneal(struct placer *pl, int *slot, int slots)
{
    struct rng rng;
    struct place_sec sec = placer_order(pl, slot);
    double now = sec.most, best = now, heat = 0.03 * now;

    rng_seed(&rng, 3);
    for (int i = 0; i < ANNEALED; i++, heat *= pow(1e-4, 1.0 / ANNEALED)) {
        int size = rng_below(&rng, 2) ? 1 << rng_below(&rng, 7)
                                      : pl->pool->per_host * (1 + (int)rng_below(&rng, 4));
        int a = (int)rng_below(&rng, (unsigned)slots) / size * size;
        int b = (int)rng_below(&rng, (unsigned)slots) / size * size;
        if (a == b || a + size > slots || b + size > slots)
            continue;
        for (int k = 0; k < size; k++)
            swap(&slot[a + k], &slot[b + k]);
        double next = placer_order(pl, slot).most;
        if (next <= now || rng_uniform(&rng) < exp((now - next) / heat))
            now = next;
        else
            for (int k = 0; k < size; k++)
                swap(&slot[a + k], &slot[b + k]);
        best = fmin(best, now);
    }
    return best;
}

static int write_files(const struct ties *t, int ranks, const int *slots, int boxes)
{
    FILE *g = fopen("ties.grf", "w"), *tgt = fopen("boxes.tgt", "w");
    double most = 0;

    if (!g || !tgt)
        return -1;
    for (int i = 0; i < t->start[ranks]; i++)
        most = fmax(most, t->tie[i].out + t->tie[i].in);
    fprintf(g, "0\n%d %d\n0 010\n", ranks, t->start[ranks]);
    for (int r = 0; r < ranks; r++) {
        fprintf(g, "%d", t->start[r + 1] - t->start[r]);
        for (int i = t->start[r]; i < t->start[r + 1]; i++)
            fprintf(g, " %.0f %d", 1 + 1e4 * ((t->tie[i].out + t->tie[i].in) / most),
                    t->tie[i].peer);
        fprintf(g, "\n");
    }
    fprintf(tgt, "cmpltw %d", boxes);
    for (int b = 0; b < boxes; b++)
        fprintf(tgt, " %d", slots[b]);
    fprintf(tgt, "\n");
    return fclose(g) | fclose(tgt);
}

static int read_parts(int *part, int ranks, int *room, int boxes)
{
    FILE *f = fopen("map", "r");
    int n, rank, box;

    if (!f || fscanf(f, "%d", &n) != 1 || n != ranks)
        return -1;
    while (fscanf(f, "%d %d", &rank, &box) == 2) {
        while (room[box] == 0)
            box = (box + 1) % boxes;
        room[box]--;
        part[rank] = box;
    }
    fclose(f);
    return 0;
}

/* NAN: Scotch is not there. */
static double scotch(struct placer *pl)
{
    int level[LEVEL_COUNT], levels = node_pool_levels(pl->pool, level), boxes = 0, left = pl->ranks;
    int *part = mem_calloc((size_t)pl->ranks, sizeof(int));
    int *order = mem_calloc((size_t)pl->ranks, sizeof(int));
    double sec = NAN;
    struct row r;

    row_make(&r, pl->pool, levels ? level[0] : -1, ROW_HEALTHY, -1, -1);
    int *slots = mem_calloc((size_t)r.boxes + 1, sizeof(int));
    for (; left > 0; boxes++) {
        slots[boxes] = (int)fmin(row_slots(&r, pl->pool, boxes), left);
        left -= slots[boxes];
    }
    if (write_files(placer_ties(pl), pl->ranks, slots, boxes) == 0 &&
        system("scotch_gmap ties.grf boxes.tgt map >log 2>&1") == 0 &&
        read_parts(part, pl->ranks, slots, boxes) == 0 && greedy_fill(pl, &r, part, order))
        sec = placer_order(pl, order).most;
    row_free(&r);
    free(slots);
    free(part);
    free(order);
    return sec;
}

static int compare(struct instance *x, const struct placed *p, double *annealed, double *mapped,
                   struct err *err)
{
    struct place_ask ask = ask_of(x);
    struct host_slots slots;
    struct node_pool pool;
    struct placer pl;

    host_slots_make(&slots, &x->matrix.topo);
    int rc = node_pool_make(&pool, &x->matrix, &slots, x->host, x->hosts, 0, err);
    if (rc == 0) {
        placer_open(&pl, &ask, &pool);
        *mapped = p->sec / scotch(&pl);
        *annealed = p->sec / anneal(&pl, pool.endpoint, pool.slots);
        placer_close(&pl);
    }
    node_pool_free(&pool);
    host_slots_free(&slots);
    return rc;
}

/* --- what is printed --- */

static void spread(const char *name, double *ratio, int n)
{
    double most = 0;

    if (n == 0 || isnan(ratio[0]))
        return;
    for (int i = 0; i < n; i++)
        most = fmax(most, ratio[i]);
    printf("%s_median %.4f\n%s_worst %.4f\n", name, stats_median(ratio, n), name, most);
}

static int instances(unsigned from, int n, bool only, struct err *err)
{
    double annealed[INSTANCES], mapped[INSTANCES], loose[INSTANCES];
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++) {
        struct instance x;
        struct placed p = {.order = NULL};
        rc = open_instance(&x, from + (unsigned)i, err);
        struct place_ask ask = ask_of(&x);
        if (rc == 0)
            rc = place_run(&p, &ask, err);
        if (rc == 0 && only)
            printf("%u %d %.9f %.9f %.9f %.4f\n", from + (unsigned)i, p.ranks, p.sec, p.in_order,
                   p.bound, p.took);
        else if (rc == 0)
            rc = compare(&x, &p, &annealed[i], &mapped[i], err);
        if (!only && rc == 0)
            loose[i] = p.bound > 0 ? p.sec / p.bound : NAN;
        placed_free(&p);
        close_instance(&x);
    }
    if (rc == 0 && !only) {
        spread("annealing", annealed, n);
        spread("scotch", mapped, n);
        spread("bound", loose, n); /* of which all are 1 at best */
    }
    return rc;
}

static int timed(const char *name, const struct mix *mix, struct err *err)
{
    struct instance x = {.hosts = 0};
    struct placed p = {.order = NULL};
    int rc = open_step(&x, mix, mix->racks, err);
    struct place_ask ask = {.step = &x.step, .matrix = &x.matrix, .seed = 1};

    clock_t from = clock();
    if (rc == 0)
        rc = place_run(&p, &ask, err);
    if (rc == 0)
        printf("%s_s %.4f\n%s_of_default %.4f\n", name, (double)(clock() - from) / CLOCKS_PER_SEC,
               name, p.sec / p.in_order);
    placed_free(&p);
    close_instance(&x);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct mix large[] = {
        {"gb200-nvl72", "llama3.1-405b", "tp=8,pp=8,dp=128", 128, STRATEGY_FSDP},
        {"gb200-nvl72", "llama3.1-405b", "tp=8,pp=8,dp=1024", 1000, STRATEGY_FSDP}};
    char folder[] = "/tmp/bench_place.XXXXXX";
    struct err err = {0, ""};
    int rc;

    if (argc == 3) {
        rc = instances((unsigned)atoi(argv[2]), atoi(argv[1]), true, &err);
    } else {
        rc = mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
        if (rc == 0)
            rc = timed("8192", &large[0], &err) < 0 || timed("65536", &large[1], &err) < 0 ? -1 : 0;
        if (rc == 0)
            rc = instances(1, INSTANCES, false, &err);
        for (size_t i = 0; i < 4; i++)
            unlink((const char *[]){"ties.grf", "boxes.tgt", "map", "log"}[i]);
        rmdir(folder);
    }
    if (rc < 0)
        fprintf(stderr, "place: %s\n", err.text);
    return rc < 0;
}
