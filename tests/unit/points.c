/* points.c - points.tsv: nothing measured is lost, nothing damaged is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/nccl_api.h"
#include "measure/point.h"

static char dir[] = "/tmp/rg-points-XXXXXX";
static char path[64];

static struct point_row sample(int round)
{
    struct point_row p = {.point = {.round = round,
                                    .stage = STAGE_ISOLATED,
                                    .op = OP_PAIR_BW,
                                    .ranks = 2,
                                    .src = 1,
                                    .dst = 3,
                                    .flows = 1,
                                    .bytes = 262144,
                                    .stop = STOP_CI,
                                    .checked = true},
                          .slowest = 3,
                          .skew = NAN,
                          .late = -1};
    struct summary sec;
    double v[5] = {1e-3, 1.1e-3, 1.2e-3, 1.3e-3, 1.4e-3};

    stats_summary(&sec, v, 5);
    point_summary(&p, &sec);
    return p;
}

static struct host hosts[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}};
static struct endpoint endpoints[] = {
    {.place.at[LEVEL_HOST] = 0},
    {.place.at[LEVEL_HOST] = 0, .local = 1},
    {.place.at[LEVEL_HOST] = 1},
    {.place.at[LEVEL_HOST] = 1, .local = 1},
};
static const struct topo four = {.host = hosts, .hosts = 3, .endpoint = endpoints, .endpoints = 4};

static void write_three(void)
{
    struct points_log *log;
    struct err err;

    unlink(path);
    assert_int_equal(points_open(&log, path, 0xabcd, &four, "mpi", &err), 0);
    for (int i = 0; i < 3; i++) {
        struct point_row p = sample(i);
        points_add(log, &p);
        assert_int_equal(points_commit(log, &err), 0);
    }
    assert_int_equal(points_close(log, &err), 0);
}

static void rows_come_back_as_they_went_in(void **state)
{
    struct points p;
    struct err err;
    char *text;
    size_t len;

    (void)state;
    write_three();
    assert_int_equal(points_load(&p, path, &err), 0);
    assert_int_equal(p.count, 3);
    assert_int_equal(p.plan_crc, 0xabcd);
    assert_string_equal(p.transport, "mpi");
    struct point want = sample(2).point, *got = &p.point[2];
    assert_int_equal(got->bytes, want.bytes);
    assert_true(got->sec.median == want.sec.median &&
                point_sec(got->sec.hi) == point_sec(want.sec.hi));
    assert_true(got->checked && !got->wrong);
    assert_int_equal(file_read(&text, &len, path, 1 << 20, &err), 0);
    assert_non_null(strstr(text, "\t3\tnan\t-1\t")); /* slowest, skew, late */
    free(text);
    points_free(&p);
}

