/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/calibrate.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* --- numbers that look drawn by chance and are the same in every run --- */

static unsigned long long state_of_draws;

static double draw(void)
{
    state_of_draws = state_of_draws * 6364136223846793005ULL + 1442695040888963407ULL;
    return ((double)(state_of_draws >> 11) + 0.5) / 9007199254740992.0;
}

static double draw_normal(void)
{
    double r = sqrt(-2 * log(draw()));

    return r * cos(6.283185307179586 * draw());
}

/* --- the mixed model --- */

enum { ROWS = 600, FIXED = 2, LEVELS_A = 24, LEVELS_B = 40, EFFECTS = LEVELS_A + LEVELS_B };

/* Seconds x0' a + x1' b of which effects lengthen the first part; a few rows are absurd. */
struct simulated {
    double a[ROWS], b[ROWS], seconds[ROWS], effect[EFFECTS];
    int slot[ROWS * 2], factor[EFFECTS];
    int asked;
};

static const double true_x[FIXED] = {0.4, -0.3};
static const double true_spread[2] = {0.12, 0.06}, true_rest = 0.03;

static double simulated_seconds(const struct simulated *s, int row, const double *x, double sum)
{
    return exp(x[0] + sum) * s->a[row] + exp(x[1]) * s->b[row];
}

static void simulate(struct simulated *s)
{
    state_of_draws = 13;
    for (int k = 0; k < EFFECTS; k++) {
        s->factor[k] = k >= LEVELS_A;
        s->effect[k] = true_spread[s->factor[k]] * draw_normal();
    }
    for (int i = 0; i < ROWS; i++) {
        s->a[i] = 1 + 4 * draw();
        s->b[i] = 3 * draw();
        s->slot[2 * i] = (int)(LEVELS_A * draw());
        s->slot[2 * i + 1] = LEVELS_A + (int)(LEVELS_B * draw());
        double sum = s->effect[s->slot[2 * i]] + s->effect[s->slot[2 * i + 1]];
        s->seconds[i] = simulated_seconds(s, i, true_x, sum) * exp(true_rest * draw_normal());
        if (i % 50 == 7)
            s->seconds[i] *= 3;
    }
}

static void simulated_residuals(void *ctx, const double *x, const double *sum, double *residual)
{
    struct simulated *s = ctx;

    s->asked++;
    for (int i = 0; i < ROWS; i++)
        residual[i] = log(simulated_seconds(s, i, x, sum[i]) / s->seconds[i]);
}

struct solution {
    double x[FIXED + EFFECTS], error[FIXED + EFFECTS], spread[2];
    double residual[ROWS], share[ROWS], slope[ROWS * FIXED], weight[ROWS];
    struct mixed m;
};

static void solve(struct solution *o, struct simulated *s)
{
    static const double prior[FIXED] = {0, 0}, width[FIXED] = {1, 1};

    memset(o, 0, sizeof(*o));
    for (int i = 0; i < ROWS; i++)
        o->weight[i] = 1;
    o->m = (struct mixed){.rows = ROWS,
                          .fixed = FIXED,
                          .effects = EFFECTS,
                          .factors = 2,
                          .slots = 2,
                          .weight = o->weight,
                          .prior = prior,
                          .width = width,
                          .factor = s->factor,
                          .slot = s->slot,
                          .x = o->x,
                          .error = o->error,
                          .spread = o->spread,
                          .residual = o->residual,
                          .share = o->share,
                          .slope = o->slope,
                          .ask = simulated_residuals,
                          .ctx = s};
    assert_true(mixed_solve(&o->m));
}

TEST(numbers_effects_and_deviations_of_a_simulation_are_found)
{
    static struct simulated s;
    static struct solution o;
    int near = 0;

    simulate(&s);
    solve(&o, &s);
    for (int k = 0; k < FIXED; k++)
        assert_true(fabs(o.x[k] - true_x[k]) < 3 * o.error[k] && o.error[k] < 0.1);
    for (int k = 0; k < EFFECTS; k++)
        near += fabs(o.x[FIXED + k] - s.effect[k]) < 2 * o.error[FIXED + k];
    assert_true(near >= EFFECTS * 85 / 100);
    for (int f = 0; f < 2; f++)
        assert_true(fabs(o.spread[f] / true_spread[f] - 1) < 0.3);
    /* The t distribution's scale lies below a normal one's deviation. */
    assert_true(o.m.rest > 0.6 * true_rest && o.m.rest < 1.1 * true_rest);
    assert_true(s.asked < 100);
}

