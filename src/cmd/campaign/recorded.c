/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/campaign/recorded_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "step/job.h"

void recorded_init(struct recorded *r, const struct recorded_args *a)
{
    *r = (struct recorded){.args = a};
    record_job_init(&r->job);
    matrix_init(&r->matrix);
}

void recorded_free(struct recorded *r)
{
    record_job_free(&r->job);
    record_steps_free(&r->steps);
    late_free(&r->late);
    sent_free(&r->sent);
    priced_free(&r->priced);
    matrix_free(&r->matrix);
}

static int compare_job(struct recorded *r, const struct topo *t, struct err *err)
{
    struct traffic traffic;

    if (!r->args->job)
        return 0;
    if (job_traffic(&traffic, r->args->job, t, err) < 0)
        return -1;
    sent_compare(&r->sent, &traffic, &r->steps);
    return 0;
}

static int compare_matrix(struct recorded *r, const struct import *im, struct err *err)
{
    const char *path = r->args->against;

    if (!path)
        return 0;
    if (matrix_load(&r->matrix, path, MATRIX_WHOLE, err) < 0)
        return -1;
    return priced_make(&r->priced, &r->matrix, path, &im->plan, im->row, im->rows, &im->topo, err);
}

/* A process cannot wait for longer than was recorded.  Such a job has records of several runs, or
 * clocks that jumped in between. */
static int clocks_fit(const struct late *l, const struct record_job *j, const char *dir,
                      struct err *err)
{
    char waited[UNITS_TEXT], recorded[UNITS_TEXT];

    if (l->waited <= l->seconds)
        return 0;
    return err_data(
        err,
        "%s: the clocks do not fit: the %d processes would have waited %s for each other, "
        "but %s are recorded (are these records of one run, and were no clocks set in "
        "it?)",
        dir, j->processes, units_seconds_text(waited, l->waited),
        units_seconds_text(recorded, l->seconds));
}

int recorded_open(struct recorded *r, struct import *im, struct err *err)
{
    if (record_load(&r->job, r->args->dir, err) < 0)
        return -1;
    record_clock_align(&r->job);
    float *overlap = record_points_overlap(&r->job);
    record_steps_find(&r->steps, &r->job, overlap);
    int rc = record_points(im, &r->job, overlap, err);
    free(overlap);
    for (int i = 0; i < r->job.saids; i++)
        import_say(im, mem_strdup(r->job.said[i]));
    if (rc < 0)
        return -1;
    late_find(&r->late, &r->job);
    if (clocks_fit(&r->late, &r->job, r->args->dir, err) < 0)
        return -1;
    if (compare_job(r, &im->topo, err) < 0 || compare_matrix(r, im, err) < 0)
        return -1;
    return r->args->traffic ? record_steps_save(&r->steps, &r->job, r->args->traffic, err) : 0;
}

/* --- tables --- */

static const struct table_column traffic_columns[] = {{"op", "operation", "text"},
                                                      {NULL, "groups of", "text"},
                                                      {"ranks", NULL, "count"},
                                                      {"stride", NULL, "count"},
                                                      {"inside_host", NULL, "flag"},
                                                      {"message", NULL, "flag"},
                                                      {"groups", "groups", "count"},
                                                      {"bytes", "bytes", "bytes"},
                                                      {"count", "times", "%.4g"},
                                                      {NULL, "by", "text"},
                                                      {"algorithm", NULL, "text?"},
                                                      {"protocol", NULL, "text?"},
                                                      {"channels", NULL, "count"},
                                                      {"s", "time", "seconds"},
                                                      {"waiting_s", "waiting", "seconds"},
                                                      {"proxy_wait_s", NULL, "exact"},
                                                      {"overlap", "loaded", "100*%.0f %%"},
                                                      {0}};

static const char *word_of(const struct record_job *j, int word)
{
    return word < 0 ? NULL : j->words.name[word];
}

static void row_group(char buf[64], const struct record_row *r, const struct record_job *j)
{
    if (r->axis >= 0)
        record_axis_text(buf, &j->axis[r->axis]);
    else
        snprintf(buf, 64, "to rank %+d, %s", r->stride, r->inside ? "on one host" : "across hosts");
}

static void traffic_table(struct table *t, const struct recorded *r)
{
    const struct record_job *j = &r->job;

    table_open(t, traffic_columns);
    for (int i = 0; i < r->steps.rows; i++) {
        const struct record_row *x = &r->steps.row[i];
        const char *algorithm = word_of(j, x->algorithm), *protocol = word_of(j, x->protocol);
        char group[64], by[64];
        row_group(group, x, j);
        snprintf(by, sizeof(by), "%.20s%s%.20s", algorithm ? algorithm : "",
                 algorithm && protocol ? " " : "", protocol ? protocol : "");
        if (x->channels)
            snprintf(by + strlen(by), sizeof(by) - strlen(by), "%sx%d", *by ? " " : "",
                     x->channels);
        table_add(t, op_name(x->op), group, x->size, x->stride, x->inside, x->axis < 0, x->groups,
                  (double)x->bytes, x->count, *by ? by : NULL, algorithm, protocol, x->channels,
                  x->sec, x->waiting, x->proxies, x->overlap);
    }
}

