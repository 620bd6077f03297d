/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/port_counters_own.h"

/* The performance management agent's counters stay at their end, InfiniBand Architecture
 * Specification vol. 1, 16.1.3.5; their widths are those of drivers/infiniband/core/sysfs.c.
 *
 * hw_counters: mlx5 (NVIDIA, "Understanding mlx5 Linux Counters and Status Parameters"; queue
 * counters have 32 bits and wrap: drivers/infiniband/hw/mlx5/counters.c), bnxt_re
 * (drivers/infiniband/hw/bnxt_re/hw_counters.c), efa (AWS, "Monitor an Elastic Fabric Adapter").
 * Packets out of sequence are what adaptive routing does; a lost one shows at its sender, as a NAK.
 * SRD of efa sends again as it spreads packets over paths: only its timeouts are trouble.
 *
 * Interfaces: rx_dropped and tx_dropped are left out, they also count what nobody listens to
 * (statistics.rst). */
const struct port_counter port_counter[PORT_COUNTERS] = {
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

    {"carrier_changes", PORT_INTERFACE, PORT_FAULT, 32, "carrier change*"},
    {"rx_crc_errors", PORT_STATISTICS, PORT_FAULT, 0, "CRC error*"},
    {"rx_errors", PORT_TOTAL, PORT_FAULT, 0, "other receive error*"},
    {"tx_carrier_errors", PORT_STATISTICS, PORT_FAULT, 0, "carrier error*"},
    {"tx_errors", PORT_TOTAL, PORT_FAULT, 0, "other send error*"},
    {"rx_missed_errors", PORT_STATISTICS, PORT_CONGESTION, 0, "packet* without a buffer"},
};
