/* map.h - hash table from 64-bit keys to integers, and numbered names on top of it.
 *
 * Values are usually indices into an array of the caller, which also holds the full keys.  Open
 * addressing, linear probing, at most half full; entries are never removed.  A struct map of zeros
 * is an empty map.  Lookups do not change the map, so several threads may run them. */
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

/* Callback: true if the entry with this value is wanted.  NULL: equal keys are equal entries. */
typedef bool map_same(const void *wanted, int value);

/* Address of the value of a key, valid until the next call.  A new key is added with MAP_NONE. */
int *map_at(struct map *m, uint64_t key, map_same *same, const void *wanted);
/* Value of a key; MAP_NONE if it is missing. */
int map_find(const struct map *m, uint64_t key, map_same *same, const void *wanted);
void map_free(struct map *m);

/* Keys of longer data: mix a number into a hash with any start; hash a text. */
uint64_t map_mix(uint64_t hash, uint64_t x);
uint64_t map_text(const char *text);

/* Distinct names, numbered in the order of addition.  A struct names of zeros is empty. */
struct names {
    char **name;
    int count;
    struct map index;
};

/* Number of the name; a new name gets the next number. */
int names_add(struct names *n, const char *name);
int names_find(const struct names *n, const char *name); /* number of the name; -1: missing */
void names_free(struct names *n);

/* Items grouped by a small key: key k has at[start[k]] .. at[start[k + 1] - 1], in order. */
struct lists {
    int *start, *at;
};
/* Put item i, or item[i], of n into the list of key[i]; -1: into none. */
void lists_make(struct lists *l, const int *key, const int *item, int n, int keys);
void lists_free(struct lists *l);

#endif
