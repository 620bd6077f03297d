/* verbs_api.h - libibverbs.so.1, loaded at run time: devices, ports, and reliable connected queue
 * pairs.
 *
 * Declarations of our own for <infiniband/verbs.h> of rdma-core (facts of its ABI, which has been
 * IBVERBS_1.1 since 2008 and grows at its end): members in the header's order, names without its
 * prefixes; sizes and values are checked against the real header by tests/unit/verbs_abi.c where
 * that is installed.  Numbers marked "big-endian" have the wire's byte order.  Opaque members
 * after the last public one are omitted: such structures are allocated by the library only. */
#ifndef RG_VERBS_API_H
#define RG_VERBS_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { VERBS_NAME = 64, VERBS_PATH = 256, VERBS_GRH = 40 };

enum verbs_wc_status {
    VERBS_WC_SUCCESS,
    VERBS_WC_LOCAL_LENGTH,
    VERBS_WC_LOCAL_QP_OPERATION,
    VERBS_WC_LOCAL_PROTECTION = 4,
    /* Flushed because the queue pair was in error already: look for the first failure. */
    VERBS_WC_FLUSHED,
    VERBS_WC_BAD_RESPONSE = 7,
    VERBS_WC_LOCAL_ACCESS,
    VERBS_WC_REMOTE_INVALID_REQUEST,
    VERBS_WC_REMOTE_ACCESS,
    VERBS_WC_REMOTE_OPERATION,
    VERBS_WC_RETRY_EXCEEDED,     /* no acknowledgement: path or peer is gone */
    VERBS_WC_RNR_RETRY_EXCEEDED, /* the peer is alive but posts no receives */
    VERBS_WC_REMOTE_ABORTED = 16,
    VERBS_WC_FATAL = 19,
    VERBS_WC_RESPONSE_TIMEOUT,
    VERBS_WC_GENERAL,
    VERBS_WC_STATUSES = 24
};
enum { VERBS_WC_OP_SEND, VERBS_WC_OP_WRITE, VERBS_WC_OP_READ };
enum { VERBS_WC_OP_RECV = 128, VERBS_WC_OP_RECV_WRITE_IMM };
enum { VERBS_WRITE, VERBS_WRITE_IMM, VERBS_SEND, VERBS_SEND_IMM, VERBS_READ };
enum { VERBS_RC = 2 };
enum { VERBS_SIGNALED = 2, VERBS_INLINE = 8 };
enum { VERBS_WC_WITH_IMM = 2 };
enum {
    VERBS_ACCESS_LOCAL_WRITE = 1,
    VERBS_ACCESS_REMOTE_WRITE = 2,
    VERBS_ACCESS_REMOTE_READ = 4,
    /* Only for ibv_reg_mr_iova2; other vendors' providers ignore the bit. */
    VERBS_ACCESS_RELAXED_ORDERING = 1 << 20
};
enum verbs_qp_state {
    VERBS_QP_RESET,
    VERBS_QP_INIT,
    VERBS_QP_RTR,
    VERBS_QP_RTS,
    VERBS_QP_SQD,
    VERBS_QP_SQE,
    VERBS_QP_ERROR
};
enum { /* attributes that modify_qp sets */
       VERBS_SET_STATE = 1 << 0,
       VERBS_SET_ACCESS = 1 << 3,
       VERBS_SET_PKEY_INDEX = 1 << 4,
       VERBS_SET_PORT = 1 << 5,
       VERBS_SET_AV = 1 << 7,
       VERBS_SET_PATH_MTU = 1 << 8,
       VERBS_SET_TIMEOUT = 1 << 9,
       VERBS_SET_RETRY_COUNT = 1 << 10,
       VERBS_SET_RNR_RETRY = 1 << 11,
       VERBS_SET_RQ_PSN = 1 << 12,
       VERBS_SET_MAX_READS = 1 << 13,
       VERBS_SET_MIN_RNR_TIMER = 1 << 15,
       VERBS_SET_SQ_PSN = 1 << 16,
       VERBS_SET_MAX_DEST_READS = 1 << 17,
       VERBS_SET_CAP = 1 << 19,
       VERBS_SET_DEST_QP = 1 << 20
};
enum { VERBS_MTU_256 = 1, VERBS_MTU_4096 = 5 }; /* bytes: 128 << value */
enum { VERBS_PORT_DOWN = 1, VERBS_PORT_INIT, VERBS_PORT_ARMED, VERBS_PORT_ACTIVE };
enum { VERBS_LINK_UNSPECIFIED, VERBS_LINK_INFINIBAND, VERBS_LINK_ETHERNET };
enum { VERBS_GID_IB, VERBS_GID_ROCE_V1, VERBS_GID_ROCE_V2 };
enum { VERBS_TRANSPORT_IB, VERBS_TRANSPORT_IWARP };
enum {
    VERBS_EVENT_CQ_ERROR,
    VERBS_EVENT_QP_FATAL,
    VERBS_EVENT_QP_REQUEST, /* invalid request of the peer */
    VERBS_EVENT_QP_ACCESS,  /* forbidden request of the peer */
    VERBS_EVENT_DEVICE_FATAL = 8,
    VERBS_EVENT_PORT_ERROR = 10
};

