/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_conn_agree.c - agreement of a communicator's members on the result of a step. */
#include <stdlib.h>

#include "base/mem.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_conn.h"

/* Report of a member on a step; the error text follows only after a failure. */
struct nccl_told {
    int blame;
    enum world_alarm raised;
    double sec;
};

/* Index of the member that is nearest to the cause, or the slowest. */
static int first_of(const struct nccl_told *all, int n, bool slowest)
{
    int first = 0;

    for (int i = 1; i < n; i++)
        if (slowest ? all[i].sec > all[first].sec : all[i].blame > all[first].blame)
            first = i;
    return first;
}

/* Send the error text of member `who` to all, and receive every alarm. */
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
