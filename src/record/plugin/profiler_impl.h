/* profiler_impl.h - internals of the plugin: profiler.c (functions that NCCL calls; the file,
 * communicators), profiler_task.c (descriptors of seven versions in one form), profiler_event.c
 * (start, change and end of events).
 *
 * A handle is not a pointer but a number: the kind of event and the key of a record in the ring.
 * Therefore nothing is allocated, and a late or repeated call cannot touch freed memory. */
#ifndef PROFILER_IMPL_H
#define PROFILER_IMPL_H

#include <pthread.h>

#include "record/plugin/profiler_abi.h"
#include "record/plugin/ring.h"

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)

/* The four bits of a ring_key that belong to the plugin. */
enum handle_kind {
    H_RECORD = 1, /* a record that ends with the event */
    H_CHANNEL,    /* a channel of a record, which is pinned until the channel stops */
    H_PROXY,      /* a record of a proxy op, pinned in the same way */
    H_STEP,       /* a step of a proxy op: an index into me.step[] */
    H_NOTHING     /* not recorded; NCCL needs a parent that is not NULL */
};

#define HANDLE(kind, key) ((void *)(uintptr_t)((uint64_t)(kind) << 60 | (key)))
#define KIND(handle) ((int)((uintptr_t)(handle) >> 60))
#define KEY(handle) ((uint64_t)(uintptr_t)(handle) & ((1ull << 60) - 1))

struct step {      /* step of a proxy op that is under way */
    uint32_t turn; /* odd: in use */
    uint16_t state;
    uint64_t since;
    ring_key op;
};
enum { STEPS = 4096, STEP_TRIES = 16 };

extern struct profiler {
    struct ring ring;
    pthread_mutex_t lock; /* protects init and finalize */
    uint32_t turn;        /* number of forks: contexts of the parent process are invalid here */
    uint32_t pid, mask;
    int open;    /* number of open communicators */
    bool failed; /* reported once; not tried again */
    prof_log log;
    uint32_t next_step;
    struct step step[STEPS];
} me;

/* A context holds the turn and the index of a communicator plus 1. */
#define CONTEXT(i) ((void *)(uintptr_t)((uint64_t)me.turn << 32 | ((i) + 1)))

static inline unsigned context_comm(const void *context)
{
    return ((uint32_t)(uintptr_t)context - 1) & 0xffff;
}

static inline struct record_comm *comm_of(unsigned i)
{
    return i < RECORD_COMMS ? &me.ring.comm[i] : NULL;
}

/* --- tasks: a collective, a send or receive, a group, or the application's call --- */
struct task {
    int kind, flags; /* enum record_kind, enum record_flag */
    uint8_t op, dtype, algo, proto, warps;
    uint64_t count, seq, tag, hash; /* hash: up to v3 */
    const char *comm_name;          /* up to v3 */
    int peer;
    unsigned channels;
    const void *parent, *group; /* handles of parents; the first one that is recorded counts */
};

/* Read a descriptor of this version; false: not a task. */
bool task_read(struct ring *r, int abi, uint64_t type, const struct prof_descr *d, struct task *t);

/* --- events; results are handles or NULL, keys come from handles --- */
void *event_start_task(unsigned comm, const struct task *t);
void event_stop_task(ring_key key);
void *event_start_channel(const struct prof_descr *d, bool timed); /* timed: v4 on */
void event_stop_channel(ring_key key, uint64_t timer);
void *event_start_proxy(unsigned comm, const struct prof_descr *d);
void event_record_proxy(ring_key key, int state, const union prof_state_args *args); /* up to v3 */
void event_stop_proxy(ring_key key);
void *event_start_step(const struct prof_descr *d);
void event_record_step(uint64_t key, int state, uint64_t bytes);
void event_stop_step(uint64_t key);
void event_forget(void); /* drop all steps, after fork() */

#endif
