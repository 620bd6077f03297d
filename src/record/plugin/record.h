/* record.h - file in which one process of a job records its NCCL activity: written by the profiler
 * plugin (librailgauge-nccl.so), read by `railgauge import --nccl-profile`.
 *
 * A file is a header, a table of communicators and a ring of records of equal size, all in the byte
 * order of the machine that wrote it.  The ring keeps the last `capacity` records; `next` is the
 * number of records ever started.  A process has one file, DIR/HOST-PID.rgnccl, for all its ranks,
 * communicators and threads.  The records are in the process's memory; a thread copies those that
 * changed to the file ten times a second and at the end (ring.h), so a kill -9 costs the last 0.1 s.
 *
 * A record is committed by its first word:
 *
 *     bits 63..16  number of the record since the start, plus 1; 0: never written
 *     bit  15      being filled: not complete
 *     bits 14..0   children under way (channels, threads that add to it): ignored by readers
 *
 * Record n is at n % capacity; a word that belongs to another place is not a record.  The record of
 * a collective is complete when NCCL's call has begun, and grows afterwards: every later field is
 * one aligned word that is stored at once, 0 until then.  A job that hangs or dies therefore shows
 * what was under way: channels_stopped < channels, stop_ns = 0.
 *
 * Times are nanoseconds of the host's CLOCK_MONOTONIC; gpu_* are of the GPU's globaltimer.  To put
 * hosts on one axis: wall = head.wall_ns + (t - head.mono_ns). */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RECORD_MAGIC "RGNCCL\r\n"
#define RECORD_SUFFIX ".rgnccl"
#define RECORD_VERSION 1u
#define RECORD_ORDER 0x01020304u

enum {
    RECORD_HEAD_BYTES = 8192,
    RECORD_COMMS = 1024,  /* most communicators; events of others have comm RECORD_NO_COMM */
    RECORD_NAMES = 128,   /* distinct words of NCCL: operations, types, algorithms, protocols */
    RECORD_NAME_LEN = 32, /* including the final 0 */
    RECORD_NO_COMM = 0xffff
};

enum record_kind {
    RECORD_COLL = 1,      /* a collective as launched by NCCL */
    RECORD_P2P = 2,       /* a send or a receive, likewise */
    RECORD_GROUP = 3,     /* operations that NCCL launches together */
    RECORD_PROXY = 4,     /* work of the proxy thread for one channel and peer of a parent */
    RECORD_CALL = 5,      /* the application's call of a collective, send or receive (v5 on) */
    RECORD_GROUP_CALL = 6 /* from ncclGroupStart, or a single call, to its end (v5 on) */
};

enum record_flag {
    RECORD_SEND = 1,    /* PROXY: sends; otherwise it receives */
    RECORD_GRAPH = 2,   /* captured in a CUDA graph (v5 on, known for calls) */
    RECORD_CE = 4,      /* COLL done by copy engines: no kernel and no channels (v6 on) */
    RECORD_SYM = 8,     /* COLL by a symmetric kernel (v7 on) */
    RECORD_FOREIGN = 16 /* PROXY for another process, whose file has the parent */
};

struct record {
    uint64_t word; /* see above; record_seq(), record_whole() */
    uint64_t start_ns,
        stop_ns; /* NCCL's startEvent and stopEvent; for COLL and P2P the launch by the host */
    uint64_t first_ns,
        last_ns; /* host time when the first channel (proxy op) started, the last one ended */
    uint64_t gpu_start, gpu_stop; /* earliest start and latest stop of a channel (v4 on) */
    uint64_t count; /* elements in NCCL's count, which is bytes for Broadcast and AllGather */
    uint64_t bytes; /* count x size of the type; for AllGather and ReduceScatter one rank's share */
    uint64_t nccl_seq; /* NCCL's sequence number, per operation and communicator */
    uint64_t parent;   /* number of the parent's record plus 1; 0: none */
    uint64_t tag;      /* value of ncclNotifyTag() (v7); 0: none */
    int32_t peer;      /* P2P, PROXY: the other rank; COLL: the root */
    uint16_t comm;     /* index into the table of communicators, or RECORD_NO_COMM */
    uint16_t channels; /* declared by NCCL: exact from v4 on, before a maximum; 0: not declared */
    uint16_t channels_started, channels_stopped;
    uint8_t kind, flags;
    uint8_t op, dtype, algo, proto; /* index into head.name; 0: not declared */
    uint8_t warps, channel;         /* channel: for PROXY */
    /* Sums over the proxies of this record; PROXY: of itself. */
    uint32_t proxy_started, proxy_stopped, proxy_steps;
    uint64_t sent_bytes, received_bytes;
    /* Sums over steps, which overlap because NCCL keeps several steps of a proxy op in flight.  A
     * sender waits for its GPU to fill a buffer, for the receiver's credit (v4 on), and for the
     * network; a receiver for the network, for the flush, and for its GPU to empty the buffer. */
    uint64_t send_gpu_ns, send_peer_ns, send_net_ns;
    uint64_t recv_net_ns, recv_flush_ns, recv_gpu_ns;
};