/* To the seventh digit of its times, of all sizes, and to the last word. */
static void what_is_held_is_what_was_measured(void **state)
{
    enum { MANY = 3000 };
    struct point_row *row = mem_calloc(MANY, sizeof(*row));
    struct summary *sum_of = mem_calloc(MANY, sizeof(*sum_of));
    struct points_log *log;
    struct points p, taken = {0};
    struct err err;
    struct rng r;

    (void)state;
    rng_seed(&r, 19);
    unlink(path);
    assert_int_equal(points_open(&log, path, 1, &four, "sim", &err), 0);
    for (int i = 0; i < MANY; i++) {
        double scale = pow(10, 12 * rng_uniform(&r) - 9), v[5];
        row[i] = sample((int)rng_below(&r, 1u << 30));
        for (int k = 0; k < 5; k++)
            v[k] = scale * (1 + rng_uniform(&r));
        stats_summary(&sum_of[i], v, 5);
        point_summary(&row[i], &sum_of[i]);
        struct point *q = &row[i].point;
        q->stage = (enum stage)rng_below(&r, STAGE_COUNT);
        q->op = (enum op)rng_below(&r, OP_COUNT);
        q->stop = (enum stop)rng_below(&r, STOP_FAILED + 1);
        q->wrong = q->checked && rng_below(&r, 2);
        q->dtype = (unsigned)rng_below(&r, NCCL_DTYPES + 1) & 15;
        q->redop = (unsigned)rng_below(&r, NCCL_REDOPS + 1) & 7;
        q->registration = (unsigned)rng_below(&r, 4) & 3;
        q->epoch = (unsigned)rng_below(&r, PLAN_EPOCHS) & 7;
        q->bytes = (size_t)rng_u64(&r) >> (14 + rng_below(&r, 45));
        points_add(log, &row[i]);
    }
    points_take(log, &taken);
    assert_int_equal(points_close(log, &err), 0);
    assert_int_equal(points_load(&p, path, &err), 0);
    assert_int_equal(p.count, MANY);
    assert_int_equal(taken.count, MANY);
    assert_true(taken.bound && taken.topology_crc == p.topology_crc &&
                taken.plan_crc == p.plan_crc);
    for (int i = 0; i < MANY; i++) {
        struct point want = row[i].point, got = p.point[i];
        const struct point_sec *held = &taken.point[i].sec;
        const double in[] = {want.sec.median, sum_of[i].lo, sum_of[i].hi},
                     out[] = {got.sec.median, point_sec(got.sec.lo), point_sec(got.sec.hi)},
                     kept[] = {held->median, point_sec(held->lo), point_sec(held->hi)};
        assert_memory_equal(kept, out, sizeof(out));
        assert_int_equal(taken.point[i].tail, got.tail);
        assert_true(fabs(point_tail_log(&got) - log1p(sum_of[i].p95 / sum_of[i].median - 1)) <
                    0.6e-3);
        for (int k = 0; k < 3; k++) {
            char as[2][UNITS_TEXT];
            units_print(as[0], in[k], 7);
            units_print(as[1], out[k], 7);
            assert_string_equal(as[0], as[1]);
        }
        assert_true(got.round == want.round && got.bytes == want.bytes && got.op == want.op &&
                    got.stage == want.stage && got.stop == want.stop && got.wrong == want.wrong &&
                    got.n == want.n && got.dst == want.dst && got.epoch == want.epoch &&
                    got.dtype == want.dtype && got.redop == want.redop &&
                    got.registration == want.registration);
    }
    assert_true(sizeof(struct point) <= 64); /* there are millions */
    points_free(&p);
    points_free(&taken);
    free(row);
    free(sum_of);
}

/* Unknown, equal, both sides of half a step and of the end of what fits. */
static void a_tail_is_a_logarithm_in_steps(void **state)
{
    const double step = exp(1.0 / POINT_TAIL_STEPS), end = exp(4094.0 / POINT_TAIL_STEPS);
    struct point p = {.tail = 0};

    (void)state;
    assert_true(isnan(point_tail_log(&p)));
    assert_int_equal(point_tail(NAN, 1e-3), 0);
    assert_int_equal(point_tail(0, 0), 0);
    assert_int_equal(point_tail(1e-3, 1e-3), 1);
    assert_int_equal(point_tail(0.9e-3, 1e-3), 1); /* never below the median */
    assert_int_equal(point_tail(1e-3 * (1 + 0.45 * (step - 1)), 1e-3), 1);
    assert_int_equal(point_tail(1e-3 * (1 + 0.55 * (step - 1)), 1e-3), 2);
    assert_int_equal(point_tail(1e-3 * end / step, 1e-3), POINT_TAIL_MOST - 1);
    assert_int_equal(point_tail(1e-3 * end, 1e-3), POINT_TAIL_MOST);
    assert_int_equal(point_tail(1, 1e-3), POINT_TAIL_MOST);
    p.tail = point_tail(1.25e-3, 1e-3);
    assert_true(fabs(point_tail_log(&p) - log(1.25)) < 0.5 / POINT_TAIL_STEPS);
}

/* Change some of what a row tells; a column in ten, so that most are as before. */
static void change_some(struct rng *r, struct point_row *row)
{
    static const char *const said[] = {"", "late", "a longer note, of several words"};
    struct point *p = &row->point;
    int *const whole[] = {&p->round, &p->group, &p->ranks,  &p->src,
                          &p->dst,   &p->n,     &row->late, &row->slowest};
    double *const sec[] = {&p->sec.median, &row->min, &row->p5,  &row->p95,
                           &row->max,      &row->mad, &row->skew};

    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (rng_below(r, 10) == 0)
            *whole[i] = (int)(rng_u64(r) >> (33 + rng_below(r, 30))) - 1;
    for (size_t i = 0; i < sizeof(sec) / sizeof(*sec); i++)
        if (rng_below(r, 10) == 0)
            *sec[i] = rng_below(r, 2)   ? ldexp(1, -(int)rng_below(r, 30)) /* the same low bits */
                      : rng_below(r, 5) ? exp(20 * rng_uniform(r) - 18)
                                        : NAN;
    if (rng_below(r, 10) == 0)
        p->flows = (unsigned)(rng_u64(r) >> (44 + rng_below(r, 19)));
    if (rng_below(r, 10) == 0)
        p->sec = point_secs(p->sec.median, rng_uniform(r), 1 + rng_uniform(r));
    if (rng_below(r, 10) == 0)
        p->bytes = (size_t)(rng_u64(r) >> (14 + rng_below(r, 50)));
    if (rng_below(r, 10) == 0)
        p->words ^= 1u << rng_below(r, 2); /* the stage, below 4 */
    if (rng_below(r, 10) == 0)
        p->checked = !p->checked;
    if (rng_below(r, 10) == 0)
        point_note(p, "%s", said[rng_below(r, 3)]);
}

