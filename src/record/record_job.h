/* record_job.h - communication recorded by a job, combined from all processes.
 *
 * record_load() reads the files of the plugin (record/plugin/record.h), adds the processes and their
 * activity, and finds the entries that belong to the same call:
 *
 *   process   a GPU of the job, and its clock
 *   comm      a communicator: its ranks are processes
 *   kind      kind of call: communicator, operation, size, algorithm, protocol, channels
 *   entry     part of a process in a call: own start and end
 *   call      the entries with the same number, operation and communicator
 *
 * Times are ns.  Until record_clock_align() they are of each process' own clock, afterwards of a
 * common clock.  An entry takes 32 bytes, a call 12: 10 million entries are some 400 MB.
 *
 * Example:
 *
 *     #include <stdlib.h>
 *     #include "record/import.h"
 *     #include "record/job/answers.h"
 *     const struct import_opts opts = {.op = -1};
 *     struct import im;
 *     struct record_job j;
 *     struct late late;
 *
 *     import_init(&im, &opts);
 *     record_job_init(&j);
 *     int rc = record_load(&j, "records", err);
 *     if (rc == 0) {
 *         record_clock_align(&j);
 *         float *overlap = record_points_overlap(&j);
 *         rc = record_points(&im, &j, overlap, err);  // topology, plan and points of a campaign
 *         late_find(&late, &j);                       // which ranks keep the others waiting
 *         late_free(&late);
 *         free(overlap);
 *     }
 *     record_job_free(&j);
 *     import_free(&im);
 *     return rc; */
#ifndef RG_RECORD_JOB_H
#define RG_RECORD_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/op.h"

struct import;

struct record_process {
    char *path, *host;
    int pid, device; /* device: index on its host; -1: not recorded */
    int rank;        /* rank in the job; -1: not recorded, until record_job_end() sets it */
    int64_t wall;    /* ns by which the host's real time is ahead of the recorded clock */
    bool own_clock;  /* clock of the GPU, not shared with other processes */
    long lost;       /* number of oldest records that were overwritten */
    bool ended;      /* the process closed its file */
    int first, entries;
    /* Clock of the process: own = common + offset + drift * (common - origin). */
    double offset, drift; /* s, s/s */
    double unsure; /* s, half of the 95 % interval of the offset; NAN: not connected to others */
};

struct record_team {
    uint64_t id;
    int size;
    int *member; /* process of each rank; -1: its file is missing */
    int missing; /* number of missing members */
    int axis;    /* index into record_job.axis */
};

/* Communicators that divide the job alike: the same number of ranks at the same distances, without
 * common processes; the groups of one axis of a mesh. */
struct record_axis {
    int size, stride; /* stride 0: the distances differ */
    int *comm, comms;
    bool inside; /* each communicator is on one host */
};

struct record_what {
    int comm;
    enum op op;
    int src, dst;   /* ranks of a message; -1, -1: a collective */
    uint64_t bytes; /* S as op.h counts it */
    /* indices in record_job.words, or -1; channels 0: not recorded */
    int algorithm, protocol, channels;
    int like; /* first kind that differs from this one in these three members only */
    int lane; /* index in record_job.lane: ranks and operation in which calls are numbered */
};

struct record_entry {
    int kind, call; /* call -1: none.  Before record_job_end(): number of the call */
    int64_t start, end;
    float wait; /* s that its proxies waited for others; 0: none or not recorded */
    int process;
};

struct record_call {
    int kind, first, entries; /* first: index in record_job.part */
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
    struct record_entry *entry; /* sorted by process, then by start */
    int entries;
    struct record_call *call;
    int calls;
    int *part; /* entries sorted by call, then by rank */
    struct names words, hosts;
    int64_t origin; /* ns: first start of the first process */
    long untimed;   /* records without an end time */
    long engines;   /* records of copy engines, whose end no profiler is told */
    int unlike;     /* calls whose ranks recorded different sizes or operations */
    char **said;    /* sentences about missing data */
    int saids;
    struct record_lane *lane;
    int lanes;
    struct map kind_at, lane_at, comm_at;
};

void record_job_init(struct record_job *j);
void record_job_free(struct record_job *j);

/* Add a process.  The caller may fill it in until the next call.  Entries are added to the latest
 * process. */
struct record_process *record_job_process(struct record_job *j, const char *path, const char *host);
/* Register the latest process as this rank of a communicator; *team is its index.  EXIT_DATA if
 * another process has this rank, or the communicator has another size. */
