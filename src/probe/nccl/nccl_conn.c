/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_conn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "probe/mpi/world_mpi.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/nccl/nccl_wait.h"
#include "probe/watch/watch.h"

static struct nccl_conn *pool; /* of this process */
/* What these members get no more, and why: one operation, or with OP_COUNT a communicator at all.
 */
static struct nccl_denial {
    int *member, size, op;
    struct err why;
} * denial;
static int denials;
static int pooled;
static unsigned long long turns;

/* --- what connecting cost: a row a communicator, kept by its first member --- */

/* Goes over the wire as it is, between equal programs. */
struct nccl_cost {
    int ranks, made, slow_init, slow_first, op; /* op -1: none was done */
    double init, first;                         /* s */
    size_t bytes;
    char members[64]; /* "0-7", cut with "..." */
};

static struct nccl_cost *costs; /* of communicators whose first member is here */
static int cost_count;

static void spell_members(char text[64], const int *member, int n)
{
    size_t used = 0;

    for (int i = 0, last; i < n; i = last + 1) {
        char one[32];
        for (last = i; last + 1 < n && member[last + 1] == member[last] + 1; last++)
            ;
        int len = last == i ? snprintf(one, sizeof(one), "%d", member[i])
                            : snprintf(one, sizeof(one), "%d-%d", member[i], member[last]);
        if (used + (size_t)len + 5 > 64) {
            snprintf(text + used, 64 - used, "...");
            return;
        }
        used += (size_t)snprintf(text + used, 64 - used, "%s%s", used ? "," : "", one);
    }
}

static int cost_made(const int *members, int size, double sec, int slowest)
{
    struct nccl_cost r = {.ranks = size, .op = -1, .first = NAN};
    int i = 0;

    spell_members(r.members, members, size);
    while (i < cost_count && (costs[i].ranks != size || strcmp(costs[i].members, r.members)))
        i++;
    if (i == cost_count)
        MEM_PUSH(costs, cost_count) = r;
    costs[i].made++;
    if (sec >= costs[i].init) {
        costs[i].init = sec;
        costs[i].slow_init = slowest;
    }
    return i;
}

static void cost_first(int row, enum op op, size_t bytes, double sec, int slowest)
{
    struct nccl_cost *r = &costs[row];

    if (r->op >= 0 && r->first >= sec)
        return;
    r->op = (int)op;
    r->bytes = bytes;
    r->first = sec;
    r->slow_first = slowest;
}

static void print_cost(FILE *out, const struct nccl_cost *r)
{
    fprintf(out, "%d\t%s\t%d\t%.9f\t%d\t", r->ranks, r->members, r->made, r->init, r->slow_init);
    if (r->op < 0)
        fputs("-\t-\t-\t-\n", out);
    else
        fprintf(out, "%.9f\t%d\t%s\t%zu\n", r->first, r->slow_first, op_name((enum op)r->op),
                r->bytes);
}

static int save_costs(const struct nccl_cost *all, int n, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    fputs("ranks\tmembers\tmade\tinit_s\tinit_slowest\tfirst_s\tfirst_slowest\tfirst_op\t"
          "first_bytes\n",
          f.stream);
    for (int i = 0; i < n; i++)
        print_cost(f.stream, &all[i]);
    int rc = file_commit(&f, err);
    file_abort(&f);
    return rc;
}

static char *costs_sentence(const struct nccl_cost *all, int n)
{
    double *init = mem_calloc((size_t)n + 1, sizeof(*init)), *first = mem_calloc((size_t)n + 1, 8);
    int worst = 0, firsts = 0;

    for (int i = 0; i < n; i++) {
        init[i] = all[i].init;
        worst = all[i].init > all[worst].init ? i : worst;
        if (all[i].op >= 0)
            first[firsts++] = all[i].first;
    }
    char *text =
        n ? mem_printf("%d communicator%s: made in %.3g s (median; slowest %.3g s, ranks %s, rank "
                       "%d), first operation %.3g s (median)",
                       n, n == 1 ? "" : "s", stats_median(init, n), all[worst].init,
                       all[worst].members, all[worst].slow_init,
                       firsts ? stats_median(first, firsts) : 0.0)
          : mem_strdup("");
    free(init);
    free(first);
    return text;
}

static int gather_costs(struct world *w, struct nccl_cost **all, int *n, struct err *err)
{
    char **part = mem_calloc((size_t)w->size, sizeof(*part));
    size_t *len = mem_calloc((size_t)w->size, sizeof(*len));
    int rc = world_collect(w, costs, sizeof(*costs) * (size_t)cost_count, part, len, err);

    for (int r = 0; r < w->size; r++) {
        struct nccl_cost one;
        for (size_t at = 0; rc == 0 && part[r] && at < len[r]; at += sizeof(one)) {
            memcpy(&one, part[r] + at, sizeof(one));
            MEM_PUSH(*all, *n) = one;
        }
        free(part[r]);
    }
    free(len);
    free(part);
    return rc;
}

/* --- agreeing --- */

/* What each member tells of a step; the words follow only when it failed. */
struct nccl_told {
    int blame;
    enum world_alarm raised;
    double sec;
};