static void a_row_is_the_same_behind_any_other(void **state)
{
    enum { ROWS = 3000 };
    char *text = mem_calloc(ROWS + 1, POINT_TEXT), alone[POINT_TEXT], *at = text;
    struct point_written last = {.len = 0};
    struct point_row row = sample(0);
    struct rng r;

    (void)state;
    rng_seed(&r, 7);
    for (int i = 0; i < ROWS; i++) {
        struct point_written none = {.len = 0};
        change_some(&r, &row);
        size_t len = point_row(at, &row, &last), want = point_row(alone, &row, &none);
        if (len != want || memcmp(at, alone, len) != 0)
            fail_msg("row %d is\n%.*snot\n%.*s", i, (int)len, at, (int)want, alone);
        at += len;
        if (rng_below(&r, 50) == 0) { /* written: the text begins anew */
            at = text;
            last.len = 0;
        }
    }
    free(text);
}

/* Lines of all lengths, so that blocks of the file end anywhere in them. */
static void many_rows_are_read_block_by_block(void **state)
{
    enum { MANY = 20000 };
    struct points_log *log;
    struct points p;
    struct err err;
    char *text, words[200];
    size_t len;

    (void)state;
    unlink(path);
    memset(words, 'w', sizeof(words));
    assert_int_equal(points_open(&log, path, 1, &four, "sim", &err), 0);
    for (int i = 0; i < MANY; i++) {
        struct point_row one = sample(i);
        if (i % 3)
            point_note(&one.point, "%.*s%d", (i * 7) % 150, words, i % 11);
        points_add(log, &one);
    }
    assert_int_equal(points_close(log, &err), 0);
    assert_int_equal(file_read(&text, &len, path, (size_t)1 << 30, &err), 0);
    assert_true(len > 3 << 20);
    assert_int_equal(points_load(&p, path, &err), 0);
    assert_int_equal(p.count, MANY);
    assert_int_equal(p.torn, 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(p.point[i].round, i);
        assert_int_equal(strlen(point_words(&p.point[i])),
                         i % 3 ? (i * 7) % 150 + (i % 11 > 9 ? 2 : 1) : 0);
    }
    points_free(&p);
    assert_int_equal(truncate(path, (off_t)len - 5), 0);
    assert_int_equal(points_load(&p, path, &err), 0);
    assert_int_equal(p.count, MANY - 1);
    assert_true(p.torn > 100);
    points_free(&p);
    text[len / 2] ^= 4;
    FILE *out = fopen(path, "w");
    assert_int_equal(fwrite(text, 1, len, out), len);
    fclose(out);
    assert_int_equal(points_load(&p, path, &err), -1);
    assert_non_null(strstr(err.text, ".tsv:"));
    free(text);
}

/* Cut the file at every length: what was complete comes back, or the header is missing and it says
 * so. */
static void a_torn_tail_is_ignored_at_every_length(void **state)
{
    char *text, *part;
    size_t len, header = 0;
    struct points p;
    struct err err;

    (void)state;
    write_three();
    assert_int_equal(file_read(&text, &len, path, 1 << 20, &err), 0);
    for (int lines = 0; lines < 3; header++)
        lines += text[header] == '\n';
    for (size_t cut = header; cut <= len; cut++) {
        int whole = 0;
        for (size_t i = header; i < cut; i++)
            whole += text[i] == '\n';
        part = mem_calloc(cut + 1, 1);
        memcpy(part, text, cut);
        assert_int_equal(points_parse(&p, "p", part, cut, &err), 0);
        assert_int_equal(p.count, whole);
        points_free(&p);
        free(part);
    }
    free(text);
}

