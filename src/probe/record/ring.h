/* ring.h - the file of record.h as it is written: by any thread of the process, without locks.
 *
 * A record is found again by its key: its place and the low bits of its number, so that whoever comes
 * late to a record that was overwritten learns so.  While someone adds to a record it is pinned, and a
 * writer that meets a pinned place leaves it alone and counts its own record as dropped. */
#ifndef RING_H
#define RING_H

#include "probe/record/record.h"

/* bits 63..60: the caller's; 59..36: place in the ring; 35..0: low bits of number + 1.  Never 0. */
typedef uint64_t ring_key;

enum { RING_PLACE_BITS = 24, RING_SEQ_BITS = 36, RING_WHY = 256 };

struct ring {
    struct record_head *head; /* NULL: closed */
    struct record_comm *comm;
    struct record *record;
    uint64_t capacity;
    size_t bytes;
    char path[512];
};

struct ring_options {
    const char *dir; /* made with what lies above it */
    const char *job;
    uint64_t bytes; /* of the file, about */
    int job_rank;
    uint32_t abi, nccl_version, events;
};

/* Make the file, all its blocks allocated: 0, or -1 and why in words; no file is left then. */
int ring_open(struct ring *r, const struct ring_options *o, char why[RING_WHY]);
/* Forget it without a change to it: what a child of fork() does. */
void ring_forget(struct ring *r);

uint64_t ring_now(void); /* CLOCK_MONOTONIC, ns */

/* A place for the next record: NULL, it was dropped.  It is zero but for its word; ring_commit() makes
 * it whole. */
struct record *ring_begin(struct ring *r, ring_key *key);
void ring_commit(struct record *rec);

/* The record of a key, kept from being overwritten until ring_unpin(); NULL: it was already. */
struct record *ring_pin(struct ring *r, ring_key key);
void ring_unpin(struct record *rec);
/* ... and counted as one more channel that has begun; *started: how many these are. */
struct record *ring_pin_channel(struct ring *r, ring_key key, unsigned *started);
/* A channel has ended, its pin is still there: how many have. */
unsigned ring_stop_channel(struct record *rec);
/* The record of a key that its caller has pinned. */
struct record *ring_pinned(const struct ring *r, ring_key key);
/* The key of a record by what record.parent says, and back. */
ring_key ring_key_of(const struct ring *r, uint64_t number);
uint64_t ring_number(const struct record *rec);

/* Index of a word of NCCL; 0 for NULL, "" and when the table is full. */
uint8_t ring_name(struct ring *r, const char *word);
/* Bytes of one element of the type of that name; 0: not known. */
unsigned ring_name_size(uint8_t name);

/* An entry for a communicator, or RECORD_NO_COMM. */
unsigned ring_comm(struct ring *r);

#endif
