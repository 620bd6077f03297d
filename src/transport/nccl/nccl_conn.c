/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_conn.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "measure/transports/nccl_opts.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_wait.h"
#include "watch/watch.h"

static struct nccl_conn *pool; /* communicators of this process */
/* What is denied to these members, and why: an operation or, with OP_COUNT, any communicator. */
static struct nccl_denial {
    int *member, size, op;
    struct err why;
} * denial;
static int denials;
static struct nccl_conn *everyone; /* communicator of all ranks, if it is kept; also in the pool */
static bool lost_everyone;         /* lost on this rank since the campaign began */
static int pooled;
static unsigned long long turns;

/* --- denials --- */

static bool same_members(const int *a, int na, const int *b, int nb)
{
    return na == nb && !memcmp(a, b, sizeof(int) * (size_t)na);
}

/* Takes ownership of member. */
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

static struct nccl_conn *find(const int *member, int size, bool shared)
{
    for (struct nccl_conn *c = pool; c; c = c->next)
        if (same_members(c->member, c->size, member, size) && (c->way == NCCL_SHARED) == shared)
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
    pooled -= c->way != NCCL_SHARED;
    if (c == everyone)
        everyone = NULL;
}

static void lose_everyone(void)
{
    lost_everyone = true;
    nccl_conn_lose(everyone, NULL);
}

/* Drop the pairs that share the communicator of all ranks. */
static void forget_sharers(const struct nccl_conn *of)
{
    for (struct nccl_conn *c = pool; c; c = c->next)
        if (c->way == NCCL_SHARED && c->comm == of->comm)
            c->comm = NULL;
}

void nccl_conn_lose(struct nccl_conn *c, const struct err *why)
{
    if (!c)
        return;
    struct nccl_conn *all = c->way == NCCL_SHARED ? everyone : NULL;

    unlink_conn(c);
    if (c->way == NCCL_SHARED && !c->inside)
        c->comm = NULL; /* the communicator of all ranks is aborted instead */
    if (c->way != NCCL_SHARED)
        forget_sharers(c);
    if (c->comm && !c->inside)
        nccl_wait_abort(c->comm);
    if (all) {
        all->inside |= c->inside;
        lose_everyone();
    }
    if (why && c->way != NCCL_SHARED)
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

/* Close an idle communicator: finalize and destroy it; abort it if that fails.  Meanwhile the wait
 * must not query the communicator, because ncclCommDestroy() frees it and the wait returns only
 * afterwards. */
static void close_conn(struct nccl_conn *c)
{
    nccl_comm comm = c->comm;
    const struct nccl_call call = {"ncclCommFinalize", finalize, &comm, sizeof(comm), NULL};
    struct nccl_step s = {.blame = NCCL_FINE};

    c->comm = NULL;
    if (c->way == NCCL_SHARED) {
        unlink_conn(c);
        free(c->member);
        free(c);
        return;
    }
    forget_sharers(c);
    if (nccl_wait_call(c, &call, 2, &s) < 0)
        c->comm = comm;
    nccl_conn_lose(c, NULL);
}

/* Make room for one more.  Members of the same host that keep their communicator delay this by the
 * wait in close_conn(); its thread ends when they close it, too. */
static void evict(void)
{
    while (pooled - (everyone != NULL) >= nccl_opts_now()->pool) {
        struct nccl_conn *oldest = NULL;
        for (struct nccl_conn *c = pool; c; c = c->next)
            if (c->way != NCCL_SHARED && c != everyone && (!oldest || c->turn < oldest->turn))
                oldest = c;
        if (!oldest) /* the remaining ones are shared by pairs and stay */
            return;
        oldest->shared = NULL;
        close_conn(oldest);
    }
}

/* --- creation --- */

/* Send the id of index 0 to all. */
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

/* Arguments of ncclCommInitRankConfig. */
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
    nccl_opts_config(&init.config);
    double from = log_now();
    nccl_wait_call(c, &call, nccl_wait_limit(), &s);
    c->comm = c->inside ? NULL : init.comm;
    s.sec = log_now() - from;
    if (nccl_conn_agree(c, &s, &longest, &slowest, err) < 0)
        return -1;
    if (c->self == 0)
        c->row = nccl_cost_made(c->member, c->size, NCCL_OWN, longest, slowest);
    return 0;
}

