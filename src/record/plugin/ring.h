/* ring.h - records of record.h in memory, from any thread of the process, without locks, and the
 * thread that copies them to the file.
 *
 * The memory is no mapping of the file: whatever happens to the file (truncated, overwritten, on a
 * full disk, on a server that is gone) never reaches the job.  Every 0.1 s the thread writes the
 * groups of records that changed, at most 2 MiB, and after a complete pass the header, whose counts
 * are those of the beginning of the pass.  It reads nothing back.
 *
 * A record is found by its key, which holds its place and the low bits of its number, so that a
 * late caller notices that the record was overwritten.  A record is pinned while a thread adds to
 * it.  A writer that finds its place pinned leaves it alone and counts its own record as
 * dropped. */
#ifndef RING_H
#define RING_H

#include "record/plugin/record.h"

/* bits 63..60: of the caller; 59..36: place in the ring; 35..0: low bits of number + 1.  Never
 * 0. */
typedef uint64_t ring_key;

enum { RING_PLACE_BITS = 24, RING_SEQ_BITS = 36, RING_WHY = 256 };
enum { RING_GROUP = 32 }; /* records that are written together */

struct ring {
    struct record_head *head; /* NULL: closed */
    struct record_comm *comm;
    struct record *record;
    uint8_t *changed; /* a group of records has changed since it was copied */
    uint64_t capacity;
    size_t bytes;
    char path[512];
};

struct ring_options {
    const char *dir; /* created with its parent directories */
    const char *job;
    uint64_t bytes; /* approximate file size */
    int job_rank;
    uint32_t abi, nccl_version, events;
};

/* Create the file (mode 0640, in a folder of mode 0750) with all blocks allocated, and start the
 * thread.  One ring a process.  Returns 0, or -1 with the reason in why; then no file is left. */
int ring_open(struct ring *r, const struct ring_options *o, char why[RING_WHY]);
/* Write everything now.  Returns errno of what is not written, ETIMEDOUT if the file system hangs for
 * 1 s, or 0. */
int ring_flush(void);
/* Forget the file without changing it, in a child of fork(). */
void ring_forget(struct ring *r);

uint64_t ring_now(void); /* CLOCK_MONOTONIC, ns */

/* Have the record of a key written again, after a change: the store must not come before it. */
static inline void ring_touch(const struct ring *r, ring_key key)
{
    uint64_t place = key >> RING_SEQ_BITS & ((1u << RING_PLACE_BITS) - 1);

    __atomic_store_n(&r->changed[place / RING_GROUP], 1, __ATOMIC_RELEASE);
}

/* Start the next record; NULL: it was dropped.  All fields except the word are zero; ring_commit()
 * completes the record. */
struct record *ring_begin(struct ring *r, ring_key *key);
void ring_commit(struct ring *r, struct record *rec, ring_key key);

/* Pin the record of a key until ring_unpin(), so that it is not overwritten; NULL: it already
 * was. */
struct record *ring_pin(struct ring *r, ring_key key);
void ring_unpin(struct ring *r, struct record *rec, ring_key key); /* with ring_touch() */
/* Pin it and count one more started channel; *started: number of started channels. */
struct record *ring_pin_channel(struct ring *r, ring_key key, unsigned *started);
/* Count a channel that ended while its pin is still held.  Returns the number of ended channels. */
unsigned ring_stop_channel(struct record *rec);
/* Record of a key that the caller has pinned. */
struct record *ring_pinned(const struct ring *r, ring_key key);
/* Convert between the key of a record and its number as in record.parent. */
ring_key ring_key_of(const struct ring *r, uint64_t number);
static inline uint64_t ring_number(const struct record *rec)
{
    return __atomic_load_n(&rec->word, __ATOMIC_RELAXED) >> 16;
}

/* Index of a word of NCCL; 0 for NULL, "" or if the table is full. */
uint8_t ring_name(struct ring *r, const char *word);
/* Bytes per element of the type with this name; 0: not known. */
unsigned ring_name_size(uint8_t name);

/* New entry for a communicator, or RECORD_NO_COMM. */
unsigned ring_comm(struct ring *r);

#endif
