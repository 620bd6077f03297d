/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/job.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

enum { OPTIONS_MAX = 80, COUNT_MAX = 1 << 28 };
static const struct argument_group machine = {"machine", "machine and placement of ranks"};

#define AT(field) offsetof(struct job_opts, field)

static const char *const spread_name[SPREAD_COUNT] = {"block", "cyclic"};

const struct argument job_argument[] = {
    {"model", ARGUMENT_TEXT, AT(model), 0, 0, NULL, 0, "NAME",
     "model of jobs/training/models, or a file, such as a config.json of Transformers (default "
     "llama3.1-8b)",
     .letter = 'm'},
    {"layout", ARGUMENT_TEXT, AT(layout), 0, 0, NULL, 0, "AXES",
     "sizes of pp, dp_replicate, dp_shard (or dp), cp, tp, ep, etp: \"dp_shard=8,tp=4,pp=2\"; one "
     "may be auto (default dp=auto)",
     .group = NULL},
    {"gpus", ARGUMENT_INT, AT(gpus), 1, COUNT_MAX, NULL, 0, "N",
     "number of ranks (default: all endpoints)", .group = NULL},
    {"accumulation", ARGUMENT_INT, AT(accumulation), 1, COUNT_MAX, NULL, 0, "N",
     "microbatches per step and data-parallel rank, instead of --batch", .group = &machine},
    {"fabric", ARGUMENT_TEXT, AT(fabric), 0, 0, NULL, 0, "NAME",
     "preset to use without a MATRIX; with one, the preset whose GPU it has", .group = NULL},
    {"racks", ARGUMENT_INT, AT(racks), 1, COUNT_MAX, NULL, 0, "N",
     "racks of the preset (default: as many as the GPUs need)", .group = NULL},
    {"gpus-per-node", ARGUMENT_INT, AT(gpus_per_node), 1, 64, NULL, 0, "N",
     "GPUs per host of the preset, each with as many NICs as before (default: as in the preset)",
     .group = &machine},
    {"nvlink-domain", ARGUMENT_INT, AT(nvlink_domain), 1, 65536, NULL, 0, "N",
     "GPUs per NVLink domain of the preset (default: as in the preset)", .group = &machine},
    {"order", ARGUMENT_TEXT, AT(place.order), 0, 0, NULL, 0, "FILE",
     "order of ranks: a hostfile, or an endpoint per line (default: in order)", .group = NULL},
    {"nodes", ARGUMENT_TEXT, AT(place.nodes), 0, 0, NULL, 0, "LIST",
     "nodes that ranks fill in turn: \"r00n[00-15],r01n03\" (default: the first of the matrix)",
     .group = NULL},
    {"segment", ARGUMENT_INT, AT(place.segment), 1, COUNT_MAX, NULL, 0, "N",
     "nodes per rack, one rack after another: the widest spread that srun --segment=N allows "
     "(default: as usual on the preset, such as 16 of the 18 nodes of NVL72)",
     .group = &machine},
    {"spread", ARGUMENT_WORD, AT(place.spread), 0, 0, spread_name, SPREAD_COUNT, "NAME",
     "order in which nodes get ranks, as srun --distribution: block or cyclic (default block)",
     .group = &machine},
    {"mesh-order", ARGUMENT_WORD, AT(mesh), 0, 0, order_name, ORDER_COUNT, "NAME",
     "order of the axes in the ranks: megatron, torchtitan or tp-pp-dp (default megatron)",
     .group = &machine},
    {"flops", ARGUMENT_DOUBLE, AT(flops), 1, 1e20, NULL, 0, "RATE",
     "FLOP/s that a device reaches, instead of those of preset or matrix: 400e12",
     .group = &machine},
    {"constants", ARGUMENT_TEXT, AT(constants), 0, 0, NULL, 0, "FILE",
     "constants of the step model (default jobs/training/constants.json)", .group = &machine},
    {0},
};
int job_set(struct job_opts *o, const char *key, const char *value, struct err *err)
{
    static const struct argument *const tables[] = {job_argument, recipe_argument};
    const struct argument *own = argument_find(job_argument, key);
    const struct argument *of_recipe = argument_find(recipe_argument, key);

    return own         ? argument_set(o, own, value, err)
           : of_recipe ? argument_set(&o->recipe, of_recipe, value, err)
                       : argument_unknown(key, tables, 2, err);
}

