/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/mpi_alarm.h"

#include "probe/mpi_ops.h" /* mpi.h */

enum { TAG = 7003 };

/* An empty message needs no answer to be done with: MPI buffers it. */
int mpi_alarm_raise(void *comm)
{
    MPI_Comm c = *(MPI_Comm *)comm;
    int self, size, code = MPI_SUCCESS;

    MPI_Comm_rank(c, &self);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (i != self)
            code = MPI_Send(NULL, 0, MPI_BYTE, i, TAG, c);
    return code == MPI_SUCCESS ? 0 : -1;
}

bool mpi_alarm_heard(void *comm)
{
    int there = 0;

    return MPI_Iprobe(MPI_ANY_SOURCE, TAG, *(MPI_Comm *)comm, &there, MPI_STATUS_IGNORE) ==
               MPI_SUCCESS &&
           there;
}

int mpi_alarm_take(void *comm, const bool *raised)
{
    MPI_Comm c = *(MPI_Comm *)comm;
    int self, size, code = MPI_SUCCESS;

    MPI_Comm_rank(c, &self);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (i != self && raised[i])
            code = MPI_Recv(NULL, 0, MPI_BYTE, i, TAG, c, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? 0 : -1;
}
