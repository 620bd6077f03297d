/* nccl_log_parts.h - the reader of NCCL's log between its two files: nccl_log.c knows lines and
 * whose they are, nccl_log_facts.c what they say. */
#ifndef RG_NCCL_LOG_PARTS_H
#define RG_NCCL_LOG_PARTS_H

#include "base/map.h"
#include "topo/nccl/nccl_log.h"

enum { THREADS = 64 };

struct log {
    struct nccl_profile *p;
    struct map links, choices; /* hashes of facts that are there -> index */
    struct {
        long tid;
        int comm;
    } thread[THREADS]; /* the latest; comm -1: none is being made there */
    int threads;
    struct pointer {
        unsigned long long address;
        int comm;
    } * pointer; /* the comm 0x... of the lines, the newest last */
    int pointers;
    long tid;                               /* of the line at hand */
    const struct nccl_log_mark *mark, *now; /* now: the one that counts, NULL: none yet */
    int marks;
};

void log_fact(struct log *l, const char *text); /* what comes after "NCCL INFO " */
void log_version(struct log *l, const char *text);
void log_channel(struct log *l, const char *text); /* what comes after "Channel " */
void log_collnet(struct log *l, const char *text); /* after "CollNet " */
void log_nvls(struct log *l, const char *text);    /* after "NVLS comm " */

/* The communicator that is being made in this line's thread; set: comm -1 ends it. */
int log_thread(const struct log *l);
void log_thread_set(struct log *l, int comm);
/* The communicator that a line without a name belongs to; -1: none yet. */
int log_current(const struct log *l);
int log_comm_of_link(const struct log *l, int from, int to);                      /* -1 */
int log_comm_at(const struct log *l, unsigned long long address);                 /* -1 */
int log_comm_add(struct log *l, unsigned long long address, int rank, int ranks); /* -1: full */

#endif
