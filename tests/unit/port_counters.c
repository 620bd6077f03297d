/* SPDX-License-Identifier: BSD-3-Clause */
/* port_counters.c - a made /sys whose counters move, wrap, stay at their end, are reset and vanish.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

#include "base/mem.h"
#include "spawn.h"
#include "topo/nic.h"
#include "topo/sources/net/port_counters.h"

#define IB "/sys/class/infiniband/mlx5_2/ports/1/"
#define IB2 "/sys/class/infiniband/mlx5_2/ports/2/"
#define NET "/sys/class/net/ens7np0/"

static char root[64];

/* The file in place, as the kernel's is: who has it open reads the new text. */
static void put(const char *path, const char *text)
{
    char *full = mem_printf("%s%s", root, path);

    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(full);
}

static int make_tree(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/railgauge-counters-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    put(IB "counters/symbol_error", "100\n");
    put(IB "counters/link_error_recovery", "254\n");
    put(IB "counters/local_link_integrity_errors", "15\n");
    put(IB "counters/port_xmit_wait", "7\n");
    put(IB "counters/port_xmit_data", "123456789\n"); /* no trouble, and not in the table */
    put(IB "hw_counters/packet_seq_err", "4294967290\n");
    put(IB "hw_counters/np_cnp_sent", "0\n");
    put(IB2 "counters/symbol_error", "0\n");
    put(NET "carrier_changes", "3\n");
    put(NET "statistics/rx_crc_errors", "0\n");
    put(NET "statistics/rx_errors", "5\n");
    put(NET "statistics/rx_dropped", "5\n");
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    spawn((const char *[]){"rm", "-r", root, NULL});
    return 0;
}

static struct port_counters *infiniband(const char *name)
{
    struct nic n = {.layer = LINK_INFINIBAND, .rdma = true, .netdev = "ib2"};

    snprintf(n.name, sizeof(n.name), "%s", name);
    struct port_id id = port_id_of(&n);
    return port_counters_open(root, &id);
}

static const char *harm(struct port_counters *p)
{
    static char text[256];

    port_counters_look(p, false);
    bool any = port_counters_harm(p, text, sizeof(text));
    assert_int_equal(any, *text != '\0');
    return text;
}

TEST_WITH(what_moves_between_two_looks_is_said, make_tree, remove_tree)
{
    struct port_counters *p = infiniband("mlx5_2");

    assert_string_equal(port_counters_name(p), "mlx5_2 port 1");
    assert_int_equal(port_counters_count(p), 6);
    port_counters_begin(p);
    assert_string_equal(harm(p), "");
    put(IB "counters/symbol_error", "112\n");
    assert_string_equal(harm(p), "12 symbol errors");
    put(IB "counters/symbol_error", "113\n");
    put(IB "counters/port_xmit_data", "987654321\n");
    assert_string_equal(harm(p), "13 symbol errors"); /* since begin, not since the last look */
    port_counters_begin(p);
    assert_string_equal(harm(p), "");
    put(IB "counters/symbol_error", "114\n");
    assert_string_equal(harm(p), "1 symbol error");
    port_counters_close(p);
}

/* As a kernel 6.1 has them (tests/verbs); 81 and 79 are what 2 % of loss made of 200 writes. */
TEST_WITH(soft_roce_has_names_of_its_own, make_tree, remove_tree)
{
    static const char *const names[] = {
        "ack_deferred",       "completer_retry_err", "duplicate_request", "link_downed",
        "out_of_seq_request", "rcvd_pkts",           "rcvd_rnr_err",      "rcvd_seq_err",
        "rdma_sends",         "retry_exceeded_err",  "send_rnr_err",      "sent_pkts"};
    struct nic n = {.name = "rxe0", .layer = LINK_ETHERNET, .rdma = true, .netdev = "nic0"};
    struct port_id id = port_id_of(&n);
    char text[256];

#define RXE "/sys/class/infiniband/rxe0/ports/1/hw_counters/"
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(text, sizeof(text), RXE "%s", names[i]);
        put(text, "0\n");
    }
    struct port_counters *p = port_counters_open(root, &id);
    port_counters_begin(p);
    put(RXE "sent_pkts", "9300\n");
    put(RXE "out_of_seq_request", "79\n");
    assert_string_equal(harm(p), "");
    put(RXE "completer_retry_err", "81\n");
    put(RXE "rcvd_seq_err", "73\n");
    assert_string_equal(harm(p), "81 retransmissions, 73 sequence error NAKs");
    put(RXE "retry_exceeded_err", "1\n");
    assert_string_equal(harm(p), "1 connection out of retries, 81 retransmissions, "
                                 "73 sequence error NAKs");
    port_counters_look(p, true);
    assert_true(port_counters_total(p, true, text, sizeof(text)));
    assert_string_equal(text, "79 packets out of sequence");
    port_counters_close(p);
}

TEST_WITH(congestion_is_no_harm_and_counted_over_all, make_tree, remove_tree)
{
    struct port_counters *p = infiniband("mlx5_2");
    char text[256];

    port_counters_begin(p);
    put(IB "hw_counters/np_cnp_sent", "40\n");
    put(IB "counters/port_xmit_wait", "8\n");
    assert_string_equal(harm(p), "");
    assert_false(port_counters_total(p, true, text, sizeof(text))); /* not looked at yet */
    port_counters_look(p, true);
    assert_true(port_counters_total(p, true, text, sizeof(text)));
    assert_string_equal(text, "1 tick of waiting to send, 40 congestion notifications sent");
    assert_false(port_counters_total(p, false, text, sizeof(text)));
    assert_string_equal(text, "");
    port_counters_close(p);
}