/* Who is nearest to the cause, or was slowest. */
static int first_of(const struct nccl_told *all, int n, bool slowest)
{
    int first = 0;

    for (int i = 1; i < n; i++)
        if (slowest ? all[i].sec > all[first].sec : all[i].blame > all[first].blame)
            first = i;
    return first;
}

/* The words of member `who` to all, and every alarm taken in. */
static int share_words(struct nccl_conn *c, const struct nccl_told *all, int who,
                       struct nccl_step *s, struct err *err)
{
    struct err *words = mem_calloc((size_t)c->size, sizeof(*words));
    enum world_alarm *raised = mem_calloc((size_t)c->size, sizeof(*raised));
    int rc = world_mpi_trade(c->shared, &s->err, sizeof(s->err), words, err);

    for (int i = 0; i < c->size; i++)
        raised[i] = all[i].raised;
    if (rc == 0 && world_mpi_alarm_take(c->shared, raised) < 0)
        rc = err_set(err, "MPI cannot take in the members' alarm");
    if (rc == 0) {
        words[who].text[sizeof(words[who].text) - 1] = '\0';
        err_code(err, words[who].code, "%s", words[who].text);
    }
    free(raised);
    free(words);
    return -1;
}

int nccl_conn_agree(struct nccl_conn *c, struct nccl_step *s, double *longest, int *slowest,
                    struct err *err)
{
    struct nccl_told mine = {(int)s->blame, s->raised, s->sec};
    struct nccl_told *all = mem_calloc((size_t)c->size, sizeof(*all));
    int rc = world_mpi_trade(c->shared, &mine, sizeof(mine), all, err);

    if (rc == 0) {
        int who = first_of(all, c->size, false), slow = first_of(all, c->size, true);
        if (longest)
            *longest = all[slow].sec;
        if (slowest)
            *slowest = c->member[slow];
        s->blame = (enum nccl_blame)all[who].blame;
        if (s->blame != NCCL_FINE)
            rc = share_words(c, all, who, s, err);
    }
    free(all);
    return rc;
}

/* --- what is denied --- */

static bool same_members(const int *a, int na, const int *b, int nb)
{
    return na == nb && !memcmp(a, b, sizeof(int) * (size_t)na);
}

/* member: owned from here on. */
static void deny(int *member, int size, int op, const struct err *why)
{
    MEM_PUSH(denial, denials) = (struct nccl_denial){member, size, op, *why};
}

const struct err *nccl_conn_denied(const int *member, int size, int op)
{
    for (int i = 0; i < denials; i++)
        if ((denial[i].op == op || denial[i].op == OP_COUNT) &&
            same_members(denial[i].member, denial[i].size, member, size))
            return &denial[i].why;
    return NULL;
}

void nccl_conn_deny(const struct nccl_conn *c, enum op op, const struct err *why)
{
    deny(mem_dup(c->member, (size_t)c->size, sizeof(*c->member)), c->size, (int)op, why);
}

/* --- the pool --- */

static struct nccl_conn *find(const struct group *g)
{
    for (struct nccl_conn *c = pool; c; c = c->next)
        if (same_members(c->member, c->size, g->members, g->size))
            return c;
    return NULL;
}

static void unlink_conn(struct nccl_conn *c)
{
    struct nccl_conn **at = &pool;

    while (*at && *at != c)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = c->next;
    pooled--;
}

void nccl_conn_lose(struct nccl_conn *c, const struct err *why)
{
    if (!c)
        return;
    unlink_conn(c);
    if (c->comm && !c->inside)
        nccl_wait_abort(c->comm);
    if (why)
        deny(c->member, c->size, OP_COUNT, why);
    else
        free(c->member);
    free(c);
}

static int finalize(void *comm)
{
    int code = nccl.CommFinalize(*(nccl_comm *)comm);

    return code == NCCL_SUCCESS ? nccl.CommDestroy(*(nccl_comm *)comm) : code;
}

/* Nothing is under way: finalize and destroy, and abort what does not let itself be destroyed.
 * While that runs the communicator is not here to be asked how it does: ncclCommDestroy() frees it,
 * and the guard returns only after. */
static void close_conn(struct nccl_conn *c)
{
    nccl_comm comm = c->comm;
    const struct nccl_call call = {"ncclCommFinalize", finalize, &comm, sizeof(comm), NULL};
    struct nccl_step s = {.blame = NCCL_FINE};

    c->comm = NULL;
    if (nccl_wait_call(c, &call, 2, &s) < 0)
        c->comm = comm;
    nccl_conn_lose(c, NULL);
}

/* Make room for one more.  Members of the same host that keep theirs hold this up for as long as
 * close_conn() waits; its thread ends when they close it, too. */
static void evict(void)
{
    while (pooled && pooled >= nccl_opts_now()->pool) {
        struct nccl_conn *oldest = pool;
        for (struct nccl_conn *c = pool; c; c = c->next)
            if (c->turn < oldest->turn)
                oldest = c;
        oldest->shared = NULL;
        close_conn(oldest);
    }
}

