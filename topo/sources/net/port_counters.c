/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/net/port_counters.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"

/* Directory of a counter.  PORT_TOTAL: in PORT_STATISTICS, includes the count of the row before. */
enum port_folder { PORT_PMA, PORT_HARDWARE, PORT_STATISTICS, PORT_TOTAL, PORT_INTERFACE };

struct port_counter {
    const char *file;
    enum port_folder folder;
    enum port_kind kind;
    /* Width: the counter saturates (PORT_PMA) or wraps (32) there; 0: neither. */
    int bits;
    const char *words; /* "*": an s, unless the count is 1 */
};

/* Counters of the performance management agent saturate: InfiniBand Architecture Specification
 * vol. 1, 16.1.3.5; widths from drivers/infiniband/core/sysfs.c.
 *
 * hw_counters: mlx5 (NVIDIA, "Understanding mlx5 Linux Counters and Status Parameters"; queue
 * counters have 32 bits and wrap: drivers/infiniband/hw/mlx5/counters.c), bnxt_re
 * (drivers/infiniband/hw/bnxt_re/hw_counters.c), efa (AWS, "Monitor an Elastic Fabric Adapter"),
 * soft-RoCE (drivers/infiniband/sw/rxe/rxe_hw_counters.c; the sender counts the NAK of a lost
 * packet and then sends again, as after a timeout: both are reported).  Packets out of sequence
 * are normal with adaptive routing; a lost packet shows at its sender, as a NAK.  SRD of efa
 * resends while it spreads packets over paths: only its timeouts count as trouble.
 *
 * Interfaces: rx_dropped and tx_dropped are left out, because they include packets without a
 * receiver (statistics.rst). */
