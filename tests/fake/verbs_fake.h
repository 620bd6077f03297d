/* verbs_fake.h - the stand-in for libibverbs: RC queue pairs between processes of one machine.
 *
 * It is named by its path ($RAILGAUGE_IBVERBS=build/fake/libverbs_fake.so.1) and not found by
 * libibverbs' name: MPI libraries would take it.  FAKE_VERBS names a text of devices (keys in
 * verbs_fake_text.c), without it there are 4 of InfiniBand, mlx5_0-3.  FAKE_VERBS_FABRIC is a file
 * that processes which can reach each other share ($FAKE_VERBS.fabric; it is made): queue pairs,
 * keys of memory, ports that went down.  Bytes are moved by the sender, process_vm_writev() and
 * process_vm_readv(), inside post_send where that can be, else by a thread.
 *
 * FAKE_VERBS_FAULT lists faults, separated by commas: KIND@WHERE[:AFTER[:MORE]]
 *   WHERE  3 (rank), 0>1 (ranks of the sender and its peer), mlx5_0, mlx5_0.2 (port), n1/mlx5_0
 *          (host of the text), *
 *   AFTER  from the n-th send request of a process there on (1), or 65536b: once so many bytes went
 *   STATUS@3:5         a completion with that status (names in verbs_fake_text.c: retry-exceeded ...)
 *   recv-STATUS@3:5    the same of the n-th receive that is filled
 *   lost@0>1:5         nothing arrives: retries are exceeded when their time is over
 *   hang@3:5           neither completes nor fails
 *   corrupt@3:5:100    byte 100 of what is sent or read is wrong
 *   down@mlx5_0:5      the port goes down, everyone hears of it
 *   gone@mlx5_0:5      the device is lost (VERBS_EVENT_DEVICE_FATAL): everything is flushed
 *   slow@mlx5_0:1:1e8  it carries so many bytes a second (counts from the start)
 *   die@3:5            the process is killed; $FAKE_VERBS.died is made just before */
#ifndef VERBS_FAKE_H
#define VERBS_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "kernels/verbs_api.h"

#define EXPORT __attribute__((visibility("default")))
#pragma GCC visibility push(hidden)

enum {
    FAKE_HCAS = 32,
    FAKE_PORTS = 2,
    FAKE_GIDS = 16,
    FAKE_HOSTS = 16,
    FAKE_QPS = 2048,
    FAKE_RECVS = 1024,
    FAKE_SGES = 4,
    FAKE_MRS = 16384
};

/* --- what there is (verbs_fake_text.c) --- */
struct fake_gid {
    char text[64]; /* an address; %h and %d are the numbers of host and device; "": empty */
    int type;      /* VERBS_GID_... */
};
struct fake_port {
    int state, layer, mtu, max_mtu, speed, width, lid, gids, pkeys;
    uint32_t max_message;
    char subnet[16];
    struct fake_gid gid[FAKE_GIDS];
};
struct fake_card {
    char name[VERBS_NAME], firmware[64];
    int ports, open_error, max_qp, max_qp_wr, max_sge, max_cqe, max_reads, max_inline;
    bool dmabuf, peermem, ece, ordered;
    int host; /* -1: every host has one */
    double max_mr, memlock, rate_Bps, latency;
    struct fake_port port[FAKE_PORTS];
};
struct fake_text {
    int cards, hosts, no_list; /* an errno of get_device_list */
    struct fake_card card[FAKE_HCAS];
    struct {
        char name[64];
        int from, to; /* ranks */
    } host[FAKE_HOSTS];
};
const struct fake_text *text_of(void);
int text_rank(void);
int text_host(void); /* of this process: an index */
/* A port, as others address it. */
struct fake_place {
    int host, card, port; /* from 1 */
};
int text_lid(struct fake_place p);
bool text_gid(struct fake_place p, int index, struct verbs_gid_entry *out); /* false: empty */
const struct fake_port *text_port(struct fake_place p);
bool text_ipv4(const union verbs_gid *gid);

/* --- faults (verbs_fake_fault.c) --- */
struct fake_harm { /* to one request */
    int status;    /* 0: none */
    bool lost, hang, down, gone;
    long corrupt; /* offset, -1: not */
};
struct fake_harm fault_of_send(struct fake_place mine, int peer_rank, size_t bytes);
int fault_of_recv(struct fake_place mine, int peer_rank); /* a status, 0: none */
double fault_rate(struct fake_place p);                   /* bytes per second, 0: without limit */
int status_by_name(const char *name, size_t n);           /* -1: no such */

