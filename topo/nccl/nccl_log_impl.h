/* nccl_log_impl.h - the reader of NCCL's log between its two files: nccl_log.c knows what lines say,
 * nccl_log_comm.c whose they are. */
#ifndef RG_NCCL_LOG_IMPL_H
#define RG_NCCL_LOG_IMPL_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "topo/nccl/nccl_log.h"

enum { THREADS = 64 };

struct nccl_log {
    struct nccl_profile *p;
    struct map links, choices; /* index of each into the profile, by a hash of its facts */
    struct map address;        /* of the newest communicator with a comm 0x... of the lines */
    struct {
        long tid;
        int comm;
    } thread[THREADS]; /* the latest; comm -1: none is being made there */
    int threads;
    long tid;                               /* of the line at hand */
    const struct nccl_log_mark *mark, *now; /* now: the one that counts, NULL: none yet */
    int marks;
};

void nccl_log_channel(struct nccl_log *l, const char *text); /* what comes after "Channel " */
void nccl_log_collnet(struct nccl_log *l, const char *text); /* after "CollNet " */
void nccl_log_nvls(struct nccl_log *l, const char *text);    /* after "NVLS comm " */

/* The communicator that is being made in this line's thread; set: comm -1 ends it. */
void nccl_log_thread_set(struct nccl_log *l, int comm);
/* The communicator that a line without a name belongs to; -1: none yet. */
int nccl_log_current(const struct nccl_log *l);
int nccl_log_comm_at(const struct nccl_log *l, unsigned long long address); /* -1 */
int nccl_log_comm_add(struct nccl_log *l, unsigned long long address, int rank,
                      int ranks); /* -1: full */

/* --- pieces of a line --- */

static inline bool log_starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* A decimal number at *s, which is moved behind it. */
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

/* The number behind " WORD ". */
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