void job_defaults(struct job_opts *o)
{
    *o = (struct job_opts){.model = "llama3.1-8b", .mesh = ORDER_MEGATRON};
    recipe_defaults(&o->recipe);
}

static int take_option(void *into, const char *name, const char *value, struct err *err)
{
    struct err why = {0, ""};

    return job_set(into, name, value, &why) == 0 ? 0 : err_usage(err, "--%s", why.text);
}

static struct opt option_of(const struct argument *a)
{
    return (struct opt){a->key,
                        a->letter,
                        a->arg,
                        a->help,
                        OPT_NAMED(take_option),
                        .group = a->group ? a->group->name : NULL,
                        .values = !strcmp(a->key, "model")    ? model_each
                                  : !strcmp(a->key, "fabric") ? fabric_each
                                                              : NULL,
                        .words = a->words,
                        .known = a->count};
}

const struct opt *job_options(void)
{
    static const struct argument *const tables[] = {job_argument, recipe_argument};
    static struct opt rows[OPTIONS_MAX]; /* both tables, headlines, and an empty row */
    const struct argument_group *part[OPTIONS_MAX] = {NULL}; /* [0]: own options */
    int parts = 1, n = 0;

    for (int t = 0; t < 2; t++)
        for (const struct argument *a = tables[t]; a->key; a++) {
            int i = 0;
            while (i < parts && part[i] != a->group)
                i++;
            parts += i == parts;
            part[i] = a->group;
        }
    for (int i = 0; i < parts; i++) {
        if (part[i])
            rows[n++] = (struct opt){.help = part[i]->headline, .group = part[i]->name};
        for (int t = 0; t < 2; t++)
            for (const struct argument *a = tables[t]; a->key; a++) {
                assert(n + 2 < OPTIONS_MAX);
                if (a->group == part[i])
                    rows[n++] = option_of(a);
            }
    }
    return rows;
}

static int racks_for(const struct fabric *f, const struct job_opts *o, int ranks)
{
    return o->racks ? o->racks : placement_racks(&o->place, f, ranks);
}

/* Returns the ranks fixed by the layout's text; 0 if it leaves an axis open or is not given. */
static int ranks_of(const struct job_opts *o)
{
    struct layout l;

    if (o->gpus || !o->layout)
        return o->gpus;
    return layout_parse(&l, o->layout, (enum strategy)o->recipe.strategy, (enum mesh_order)o->mesh,
                        0, NULL) < 0
               ? 0
               : l.ranks;
}

void job_flops(struct matrix *m, double flops)
{
    if (!(flops > 0))
        return;
    free(m->compute.source);
    m->compute.source = mem_strdup("FLOP/s as given with --flops");
    m->compute.flops = flops;
}

/* Set the number of hosts taken per rack from the preset, unless the job states a placement. */
static void take_habit(struct job *j, struct job_opts *o)
{
    const struct placement *p = &o->place;

    if (o->matrix || o->racks || p->order || p->nodes || p->segment || p->spread)
        return;
    o->place.segment = j->habit = fabric_segment(&j->fabric, ranks_of(o));
}

static int open_matrix(struct job *j, struct job_opts *o, struct err *err)
{
    if (!o->matrix && !o->fabric)
        return err_usage(err, "neither MATRIX nor --fabric is given");
    if (o->matrix && o->racks)
        return err_usage(err, "--racks belongs to a preset, and %s has its own", o->matrix);
    if (o->matrix && matrix_load(&j->matrix, o->matrix, MATRIX_WHOLE, err) < 0)
        return -1;
    if (matrix_preset(&j->fabric, &j->matrix, o->fabric, err) < 0)
        return -1;
    if (o->matrix && (o->gpus_per_node || o->nvlink_domain))
        return err_usage(err,
                         "--gpus-per-node and --nvlink-domain belong to a preset, and %s has "
                         "its own hosts",
                         o->matrix);
    if (fabric_reshape(&j->fabric, o->gpus_per_node, o->nvlink_domain, err) < 0)
        return -1;
    take_habit(j, o);
    if (!o->matrix &&
        matrix_from_fabric(&j->matrix, &j->fabric, racks_for(&j->fabric, o, ranks_of(o)), err) < 0)
        return -1;
    job_flops(&j->matrix, o->flops);
    return 0;
}

