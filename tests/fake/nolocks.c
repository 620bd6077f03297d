/* SPDX-License-Identifier: BSD-3-Clause */
/* nolocks.c - preloaded (LD_PRELOAD): a file system that lacks calls.  NOLOCKS="NAME=ERRNO ..." with the names flock,
 * fcntl (its locks) and dirsync (fsync of a folder); ERRNO is a number. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int fails(const char *name)
{
    const char *list = getenv("NOLOCKS"), *at = list ? strstr(list, name) : NULL;

    if (!at)
        return 0;
    errno = atoi(at + strlen(name) + 1);
    return errno;
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
