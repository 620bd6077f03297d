/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/job_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static error_t hand_on(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != ARGP_KEY_INIT)
        return ARGP_ERR_UNKNOWN;
    state->child_inputs[0] = state->input;
    return 0;
}

/* Words as a shell without quotes would split them; the options point into `text`. */
static int read_words(struct job_opts *o, char *text, struct err *err)
{
    const struct argp_child children[] = {job_child(0), {0}};
    const struct argp argp = {NULL, hand_on, NULL, NULL, children, NULL, NULL};
    char *save = NULL, **argv = NULL, *whole = mem_strdup(text);
    char program[] = "railgauge: --for-job";
    int argc = 0, rc = 0;

    MEM_PUSH(argv, argc) = program;
    for (char *t = strtok_r(text, " \t", &save); t; t = strtok_r(NULL, " \t", &save))
        MEM_PUSH(argv, argc) = t;
    MEM_PUSH(argv, argc) = NULL;
    job_defaults(o);
    if (argp_parse(&argp, argc - 1, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, o))
        rc = err_usage(err, "--for-job \"%s\" is no job", whole);
    else if (o->matrix)
        rc = err_usage(err, "--for-job \"%s\": \"%s\" is no option, and nothing is measured yet",
                       whole, o->matrix);
    free(argv);
    free(whole);
    return rc;
}

static bool same_groups(const struct round *a, const struct round *b)
{
    if (a->op != b->op || a->groups != b->groups)
        return false;
    for (int g = 0; g < a->groups; g++)
        if (a->group[g].size != b->group[g].size ||
            memcmp(a->group[g].members, b->group[g].members,
                   sizeof(int) * (size_t)a->group[g].size) != 0)
            return false;
    return true;
}

/* Another round of the same groups; NULL: none. */
static struct round *known(const struct plan *p, const struct round *r)
{
    for (int i = 0; i < p->rounds; i++)
        if (&p->round[i] != r && same_groups(&p->round[i], r))
            return &p->round[i];
    return NULL;
}

/* Take the newest round away again. */
static void drop_last(struct plan *p)
{
    struct round *r = &p->round[--p->rounds];

    for (int g = 0; g < r->groups; g++)
        free(r->group[g].members);
    free(r->group);
}

/* The end of a ladder that holds what the job sends, however short ladders are else.  Between CPUs,
 * where messages so long tell no more and the buffers are the host's memory, no more than asked or
 * 64 MiB. */
static size_t reach(const struct plan_opts *o, const struct topo *t, bool asked, double bytes)
{
    bool gpu = t->endpoint[0].kind == ENDPOINT_GPU;
    double most = gpu ? INFINITY : asked ? 0 : (double)(64 << 20);
    size_t size = o->min_bytes;

    while ((double)size < bytes && (double)size * o->factor <= most)
        size *= (size_t)o->factor;
    return size > o->max_bytes ? size : o->max_bytes;
}

static void add_round(struct plan *p, const struct job *j, const struct message *msg,
                      const struct topo *t, const struct plan_opts *o, bool asked)
{
    const struct span *span = &msg->span;
    struct round *r = plan_add(p, STAGE_COLLECTIVE, msg->op, span_groups(span, j->layout.ranks));

    r->first = o->min_bytes;
    r->last = reach(o, t, asked, msg->bytes);
    r->factor = o->factor;
    r->epochs = (1u << o->epochs) - 1;
    for (int g = 0; g < r->groups; g++) {
        r->group[g].size = span->size;
        r->group[g].members = mem_calloc((size_t)span->size, sizeof(int));
        for (int i = 0; i < span->size; i++) {
            int rank = span_rank(span, g, i);
            r->group[g].members[i] = j->order ? j->order[rank] : rank;
        }
    }
    struct round *old = known(p, r);
    if (!old)
        return;
    old->last = old->last > r->last ? old->last : r->last;
    drop_last(p);
}

int job_plan(struct plan *p, const char *words, const struct topo *t, const struct plan_opts *o,
             struct err *err)
{
    struct plan_opts opts = *o;
    struct traffic traffic;
    struct job_opts asked;
    struct job job = {0};
    char *text = mem_strdup(words);

    plan_fill_auto(&opts, t);
    int rc = read_words(&asked, text, err);
    if (rc == 0) {
        rc = job_open_on(&job, &asked, t, err);
        if (rc < 0)
            err_wrap(err, "--for-job \"%s\"", words);
        else
            traffic_of(&traffic, &job.model, &job.layout, &asked.recipe);
        for (int i = 0; rc == 0 && i < traffic.messages; i++)
            add_round(p, &job, &traffic.message[i], t, &opts, o->max_bytes > 0);
        job_free(&job);
    }
    free(text);
    return rc;
}
