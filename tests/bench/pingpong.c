/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong.c - the yardstick: a pair's latency or bandwidth by a bare loop of MPI calls.
 *
 *   mpirun -n N pingpong latency|bandwidth BYTES BLOCKS LOOPS ... [SRC DST]
 *
 * Nothing stands between the calls, not even a clock: a block of LOOPS rounds is timed as a whole.
 * Prints, for each four words a line, the median block's time per message in seconds.  latency:
 * half a round trip.  bandwidth: 64 messages below 64 KiB, else 4, one way out of one buffer, then
 * an empty one back, as OSU's osu_bw does it.  SRC and DST are ranks, 0 and 1 unless given. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WINDOW = 4,
    SMALL = 64 << 10,
    SMALL_WINDOW = 64,
    BLOCKS_MAX = 4096,
    BYTES_MAX = 1 << 30,
    WARM_BLOCKS = 2
};

static char *data;

static int window_of(int bytes)
{
    return bytes < SMALL ? SMALL_WINDOW : WINDOW;
}

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
    MPI_Request req[SMALL_WINDOW];
    int window = window_of(bytes);
    for (int i = 0; i < loops; i++) {
        for (int w = 0; w < window; w++) {
            if (lead)
                MPI_Isend(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &req[w]);
            else
                MPI_Irecv(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &req[w]);
        }
        MPI_Waitall(window, req, MPI_STATUSES_IGNORE);
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
            sec[b] = (MPI_Wtime() - t) / loops / (lat ? 2 : window_of(bytes));
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

/* Four words: what is timed between the two ranks. */
static void take(char **word, int rank, int src, int dst)
{
    int lat = !strcmp(word[0], "latency"), bytes = whole(word[1], 0, BYTES_MAX);
    int blocks = whole(word[2], 1, BLOCKS_MAX), loops = whole(word[3], 1, 1000000);

    void *pages; /* a buffer that begins within a cache line costs a tenth of the rate */
    if (posix_memalign(&pages, 4096, (size_t)bytes + 1))
        MPI_Abort(MPI_COMM_WORLD, 1);
    data = pages;
    memset(data, 1, (size_t)bytes + 1);
    double sec = median_block(lat, rank == src ? dst : src, rank == src, bytes, blocks, loops);
    if (rank == src)
        printf("%.9f\n", sec);
    free(data);
}

int main(int argc, char **argv)
{
    int rank, size, src = 0, dst = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int words = (argc - 1) / 4 * 4;
    if (size < 2 || !words || (argc - 1 - words != 0 && argc - 1 - words != 2)) {
        fprintf(stderr,
                "usage: mpirun -n N pingpong latency|bandwidth BYTES BLOCKS LOOPS ... [SRC DST]\n");
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    if (words < argc - 1) {
        src = whole(argv[words + 1], 0, size - 1);
        dst = whole(argv[words + 2], 0, size - 1);
    }
    if (src == dst)
        MPI_Abort(MPI_COMM_WORLD, 64);
    for (int i = 1; i < words && (rank == src || rank == dst); i += 4)
        take(argv + i, rank, src, dst);
    wait_asleep();
    MPI_Finalize();
    return 0;
}
