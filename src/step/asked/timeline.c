/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "step/replay/pipeline.h"

enum { WORK_MAX = 2000000, TRACKS_MAX = 16 };

static const char *const kind_name[PIECE_KINDS] = {"forward", "backward inputs", "backward",
                                                   "backward weights"};

struct timeline {
    const struct prediction *p;
    const struct recipe *r;
    int stages, chunks, microbatches, slowest;
    struct pipe_played *stage;
    double sec[PIECE_KINDS];  /* compute of a piece on the slowest stage */
    double seen[PIECE_KINDS]; /* exposed messages of a piece */
    double *there;            /* [backward][microbatch][part]: time of its output; NAN: not yet */
    double step;              /* length as drawn, s */
    /* Tracks below the device: one per set of axes, data parallel last. */
    unsigned track[TRACKS_MAX];
    int tracks;
    FILE *out;
    bool more; /* an event was written, so a comma comes next */
};

/* --- times of the pieces --- */

static bool is_window(const struct term *m)
{
    return m->phase == PHASE_FORWARD || m->phase == PHASE_BACKWARD;
}

/* True if the message is part of the pieces.  In a pipeline, exposed data-parallel time is before a
 * stage's first piece and behind its last one. */
static bool in_pieces(const struct timeline *t, const struct term *m)
{
    return m->kind == TERM_MESSAGE && (!is_window(m) || t->stages == 1);
}

/* Returns the share of a message that belongs to a piece of this kind, from its share of the
 * passes. */
static double share_of(const struct timeline *t, const struct term *m, const struct piece *u)
{
    double f = t->p->one.forward, whole = f + t->p->one.backward;
    bool forward = u->kind == PIECE_FORWARD;

    if (m->kind != TERM_MESSAGE || u->kind == PIECE_WEIGHTS)
        return 0;
    if (!is_window(m))
        return (forward ? f : whole - f) / whole / t->microbatches / t->chunks;
    if (forward != (m->phase == PHASE_FORWARD))
        return 0;
    if (m->rounds > 1)
        return 1.0 / m->rounds / t->chunks;
    int edge = forward ? 0 : t->microbatches - 1;
    return u->microbatch == edge ? 1.0 / t->chunks : 0;
}

/* Exposed messages of a piece that is neither the first nor the last. */
static double waits(const struct timeline *t, const struct piece *u)
{
    double sum = 0;

    for (int i = 0; i < t->p->terms; i++)
        if (in_pieces(t, &t->p->term[i]))
            sum += t->p->term[i].sec * share_of(t, &t->p->term[i], u);
    return sum;
}

/* Returns the pace of the other stages, which share what the predicted bubble leaves: for 1f1b one
 * pass of each. */
static double others_pace(const struct timeline *t, double bubble)
{
    double slow = 0, filled[SCHEDULE_COUNT] = {[SCHEDULE_ZB_H1] = 2, [SCHEDULE_ZB_H2] = 3};

    for (int k = 0; k < PIECE_KINDS; k++)
        slow += k == PIECE_BACKWARD ? 0 : t->sec[k] + t->seen[k];
    double each = bubble * t->chunks / (t->stages - 1) +
                  filled[t->r->schedule] * t->sec[PIECE_WEIGHTS] * t->chunks;
    bool even = t->r->schedule == SCHEDULE_DUALPIPE || !(bubble > 0);
    return even ? 1 : fmin(1, each / (slow * t->chunks));
}

static double bubble_of(const struct prediction *p)
{
    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_BUBBLE)
            return p->term[i].sec;
    return 0;
}

static void measure(struct timeline *t)
{
    const struct prediction *p = t->p;
    double weights = fmin(p->one.weights, p->one.backward), chunks = t->chunks;

    t->sec[PIECE_FORWARD] = p->one.forward / chunks;
    t->sec[PIECE_INPUTS] = (p->one.backward - weights) / chunks;
    t->sec[PIECE_BACKWARD] = p->one.backward / chunks;
    t->sec[PIECE_WEIGHTS] = weights / chunks;
    for (int k = 0; k < PIECE_KINDS; k++)
        t->seen[k] = t->stages > 1 ? waits(t, &(struct piece){.kind = (enum piece_kind)k}) : 0;
    double pace = t->stages > 1 ? others_pace(t, bubble_of(p)) : 1;
    for (int i = 0; i < t->stages; i++)
        t->stage[i].pace = i == t->slowest ? 1 : pace;
}

