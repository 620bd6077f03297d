/* search.c - how many layouts a second one core evaluates, and how long a whole search takes; lines
 * "name value", and for the whole searches "name value model".
 *
 * One evaluation is one (layout, recipe): checked, its memory, work, messages, their prices on the
 * slowest groups and its timing, nothing left out by a bound, exceptions in the matrix.  Processor
 * time of one thread, so that neighbours on the machine do not count; tables empty at the start.
 * Whole searches are as the command runs them, on 8,192 GPUs of every shipped model, with the slowest
 * named: seconds of the clock, and of all cores together. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/small.h"
#include "step/search/search.h"

enum { GPUS = 8192, MANY_GPUS = 65536, PER_RACK = 72, SLOW_EVERY = 500 };

static double clock_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Slow NICs here and there, a slow host, a slow pair of racks. */
static void slow_parts(struct matrix *m)
{
    for (int i = 7; i < m->topo.endpoints; i += SLOW_EVERY)
        small_exception(m, PART_ENDPOINT, i, -1, -1, 0.4 + 0.5 * i / m->topo.endpoints);
    small_exception(m, PART_HOST, 100, -1, -1, 0.7);
    small_exception(m, PART_RACK_PAIR, 3, 9, -1, 0.8);
}

static void open_space(struct space *space, int gpus)
{
    struct recipe r;

    recipe_defaults(&r);
    space_open(&r);
    space_init(space, gpus, ORDER_MEGATRON, &r);
}

struct walk {
    struct eval eval;
    struct evaluation now;
    long timed;
};

static bool evaluate(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct walk *w = context;

    (void)serial;
    eval_candidate(&w->now, &w->eval, l, r);
    w->timed += w->now.timing.sec > 0;
    return true;
}

/* Memory without end: every candidate is evaluated whole. */
static int evaluations(const struct question *q, struct err *err)
{
    struct walk *w = mem_calloc(1, sizeof(*w));
    struct fabric endless = *q->fabric;
    struct question all = *q;
    struct space_count count;
    struct space space;
    double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);

    endless.gpu.memory_bytes.value = 0;
    all.fabric = &endless;
    open_space(&space, GPUS);
    int rc = eval_open(&w->eval, &all, &space.base, GPUS, err);
    if (rc == 0)
        space_each(&space, q->model, 0, 1, evaluate, w, &count);
    cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    setlinebuf(stdout);
    printf("%s_evaluations %ld\n", q->model->name, w->timed);
    printf("%s_per_s %.0f\n", q->model->name, (double)w->timed / cpu);
    eval_close(&w->eval);
    free(w);
    return rc;
}

struct slowest {
    double sec;
    char model[64];
};

static void slower(struct slowest *s, double sec, const char *model)
{
    if (sec > s->sec) {
        s->sec = sec;
        snprintf(s->model, sizeof(s->model), "%s", model);
    }
}

static int search(struct slowest *wall, struct slowest *cpu, const struct question *q, int gpus,
                  struct err *err)
{
    double start = clock_of(CLOCK_MONOTONIC), used = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    struct search s;
    struct space space;

    open_space(&space, gpus);
    int rc = search_run(&s, q, &space, 10, 0, err);
    search_free(&s);
    slower(wall, clock_of(CLOCK_MONOTONIC) - start, q->model->name);
    slower(cpu, clock_of(CLOCK_PROCESS_CPUTIME_ID) - used, q->model->name);
    return rc < 0 && err->code != EXIT_BELOW ? -1 : 0;
}

/* Those models on so many GPUs. */
static int searches(const struct question *q, int gpus, char **name, int names, struct err *err)
{
    struct slowest wall = {0}, cpu = {0};
    int rc = 0;

    for (int i = 0; rc == 0 && i < names; i++) {
        struct model model = {0};
        struct question own = *q;
        own.model = &model;
        rc = model_load(&model, name[i], err) < 0 || search(&wall, &cpu, &own, gpus, err) < 0;
        model_free(&model);
    }
    printf("search_%d_wall_s %.4f %s\n", gpus, wall.sec, wall.model);
    printf("search_%d_cpu_s %.4f %s\n", gpus, cpu.sec, cpu.model);
    return rc ? -1 : 0;
}

/* A matrix of so many endpoints, with slow parts. */
static int with_matrix(struct question *q, struct matrix *m, int gpus, struct err *err)
{
    matrix_init(m);
    if (matrix_from_fabric(m, q->fabric, (gpus + PER_RACK - 1) / PER_RACK, err) < 0)
        return -1;
    slow_parts(m);
    q->matrix = m;
    return 0;
}

static int small(struct question *q, struct err *err)
{
    static const char *const evaluated[] = {"llama3.1-405b", "deepseek-v3"};
    struct matrix matrix;
    char **name;
    int names = model_names(&name);
    int rc = with_matrix(q, &matrix, GPUS, err);

    for (int i = 0; rc == 0 && i < 2; i++) {
        struct model model = {0};
        struct question own = *q;
        own.model = &model;
        rc = model_load(&model, evaluated[i], err) < 0 || evaluations(&own, err) < 0;
        model_free(&model);
    }
    rc = rc || searches(q, GPUS, name, names, err) < 0;
    for (int i = 0; i < names; i++)
        free(name[i]);
    free(name);
    matrix_free(&matrix);
    return rc ? -1 : 0;
}

/* The largest space of all models, and two others. */
static int large(struct question *q, struct err *err)
{
    static char *name[] = {"qwen3-235b-a22b", "deepseek-v3", "llama3.1-405b"};
    struct matrix matrix;
    int rc =
        with_matrix(q, &matrix, MANY_GPUS, err) < 0 || searches(q, MANY_GPUS, name, 3, err) < 0;

    matrix_free(&matrix);
    return rc ? -1 : 0;
}

int main(void)
{
    struct constants constants = {0};
    struct fabric fabric = {0};
    struct question q = {.fabric = &fabric, .constants = &constants};
    struct err err = {0, ""};

    int rc = constants_load(&constants, NULL, &err) < 0 ||
             fabric_load(&fabric, "gb200-nvl72", &err) < 0 || small(&q, &err) < 0 ||
             large(&q, &err) < 0;
    if (rc)
        fprintf(stderr, "search: %s\n", err.text);
    fabric_free(&fabric);
    constants_free(&constants);
    return rc;
}