static struct nccl_conn *fresh(const struct group *g, enum nccl_way way)
{
    struct nccl_conn *c = mem_calloc(1, sizeof(*c));

    c->size = g->size;
    c->self = g->self;
    c->shared = g->comm;
    c->row = -1;
    c->way = way;
    c->member = mem_dup(g->members, (size_t)g->size, sizeof(*c->member));
    c->next = pool;
    pool = c;
    pooled += way != NCCL_SHARED;
    return c;
}

/* Check whether all members still have theirs, because each evicts when its own pool is full. */
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

static int get_own(struct nccl_conn **out, const struct group *g, struct err *err)
{
    struct nccl_conn *c = find(g->members, g->size, false);
    bool all;

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
        c = fresh(g, NCCL_OWN);
        watch_enter("connecting %d ranks (ncclCommInitRankConfig)", g->size);
        /* the first one loads kernels; roots serve ranks one by one */
        watch_expect(0, 20 + 0.05 * g->size);
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

/* Returns 1 if both members have the communicator of all ranks, 0 if not. */
static int get_shared(struct nccl_conn **out, const struct group *g, struct err *err)
{
    struct nccl_conn *c = find(g->members, g->size, true);
    bool all;

    if (all_have(g, everyone != NULL, &all, err) < 0)
        return -1;
    if (!all)
        return 0;
    if (!c)
        c = fresh(g, NCCL_SHARED);
    c->worked &= c->comm == everyone->comm;
    c->comm = everyone->comm;
    c->shared = g->comm;
    if (c->self == 0 && c->row < 0)
        c->row = nccl_cost_made(c->member, c->size, NCCL_SHARED, 0, c->member[0]);
    *out = c;
    return 1;
}

int nccl_conn_get(struct nccl_conn **out, const struct group *g, bool shared, struct err *err)
{
    const struct err *dead = nccl_conn_denied(g->members, g->size, OP_COUNT);
    int there = 0;

    *out = NULL;
    if (dead)
        return err_code(err, dead->code, "%s", dead->text);
    if (shared)
        there = get_shared(out, g, err);
    return there ? (there < 0 ? -1 : 0) : get_own(out, g, err);
}

/* --- communicator of all ranks, and its parts --- */

/* Make an MPI communicator of all ranks for their agreements, as enter() of struct world does. */
static int enter_all(struct world *w, struct group *g, struct err *err)
{
    int *member = mem_calloc((size_t)w->size, sizeof(*member));

    for (int r = 0; r < w->size; r++)
        member[r] = r;
    *g = (struct group){.members = member, .size = w->size, .self = w->rank};
    return w->enter(w, member, w->size, 0, &g->comm, err);
}

static void leave_all(struct world *w, struct group *g)
{
    if (everyone)
        everyone->shared = NULL;
    if (g->comm)
        w->leave(w, &g->comm);
    free((void *)g->members);
}

/* Once a pair failed on it or a split failed, the communicator of all ranks is not made again,
 * because a faulty rank makes all others fail there. */
static int get_everyone(const struct group *g, struct err *err)
{
    struct nccl_conn *all = NULL;
    bool fine;

    if (all_have(g, !lost_everyone, &fine, err) < 0)
        return -1;
    if (!fine) {
        if (everyone)
            lose_everyone();
        return err_set(err, "the communicator of all ranks was lost with one of them");
    }
    if (nccl_conn_get(&all, g, false, err) < 0)
        return -1;
    everyone = all;
    return 0;
}

int nccl_conn_everyone(struct world *w, struct err *err)
{
    struct group g;
    int rc = enter_all(w, &g, err);

    if (rc == 0)
        rc = get_everyone(&g, err);
    leave_all(w, &g);
    return rc;
}

/* Arguments of ncclCommSplit. */
struct nccl_part {
    nccl_comm of, comm;
    int color, key;
    struct nccl_config config;
};

static int split_comm(void *arg)
{
    struct nccl_part *p = arg;

    return nccl.CommSplit(p->of, p->color, p->key, &p->comm, &p->config);
}

static nccl_comm split_late(void *arg)
{
    return ((struct nccl_part *)arg)->comm;
}

/* Choose the pairs of which a member has no communicator: the colour of both; NCCL_NO_COLOR for
 * other ranks. */
static int choose_parts(struct group *g, const struct group *mine, int *color, struct err *err)
{
    struct nccl_want {
        int other; /* -1: no communicator needed */
        bool lacks;
    } want = {-1, false}, *all = mem_calloc((size_t)g->size, sizeof(*all));
    int rc, any = 0;

    if (mine && !nccl_conn_denied(mine->members, 2, OP_COUNT))
        want = (struct nccl_want){mine->members[1 - mine->self],
                                  !find(mine->members, mine->size, false)};
    rc = world_mpi_trade(g->comm, &want, sizeof(want), all, err);
    *color = NCCL_NO_COLOR;
    if (rc == 0 && want.other >= 0 && (want.lacks || all[want.other].lacks))
        *color = mine->members[0];
    for (int r = 0; r < g->size && rc == 0; r++)
        any |= all[r].lacks;
    free(all);
    return rc < 0 ? -1 : any;
}

static void keep_part(const struct group *mine, nccl_comm comm, double sec, int slowest)
{
    struct nccl_conn *old = find(mine->members, 2, false);

    nccl_conn_lose(old, NULL);
    evict();
    struct nccl_conn *c = fresh(mine, NCCL_SPLIT);
    c->comm = comm;
    c->shared = NULL;
    c->turn = ++turns;
    if (c->self == 0)
        c->row = nccl_cost_made(c->member, 2, NCCL_SPLIT, sec, slowest);
}

static int split(const struct group *mine, int color, double *longest, struct err *err)
{
    struct nccl_part part = {.of = everyone->comm, .color = color, .key = mine ? mine->self : 0};
    const struct nccl_call call = {"ncclCommSplit", split_comm, &part, sizeof(part), split_late};
    struct nccl_step s = {.blame = NCCL_FINE};
    double from = log_now();
    int slowest;

    nccl_opts_config(&part.config);
    watch_enter("connecting pairs (ncclCommSplit of %d ranks)", everyone->size);
    watch_expect(0, 20 + 0.05 * everyone->size);
    nccl_wait_call(everyone, &call, nccl_wait_limit(), &s);
    s.sec = log_now() - from;
    watch_leave();
    if (nccl_conn_agree(everyone, &s, longest, &slowest, err) < 0) {
        if (part.comm && !everyone->inside)
            nccl_wait_abort(part.comm);
        lose_everyone();
        return -1;
    }
    nccl_cost_split(*longest);
    if (part.comm)
        keep_part(mine, part.comm, *longest, slowest);
    return 0;
}

int nccl_conn_split(struct world *w, const struct group *mine, double *longest, struct err *err)
{
    struct group g;
    int color, rc = enter_all(w, &g, err), need = 0;

    *longest = 0;
    if (rc == 0)
        rc = need = choose_parts(&g, mine, &color, err);
    if (need > 0) {
        rc = get_everyone(&g, err);
        if (rc == 0)
            rc = split(mine, color, longest, err);
    }
    leave_all(w, &g);
    return rc < 0 ? -1 : 0;
}

void nccl_conn_first(struct nccl_conn *c, enum op op, size_t bytes, double sec, int slowest)
{
    c->worked = true;
    if (c->row >= 0)
        nccl_cost_first(c->row, op, bytes, sec, slowest);
}

void nccl_conn_close(const int *member, int size)
{
    struct nccl_conn *c = find(member, size, false);

    if (!c)
        return;
    c->shared = NULL;
    close_conn(c);
}

/* Close the newest first on every member.  The ranks of one host destroy a communicator together
 * (NCCL user guide, ncclCommDestroy: "an intra-node collective call"), so all need the same
 * order. */
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
    lost_everyone = false;
}

int nccl_conn_finish(struct world *w, const char *path, char **words, struct err *err)
{
    nccl_conn_close_all();
    return w->agree(w, nccl_cost_finish(w, path, words, err), err);
}