TEST_WITH(a_counter_of_32_bits_wraps_and_one_that_is_reset_starts_anew, make_tree, remove_tree)
{
    struct port_counters *p = infiniband("mlx5_2");
    char text[256];

    port_counters_begin(p);
    put(IB "hw_counters/packet_seq_err", "5\n");
    assert_string_equal(harm(p), "11 sequence error NAKs");
    put(IB "counters/symbol_error", "0\n"); /* perfquery -R */
    assert_string_equal(harm(p), "11 sequence error NAKs");
    put(IB "counters/symbol_error", "2\n");
    put(IB "hw_counters/packet_seq_err", "1\n");
    assert_string_equal(harm(p), "2 symbol errors, 12 sequence error NAKs");
    assert_true(port_counters_total(p, false, text, sizeof(text)));
    assert_string_equal(text, "2 symbol errors, 12 sequence error NAKs");
    port_counters_close(p);
}

TEST_WITH(a_counter_that_reaches_its_end_says_at_least, make_tree, remove_tree)
{
    struct port_counters *p = infiniband("mlx5_2");
    char text[256];

    port_counters_begin(p);
    put(IB "counters/link_error_recovery", "255\n");
    assert_string_equal(harm(p), "at least 1 link retraining");
    assert_true(port_counters_full(p, text, sizeof(text)));
    assert_string_equal(text, "local_link_integrity_errors is at its end, 15");
    put(IB "counters/local_link_integrity_errors", "0\n");
    port_counters_look(p, false);
    assert_false(port_counters_full(p, text, sizeof(text)));
    port_counters_close(p);
}

TEST_WITH(what_cannot_be_read_is_no_count, make_tree, remove_tree)
{
    struct port_counters *p = infiniband("mlx5_2");
    char text[256];

    port_counters_begin(p);
    put(IB "counters/symbol_error", ""); /* as one that answers with an error */
    put(IB "counters/link_error_recovery", "N/A (no PMA)\n");
    assert_string_equal(harm(p), "");
    put(IB "counters/symbol_error", "103\n"); /* it is back: what it counted meanwhile */
    assert_string_equal(harm(p), "3 symbol errors");
    port_counters_begin(p);
    put(IB "counters/symbol_error", "");
    put(IB "counters/local_link_integrity_errors", "-1\n");
    put(IB "hw_counters/packet_seq_err", "");
    assert_string_equal(harm(p), "no longer there");
    port_counters_begin(p);
    assert_string_equal(harm(p), ""); /* said once */
    port_counters_total(p, false, text, sizeof(text));
    assert_string_equal(text, "3 symbol errors, no longer there");
    port_counters_close(p);
}

TEST_WITH(an_interface_counts_errors_once_and_no_drops, make_tree, remove_tree)
{
    struct nic n = {.name = "ens7np0", .layer = LINK_ETHERNET};
    struct port_id id = port_id_of(&n);
    struct port_counters *p = port_counters_open(root, &id);

    assert_string_equal(port_counters_name(p), "ens7np0");
    assert_int_equal(port_counters_count(p), 3);
    port_counters_begin(p);
    put(NET "statistics/rx_dropped", "500\n");
    assert_string_equal(harm(p), "");
    put(NET "statistics/rx_crc_errors", "4\n");
    put(NET "statistics/rx_errors", "9\n");
    assert_string_equal(harm(p), "4 CRC errors");
    put(NET "statistics/rx_errors", "10\n");
    put(NET "carrier_changes", "5\n");
    assert_string_equal(harm(p), "2 carrier changes, 4 CRC errors, 1 other receive error");
    port_counters_close(p);
}

TEST_WITH(ports_are_told_apart_and_those_without_counters_are_none, make_tree, remove_tree)
{
    struct nic roce = {
        .name = "mlx5_2:2", .layer = LINK_ETHERNET, .rdma = true, .netdev = "ens7np0"};
    struct nic up = {.name = "../../../etc", .layer = LINK_ETHERNET};
    struct port_id id = port_id_of(&roce);
    struct port_counters *p = port_counters_open(root, &id);

    assert_string_equal(port_counters_name(p), "mlx5_2 port 2");
    assert_int_equal(port_counters_count(p), 4); /* its own and its interface's */
    port_counters_begin(p);
    put(IB "counters/symbol_error", "5000\n");
    assert_string_equal(harm(p), "");
    put(IB2 "counters/symbol_error", "1\n");
    put(NET "carrier_changes", "4\n");
    assert_string_equal(harm(p), "1 symbol error, 1 carrier change");
    port_counters_close(p);
    assert_null(infiniband("mlx5_7"));
    assert_null(infiniband("mlx5_2:3"));
    id = port_id_of(&up);
    assert_null(port_counters_open(root, &id));
    port_counters_close(NULL);
}

TEST_WITH(words_are_cut_to_their_room, make_tree, remove_tree)
{
    struct port_counters *p = infiniband("mlx5_2");
    char text[36 + 1];

    port_counters_begin(p);
    put(IB "counters/symbol_error", "112\n");
    put(IB "counters/link_error_recovery", "255\n");
    put(IB "hw_counters/packet_seq_err", "5\n");
    port_counters_look(p, false);
    memset(text, '#', sizeof(text));
    assert_true(port_counters_harm(p, text, 36));
    assert_string_equal(text, "at least 1 link retraining, ...");
    assert_int_equal(text[36], '#');
    port_counters_close(p);
}
