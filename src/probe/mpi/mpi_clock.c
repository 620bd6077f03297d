/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/mpi/mpi_clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

enum { PINGS = 12, TAG = 7001 };

uint64_t mpi_clock_id(void)
{
    char text[128] = "";
    uint64_t hash = 1469598103934665603u; /* FNV-1a, 64 bits */
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (f) {
        if (!fgets(text, 64, f))
            text[0] = '\0';
        fclose(f);
    }
    size_t used = strlen(text);
    if (!used) /* not visible: alone with its clock */
        snprintf(text, sizeof(text), "%ld %.9f", (long)getpid(), log_now());
    else
        (void)!readlink("/proc/self/ns/time", text + used, sizeof(text) - used - 1);
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash;
}

/* Both sides of one edge of the tree learn whether they share a clock; how many pings does it take?
 */
static int greet(MPI_Comm comm, uint64_t id, int peer, int *pings)
{
    uint64_t theirs = 0;
    int code = MPI_Sendrecv(&id, 1, MPI_UINT64_T, peer, TAG, &theirs, 1, MPI_UINT64_T, peer, TAG,
                            comm, MPI_STATUS_IGNORE);

    *pings = theirs == id ? 1 : PINGS;
    return code;
}

static int ask(MPI_Comm comm, uint64_t id, int parent, double *offset)
{
    double best = INFINITY, reply[2], sent, back;
    int pings, code = greet(comm, id, parent, &pings);

    for (int i = 0; i < pings && code == MPI_SUCCESS; i++) {
        sent = log_now();
        code = MPI_Send(&sent, 1, MPI_DOUBLE, parent, TAG, comm);
        if (code == MPI_SUCCESS)
            code = MPI_Recv(reply, 2, MPI_DOUBLE, parent, TAG, comm, MPI_STATUS_IGNORE);
        back = log_now();
        if (code == MPI_SUCCESS && back - sent < best) {
            best = back - sent;
            *offset = reply[1] + (pings == 1 ? 0 : reply[0] - (sent + back) / 2);
        }
    }
    return code;
}

static int answer(MPI_Comm comm, uint64_t id, int child, double offset)
{
    double reply[2] = {0, offset}, sent;
    int pings, code = greet(comm, id, child, &pings);

    for (int i = 0; i < pings && code == MPI_SUCCESS; i++) {
        code = MPI_Recv(&sent, 1, MPI_DOUBLE, child, TAG, comm, MPI_STATUS_IGNORE);
        reply[0] = log_now();
        if (code == MPI_SUCCESS)
            code = MPI_Send(reply, 2, MPI_DOUBLE, child, TAG, comm);
    }
    return code;
}

int mpi_clock_offset(MPI_Comm comm, uint64_t id, double *offset)
{
    int self, size = 1, top = 1, code = MPI_Comm_rank(comm, &self);

    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(comm, &size);
    *offset = 0;
    while (code == MPI_SUCCESS && top < size)
        top *= 2;
    for (int step = top / 2; step > 0 && code == MPI_SUCCESS; step /= 2) {
        if (self % (2 * step) == 0 && self + step < size)
            code = answer(comm, id, self + step, *offset);
        else if (self % (2 * step) == step)
            code = ask(comm, id, self - step, offset);
    }
    return code;
}
