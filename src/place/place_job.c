/* SPDX-License-Identifier: BSD-3-Clause */
/* place_job.c - jobs in words: parsing, the step, its cost on a list of nodes, and the best
 * lists. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "place/place_impl.h"

/* --- parsing --- */

enum { SETS_MAX = 1 << 22, PER_NODE_MAX = 1 << 10 };
#define TIMES_MAX 1e9

static const char *const where_keys[] = {"order", "nodes", "segment", "racks", "constants"};
static const char *const name_keys[] = {"model", "fabric"};

static bool one_of(const char *const *keys, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (argument_is(keys[i], key))
            return true;
    return false;
}
#define ONE_OF(keys, key) one_of(keys, sizeof(keys) / sizeof(*(keys)), key)

static int set_name(const char *key, const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (strchr(name, '/') || (n >= 5 && !strcmp(name + n - 5, ".json")))
        return err_usage(err, "%s=%.80s: a job names what is installed, and no files", key, name);
    return 0;
}

static int set_key(struct place_job *j, char *word, struct err *err)
{
    char *value = strchr(word, '=');
    struct err why;

    if (!value)
        return err_usage(err, "\"%.80s\" is no KEY=VALUE", word);
    *value++ = '\0';
    if (ONE_OF(where_keys, word))
        return err_usage(err, "%.80s: where ranks are, and files, are not for the job to say",
                         word);
    if (ONE_OF(name_keys, word) && set_name(word, value, err) < 0)
        return -1;
    if (argument_is("per-node", word)) {
        if (units_int(&j->per_node, value, 1, PER_NODE_MAX, &why) < 0)
            return err_usage(err, "per_node: %s", why.text);
        return 0;
    }
    j->trains |= !argument_is("spread", word);
    return job_set(&j->opts, word, value, err);
}

/* "groups of 8", "groups of 8 apart 4": the words after "groups". */
static int take_groups(struct message *msg, char **rest, struct err *err)
{
    char *of = strtok_r(NULL, " ", rest), *size = of ? strtok_r(NULL, " ", rest) : NULL;
    char *apart = size ? strtok_r(NULL, " ", rest) : NULL;
    char *stride = apart ? strtok_r(NULL, " ", rest) : NULL;
    struct err why;

    if (!size || strcmp(of, "of") || (apart && (strcmp(apart, "apart") || !stride)))
        return err_usage(err, "%s: \"groups\" goes on with \"of N\" or \"of N apart S\"",
                         msg->label);
    if (units_int(&msg->span.size, size, 2, LAYOUT_RANKS_MAX, &why) < 0 ||
        (stride && units_int(&msg->span.stride, stride, 1, LAYOUT_RANKS_MAX, &why) < 0))
        return err_usage(err, "%s: groups: %s", msg->label, why.text);
    return 0;
}

static int take_op(struct message *msg, const char *word, struct err *err)
{
    int op = op_find(word);

    *msg = (struct message){.count = 1, .span = {0, 1}};
    if (!strcmp(word, "ep_dispatch") || !strcmp(word, "ep_combine")) {
        msg->kernel = !strcmp(word, "ep_dispatch") ? EP_DISPATCH : EP_COMBINE;
        msg->label = msg->kernel == EP_DISPATCH ? "ep_dispatch" : "ep_combine";
        op = OP_ALL_TO_ALL;
    } else if (op < 0 || op_is_pair((enum op)op)) {
        return err_usage(
            err,
            "\"%.80s\" is neither KEY=VALUE nor a collective (known: " OP_COLLECTIVE_WORDS
            "ep_dispatch ep_combine)",
            word);
    } else {
        msg->label = op_name((enum op)op);
    }
    msg->op = (enum op)op;
    return 0;
}