/* Rows left out say nothing: as if they were absurd; and a level of which all are left is 0. */
TEST(rows_left_out_change_nothing)
{
    static struct simulated s;
    static struct solution o;
    static bool left[ROWS];
    double x[2][FIXED + EFFECTS], error[FIXED + EFFECTS];

    simulate(&s);
    solve(&o, &s);
    for (int i = 0; i < ROWS; i++)
        left[i] = s.slot[2 * i] == 3;
    mixed_without(&o.m, left, x[0], error);
    for (int i = 0; i < ROWS; i++)
        o.residual[i] += left[i] ? 5 : 0;
    mixed_without(&o.m, left, x[1], error);
    for (int k = 0; k < FIXED + EFFECTS; k++)
        assert_float_equal(x[0][k], x[1][k], 0);
    assert_float_equal(x[0][FIXED + 3], 0, 1e-9);
    assert_float_equal(error[FIXED + 3], o.spread[0], 1e-9);
}

/* --- the fit --- */

/* Steps whose times are made from known constants. */
static const char *const jobs[] = {
    "llama3.1-8b\tH100\t8\t16\t1\t1\t1",    "llama3.1-8b\tH100\t16\t64\t2\t2\t1",
    "llama3.1-8b\tH100\t8\t32\t1\t4\t1",    "llama3.1-70b\tH100\t64\t128\t1\t8\t1",
    "llama3.1-70b\tH100\t64\t64\t1\t4\t4",  "llama3.1-70b\tH100\t128\t256\t1\t8\t2",
    "llama3.1-70b\tH100\t64\t128\t1\t2\t4", "llama3.1-405b\tH100\t512\t512\t1\t8\t8",
};
enum { JOBS = sizeof(jobs) / sizeof(*jobs) };
static const char *const fitted[] = {"efficiency.hopper.bf16", "exposed.tp"};

/* seconds[i] of job i, with a row of a test split that is absurd when `test`. */
static void load(struct batch *b, const double *seconds, bool test)
{
    char path[] = "/tmp/rg-calibrate-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");

    assert_non_null(f);
    fputs("model\thardware\tgpus\tglobal_batch\tmicro_batch\ttp\tpp\tseq_len\tdtype\tzero_stage/"
          "fsdp\tvalue\tsplit\n",
          f);
    for (int i = 0; i < JOBS; i++)
        fprintf(f, "%s\t8192\tbf16\tZeRO-1\t%.12g\tcalib\n", jobs[i], seconds[i]);
    if (test)
        fprintf(f, "%s\t8192\tbf16\tZeRO-1\t%.12g\ttest_scale\n", jobs[5], 10 * seconds[5]);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(batch_load(b, path, NULL), 0);
    unlink(path);
    struct constants c;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    batch_resolve(b, &c);
    constants_free(&c);
    for (int i = 0; i < b->rows; i++)
        if (b->row[i].status != BATCH_PREDICTED)
            fail_msg("%s: %s", b->row[i].id, b->row[i].reason);
}

static void set(struct constants *c, const char *name, double value)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->constant[i].name, name))
            c->constant[i].value = value;
}

static void make_times(double *seconds)
{
    double ones[JOBS];
    struct constants c;
    struct batch b;

    for (int i = 0; i < JOBS; i++)
        ones[i] = 1;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    set(&c, "efficiency.hopper.bf16", 0.71);
    set(&c, "exposed.tp", 0.65);
    load(&b, ones, false);
    for (int i = 0; i < JOBS; i++)
        seconds[i] = batch_seconds(&b.row[i], &c, 0, NULL);
    batch_free(&b);
    constants_free(&c);
}

/* Starts from other constants; what is fitted comes back in c. */
static void fit(struct calibration *k, struct constants *c, const double *seconds, bool test)
{
    const struct calibrate_opts opts = {.only = fitted, .onlys = 2};
    struct batch b;

    assert_int_equal(constants_load(c, NULL, NULL), 0);
    set(c, "efficiency.hopper.bf16", 0.5);
    set(c, "exposed.tp", 0.3);
    load(&b, seconds, test);
    assert_int_equal(calibrate(k, &b, c, &opts, NULL), 0);
    batch_free(&b);
}

