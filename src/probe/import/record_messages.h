/* record_messages.h - sends and receives of one rank, as what the application meant by them.
 *
 * NCCL knows no all_to_all before 2.28 and makes one of sends and receives even then: those of one
 * communicator that were launched together (one parent, or before the launch of any of them was over) are an all_to_all where as many bytes go to each other
 * rank and come from it, a sendrecv where one goes to the next rank and one comes from the rank
 * before, else messages.  NCCL numbers none of them; they are numbered in their order, from the end
 * where files of the job have lost their beginnings. */
#ifndef RG_RECORD_MESSAGES_H
#define RG_RECORD_MESSAGES_H

#include "probe/import/record_job.h"

/* A record before it is an entry. */
struct record_raw {
    struct record_what what; /* comm -1: another one stands for it */
    uint32_t number;
    uint64_t start, end; /* ns, of the GPU's timer or the host's clock */
    bool gpu;
    double wait;
};

struct record_messages {
    struct record_message *message;
    int count;
    struct map call_at; /* calls by their number: index into parent */
    uint64_t *parent;
    int parents;
};

/* raw[at] is this rank's, `me`, to or from peer; group: the parent, as in struct record. */
struct record_message {
    int team, me, peer, at;
    bool send;
    uint64_t number, group, from, to; /* the host launched it from .. to, ns */
};
void record_messages_add(struct record_messages *m, struct record_message message);
/* The application's call of this number has this parent. */
void record_messages_call(struct record_messages *m, uint64_t number, uint64_t parent);
/* After the last of them. */
void record_messages_end(struct record_messages *m, const struct record_job *j,
                         struct record_raw *raw, bool from_end);
void record_messages_free(struct record_messages *m);

#endif