/* Set the batch for this number of microbatches on every data-parallel rank. */
static int batch_of(struct job_opts *o, const struct layout *l, struct err *err)
{
    double batch = (double)o->accumulation * o->recipe.micro_batch * l->size[AXIS_DP_SHARD] *
                   l->size[AXIS_DP_REPLICATE];

    if (!o->accumulation)
        return 0;
    if (o->recipe.global_batch && batch != o->recipe.global_batch)
        return err_usage(err, "an accumulation of %d makes a batch of %.0f, and %d is given",
                         o->accumulation, batch, o->recipe.global_batch);
    if (batch > 1 << 28)
        return err_usage(err, "an accumulation of %d makes a batch of %.0f, more than %d",
                         o->accumulation, batch, 1 << 28);
    o->recipe.global_batch = (int)batch;
    return 0;
}

int job_layout(struct layout *l, const struct model *m, struct job_opts *o, int given,
               struct err *err)
{
    const char *text = o->layout ? o->layout : "dp=auto";
    int want = o->gpus ? o->gpus : strstr(text, "auto") ? given : 0;

    if (layout_parse(l, text, (enum strategy)o->recipe.strategy, (enum mesh_order)o->mesh, want,
                     err) < 0 ||
        batch_of(o, l, err) < 0)
        return -1;
    return layout_check(l, m, &o->recipe, err);
}

static int open_layout(struct job *j, struct job_opts *o, const struct topo *t, struct err *err)
{
    int given;

    if (placement_make(&j->order, &given, t, &o->place, ranks_of(o), err) < 0 ||
        job_layout(&j->layout, &j->model, o, given, err) < 0)
        return -1;
    if (j->order && j->layout.ranks > given)
        return err_usage(err, "the layout needs %d ranks and %s places %d", j->layout.ranks,
                         o->place.order ? o->place.order : "the placement", given);
    return 0;
}

static int open_names(struct job *j, const struct job_opts *o, struct err *err)
{
    memset(j, 0, sizeof(*j));
    matrix_init(&j->matrix);
    if (model_load(&j->model, o->model, err) < 0)
        return -1;
    if (o->constants || !o->shipped)
        return constants_load(&j->constants, o->constants, err);
    constants_copy(&j->constants, o->shipped);
    return 0;
}

int job_open(struct job *j, struct job_opts *o, struct err *err)
{
    if (open_names(j, o, err) < 0 || open_matrix(j, o, err) < 0)
        return -1;
    return open_layout(j, o, &j->matrix.topo, err);
}

/* Make the preset's matrix again if the job now needs another number of racks. */
static int preset_again(struct job *again, const struct job *j, const struct job_opts *was,
                        const struct job_opts *o, struct err *err)
{
    int racks = racks_for(&j->fabric, o, ranks_of(o));

    if (racks == racks_for(&j->fabric, was, ranks_of(was)))
        return 0;
    if (matrix_from_fabric(&again->matrix, &again->fabric, racks, err) < 0)
        return -1;
    job_flops(&again->matrix, o->flops);
    return 0;
}

int job_open_again(struct job *again, const struct job *j, const struct job_opts *was,
                   struct job_opts *o, struct err *err)
{
    *again = *j;
    again->order = NULL;
    take_habit(again, o); /* same as if these were the words of the command line */
    if (!o->matrix && preset_again(again, j, was, o, err) < 0)
        return -1;
    return open_layout(again, o, &again->matrix.topo, err);
}

void job_close_again(struct job *again, const struct job *j)
{
    free(again->order);
    if (again->matrix.topo.endpoint != j->matrix.topo.endpoint)
        matrix_free(&again->matrix);
}

int job_open_ranks(struct job *j, struct job_opts *o, int *ranks, struct err *err)
{
    int given;

    if (open_names(j, o, err) < 0 || open_matrix(j, o, err) < 0 ||
        placement_make(&j->order, &given, &j->matrix.topo, &o->place, o->gpus, err) < 0)
        return -1;
    *ranks = o->gpus ? o->gpus : given;
    if (*ranks > given)
        return err_usage(err, "%d GPUs are asked for and %s has %d", *ranks,
                         j->order ? "the placement" : "the matrix", given);
    return 0;
}

/* Same if the endpoints are known but nothing is measured yet: `t` replaces the matrix, which stays
 * empty. */