TEST(constants_that_made_the_times_are_found_again)
{
    double seconds[JOBS];
    struct calibration k;
    struct constants c;

    make_times(seconds);
    fit(&k, &c, seconds, false);
    assert_int_equal(k.rows, JOBS);
    assert_int_equal(k.models, 3);
    assert_int_equal(k.constants, 2);
    assert_float_equal(constants_find(&c, "efficiency.hopper.bf16")->value / 0.71, 1, 0.08);
    assert_float_equal(constants_find(&c, "exposed.tp")->value / 0.65, 1, 0.12);
    assert_true(k.constant[0].fitted && k.constant[0].rows == JOBS && !k.constant[0].at_bound);
    assert_true(k.constant[1].rows < JOBS); /* not all have tp */
    assert_true(k.constant[0].error >= 0.01 && k.constant[0].error < 0.2);
    assert_non_null(
        strstr(constants_find(&c, "exposed.tp")->source, "8 steps (8 jobs of 3 models)"));
    for (int i = 0; i < JOBS; i++)
        assert_true(fabs(k.before[i]) > 0.05 && fabs(k.after[i]) < 0.02);
    calibration_free(&k);
    constants_free(&c);
}

TEST(test_rows_change_nothing_and_are_counted)
{
    double seconds[JOBS];
    struct calibration with, without;
    struct constants a, b;

    make_times(seconds);
    fit(&without, &a, seconds, false);
    fit(&with, &b, seconds, true);
    assert_int_equal(without.test, 0);
    assert_int_equal(with.test, 1);
    assert_int_equal(with.rows, JOBS);
    for (int i = 0; i < a.count; i++)
        assert_float_equal(a.constant[i].value, b.constant[i].value, 0);
    calibration_free(&with);
    calibration_free(&without);
    constants_free(&a);
    constants_free(&b);
}

TEST(one_wrong_row_pulls_little)
{
    double seconds[JOBS];
    struct calibration k;
    struct constants c;

    make_times(seconds);
    seconds[2] *= 4;
    fit(&k, &c, seconds, false);
    assert_float_equal(constants_find(&c, "efficiency.hopper.bf16")->value / 0.71, 1, 0.06);
    calibration_free(&k);
    constants_free(&c);
}

