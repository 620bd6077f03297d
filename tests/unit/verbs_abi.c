/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the facts in verbs_api.h those of the <infiniband/verbs.h> that is installed here?  The
 * compiler decides while it builds this file; without the header there is nothing to check. */
#include <string.h>

#include "test.h"

#include "kernels/verbs_api.h"

#if defined(__has_include)
#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#endif
#endif

#ifdef INFINIBAND_VERBS_H

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
SAME(VERBS_NAME, IBV_SYSFS_NAME_MAX);
SAME(VERBS_PATH, IBV_SYSFS_PATH_MAX);
SAME(VERBS_GRH, sizeof(struct ibv_grh));
SAME(VERBS_WC_SUCCESS, IBV_WC_SUCCESS);
SAME(VERBS_WC_LOCAL_LENGTH, IBV_WC_LOC_LEN_ERR);
SAME(VERBS_WC_LOCAL_QP_OPERATION, IBV_WC_LOC_QP_OP_ERR);
SAME(VERBS_WC_LOCAL_PROTECTION, IBV_WC_LOC_PROT_ERR);
SAME(VERBS_WC_FLUSHED, IBV_WC_WR_FLUSH_ERR);
SAME(VERBS_WC_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR);
SAME(VERBS_WC_LOCAL_ACCESS, IBV_WC_LOC_ACCESS_ERR);
SAME(VERBS_WC_REMOTE_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR);
SAME(VERBS_WC_REMOTE_ACCESS, IBV_WC_REM_ACCESS_ERR);
SAME(VERBS_WC_REMOTE_OPERATION, IBV_WC_REM_OP_ERR);
SAME(VERBS_WC_RETRY_EXCEEDED, IBV_WC_RETRY_EXC_ERR);
SAME(VERBS_WC_RNR_RETRY_EXCEEDED, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(VERBS_WC_REMOTE_ABORTED, IBV_WC_REM_ABORT_ERR);
SAME(VERBS_WC_FATAL, IBV_WC_FATAL_ERR);
SAME(VERBS_WC_RESPONSE_TIMEOUT, IBV_WC_RESP_TIMEOUT_ERR);
SAME(VERBS_WC_GENERAL, IBV_WC_GENERAL_ERR);
SAME(VERBS_WC_STATUSES, IBV_WC_TM_RNDV_INCOMPLETE + 1);
SAME(VERBS_WC_OP_SEND, IBV_WC_SEND);
SAME(VERBS_WC_OP_WRITE, IBV_WC_RDMA_WRITE);
SAME(VERBS_WC_OP_READ, IBV_WC_RDMA_READ);
SAME(VERBS_WC_OP_RECV, IBV_WC_RECV);
SAME(VERBS_WC_OP_RECV_WRITE_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(VERBS_WC_WITH_IMM, IBV_WC_WITH_IMM);
SAME(VERBS_WRITE, IBV_WR_RDMA_WRITE);
SAME(VERBS_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(VERBS_SEND, IBV_WR_SEND);
SAME(VERBS_SEND_IMM, IBV_WR_SEND_WITH_IMM);
SAME(VERBS_READ, IBV_WR_RDMA_READ);
SAME(VERBS_RC, IBV_QPT_RC);
SAME(VERBS_SIGNALED, IBV_SEND_SIGNALED);
SAME(VERBS_INLINE, IBV_SEND_INLINE);
SAME(VERBS_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(VERBS_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(VERBS_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(VERBS_ACCESS_RELAXED_ORDERING, IBV_ACCESS_RELAXED_ORDERING);
SAME(VERBS_QP_RESET, IBV_QPS_RESET);
SAME(VERBS_QP_INIT, IBV_QPS_INIT);
SAME(VERBS_QP_RTR, IBV_QPS_RTR);
SAME(VERBS_QP_RTS, IBV_QPS_RTS);
SAME(VERBS_QP_SQD, IBV_QPS_SQD);
SAME(VERBS_QP_SQE, IBV_QPS_SQE);
SAME(VERBS_QP_ERROR, IBV_QPS_ERR);
SAME(VERBS_SET_STATE, IBV_QP_STATE);
SAME(VERBS_SET_ACCESS, IBV_QP_ACCESS_FLAGS);
SAME(VERBS_SET_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(VERBS_SET_PORT, IBV_QP_PORT);
SAME(VERBS_SET_AV, IBV_QP_AV);
SAME(VERBS_SET_PATH_MTU, IBV_QP_PATH_MTU);
SAME(VERBS_SET_TIMEOUT, IBV_QP_TIMEOUT);
SAME(VERBS_SET_RETRY_COUNT, IBV_QP_RETRY_CNT);
SAME(VERBS_SET_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(VERBS_SET_RQ_PSN, IBV_QP_RQ_PSN);
SAME(VERBS_SET_MAX_READS, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(VERBS_SET_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(VERBS_SET_SQ_PSN, IBV_QP_SQ_PSN);
SAME(VERBS_SET_MAX_DEST_READS, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(VERBS_SET_CAP, IBV_QP_CAP);
SAME(VERBS_SET_DEST_QP, IBV_QP_DEST_QPN);
SAME(VERBS_MTU_256, IBV_MTU_256);
SAME(VERBS_MTU_4096, IBV_MTU_4096);
SAME(VERBS_PORT_DOWN, IBV_PORT_DOWN);
SAME(VERBS_PORT_INIT, IBV_PORT_INIT);
SAME(VERBS_PORT_ARMED, IBV_PORT_ARMED);
SAME(VERBS_PORT_ACTIVE, IBV_PORT_ACTIVE);
SAME(VERBS_LINK_UNSPECIFIED, IBV_LINK_LAYER_UNSPECIFIED);
SAME(VERBS_LINK_INFINIBAND, IBV_LINK_LAYER_INFINIBAND);
SAME(VERBS_LINK_ETHERNET, IBV_LINK_LAYER_ETHERNET);
SAME(VERBS_GID_IB, IBV_GID_TYPE_IB);
SAME(VERBS_GID_ROCE_V1, IBV_GID_TYPE_ROCE_V1);
SAME(VERBS_GID_ROCE_V2, IBV_GID_TYPE_ROCE_V2);
SAME(VERBS_TRANSPORT_IB, IBV_TRANSPORT_IB);
SAME(VERBS_TRANSPORT_IWARP, IBV_TRANSPORT_IWARP);
SAME(VERBS_EVENT_CQ_ERROR, IBV_EVENT_CQ_ERR);
SAME(VERBS_EVENT_QP_REQUEST, IBV_EVENT_QP_REQ_ERR);
SAME(VERBS_EVENT_QP_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
SAME(VERBS_EVENT_QP_FATAL, IBV_EVENT_QP_FATAL);
SAME(VERBS_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
SAME(VERBS_EVENT_PORT_ERROR, IBV_EVENT_PORT_ERR);

#define PLACE(ours, member, theirs, their_member)                                                  \
    SAME(offsetof(struct ours, member), offsetof(theirs, their_member));                           \
    SAME(sizeof(((struct ours *)0)->member), sizeof(((theirs *)0)->their_member))
#define WHOLE(ours, theirs) SAME(sizeof(struct ours), sizeof(struct theirs))

WHOLE(verbs_device, ibv_device);
PLACE(verbs_device, node_type, struct ibv_device, node_type);
PLACE(verbs_device, transport, struct ibv_device, transport_type);
PLACE(verbs_device, name, struct ibv_device, name);
PLACE(verbs_device, dev_name, struct ibv_device, dev_name);
PLACE(verbs_device, dev_path, struct ibv_device, dev_path);
PLACE(verbs_device, ibdev_path, struct ibv_device, ibdev_path);

PLACE(verbs_hca, device, struct ibv_context, device);
PLACE(verbs_hca, ops, struct ibv_context, ops);
PLACE(verbs_hca, ops.poll_cq, struct ibv_context, ops.poll_cq);
PLACE(verbs_hca, ops.post_send, struct ibv_context, ops.post_send);
PLACE(verbs_hca, ops.post_recv, struct ibv_context, ops.post_recv);
PLACE(verbs_hca, cmd_fd, struct ibv_context, cmd_fd);
PLACE(verbs_hca, async_fd, struct ibv_context, async_fd);
PLACE(verbs_hca, completion_vectors, struct ibv_context, num_comp_vectors);

#define DEVICE(ours, theirs) PLACE(verbs_device_attr, ours, struct ibv_device_attr, theirs)
WHOLE(verbs_device_attr, ibv_device_attr);
DEVICE(firmware, fw_ver);
DEVICE(node_guid, node_guid);
DEVICE(system_guid, sys_image_guid);
DEVICE(max_mr_size, max_mr_size);
DEVICE(page_sizes, page_size_cap);
DEVICE(vendor, vendor_id);
DEVICE(part, vendor_part_id);
DEVICE(hw_version, hw_ver);
DEVICE(max_qp, max_qp);
DEVICE(max_qp_wr, max_qp_wr);
DEVICE(capabilities, device_cap_flags);
DEVICE(max_sge, max_sge);
DEVICE(max_sge_read, max_sge_rd);
DEVICE(max_cq, max_cq);
DEVICE(max_cqe, max_cqe);
DEVICE(max_mr, max_mr);
DEVICE(max_pd, max_pd);
DEVICE(max_qp_reads, max_qp_rd_atom);
DEVICE(max_reads, max_res_rd_atom);
DEVICE(max_qp_init_reads, max_qp_init_rd_atom);
DEVICE(atomics, atomic_cap);
DEVICE(max_mw, max_mw);
DEVICE(max_ah, max_ah);
DEVICE(max_srq_sge, max_srq_sge);
DEVICE(max_pkeys, max_pkeys);
DEVICE(ack_delay, local_ca_ack_delay);
DEVICE(ports, phys_port_cnt);

#define PORT(ours, theirs) PLACE(verbs_port_attr, ours, struct ibv_port_attr, theirs)
_Static_assert(sizeof(struct verbs_port_attr) >= sizeof(struct ibv_port_attr), "room");
PORT(state, state);
PORT(max_mtu, max_mtu);
PORT(active_mtu, active_mtu);
PORT(gids, gid_tbl_len);
PORT(capabilities, port_cap_flags);
PORT(max_message, max_msg_sz);
PORT(bad_pkeys, bad_pkey_cntr);
PORT(qkey_violations, qkey_viol_cntr);
PORT(pkeys, pkey_tbl_len);
PORT(lid, lid);
PORT(sm_lid, sm_lid);
PORT(lmc, lmc);
PORT(max_vl, max_vl_num);
PORT(sm_sl, sm_sl);
PORT(subnet_timeout, subnet_timeout);
PORT(init_type, init_type_reply);
PORT(active_width, active_width);
PORT(active_speed, active_speed);
PORT(phys_state, phys_state);
PORT(link_layer, link_layer);
PORT(flags, flags);
PORT(capabilities2, port_cap_flags2);

SAME(sizeof(union verbs_gid), sizeof(union ibv_gid));
SAME(offsetof(union verbs_gid, prefix), offsetof(union ibv_gid, global.subnet_prefix));
SAME(offsetof(union verbs_gid, interface), offsetof(union ibv_gid, global.interface_id));
WHOLE(verbs_gid_entry, ibv_gid_entry);
PLACE(verbs_gid_entry, gid, struct ibv_gid_entry, gid);
PLACE(verbs_gid_entry, index, struct ibv_gid_entry, gid_index);
PLACE(verbs_gid_entry, port, struct ibv_gid_entry, port_num);
PLACE(verbs_gid_entry, type, struct ibv_gid_entry, gid_type);
PLACE(verbs_gid_entry, ifindex, struct ibv_gid_entry, ndev_ifindex);

PLACE(verbs_pd, hca, struct ibv_pd, context);
PLACE(verbs_cq, hca, struct ibv_cq, context);
PLACE(verbs_mr, at, struct ibv_mr, addr);
PLACE(verbs_mr, bytes, struct ibv_mr, length);
PLACE(verbs_mr, handle, struct ibv_mr, handle);
PLACE(verbs_mr, lkey, struct ibv_mr, lkey);
PLACE(verbs_mr, rkey, struct ibv_mr, rkey);
PLACE(verbs_qp, hca, struct ibv_qp, context);
PLACE(verbs_qp, send_cq, struct ibv_qp, send_cq);
PLACE(verbs_qp, recv_cq, struct ibv_qp, recv_cq);
PLACE(verbs_qp, number, struct ibv_qp, qp_num);
PLACE(verbs_qp, state, struct ibv_qp, state);
PLACE(verbs_qp, type, struct ibv_qp, qp_type);

WHOLE(verbs_qp_cap, ibv_qp_cap);
PLACE(verbs_qp_cap, send_wrs, struct ibv_qp_cap, max_send_wr);
PLACE(verbs_qp_cap, recv_wrs, struct ibv_qp_cap, max_recv_wr);
PLACE(verbs_qp_cap, send_sges, struct ibv_qp_cap, max_send_sge);
PLACE(verbs_qp_cap, recv_sges, struct ibv_qp_cap, max_recv_sge);
PLACE(verbs_qp_cap, inline_bytes, struct ibv_qp_cap, max_inline_data);

WHOLE(verbs_qp_init, ibv_qp_init_attr);
PLACE(verbs_qp_init, send_cq, struct ibv_qp_init_attr, send_cq);
PLACE(verbs_qp_init, recv_cq, struct ibv_qp_init_attr, recv_cq);
PLACE(verbs_qp_init, cap, struct ibv_qp_init_attr, cap);
PLACE(verbs_qp_init, type, struct ibv_qp_init_attr, qp_type);
PLACE(verbs_qp_init, signal_all, struct ibv_qp_init_attr, sq_sig_all);

WHOLE(verbs_ah_attr, ibv_ah_attr);
PLACE(verbs_ah_attr, grh.dgid, struct ibv_ah_attr, grh.dgid);
PLACE(verbs_ah_attr, grh.flow_label, struct ibv_ah_attr, grh.flow_label);
PLACE(verbs_ah_attr, grh.sgid_index, struct ibv_ah_attr, grh.sgid_index);
PLACE(verbs_ah_attr, grh.hop_limit, struct ibv_ah_attr, grh.hop_limit);
PLACE(verbs_ah_attr, grh.traffic_class, struct ibv_ah_attr, grh.traffic_class);
PLACE(verbs_ah_attr, dlid, struct ibv_ah_attr, dlid);
PLACE(verbs_ah_attr, sl, struct ibv_ah_attr, sl);
PLACE(verbs_ah_attr, src_path_bits, struct ibv_ah_attr, src_path_bits);
PLACE(verbs_ah_attr, static_rate, struct ibv_ah_attr, static_rate);
PLACE(verbs_ah_attr, is_global, struct ibv_ah_attr, is_global);
PLACE(verbs_ah_attr, port, struct ibv_ah_attr, port_num);

#define QP(ours, theirs) PLACE(verbs_qp_attr, ours, struct ibv_qp_attr, theirs)
WHOLE(verbs_qp_attr, ibv_qp_attr);
QP(state, qp_state);
QP(current_state, cur_qp_state);
QP(path_mtu, path_mtu);
QP(migration, path_mig_state);
QP(qkey, qkey);
QP(rq_psn, rq_psn);
QP(sq_psn, sq_psn);
QP(dest_qp, dest_qp_num);
QP(access, qp_access_flags);
QP(cap, cap);
QP(ah, ah_attr);
QP(other_ah, alt_ah_attr);
QP(pkey_index, pkey_index);
QP(other_pkey_index, alt_pkey_index);
QP(drain_notify, en_sqd_async_notify);
QP(draining, sq_draining);
QP(max_reads, max_rd_atomic);
QP(max_dest_reads, max_dest_rd_atomic);
QP(min_rnr_timer, min_rnr_timer);
QP(port, port_num);
QP(timeout, timeout);
QP(retry_count, retry_cnt);
QP(rnr_retry, rnr_retry);
QP(other_port, alt_port_num);
QP(other_timeout, alt_timeout);
QP(rate_limit, rate_limit);

WHOLE(verbs_sge, ibv_sge);
PLACE(verbs_sge, at, struct ibv_sge, addr);
PLACE(verbs_sge, bytes, struct ibv_sge, length);
PLACE(verbs_sge, lkey, struct ibv_sge, lkey);

WHOLE(verbs_send_wr, ibv_send_wr);
PLACE(verbs_send_wr, id, struct ibv_send_wr, wr_id);
PLACE(verbs_send_wr, next, struct ibv_send_wr, next);
PLACE(verbs_send_wr, sges, struct ibv_send_wr, sg_list);
PLACE(verbs_send_wr, n_sges, struct ibv_send_wr, num_sge);
PLACE(verbs_send_wr, opcode, struct ibv_send_wr, opcode);
PLACE(verbs_send_wr, flags, struct ibv_send_wr, send_flags);
PLACE(verbs_send_wr, imm, struct ibv_send_wr, imm_data);
PLACE(verbs_send_wr, remote, struct ibv_send_wr, wr.rdma.remote_addr);
PLACE(verbs_send_wr, rkey, struct ibv_send_wr, wr.rdma.rkey);

WHOLE(verbs_recv_wr, ibv_recv_wr);
PLACE(verbs_recv_wr, id, struct ibv_recv_wr, wr_id);
PLACE(verbs_recv_wr, next, struct ibv_recv_wr, next);
PLACE(verbs_recv_wr, sges, struct ibv_recv_wr, sg_list);
PLACE(verbs_recv_wr, n_sges, struct ibv_recv_wr, num_sge);

WHOLE(verbs_wc, ibv_wc);
PLACE(verbs_wc, id, struct ibv_wc, wr_id);
PLACE(verbs_wc, status, struct ibv_wc, status);
PLACE(verbs_wc, opcode, struct ibv_wc, opcode);
PLACE(verbs_wc, vendor_error, struct ibv_wc, vendor_err);
PLACE(verbs_wc, bytes, struct ibv_wc, byte_len);
PLACE(verbs_wc, imm, struct ibv_wc, imm_data);
PLACE(verbs_wc, qp, struct ibv_wc, qp_num);
PLACE(verbs_wc, src_qp, struct ibv_wc, src_qp);
PLACE(verbs_wc, flags, struct ibv_wc, wc_flags);

WHOLE(verbs_ece, ibv_ece);
PLACE(verbs_ece, vendor, struct ibv_ece, vendor_id);
PLACE(verbs_ece, options, struct ibv_ece, options);
PLACE(verbs_ece, mask, struct ibv_ece, comp_mask);

WHOLE(verbs_event, ibv_async_event);
PLACE(verbs_event, port, struct ibv_async_event, element.port_num);
PLACE(verbs_event, type, struct ibv_async_event, event_type);

#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
/* One list of arguments must suit our pointer and the header's function, not the macro around it;
 * nothing is called.  ANY is a structure that both declare, which is compared above. */
#define TAKES(name, ...) SAME(sizeof(verbs.name(__VA_ARGS__)), sizeof((ibv_##name)(__VA_ARGS__)))
#define ANY ((void *)0)
#define SIZE ((size_t)1)
TAKES(get_device_list, (int *)0);
TAKES(open_device, ANY);
TAKES(close_device, ANY);
TAKES(query_device, ANY, ANY);
TAKES(query_port, ANY, 1, ANY);
TAKES(query_gid, ANY, 1, 0, ANY);
TAKES(alloc_pd, ANY);
TAKES(dealloc_pd, ANY);
TAKES(reg_mr, ANY, ANY, SIZE, 1);
TAKES(dereg_mr, ANY);
TAKES(create_cq, ANY, 1, ANY, ANY, 0);
TAKES(destroy_cq, ANY);
TAKES(create_qp, ANY, ANY);
TAKES(modify_qp, ANY, ANY, 1);
TAKES(query_qp, ANY, ANY, 1, ANY);
TAKES(destroy_qp, ANY);
TAKES(get_async_event, ANY, ANY);
TAKES(fork_init, );
TAKES(wc_status_str, 1);
TAKES(event_type_str, 1);
TAKES(reg_mr_iova2, ANY, ANY, SIZE, UINT64_C(1), 1U);
TAKES(reg_dmabuf_mr, ANY, UINT64_C(0), SIZE, UINT64_C(1), 1, 1);
TAKES(query_ece, ANY, ANY);
TAKES(set_ece, ANY, ANY);
TAKES(query_qp_data_in_order, ANY, 0, 0);
SAME(sizeof(verbs.query_gid_ex(ANY, 1, 0, ANY, 0, SIZE)),
     sizeof(_ibv_query_gid_ex(ANY, 1, 0, ANY, 0, SIZE)));

#define CHECKED 1
#else
#define CHECKED 0
#endif

TEST(our_facts_are_those_of_the_header)
{
    if (!CHECKED)
        skip(); /* no infiniband/verbs.h is installed */
}

/* The library has the symbols, each in the version whose layout we know: its words answer. */
TEST(the_library_that_is_here_has_every_call)
{
    struct err err = {0};
    int n = -1;

    if (verbs_load(&err) < 0)
        skip(); /* no libibverbs.so.1 is installed */
    assert_int_equal(verbs_load(&err), 0);
    assert_non_null(verbs.wc_status_str(VERBS_WC_RETRY_EXCEEDED));
    assert_string_not_equal(verbs.wc_status_str(VERBS_WC_RETRY_EXCEEDED),
                            verbs.wc_status_str(VERBS_WC_RNR_RETRY_EXCEEDED));
    struct verbs_device **list = verbs.get_device_list(&n);
    if (list) { /* NULL where the kernel has no RDMA */
        assert_true(n >= 0);
        assert_null(list[n]);
        verbs.free_device_list(list);
    }
}
