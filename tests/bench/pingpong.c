/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong.c - the yardstick: a pair's latency or bandwidth by a bare loop of MPI calls.
 *
 *   mpirun -n N pingpong latency|bandwidth BYTES BLOCKS LOOPS [SRC DST]
 *
 * Nothing stands between the calls, not even a clock: a block of LOOPS rounds is timed as a whole.
 * Prints the median block's time per message in seconds.  latency: half a round trip.  bandwidth:
 * WINDOW messages one way out of one buffer, then an empty one back, as OSU's osu_bw does it.  SRC
 * and DST are ranks, 0 and 1 unless given. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 4, BLOCKS_MAX = 4096, BYTES_MAX = 1 << 30, WARM_BLOCKS = 2 };

static char *data;

static void latency(int peer, int lead, int bytes, int loops)
{
    for (int i = 0; i < loops; i++) {
        if (lead)
            MPI_Send(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!lead)
            MPI_Send(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    }
}

static void bandwidth(int peer, int lead, int bytes, int loops)
{
    MPI_Request req[WINDOW];
    for (int i = 0; i < loops; i++) {
        for (int w = 0; w < WINDOW; w++) {
            if (lead)
                MPI_Isend(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &req[w]);
            else
                MPI_Irecv(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &req[w]);
        }
        MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
        if (lead)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ranks that do not play wait asleep: on few cores a spinning one would be what is measured. */
static void wait_asleep(void)
{
    MPI_Request req;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &req);
    for (MPI_Test(&req, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&req, &done, MPI_STATUS_IGNORE))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static double median_block(int lat, int peer, int lead, int bytes, int blocks, int loops)
{
    static double sec[BLOCKS_MAX];
    for (int b = -WARM_BLOCKS; b < blocks; b++) {
        double t = MPI_Wtime();
        (lat ? latency : bandwidth)(peer, lead, bytes, loops);
        if (b >= 0)
            sec[b] = (MPI_Wtime() - t) / loops / (lat ? 2 : WINDOW);
    }
    qsort(sec, (size_t)blocks, sizeof *sec, ascending);
    return sec[blocks / 2];
}

/* A whole number in a range; anything else ends the program. */
static int whole(const char *text, long lo, long hi)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text || *end || v < lo || v > hi) {
        fprintf(stderr, "pingpong: \"%s\" is not a whole number from %ld to %ld\n", text, lo, hi);
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    return (int)v;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || (argc != 5 && argc != 7)) {
        fprintf(stderr,
                "usage: mpirun -n N pingpong latency|bandwidth BYTES BLOCKS LOOPS [SRC DST]\n");
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    int lat = !strcmp(argv[1], "latency"), bytes = whole(argv[2], 0, BYTES_MAX);
    int blocks = whole(argv[3], 1, BLOCKS_MAX), loops = whole(argv[4], 1, 1000000);
    int src = argc > 5 ? whole(argv[5], 0, size - 1) : 0;
    int dst = argc > 5 ? whole(argv[6], 0, size - 1) : 1;
    data = malloc((size_t)bytes + 1);
    if (!data || src == dst)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, 1, (size_t)bytes + 1);
    if (rank == src || rank == dst) {
        int lead = rank == src;
        double sec = median_block(lat, lead ? dst : src, lead, bytes, blocks, loops);
        if (lead)
            printf("%.9f\n", sec);
    }
    wait_asleep();
    free(data);
    MPI_Finalize();
    return 0;
}