/* Returns the longest span of a stage. */
static double play(struct timeline *t)
{
    const struct pipeline p = {t->stages, t->chunks, t->microbatches};
    enum schedule schedule = t->stages > 1 ? (enum schedule)t->r->schedule : SCHEDULE_1F1B;
    double sec[PIECE_KINDS], longest = 0;

    for (int k = 0; k < PIECE_KINDS; k++)
        sec[k] = t->sec[k] + t->seen[k];
    for (int i = 0; i < t->stages; i++)
        pipeline_order(&t->stage[i], &p, schedule, i);
    pipeline_play(t->stage, &p, sec);
    for (int i = 0; i < t->stages; i++) {
        struct pipe_played *s = &t->stage[i];
        if (schedule != SCHEDULE_ZB_H2) /* zb-h2: each stage has a step of its own */
            s->begin = 0;
        longest = fmax(longest, s->end - s->begin);
    }
    return longest;
}

/* --- events --- */

struct event {
    const char *name, *category;
    double start, sec;
};

/* Write one event on a track of a stage, unless its length is a rounding error. */
static void event(struct timeline *t, int stage, int track, struct event e, const char *args)
{
    if (!(e.sec > 1e-10))
        return;
    fprintf(t->out,
            "%s\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
            "\"ts\":%.6f,\"dur\":%.6f%s%s%s}",
            t->more ? "," : "", e.name, e.category, stage, track, e.start * 1e6, e.sec * 1e6,
            *args ? ",\"args\":{" : "", args, *args ? "}" : "");
    t->more = true;
}

static void label(struct timeline *t, int stage, int track, const char *what, const char *name)
{
    fprintf(t->out,
            "%s\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
            t->more ? "," : "", what, stage, track, name);
    t->more = true;
}

/* Returns the track: the last one for data parallelism, else that of the axes.  Track 0 is the
 * device. */
static int track_of(const struct timeline *t, const struct term *m)
{
    int i = 0;

    while (i < t->tracks && t->track[i] != m->axes)
        i++;
    return is_window(m) ? t->tracks + 1 : i + 1;
}

static void find_tracks(struct timeline *t)
{
    for (int i = 0; i < t->p->terms; i++) {
        const struct term *m = &t->p->term[i];
        if (m->kind == TERM_MESSAGE && !is_window(m) && track_of(t, m) == t->tracks + 1 &&
            t->tracks < TRACKS_MAX)
            t->track[t->tracks++] = m->axes;
    }
}

/* Draw a wait on the device's track and its message on the track below. */
static double wait_for(struct timeline *t, int stage, const struct term *m, double at, double sec)
{
    event(t, stage, 0, (struct event){m->label, "message", at, sec}, "");
    event(t, stage, track_of(t, m), (struct event){m->label, "seen", at, sec}, "");
    return at + (sec > 0 ? sec : 0);
}

/* Draw the hidden parts of a piece's messages beside its compute, one after another on each
 * track. */
static void hidden(struct timeline *t, int stage, const struct piece *u, double sec)
{
    double pace = t->stage[stage].pace, sum[TRACKS_MAX + 2] = {0}, at[TRACKS_MAX + 2] = {0};

    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < t->p->terms; i++) {
            const struct term *m = &t->p->term[i];
            double all = m->hidden * share_of(t, m, u) * pace;
            if (!(all > 0))
                continue;
            int track = track_of(t, m);
            char args[48];
            if (turn == 0) {
                sum[track] += all;
                continue;
            }
            double drawn = sum[track] > sec ? all * sec / sum[track] : all;
            snprintf(args, sizeof(args), "\"hidden_s\":%.9g", all);
            event(t, stage, track, (struct event){m->label, "hidden", u->start + at[track], drawn},
                  args);
            at[track] += drawn;
        }
}

/* Returns the end of the piece. */
static double draw_piece(struct timeline *t, int stage, const struct piece *u, double *shift)
{
    double pace = t->stage[stage].pace, sec = t->sec[u->kind] * pace;
    struct piece moved = *u;
    char args[64];

    moved.start += *shift;
    snprintf(args, sizeof(args), "\"microbatch\":%d,\"chunk\":%d", u->microbatch,
             t->chunks > 1 ? u->part / t->stages : 0);
    event(t, stage, 0, (struct event){kind_name[u->kind], "compute", moved.start, sec}, args);
    hidden(t, stage, &moved, sec);
    double at = moved.start + sec;
    for (int i = 0; i < t->p->terms; i++) {
        const struct term *m = &t->p->term[i];
        if (in_pieces(t, m))
            at = wait_for(t, stage, m, at, m->sec * share_of(t, m, u) * pace);
    }
    if (t->stages == 1) /* pieces follow each other, with the waits of each */
        *shift += at - (moved.start + sec);
    return at;
}

