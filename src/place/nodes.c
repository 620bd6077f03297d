/* SPDX-License-Identifier: BSD-3-Clause */
#include "place/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/pricer.h"
#include "step/rate.h"

static void index_hosts(struct nodes_job *j, const struct topo *t)
{
    int *fill = mem_calloc((size_t)t->hosts + 1, sizeof(int));

    j->first = mem_calloc((size_t)t->hosts + 1, sizeof(int));
    j->endpoint = mem_calloc((size_t)t->endpoints + 1, sizeof(int));
    for (int i = 0; i < t->endpoints; i++)
        j->first[t->endpoint[i].place.at[LEVEL_HOST] + 1]++;
    for (int h = 0; h < t->hosts; h++)
        j->first[h + 1] += j->first[h];
    memcpy(fill, j->first, (size_t)t->hosts * sizeof(int));
    for (int i = 0; i < t->endpoints; i++)
        j->endpoint[fill[t->endpoint[i].place.at[LEVEL_HOST]]++] = i;
    free(fill);
}

static int load_names(struct nodes_job *j, struct err *err)
{
    if (model_load(&j->model, j->opts.model, err) < 0 ||
        constants_load(&j->constants, NULL, err) < 0 ||
        matrix_preset(&j->fabric, &j->matrix, j->opts.fabric, err) < 0)
        return -1;
    if (j->opts.flops > 0) {
        j->flops = mem_strdup("FLOP/s as the job says");
        j->matrix.compute.source = j->flops;
        j->matrix.compute.flops = j->opts.flops;
    }
    return 0;
}

/* What is wrong with a job on any number of nodes is said at once: a layout whose size is known is
 * checked here, the others when a number of nodes is. */
static int check_layout(const struct nodes_job *j, struct err *err)
{
    struct nodes_step step;

    if (!j->opts.gpus && (!j->opts.layout || strstr(j->opts.layout, "auto")))
        return 0;
    return nodes_step(&step, j, LAYOUT_RANKS_MAX, err);
}

int nodes_job_open(struct nodes_job *j, const struct matrix *m, const char *text, struct err *err)
{
    if (nodes_job_words(j, text, err) < 0)
        return -1;
    j->matrix = *m;
    index_hosts(j, &m->topo);
    if (!j->trains)
        return 0;
    if (load_names(j, err) < 0)
        return -1;
    return check_layout(j, err);
}

void nodes_job_close(struct nodes_job *j)
{
    free(j->text);
    free(j->flops);
    free(j->first);
    free(j->endpoint);
    model_free(&j->model);
    constants_free(&j->constants);
    fabric_free(&j->fabric);
    memset(j, 0, sizeof(*j));
}

/* Collectives of the mix on so many ranks. */
static int mix_step(struct nodes_step *s, const struct nodes_job *j, struct err *err)
{
    s->traffic = j->mix;
    for (int i = 0; i < s->traffic.messages; i++) {
        struct message *msg = &s->traffic.message[i];
        if (!msg->span.size)
            msg->span.size = s->ranks;
        if (s->ranks % ((long)msg->span.size * msg->span.stride))
            return err_usage(err, "%s: groups of %d, %d apart, do not share out %d ranks",
                             msg->label, msg->span.size, msg->span.stride, s->ranks);
    }
    return 0;
}

static int train_step(struct nodes_step *s, const struct nodes_job *j, int given, struct err *err)
{
    struct job_opts opts = j->opts; /* the batch is chosen in a copy */
    struct rate rate;

    if (job_layout(&s->layout, &j->model, &opts, given, err) < 0)
        return -1;
    s->ranks = s->layout.ranks;
    s->recipe = opts.recipe;
    struct question q = {.matrix = &j->matrix,
                         .fabric = j->fabric.name ? &j->fabric : NULL,
                         .model = &j->model,
                         .layout = &s->layout,
                         .recipe = &s->recipe,
                         .constants = &j->constants};
    if (rate_of(&rate, &q, err) < 0)
        return -1;
    coefficients_of(&s->coefficients, &rate, &j->constants,
                    rate_release(&rate, &j->constants, NULL, &j->model));
    work_of(&s->work, &j->model, &s->layout, &s->recipe);
    traffic_of(&s->traffic, &j->model, &s->layout, &s->recipe);
    return 0;
}

int nodes_step(struct nodes_step *s, const struct nodes_job *j, int given, struct err *err)
{
    memset(s, 0, sizeof(*s));
    s->ranks = given;
    return j->trains ? train_step(s, j, given, err) : mix_step(s, j, err);
}

