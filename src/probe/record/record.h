/* record.h - the file in which one process of a job keeps what NCCL did: written by the profiler plugin
 * (librailgauge-nccl.so), read by `railgauge import --nccl-profile`.
 *
 * A file is a header, a table of communicators and a ring of records of one size, all in the byte order
 * of the machine that wrote it.  The ring keeps the last `capacity` records; `next` says how many there
 * ever were.  A process has one file, DIR/HOST-PID.rgnccl, however many ranks, communicators and threads
 * it has.  It is a shared mapping: what was stored is there after a kill -9, with no call of ours.
 *
 * A record commits itself by its first word:
 *
 *     bits 63..16  number of the record since the start, plus 1; 0: never written
 *     bit  15      it is being filled: not whole
 *     bits 14..0   children under way (channels, threads that add to it): of no account to a reader
 *
 * Record n lies at n % capacity; a word that says another place is no record.  A collective's record is
 * whole when NCCL's call has begun and grows afterwards: every later field is one aligned word that is
 * stored at once, 0 until then.  So a job that hangs or dies shows what was under way: channels_stopped
 * < channels, stop_ns = 0.
 *
 * Times are nanoseconds of the host's CLOCK_MONOTONIC, but gpu_*: of the GPU's globaltimer.  To put hosts
 * on one axis: wall = head.wall_ns + (t - head.mono_ns). */
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
    RECORD_COMMS = 1024,  /* that a process makes; events of later ones have comm RECORD_NO_COMM */
    RECORD_NAMES = 128,   /* different words of NCCL: operations, types, algorithms, protocols */
    RECORD_NAME_LEN = 32, /* with the 0 */
    RECORD_NO_COMM = 0xffff
};

enum record_kind {
    RECORD_COLL = 1,      /* a collective as NCCL launches it */
    RECORD_P2P = 2,       /* a send or a receive, likewise */
    RECORD_GROUP = 3,     /* what NCCL launches together */
    RECORD_PROXY = 4,     /* what the proxy thread does for one channel and peer of a parent */
    RECORD_CALL = 5,      /* the application's call of a collective or send or receive (v5 on) */
    RECORD_GROUP_CALL = 6 /* ... from ncclGroupStart, or a call alone, to its end (v5 on) */
};

enum record_flag {
    RECORD_SEND = 1,    /* PROXY: it sends; otherwise it receives */
    RECORD_GRAPH = 2,   /* captured in a CUDA graph (v5 on, known of calls) */
    RECORD_CE = 4,      /* COLL done by copy engines: no kernel and no channels (v6 on) */
    RECORD_SYM = 8,     /* COLL of a symmetric kernel (v7 on) */
    RECORD_FOREIGN = 16 /* PROXY on behalf of another process: the parent is in its file */
};

struct record {
    uint64_t word; /* see above; record_seq(), record_whole() */
    uint64_t start_ns,
        stop_ns; /* NCCL's startEvent and stopEvent: of COLL and P2P the launch by the host */
    uint64_t first_ns,
        last_ns; /* when the host saw the first channel (proxy op) begin, the last end */
    uint64_t gpu_start, gpu_stop; /* earliest start and latest stop of a channel (v4 on) */
    uint64_t count; /* elements as NCCL counts them: NCCL turns Broadcast and AllGather to bytes */
    uint64_t bytes; /* count x size of the type; of AllGather and ReduceScatter: one rank's share */
    uint64_t nccl_seq; /* NCCL's number of the collective of its operation and communicator */
    uint64_t parent;   /* number of the parent's record plus 1; 0: none */
    uint64_t tag;      /* what ncclNotifyTag() said (v7), 0: nothing */
    int32_t peer;      /* P2P, PROXY: the other rank; COLL: the root */
    uint16_t comm;     /* index into the table of communicators, or RECORD_NO_COMM */
    uint16_t channels; /* that NCCL said: to v4 on exactly, before at most; 0: not said */
    uint16_t channels_started, channels_stopped;
    uint8_t kind, flags;
    uint8_t op, dtype, algo, proto; /* index into head.name; 0: not said */
    uint8_t warps, channel;         /* channel: of PROXY */
    /* What proxies did for it; PROXY: for itself. */
    uint32_t proxy_started, proxy_stopped, proxy_steps;
    uint64_t sent_bytes, received_bytes;
    /* Sums over steps, which overlap: NCCL keeps several of a proxy op in flight.  A sender waits for its
     * GPU to fill a buffer, for the receiver's credit (v4 on), for the network; a receiver for the
     * network, for the flush, for its GPU to empty the buffer. */
    uint64_t send_gpu_ns, send_peer_ns, send_net_ns;
    uint64_t recv_net_ns, recv_flush_ns, recv_gpu_ns;
};

enum record_comm_state { RECORD_COMM_NONE, RECORD_COMM_OPEN, RECORD_COMM_CLOSED };

struct record_comm {
    uint32_t state;             /* enum record_comm_state: the last word stored */
    int32_t rank, ranks, nodes; /* ranks, nodes: 0, not said (to v3) */
    uint64_t hash;              /* the same on all ranks */
    uint64_t open_ns, close_ns;
    uint64_t records; /* of COLL and P2P */
    char name[80];    /* what the application called it, mostly "" */
};

struct record_head {
    char magic[8]; /* RECORD_MAGIC, stored last */
    uint32_t order, version;
    uint32_t head_bytes, comm_bytes, record_bytes; /* sizes of the three structs */
    uint32_t comm_max;
    uint64_t comm_at, ring_at; /* where the table and the ring begin */
    uint64_t capacity;         /* records */
    uint32_t pid, abi;         /* abi: version of the profiler interface, 1 to 7 */
    uint32_t nccl_version;     /* 22809; 0: not known */
    uint32_t events;           /* the activation mask given to NCCL */
    uint64_t wall_ns,
        mono_ns;   /* CLOCK_REALTIME and CLOCK_MONOTONIC of the same moment, at the start */
    uint64_t next; /* records begun so far */
    uint64_t
        dropped; /* events for which there was no place or no handle: their `next` was counted */
    uint64_t foreign;       /* children whose parent was overwritten */
    uint64_t closed_ns;     /* the last communicator was finalised; 0: it was not */
    uint32_t comms, names;  /* entries used; the name of index 0 is "" */
    char host[64], job[64]; /* job: SLURM_JOB_ID and the like, or "" */
    int32_t job_rank;       /* SLURM_PROCID and the like; -1: not known */
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

static inline uint64_t record_seq(const struct record *r)
{
    return (r->word >> 16) - 1;
}

/* Is what lies at `place` of the ring a whole record that belongs there? */
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

/* NULL: the first `bytes` of a file are one of ours, and all of it is there.  Else what is wrong. */
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

/* The word of NCCL; "" when it was not said or the index is none. */
static inline const char *record_name(const struct record_head *h, unsigned index)
{
    return index < h->names && index < RECORD_NAMES && memchr(h->name[index], 0, RECORD_NAME_LEN)
               ? h->name[index]
               : "";
}

#endif