static const struct port_counter port_counter[] = {
    {"link_downed", PORT_PMA, PORT_FAULT, 8, "time* the link went down"},
    {"link_error_recovery", PORT_PMA, PORT_FAULT, 8, "link retraining*"},
    {"symbol_error", PORT_PMA, PORT_FAULT, 16, "symbol error*"},
    {"port_rcv_errors", PORT_PMA, PORT_FAULT, 16, "receive error*"},
    {"port_rcv_remote_physical_errors", PORT_PMA, PORT_FAULT, 16, "packet* marked bad underway"},
    {"local_link_integrity_errors", PORT_PMA, PORT_FAULT, 4, "link integrity error*"},
    {"excessive_buffer_overrun_errors", PORT_PMA, PORT_FAULT, 4, "buffer overrun error*"},
    {"port_xmit_discards", PORT_PMA, PORT_RESENT, 16, "packet* discarded unsent"},
    {"VL15_dropped", PORT_PMA, PORT_CONGESTION, 16, "management packet* dropped"},
    {"port_xmit_wait", PORT_PMA, PORT_CONGESTION, 32, "tick* of waiting to send"},

    {"rx_icrc_encapsulated", PORT_HARDWARE, PORT_FAULT, 0, "damaged RoCE packet*"},
    {"req_transport_retries_exceeded", PORT_HARDWARE, PORT_FAULT, 32, "connection* out of retries"},
    {"local_ack_timeout_err", PORT_HARDWARE, PORT_RESENT, 32, "acknowledgement timeout*"},
    {"packet_seq_err", PORT_HARDWARE, PORT_RESENT, 32, "sequence error NAK*"},
    {"implied_nak_seq_err", PORT_HARDWARE, PORT_RESENT, 32, "implied NAK*"},
    {"rnr_nak_retry_err", PORT_HARDWARE, PORT_RESENT, 32, "receiver-not-ready NAK*"},
    {"duplicate_request", PORT_HARDWARE, PORT_RESENT, 32, "duplicate request*"},
    {"roce_adp_retrans", PORT_HARDWARE, PORT_RESENT, 32, "adaptive retransmission*"},
    {"roce_adp_retrans_to", PORT_HARDWARE, PORT_RESENT, 32, "adaptive retransmission timeout*"},
    {"out_of_sequence", PORT_HARDWARE, PORT_CONGESTION, 32, "packet* out of sequence"},
    {"roce_slow_restart", PORT_HARDWARE, PORT_CONGESTION, 32, "slow restart*"},
    {"np_cnp_sent", PORT_HARDWARE, PORT_CONGESTION, 0, "congestion notification* sent"},
    {"rp_cnp_handled", PORT_HARDWARE, PORT_CONGESTION, 0, "congestion notification* obeyed"},
    {"np_ecn_marked_roce_packets", PORT_HARDWARE, PORT_CONGESTION, 0,
     "packet* with a congestion mark"},

    {"rx_roce_errors", PORT_HARDWARE, PORT_FAULT, 0, "RoCE receive error*"},
    {"tx_roce_errors", PORT_HARDWARE, PORT_FAULT, 0, "RoCE send error*"},
    {"max_retry_exceeded", PORT_HARDWARE, PORT_FAULT, 0, "connection* out of retries"},
    {"to_retransmits", PORT_HARDWARE, PORT_RESENT, 0, "retransmission timeout*"},
    {"seq_err_naks_rcvd", PORT_HARDWARE, PORT_RESENT, 0, "sequence error NAK*"},
    {"rnr_naks_rcvd", PORT_HARDWARE, PORT_RESENT, 0, "receiver-not-ready NAK*"},
    {"missing_resp", PORT_HARDWARE, PORT_RESENT, 0, "missing response*"},
    {"dup_req", PORT_HARDWARE, PORT_RESENT, 0, "duplicate request*"},
    {"oos_drop_count", PORT_HARDWARE, PORT_CONGESTION, 0, "packet* out of sequence"},
    {"tx_cnp_pkts", PORT_HARDWARE, PORT_CONGESTION, 0, "congestion notification* sent"},
    {"rx_cnp_pkts", PORT_HARDWARE, PORT_CONGESTION, 0, "congestion notification* received"},
    {"rx_ecn_marked_pkts", PORT_HARDWARE, PORT_CONGESTION, 0, "packet* with a congestion mark"},

    {"unresponsive_remote_events", PORT_HARDWARE, PORT_FAULT, 0, "unresponsive peer*"},
    {"impaired_remote_conn_events", PORT_HARDWARE, PORT_RESENT, 0, "impaired connection*"},
    {"retrans_timeout_events", PORT_HARDWARE, PORT_RESENT, 0, "retransmission timeout*"},
    {"retrans_pkts", PORT_HARDWARE, PORT_CONGESTION, 0, "packet* sent again"},

    {"retry_exceeded_err", PORT_HARDWARE, PORT_FAULT, 0, "connection* out of retries"},
    {"retry_rnr_exceeded_err", PORT_HARDWARE, PORT_FAULT, 0,
     "connection* whose receiver was never ready"},
    {"completer_retry_err", PORT_HARDWARE, PORT_RESENT, 0, "retransmission*"},
    {"rcvd_seq_err", PORT_HARDWARE, PORT_RESENT, 0, "sequence error NAK*"},
    {"rcvd_rnr_err", PORT_HARDWARE, PORT_RESENT, 0, "receiver-not-ready NAK*"},
    {"out_of_seq_request", PORT_HARDWARE, PORT_CONGESTION, 0, "packet* out of sequence"},

    {"carrier_changes", PORT_INTERFACE, PORT_FAULT, 32, "carrier change*"},
    {"rx_crc_errors", PORT_STATISTICS, PORT_FAULT, 0, "CRC error*"},
    {"rx_errors", PORT_TOTAL, PORT_FAULT, 0, "other receive error*"},
    {"tx_carrier_errors", PORT_STATISTICS, PORT_FAULT, 0, "carrier error*"},
    {"tx_errors", PORT_TOTAL, PORT_FAULT, 0, "other send error*"},
    {"rx_missed_errors", PORT_STATISTICS, PORT_CONGESTION, 0, "packet* without a buffer"},
};
enum { PORT_COUNTERS = sizeof(port_counter) / sizeof(*port_counter) };