/* OP SIZE [x TIMES] [groups of N [apart S]] */
static int take_collective(struct place_job *j, const char *word, char **rest, struct err *err)
{
    struct message msg;
    struct err why;
    size_t bytes;

    if (take_op(&msg, word, err) < 0)
        return -1;
    if (j->mix.messages == TRAFFIC_MAX)
        return err_usage(err, "%s: more than %d collectives", msg.label, TRAFFIC_MAX);
    word = strtok_r(NULL, " ", rest);
    if (!word || units_bytes(&bytes, word, &why) < 0)
        return err_usage(err, "%s: %s", msg.label, word ? why.text : "its size is missing");
    msg.bytes = (double)bytes;
    word = strtok_r(NULL, " ", rest);
    if (word && !strcmp(word, "x")) {
        word = strtok_r(NULL, " ", rest);
        if (!word || units_double(&msg.count, word, 0, TIMES_MAX, &why) < 0)
            return err_usage(err, "%s: x: %s", msg.label, word ? why.text : "how many times?");
        word = strtok_r(NULL, " ", rest);
    }
    if (word && !strcmp(word, "groups")) {
        if (take_groups(&msg, rest, err) < 0)
            return -1;
        word = strtok_r(NULL, " ", rest);
    }
    if (word)
        return err_usage(err, "%s: \"%.80s\" is not understood", msg.label, word);
    j->mix.message[j->mix.messages++] = msg;
    return 0;
}

static int take_clause(struct place_job *j, char *clause, struct err *err)
{
    char *rest = NULL, *word = strtok_r(clause, " ", &rest);

    if (word && !strchr(word, '='))
        return take_collective(j, word, &rest, err);
    for (; word; word = strtok_r(NULL, " ", &rest))
        if (set_key(j, word, err) < 0)
            return -1;
    return 0;
}

/* Blanks become spaces, ends of lines ';'. */
static int plain(char *text, struct err *err)
{
    for (char *c = text; *c; c++) {
        if (*c == '\t' || *c == '\r')
            *c = ' ';
        if (*c == '\n')
            *c = ';';
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return err_usage(err, "character %ld of the job is the control character 0x%02x",
                             (long)(c - text + 1), (unsigned)*c);
    }
    return 0;
}

int place_job_words(struct place_job *j, const char *text, struct err *err)
{
    size_t length = strnlen(text, PLACE_TEXT_MAX + 1);

    memset(j, 0, sizeof(*j));
    job_defaults(&j->opts);
    j->opts.model = NULL;
    if (length > PLACE_TEXT_MAX)
        return err_usage(err, "the job has more than %d characters", PLACE_TEXT_MAX);
    j->text = mem_strdup(text);
    if (plain(j->text, err) < 0)
        return -1;
    char *rest = NULL;
    for (char *c = strtok_r(j->text, ";", &rest); c; c = strtok_r(NULL, ";", &rest))
        if (take_clause(j, c, err) < 0)
            return -1;
    if (j->trains && j->mix.messages)
        return err_usage(err,
                         "a job is a model or collectives, and here are keys of a model "
                         "beside %s",
                         j->mix.message[0].label);
    if (j->trains ? !j->opts.model : !j->mix.messages)
        return err_usage(err,
                         "the job names no %s: \"model=llama3.1-8b layout=tp=4,dp=auto\" or "
                         "\"all_gather 64M x 12; all_to_all 8M groups of 8\"",
                         j->trains ? "model" : "model and no collective");
    return 0;
}

/* --- the step --- */

static int load_names(struct place_job *j, struct err *err)
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

/* Report errors independent of the number of nodes at once: a layout of known size is checked here,
 * others when the number of nodes is known. */
static int check_layout(const struct place_job *j, struct err *err)
{
    struct place_step step;

    if (!j->opts.gpus && (!j->opts.layout || strstr(j->opts.layout, "auto")))
        return 0;
    return place_job_step(&step, j, LAYOUT_RANKS_MAX, err);
}

int place_job_open(struct place_job *j, const struct matrix *m, const char *text, struct err *err)
{
    if (place_job_words(j, text, err) < 0)
        return -1;
    j->matrix = *m;
    host_slots_make(&j->slots, &m->topo);
    if (!j->trains)
        return 0;
    if (load_names(j, err) < 0)
        return -1;
    return check_layout(j, err);
}

void place_job_close(struct place_job *j)
{
    free(j->text);
    free(j->flops);
    host_slots_free(&j->slots);
    model_free(&j->model);
    constants_free(&j->constants);
    fabric_free(&j->fabric);
    memset(j, 0, sizeof(*j));
}

/* Make a step of the mix's collectives on s->ranks ranks. */
static int mix_step(struct place_step *s, const struct place_job *j, struct err *err)
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

static int train_step(struct place_step *s, const struct place_job *j, int given, struct err *err)
{
    struct job_opts opts = j->opts; /* copy, because the batch is chosen in it */
    struct layout layout;

    if (job_layout(&layout, &j->model, &opts, given, err) < 0)
        return -1;
    struct question q = {.matrix = &j->matrix,
                         .fabric = j->fabric.name ? &j->fabric : NULL,
                         .model = &j->model,
                         .layout = &layout,
                         .recipe = &opts.recipe,
                         .constants = &j->constants};
    return place_step_of(s, &q, err);
}