struct verbs_device { /* entry of the list; valid as long as the list or its opened hca */
    void *unused[2];
    int node_type, transport;
    char name[VERBS_NAME], dev_name[VERBS_NAME]; /* "mlx5_0", "uverbs0" */
    char dev_path[VERBS_PATH], ibdev_path[VERBS_PATH];
};

struct verbs_qp;
struct verbs_cq;
struct verbs_send_wr;
struct verbs_recv_wr;
struct verbs_wc;

struct verbs_hca { /* an opened device */
    struct verbs_device *device;
    struct {
        void *before[11];
        int (*poll_cq)(struct verbs_cq *cq, int n, struct verbs_wc *wcs);
        void *between[13];
        int (*post_send)(struct verbs_qp *qp, struct verbs_send_wr *wr, struct verbs_send_wr **bad);
        int (*post_recv)(struct verbs_qp *qp, struct verbs_recv_wr *wr, struct verbs_recv_wr **bad);
        void *after[5];
    } ops;
    int cmd_fd, async_fd, completion_vectors;
};

struct verbs_device_attr {
    char firmware[64];
    uint64_t node_guid, system_guid; /* big-endian */
    uint64_t max_mr_size, page_sizes;
    uint32_t vendor, part, hw_version;
    int max_qp, max_qp_wr;
    unsigned capabilities;
    int max_sge, max_sge_read, max_cq, max_cqe, max_mr, max_pd;
    int max_qp_reads, max_ee_reads, max_reads, max_qp_init_reads, max_ee_init_reads;
    int atomics;
    int max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethernet_qp, max_multicast_groups,
        max_multicast_qp, max_multicast_qps, max_ah, max_fmr, max_maps, max_srq, max_srq_wr,
        max_srq_sge;
    uint16_t max_pkeys;
    uint8_t ack_delay, ports;
};

struct verbs_port_attr {
    int state, max_mtu, active_mtu;
    int gids;
    uint32_t capabilities, max_message, bad_pkeys, qkey_violations;
    uint16_t pkeys, lid, sm_lid;
    uint8_t lmc, max_vl, sm_sl, subnet_timeout, init_type;
    uint8_t active_width; /* 1: 1x, 2: 4x, 4: 8x, 8: 12x, 16: 2x */
    /* Speed of a lane: 1 SDR 2.5 Gb/s, 2 DDR, 4 QDR, 8 FDR10, 16 FDR, 32 EDR, 64 HDR, 128 NDR; 0
     * for speeds that need more bits (XDR). */
    uint8_t active_speed;
    uint8_t phys_state, link_layer, flags;
    uint16_t capabilities2;
    uint32_t newer[8]; /* for future libraries; not requested */
};

union verbs_gid {
    uint8_t raw[16];
    struct {
        uint64_t prefix, interface; /* big-endian */
    };
};