struct port_counters {
    char name[40];
    bool gone, gone_before;
    struct {
        int fd;               /* -1: missing */
        bool told, full;      /* ever read; saturated when it was opened */
        uint64_t now;         /* last value */
        uint64_t counted, at; /* counted since opening; its value at port_counters_begin() */
    } one[PORT_COUNTERS];
};

struct port_id port_id_of(const struct nic *n)
{
    struct port_id id = {.rdma = n->rdma};

    snprintf(id.name, sizeof(id.name), "%s", n->name);
    if (n->layer == LINK_ETHERNET) /* not IP over InfiniBand: it is not all that the port carries */
        snprintf(id.netdev, sizeof(id.netdev), "%.15s", n->rdma ? n->netdev : n->name);
    return id;
}

static char *path_of(const char *root, const struct port_id *id, const struct port_counter *c)
{
    int device = (int)strcspn(id->name, ":");
    const char *port = id->name[device] ? id->name + device + 1 : "1";

    switch (c->folder) {
    case PORT_PMA:
    case PORT_HARDWARE:
        return mem_printf("%s/sys/class/infiniband/%.*s/ports/%s/%s/%s", root, device, id->name,
                          port, c->folder == PORT_PMA ? "counters" : "hw_counters", c->file);
    case PORT_STATISTICS:
    case PORT_TOTAL:
        return mem_printf("%s/sys/class/net/%s/statistics/%s", root, id->netdev, c->file);
    case PORT_INTERFACE:
        return mem_printf("%s/sys/class/net/%s/%s", root, id->netdev, c->file);
    }
    return NULL;
}

static int open_one(const char *root, const struct port_id *id, const struct port_counter *c)
{
    bool verbs = c->folder == PORT_PMA || c->folder == PORT_HARDWARE;

    if (verbs ? !id->rdma : !id->netdev[0])
        return -1;
    char *path = path_of(root, id, c);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    return fd;
}

/* Value at which the counter saturates; 0: never. */
static uint64_t end_of(const struct port_counter *c)
{
    return c->folder == PORT_PMA ? ((uint64_t)1 << c->bits) - 1 : 0;
}

static uint64_t moved(const struct port_counter *c, uint64_t before, uint64_t now)
{
    if (now >= before)
        return now - before;
    uint64_t wrapped = now + ((uint64_t)1 << 32) - before;
    bool wraps = c->folder != PORT_PMA && c->bits == 32 && wrapped < (uint64_t)1 << 31;
    return wraps ? wrapped : now;
}

static bool read_one(int fd, uint64_t *value)
{
    char text[32];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return units_u64(value, text, NULL) == 0;
}

void port_counters_look(struct port_counters *p, bool all)
{
    bool known = false, told = false;
    uint64_t now;

    for (int i = 0; i < PORT_COUNTERS; i++) {
        if (p->one[i].fd < 0 || (port_counter[i].kind == PORT_CONGESTION && !all))
            continue;
        known = known || p->one[i].told;
        if (!read_one(p->one[i].fd, &now))
            continue;
        if (p->one[i].told)
            p->one[i].counted += moved(&port_counter[i], p->one[i].now, now);
        else
            p->one[i].full = now == end_of(&port_counter[i]) && now;
        p->one[i].now = now;
        p->one[i].told = told = true;
    }
    p->gone = known && !told;
}

struct port_counters *port_counters_open(const char *root, const struct port_id *id)
{
    struct port_counters *p = mem_calloc(1, sizeof(*p));
    int device = (int)strcspn(id->name, ":");

