/* record_messages_impl.h - recognise operations in the sends and receives of a rank.
 *
 * NCCL has no all_to_all before 2.28, and later ones consist of sends and receives, too.  Messages
 * of a communicator that were launched together (with the same parent, or each before the launch of
 * any other was over) are an all_to_all if the same number of bytes goes to and comes from every
 * other rank; a sendrecv if a message goes to the next rank and another comes from the previous
 * rank; else messages.  NCCL does not number messages.  Here they are numbered in order, from the
 * end if files of the job have lost the beginning. */
#ifndef RG_RECORD_MESSAGES_H
#define RG_RECORD_MESSAGES_H

#include "record/record_job.h"

/* A record before it becomes an entry. */
struct record_raw {
    struct record_what what; /* comm -1: merged into another record */
    uint32_t number;
    uint64_t start, end; /* ns, of the GPU's timer or the host's clock */
    bool gpu;
    double wait;
};

struct record_messages {
    struct record_message *message;
    int count;
    struct map call_at; /* index into parent, by number of the call */
    uint64_t *parent;
    int parents;
};

/* raw[at] is a message of this rank, `me`, to or from peer; group: parent as in struct record. */
struct record_message {
    int team, me, peer, at;
    bool send;
    uint64_t number, group, from, to; /* from, to: launch by the host, ns */
};
void record_messages_add(struct record_messages *m, struct record_message message);
/* Note the parent of the application's call of this number. */
void record_messages_call(struct record_messages *m, uint64_t number, uint64_t parent);
/* Call after the last message. */
void record_messages_end(struct record_messages *m, const struct record_job *j,
                         struct record_raw *raw, bool from_end);
void record_messages_free(struct record_messages *m);

#endif
