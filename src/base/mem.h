/* mem.h - allocation of small things that must not fail, and growing arrays.
 *
 * Out of memory for small bookkeeping ends the program with a message and EXIT_IO; message buffers
 * and anything sized by the user go through calloc() and are ordinary errors. */
#ifndef RG_MEM_H
#define RG_MEM_H

#include <stddef.h>

void *mem_calloc(size_t n, size_t size); /* zeroed; never NULL; n*size is overflow-checked */
void *mem_realloc(void *p, size_t n, size_t size); /* never NULL */
char *mem_strdup(const char *s);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Make room for one more item: `MEM_PUSH(a->items, a->count) = item;` capacity doubles from 8 and
 * is derived from the count, so no third field is needed. */
#define MEM_PUSH(items, count)                                                                     \
    (*((items) = mem_grow((items), (size_t)(count), sizeof(*(items))), &(items)[(count)++]))
void *mem_grow(void *p, size_t count, size_t size);

#endif
