/* mem.h - allocations of small size that never fail, and growing arrays.
 *
 * Out of memory in small bookkeeping ends the program with a message and EXIT_IO.  Message buffers
 * and everything sized by the user use calloc() and report ordinary errors. */
#ifndef RG_MEM_H
#define RG_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct err;

void *mem_calloc(size_t n, size_t size); /* zeroed; never NULL; n * size is checked for overflow */
void *mem_realloc(void *p, size_t n, size_t size);   /* never NULL */
void *mem_dup(const void *p, size_t n, size_t size); /* copy of n elements */
int *mem_ints(int n, int value);                     /* n + 1 elements, all set to value */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t len);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Append to text (NULL: start a new one).  text itself becomes invalid. */
char *mem_append(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *mem_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* Build a text with a stream.  After mem_stream_end(), which checks that nothing was lost, *text
 * is complete and owned by the caller. */
FILE *mem_stream(char **text, size_t *len);
void mem_stream_end(FILE *stream);

/* Append an item: `MEM_PUSH(a->items, a->count) = item;` capacity doubles from 8 and is derived
 * from the count, so no third field is needed. */
#define MEM_PUSH(items, count)                                                                     \
    (*((items) = mem_grow((items), (size_t)(count), sizeof(*(items))), &(items)[(count)++]))
void *mem_grow(void *p, size_t count, size_t size);

/* End the program because memory is exhausted. */
_Noreturn void mem_ended(void);
/* Set a function that runs when memory ends the program: base/file.c removes unfinished files. */
void mem_at_end(void (*clean)(void));

/* --- for the library, which must not end its caller --- */

/* Call body(arg) and return its result; -1 with EXIT_IO "out of memory" if memory was exhausted in
 * this thread.  In librailgauge.so all memory that body allocated is then freed (mem_held.c); body
 * must not leave pointers to it. */
int mem_guarded(int (*body)(void *), void *arg, struct err *err);
/* Like mem_guarded(), but memory of body stays: arg leads to it, in a state that can be freed. */
int mem_guarded_kept(int (*body)(void *), void *arg, struct err *err);
/* Bookkeeping of mem_guarded(), present if the linker wraps malloc() and free(). */
bool mem_hold(void) __attribute__((weak));
void mem_release(bool failed) __attribute__((weak));

#endif