/* Why a message has no price: asked again, with words. */
static double why(struct pricer *p, const struct message *msg, double sec, struct err *err)
{
    struct cost cost;
    int group;

    pricer_message_cost(p, msg, &cost, &group);
    if (isinf(sec))
        err_set(err, "%s: a part that it needs is dead or gives wrong data: %.200s", msg->label,
                cost.source);
    else
        err_set(err, "%s: the matrix has no rate for it: %.200s", msg->label, cost.source);
    return sec;
}

double nodes_price(const struct nodes_job *j, const struct nodes_step *s, const int *order,
                   struct err *err)
{
    double one[TRAFFIC_MAX] = {0}, sum = 0, mean;
    struct pricer *p;
    struct timing t;

    if (pricer_open(&p, &j->matrix, order, s->ranks, err) < 0)
        return NAN;
    for (int i = 0; i < s->traffic.messages && sum < INFINITY; i++) {
        const struct message *msg = &s->traffic.message[i];
        one[i] = pricer_message_mean(p, msg, &mean);
        sum += one[i] < INFINITY ? one[i] * msg->count : why(p, msg, one[i], err);
    }
    pricer_close(p);
    if (!j->trains || !(sum < INFINITY))
        return sum;
    timing_of(&t, &s->traffic, one, &s->work, &s->coefficients, &s->layout, &s->recipe);
    return t.sec;
}

int nodes_room(const struct nodes_job *j, int host)
{
    return j->per_node ? j->per_node : j->first[host + 1] - j->first[host];
}

static int check_host(const struct nodes_job *j, const bool *taken, int host, struct err *err)
{
    const struct topo *t = &j->matrix.topo;

    if (host < 0 || host >= t->hosts)
        return err_usage(err, "there is no host %d: the matrix has %d, from 0", host, t->hosts);
    int has = j->first[host + 1] - j->first[host];
    if (taken[host])
        return err_usage(err, "host %.200s is listed twice", t->host[host].name);
    if (has < (j->per_node ? j->per_node : 1))
        return err_usage(err, "host %.200s has %d endpoints, and the job has %d ranks a node",
                         t->host[host].name, has, j->per_node ? j->per_node : 1);
    return 0;
}

int nodes_check(const struct nodes_job *j, const int *host, int hosts, struct err *err)
{
    int sum = 0, most = j->matrix.topo.hosts;

    if (hosts < 1 || hosts > most)
        return err_usage(err, "a list of %d hosts: the matrix has %d", hosts, most);
    bool *taken = mem_calloc((size_t)most, sizeof(*taken));
    for (int i = 0; i < hosts && sum >= 0; i++) {
        if (check_host(j, taken, host[i], err) < 0) {
            sum = -1;
        } else {
            taken[host[i]] = true;
            sum += nodes_room(j, host[i]);
        }
    }
    free(taken);
    return sum;
}

void nodes_deal(const struct nodes_job *j, const int *host, int hosts, int *order)
{
    int at = 0, most = 0;

    for (int i = 0; i < hosts; i++)
        most = nodes_room(j, host[i]) > most ? nodes_room(j, host[i]) : most;
    if (j->opts.place.spread == SPREAD_CYCLIC)
        for (int k = 0; k < most; k++)
            for (int i = 0; i < hosts; i++)
                if (k < nodes_room(j, host[i]))
                    order[at++] = j->endpoint[j->first[host[i]] + k];
    if (j->opts.place.spread == SPREAD_BLOCK)
        for (int i = 0; i < hosts; i++)
            for (int k = 0; k < nodes_room(j, host[i]); k++)
                order[at++] = j->endpoint[j->first[host[i]] + k];
}

int nodes_fill(const struct nodes_job *j, const struct nodes_step *s, const int *host, int hosts,
               int given, struct err *err)
{
    bool cyclic = j->opts.place.spread == SPREAD_CYCLIC;
    int fewest = cyclic ? hosts : given - nodes_room(j, host[hosts - 1]) + 1;

    if (s->ranks > given)
        return err_usage(err, "the job has %d ranks, and the %d hosts take %d", s->ranks, hosts,
                         given);
    if (s->ranks < fewest)
        return err_usage(err, "the job has %d ranks: of the %d hosts some would be idle", s->ranks,
                         hosts);
    return 0;
}

double nodes_cost(const struct nodes_job *j, const int *host, int hosts, struct err *err)
{
    struct nodes_step step;
    int given = nodes_check(j, host, hosts, err);

    if (given < 0 || nodes_step(&step, j, given, err) < 0 ||
        nodes_fill(j, &step, host, hosts, given, err) < 0)
        return NAN;
    int *order = mem_calloc((size_t)given, sizeof(*order));
    nodes_deal(j, host, hosts, order);
    double sec = nodes_price(j, &step, order, err);
    free(order);
    return sec;
}