struct verbs_gid_entry {
    union verbs_gid gid;
    uint32_t index, port, type, ifindex;
};

struct verbs_pd {
    struct verbs_hca *hca;
};

struct verbs_mr {
    struct verbs_hca *hca;
    struct verbs_pd *pd;
    void *at;
    size_t bytes;
    uint32_t handle, lkey, rkey;
};

struct verbs_cq {
    struct verbs_hca *hca;
};

struct verbs_qp {
    struct verbs_hca *hca;
    void *user;
    struct verbs_pd *pd;
    struct verbs_cq *send_cq, *recv_cq;
    void *srq;
    uint32_t handle, number;
    int state, type;
};

struct verbs_qp_cap {
    uint32_t send_wrs, recv_wrs, send_sges, recv_sges, inline_bytes;
};

struct verbs_qp_init {
    void *user;
    struct verbs_cq *send_cq, *recv_cq;
    void *srq;
    struct verbs_qp_cap cap;
    int type;
    int signal_all;
};

struct verbs_ah_attr {
    struct {
        union verbs_gid dgid;
        uint32_t flow_label;
        uint8_t sgid_index, hop_limit, traffic_class;
    } grh;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port;
};

struct verbs_qp_attr {
    int state, current_state, path_mtu, migration;
    uint32_t qkey, rq_psn, sq_psn, dest_qp;
    unsigned access;
    struct verbs_qp_cap cap;
    struct verbs_ah_attr ah, other_ah;
    uint16_t pkey_index, other_pkey_index;
    uint8_t drain_notify, draining, max_reads, max_dest_reads;
    uint8_t min_rnr_timer, port;
    uint8_t timeout; /* 4.096 us << value */
    uint8_t retry_count, rnr_retry /* 7: for ever */, other_port, other_timeout;
    uint32_t rate_limit;
};

struct verbs_sge {
    uint64_t at;
    uint32_t bytes, lkey;
};

struct verbs_send_wr {
    uint64_t id;
    struct verbs_send_wr *next;
    struct verbs_sge *sges;
    int n_sges, opcode;
    unsigned flags;
    uint32_t imm; /* big-endian */
    uint64_t remote;
    uint32_t rkey;
    uint32_t unused[19]; /* for atomics, datagrams, memory windows */
};

struct verbs_recv_wr {
    uint64_t id;
    struct verbs_recv_wr *next;
    struct verbs_sge *sges;
    int n_sges;
};

struct verbs_wc {
    uint64_t id;
    /* After a failure only id, status, qp and vendor_error are valid. */
    int status, opcode;
    uint32_t vendor_error, bytes;
    uint32_t imm; /* big-endian */
    uint32_t qp, src_qp;
    unsigned flags;
    uint16_t pkey_index, slid;
    uint8_t sl, dlid_path_bits;
};

/* Enhanced connection establishment: options that the providers of both ends agree on. */
struct verbs_ece {
    uint32_t vendor, options, mask;
};

struct verbs_event {
    union {
        struct verbs_cq *cq;
        struct verbs_qp *qp;
        int port;
    };
    int type;
};

/* Functions: name in the library after "ibv_" (_ibv_query_gid_ex has an entry of its own), return
 * type, parameters.  Functions that return int return 0 or an errno, except query_gid and
 * get_async_event (-1, errno); those that return a pointer: NULL, errno.  query_port fills the
 * structure as it was in 2008, up to link_layer or further: zero it before the call. */