/* --- making one --- */

/* Index 0's id to all. */
static int share_id(struct nccl_conn *c, struct nccl_id *id, struct err *err)
{
    struct nccl_offer {
        int code;
        struct nccl_id id;
    } mine = {NCCL_SUCCESS, {""}}, *all = mem_calloc((size_t)c->size, sizeof(*all));

    if (c->self == 0)
        mine.code = nccl.GetUniqueId(&mine.id);
    int rc = world_mpi_trade(c->shared, &mine, sizeof(mine), all, err);
    if (rc == 0 && all[0].code != NCCL_SUCCESS)
        rc = err_set(err, "rank %d cannot make an id for a communicator: %s", c->member[0],
                     nccl.GetErrorString(all[0].code));
    *id = all[0].id;
    free(all);
    return rc;
}

/* What ncclCommInitRankConfig is given. */
struct nccl_init {
    nccl_comm comm;
    int size, self;
    struct nccl_id id;
    struct nccl_config config;
};

static int init_comm(void *arg)
{
    struct nccl_init *i = arg;

    return nccl.CommInitRankConfig(&i->comm, i->size, i->id, i->self, &i->config);
}

static nccl_comm init_late(void *arg)
{
    return ((struct nccl_init *)arg)->comm;
}

static int make(struct nccl_conn *c, struct err *err)
{
    struct nccl_init init = {.size = c->size, .self = c->self};
    const struct nccl_call call = {"ncclCommInitRankConfig", init_comm, &init, sizeof(init),
                                   init_late};
    struct nccl_step s = {.blame = NCCL_FINE};
    double longest;
    int slowest;

    if (share_id(c, &init.id, err) < 0)
        return -1;
    nccl_config(&init.config);
    init.config.blocking = 1;
    init.config.net_name = nccl_opts_net();
    double from = log_now();
    nccl_wait_call(c, &call, nccl_wait_limit(), &s);
    c->comm = c->inside ? NULL : init.comm;
    s.sec = log_now() - from;
    if (nccl_conn_agree(c, &s, &longest, &slowest, err) < 0)
        return -1;
    if (c->self == 0)
        c->row = cost_made(c->member, c->size, longest, slowest);
    return 0;
}

static struct nccl_conn *fresh(const struct group *g)
{
    struct nccl_conn *c = mem_calloc(1, sizeof(*c));

    c->size = g->size;
    c->self = g->self;
    c->shared = g->comm;
    c->row = -1;
    c->member = mem_dup(g->members, (size_t)g->size, sizeof(*c->member));
    c->next = pool;
    pool = c;
    pooled++;
    return c;
}

/* Do all members still have theirs?  A member evicts when its own pool is full. */
static int all_have(const struct group *g, bool mine, bool *all, struct err *err)
{
    char have = mine, *each = mem_calloc((size_t)g->size, 1);
    int rc = world_mpi_trade(g->comm, &have, 1, each, err);

    *all = rc == 0;
    for (int i = 0; i < g->size; i++)
        *all = *all && each[i];
    free(each);
    return rc;
}

int nccl_conn_get(struct nccl_conn **out, const struct group *g, struct err *err)
{
    struct nccl_conn *c = find(g);
    const struct err *dead = nccl_conn_denied(g->members, g->size, OP_COUNT);
    bool all;

    *out = NULL;
    if (dead)
        return err_code(err, dead->code, "%s", dead->text);
    if (all_have(g, c != NULL, &all, err) < 0)
        return -1;
    if (c)
        c->shared = g->comm;
    if (c && !all) {
        nccl_conn_lose(c, NULL);
        c = NULL;
    }
    if (!c) {
        evict();
        c = fresh(g);
        watch_enter("making a communicator of %d ranks", g->size);
        int rc = make(c, err);
        watch_leave();
        if (rc < 0) {
            nccl_conn_lose(c, err);
            return -1;
        }
    }
    c->turn = ++turns;
    *out = c;
    return 0;
}

void nccl_conn_first(struct nccl_conn *c, enum op op, size_t bytes, double sec, int slowest)
{
    c->worked = true;
    if (c->row >= 0)
        cost_first(c->row, op, bytes, sec, slowest);
}

/* The newest first, on every member: the ranks of one host destroy a communicator together (NCCL
 * user guide, ncclCommDestroy: "an intra-node collective call"), so the order must be one order. */
void nccl_conn_close_all(void)
{
    while (pool) {
        pool->shared = NULL;
        close_conn(pool);
    }
    while (denials)
        free(denial[--denials].member);
    free(denial);
    denial = NULL;
}

int nccl_conn_finish(struct world *w, const char *path, char **words, struct err *err)
{
    struct nccl_cost *all = NULL;
    int n = 0;

    nccl_conn_close_all();
    int rc = gather_costs(w, &all, &n, err);
    *words = NULL;
    if (rc == 0 && w->rank == 0) {
        *words = costs_sentence(all, n);
        rc = n ? save_costs(all, n, path, err) : 0;
    }
    free(all);
    free(costs);
    costs = NULL;
    cost_count = 0;
    return w->agree(w, rc, err);
}
