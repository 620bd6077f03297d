/* record_job.h - what a job recorded of its own communication, put together from all its processes.
 *
 * A reader of files (record_load.c) says who there is and what each process did; record_job_end()
 * then finds which entries of the processes are one call:
 *
 *   process   one GPU of the job, and its clock
 *   comm      a communicator: its ranks are processes
 *   kind      what was called: communicator, operation, size, algorithm, protocol, channels
 *   entry     one process' part in a call: its own start and end
 *   call      the entries with one number of one operation of one communicator
 *
 * Times are ns.  Until record_clock_align() they are each process' own clock, afterwards those of
 * one clock.  An entry is 32 bytes, a call 12: 10 million entries are some 400 MB. */
#ifndef RG_RECORD_JOB_H
#define RG_RECORD_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/op.h"

struct record_process {
    char *path, *host;
    int pid, device; /* device: index on its host, -1: not recorded */
    int rank;        /* in the job; -1: not recorded, until record_job_end() finds one */
    int64_t wall;    /* ns that its host's real time is ahead of the clock that was recorded */
    bool own_clock;  /* the GPU's, which no other process has */
    long lost;       /* oldest records that were overwritten */
    bool ended;      /* the process closed its file */
    int first, entries;
    /* Its clock: own = common + offset + drift * (common - origin). */
    double offset, drift; /* s, s/s */
    double unsure; /* s, half of the 95 % interval of the offset; NAN: not joined to others */
};

struct record_team {
    uint64_t id;
    int size;
    int *member; /* process of each rank; -1: no file of it is there */
    int missing; /* of them */
    int axis;    /* index into record_job.axis */
};

/* Communicators that cut the job alike: as many ranks at the same distances, and no process in two
 * of them; the groups of one axis of a mesh. */
struct record_axis {
    int size, stride; /* stride 0: the distances differ */
    int *comm, comms;
    bool inside; /* each of them lies on one host */
};

struct record_what {
    int comm;
    enum op op;
    int src, dst;                      /* ranks of a message; -1, -1: a collective */
    uint64_t bytes;                    /* S as op.h counts it */
    int algorithm, protocol, channels; /* names in record_job.words, -1; 0: not recorded */
    int like;                          /* the first kind that differs in these three at most */
    int lane;
};

struct record_entry {
    int kind, call; /* call -1: in none.  Before record_job_end(): its number */
    int64_t start, end;
    float wait; /* s that its proxies waited for others; 0: none or not recorded */
    int process;
};

struct record_call {
    int kind, first, entries; /* in record_job.part */
};

struct record_job {
    struct record_process *process;
    int processes;
    struct record_team *team;
    int teams;
    struct record_axis *axis;
    int axes;
    struct record_what *kind;
    int kinds;
    struct record_entry *entry; /* process by process, each by start */
    int entries;
    struct record_call *call;
    int calls;
    int *part; /* entries, call by call, each by rank */
    struct names words, hosts;
    int64_t origin; /* ns: the first process' first start */
    long untimed;   /* records that do not tell when the call ended */
    int unlike;     /* calls whose ranks recorded different sizes or operations */
    char **said;    /* sentences on what is not there */
    int saids;
    struct record_lane *lane;
    int lanes;
    struct map kind_at, lane_at, comm_at;
};

void record_job_init(struct record_job *j);
void record_job_free(struct record_job *j);

/* The next process; what it is may be filled in until the next call.  Entries that are added belong to
 * the latest. */
struct record_process *record_job_process(struct record_job *j, const char *path, const char *host);
/* The latest process is this rank of that communicator; its index.  EXIT_DATA: another process is, or
 * the communicator has another size. */
int record_job_team(int *team, struct record_job *j, uint64_t id, int size, int rank,
                    struct err *err);
/* One entry of the latest process; kind->like and lane are found here, number is the how manieth call of this
 * operation on this communicator (of a message: between these two) it is. */
void record_job_add(struct record_job *j, const struct record_what *kind, uint32_t number,
                    int64_t start, int64_t end, double wait);
__attribute__((format(printf, 2, 3))) void record_job_say(struct record_job *j, const char *fmt,
                                                          ...);
/* After the last process: ranks, axes and calls.  EXIT_DATA: there are no calls to speak of. */
int record_job_end(struct record_job *j, struct err *err);

/* One call on one clock. */
struct record_span {
    int entries;
    bool whole;           /* every rank's part is there */
    int64_t first, last;  /* starts */
    int64_t second;       /* the last start but one; of one rank: as last */
    int64_t end;          /* the last one */
    int latest, earliest; /* processes */
};
void record_call_span(struct record_span *s, const struct record_job *j, int call);
static inline const struct record_entry *record_call_entry(const struct record_job *j, int call,
                                                           int i)
{
    return &j->entry[j->part[j->call[call].first + i]];
}
static inline bool record_is_message(const struct record_what *k)
{
    return k->src >= 0;
}
/* Does a call of this kind end on all ranks at about the same time? */
static inline bool record_joins(const struct record_what *k)
{
    return !record_is_message(k) && !op_is_rooted(k->op) && k->op != OP_SENDRECV;
}
/* "8 ranks, 1 apart, on one host" */
char *record_axis_text(char buf[64], const struct record_axis *a);

#endif
