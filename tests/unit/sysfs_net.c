/* SPDX-License-Identifier: BSD-3-Clause */
/* sysfs_net.c - network ports of recorded machines (tests/machines). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#include "base/mem.h"
#include "spawn.h"
#include "topo/nic.h"
#include "topo/topo.h"

static char folder[] = "/tmp/railgauge-machine-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
    (void)state;
    spawn((const char *[]){"rm", "-r", folder, NULL});
    return 0;
}

static void read_machine(struct topo *t, const char *name)
{
    char *file = mem_printf("tests/machines/%s.txt", name),
         *root = mem_printf("%s/%s", folder, name);
    struct err err;

    spawn((const char *[]){"sh", "tests/machines/unpack.sh", file, root, NULL});
    topo_init(t);
    assert_int_equal(topo_read_sysfs_net(t, topo_add_host(t, "m"), root, &err), 0);
    free(file);
    free(root);
}

static const char *why(const struct topo *t, const char *what)
{
    for (int i = 0; i < t->unseens; i++)
        if (!strcmp(t->unseen[i].what, what))
            return t->unseen[i].why;
    return "(seen)";
}

TEST(a_virtual_machine_has_its_one_port_and_no_rate)
{
    struct topo t;

    read_machine(&t, "vm");
    assert_int_equal(t.nics, 1); /* neither the bridge nor the veth */
    assert_string_equal(t.nic[0].name, "eth0");
    assert_string_equal(t.nic[0].busid, "0000:00:03.0");
    assert_true(t.nic[0].up && !t.nic[0].rdma && t.nic[0].rate_Bps == 0);
    assert_int_equal(t.nic[0].numa, -1);
    assert_int_equal(t.nic[0].layer, LINK_ETHERNET);
    assert_string_equal(why(&t, "rate of eth0"), "its driver does not tell a speed");
    assert_string_equal(why(&t, "InfiniBand and RoCE"),
                        "no RDMA device on this host (/sys/class/infiniband is not there)");
    topo_free(&t);
}

TEST(a_tray_has_four_infiniband_ports_and_no_ipoib_twins)
{
    struct topo t;

    read_machine(&t, "gb300-tray");
    assert_int_equal(t.nics, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t.nic[i].layer, LINK_INFINIBAND);
        assert_true(t.nic[i].rdma && t.nic[i].up && t.nic[i].rate_Bps == 100e9);
        assert_int_equal(t.nic[i].numa, i / 2);
        assert_int_equal(t.nic[i].source, SOURCE_SYSFS);
    }
    assert_string_equal(t.nic[3].busid, "0012:03:00.0");
    assert_string_equal(t.nic[4].name, "eth0");
    assert_true(t.nic[4].rate_Bps == 1.25e9);
    assert_string_equal(why(&t, "InfiniBand and RoCE"), "(seen)");
    topo_free(&t);
}

TEST(ports_come_in_the_order_of_their_numbers_with_their_states)
{
    struct topo t;

    read_machine(&t, "hgx8");
    assert_int_equal(t.nics, 10);
    assert_string_equal(t.nic[6].name, "mlx5_6");
    assert_string_equal(t.nic[7].name, "mlx5_9");
    assert_string_equal(t.nic[8].name, "mlx5_10");
    assert_false(t.nic[2].up);
    assert_true(t.nic[0].up);
    assert_int_equal(t.nic[7].layer, LINK_ETHERNET); /* RoCE, listed once and not as ens7np0 */
    assert_true(t.nic[7].rdma);
    assert_string_equal(t.nic[9].name, "bond0"); /* and neither of its two ports */
    assert_true(t.nic[9].rate_Bps == 6.25e9);
    topo_free(&t);
}

static const struct nic *nic(const struct topo *t, const char *name)
{
    for (int i = 0; i < t->nics; i++)
        if (!strcmp(t->nic[i].name, name))
            return &t->nic[i];
    fail_msg("no NIC %s", name);
    return NULL;
}

TEST(roce_ports_have_the_address_that_nccl_takes)
{
    struct topo t;

    read_machine(&t, "roce");
    const struct nic *n = nic(&t, "mlx5_0");
    assert_string_equal(n->gid, "::ffff:10.1.0.1");
    assert_int_equal(n->gid_index, 3);
    assert_string_equal(n->gid_type, "RoCE v2");
    assert_string_equal(n->guid, "0x000000fffe000010");
    assert_string_equal(n->board, "MT_0000001093");
    assert_string_equal(n->firmware, "28.39.1002");
    assert_string_equal(n->driver, "mlx5_core 24.10-1.1.4");
    assert_string_equal(n->netdev, "ens1np0");
    n = nic(&t, "mlx5_1");
    assert_int_equal(n->gid_index, 2);
    assert_string_equal(n->netdev, "ens2f0np0");
    assert_string_equal(n->firmware, "");
    assert_string_equal(n->driver, "");
    n = nic(&t, "mlx5_1:2"); /* its address belongs to a VLAN, switches know the port below it */
    assert_string_equal(n->netdev, "ens2f1np1");
    assert_int_equal(n->gid_index, 2);
    n = nic(&t, "mlx5_bond_0");
    assert_string_equal(n->netdev, "ens3f0np0");
    n = nic(&t, "mlx5_3"); /* down and without an address */
    assert_false(n->up);
    assert_int_equal(n->gid_index, -1);
    assert_string_equal(n->gid, "");
    assert_string_equal(n->guid, "0x000000fffe000040");
    n = nic(&t, "bond0");
    assert_string_equal(n->netdev, "ens3f0np0");
    assert_string_equal(nic(&t, "eno1")->netdev, "eno1");
    assert_int_equal(t.nics, 7); /* neither the VLAN nor the interfaces of RoCE ports */
    topo_free(&t);
}

