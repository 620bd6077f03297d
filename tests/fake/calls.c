/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - preloaded (LD_PRELOAD): which calls of MPI a program makes.  Once for each call and
 * value a line is added to the file that MPI_CALLS names: "MPI_Waitall 64" (requests),
 * "MPI_Init_thread 0" (the level asked for), "MPI_Reduce_scatter 0".
 *
 * Handles of MPI are ints or pointers, by library: a long holds either in a register. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 64 };

static void note(const char *name, int value)
{
    static struct {
        const char *name;
        int value;
    } seen[KINDS];
    static int kinds;
    const char *path = getenv("MPI_CALLS");

    for (int i = 0; i < kinds; i++)
        if (seen[i].value == value && !strcmp(seen[i].name, name))
            return;
    FILE *f = path && kinds < KINDS ? fopen(path, "a") : NULL;
    if (!f)
        return;
    seen[kinds].name = name;
    seen[kinds++].value = value;
    fprintf(f, "%s %d\n", name, value);
    fclose(f);
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*real)(int *, char ***, int, int *);

    *(void **)&real = next("MPI_Init_thread");
    note("MPI_Init_thread", required);
    return real(argc, argv, required, provided);
}

int MPI_Waitall(int count, void *request, void *status);
int MPI_Waitall(int count, void *request, void *status)
{
    int (*real)(int, void *, void *);

    *(void **)&real = next("MPI_Waitall");
    note("MPI_Waitall", count);
    return real(count, request, status);
}

int MPI_Reduce_scatter(const void *from, void *to, const int *counts, long type, long op,
                       long comm);
int MPI_Reduce_scatter(const void *from, void *to, const int *counts, long type, long op, long comm)
{
    int (*real)(const void *, void *, const int *, long, long, long);

    *(void **)&real = next("MPI_Reduce_scatter");
    note("MPI_Reduce_scatter", 0);
    return real(from, to, counts, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *from, void *to, int count, long type, long op, long comm);
int MPI_Reduce_scatter_block(const void *from, void *to, int count, long type, long op, long comm)
{
    int (*real)(const void *, void *, int, long, long, long);

    *(void **)&real = next("MPI_Reduce_scatter_block");
    note("MPI_Reduce_scatter_block", 0);
    return real(from, to, count, type, op, comm);
}
