/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_verbs.c - what libibverbs tells of ports, beside what sysfs told of them: a library of our own
 * answers, topology.json keeps it, lint says where the two differ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/mem.h"
#include "kernels/verbs_api.h"
#include "topo/lint/lint.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/topo.h"

/* --- a library: mlx5_0 with two ports, mlx5_1 that may not be opened --- */

static struct verbs_device card = {.name = "mlx5_0"}, closed = {.name = "mlx5_1"};
static struct verbs_hca opened = {.device = &card};
static struct verbs_device *list[] = {&card, &closed, NULL};
static struct verbs_device_attr device;
static struct verbs_port_attr port[3];
static union verbs_gid gid;
static int devices, open_now;

static struct verbs_device **get_list(int *n)
{
    *n = devices;
    return list;
}

static void free_list(struct verbs_device **l)
{
    assert_ptr_equal(l, list);
}

static struct verbs_hca *open_device(struct verbs_device *d)
{
    if (d == &closed) {
        errno = EACCES;
        return NULL;
    }
    open_now++;
    return &opened;
}

static int close_device(struct verbs_hca *h)
{
    (void)h;
    open_now--;
    return 0;
}

static int query_device(struct verbs_hca *h, struct verbs_device_attr *d)
{
    (void)h;
    *d = device;
    return 0;
}

static int query_port(struct verbs_hca *h, uint8_t number, struct verbs_port_attr *p)
{
    (void)h;
    *p = port[number];
    return 0;
}

static int query_gid(struct verbs_hca *h, uint8_t number, int index, union verbs_gid *g)
{
    (void)h;
    assert_int_equal(index, 3);
    if (number == 1)
        *g = gid;
    return number == 1 ? 0 : -1;
}

/* A port of 4 lanes NDR with an IPv4 address, and another that is down. */
static void plug(void)
{
    verbs = (struct verbs_api){.library = list,
                               .get_device_list = get_list,
                               .free_device_list = free_list,
                               .open_device = open_device,
                               .close_device = close_device,
                               .query_device = query_device,
                               .query_port = query_port,
                               .query_gid = query_gid};
    devices = 2;
    device = (struct verbs_device_attr){.firmware = "28.39.1002",
                                        .max_qp = 131072,
                                        .max_qp_wr = 32768,
                                        .max_sge = 30,
                                        .max_qp_reads = 16,
                                        .max_mr_size = UINT64_MAX,
                                        .ports = 2};
    port[1] = (struct verbs_port_attr){.state = VERBS_PORT_ACTIVE,
                                       .max_mtu = VERBS_MTU_4096,
                                       .active_mtu = 3,
                                       .gids = 255,
                                       .max_message = 1U << 30,
                                       .active_width = 2,
                                       .active_speed = 128,
                                       .link_layer = VERBS_LINK_ETHERNET};
    port[2] = (struct verbs_port_attr){
        .state = VERBS_PORT_DOWN, .gids = 255, .link_layer = VERBS_LINK_UNSPECIFIED};
    gid = (union verbs_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, 8, 1, 7}};
}

static void add_nic(struct topo *t, const char *name, bool up)
{
    struct nic *n = host_nic(t, 0, name, true, SOURCE_SYSFS);

    n->layer = LINK_ETHERNET;
    n->up = up;
    n->rate_Bps = 50e9;
    n->gid_index = 3;
    strcpy(n->gid, "::ffff:10.8.1.7");
    strcpy(n->firmware, "28.39.1002");
}

/* Of a library and what sysfs told of the same ports. */
static void see(struct topo *t)
{
    struct err err;

    topo_init(t);
    topo_add_host(t, "n1");
    add_nic(t, "mlx5_0", true);
    add_nic(t, "mlx5_0:2", false);
    add_nic(t, "mlx5_1", true);
    t->nic[1].layer = LINK_INFINIBAND;
    assert_int_equal(topo_read_verbs(t, 0, "", &err), 0);
    assert_int_equal(open_now, 0);
    topo_default_tiers(t);
}

static const char *unseen(const struct topo *t, const char *what)
{
    for (int i = 0; i < t->unseens; i++)
        if (!strcmp(t->unseen[i].what, what))
            return t->unseen[i].why;
    return "";
}