TEST(what_cannot_be_fitted_is_refused_or_left)
{
    static const char *const wrong[] = {"error.preset"}, *const other[] = {"attention.blackwell"};
    const struct calibrate_opts bad = {.only = wrong, .onlys = 1},
                                none = {.only = other, .onlys = 1};
    double seconds[JOBS];
    struct calibration k;
    struct constants c;
    struct batch b;
    struct err err = {0, ""};

    make_times(seconds);
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    double was = constants_find(&c, "attention.blackwell")->value;
    load(&b, seconds, false);
    assert_int_equal(calibrate(&k, &b, &c, &bad, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "\"error.preset\" is no constant that is fitted"));
    calibration_free(&k);
    assert_int_equal(calibrate(&k, &b, &c, &none, &err), 0);
    assert_false(k.constant[0].fitted);
    assert_int_equal(k.constant[0].rows, 0);
    assert_float_equal(constants_find(&c, "attention.blackwell")->value, was, 0);
    calibration_free(&k);
    for (int i = 0; i < b.rows; i++)
        b.row[i].split = "test_scale";
    assert_int_equal(calibrate(&k, &b, &c, &none, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
    assert_non_null(strstr(err.text, "no row to fit to: 8 are test rows"));
    calibration_free(&k);
    batch_free(&b);
    constants_free(&c);
}

/* --- groups left out --- */

/* A table of random jobs and software, whose times are what the constants say, times effects of
 * model, release and GPU on compute, times a rest. */
static void make_table(struct batch *b, struct constants *c, int rows)
{
    static const char *const model[] = {"llama3.1-8b", "llama3.1-70b",  "llama3.1-405b",
                                        "llama2-70b",  "nemotron4-15b", "gpt3-175b"};
    static const char *const gpu[] = {"H100", "B200", "GB200", "H200"};
    static const char *const publisher[] = {"mine", "theirs", "others"};
    enum { MODELS = 6, GPUS = 4, RELEASES = 24 };
    char path[] = "/tmp/rg-calibrate-XXXXXX";
    double of_model[MODELS], of_gpu[GPUS], of_release[RELEASES], of_both[MODELS * RELEASES];
    FILE *f = fdopen(mkstemp(path), "w");
    int at[3];

    state_of_draws = 29;
    assert_non_null(f);
    fputs("model\thardware\tgpus\tglobal_batch\tmicro_batch\ttp\tseq_len\tdtype\tzero_stage/"
          "fsdp\tvalue\tsplit\tnotes\n",
          f);
    for (int i = 0; i < rows; i++)
        fprintf(f, "%s\t%s\t%d\t%d\t1\t%d\t%d\tbf16\tFSDP2 full\t1\tcalib\t%d\n",
                model[(int)(MODELS * draw())], gpu[(int)(GPUS * draw())], 64 << (int)(3 * draw()),
                256 << (int)(3 * draw()), 1 << (int)(3 * draw()), 4096 << (int)(2 * draw()),
                (int)(RELEASES * draw()));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(batch_load(b, path, NULL), 0);
    unlink(path);
    for (int i = 0; i < MODELS * RELEASES; i++) {
        of_both[i] = 0.03 * draw_normal();
        of_model[i % MODELS] = 0.06 * draw_normal();
        of_release[i % RELEASES] = 0.06 * draw_normal();
        of_gpu[i % GPUS] = 0.04 * draw_normal();
    }
    batch_resolve(b, c);
    for (int i = 0; i < b->rows; i++) {
        struct batch_row *r = &b->row[i];
        for (at[0] = 0; strcmp(model[at[0]], r->model) != 0; at[0]++)
            ;
        for (at[1] = 0; strcmp(gpu[at[1]], r->hardware) != 0; at[1]++)
            ;
        at[2] = atoi(r->table->row[r->at].cell[11]);
        snprintf(r->publisher, sizeof(r->publisher), "%s", publisher[at[2] % 3]);
        snprintf(r->release, sizeof(r->release), "%.80s %d.%d", r->publisher, at[2] % 2, at[2]);
        r->released = true;
        if (r->status != BATCH_PREDICTED)
            fail_msg("%s: %s", r->id, r->reason);
        double sum =
            of_model[at[0]] + of_gpu[at[1]] + of_release[at[2]] + of_both[RELEASES * at[0] + at[2]];
        r->measured = batch_seconds(r, c, exp(sum), NULL) * exp(0.02 * draw_normal());
    }
}

TEST(rows_of_a_group_never_speak_for_it)
{
    enum { N = 120 };
    static double told[2][N][4];
    struct constants c;
    struct batch b;

    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    make_table(&b, &c, N);
    struct constant own = {.name = mem_strdup("fabric.theirs"),
                           .source = mem_strdup("fitted to all of its rows"),
                           .prior = 1,
                           .width = 0.7};
    MEM_PUSH(c.constant, c.count) = own;
    for (int turn = 0; turn < 2; turn++) {
        /* what was fitted to rows that are left out now */
        c.constant[c.count - 1].value = turn ? 6 : 0.5;
        for (int i = 0; i < N; i++)
            b.row[i].measured *= turn && !strcmp(b.row[i].publisher, "theirs") ? 3 : 1;
        assert_int_equal(calibrate_leave_out(&b, &c, LEAVE_SOURCE, NULL, NULL, NULL), 0);
        for (int i = 0; i < N; i++) {
            const struct batch_row *r = &b.row[i];
            const double now[4] = {r->predicted, r->lo, r->hi, (double)r->known};
            assert_string_equal(r->group, r->publisher);
            memcpy(told[turn][i], now, sizeof(now));
        }
    }
    int others = 0;
    for (int i = 0; i < N; i++) {
        if (strcmp(b.row[i].publisher, "theirs") != 0)
            others += told[0][i][0] != told[1][i][0];
        else
            assert_memory_equal(told[0][i], told[1][i], sizeof(told[0][i]));
    }
    assert_true(others > N / 3); /* whom they do speak for */
    batch_free(&b);
    constants_free(&c);
}

TEST(nine_of_ten_lie_in_the_interval_whatever_is_left_out)
{
    static const enum leave by[] = {LEAVE_RELEASE, LEAVE_FAMILY, LEAVE_MODEL};
    const bool all = getenv("RG_ALL") && *getenv("RG_ALL");
    const size_t leaves = all ? sizeof(by) / sizeof(*by) : 1;
    const int rows = all ? 600 : 240;
    struct constants c;
    struct batch b;

    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    make_table(&b, &c, rows);
    for (size_t k = 0; k < leaves; k++) {
        int inside = 0;
        assert_int_equal(calibrate_leave_out(&b, &c, by[k], NULL, NULL, NULL), 0);
        for (int i = 0; i < rows; i++)
            inside += b.row[i].lo <= b.row[i].measured && b.row[i].measured <= b.row[i].hi;
        print_message("%s: %.1f %%\n", leave_name[by[k]], 100.0 * inside / rows);
        assert_true(inside >= 0.86 * rows && inside <= 0.96 * rows);
    }
    batch_free(&b);
    constants_free(&c);
}