static int job_open_on(struct job *j, struct job_opts *o, const struct topo *t, struct err *err)
{
    if (open_names(j, o, err) < 0 || open_layout(j, o, t, err) < 0)
        return -1;
    if (j->layout.ranks > t->endpoints)
        return err_usage(err, "the layout needs %d ranks and there are %d endpoints",
                         j->layout.ranks, t->endpoints);
    return 0;
}

void job_free(struct job *j)
{
    free(j->order);
    matrix_free(&j->matrix);
    fabric_free(&j->fabric);
    model_free(&j->model);
    constants_free(&j->constants);
    memset(j, 0, sizeof(*j));
}

int job_nodes(const struct job *j)
{
    const struct topo *t = &j->matrix.topo;
    bool *seen = mem_calloc((size_t)t->hosts + 1, sizeof(*seen));
    int n = 0;

    for (int i = 0; i < j->layout.ranks && i < t->endpoints; i++) {
        bool *host = &seen[topo_at(t, j->order ? j->order[i] : i, LEVEL_HOST)];
        n += !*host;
        *host = true;
    }
    free(seen);
    return n;
}

struct question job_question(const struct job *j, const struct job_opts *o)
{
    return (struct question){.matrix = &j->matrix,
                             .fabric = j->fabric.name ? &j->fabric : NULL,
                             .model = &j->model,
                             .layout = &j->layout,
                             .recipe = &o->recipe,
                             .order = j->order,
                             .constants = &j->constants};
}

static const struct opt job_words[] = {{"matrix", OPT_INTO(struct job_opts, matrix)}, {0}};

/* Split words like a shell without quotes.  The options point into `text`. */
static int read_words(struct job_opts *o, char *text, struct err *err)
{
    static const struct opt_line line = {.words = job_words, .set = {{.make = job_options}}};
    char *save = NULL, **argv = NULL, *whole = mem_strdup(text);
    char program[] = "railgauge: --for-job";
    int argc = 0, rc = 0;

    MEM_PUSH(argv, argc) = program;
    for (char *t = strtok_r(text, " \t", &save); t; t = strtok_r(NULL, " \t", &save))
        MEM_PUSH(argv, argc) = t;
    MEM_PUSH(argv, argc) = NULL;
    job_defaults(o);
    if (opt_parse(&line, argc - 1, argv, OPT_RETURNS, o) < 0)
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

/* Returns another round with the same groups, or NULL. */
static struct round *known(const struct plan *p, const struct round *r)
{
    for (int i = 0; i < p->rounds; i++)
        if (&p->round[i] != r && same_groups(&p->round[i], r))
            return &p->round[i];
    return NULL;
}

/* Remove the newest round. */
static void drop_last(struct plan *p)
{
    struct round *r = &p->round[--p->rounds];

    for (int g = 0; g < r->groups; g++)
        free(r->group[g].members);
    free(r->group);
}

/* Returns the end of a ladder that includes the job's sizes, whatever the default length.  Between
 * CPUs at most the requested end or 64 MiB, because longer messages add no information and the
 * buffers use the host's memory. */
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
    r->epochs = plan_curve_epochs(o->epochs);
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

/* Open the job in words, on t, with its traffic.  Call job_free() in every case. */
static int open_words(struct job *job, struct traffic *traffic, const char *words,
                      const struct topo *t, struct err *err)
{
    struct job_opts asked;
    struct step step;
    char *text = mem_strdup(words);
    int rc = read_words(&asked, text, err);

    *job = (struct job){.order = NULL};
    if (rc == 0) {
        rc = job_open_on(job, &asked, t, err);
        if (rc < 0) {
            err_wrap(err, "--for-job \"%s\"", words);
        } else {
            step_of(&step, &job->model, &job->layout, &asked.recipe);
            traffic_of(traffic, &step);
        }
    }
    free(text);
    return rc;
}

int job_plan(struct plan *p, const char *words, const struct topo *t, const struct plan_opts *o,
             struct err *err)
{
    struct plan_opts opts = *o;
    struct traffic traffic;
    struct job job;

    plan_fill_auto(&opts, t);
    int rc = open_words(&job, &traffic, words, t, err);
    for (int i = 0; rc == 0 && i < traffic.messages; i++)
        add_round(p, &job, &traffic.message[i], t, &opts, o->max_bytes > 0);
    job_free(&job);
    return rc;
}

int job_traffic(struct traffic *out, const char *words, const struct topo *t, struct err *err)
{
    struct job job;
    int rc = open_words(&job, out, words, t, err);

    job_free(&job);
    return rc;
}
