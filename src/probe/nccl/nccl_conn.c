/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "probe/mpi/world_mpi.h"
#include "probe/nccl/nccl_cost.h"
#include "probe/nccl/nccl_guard.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/nccl/nccl_wait.h"
#include "probe/watch/watch.h"

static struct nccl_conn *pool; /* of this process */
/* What these members get no more, and why: one operation, or with OP_COUNT a communicator at all.
 */
static struct denial {
    int *member, size, op;
    struct err why;
} * denial;
static int denials;
static int pooled;
static unsigned long long turns;

const char *nccl_conn_who(int rank)
{
    static char text[128];
    char host[64];
    const struct gpu_facts *gpu = gpu_facts();

    snprintf(text, sizeof(text), "rank %d (host %s, GPU %s)", rank, host_self(host, sizeof(host)),
             gpu ? gpu->busid : "?");
    return text;
}

/* --- agreeing --- */

/* What each member tells of a step; the words follow only when it failed. */
struct told {
    int blame;
    enum world_alarm raised;
    double sec;
};

static int worst_of(const struct told *all, int n)
{
    int worst = 0;

    for (int i = 1; i < n; i++)
        if (all[i].blame > all[worst].blame)
            worst = i;
    return worst;
}

static int slowest_of(const struct told *all, int n)
{
    int slow = 0;

    for (int i = 1; i < n; i++)
        if (all[i].sec > all[slow].sec)
            slow = i;
    return slow;
}

/* The words of member `who` to all, and every alarm taken in. */
static int share_words(struct nccl_conn *c, const struct told *all, int who, struct nccl_step *s,
                       struct err *err)
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
    struct told mine = {(int)s->blame, s->raised, s->sec};
    struct told *all = mem_calloc((size_t)c->size, sizeof(*all));
    int rc = world_mpi_trade(c->shared, &mine, sizeof(mine), all, err);

    if (rc == 0) {
        int who = worst_of(all, c->size), slow = slowest_of(all, c->size);
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
    MEM_PUSH(denial, denials) = (struct denial){member, size, op, *why};
}

const struct err *nccl_conn_denied(const int *member, int size, int op)
{
    for (int i = 0; i < denials; i++)
        if ((denial[i].op == op || denial[i].op == OP_COUNT) &&
            same_members(denial[i].member, denial[i].size, member, size))
            return &denial[i].why;
    return NULL;
}

static int *copy_members(const int *member, int size)
{
    int *copy = mem_calloc((size_t)size, sizeof(*copy));

    memcpy(copy, member, sizeof(*copy) * (size_t)size);
    return copy;
}

void nccl_conn_deny(const struct nccl_conn *c, enum op op, const struct err *why)
{
    deny(copy_members(c->member, c->size), c->size, (int)op, why);
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
        nccl_guard_abort(c->comm);
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
    if (nccl_guard(c, &call, 2, &s) < 0)
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
    struct offer {
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
struct init {
    nccl_comm comm;
    int size, self;
    struct nccl_id id;
    struct nccl_config config;
};

static int init_comm(void *arg)
{
    struct init *i = arg;

    return nccl.CommInitRankConfig(&i->comm, i->size, i->id, i->self, &i->config);
}

static nccl_comm init_late(void *arg)
{
    return ((struct init *)arg)->comm;
}

static int make(struct nccl_conn *c, struct err *err)
{
    struct init init = {.size = c->size, .self = c->self};
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
    nccl_guard(c, &call, nccl_wait_limit(), &s);
    c->comm = c->inside ? NULL : init.comm;
    s.sec = log_now() - from;
    if (nccl_conn_agree(c, &s, &longest, &slowest, err) < 0)
        return -1;
    if (c->self == 0)
        c->row = nccl_cost_made(c->member, c->size, longest, slowest);
    return 0;
}

static struct nccl_conn *fresh(const struct group *g)
{
    struct nccl_conn *c = mem_calloc(1, sizeof(*c));

    c->size = g->size;
    c->self = g->self;
    c->shared = g->comm;
    c->row = -1;
    c->member = copy_members(g->members, g->size);
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
        nccl_cost_first(c->row, op, bytes, sec, slowest);
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
    nccl_conn_close_all();
    return nccl_cost_write(w, path, words, err);
}
