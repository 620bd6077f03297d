/* nccl_log_impl.h - state shared by the two files of the log reader: nccl_log.c parses lines,
 * nccl_log_comm.c assigns them to communicators. */
#ifndef RG_NCCL_LOG_IMPL_H
#define RG_NCCL_LOG_IMPL_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "topo/sources/nccl/nccl_log.h"

enum { THREADS = 64 };

struct nccl_log {
    struct nccl_profile *p;
    struct map links, choices; /* index into the profile, by a hash of the facts */
    struct map address;        /* comm 0x... of a line to its newest communicator */
    struct {
        long tid;
        int comm;
    } thread[THREADS]; /* the latest; comm -1: none under construction */
    int threads;
    long tid;                               /* thread of the current line */
    const struct nccl_log_mark *mark, *now; /* now: the mark in effect; NULL: none yet */
    int marks;
};

void nccl_log_channel(struct nccl_log *l, const char *text); /* text after "Channel " */
void nccl_log_collnet(struct nccl_log *l, const char *text); /* text after "CollNet " */
void nccl_log_nvls(struct nccl_log *l, const char *text);    /* text after "NVLS comm " */

/* Set the communicator under construction in this line's thread; -1: construction ended. */
void nccl_log_thread_set(struct nccl_log *l, int comm);
/* Communicator of a line that names none; -1: none yet. */
int nccl_log_current(const struct nccl_log *l);
int nccl_log_comm_at(const struct nccl_log *l, unsigned long long address); /* -1: unknown */
int nccl_log_comm_add(struct nccl_log *l, unsigned long long address, int rank,
                      int ranks); /* -1: full */

/* --- pieces of a line --- */

static inline bool log_starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* Parse a decimal number at *s and move *s behind it. */
static inline bool log_number(const char **s, long long *out)
{
    char *end;

    errno = 0;
    long long x = strtoll(*s, &end, 10);
    if (end == *s || errno)
        return false;
    *s = end;
    *out = x;
    return true;
}

static inline bool log_small(const char **s, int max, int *out)
{
    long long x;

    if (!log_number(s, &x) || x < -1 || x > max)
        return false;
    *out = (int)x;
    return true;
}

static inline bool log_take(const char **s, const char *word)
{
    if (!log_starts(*s, word))
        return false;
    *s += strlen(word);
    return true;
}

/* Parse the number after `word`. */
static inline bool log_named(const char *s, const char *word, int max, int *out)
{
    const char *at = strstr(s, word);

    if (!at)
        return false;
    at += strlen(word);
    return log_small(&at, max, out);
}

static inline void log_copy(char *to, size_t size, const char *from, size_t len)
{
    if (len >= size)
        len = size - 1;
    memcpy(to, from, len);
    to[len] = '\0';
}

#endif