// clang-format off
#define VERBS_NEEDED(CALL)                                                                         \
    CALL(get_device_list, struct verbs_device **, (int *n))                                        \
    CALL(free_device_list, void, (struct verbs_device **list))                                     \
    CALL(open_device, struct verbs_hca *, (struct verbs_device *device))                           \
    CALL(close_device, int, (struct verbs_hca *hca))                                               \
    CALL(query_device, int, (struct verbs_hca *hca, struct verbs_device_attr *attr))               \
    CALL(query_port, int, (struct verbs_hca *hca, uint8_t port, struct verbs_port_attr *attr))     \
    CALL(query_gid, int, (struct verbs_hca *hca, uint8_t port, int index, union verbs_gid *gid))   \
    CALL(alloc_pd, struct verbs_pd *, (struct verbs_hca *hca))                                     \
    CALL(dealloc_pd, int, (struct verbs_pd *pd))                                                   \
    CALL(reg_mr, struct verbs_mr *, (struct verbs_pd *pd, void *at, size_t bytes, int access))     \
    CALL(dereg_mr, int, (struct verbs_mr *mr))                                                     \
    CALL(create_cq, struct verbs_cq *, (struct verbs_hca *hca, int entries, void *user,            \
         void *channel, int vector))                                                               \
    CALL(destroy_cq, int, (struct verbs_cq *cq))                                                   \
    CALL(create_qp, struct verbs_qp *, (struct verbs_pd *pd, struct verbs_qp_init *init))          \
    CALL(modify_qp, int, (struct verbs_qp *qp, struct verbs_qp_attr *attr, int set))               \
    CALL(query_qp, int, (struct verbs_qp *qp, struct verbs_qp_attr *attr, int get,                 \
         struct verbs_qp_init *init))                                                              \
    CALL(destroy_qp, int, (struct verbs_qp *qp))                                                   \
    CALL(get_async_event, int, (struct verbs_hca *hca, struct verbs_event *event))                 \
    CALL(ack_async_event, void, (struct verbs_event *event))                                       \
    CALL(fork_init, int, (void))                                                                   \
    CALL(wc_status_str, const char *, (int status))                                                \
    CALL(event_type_str, const char *, (int type))
#define VERBS_OPTIONAL(CALL)                                                                       \
    CALL(reg_mr_iova2, struct verbs_mr *, (struct verbs_pd *pd, void *at, size_t bytes,            \
         uint64_t iova, unsigned access))                                                          \
    CALL(reg_dmabuf_mr, struct verbs_mr *, (struct verbs_pd *pd, uint64_t offset, size_t bytes,    \
         uint64_t iova, int fd, int access))                                                       \
    CALL(query_ece, int, (struct verbs_qp *qp, struct verbs_ece *ece))                             \
    CALL(set_ece, int, (struct verbs_qp *qp, struct verbs_ece *ece))                               \
    CALL(query_qp_data_in_order, int, (struct verbs_qp *qp, int opcode, uint32_t flags))
// clang-format on

struct verbs_api {
    void *library; /* NULL: not loaded */
#define VERBS_MEMBER(name, type, arguments) type(*name) arguments;
    VERBS_NEEDED(VERBS_MEMBER)
    VERBS_OPTIONAL(VERBS_MEMBER) /* NULL if the library is older than 1.8, 1.12, 1.10, 1.14 */
    /* size: sizeof(*entry); flags: 0.  ENODATA: the entry is empty.  NULL before 1.11. */
    int (*query_gid_ex)(struct verbs_hca *hca, uint32_t port, uint32_t index,
                        struct verbs_gid_entry *entry, uint32_t flags, size_t size);
};
extern struct verbs_api verbs;

/* Load libibverbs.so.1, or the file that RAILGAUGE_IBVERBS names, once.  EXIT_CONFIG with the
 * loader's message.  It stays loaded, because providers have threads and handlers. */
int verbs_load(struct err *err);

/* Inline functions of the header, which call through the device's table.  Return 0 or an errno;
 * poll: number of completions, or below 0. */
static inline int verbs_post_send(struct verbs_qp *qp, struct verbs_send_wr *wr)
{
    struct verbs_send_wr *bad;

    return qp->hca->ops.post_send(qp, wr, &bad);
}

static inline int verbs_post_recv(struct verbs_qp *qp, struct verbs_recv_wr *wr)
{
    struct verbs_recv_wr *bad;

    return qp->hca->ops.post_recv(qp, wr, &bad);
}

static inline int verbs_poll_cq(struct verbs_cq *cq, int n, struct verbs_wc *wcs)
{
    return cq->hca->ops.poll_cq(cq, n, wcs);
}

#endif