int record_job_team(int *team, struct record_job *j, uint64_t id, int size, int rank,
                    struct err *err);
/* Add an entry of the latest process.  kind->like and lane are set here; number counts the calls of
 * this operation on this communicator (messages: between these two ranks). */
void record_job_add(struct record_job *j, const struct record_what *kind, uint32_t number,
                    int64_t start, int64_t end, double wait);
__attribute__((format(printf, 2, 3))) void record_job_say(struct record_job *j, const char *fmt,
                                                          ...);
/* After the last process: find ranks, axes and calls.  EXIT_DATA if there are no usable calls. */
int record_job_end(struct record_job *j, struct err *err);

/* A call on the common clock. */
struct record_span {
    int entries;
    bool whole;           /* the part of every rank is present */
    int64_t first, last;  /* starts */
    int64_t second;       /* the second to last start; for a single rank: as last */
    int64_t end;          /* the last end */
    int latest, earliest; /* processes with the last and the first start */
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
/* True if calls of this kind end on all ranks at about the same time. */
static inline bool record_joins(const struct record_what *k)
{
    return !record_is_message(k) && !op_is_rooted(k->op) && k->op != OP_SENDRECV;
}
/* "8 ranks, 1 apart, on one host" */
char *record_axis_text(char buf[64], const struct record_axis *a);

/* For the files of this header: find the axes, once all processes are sorted by rank. */
void record_axes_make(struct record_job *j);

/* --- record load ---
 *
 * Load the directory of a job's records: every file of record/plugin/record.h in it.
 *
 * The time of a rank in a collective comes from the GPU times of the channels, if reported by NCCL
 * (interface 4 on), else from the host times.  Calls without either, and calls under way when the
 * file ends, are left out and counted.  Clocks of a host are related by its monotonic clock; a
 * GPU's timer is a separate clock.  Sends and receives that NCCL launched together become
 *
 *   all_to_all   the same number of bytes from each rank to all others
 *   sendrecv     to the next rank and from the previous rank
 *   messages     otherwise
 *
 * Errors name file and byte.  EXIT_DATA: wrong kind of file, cut short, of another version or job.
 * EXIT_NOINPUT: a directory without records. */

/* Call after record_job_init(); includes record_job_end(). */
int record_load(struct record_job *j, const char *dir, struct err *err);

/* --- record clock ---
 *
 * Put the clocks of a job's processes on one clock.
 *
 * Collectives that synchronise end on all ranks at about the same time, so the ends show how the
 * clocks differ.  With end(p, c) of process p in call c, iterated until T, offset and drift are
 * stable:
 *
 *   T(c) = median over p of (end(p, c) - offset(p) - drift(p) T(c))
 *   offset, drift of p: median of the differences, and the line through those of the first and the
 *     last third (Tukey's resistant line, 1970)
 *
 * Medians are used because a rank may end late now and then.  Processes of a host share its clock:
 * the median of the single values, if these agree within RECORD_CLOCK_HOST.  The common clock is
 * that of the first process.  A process that no collective connects to the first keeps its own
 * (unsure is NAN). */

#define RECORD_CLOCK_HOST 1e-3 /* s */

/* Call after record_job_end().  Afterwards all entries are on one clock. */
void record_clock_align(struct record_job *j);
/* Largest uncertainty of the connected processes, s; 0: there is only one process. */
double record_clock_unsure(const struct record_job *j);

/* --- record points ---
 *
 * Make a campaign (topology, plan and points) from a recorded job.
 *
 * The groups of an axis and an operation are a round; a size is a point in up to PLAN_EPOCHS
 * epochs, equal parts of its calls in order.  The time of a call is from the last rank's start to
 * the last end, so that late ranks are not charged to the network.  Each note gives the share of
 * that time in which operations of other communicators ran on the same GPUs: such points are under
 * load, and no group is alone. */

/* Call after record_clock_align().  overlap: from record_points_overlap().  The caller calls
 * import_end().  EXIT_DATA: no call is complete. */
int record_points(struct import *im, const struct record_job *j, const float *overlap,
                  struct err *err);
/* For each call the share of its time in which operations of other communicators ran on its
 * processes.  The caller frees. */
float *record_points_overlap(const struct record_job *j);
/* Time of a call, s; not positive: the clocks are not precise enough. */
static inline double record_points_seconds(const struct record_span *s)
{
    return (double)(s->end - s->last) / 1e9;
}

#endif