TEST(a_port_tells_its_link_limits_and_address)
{
    struct topo t;

    plug();
    see(&t);
    const struct nic_verbs *v = &t.nic[0].verbs;
    assert_true(v->told && v->up);
    assert_int_equal(v->layer, LINK_ETHERNET);
    assert_true(v->rate_Bps == 50e9);
    assert_string_equal(v->firmware, "28.39.1002");
    assert_string_equal(v->gid, "::ffff:10.8.1.7");
    assert_int_equal(v->mtu, 1024);
    assert_int_equal(v->mtu_max, 4096);
    assert_int_equal(v->qps, 131072);
    assert_true(v->message_bytes == 0x40000000);
    assert_true(v->region_bytes == 0); /* as good as no limit */
    assert_true(t.nic[1].verbs.told && !t.nic[1].verbs.up);
    assert_int_equal(t.nic[1].verbs.layer, LINK_INFINIBAND); /* old drivers tell none */
    assert_string_equal(t.nic[1].verbs.gid, "");
    assert_false(t.nic[2].verbs.told);
    assert_non_null(strstr(unseen(&t, "verbs of mlx5_1"), "cannot open it: Permission denied"));
    topo_free(&t);
}

TEST(nothing_is_told_where_nothing_can_be_asked)
{
    struct topo t;
    struct err err;

    plug();
    devices = 0;
    see(&t);
    assert_false(t.nic[0].verbs.told);
    assert_non_null(strstr(unseen(&t, "verbs"), "finds no device: no provider"));
    devices = 2;
    assert_int_equal(topo_read_verbs(&t, 0, "/recorded", &err), 0);
    assert_false(t.nic[0].verbs.told);
    assert_int_equal(topo_read_verbs(&t, 1, "", &err), -1);
    assert_string_equal(err.text, "no host 1");
    topo_free(&t);
}

TEST(the_file_keeps_it)
{
    struct topo t, back;
    struct err err;

    plug();
    see(&t);
    char *text = topo_text(&t);
    if (topo_parse(&back, text, strlen(text), "t.json", &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < t.nics; i++)
        assert_memory_equal(&back.nic[i].verbs, &t.nic[i].verbs, sizeof(t.nic[i].verbs));
    free(text);
    topo_free(&back);
    topo_free(&t);
}

/* The only finding of a kind, or "". */
static char *finding(const struct topo *t, const char *kind)
{
    struct lint l = {0};
    char *text = mem_strdup("");

    lint_hosts(&l, t);
    for (int i = 0; i < l.findings; i++)
        if (!strcmp(l.finding[i].kind, kind)) {
            assert_string_equal(text, "");
            free(text);
            text = mem_strdup(l.finding[i].text);
        }
    lint_free(&l);
    return text;
}

static void says(const struct topo *t, const char *kind, const char *words)
{
    char *text = finding(t, kind);

    assert_string_equal(text, words);
    free(text);
}

TEST(what_differs_is_a_finding)
{
    struct topo t;

    plug();
    see(&t);
    says(&t, "verbs", "");
    says(&t, "mtu",
         "n1 mlx5_0: RDMA packets of 1024 bytes where the port can do 4096 (the interface's MTU "
         "decides); 1 of 1 port");
    topo_free(&t);

    port[1].active_width = 1;
    port[1].active_mtu = VERBS_MTU_4096;
    strcpy(device.firmware, "28.40.1000");
    gid.raw[15] = 8;
    see(&t);
    t.nic[1].firmware[0] = '\0'; /* not told by sysfs: no difference */
    says(&t, "verbs",
         "n1 mlx5_0: libibverbs tells a rate of 12.5 GB/s where sysfs tells 50.0 GB/s, firmware "
         "28.40.1000 where sysfs tells 28.39.1002, the address ::ffff:10.8.1.8 where sysfs tells "
         "::ffff:10.8.1.7");
    says(&t, "mtu", "");
    topo_free(&t);

    plug();
    port[1].state = VERBS_PORT_INIT;
    port[1].link_layer = VERBS_LINK_INFINIBAND;
    see(&t);
    says(&t, "verbs",
         "n1 mlx5_0: libibverbs tells the port down where sysfs tells up, link layer InfiniBand "
         "where sysfs tells Ethernet");
    topo_free(&t);
}