TEST(infiniband_ports_are_known_by_the_guid_in_their_address)
{
    struct topo t;

    read_machine(&t, "gb300-tray");
    assert_string_equal(t.nic[0].guid, "0xb8e924030091a2c0");
    assert_string_equal(t.nic[0].gid, "fe80::b8e9:2403:91:a2c0");
    assert_string_equal(t.nic[0].gid_type, "IB");
    assert_int_equal(t.nic[0].gid_index, 0);
    assert_string_equal(t.nic[0].netdev, "ib0");
    assert_string_equal(t.nic[1].guid, "");
    topo_free(&t);
}

/* The address with the identifier FLID (here 0x0102) is number 1 there. */
TEST(routable_infiniband_ports_have_the_address_that_nccl_takes)
{
    static const char *const text[] = {"fe80:0000:0102:0001:b8e9:2403:0091:a2c0",
                                       "fe80:0000:0000:0000:b8e9:2403:0091:a2c0"};
    char *root = mem_printf("%s/gb300-tray", folder),
         *file = mem_printf("%s/sys/class/infiniband/mlx5_0/ports/1/gids/1", root);
    struct topo t;
    struct err err;

    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(file, "w");
        assert_non_null(f);
        fprintf(f, "%s\n", text[i]);
        assert_int_equal(fclose(f), 0);
        topo_init(&t);
        assert_int_equal(topo_read_sysfs_net(&t, topo_add_host(&t, "m"), root, &err), 0);
        assert_int_equal(t.nic[0].gid_index, i ? 0 : 1);
        assert_string_equal(t.nic[0].gid,
                            i ? "fe80::b8e9:2403:91:a2c0" : "fe80:0:102:1:b8e9:2403:91:a2c0");
        assert_string_equal(t.nic[0].guid, "0xb8e924030091a2c0");
        topo_free(&t);
    }
    free(root);
    free(file);
}

TEST(veth_counts_where_nothing_else_is)
{
    char *root = mem_printf("%s/container", folder), *type = mem_printf("%s/veth", folder);
    struct topo t;
    struct err err;
    FILE *f = fopen(type, "w");

    assert_non_null(f);
    fputs("/sys/class/net/lo/type: 772\n/sys/class/net/hsn0/type: 1\n"
          "/sys/class/net/hsn0/operstate: up\n/sys/class/net/hsn0/speed: 10000\n"
          "/sys/class/net/ifb0/type: 1\n/sys/class/net/ifb0/operstate: up\n",
          f);
    fclose(f);
    spawn((const char *[]){"sh", "tests/machines/unpack.sh", type, root, NULL});
    topo_init(&t);
    assert_int_equal(topo_read_sysfs_net(&t, topo_add_host(&t, "c"), root, &err), 0);
    assert_int_equal(t.nics, 1);
    assert_string_equal(t.nic[0].name, "hsn0");
    assert_true(t.nic[0].rate_Bps == 0); /* 10000 is the kernel's constant for veth */
    topo_free(&t);
    free(root);
    free(type);
}

TEST(nothing_there_is_said_and_no_error)
{
    struct topo t;
    struct err err;

    topo_init(&t);
    assert_int_equal(topo_read_sysfs_net(&t, topo_add_host(&t, "c"), "/nonexistent", &err), 0);
    assert_int_equal(t.nics, 0);
    assert_string_equal(why(&t, "network interfaces"), "no folder /nonexistent/sys/class/net");
    assert_int_equal(topo_read_sysfs_net(&t, 7, "", &err), -1);
    assert_string_equal(err.text, "no host 7");
    topo_free(&t);
}

TEST(the_mock_of_a_gb300_host_is_read)
{
    static const char root[] = "../shared/fixtures/sysfs-infiniband-gb300-mock";
    struct topo t;
    struct err err;

    if (access(root, R_OK) != 0) {
        print_message("no %s here\n", root);
        skip();
    }
    topo_init(&t);
    assert_int_equal(topo_read_sysfs_net(&t, topo_add_host(&t, "m"), root, &err), 0);
    assert_int_equal(t.nics, 4);
    assert_true(t.nic[3].up && t.nic[3].rate_Bps == 50e9);
    assert_string_equal(t.nic[3].name, "mlx5_3");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(strlen(t.nic[i].guid), 18);
        assert_true(i == 0 || strcmp(t.nic[i].guid, t.nic[0].guid) != 0);
    }
    topo_free(&t);
}

TEST_GROUP(make_folder, remove_folder)
