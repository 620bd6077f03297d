/* map.h - numbers by key: the hash table of this program; and names by number, on top of it.
 *
 * A value is a number, mostly an index into an array of the caller's; what a key is made of stays
 * there.  Open addressing, linear probing, at most half full; nothing is taken out again.  A struct
 * map of zeros is empty.  Searching does not change it, so several threads may. */
#ifndef RG_MAP_H
#define RG_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAP_NONE = -1 };

struct map {
    struct map_slot {
        uint64_t key;
        int value;
        bool used;
    } * slot;
    size_t slots, count;
};

/* Is what has this value the one that is looked for?  NULL: equal keys are one, always. */
typedef bool map_same(const void *wanted, int value);

/* The value of a key, to be read or set before the next call; a new key's is MAP_NONE. */
int *map_at(struct map *m, uint64_t key, map_same *same, const void *wanted);
/* The value, MAP_NONE where the key is not there. */
int map_find(const struct map *m, uint64_t key, map_same *same, const void *wanted);
void map_free(struct map *m);

/* Keys of longer things: one more number into a hash that began anyhow; a text. */
uint64_t map_mix(uint64_t hash, uint64_t x);
uint64_t map_text(const char *text);

/* Names by number: each once, in the order in which they came.  A struct names of zeros is empty. */
struct names {
    char **name;
    int count;
    struct map index;
};

int names_add(struct names *n, const char *name);        /* its number; a new one has the next */
int names_find(const struct names *n, const char *name); /* its number, -1: it is not there */
void names_free(struct names *n);

/* Items by a small key: those of key k are at[start[k]] .. at[start[k + 1] - 1], in their order. */
struct lists {
    int *start, *at;
};
/* Item i of n, or item[i], goes to the list of key[i]; -1: to none. */
void lists_make(struct lists *l, const int *key, const int *item, int n, int keys);
void lists_free(struct lists *l);

#endif