    if (id->rdma)
        snprintf(p->name, sizeof(p->name), "%.*s port %s", device, id->name,
                 id->name[device] ? id->name + device + 1 : "1");
    else
        snprintf(p->name, sizeof(p->name), "%s", id->name);
    for (int i = 0; i < PORT_COUNTERS; i++)
        p->one[i].fd = strchr(id->name, '/') || strchr(id->netdev, '/')
                           ? -1
                           : open_one(root, id, &port_counter[i]);
    if (!port_counters_count(p)) {
        port_counters_close(p);
        return NULL;
    }
    port_counters_look(p, true);
    return p;
}

void port_counters_close(struct port_counters *p)
{
    for (int i = 0; p && i < PORT_COUNTERS; i++)
        if (p->one[i].fd >= 0)
            close(p->one[i].fd);
    free(p);
}

const char *port_counters_name(const struct port_counters *p)
{
    return p->name;
}

int port_counters_count(const struct port_counters *p)
{
    int n = 0;

    for (int i = 0; i < PORT_COUNTERS; i++)
        n += p->one[i].fd >= 0;
    return n;
}

void port_counters_begin(struct port_counters *p)
{
    for (int i = 0; i < PORT_COUNTERS; i++)
        p->one[i].at = p->one[i].counted;
    p->gone_before = p->gone;
}

/* --- words --- */

/* Append item; "..." if there is no room. */
static void add(char *text, size_t len, const char *item)
{
    static const char more[] = ", ...";
    size_t at = strlen(text), room = len > at + sizeof(more) ? len - at - sizeof(more) : 0;

    if (at >= 3 && !strcmp(text + at - 3, "..."))
        return;
    if (strlen(item) + 2 < room)
        snprintf(text + at, len - at, "%s%s", at ? ", " : "", item);
    else
        snprintf(text + at, len - at, "%s", at ? more : more + 2);
}

static void add_count(char *text, size_t len, const struct port_counter *c, uint64_t n, bool at_end)
{
    int star = (int)strcspn(c->words, "*");
    char item[96];

    snprintf(item, sizeof(item), "%s%llu %.*s%s%s", at_end ? "at least " : "",
             (unsigned long long)n, star, c->words, n == 1 ? "" : "s", c->words + star + 1);
    add(text, len, item);
}

static uint64_t since(const struct port_counters *p, int i, bool begin)
{
    return p->one[i].counted - (begin ? p->one[i].at : 0);
}

static bool tell(const struct port_counters *p, bool congestion, bool begin, char *text, size_t len)
{
    *text = '\0';
    for (int i = 0; i < PORT_COUNTERS; i++) {
        uint64_t n = since(p, i, begin), end = end_of(&port_counter[i]);
        if ((port_counter[i].kind == PORT_CONGESTION) != congestion)
            continue;
        if (port_counter[i].folder == PORT_TOTAL)
            n -= n < since(p, i - 1, begin) ? n : since(p, i - 1, begin);
        if (n)
            add_count(text, len, &port_counter[i], n, end && p->one[i].now == end);
    }
    if (!congestion && p->gone && !(begin && p->gone_before))
        add(text, len, "no longer there");
    return *text != '\0';
}

bool port_counters_harm(const struct port_counters *p, char *text, size_t len)
{
    return tell(p, false, true, text, len);
}

bool port_counters_total(const struct port_counters *p, bool congestion, char *text, size_t len)
{
    return tell(p, congestion, false, text, len);
}

bool port_counters_full(const struct port_counters *p, char *text, size_t len)
{
    char item[64];

    *text = '\0';
    for (int i = 0; i < PORT_COUNTERS; i++) {
        uint64_t end = end_of(&port_counter[i]);
        if (port_counter[i].kind == PORT_CONGESTION || !p->one[i].full || p->one[i].now != end)
            continue;
        snprintf(item, sizeof(item), "%s is at its end, %llu", port_counter[i].file,
                 (unsigned long long)end);
        add(text, len, item);
    }
    return *text != '\0';
}
