/* search.c - how many layouts a second one core evaluates, and how long a search of 8,192 GPUs
 * takes; lines "name value".
 *
 * One evaluation is one (layout, recipe): checked, its memory, work, messages, their prices on the
 * slowest groups and its timing, as railgauge search does it, exceptions in the matrix.  Processor
 * time of one thread, so that neighbours on the machine do not count; tables empty at the start. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/small.h"
#include "step/search/search.h"

enum { GPUS = 8192, RACKS = 114, SLOW_EVERY = 500 };

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

static int search(struct search *s, const struct question *q, int threads)
{
    struct recipe r;
    struct space space;
    struct err err;

    recipe_defaults(&r);
    space_open(&r);
    space_init(&space, GPUS, ORDER_MEGATRON, &r);
    int rc = search_run(s, q, &space, 10, threads, &err);
    if (rc < 0)
        fprintf(stderr, "search: %s: %s\n", q->model->name, err.text);
    return rc;
}

/* One thread by its processor time, with memory without end, so that every candidate is evaluated
 * whole; then as the command runs. */
static int measure(struct question *q, const struct fabric *endless, const struct fabric *fabric)
{
    const char *name = q->model->name;
    struct search s = {0};
    double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);

    q->fabric = endless;
    if (search(&s, q, 1) < 0)
        return -1;
    cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%s_evaluations %ld\n", name, s.priced);
    printf("%s_cpu_s %.4f\n", name, cpu);
    printf("%s_per_s %.0f\n", name, (double)s.priced / cpu);
    search_free(&s);
    q->fabric = fabric;
    double wall = clock_of(CLOCK_MONOTONIC);
    if (search(&s, q, 0) < 0)
        return -1;
    printf("%s_fit %ld\n", name, s.priced);
    printf("%s_wall_s %.4f\n", name, clock_of(CLOCK_MONOTONIC) - wall);
    search_free(&s);
    return 0;
}

int main(void)
{
    static const char *const models[] = {"llama3.1-405b", "deepseek-v3"};
    struct constants constants = {0};
    struct fabric fabric = {0};
    struct matrix matrix;
    struct err err = {0, ""};
    int rc = 0;

    matrix_init(&matrix);
    if (constants_load(&constants, NULL, &err) < 0 ||
        fabric_load(&fabric, "gb200-nvl72", &err) < 0 ||
        matrix_from_fabric(&matrix, &fabric, RACKS, &err) < 0)
        rc = 1;
    else
        slow_parts(&matrix);
    for (int i = 0; rc == 0 && i < 2; i++) {
        struct model model = {0};
        struct fabric endless = fabric;
        endless.gpu.memory_bytes.value = 0;
        struct question q = {
            .matrix = &matrix, .fabric = &fabric, .model = &model, .constants = &constants};
        rc = model_load(&model, models[i], &err) < 0 || measure(&q, &endless, &fabric) < 0;
        model_free(&model);
    }
    if (rc)
        fprintf(stderr, "search: %s\n", err.text);
    matrix_free(&matrix);
    fabric_free(&fabric);
    constants_free(&constants);
    return rc;
}