/* --- what processes share (verbs_fake_fabric.c) --- */
struct shared_recv { /* posted, then filled, then polled */
    uint64_t id;
    int sges, status, opcode;
    bool bad_key;
    uint32_t bytes, imm, flags;
    struct {
        uint64_t at; /* in the owner's process */
        uint32_t bytes;
    } sge[FAKE_SGES];
};
struct shared_qp {
    pthread_mutex_t lock;
    atomic_uint number; /* 0: free */
    atomic_int pid, state, event;
    int rank;
    struct fake_place place;
    uint32_t pd, dest, rq_psn;
    unsigned access;
    int path_mtu, max_dest_reads, min_rnr_timer;
    struct verbs_ah_attr ah;
    struct verbs_gid_entry sgid;
    atomic_uint posted, filled, polled, generation;
    struct shared_recv recv[FAKE_RECVS];
};
struct shared_mr {
    atomic_uint key; /* 0: free */
    atomic_int pid;
    unsigned generation, access;
    uint32_t pd;
    uint64_t iova, at, bytes;
};
struct fabric {
    pthread_mutex_t lock;
    atomic_int ready;
    atomic_uint pds;
    atomic_int down[FAKE_HOSTS][FAKE_HCAS][FAKE_PORTS];
    atomic_int gone[FAKE_HOSTS][FAKE_HCAS];
    _Atomic uint64_t busy[FAKE_HOSTS][FAKE_HCAS][2]; /* ns; sending, receiving */
    struct shared_mr mr[FAKE_MRS];
    struct shared_qp qp[FAKE_QPS];
};
struct fabric *fabric(void);       /* aborts where it cannot be made */
struct shared_qp *fabric_qp(void); /* a new one; NULL: all are taken */
struct shared_qp *fabric_find(uint32_t number);
struct shared_mr *fabric_mr(void);
struct shared_mr *fabric_key(uint32_t key);
void fabric_lock(pthread_mutex_t *m); /* whoever held it may have been killed */
bool fabric_active(struct fake_place p);
/* When `bytes` from one port to another have passed both; seconds of fake_now(). */
double fabric_reserve(struct fake_place from, struct fake_place to, size_t bytes);
double fake_now(void);

/* --- of this process (verbs_fake.c); all of it under one lock --- */
struct hca {
    struct verbs_hca pub;
    struct verbs_device device;
    const struct fake_card *card;
    int index, tell; /* the writing end of async_fd */
    bool down[FAKE_PORTS], gone;
    struct hca *next;
};
struct pd {
    struct verbs_pd pub;
    uint32_t id;
    int users;
};
struct mr {
    struct verbs_mr pub;
    unsigned char *host; /* where the bytes are for this process */
    uint64_t iova;
    int access;
    void *map; /* of device memory */
    size_t map_bytes;
    struct shared_mr *shared;
    struct mr *next;
};
struct cqe {
    struct verbs_wc wc;
    struct qp *qp; /* NULL: of a receive */
    unsigned retires;
};
struct cq {
    struct verbs_cq pub;
    int entries, first, used, users;
    bool overrun;
    struct cqe *cqe;
};
struct send {
    struct verbs_send_wr wr;
    struct verbs_sge sge[FAKE_SGES];
    unsigned char *inlined;
    uint32_t bytes;
    double due, since; /* since when there is no way, or no receive */
    struct fake_harm harm;
};
struct qp {
    struct verbs_qp pub;
    struct verbs_qp_attr attr;
    struct verbs_qp_init init;
    struct shared_qp *shared;
    struct send *sq;
    unsigned posted, done, retired;
    struct qp *next;
};
extern pthread_mutex_t fake_lock;
extern struct hca *fake_hcas;
extern struct mr *fake_mrs;
extern struct qp *fake_qps;
static inline struct hca *hca_of(struct verbs_hca *h)
{
    return (struct hca *)h;
}
struct fake_place place_of(const struct qp *q);
void tell_event(struct hca *h, struct verbs_event e);
/* The bytes of a span of this process; NULL: key, bounds, domain or access do not allow it. */
unsigned char *mr_span(const struct verbs_pd *pd, uint32_t lkey, uint64_t at, size_t bytes,
                       int access);

/* --- requests (verbs_fake_move.c) --- */
int move_post_send(struct verbs_qp *qp, struct verbs_send_wr *wr, struct verbs_send_wr **bad);
int move_post_recv(struct verbs_qp *qp, struct verbs_recv_wr *wr, struct verbs_recv_wr **bad);
int move_poll(struct verbs_cq *cq, int n, struct verbs_wc *wcs);
void move_all(void);   /* whatever can go on does; the lock is held */
void move_start(void); /* the thread that does so, too */
void qp_fail(struct qp *q, int event);
void qp_forget(struct qp *q); /* what is queued, on its way to RESET or the end */
/* A request that is due (verbs_fake_carry.c): -1 not yet, else its status. */
int carry(struct qp *q, struct send *s);

#pragma GCC visibility pop
#endif
