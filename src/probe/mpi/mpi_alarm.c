/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/mpi/mpi_alarm.h"

#include "probe/mpi/mpi_ops.h" /* mpi.h */

enum { TAG = 7003 }; /* and what was raised: two tags */

/* An empty message needs no answer to be done with: MPI buffers it. */
int mpi_alarm_raise(void *comm, enum mpi_alarm what)
{
    MPI_Comm c = *(MPI_Comm *)comm;
    int self, size, code = MPI_SUCCESS;

    MPI_Comm_rank(c, &self);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (i != self)
            code = MPI_Send(NULL, 0, MPI_BYTE, i, TAG + (int)what, c);
    return code == MPI_SUCCESS ? 0 : -1;
}

enum mpi_alarm mpi_alarm_heard(void *comm)
{
    for (int what = ALARM_CAUSE; what > ALARM_NONE; what--) {
        int there = 0, code = MPI_Iprobe(MPI_ANY_SOURCE, TAG + what, *(MPI_Comm *)comm, &there,
                                         MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && there)
            return (enum mpi_alarm)what;
    }
    return ALARM_NONE;
}

int mpi_alarm_take(void *comm, const enum mpi_alarm *raised)
{
    MPI_Comm c = *(MPI_Comm *)comm;
    int self, size, code = MPI_SUCCESS;

    MPI_Comm_rank(c, &self);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (i != self && raised[i])
            code = MPI_Recv(NULL, 0, MPI_BYTE, i, TAG + (int)raised[i], c, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? 0 : -1;
}
