/* record_file.h - a file of NCCL's records made by hand, for tests of what reads it.
 *
 *     struct record_file *f = record_file_new(capacity);
 *     int comm = record_file_comm(f, hash, rank, ranks, nodes, "dp");
 *     struct record *r = record_file_add(f, RECORD_COLL, comm, "AllReduce", "ncclFloat32");
 *     r->count = 1024; ...
 *     record_file_write(f, path);    also frees f */
#ifndef RECORD_FILE_H
#define RECORD_FILE_H

#include <stdio.h>
#include <stdlib.h>

#include "record/plugin/record.h"

struct record_file {
    struct record_head head;
    struct record_comm comm[8];
    struct record *ring;
};

static inline struct record_file *record_file_new(uint64_t capacity)
{
    struct record_file *f = calloc(1, sizeof(*f));

    f->ring = calloc(capacity, sizeof(*f->ring));
    memcpy(f->head.magic, RECORD_MAGIC, sizeof(f->head.magic));
    f->head.order = RECORD_ORDER;
    f->head.version = RECORD_VERSION;
    f->head.head_bytes = sizeof(f->head);
    f->head.comm_bytes = sizeof(*f->comm);
    f->head.record_bytes = sizeof(*f->ring);
    f->head.comm_max = 8;
    f->head.comm_at = RECORD_HEAD_BYTES;
    f->head.ring_at = f->head.comm_at + sizeof(f->comm);
    f->head.capacity = capacity;
    f->head.pid = 4711;
    f->head.abi = 5;
    f->head.nccl_version = 22809;
    f->head.wall_ns = 1790000000000000000u;
    f->head.mono_ns = 5000000000u;
    f->head.names = 1;
    f->head.job_rank = -1;
    snprintf(f->head.host, sizeof(f->head.host), "node1");
    return f;
}

static inline uint8_t record_file_name(struct record_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->head.names; i++)
        if (!strcmp(f->head.name[i], name))
            return (uint8_t)i;
    snprintf(f->head.name[f->head.names], RECORD_NAME_LEN, "%s", name);
    return (uint8_t)f->head.names++;
}

static inline int record_file_comm(struct record_file *f, uint64_t hash, int rank, int ranks,
                                   int nodes, const char *name)
{
    struct record_comm *c = &f->comm[f->head.comms];

    c->state = RECORD_COMM_OPEN;
    c->hash = hash;
    c->rank = rank;
    c->ranks = ranks;
    c->nodes = nodes;
    c->open_ns = f->head.mono_ns;
    snprintf(c->name, sizeof(c->name), "%s", name);
    return (int)f->head.comms++;
}

/* The next record, in the place of the oldest one when the ring is full; whole at once. */
static inline struct record *record_file_add(struct record_file *f, int kind, int comm,
                                             const char *op, const char *dtype)
{
    uint64_t seq = f->head.next++;
    struct record *r = &f->ring[seq % f->head.capacity];

    memset(r, 0, sizeof(*r));
    r->word = (seq + 1) << 16;
    r->kind = (uint8_t)kind;
    r->comm = (uint16_t)comm;
    r->op = record_file_name(f, op);
    r->dtype = record_file_name(f, dtype);
    r->start_ns = f->head.mono_ns + seq * 1000;
    return r;
}

static inline int record_file_write(struct record_file *f, const char *path)
{
    static const char nothing[RECORD_HEAD_BYTES];
    FILE *out = fopen(path, "w");
    bool good = out && fwrite(&f->head, sizeof(f->head), 1, out) == 1 &&
                fwrite(nothing, RECORD_HEAD_BYTES - sizeof(f->head), 1, out) == 1 &&
                fwrite(f->comm, sizeof(f->comm), 1, out) == 1 &&
                fwrite(f->ring, sizeof(*f->ring), f->head.capacity, out) == f->head.capacity;

    if (out && fclose(out))
        good = false;
    free(f->ring);
    free(f);
    return good ? 0 : -1;
}

#endif
