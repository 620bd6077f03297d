/* SPDX-License-Identifier: BSD-3-Clause */
/* record_job.c - recorded jobs whose truth is known: clocks, steps and late ranks are found, and
 * nothing else is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "record/job/answers.h"
#include "record/record_job.h"
#include "record/record_steps.h"
#include "tests/unit/record_scene.h"

static unsigned long long seed;

static const struct scene usual = {.hosts = 6,
                                   .gpus = 4,
                                   .layers = 8,
                                   .steps = 20,
                                   .overlap = true,
                                   .offset = 50e-3,
                                   .drift = 20e-6,
                                   .late = 200e-6,
                                   .noise = 3e-6};

static void open_scene(struct record_job *j, struct scene_run *x, struct scene *s)
{
    struct err err = {0, ""};

    s->seed = ++seed;
    print_message("seed %llu\n", s->seed);
    scene_run(x, s);
    if (scene_tell(j, x, &err) < 0)
        fail_msg("%s", err.text);
    record_clock_align(j);
}

static void close_scene(struct record_job *j, struct scene_run *x)
{
    record_job_free(j);
    scene_free(x);
}

/* Starts on the common clock are those of the truth, as the first host's clock has it. */
static void test_clocks(void **state)
{
    struct scene s = usual;
    struct record_job j;
    struct scene_run x;
    double worst = 0;

    (void)state;
    open_scene(&j, &x, &s);
    for (int p = 0; p < j.processes; p++) {
        const struct scene_rank *a = &x.rank[0], *k = &x.rank[p];
        assert_true(j.process[p].unsure < 20e-6);
        for (int i = 0; i < x.log[p].entries; i++) {
            double truth = (x.log[p].entry[i].start - k->offset) / (1 + k->drift);
            double want = truth * (1 + a->drift) + a->offset;
            double got = (double)j.entry[j.process[p].first + i].start / 1e9;
            worst = fmax(worst, fabs(got - want));
        }
    }
    print_message("worst %.1f us of %.0f ms\n", worst * 1e6, s.offset * 1e3);
    assert_true(worst < 10e-6);
    close_scene(&j, &x);
}

static void test_steps(void **state)
{
    struct scene s = usual;
    struct record_job j;
    struct scene_run x;
    struct record_steps steps;

    (void)state;
    open_scene(&j, &x, &s);
    float *overlap = record_points_overlap(&j);
    record_steps_find(&steps, &j, overlap);
    assert_in_range(steps.steps, s.steps - 3, s.steps);
    assert_int_equal(steps.period, 3 * s.layers);
    assert_int_equal(steps.rows, 4);
    for (int i = 0; i < steps.rows; i++) {
        const struct record_row *r = &steps.row[i];
        double want = r->op == OP_ALL_GATHER       ? 2 * s.layers
                      : r->op == OP_REDUCE_SCATTER ? s.layers
                      : r->bytes == 4              ? 1
                                                   : 2 * s.layers;
        assert_true(r->count == want);
        assert_int_equal(r->inside, r->size == s.gpus);
        assert_int_equal(r->stride, r->size == s.hosts ? s.gpus : 1);
        if (r->op == OP_ALL_GATHER)
            assert_true(fabs(r->sec / (want * 900e-6 * 1.016) - 1) < 0.05);
        /* Weights go beside what the host's ranks sum, which is short. */
        if (r->size == s.gpus)
            assert_true(r->overlap > 0.5);
    }
    record_steps_free(&steps);
    free(overlap);
    close_scene(&j, &x);
}

static void expect(struct scene *s, enum scene_fault fault, const char *name, enum late_kind kind)
{
    struct record_job j;
    struct scene_run x;
    struct late l;

    s->fault = fault;
    open_scene(&j, &x, s);
    late_find(&l, &j);
    for (int i = 0; i < l.parts; i++) {
        char *text = late_name(&l.part[i], &j);
        print_message("fault %d: %s %s, %.0f us, %d of %d, lost %.1f %%\n", (int)fault, text,
                      late_kind_name[l.part[i].kind], l.part[i].behind * 1e6, l.part[i].last,
                      l.part[i].calls, 100 * l.part[i].share);
        free(text);
    }
    assert_int_equal(l.parts, name != NULL);
    if (name) {
        char *text = late_name(&l.part[0], &j);
        assert_string_equal(text, name);
        assert_int_equal(l.part[0].kind, kind);
        assert_int_equal(l.part[0].only, fault == SCENE_ONE_AXIS);
        free(text);
    }
    late_free(&l);
    close_scene(&j, &x);
}

static void test_late(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct scene s = usual;
        char name[48];
        s.overlap = i % 2;
        s.culprit = (int)((seed * 7 + 5) % (unsigned long long)(s.hosts * s.gpus));
        expect(&s, SCENE_NOBODY, NULL, LATE_NOT);
        snprintf(name, sizeof(name), "rank %d on n%02d (device %d)", s.culprit, s.culprit / s.gpus,
                 s.culprit % s.gpus);
        expect(&s, SCENE_RANK, name, LATE_USUAL);
        s.compute = 3e-3;
        s.overlap = true;
        expect(&s, SCENE_ONE_AXIS, name, LATE_USUAL);
        s.compute = 0;
        s.overlap = i % 2;
        s.steps = 80;
        expect(&s, SCENE_SOMETIMES, name, LATE_SOMETIMES);
        s.steps = usual.steps;
        snprintf(name, sizeof(name), "host n%02d", s.culprit / s.gpus);
        expect(&s, SCENE_HOST, name, LATE_USUAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_late),
    };
    const char *given = getenv("RG_SEED");

    seed = given ? strtoull(given, NULL, 10) : (unsigned long long)time(NULL) % 1000000 * 100;
    return cmocka_run_group_tests_name("record_job", tests, NULL, NULL);
}
