/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static __thread jmp_buf *way_back __attribute__((tls_model("initial-exec")));
static void (*last_wish)(void);

void mem_at_end(void (*clean)(void))
{
    last_wish = clean;
}

void mem_ended(void)
{
    if (way_back)
        longjmp(*way_back, 1);
    if (last_wish)
        last_wish();
    fputs("railgauge: out of memory\n", stderr);
    _Exit(EXIT_IO);
}

static void *must(void *p)
{
    if (!p)
        mem_ended();
    return p;
}

/* Call setjmp() in a function without local variables that change. */
static int attempt(jmp_buf *back, int (*body)(void *), void *arg, bool *failed)
{
    if (setjmp(*back) == 0)
        return body(arg);
    *failed = true;
    return -1;
}

static int guarded(int (*body)(void *), void *arg, bool *failed)
{
    jmp_buf back, *outer = way_back;

    way_back = &back;
    int rc = attempt(&back, body, arg, failed);
    way_back = outer;
    return rc;
}

int mem_guarded(int (*body)(void *), void *arg, struct err *err)
{
    bool failed = false;

    if (mem_hold && !mem_hold())
        return err_io(err, "out of memory");
    int rc = guarded(body, arg, &failed);
    if (mem_release)
        mem_release(failed);
    return failed ? err_io(err, "out of memory") : rc;
}

int mem_guarded_kept(int (*body)(void *), void *arg, struct err *err)
{
    bool failed = false;
    int rc = guarded(body, arg, &failed);

    return failed ? err_io(err, "out of memory") : rc;
}

void *mem_calloc(size_t n, size_t size)
{
    return must(calloc(n ? n : 1, size ? size : 1));
}

void *mem_realloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        mem_ended();
    return must(realloc(p, n && size ? n * size : 1));
}

int *mem_ints(int n, int value)
{
    int *v = mem_calloc((size_t)n + 1, sizeof(*v));

    for (int i = 0; i <= n; i++)
        v[i] = value;
    return v;
}

char *mem_strdup(const char *s)
{
    return must(strdup(s));
}

void *mem_dup(const void *p, size_t n, size_t size)
{
    void *copy = mem_calloc(n, size);

    if (n)
        memcpy(copy, p, n * size);
    return copy;
}

char *mem_strndup(const char *s, size_t len)
{
    return must(strndup(s, len));
}

char *mem_vprintf(const char *fmt, va_list ap)
{
    /* Not vasprintf(), which _FORTIFY_SOURCE renames: mem_held.c would not see its allocation. */
    char begin[256], *s = NULL;
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(begin, sizeof(begin), fmt, ap);
    s = n < 0 ? NULL : malloc((size_t)n + 1);
    if (s && (size_t)n < sizeof(begin))
        memcpy(s, begin, (size_t)n + 1);
    else if (s)
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return must(s);
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *s = mem_vprintf(fmt, ap);
    va_end(ap);
    return s;
}

char *mem_append(char *text, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *more = mem_vprintf(fmt, ap);
    va_end(ap);
    size_t at = text ? strlen(text) : 0, len = strlen(more);
    text = mem_realloc(text, at + len + 1, 1);
    memcpy(text + at, more, len + 1);
    free(more);
    return text;
}

/* Buffer of a text stream.  Not open_memstream(): if glibc finds no memory for it, it drops what
 * was written and sets no error. */
struct text {
    char **text;
    size_t *len, size; /* allocated; *len and a NUL are used */
};

static ssize_t text_write(void *cookie, const char *data, size_t len)
{
    struct text *t = cookie;

    if (*t->len + len >= t->size) {
        size_t size = 2 * t->size + len + 256;
        char *more = realloc(*t->text, size);
        if (!more)
            return 0; /* an error of the stream, found at its end */
        *t->text = more;
        t->size = size;
    }
    memcpy(*t->text + *t->len, data, len);
    *t->len += len;
    (*t->text)[*t->len] = '\0';
    return (ssize_t)len;
}

static int text_close(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *mem_stream(char **text, size_t *len)
{
    struct text *t = mem_calloc(1, sizeof(*t));

    *t = (struct text){.text = text, .len = len, .size = 1};
    *text = mem_calloc(1, 1);
    *len = 0;
    return must(
        fopencookie(t, "w", (cookie_io_functions_t){.write = text_write, .close = text_close}));
}

void mem_stream_end(FILE *stream)
{
    bool bad = ferror(stream);

    if (fclose(stream) != 0 || bad)
        mem_ended();
}

void *mem_grow(void *p, size_t count, size_t size)
{
    if (count && (count < 8 || (count & (count - 1))))
        return p;
    return mem_realloc(p, count ? count * 2 : 8, size);
}