static const struct table_column late_columns[] = {{"who", "late", "text!"},
                                                   {"rank", NULL, "count"},
                                                   {"host", NULL, "text"},
                                                   {"whole_host", NULL, "flag"},
                                                   {"how", "", "text"},
                                                   {NULL, "in", "text"},
                                                   {"calls", NULL, "count"},
                                                   {"late_calls", NULL, "count"},
                                                   {"last_calls", NULL, "count"},
                                                   {"behind_s", "by", "seconds"},
                                                   {"low_s", NULL, "exact"},
                                                   {"high_s", NULL, "exact"},
                                                   {"lost_s", "lost", "seconds"},
                                                   {"share", "of the time", "100*%.1f %%"},
                                                   {NULL, "in collectives of", "text"},
                                                   {"ranks", NULL, "count"},
                                                   {"stride", NULL, "count"},
                                                   {"only_there", NULL, "flag"},
                                                   {"partners", NULL, "count"},
                                                   {0}};

static void late_table(struct table *t, const struct recorded *r)
{
    const struct record_job *j = &r->job;

    table_open(t, late_columns);
    for (int i = 0; i < r->late.parts; i++) {
        const struct late_part *p = &r->late.part[i];
        const struct record_axis *a = &j->axis[p->axis];
        char *name = late_name(p, j), axis[64], where[80], of[48];
        snprintf(of, sizeof(of), "%d of %d calls", p->often, p->calls);
        snprintf(where, sizeof(where), "%s%s", record_axis_text(axis, a), p->only ? " only" : "");
        table_add(t, name, j->process[p->process].rank, j->process[p->process].host, p->host,
                  late_kind_name[p->kind], of, p->calls, p->often, p->last, p->behind, p->lo, p->hi,
                  p->lost, p->share, where, a->size, a->stride, p->only, p->partners);
        free(name);
    }
}

static const struct table_column sent_columns[] = {{"verdict", "", "text!"},
                                                   {"label", "predicted message", "text?"},
                                                   {"op", "operation", "text"},
                                                   {"ranks", "ranks", "count"},
                                                   {"stride", "apart", "count"},
                                                   {"bytes", "bytes", "bytes"},
                                                   {"count", "times", "%.4g"},
                                                   {"sent_bytes", "sent", "bytes"},
                                                   {"sent_count", "times", "%.4g"},
                                                   {"sizes", "sizes", "count"},
                                                   {0}};

static void sent_table(struct table *t, const struct recorded *r)
{
    table_open(t, sent_columns);
    for (int i = 0; i < r->sent.rows; i++) {
        const struct sent_row *x = &r->sent.row[i];
        table_add(t, sent_name[x->is], x->label, op_name(x->op), x->span.size, x->span.stride,
                  x->bytes, x->count, x->sizes ? x->sent_bytes : NAN,
                  x->sizes ? x->sent_count : NAN, x->sizes);
    }
}

static const struct table_column priced_columns[] = {{"verdict", "", "text!"},
                                                     {"op", "operation", "text"},
                                                     {"ranks", "ranks", "count"},
                                                     {"bytes", "bytes", "bytes"},
                                                     {"groups", "groups", "count"},
                                                     {"slow_groups", "slow", "count"},
                                                     {"s", "job", "seconds"},
                                                     {"price_s", "matrix", "seconds"},
                                                     {"price_low_s", NULL, "exact"},
                                                     {"price_high_s", NULL, "exact"},
                                                     {"ratio", "x", "%.2f"},
                                                     {"worst_ratio", "worst x", "%.2f"},
                                                     {"worst", "worst group", "text"},
                                                     {"source", NULL, "text"},
                                                     {0}};

static void priced_table(struct table *t, const struct recorded *r, const struct topo *topo,
                         bool all)
{
    table_open(t, priced_columns);
    for (int i = 0; i < r->priced.rows; i++) {
        const struct priced_row *x = &r->priced.row[i];
        const char *verdict = x->slow                ? "slow"
                              : isnan(x->price)      ? "not known"
                              : x->fast == x->groups ? "fast"
                                                     : "as priced";
        int first = x->group->members[0], last = x->group->members[x->group->size - 1];
        char *worst = mem_printf(
            "%s:%d .. %s:%d", topo->host[topo_at(topo, first, LEVEL_HOST)].name,
            topo->endpoint[first].local, topo->host[topo_at(topo, last, LEVEL_HOST)].name,
            topo->endpoint[last].local);
        if (all || x->slow)
            table_add(t, verdict, op_name(x->op), x->ranks, x->bytes, x->groups, x->slow, x->sec,
                      x->price, x->lo, x->hi, x->ratio, x->worst_ratio, worst, x->source);
        free(worst);
    }
}