static void every_flipped_bit_before_the_last_row_is_refused_with_its_line(void **state)
{
    char *text, *copy;
    size_t len, first = 0, second;
    struct points p;
    struct err err;

    (void)state;
    write_three();
    assert_int_equal(file_read(&text, &len, path, 1 << 20, &err), 0);
    for (int lines = 0; lines < 3; first++)
        lines += text[first] == '\n';
    second = (size_t)(strchr(text + first, '\n') - text);
    for (size_t i = first; i < second; i++)
        for (int bit = 0; bit < 7; bit++) {
            copy = mem_calloc(len + 1, 1);
            memcpy(copy, text, len);
            copy[i] = (char)(copy[i] ^ (1 << bit));
            assert_int_equal(points_parse(&p, "p", copy, len, &err), -1);
            assert_true(strstr(err.text, "p:4: ") == err.text ||
                        strstr(err.text, "p:5: ") == err.text);
            assert_int_equal(err.code, EXIT_DATA);
            free(copy);
        }
    free(text);
}

static void a_log_of_another_plan_is_refused(void **state)
{
    struct points_log *log;
    struct err err;

    (void)state;
    write_three();
    assert_int_equal(points_open(&log, path, 0x1234, &four, "mpi", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(
        strstr(err.text, "belongs to plan 0000abcd of 4 endpoints over mpi, not to plan 00001234"));
}

/* Another host or transport, not another rack: what was measured is between the same devices. */
static void points_are_bound_to_their_endpoints(void **state)
{
    struct points_log *log;
    struct points p;
    struct err err;

    (void)state;
    write_three();
    assert_int_equal(points_load(&p, path, &err), 0);
    assert_true(p.bound);
    endpoints[2].place.at[LEVEL_RACK] = 7;
    assert_int_equal(points_check(&p, path, &four, "t.json", &err), 0);
    endpoints[2].place.at[LEVEL_HOST] = 2;
    assert_int_equal(points_check(&p, path, &four, "t.json", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(strstr(err.text, "than those of t.json"));
    assert_int_equal(points_open(&log, path, 0xabcd, &four, "mpi", &err), -1);
    endpoints[2].place.at[LEVEL_HOST] = 1;
    p.transport[0] = 'n';
    assert_int_equal(points_check(&p, path, &four, "t.json", &err), -1);
    points_free(&p);
}

static void a_second_writer_is_refused(void **state)
{
    struct points_log *log, *other;
    struct err err;

    (void)state;
    write_three();
    assert_int_equal(points_open(&log, path, 0xabcd, &four, "mpi", &err), 0);
    assert_int_equal(points_open(&other, path, 0xabcd, &four, "mpi", &err), -1);
    assert_int_equal(err.code, EXIT_IO);
    assert_non_null(strstr(err.text, "another process is writing it"));
    pid_t pid = fork();
    if (pid == 0)
        _exit(points_open(&other, path, 0xabcd, &four, "mpi", &err) == -1 ? 7 : 0);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(points_close(log, &err), 0);
    assert_int_equal(points_open(&log, path, 0xabcd, &four, "mpi", &err), 0);
    assert_int_equal(points_close(log, &err), 0);
}

static void a_full_disk_is_said_and_nothing_is_lost(void **state)
{
    struct points_log *log;
    struct err err;

    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(points_open(&log, "/dev/full", 1, &four, "mpi", &err), -1);
    assert_int_equal(err.code, EXIT_IO);
    assert_non_null(strstr(err.text, "/dev/full: "));
}

/* A file of an older version is read, and continued without the columns that it lacks. */
static void a_file_without_kinds_stays_as_it_is(void **state)
{
    static const char head[] =
        "# railgauge-points 1 plan=abcd endpoints=4 transport=mpi\n"
        "round\tgroup\tepoch\tstage\top\tranks\tsrc\tdst\tflows\tbytes\tn\tsec\tsec_lo\tsec_"
        "hi\tsec_min\t"
        "sec_p5\tsec_p95\tsec_max\tsec_mad\tslowest\tskew_sec\tlate\tstop\tcheck\tnote\tcrc32c\n";
    static const char row[] = "0\t0\t0\tcollective\tall_reduce\t4\t0\t3\t1\t64\t5\t0.001\t0.001\t0."
                              "002\t0.001\t0.001\t0.002\t"
                              "0.002\t0.0001\t3\tnan\t-1\tci\tok\t\t";
    struct point_row more = sample(1);
    struct points_log *log;
    struct points p;
    struct err err;
    char *text;
    size_t len;

    (void)state;
    char *old = mem_printf("%s%s%08x\n", head, row, file_crc32c(0, row, strlen(row)));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(old, f);
    assert_int_equal(fclose(f), 0);
    more.point.op = OP_ALL_REDUCE;
    more.point.dtype = 1 + NCCL_BFLOAT16;
    more.point.redop = 1 + NCCL_SUM;
    assert_int_equal(points_open(&log, path, 0xabcd, &four, "mpi", &err), 0);
    assert_true(points_all(log)->plain);
    for (int i = 0; i < 3; i++) {
        more.point.round = i;
        points_add(log, &more);
        assert_int_equal(points_commit(log, &err), 0);
    }
    assert_int_equal(points_alike(points_all(log), NULL, &err), 0);
    assert_int_equal(points_close(log, &err), 0);
    assert_int_equal(points_load(&p, path, &err), 0);
    assert_int_equal(p.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(point_kind(&p.point[i]), 0);
    points_free(&p);
    assert_int_equal(file_read(&text, &len, path, 1 << 20, &err), 0);
    assert_memory_equal(text, old, strlen(old));
    free(text);
    free(old);
}

static void kinds_are_not_mixed(void **state)
{
    struct point a = {.op = OP_ALL_REDUCE, .dtype = 1 + NCCL_BFLOAT16, .redop = 1 + NCCL_SUM};
    struct point with[] = {a, a, a, a, a};
    struct point one[] = {a, a};
    struct points p = {.point = one, .count = 2};
    char text[POINT_KIND];
    struct err err;

    (void)state;
    with[0].registration = 1;   /* none, as where nothing is known of it */
    with[1].op = OP_ALL_GATHER; /* moves bytes of whatever type */
    with[1].redop = with[1].dtype = 0;
    with[2].dtype = 1 + NCCL_UINT32;
    with[3].redop = 1 + NCCL_MAX;
    with[4].registration = 3;
    for (int i = 0; i < 5; i++)
        assert_int_equal(points_alike(&p, &with[i], &err), i < 2 ? 0 : -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(
        strstr(err.text, "all_reduce of bfloat16 sum and of bfloat16 sum, symmetric: "));
    one[1] = with[2];
    assert_int_equal(points_alike(&p, NULL, &err), -1);
    assert_string_equal(point_kind_text(point_kind(&with[3]), text), "bfloat16 max");
    assert_string_equal(point_kind_text(2 << 7, text), "buffer");
    assert_string_equal(point_kind_text(0, text), "");
}

/* A row of which a cell may be anything, with the CRC of what it says then. */
static void random_row(char row[2 * POINT_TEXT], struct rng *r)
{
    static const char *const junk[] = {"",     "x",  "-1",      "nan",    "1e99",
                                       "7\t7", "01", "pair_bw", "failed", "1e-3"};
    char text[POINT_TEXT], *cell[POINT_COLUMNS], *next = text;
    struct point_row p = sample((int)rng_below(r, 3));
    struct point_written none = {.len = 0};

    p.point.group = (int)rng_below(r, 12);
    p.point.epoch = (int)rng_below(r, 3) & 7;
    p.point.op = rng_below(r, 2) ? OP_PAIR_BW : OP_ALL_REDUCE;
    p.point.sec.median = rng_below(r, 2) ? 1e-3 : rng_uniform(r);
    p.point.stop = rng_below(r, 4) ? STOP_CI : STOP_FAILED;
    if (rng_below(r, 4) == 0)
        point_note(&p.point, "note %u", rng_below(r, 2));
    text[point_row(text, &p, &none) - 1] = '\0';
    for (int i = 0; i < POINT_COLUMNS; i++)
        cell[i] = strsep(&next, "\t");
    if (rng_below(r, 3) == 0)
        cell[rng_below(r, POINT_COLUMNS - 1)] =
            (char *)junk[rng_below(r, sizeof(junk) / sizeof(*junk))];
    *row = '\0';
    for (int i = rng_below(r, 20) == 0; i < POINT_COLUMNS - 1; i++)
        strcat(strcat(row, cell[i]), "\t");
    sprintf(row + strlen(row), "%08x\n", file_crc32c(0, row, strlen(row)));
}

/* What is found in the second of two rows, or said of it. */
static void second_row(struct point *found, char *said, const char *first, const char *row)
{
    char *header = points_header();
    char *text = mem_printf("# railgauge-points 1 plan=0 endpoints=4 transport=mpi\n%s%s%s", header,
                            first, row);
    struct points p;
    struct err err = {0, ""};

    *found = (struct point){.n = -1};
    if (points_parse(&p, "p", text, strlen(text), &err) == 0) {
        *found = p.point[p.count - 1];
        points_free(&p);
    }
    strcpy(said, err.text);
    free(text);
    free(header);
}

static void a_row_means_the_same_behind_any_other(void **state)
{
    (void)state;
    char first[2 * POINT_TEXT], row[2 * POINT_TEXT], behind[sizeof((struct err){0}.text)],
        alone[sizeof(behind)];
    int read = 0, refused = 0;
    struct point a, b;
    struct rng r;

    rng_seed(&r, 15);
    for (int i = 0; i < 4000; i++) {
        do {
            random_row(first, &r);
            second_row(&a, alone, "#\n", first);
        } while (*alone);
        random_row(row, &r);
        second_row(&a, behind, first, row);
        second_row(&b, alone, "#\n", row);
        if (strstr(behind, "two rows for one point"))
            continue;
        assert_string_equal(behind, alone);
        assert_memory_equal(&a, &b, sizeof(a));
        *alone ? refused++ : read++;
    }
    assert_true(read > 1000 && refused > 500);
}

/* Rows in the order of measuring, with some again: at any distance, in few runs and in many. */
static void a_point_has_one_row(void **state)
{
    (void)state;
    struct rng r;

    rng_seed(&r, 3);
    for (int times = 0; times < 200; times++) {
        char *header = points_header();
        char *text =
            mem_printf("# railgauge-points 1 plan=0 endpoints=4 transport=mpi\n%s", header);
        int n = 1 + (int)rng_below(&r, 60), step = times % 4 ? 1 : 7, twice = (int)rng_below(&r, 2);
        int again = (int)rng_below(&r, (unsigned)n), at = (int)rng_below(&r, (unsigned)n);

        for (int i = 0; i < n; i++)
            for (int k = 0; k < 1 + (twice && i == at); k++) {
                char row[POINT_TEXT];
                struct point_row p = sample(0);
                p.point.group = (k ? again : i) * step % 61; /* 61 is prime: each group once */
                p.point.round = times % 3 ? 0 : p.point.group % 2;
                row[point_row(row, &p, &(struct point_written){.len = 0})] = '\0';
                text = mem_append(text, "%s", row);
            }
        struct points p;
        struct err err = {0, ""};
        int rc = points_parse(&p, "p", text, strlen(text), &err);
        assert_int_equal(rc, twice ? -1 : 0);
        if (twice) {
            assert_int_equal(err.code, EXIT_DATA);
            assert_non_null(strstr(err.text, ": two rows for one point"));
        } else
            points_free(&p);
        free(text);
        free(header);
    }
}

static void what_is_not_a_points_file_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "p: no header"},
        {"hello\nworld\n", "p:1: not a railgauge-points file: \"hello\""},
        {"# railgauge-points 9 plan=1 endpoints=4 transport=mpi\n", "p:1: version 9 is not 1"},
        {"# railgauge-points 1 plan=1 endpoints=1 transport=mpi\n",
         "p:1: endpoints=1 is outside 2.."},
        {"# railgauge-points 1 plan=1 endpoints=4 transport=mpi\nround\tgroop\n",
         "p:2: column 2 of the header is not \"group\""},
    };
    struct points p;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *copy = mem_strdup(bad[i].text);
        assert_int_equal(points_parse(&p, "p", copy, strlen(copy), &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        assert_true(strstr(err.text, bad[i].message) == err.text);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_as_they_went_in),
        cmocka_unit_test(what_is_held_is_what_was_measured),
        cmocka_unit_test(a_tail_is_a_logarithm_in_steps),
        cmocka_unit_test(a_row_is_the_same_behind_any_other),
        cmocka_unit_test(many_rows_are_read_block_by_block),
        cmocka_unit_test(a_torn_tail_is_ignored_at_every_length),
        cmocka_unit_test(every_flipped_bit_before_the_last_row_is_refused_with_its_line),
        cmocka_unit_test(a_log_of_another_plan_is_refused),
        cmocka_unit_test(points_are_bound_to_their_endpoints),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(a_full_disk_is_said_and_nothing_is_lost),
        cmocka_unit_test(a_row_means_the_same_behind_any_other),
        cmocka_unit_test(a_point_has_one_row),
        cmocka_unit_test(a_file_without_kinds_stays_as_it_is),
        cmocka_unit_test(kinds_are_not_mixed),
        cmocka_unit_test(what_is_not_a_points_file_is_refused),
    };

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/points.tsv", dir);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return rc;
}
