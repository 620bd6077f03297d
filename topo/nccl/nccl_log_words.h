/* nccl_log_words.h - reading pieces of a line of NCCL's log. */
#ifndef RG_NCCL_LOG_WORDS_H
#define RG_NCCL_LOG_WORDS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* Of what a fact is made, into its key. */
static inline uint64_t log_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

#endif