/* --- printed results --- */

static void print_table(struct table *t, const char *title)
{
    if (json_array_size(t->rows)) {
        printf("\n%s\n", title);
        table_print(stdout, t, 0);
    }
    table_free(t);
}

static void clocks_line(const struct record_job *j)
{
    char most[UNITS_TEXT], unsure[UNITS_TEXT];
    double offset = 0;
    int apart = 0;

    for (int p = 0; p < j->processes; p++) {
        offset = fmax(offset, fabs(j->process[p].offset));
        apart += isnan(j->process[p].unsure);
    }
    printf("clocks: up to %s apart, aligned within %s by the ends of collectives",
           units_seconds_text(most, offset), units_seconds_text(unsure, record_clock_unsure(j)));
    if (apart)
        printf("; %d processes share no collective with others", apart);
    putchar('\n');
}

static void steps_line(const struct recorded *r)
{
    char sec[UNITS_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT];
    const struct record_steps *s = &r->steps;

    if (s->steps)
        printf("steps: %d, each %s (95 %%: %s to %s)\n", s->steps, units_seconds_text(sec, s->sec),
               units_seconds_text(lo, s->lo), units_seconds_text(hi, s->hi));
    else
        printf("steps: nothing repeats three times; the traffic is of all that was recorded\n");
}

static void late_line(const struct recorded *r)
{
    const struct late *l = &r->late;

    printf("waiting: %.1f %% of the recorded time, in the mean of %d processes\n",
           l->seconds > 0 ? 100 * l->waited / l->seconds : 0, r->job.processes);
    if (!l->parts)
        printf(l->judged ? "late: nobody beyond noise\n"
                         : "late: not judged, no process meets three others in a collective\n");
}

void recorded_print(const struct recorded *r, const struct import *im)
{
    struct table t;

    clocks_line(&r->job);
    steps_line(r);
    late_line(r);
    traffic_table(&t, r);
    print_table(&t, r->steps.steps ? "traffic of a step" : "traffic");
    late_table(&t, r);
    print_table(&t, "who keeps the others waiting");
    sent_table(&t, r);
    print_table(&t, "predicted and sent");
    priced_table(&t, r, &im->topo, false);
    print_table(&t, "slower than the matrix says");
    if (r->args->against && !r->priced.slow)
        printf("\nno collective is slower than %s says\n", r->args->against);
}

static json_t *clocks_json(const struct record_job *j)
{
    json_t *list = json_array();

    for (int p = 0; p < j->processes; p++) {
        const struct record_process *q = &j->process[p];
        json_array_append_new(list, json_pack("{s:i, s:s, s:i, s:s, s:o, s:o, s:o, s:i, s:i, s:b}",
                                              "rank", q->rank, "host", q->host, "device", q->device,
                                              "file", q->path, "offset_s", json_finite(q->offset),
                                              "drift", json_finite(q->drift), "unsure_s",
                                              json_finite(q->unsure), "records", q->entries, "lost",
                                              (int)q->lost, "ended", q->ended));
    }
    return list;
}

static json_t *steps_json(const struct record_steps *s)
{
    return s->steps ? json_pack("{s:i, s:o, s:o, s:o}", "count", s->steps, "s", json_finite(s->sec),
                                "low_s", json_finite(s->lo), "high_s", json_finite(s->hi))
                    : json_null();
}

json_t *recorded_json(const struct recorded *r, const struct import *im)
{
    struct table t[4];

    traffic_table(&t[0], r);
    late_table(&t[1], r);
    sent_table(&t[2], r);
    priced_table(&t[3], r, &im->topo, true);
    json_t *out = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "processes", clocks_json(&r->job),
                            "steps", steps_json(&r->steps), "waiting_share",
                            json_finite(r->late.waited / r->late.seconds), "late_judged",
                            json_integer(r->late.judged), "traffic", table_rows(&t[0]), "late",
                            table_rows(&t[1]));
    json_t *sent = table_rows(&t[2]), *priced = table_rows(&t[3]);
    json_object_set_new(out, "predicted", r->args->job ? sent : json_null());
    json_object_set_new(out, "priced", r->args->against ? priced : json_null());
    if (!r->args->job)
        json_decref(sent);
    if (!r->args->against)
        json_decref(priced);
    return out;
}