enum record_comm_state { RECORD_COMM_NONE, RECORD_COMM_OPEN, RECORD_COMM_CLOSED };

struct record_comm {
    uint32_t state;             /* enum record_comm_state: stored last */
    int32_t rank, ranks, nodes; /* ranks, nodes: 0 if not declared (up to v3) */
    uint64_t hash;              /* the same on all ranks */
    uint64_t open_ns, close_ns;
    uint64_t records; /* number of COLL and P2P records */
    char name[80];    /* the application's name for it, mostly "" */
};

struct record_head {
    char magic[8]; /* RECORD_MAGIC, stored last */
    uint32_t order, version;
    uint32_t head_bytes, comm_bytes, record_bytes; /* sizes of the three structs */
    uint32_t comm_max;
    uint64_t comm_at, ring_at; /* offsets of the table and the ring */
    uint64_t capacity;         /* number of records */
    uint32_t pid, abi;         /* abi: version of the profiler interface, 1 to 7 */
    uint32_t nccl_version;     /* 22809; 0: not known */
    uint32_t events;           /* activation mask given to NCCL */
    uint64_t wall_ns,
        mono_ns;           /* CLOCK_REALTIME and CLOCK_MONOTONIC at the same moment, at the start */
    uint64_t next;         /* number of records started */
    uint64_t dropped;      /* events without a place (counted in next) or without a handle */
    uint64_t foreign;      /* children whose parent was overwritten */
    uint64_t closed_ns;    /* time when the last communicator was finalised; 0: not finalised */
    uint32_t comms, names; /* entries used; the name of index 0 is "" */
    char host[64], job[64]; /* job: SLURM_JOB_ID or similar, or "" */
    int32_t job_rank;       /* SLURM_PROCID or similar; -1: not known */
    uint32_t spare[13];
    char name[RECORD_NAMES][RECORD_NAME_LEN];
};

_Static_assert(sizeof(struct record) == 192, "a record is three cache lines");
_Static_assert(sizeof(struct record_comm) == 128, "size of a communicator in the file");
_Static_assert(offsetof(struct record, peer) == 96, "no holes");
_Static_assert(offsetof(struct record, sent_bytes) == 128,
               "the proxies' part is a line of its own");
_Static_assert(offsetof(struct record_head, name) == 312, "where the words of NCCL begin");
_Static_assert(sizeof(struct record_head) <= RECORD_HEAD_BYTES, "the header fits its place");
_Static_assert(sizeof(struct record_head) % 8 == 0, "the header is copied word by word");

static inline uint64_t record_seq(const struct record *r)
{
    return (r->word >> 16) - 1;
}

/* True if `place` of the ring holds a complete record that belongs there. */
static inline bool record_whole(const struct record *r, uint64_t place, uint64_t capacity)
{
    return r->word >> 16 && !(r->word & 0x8000) && record_seq(r) % capacity == place;
}

static inline const struct record *record_at(const struct record_head *h, uint64_t seq)
{
    const void *ring = (const char *)h + h->ring_at;

    return (const struct record *)ring + seq % h->capacity;
}

static inline const struct record_comm *record_comm_at(const struct record_head *h, uint32_t i)
{
    const void *comms = (const char *)h + h->comm_at;

    return (const struct record_comm *)comms + i;
}

/* NULL if the first `bytes` of a file are a valid and complete header; else the reason. */
static inline const char *record_wrong(const void *file, uint64_t bytes)
{
    const struct record_head *h = file;

    if (bytes < RECORD_HEAD_BYTES)
        return "too short for a header";
    if (memcmp(h->magic, RECORD_MAGIC, sizeof(h->magic)))
        return "no record of NCCL (magic)";
    if (h->order != RECORD_ORDER)
        return "written by a machine of another byte order";
    if (h->version != RECORD_VERSION || h->head_bytes != sizeof(*h) ||
        h->comm_bytes != sizeof(struct record_comm) || h->record_bytes != sizeof(struct record))
        return "of another version of the format";
    if (h->comm_max > RECORD_COMMS || h->comms > h->comm_max || h->names > RECORD_NAMES ||
        !h->names)
        return "its tables are damaged";
    if (h->comm_at < sizeof(*h) || h->comm_at % 64 || h->ring_at % 64 || h->comm_at > bytes ||
        h->ring_at < h->comm_at + (uint64_t)h->comm_max * sizeof(struct record_comm))
        return "its tables lie outside the file";
    if (!h->capacity || h->ring_at > bytes ||
        h->capacity > (bytes - h->ring_at) / sizeof(struct record))
        return "its ring is cut short";
    return NULL;
}

/* Word of NCCL at this index; "" if it was not declared or the index is invalid. */
static inline const char *record_name(const struct record_head *h, unsigned index)
{
    return index < h->names && index < RECORD_NAMES && memchr(h->name[index], 0, RECORD_NAME_LEN)
               ? h->name[index]
               : "";
}

#endif