int place_job_step(struct place_step *s, const struct place_job *j, int given, struct err *err)
{
    memset(s, 0, sizeof(*s));
    s->ranks = given;
    return j->trains ? train_step(s, j, given, err) : mix_step(s, j, err);
}

static int room_of(const struct place_job *j, int host)
{
    return host_slots_room(&j->slots, host, j->per_node);
}

static int check_host(const struct place_job *j, const bool *taken, int host, struct err *err)
{
    const struct topo *t = &j->matrix.topo;

    if (host < 0 || host >= t->hosts)
        return err_usage(err, "there is no host %d: the matrix has %d, from 0", host, t->hosts);
    int has = host_slots_room(&j->slots, host, 0);
    if (taken[host])
        return err_usage(err, "host %.200s is listed twice", t->host[host].name);
    if (has < (j->per_node ? j->per_node : 1))
        return err_usage(err, "host %.200s has %d endpoints, and the job has %d ranks a node",
                         t->host[host].name, has, j->per_node ? j->per_node : 1);
    return 0;
}

/* Check that each host exists, is listed once and has room for per_node ranks.  Returns the sum of
 * rooms, or -1 with the reason.  taken: per host of the matrix, false before and after. */
static int check_list(const struct place_job *j, bool *taken, const int *host, int hosts,
                      struct err *err)
{
    int sum = 0, n, most = j->matrix.topo.hosts;

    if (hosts < 1 || hosts > most)
        return err_usage(err, "a list of %d hosts: the matrix has %d", hosts, most);
    for (n = 0; n < hosts && check_host(j, taken, host[n], err) == 0; n++) {
        taken[host[n]] = true;
        sum += room_of(j, host[n]);
    }
    for (int i = 0; i < n; i++)
        taken[host[i]] = false;
    return n < hosts ? -1 : sum;
}

static int check_hosts(const struct place_job *j, const int *host, int hosts, struct err *err)
{
    bool *taken = mem_calloc((size_t)j->matrix.topo.hosts + 1, sizeof(*taken));
    int sum = check_list(j, taken, host, hosts, err);

    free(taken);
    return sum;
}

/* Check that all ranks fit into `given` endpoints and that no host stays empty. */
static int check_fill(const struct place_job *j, const struct place_step *s, const int *host,
                      int hosts, int given, struct err *err)
{
    bool cyclic = j->opts.place.spread == SPREAD_CYCLIC;
    int fewest = cyclic ? hosts : given - room_of(j, host[hosts - 1]) + 1;

    if (s->ranks > given)
        return err_usage(err, "the job has %d ranks, and the %d hosts take %d", s->ranks, hosts,
                         given);
    if (s->ranks < fewest)
        return err_usage(err, "the job has %d ranks: of the %d hosts some would be idle", s->ranks,
                         hosts);
    return 0;
}

/* --- node lists --- */

void place_list_open(struct place_list *l, const struct place_job *j)
{
    size_t hosts = (size_t)j->matrix.topo.hosts + 1;

    *l = (struct place_list){.job = j};
    l->host = mem_calloc(hosts, sizeof(*l->host));
    l->next = mem_calloc(hosts, sizeof(*l->next));
    l->taken = mem_calloc(hosts, sizeof(*l->taken));
    l->order = mem_calloc((size_t)j->matrix.topo.endpoints + 1, sizeof(*l->order));
}

void place_list_forget(struct place_list *l)
{
    pricer_close(l->pricer);
    l->pricer = NULL;
    l->given = 0;
}

void place_list_close(struct place_list *l)
{
    place_list_forget(l);
    free(l->host);
    free(l->next);
    free(l->taken);
    free(l->order);
    *l = (struct place_list){.job = NULL};
}

/* Make the step for this number of endpoints, mostly the same as for the last list. */
static int step_given(struct place_list *l, int given, struct err *err)
{
    if (given == l->given)
        return 0;
    place_list_forget(l);
    if (place_job_step(&l->step, l->job, given, err) < 0)
        return -1;
    l->given = given;
    return 0;
}