static double draw_windows(struct timeline *t, int stage, enum phase phase, double at)
{
    for (int i = 0; i < t->p->terms; i++) {
        const struct term *m = &t->p->term[i];
        if (t->stages > 1 && m->kind == TERM_MESSAGE && m->phase == phase)
            at = wait_for(t, stage, m, at, m->sec);
    }
    return at;
}

static double sum_of(const struct prediction *p, bool (*is)(const struct term *t))
{
    double sum = 0;

    for (int i = 0; i < p->terms; i++)
        sum += is(&p->term[i]) ? p->term[i].sec : 0;
    return sum;
}

static bool is_end(const struct term *t)
{
    return t->kind == TERM_OPTIMIZER || t->kind == TERM_FIXED;
}

static bool is_window_message(const struct term *t)
{
    return t->kind == TERM_MESSAGE && is_window(t);
}

static void draw_stage(struct timeline *t, int stage)
{
    struct pipe_played *s = &t->stage[stage];
    double end = s->begin + t->step, at = draw_windows(t, stage, PHASE_FORWARD, s->begin);
    double shift = at - s->begin;

    for (int i = 0; i < s->pieces; i++) {
        event(t, stage, 0, (struct event){"bubble", "bubble", at, s->piece[i].start + shift - at},
              "");
        at = draw_piece(t, stage, &s->piece[i], &shift);
    }
    at = draw_windows(t, stage, PHASE_BACKWARD, at);
    double rest = end - sum_of(t->p, is_end);
    event(t, stage, 0, (struct event){"bubble", "bubble", at, rest - at}, "");
    at = fmax(at, rest);
    for (int i = 0; i < t->p->terms; i++) {
        const struct term *one = &t->p->term[i];
        if (!is_end(one))
            continue;
        event(t, stage, 0, (struct event){one->label, term_name[one->kind], at, one->sec}, "");
        at += one->sec;
    }
}

static void draw_names(struct timeline *t, int stage)
{
    char name[64];

    snprintf(name, sizeof(name), "stage %d of %d%s", stage, t->stages,
             stage == t->slowest ? ", the slowest" : "");
    label(t, stage, 0, "process_name", name);
    label(t, stage, 0, "thread_name", "device");
    for (int i = 0; i < t->tracks; i++)
        label(t, stage, i + 1, "thread_name", axes_text(name, t->track[i]));
    label(t, stage, t->tracks + 1, "thread_name", "data parallel");
}

static void draw(struct timeline *t)
{
    json_t *facts =
        json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "model", t->p->model, "layout", t->p->layout,
                  "schedule", recipe_name.schedule[t->r->schedule], "slowest_stage", t->slowest,
                  "predicted_s", json_finite(t->p->sec), "drawn_s", json_finite(t->step));
    char *text = json_dumps(facts, JSON_COMPACT | JSON_REAL_PRECISION(9));

    fprintf(t->out, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", text);
    for (int i = 0; i < t->stages; i++) {
        draw_names(t, i);
        draw_stage(t, i);
    }
    fputs("\n]}\n", t->out);
    free(text);
    json_decref(facts);
}

int timeline_save(const struct prediction *p, const struct layout *l, const struct recipe *r,
                  const char *path, double *drawn, struct err *err)
{
    int pp = l->size[AXIS_PP], chunks = pp > 1 ? r->stages : 1, m = p->microbatches;
    struct timeline t = {.p = p,
                         .r = r,
                         .stages = pp,
                         .chunks = chunks,
                         .microbatches = m,
                         .slowest = p->one.last ? pp - 1 : 0};
    struct file_out file = {0};

    if (3.0 * pp * chunks * m > WORK_MAX)
        return err_usage(err,
                         "%d stages of %d chunks and %d microbatches are too many pieces of work "
                         "for a timeline: a smaller --batch shows the same",
                         pp, chunks, m);
    if (file_begin(&file, path, err) < 0)
        return -1;
    t.stage = mem_calloc((size_t)pp, sizeof(*t.stage));
    measure(&t);
    double span = play(&t);
    find_tracks(&t);
    /* A single stage's waits are not in seen[]: draw_piece() shifts later pieces. */
    double inside = pp > 1 ? sum_of(p, is_window_message) : p->exposed;
    *drawn = t.step = fmax(p->sec, span + inside + sum_of(p, is_end));
    t.out = file.stream;
    draw(&t);
    for (int i = 0; i < pp; i++)
        free(t.stage[i].piece);
    free(t.stage);
    int rc = file_commit(&file, err);
    file_abort(&file);
    return rc;
}
