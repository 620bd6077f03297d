/* mem.h - allocation of small things that must not fail, and growing arrays.
 *
 * Out of memory for small bookkeeping ends the program with a message and EXIT_IO; message buffers
 * and anything sized by the user go through calloc() and are ordinary errors. */
#ifndef RG_MEM_H
#define RG_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct err;

void *mem_calloc(size_t n, size_t size); /* zeroed; never NULL; n*size is overflow-checked */
void *mem_realloc(void *p, size_t n, size_t size);   /* never NULL */
void *mem_dup(const void *p, size_t n, size_t size); /* a copy of n of them */
int *mem_ints(int n, int value);                     /* n + 1 of them, all alike */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t len);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* text (NULL: nothing so far) with more behind it; text itself is gone. */
char *mem_append(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *mem_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* Text by way of a stream; *text is whole and the caller's after mem_stream_end(), which sees to it
 * that nothing was lost. */
FILE *mem_stream(char **text, size_t *len);
void mem_stream_end(FILE *stream);

/* Make room for one more item: `MEM_PUSH(a->items, a->count) = item;` capacity doubles from 8 and
 * is derived from the count, so no third field is needed. */
#define MEM_PUSH(items, count)                                                                     \
    (*((items) = mem_grow((items), (size_t)(count), sizeof(*(items))), &(items)[(count)++]))
void *mem_grow(void *p, size_t count, size_t size);

/* What the above do when there is none. */
_Noreturn void mem_ended(void);
/* What is done when memory ends the program: unfinished files go (base/file.c). */
void mem_at_end(void (*clean)(void));

/* --- for the library, which must not end its caller --- */

/* body(arg), and what it returns; -1 with EXIT_IO "out of memory" when memory ended in this thread.
 * In librailgauge.so what body had taken is then given back (mem_held.c); it must leave no pointer
 * of its own behind. */
int mem_guarded(int (*body)(void *), void *arg, struct err *err);
/* The same, and what body had taken stays: it is where arg leads to, whole enough to be freed. */
int mem_guarded_kept(int (*body)(void *), void *arg, struct err *err);
/* Book-keeping of mem_guarded(), where the linker was told to wrap malloc() and free(). */
bool mem_hold(void) __attribute__((weak));
void mem_release(bool failed) __attribute__((weak));

#endif