double place_list_cost(struct place_list *l, const int *host, int hosts, struct err *err)
{
    const struct place_job *j = l->job;
    int given = check_list(j, l->taken, host, hosts, err);

    if (given < 0 || step_given(l, given, err) < 0 ||
        check_fill(j, &l->step, host, hosts, given, err) < 0)
        return NAN;
    host_slots_deal(&j->slots, host, hosts, j->per_node, j->opts.place.spread, l->step.ranks,
                    l->order);
    double sec = NAN;
    if (place_reorder(&l->pricer, &j->matrix, l->order, l->step.ranks, err) == 0)
        sec = place_price_by(&l->step, l->pricer, NULL, err);
    if (!isnan(sec)) {
        memmove(l->host, host, (size_t)hosts * sizeof(*host));
        l->hosts = hosts;
    }
    return sec;
}

double place_list_swap(struct place_list *l, int at, int host, struct err *err)
{
    if (at < 0 || at >= l->hosts) {
        err_usage(err, "there is no host %d in the list: it has %d, from 0", at, l->hosts);
        return NAN;
    }
    memcpy(l->next, l->host, (size_t)l->hosts * sizeof(*l->next));
    l->next[at] = host;
    return place_list_cost(l, l->next, l->hosts, err);
}

double place_job_cost(const struct place_job *j, const int *host, int hosts, struct err *err)
{
    struct place_list l;

    place_list_open(&l, j);
    double sec = place_list_cost(&l, host, hosts, err);
    place_list_close(&l);
    return sec;
}

/* --- the best of the free hosts --- */

/* Returns the ranks per host if all hosts take the same number, else -1. */
static int check_even(const struct place_job *j, const int *host, int hosts, struct err *err)
{
    const struct topo *t = &j->matrix.topo;
    int room = room_of(j, host[0]);

    for (int i = 1; i < hosts; i++)
        if (room_of(j, host[i]) != room)
            return err_usage(err,
                             "host %.80s takes %d ranks and host %.80s %d: the job must say "
                             "per_node=N",
                             t->host[host[0]].name, room, t->host[host[i]].name,
                             room_of(j, host[i]));
    return room;
}

static int check_need(int need, int hosts, struct err *err)
{
    return need >= 1 && need <= hosts ? 0
                                      : err_usage(err, "%d hosts of the %d free ones", need, hosts);
}

int place_job_run(struct placed *p, const struct place_job *j, const int *host, int hosts, int need,
                  double limit, struct err *err)
{
    struct place_step step;
    int given = check_hosts(j, host, hosts, err);

    *p = (struct placed){.order = NULL};
    if (given < 0 || (need && check_need(need, hosts, err) < 0))
        return -1;
    if (need && (given = check_even(j, host, hosts, err)) > 0)
        given *= need;
    if (given < 0 || place_job_step(&step, j, given, err) < 0)
        return -1;
    if (step.ranks > given)
        return err_usage(err, "the job has %d ranks, and the %d hosts take %d", step.ranks,
                         need ? need : hosts, given);
    const struct place_ask ask = {.step = &step,
                                  .matrix = &j->matrix,
                                  .host = host,
                                  .hosts = hosts,
                                  .slots = &j->slots,
                                  .need = need,
                                  .per_host = j->per_node,
                                  .spread = j->opts.place.spread,
                                  .limit = limit,
                                  .seed = 1};
    return place_run(p, &ask, err);
}

int place_job_sets(struct place_sets *b, const struct place_job *j, const int *free_host, int frees,
                   int need, int k, long patterns, struct err *err)
{
    struct place_step step;
    struct node_pool pool = {.matrix = NULL};

    *b = (struct place_sets){.host = NULL};
    if (check_hosts(j, free_host, frees, err) < 0 || check_need(need, frees, err) < 0)
        return -1;
    if (k < 1 || k > SETS_MAX / need)
        return err_usage(err, "the best %d sets of %d hosts: 1 to %d are possible", k, need,
                         SETS_MAX / need);
    int room = check_even(j, free_host, frees, err);
    if (room < 0 || place_job_step(&step, j, need * room, err) < 0 ||
        check_fill(j, &step, free_host, need, need * room, err) < 0)
        return -1;
    int rc = node_pool_make(&pool, &j->matrix, &j->slots, free_host, frees, j->per_node, err);
    if (rc == 0)
        rc = place_sets_find(b, &step, &pool, j->opts.place.spread, need, k, patterns, err);
    node_pool_free(&pool);
    return rc;
}
