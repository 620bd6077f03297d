/* record_ring.h - one file of probe/record/record.h, open and checked: header and table of
 * communicators are in memory, the ring is read piece by piece. */
#ifndef RG_RECORD_RING_H
#define RG_RECORD_RING_H

#include "base/err.h"
#include "probe/record/record.h"

struct record_ring {
    const char *path;
    int fd;
    uint64_t bytes;
    union {
        struct record_head head;
        char text[RECORD_HEAD_BYTES];
    };
    struct record_comm *comm;
    int *slot; /* of each communicator: which of the file's ranks it is of */
    int *team; /* and its index in the job, -1: none */
    int slots;
};

/* EXIT_NOINPUT, or EXIT_DATA: no such file, cut short, of another version.  record_ring_close() also
 * after an error.  path is kept. */
int record_ring_open(struct record_ring *f, const char *path, struct err *err);
int record_ring_read(const struct record_ring *f, void *to, size_t bytes, uint64_t at,
                     struct err *err);
void record_ring_close(struct record_ring *f);

#endif
