/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/plot/plot_data.h"
#include "test.h"

/* A folder for tables and files; what it may hold is named, so that nothing else is left in it. */
static char dir[64];

static const char *const names[] = {"step.tsv",          "step_part.tsv",
                                    "step_key.tsv",      "step_text.tsv",
                                    "step_meta.tsv",     "scaling.tsv",
                                    "scaling_tick.tsv",  "score.tsv",
                                    "score_meta.tsv",    "score_group.tsv",
                                    "scaling_label.tsv", "score_panel.tsv",
                                    "scaling_meta.tsv",  "in"};

static int open_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/rg-plot-step-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int close_dir(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *path = file_join(dir, names[i]);
        unlink(path);
        free(path);
    }
    return rmdir(dir);
}

static char *write_in(const char *text)
{
    char *path = file_join(dir, "in");
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void table(struct tsv *t, const char *name)
{
    struct err err = {0};
    char *path = file_join(dir, name);

    if (tsv_load(t, path, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
}

static const char *cell(const struct tsv *t, int row, const char *column)
{
    int c = tsv_find(t, column);

    assert_true(c >= 0 && row < t->rows);
    return t->row[row].cell[c];
}

static double number(const struct tsv *t, int row, const char *column)
{
    return strtod(cell(t, row, column), NULL);
}

static const char *meta(const struct tsv *t, const char *key)
{
    for (int i = 0; i < t->rows; i++)
        if (!strcmp(t->row[i].cell[0], key))
            return t->row[i].cell[1];
    fail_msg("no key %s", key);
    return NULL;
}

/* The row of that part, or -1. */
static int row_of(const struct tsv *t, const char *name)
{
    for (int i = 0; i < t->rows; i++)
        if (!strcmp(cell(t, i, "name"), name))
            return i;
    return -1;
}

static const char job[] = "\"model\": \"m\", \"layout\": \"dp_shard=8,tp=2\", \"ranks\": 16";

static void add_job(struct step_bars *b, const char *what, const char *terms, double sec,
                    const char *more)
{
    struct err err = {0};
    char *text =
        mem_printf("{\"format\": \"railgauge-prediction\", \"version\": 1, \"provenance\": {}, %s,"
                   "\"strategy\": \"fsdp\", \"step_s\": %g, \"terms\": [%s]%s}",
                   what, sec, terms, more);
    char *path = write_in(text);

    if (step_bars_add(b, NULL, path, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    free(text);
}

static void add(struct step_bars *b, const char *terms, double sec, const char *more)
{
    add_job(b, job, terms, sec, more);
}

static void draw(const struct step_bars *b, int top)
{
    struct err err = {0};

    if (plot_data_step(&(struct plot_source){.steps = b, .top = top}, dir, &err) < 0)
        fail_msg("%s", err.text);
}

/* --- steps --- */

TEST(messages_count_for_the_axes_that_they_run_along)
{
    static const struct {
        const char *axes;
        enum step_part part;
    } want[] = {{"tp", STEP_TP},       {"etp", STEP_TP},
                {"cp", STEP_CP},       {"ep", STEP_EP},
                {"etp x ep", STEP_EP}, {"edp", STEP_DP},
                {"dp_shard", STEP_DP}, {"dp_replicate x dp_shard x cp", STEP_DP},
                {"pp", STEP_PP}};

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct step_bars b = {0};
        char *term = mem_printf("{\"kind\": \"message\", \"label\": \"x\", \"s\": 2,"
                                "\"hidden_s\": 0.5, \"message\": {\"axes\": \"%s\"}}",
                                want[i].axes);
        add(&b, term, 2, "");
        assert_float_equal(b.bar[0].part[want[i].part], 2, 1e-12);
        assert_float_equal(b.bar[0].hidden, 0.5, 1e-12);
        free(term);
        step_bars_free(&b);
    }
}

TEST(a_part_that_is_small_in_every_bar_joins_the_others)
{
    struct step_bars b = {0};
    struct tsv t;

    add(&b,
        "{\"kind\": \"compute\", \"label\": \"matrix products\", \"s\": 9.7},"
        "{\"kind\": \"compute\", \"label\": \"output head\", \"s\": 0.1},"
        "{\"kind\": \"optimizer\", \"label\": \"optimizer\", \"s\": 0.2}",
        10, "");
    add(&b,
        "{\"kind\": \"compute\", \"label\": \"matrix products\", \"s\": 0.9},"
        "{\"kind\": \"optimizer\", \"label\": \"optimizer\", \"s\": 0.1}",
        1, "");
    draw(&b, 0);
    table(&t, "step_part.tsv");
    assert_int_equal(row_of(&t, "output head"), -1);
    assert_true(row_of(&t, "optimizer") >= 0); /* a tenth of the second */
    int other = row_of(&t, "other");
    assert_float_equal(number(&t, other, "to_s") - number(&t, other, "from_s"), 0.1, 1e-6);
    assert_float_equal(number(&t, other, "to_s"), 10, 1e-6); /* nothing is lost */
    tsv_free(&t);
    table(&t, "step_key.tsv");
    assert_int_equal(t.rows, 3);
    tsv_free(&t);
    step_bars_free(&b);
}

TEST(no_number_stands_under_the_interval_or_the_measured_mark)
{
    static const char *const terms =
        "{\"kind\": \"compute\", \"label\": \"matrix products\", \"s\": 6},"
        "{\"kind\": \"message\", \"label\": \"x\", \"s\": 4, \"message\": {\"axes\": \"tp\"}}";
    struct step_bars b = {0};
    struct tsv t;

    add(&b, terms, 10, "");
    add(&b, terms, 10, ", \"lo_s\": 8, \"hi_s\": 12");
    add(&b, terms, 10, ", \"lo_s\": 6.1, \"hi_s\": 12, \"measured_s\": 3");
    draw(&b, 0);
    table(&t, "step_part.tsv");
    assert_int_equal(t.rows, 6);
    assert_float_equal(number(&t, 0, "at_s"), 3, 1e-6);
    assert_float_equal(number(&t, 1, "at_s"), 8, 1e-6);
    assert_float_equal(number(&t, 3, "at_s"), 7, 1e-6); /* left of the interval */
    assert_true(fabs(number(&t, 4, "at_s") - 3) > 1);   /* beside the mark */
    assert_true(isnan(number(&t, 5, "at_s")));
    assert_string_equal(cell(&t, 5, "text"), "");
    tsv_free(&t);
    step_bars_free(&b);
}

TEST(what_all_bars_share_is_said_once)
{
    static const char *const term = "{\"kind\": \"fixed\", \"label\": \"fixed\", \"s\": 1}";
    struct step_bars b = {0};
    struct tsv t;

    add(&b, term, 1, "");
    add(&b, term, 1, "");
    draw(&b, 0);
    table(&t, "step_meta.tsv");
    assert_string_equal(meta(&t, "title"), "Predicted step time, m, 16 GPUs");
    assert_int_equal(strncmp(meta(&t, "subtitle"), "fsdp; ", 6), 0);
    tsv_free(&t);
    table(&t, "step.tsv");
    assert_string_equal(cell(&t, 0, "detail"), "");
    tsv_free(&t);
    add_job(&b, "\"model\": \"n\", \"layout\": \"\", \"ranks\": 1024", term, 1, "");
    draw(&b, 0);
    table(&t, "step.tsv");
    assert_string_equal(cell(&t, 0, "detail"), "m, 16 GPUs");
    assert_string_equal(cell(&t, 2, "detail"), "n, 1,024 GPUs");
    tsv_free(&t);
    draw(&b, 2); /* the third is not drawn and not in the words */
    table(&t, "step_meta.tsv");
    assert_string_equal(meta(&t, "title"), "Predicted step time, m, 16 GPUs");
    assert_non_null(strstr(meta(&t, "subtitle"), "; the first 2 of 3"));
    tsv_free(&t);
    step_bars_free(&b);
}

/* A bar of `sec` seconds, `messages` of it waiting for messages, good for half more or less. */
static struct step_bar bar_of(double sec, double messages, double tokens_per_gpu)
{
    struct step_bar b = {.file = mem_strdup("f"),
                         .model = mem_strdup("m"),
                         .layout = mem_strdup(""),
                         .how = mem_strdup(""),
                         .sec = sec,
                         .lo = sec / 1.5,
                         .hi = sec * 1.5,
                         .measured = NAN,
                         .hidden = NAN,
                         .tokens_per_gpu = tokens_per_gpu,
                         .mfu = NAN,
                         .ranks = 16};

    b.part[STEP_LINEAR] = sec - messages;
    b.part[STEP_DP] = messages;
    return b;
}

TEST(steps_of_different_batches_are_compared_by_the_token)
{
    struct step_bars b = {0};
    struct tsv t;

    MEM_PUSH(b.bar, b.bars) = bar_of(0.6, 0.1, 13000);   /* 7,800 tokens */
    MEM_PUSH(b.bar, b.bars) = bar_of(0.15, 0.01, 12000); /* 1,800 tokens: slower, and shorter */
    draw(&b, 0);
    table(&t, "step.tsv");
    assert_float_equal(number(&t, 0, "step_s"), 0.6, 1e-6);
    assert_float_equal(number(&t, 1, "step_s"), 0.65, 1e-6);
    assert_float_equal(number(&t, 1, "hi_s"), 0.975, 1e-6);
    tsv_free(&t);
    table(&t, "step_meta.tsv");
    assert_string_equal(meta(&t, "axis"), "time for 7,800 tokens of a GPU");
    assert_non_null(strstr(meta(&t, "notes"), "different batches"));
    tsv_free(&t);
    table(&t, "step_text.tsv"); /* the step itself stays what it is */
    assert_string_equal(cell(&t, 1, "time"), "150 ms");
    tsv_free(&t);
    step_bars_free(&b);
}

TEST(bars_whose_order_errors_of_messages_turn_round_are_not_told_apart)
{
    struct step_bars b = {0};
    struct tsv t;

    MEM_PUSH(b.bar, b.bars) = bar_of(1.00, 0.0, 1000);
    MEM_PUSH(b.bar, b.bars) = bar_of(1.01, 0.0, 1000 / 1.01); /* nearer than predictions are good */
    MEM_PUSH(b.bar, b.bars) = bar_of(1.08, 0.4, 1000 / 1.08); /* messages a third faster: 0.95 */
    MEM_PUSH(b.bar, b.bars) = bar_of(1.08, 0.0, 1000 / 1.08); /* in both the same is wrong */
    draw(&b, 0);
    table(&t, "step_meta.tsv");
    assert_string_equal(meta(&t, "notes"), "the first 3 cannot be told apart");
    assert_string_equal(meta(&t, "axis"), "time of a step");
    tsv_free(&t);
    step_bars_free(&b);
}

TEST(a_step_without_terms_is_one_bar)
{
    struct step_bars b = {0};
    struct err err = {0};
    struct tsv t;
    char *path = write_in("{\"format\": \"railgauge-batch\", \"version\": 1, \"provenance\": {},"
                          "\"rows\": [{\"id\": \"a\", \"status\": \"miss\", \"predicted_s\": null},"
                          "{\"id\": \"b\", \"status\": \"predicted\", \"model\": \"m\","
                          "\"layout\": \"tp=8\", \"predicted_s\": 0.25, \"lo_s\": null,"
                          "\"hi_s\": null, \"measured_s\": 0.2}]}");

    assert_int_equal(step_bars_add(&b, NULL, path, &err), 0);
    free(path);
    assert_int_equal(b.bars, 1);
    draw(&b, 0);
    table(&t, "step_part.tsv");
    assert_int_equal(t.rows, 1);
    assert_string_equal(cell(&t, 0, "name"), "step");
    tsv_free(&t);
    table(&t, "step_text.tsv");
    assert_string_equal(cell(&t, 0, "label"), "b");
    assert_string_equal(cell(&t, 0, "detail"), "tp=8");
    assert_string_equal(cell(&t, 0, "time"), "250 ms, measured 200 ms: +25.0%");
    tsv_free(&t);
    table(&t, "step_meta.tsv");
    assert_string_equal(meta(&t, "unit"), "ms");
    assert_string_equal(meta(&t, "key_lines"), "0");
    tsv_free(&t);
    step_bars_free(&b);
}

TEST(measured_steps_are_given_in_order)
{
    static const char *const term = "{\"kind\": \"fixed\", \"label\": \"fixed\", \"s\": 1}";
    struct step_bars b = {0};
    struct err err = {0};

    add(&b, term, 1, "");
    add(&b, term, 1, "");
    assert_int_equal(step_bars_measured(&b, "-,900ms", &err), 0);
    assert_true(isnan(b.bar[0].measured));
    assert_float_equal(b.bar[1].measured, 0.9, 1e-12);
    assert_int_equal(step_bars_measured(&b, "1", &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_int_equal(step_bars_measured(&b, "1,2,3", &err), -1);
    assert_int_equal(step_bars_measured(&b, "1,0", &err), -1);
    assert_string_equal(err.text, "--measured: \"0\" is no time of a step");
    step_bars_free(&b);
}

/* --- scaling --- */

static void load_scaling(struct scaling *s, const char *text)
{
    struct err err = {0};
    char *path = write_in(text);

    if (scaling_load(s, path, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
}

TEST(efficiency_is_relative_to_the_smallest_job_of_the_series)
{
    struct scaling s;
    struct err err = {0};
    struct tsv t;

    load_scaling(&s, "series\tgpus\ttokens_per_gpu\tlo\thi\tmeasured\n"
                     "a\t128\t90\t80\t95\t76\na\t64\t100\t90\t110\t95\nb\t64\t50\t\t\t-\n"
                     "b\t128\t25\t\t\t30\n");
    assert_int_equal(plot_data_scaling(&(struct plot_source){.scaling = &s}, dir, &err), 0);
    table(&t, "scaling.tsv");
    assert_string_equal(cell(&t, 0, "gpus"), "64"); /* sorted */
    assert_float_equal(number(&t, 1, "efficiency"), 90, 1e-9);
    assert_float_equal(number(&t, 0, "lo"), 100, 1e-9); /* 100 % of itself, however far it is off */
    assert_float_equal(number(&t, 0, "hi"), 100, 1e-9);
    assert_float_equal(number(&t, 1, "lo"), 90,
                       1e-9); /* as wide as the reference: nothing of its own */
    assert_float_equal(number(&t, 1, "measured"), 80, 1e-9); /* of the measured one: 76 of 95 */
    assert_float_equal(number(&t, 3, "efficiency"), 50, 1e-9);
    assert_float_equal(number(&t, 3, "measured"), 60, 1e-9); /* its smallest was not measured */
    tsv_free(&t);
    table(&t, "scaling_label.tsv");
    assert_string_equal(cell(&t, 0, "series"), "b"); /* from below */
    assert_string_equal(cell(&t, 0, "value"), "50% at 128 GPUs, 25 tokens/s/GPU");
    tsv_free(&t);
    scaling_free(&s);
}

TEST(seconds_are_of_equal_batches_unless_tokens_say_otherwise)
{
    struct scaling s;

    load_scaling(&s, "series\tgpus\tseconds\na\t8\t2\na\t16\t2.5\n");
    assert_false(s.tokens);
    assert_float_equal(s.series[0].point[1].value / s.series[0].point[0].value, 0.8, 1e-12);
    scaling_free(&s);
    load_scaling(&s, "series\tgpus\tseconds\ttokens\tlo\thi\na\t8\t2\t1600\t1\t4\n");
    assert_true(s.tokens);
    assert_float_equal(s.series[0].point[0].value, 100, 1e-9);
    assert_float_equal(s.series[0].point[0].lo, 50, 1e-9); /* the longest time */
    assert_float_equal(s.series[0].point[0].hi, 200, 1e-9);
    scaling_free(&s);
}

TEST(predictions_that_differ_in_replicas_are_one_series)
{
    static const char *const term = "{\"kind\": \"fixed\", \"label\": \"fixed\", \"s\": 1}";
    struct step_bars b = {0};
    struct scaling s;
    struct err err = {0};

    add(&b, term, 1, ", \"tokens_per_s_per_gpu\": 100");
    add_job(&b, "\"model\": \"m\", \"layout\": \"dp_shard=16,tp=2\", \"ranks\": 32", term, 1,
            ", \"tokens_per_s_per_gpu\": 90");
    add_job(&b, "\"model\": \"m\", \"layout\": \"tp=4\", \"ranks\": 32", term, 1,
            ", \"tokens_per_s_per_gpu\": 80");
    assert_int_equal(scaling_of_steps(&s, &b, &err), 0);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.series[0].name, "m, tp=2, fsdp");
    assert_int_equal(s.series[0].points, 2);
    scaling_free(&s);
    add(&b, term, 1, ", \"tokens_per_s_per_gpu\": 80");
    assert_int_equal(scaling_of_steps(&s, &b, &err), -1);
    assert_non_null(strstr(err.text, "series \"m, tp=2, fsdp\" has 16 GPUs twice; LABEL=FILE"));
    scaling_free(&s);
    step_bars_free(&b);
}

TEST(labels_of_lines_that_end_together_stand_apart)
{
    struct scaling s;
    struct err err = {0};
    struct tsv t;

    load_scaling(&s, "series\tgpus\tseconds\na\t8\t1\na\t16\t1\nb\t8\t1\nb\t16\t1\nc\t8\t1\n"
                     "c\t16\t1\n");
    assert_int_equal(plot_data_scaling(&(struct plot_source){.scaling = &s}, dir, &err), 0);
    table(&t, "scaling_label.tsv");
    assert_int_equal(t.rows, 3);
    for (int i = 1; i < t.rows; i++) /* of a range of 34 on 900 pixels */
        assert_true((number(&t, i, "at") - number(&t, i - 1, "at")) * 900 / 34 > 60);
    tsv_free(&t);
    scaling_free(&s);
}

/* --- score --- */

static void load_score(struct tsv *t, const char *text)
{
    struct err err = {0};
    char *path = write_in(text);

    if (score_table_load(t, path, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
}

TEST(the_title_says_how_far_off_the_test_rows_are)
{
    static const struct {
        const char *split, *title;
    } cases[] = {
        {"test_hw", "Predicted against measured: 3 steps, median error 20.0%, of test rows 5.0%"},
        {"calib", "Predicted against measured: 3 steps, median error 20.0%"}};

    for (int i = 0; i < 2; i++) {
        struct tsv t, out;
        struct err err = {0};
        char *text = mem_printf("id\thardware\tsplit\tmeasured_s\tpredicted_s\n"
                                "a\tH\tcalib\t1\t1.3\nb\tH\tcalib\t1\t0.8\nc\tB\t%s\t2\t2.1\n",
                                cases[i].split);
        load_score(&t, text);
        assert_int_equal(plot_data_score(&(struct plot_source){.score = &t}, dir, &err), 0);
        table(&out, "score_meta.tsv");
        assert_string_equal(out.row[0].cell[1], cases[i].title);
        assert_int_equal(strstr(out.row[1].cell[1], "were fitted are among them") != NULL, i);
        tsv_free(&out);
        tsv_free(&t);
        free(text);
    }
}

TEST(errors_are_medians_and_an_anchor_does_not_judge_itself)
{
    struct tsv t, out;
    struct err err = {0};

    load_score(&t, "id\thardware\tsplit\tmeasured_s\tpredicted_s\tanchored_s\tanchor\n"
                   "a\tH\tcalib\t1\t1.3\t1\ta\nb\tH\ttest_hw\t1\t0.9\t1.05\ta\n"
                   "c\tB\tcalib\t2\t2.1\t\t\nd\tB\tcalib\t3\t\t\t\n");
    assert_int_equal(plot_data_score(&(struct plot_source){.score = &t}, dir, &err), 0);
    table(&out, "score_panel.tsv");
    assert_int_equal(out.rows, 2);
    assert_string_equal(cell(&out, 0, "text"), "median error 10.0%, 67% of 3 within 10%");
    assert_string_equal(cell(&out, 1, "text"), "median error 5.0%, 100% of 1 within 10%");
    tsv_free(&out);
    table(&out, "score.tsv");
    assert_int_equal(out.rows, 4);
    assert_string_equal(cell(&out, 1, "test"), "1");
    assert_string_equal(cell(&out, 1, "group"), "H");
    tsv_free(&out);
    table(&out, "score_meta.tsv");
    assert_non_null(strstr(meta(&out, "subtitle"), "1 row without one of both left out"));
    tsv_free(&out);
    tsv_free(&t);
}

TEST(many_groups_are_five_and_the_others)
{
    struct err err = {0};
    struct tsv t, out;
    char *text = mem_strdup("id\tteam\tmeasured_s\tpredicted_s\n");

    for (int i = 0; i < 500; i++) { /* team k has more rows than team k + 1 */
        int team = (int)(9 * sqrt(i / 500.));
        char *more =
            mem_printf("%sr%d\tt%d\t%g\t%g\n", text, i, 8 - team, 1 + i * 0.1, 1.1 + i * 0.1);
        free(text);
        text = more;
    }
    load_score(&t, text);
    free(text);
    assert_int_equal(plot_data_score(&(struct plot_source){.score = &t, .by = "team"}, dir, &err),
                     0);
    table(&out, "score_group.tsv");
    assert_int_equal(out.rows, 6);
    assert_string_equal(cell(&out, 0, "name"), "t0");
    assert_string_equal(cell(&out, 5, "name"), "others");
    int points = 0;
    for (int i = 0; i < out.rows; i++)
        points += (int)number(&out, i, "text");
    assert_int_equal(points, 500);
    tsv_free(&out);
    assert_int_equal(plot_data_score(&(struct plot_source){.score = &t, .by = "nobody"}, dir, &err),
                     -1);
    tsv_free(&t);
}

TEST(errors_of_the_whole_step_cancel_in_efficiency_and_those_of_messages_do_not)
{
    struct scaling_point point[] = {{64, 100, 100 / 1.2, 120, NAN, 0.1},
                                    {512, 90, 90 / 1.2, 108, NAN, 0.2},
                                    {4096, 80, 40, 160, NAN, 0.1}};
    struct scaling_series series = {"a", point, 3};
    struct scaling s = {&series, 1, true};
    struct err err = {0};
    struct tsv t;

    assert_int_equal(plot_data_scaling(&(struct plot_source){.scaling = &s}, dir, &err), 0);
    table(&t, "scaling.tsv");
    /* Messages 1.2 times as long: 64 GPUs take 1.02, 512 take 1.04. */
    assert_float_equal(number(&t, 1, "lo"), 90 * 1.02 / 1.04, 0.01);
    assert_float_equal(number(&t, 1, "hi"), 90 * (1 - 0.1 / 6) / (1 - 0.2 / 6), 0.01);
    /* The share of messages is the reference's, the interval is four times as wide. */
    double own = sqrt(log(2) * log(2) - log(1.2) * log(1.2));
    assert_float_equal(number(&t, 2, "hi"), 80 * exp(own), 0.01);
    tsv_free(&t);
}

TEST(the_axis_of_a_score_holds_every_ratio)
{
    struct err err = {0};
    struct tsv t, out;

    load_score(&t, "id\tmeasured_s\tpredicted_s\na\t1\t3\nb\t100\t100\nc\t1\t0.9\n");
    assert_int_equal(plot_data_score(&(struct plot_source){.score = &t}, dir, &err), 0);
    table(&out, "score_meta.tsv");
    for (int i = 0; i < out.rows; i++) {
        if (!strcmp(out.row[i].cell[0], "ratio_hi"))
            assert_true(number(&out, i, "value") > 3);
        if (!strcmp(out.row[i].cell[0], "ratio_lo"))
            assert_true(number(&out, i, "value") < 1 / 3.);
    }
    assert_true(out.rows > 6);
    tsv_free(&out);
    tsv_free(&t);
}

TEST_GROUP(open_dir, close_dir)
