/* SPDX-License-Identifier: BSD-3-Clause */
/* faulty.c - preloaded (LD_PRELOAD): a system that lacks calls, or whose clock is set.  FAULTY="NAME=VALUE ...":
 *
 *   flock, fcntl (its locks), dirsync (fsync of a folder)    fail with this errno
 *   clock    seconds by which the wall clock is set after the CALLS-th time it was read ("calls=N", else at once)
 *   stop     the rank of MPI that stops itself (SIGSTOP) once all ranks are in MPI_Finalize
 *   linger   the rank that stops itself at its very end */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The value of a name; 0: not given. */
static int value_of(const char *name)
{
    const char *list = getenv("FAULTY"), *at = list ? strstr(list, name) : NULL;

    return at ? atoi(at + strlen(name) + 1) : 0;
}

static int fails(const char *name)
{
    int why = value_of(name);

    if (why)
        errno = why;
    return why;
}

int flock(int fd, int how)
{
    int (*real)(int, int);

    *(void **)&real = dlsym(RTLD_NEXT, "flock");
    return fails("flock") ? -1 : real(fd, how);
}

int fcntl(int fd, int what, ...)
{
    int (*real)(int, int, ...);
    va_list args;

    va_start(args, what);
    void *arg = va_arg(args, void *);
    va_end(args);
    *(void **)&real = dlsym(RTLD_NEXT, "fcntl");
    if ((what == F_SETLK || what == F_OFD_SETLK) && fails("fcntl"))
        return -1;
    return real(fd, what, arg);
}

int fsync(int fd)
{
    int (*real)(int);
    struct stat st;

    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && fails("dirsync") ? -1 : real(fd);
}

/* --- the wall clock --- */

static time_t step(void)
{
    static atomic_int reads;

    return atomic_fetch_add(&reads, 1) < value_of("calls") ? 0 : value_of("clock");
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, t);
    if (id == CLOCK_REALTIME)
        t->tv_sec += step();
    return rc;
}

int gettimeofday(struct timeval *t, void *zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *t)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

/* --- the end of MPI --- */

static void stop_if(const char *name)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *list = getenv("FAULTY");
    const char *at = rank && list ? strstr(list, name) : NULL;

    if (at && atoi(at + strlen(name)) == atoi(rank)) {
        usleep(300000);
        raise(SIGSTOP);
    }
}

__attribute__((destructor)) static void end(void)
{
    if (!strcmp(program_invocation_short_name, "railgauge-probe"))
        stop_if("linger=");
}

int MPI_Finalize(void);
int MPI_Finalize(void)
{
    int (*real)(void);

    stop_if("stop=");
    *(void **)&real = dlsym(RTLD_NEXT, "MPI_Finalize");
    return real();
}
