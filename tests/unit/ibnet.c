/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_text.c, net.c, net_view.c, net_topo.c, net_apply.c - a subnet's text, and what it says of
 * hosts.  tests/ib/rails-hdr.net: two units of four hosts, four rails, two spines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/host.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "topo/sources/net/ibnet.h"
#include "topo/sources/net/net_view.h"
#include "topo/sources/sources.h"

static const char rails[] = "tests/ib/rails-hdr.net";
static const char real[] = "../shared/fixtures/ibnetdiscover/example.out";

static struct net *parsed(const char *text)
{
    struct err err = {0};
    struct net *n;

    if (ibnet_parse(&n, text, strlen(text), "t", &err) < 0)
        fail_msg("%s", err.text);
    return n;
}

static void refused(const char *text, const char *why)
{
    struct err err = {0};
    struct net *n;

    assert_int_equal(ibnet_parse(&n, text, strlen(text), "t", &err), -1);
    assert_null(n);
    assert_int_equal(err.code, EXIT_DATA);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" has no \"%s\"", err.text, why);
}

static char *text_of(const char *path)
{
    struct err err;
    size_t len;
    char *text;

    if (file_read(&text, &len, path, 1 << 24, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

static int count_kind(const struct net *n, enum net_kind kind, int tier)
{
    int count = 0;

    for (int i = 0; i < n->nodes; i++)
        count += n->node[i].kind == kind && n->node[i].tier == tier;
    return count;
}

static int node_of(const struct net *n, const char *name)
{
    for (int i = 0; i < n->nodes; i++)
        if (!strcmp(n->node[i].name, name))
            return i;
    fail_msg("no node \"%s\"", name);
    return -1;
}

/* The cable at a port. */
static const struct net_cable *cable_at(const struct net *n, const char *name, int port)
{
    int at = node_of(n, name);

    for (int i = 0; i < n->cables; i++)
        if ((n->cable[i].a == at && n->cable[i].port_a == port) ||
            (n->cable[i].b == at && n->cable[i].port_b == port))
            return &n->cable[i];
    fail_msg("no cable at %s[%d]", name, port);
    return NULL;
}

static void rates_are_those_of_data(void **state)
{
    static const struct {
        int width;
        const char *speed;
        double Gbps;
    } rows[] = {{4, "SDR", 8},    {4, "DDR", 16},   {4, "QDR", 32},  {4, "FDR10", 40},
                {1, "FDR", 13.6}, {4, "FDR", 54.5}, {4, "EDR", 100}, {4, "HDR", 200},
                {2, "HDR", 100},  {4, "NDR", 400},  {4, "XDR", 800}, {2, "XDR", 400},
                {12, "QDR", 96},  {4, "FASTER", 0}, {0, "NDR", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_true(net_rate(rows[i].width, rows[i].speed) / 1e9 * 8 >= rows[i].Gbps - 0.04 &&
                    net_rate(rows[i].width, rows[i].speed) / 1e9 * 8 <= rows[i].Gbps + 0.05);
    assert_true(net_width(2) && net_width(12) && !net_width(3) && !net_width(0));
}

static void a_fabric_is_read_once(void **state)
{
    char *text = text_of(rails);
    struct net *n = parsed(text);

    (void)state;
    assert_int_equal(count_kind(n, NET_SWITCH, 0), 8);
    assert_int_equal(count_kind(n, NET_SWITCH, 1), 2);
    assert_int_equal(count_kind(n, NET_HCA, -1), 32);
    assert_int_equal(n->cables, 32 + 16);
    for (int i = 0; i < n->cables; i++) {
        assert_true(n->cable[i].a < n->cable[i].b);
        assert_true(n->cable[i].Bps == 25e9);
        assert_string_equal(n->cable[i].speed, "HDR");
        assert_false(n->cable[i].differ);
    }
    const struct net_cable *c = cable_at(n, "leaf-su1-r2", 3);
    assert_string_equal(n->node[c->b].name, "su1n02 mlx5_2");
    assert_true(c->guid_b == n->node[c->b].guid && c->guid_a == 0);
    net_free(n);
    free(text);
}

/* Both ends, ports of switches and adapters, lids, SHARP, a router, no name, remarks, -g. */
static const char small[] =
    "#\n# Topology file: generated on Sun\n#\n\nChassis 1 (guid 0x99)\n\n# Spine Nodes\n"
    "vendid=0x2c9\r\ndevid=0xd2f2\nsysimgguid=0x10\t\t# Chassis 1\nswitchguid=0x10(10)\t# MQM9700\n"
    "Switch\t65 \"S-0000000000000010\"\t\t# \"MF0;leaf-1:MQM9700/U1\" enhanced port 0 lid 7 lmc 0\n"
    "[1][ext 4]\t\"H-0000000000000021\"[2](22) \t\t# \"node01 mlx5_0\" lid 11 4xNDR\n"
    "[2]\t\"H-0000000000000031\"[1](31) \t\t# \"\" lid 12 2xNDR s=4 w=2 v=4\n"
    "[3]\t\"R-0000000000000041\"[1](41) \t\t# \"a \"quoted\" router\" lid 13 4xEDR slot 1\n"
    "[65]\t\"H-0000000000000051\"[1](51) \t\t# \"Mellanox Technologies Aggregation Node\" lid 9 "
    "4xNDR\n"
    "ibwarn: [4711] mad_rpc: timed out\n"
    "\nvendid=0x2c9\ndevid=0x1021\ncaguid=0x21\n"
    "Ca\t2 \"H-0000000000000021\"\t\t# \"node01 mlx5_0\"\n"
    "[2](22) \t\"S-0000000000000010\"[1][ext 4]\t\t# lid 11 lmc 0 \"MF0;leaf-1:MQM9700/U1\" lid 7 "
    "4xHDR\n"
    "\ncaguid=0x31\nCa\t1 \"H-0000000000000031\"\t\t# \"\"\n"
    "[1](31) \t\"S-0000000000000010\"[2]\t\t# lid 12 lmc 0 \"x\" lid 7 2xNDR\n"
    "\ndevid=0xcf09\ncaguid=0x51\nCa\t1 \"H-0000000000000051\"\t\t# \"Quantum\"\n"
    "[1](51) \t\"S-0000000000000010\"[65]\t\t# lid 9 lmc 0 \"MF0\" lid 7 4xNDR\n"
    "\nrtguid=0x41\nRt\t2 \"R-0000000000000041\"\t\t# \"a \"quoted\" router\"\n"
    "[1](41) \t\"S-0000000000000010\"[3]\t\t# lid 13 lmc 0 \"MF0\" lid 7 4x??\n";

static void what_real_dumps_have(void **state)
{
    struct net *n = parsed(small);
    char **label = net_labels(n);

    (void)state;
    assert_int_equal(n->nodes, 5);
    assert_int_equal(n->cables, 4);
    assert_int_equal(n->node[3].kind, NET_AGGREGATION);
    assert_int_equal(n->node[4].kind, NET_ROUTER);
    assert_string_equal(n->node[4].name, "a \"quoted\" router");
    const struct net_cable *c = &n->cable[0];
    assert_int_equal(c->port_a, 1);
    assert_int_equal(c->port_b, 2);
    assert_int_equal(c->lid_a, 7);
    assert_int_equal(c->lid_b, 11);
    assert_true(c->guid_b == 0x22 && c->guid_a == 0);
    assert_true(c->differ && c->Bps == 25e9); /* the slower of two that disagree */
    assert_true(n->cable[1].width == 2 && n->cable[1].Bps == 25e9 && !n->cable[1].differ);
    assert_true(n->cable[2].Bps == 12.5e9 && !n->cable[2].differ); /* one end does not tell */
    assert_string_equal(label[0], "leaf-1");
    assert_string_equal(label[2], "H-0000000000000031");
    hostlist_free(label, n->nodes);
    net_free(n);
}

static void the_bare_style_of_ibsim(void **state)
{
    struct net *n = parsed("Switch 8 \"Sw1\" # leaf one enhanced port 0 lid 3\n"
                           "[1] \"H1\"\n[2] \"H2\"[1] w=4 s=1\n[8] \"Sw2\"[8]\n\n"
                           "Switch 8 \"Sw2\"\n\nHca 1 \"H1\"\nHca 2 \"H2\" # \"node02 mlx5_0\"\n"
                           "hcaguids=0x77\nHca 1 \"H3\"\n[1] \"Sw2\"[1]\n");

    (void)state;
    assert_int_equal(n->nodes, 5);
    assert_int_equal(n->cables, 4);
    assert_string_equal(n->node[0].name, "leaf one");
    assert_string_equal(n->node[1].name, "Sw2");
    assert_string_equal(n->node[3].name, "node02 mlx5_0");
    assert_true(n->node[4].guid == 0x77 && n->node[0].guid == 0);
    assert_true(n->cable[0].Bps == 0 && n->cable[0].width == 0);
    assert_int_equal(n->node[1].tier, 0);
    net_free(n);
}

#define SW "Switch\t4 \"S-0000000000000010\"\t\t# \"leaf\"\n"
#define CA "Ca\t2 \"H-0000000000000020\"\t\t# \"n1 mlx5_0\"\n"
#define TO_CA "[1]\t\"H-0000000000000020\"[1](20) \t\t# \"n1 mlx5_0\" lid 1 4xNDR\n"
#define TO_SW "[1](20)\t\"S-0000000000000010\"[1]\t\t# lid 1 lmc 0 \"leaf\" lid 2 4xNDR\n"

/* The same report as a terminal logs it: PuTTY's heading, prompts, CR LF, colours and titles. */
static void the_log_of_a_terminal(void **state)
{
    struct err err;
    size_t len;
    char *text, *log = NULL, *rest, *line;
    FILE *f;

    (void)state;
    assert_int_equal(file_read(&text, &len, rails, 1 << 20, &err), 0);
    struct net *n = parsed(text), *same;
    f = open_memstream(&log, &len);
    fputs("=~=~=~=~=~=~=~=~=~=~=~= PuTTY log 2026.01.10 14:00:00 =~=~=~=~=~=~=~=~=~=~=~=\r\n"
          "Last login: Sat Jan 10 13:59:01 2026 from 10.0.0.2\r\n"
          "\033]0;root@ufm01:~\007\033[?2004h[root@ufm01 ~]# ibnetdiscover\r\n\033[?2004l\r",
          f);
    for (rest = text; (line = strsep(&rest, "\n"));)
        fprintf(f, "\033[0m%s\033[K\r\n", line);
    fputs("admin@ufm01:/tmp$ exit\r\nlogout\r\nufm01:~ # sudo ibnetdiscover --version\r\n"
          "Script done on 2026-01-10 14:00:09+00:00\r\n",
          f);
    fclose(f);
    same = parsed(log);
    assert_int_equal(same->nodes, n->nodes);
    assert_int_equal(same->cables, n->cables);
    for (int i = 0; i < n->nodes; i++)
        assert_string_equal(same->node[i].name, n->node[i].name);
    for (int i = 0; i < n->cables; i++)
        assert_true(same->cable[i].Bps == n->cable[i].Bps);
    net_free(same);
    net_free(n);
    free(log);
    free(text);
    refused("Switch 8 \"l1\"\n[1] \"n1\"\n\001\n", "t:3: a control character (0x01)");
    refused("Switch 8 \"l1\"\n[1] \"n1\"\nsome text\n", "t:3: \"some text\" is no line");
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "t: no Switch and no Ca"},
        {"hello\n", "t:1: \"hello\" is no line of ibnetdiscover"},
        {TO_CA, "t:1: a port before the first Switch or Ca"},
        {SW SW, "t:2: \"S-0000000000000010\" is there twice, first in line 1"},
        {SW TO_CA, "t:2: \"H-0000000000000020\" has no record of its own"},
        {SW TO_CA TO_CA CA TO_SW, "t:3: port 1 is there twice, first in line 2"},
        {SW "[5]\t\"H-0000000000000020\"[1]\n", "t:2: port 5 of a node that has 4"},
        {SW "[0]\t\"H-0000000000000020\"[1]\n", "t:2: port \"0\" is not a number of 1..254"},
        {SW "[1]\t\"H-0000000000000020\"[3]\n" CA,
         "t:2: port 3 of \"H-0000000000000020\", which has 2"},
        {SW "[1]\t\"S-0000000000000010\"[1]\n", "t:2: port 1 is cabled to itself"},
        {SW TO_CA CA "[1]\t\"S-0000000000000010\"[2]\n",
         "t:4: the cable of line 2 ends here, but this line leads to port 2 of "
         "\"S-0000000000000010\""},
        {SW TO_CA "[2]\t\"H-0000000000000020\"[1]\n" CA,
         "t:4: two cables lead to port 1 of this node"},
        {SW TO_CA CA "[1](21)\t\"S-0000000000000010\"[1]\n",
         "t:4: the port GUIDs differ from those in line 2"},
        {SW "[1]\t\"H-0000000000000020\"[1](x)\n", "t:2: port GUID \"x)\" is not a GUID"},
        {SW "[1]\t\"H-0000000000000020\"[1](20\n", "t:2: no ) behind port GUID"},
        {SW "[1\t\"H-0000000000000020\"[1]\n", "t:2: no ] behind port 1"},
        {SW "[1]\tH-0000000000000020[1]\n", "t:2: a quoted id is needed"},
        {SW "[1]\t\"H-0000000000000020\"[1] yes\n", "t:2: \"yes\" behind the other end of a cable"},
        {SW "[1]\t\"H-0000000000000020\"[1] # \"n1\" lid 1 3xNDR\n",
         "t:2: \"3xNDR\" is no width and speed"},
        {SW "[1]\t\"H-0000000000000020\"[1] # \"n1\" lid 1 4NDR\n",
         "t:2: \"4NDR\" is no width and speed"},
        {SW "[1]\t\"H-0000000000000020\"[1] # \"n1\" lid 70000 4xNDR\n",
         "t:2: lid \"70000\" is not a number of 0..65535"},
        {SW "[1]\t\"H-0000000000000020\"[1] # \"n1 lid 1 4xNDR\n",
         "t:2: a name without its closing quote"},
        {"Switch 0 \"S-0000000000000010\"\n",
         "t:1: number of ports \"0\" is not a number of 1..254"},
        {"Switch \"S-0000000000000010\"\n", "t:1: number of ports"},
        {"Switch 4 \"H-0000000000000010\"\n",
         "t:1: a Switch record with the id \"H-0000000000000010\""},
        {"switchguid=0x11(11)\n" SW, "t:2: \"S-0000000000000010\" where line 1 says GUID 0x11"},
        {"switchguid=11\n" SW, "t:1: switchguid \"11\" is not a GUID"},
        {SW "switchguid=0x10\nSwitch 4 \"two\"\n",
         "t:3: GUID 0x10 is that of the node in line 1 too"},
        {SW "include \"more.net\"\n", "t:2: a file for ibsim that includes another one"},
        {SW "\x01[1m\n", "t:2: a control character (0x01)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        refused(rows[i].text, rows[i].why);
}

static void descriptions_name_hosts_or_do_not(void **state)
{
    static const struct {
        const char *name, *host, *device;
    } rows[] = {{"node01 mlx5_0", "node01", "mlx5_0"},
                {"node01.cluster HCA-1", "node01.cluster", "HCA-1"},
                {"node01", "node01", ""},
                {"MT4129 ConnectX7   Mellanox Technologies", NULL, NULL},
                {"MT4129 ConnectX7", NULL, NULL},
                {"MT4129", NULL, NULL},
                {"localhost HCA-1", NULL, NULL},
                {"localhost.localdomain mlx5_0", NULL, NULL},
                {"Mellanox Technologies Aggregation Node", NULL, NULL},
                {"a;b mlx5_0", NULL, NULL},
                {"", NULL, NULL}};
    char host[65], device[32];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(net_described(rows[i].name, host, device), rows[i].host != NULL);
        if (rows[i].host) {
            assert_string_equal(host, rows[i].host);
            assert_string_equal(device, rows[i].device);
        }
    }
}

static void read_into(struct topo *t, const char *path)
{
    struct err err = {0};

    if (ibnet_read(t, -1, path, &err) < 0)
        fail_msg("%s", err.text);
}

/* The name of the claim that a host is in. */
static const char *claimed(const struct topo *t, enum level level, const char *host)
{
    for (int i = 0; i < t->declared_groups; i++)
        for (int k = 0; k < t->declared_group[i].hosts && t->declared_group[i].level == level; k++)
            if (!strcmp(t->declared_group[i].host[k], host))
                return t->declared_group[i].name;
    return "";
}

static void groups_of_leaves_are_claimed(void **state)
{
    struct topo t;

    (void)state;
    topo_init(&t);
    read_into(&t, rails);
    assert_int_equal(t.declared_groups, 2);
    assert_int_equal(t.declared_group[0].source, SOURCE_IBNET);
    assert_string_equal(t.declared_group[0].origin, "rails-hdr.net");
    assert_string_equal(claimed(&t, LEVEL_LEAF, "su0n03"), "leaf-su0-r[0-3]");
    assert_string_equal(claimed(&t, LEVEL_LEAF, "su1n00"), "leaf-su1-r[0-3]");
    assert_int_equal(t.declared_group[1].hosts, 4);
    assert_int_equal(t.hosts, 0); /* claims name hosts, they do not make them */
    read_into(&t, rails);         /* again: the same nodes and cables */
    assert_int_equal(t.net->nodes, 42);
    assert_int_equal(t.net->cables, 48);
    topo_free(&t);
}

static int nic_of(const struct topo *t, int host, const char *name)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && !strcmp(t->nic[i].name, name))
            return i;
    return -1;
}

static int add_nic(struct topo *t, int host, const char *name, const char *guid)
{
    struct nic *old = t->nic;

    t->nic = calloc((size_t)t->nics + 9, sizeof(*t->nic));
    if (old)
        memcpy(t->nic, old, (size_t)t->nics * sizeof(*old));
    free(old);
    nic_init(&t->nic[t->nics], host);
    snprintf(t->nic[t->nics].name, sizeof(t->nic->name), "%s", name);
    snprintf(t->nic[t->nics].guid, sizeof(t->nic->guid), "%s", guid);
    t->nic[t->nics].rdma = true;
    t->nic[t->nics].source = SOURCE_SYSFS;
    return t->nics++;
}

static void nics_and_endpoints_learn_their_leaf(void **state)
{
    struct topo t;

    (void)state;
    topo_init(&t);
    int a = topo_add_host(&t, "su0n00.cluster.example"), b = topo_add_host(&t, "su1n02"),
        other = topo_add_host(&t, "login");
    int e = topo_add_endpoint(&t, a, ENDPOINT_GPU), f = topo_add_endpoint(&t, b, ENDPOINT_GPU),
        g = topo_add_endpoint(&t, other, ENDPOINT_GPU);
    t.endpoint[e].nic = add_nic(&t, a, "mlx5_3", "");
    read_into(&t, rails);
    sources_done(&t);
    assert_int_equal(t.nics, 8); /* four of each host, one was there */
    int n = nic_of(&t, a, "mlx5_3");
    assert_string_equal(t.nic[n].leaf, "leaf-su0-r3");
    assert_string_equal(t.nic[n].leaf_port, "1");
    assert_int_equal(t.nic[n].leaf_source, SOURCE_IBNET);
    assert_int_equal(t.nic[n].source, SOURCE_SYSFS);
    assert_true(t.nic[n].rate_Bps == 25e9);
    assert_string_equal(t.nic[n].guid, "0xa088c20300c00030");
    n = nic_of(&t, b, "mlx5_1");
    assert_int_equal(t.nic[n].source, SOURCE_IBNET);
    assert_true(t.nic[n].up && t.nic[n].rdma && t.nic[n].layer == LINK_INFINIBAND);
    assert_string_equal(t.group[LEVEL_LEAF].name[t.endpoint[e].place.at[LEVEL_LEAF]],
                        "leaf-su0-r3");
    assert_int_equal(t.endpoint[e].source[LEVEL_LEAF], SOURCE_IBNET);
    /* Four leaves and no nearest NIC: the group of them. */
    assert_string_equal(t.group[LEVEL_LEAF].name[t.endpoint[f].place.at[LEVEL_LEAF]],
                        "leaf-su1-r[0-3]");
    assert_int_equal(t.endpoint[g].place.at[LEVEL_LEAF], -1);
    assert_int_equal(t.net->node[node_of(t.net, "su1n02 mlx5_1")].host, b);
    sources_done(&t);
    assert_int_equal(t.nics, 8);
    topo_free(&t);
}

static const char unnamed[] =
    SW "[1]\t\"H-0000000000000020\"[1](2f) # \"MT4129 ConnectX7   Mellanox Technologies\" lid 1 "
       "4xNDR\n"
       "[2]\t\"H-0000000000000030\"[1](30) # \"MT4129 ConnectX7   Mellanox Technologies\" lid 1 "
       "4xNDR\n"
       "[3]\t\"H-0000000000000040\"[1](40) # \"ubuntu mlx5_0\" lid 1 4xNDR\n"
       "[4]\t\"H-0000000000000050\"[1](50) # \"ubuntu mlx5_0\" lid 1 4xNDR\n"
       "Ca 1 \"H-0000000000000020\" # \"MT4129 ConnectX7   Mellanox Technologies\"\n"
       "Ca 1 \"H-0000000000000030\" # \"MT4129 ConnectX7   Mellanox Technologies\"\n"
       "Ca 1 \"H-0000000000000040\" # \"ubuntu mlx5_0\"\n"
       "Ca 1 \"H-0000000000000050\" # \"ubuntu mlx5_0\"\n";

static void guids_name_what_descriptions_do_not(void **state)
{
    struct net *n = parsed(unnamed);
    struct net_view v;
    struct topo t;

    (void)state;
    topo_init(&t);
    int a = topo_add_host(&t, "node07"), u = topo_add_host(&t, "ubuntu");
    add_nic(&t, a, "mlx5_5", "0x2f");
    add_nic(&t, a, "mlx5_6", "0x0000000000000030");
    add_nic(&t, u, "mlx5_0", "0x99"); /* of none of the two that say so */
    net_hosts(n, &t);
    assert_int_equal(n->node[1].host, a);
    assert_string_equal(n->node[1].device, "mlx5_5"); /* by the GUID of its port */
    assert_int_equal(n->node[2].host, a);
    assert_string_equal(n->node[2].device, "mlx5_6"); /* by that of the node */
    assert_int_equal(n->node[3].host, -1); /* two adapters have that description: nobody's */
    net_view_make(&v, n, &t);
    assert_int_equal(v.hosts, 1);
    assert_string_equal(v.host[0].name, "node07");
    assert_int_equal(v.unnamed, 2);
    net_view_free(&v);
    net_free(n);
    topo_free(&t);
}

static void adapters_that_are_counted_from_one(void **state)
{
    static const char text[] = SW "[1]\t\"H-0000000000000020\"[1](20) # \"n1 HCA-2\" lid 1 4xNDR\n"
                                  "Ca 1 \"H-0000000000000020\" # \"n1 HCA-2\"\n";
    struct topo t;

    (void)state;
    topo_init(&t);
    int h = topo_add_host(&t, "n1");
    add_nic(&t, h, "mlx5_0", "");
    int second = add_nic(&t, h, "mlx5_1", "");
    t.net = parsed(text);
    net_apply(&t);
    assert_int_equal(t.nics, 2);
    assert_string_equal(t.nic[second].leaf, "leaf");
    net_apply(&t);
    assert_int_equal(t.nics, 2);
    topo_free(&t);
    topo_init(&t);
    topo_add_host(&t, "n1"); /* nothing is known of its NICs: as the subnet calls it */
    t.net = parsed(text);
    net_apply(&t);
    assert_int_equal(t.nics, 1);
    assert_string_equal(t.nic[0].name, "HCA-2");
    topo_free(&t);
}

static void networks_become_one(void **state)
{
    struct net *n = parsed(SW TO_CA CA TO_SW),
               *other = parsed(SW "[1]\t\"H-0000000000000030\"[1]\nCa 1 \"H-0000000000000030\"\n"),
               *apart = parsed(
                   "Switch 4 \"S-0000000000000011\" # \"storage\"\n[4] \"H-0000000000000020\"[2]\n"
                   "[3] \"H-0000000000000060\"\n" CA
                   "Ca 1 \"H-0000000000000060\" # \"n6 mlx5_0\"\n");
    struct err err = {0};
    int parts;

    (void)state;
    assert_int_equal(net_merge(n, other, "second", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text, "second: port 1 of leaf is cabled to H-0000000000000030, and "
                                  "elsewhere to n1 mlx5_0");
    assert_int_equal(n->nodes, 2);
    assert_int_equal(net_merge(n, apart, "third", &err), 0);
    assert_int_equal(n->nodes, 4);
    assert_int_equal(n->cables, 3);
    free(net_parts(n, &parts));
    assert_int_equal(parts, 1); /* by the adapter that is in both */
    net_free(apart);
    net_free(other);
    net_free(n);
}

static const char two_subnets[] =
    "Switch 4 \"a\"\n[1] \"H1\"\n[2] \"H2\"\nSwitch 4 \"b\"\n[1] \"H3\"\n[2] \"H4\"\n[3] \"H5\"\n"
    "Ca 1 \"H1\" # \"n1 mlx5_1\"\nCa 1 \"H2\" # \"n2 mlx5_1\"\n"
    "Ca 1 \"H3\" # \"n1 mlx5_0\"\nCa 1 \"H4\" # \"n2 mlx5_0\"\nCa 1 \"H5\" # \"n3 mlx5_0\"\n";

static void unconnected_subnets_are_told_apart(void **state)
{
    struct net *n = parsed(two_subnets);
    struct topo t;
    int parts, *part = net_parts(n, &parts);

    (void)state;
    assert_int_equal(parts, 2);
    assert_int_equal(part[node_of(n, "b")], 0); /* the one with more adapters */
    assert_int_equal(part[node_of(n, "a")], 1);
    topo_init(&t);
    net_declare(&t, n, "dump");
    assert_int_equal(t.declared_groups, 2);
    assert_string_equal(t.declared_group[0].origin, "dump");
    assert_string_equal(t.declared_group[0].name, "b");
    assert_int_equal(t.declared_group[0].hosts, 3);
    assert_string_equal(t.declared_group[1].origin, "dump subnet 2");
    assert_int_equal(t.declared_group[1].hosts, 2);
    free(part);
    topo_free(&t);
    net_free(n);
}

/* Two pods of two leaves below a spine each, joined by a core switch. */
static void pods_are_claimed_as_spines(void **state)
{
    struct net *n = parsed("Switch 8 \"l1\"\n[1] \"n1\"\n[8] \"s1\"[1]\n"
                           "Switch 8 \"l2\"\n[1] \"n2\"\n[8] \"s1\"[2]\n"
                           "Switch 8 \"l3\"\n[1] \"n3\"\n[8] \"s2\"[1]\n"
                           "Switch 8 \"s1\"\n[8] \"core\"[1]\nSwitch 8 \"s2\"\n[8] \"core\"[2]\n"
                           "Switch 8 \"core\"\nCa 1 \"n1\"\nCa 1 \"n2\"\nCa 1 \"n3\"\n");
    struct topo t;

    (void)state;
    assert_int_equal(n->node[node_of(n, "core")].tier, 2);
    topo_init(&t);
    net_declare(&t, n, "dump");
    assert_int_equal(t.declared_groups, 5);
    assert_string_equal(claimed(&t, LEVEL_LEAF, "n2"), "l2");
    assert_string_equal(claimed(&t, LEVEL_SPINE, "n1"), "s1");
    assert_string_equal(claimed(&t, LEVEL_SPINE, "n2"), "s1");
    assert_string_equal(claimed(&t, LEVEL_SPINE, "n3"), "s2");
    topo_free(&t);
    net_free(n);
}

/* Dragonfly+: two groups of two leaves and two spines; each spine is cabled to one of the other
 * group.  A third group is joined the same way. */
static void groups_of_a_dragonfly_plus_are_claimed_as_spines(void **state)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    struct topo t;

    (void)state;
    for (int g = 0; g < 3; g++) {
        for (int l = 0; l < 2; l++)
            fprintf(f, "Switch 8 \"l%d%d\"\n[1] \"n%d%d\"\n[7] \"s%d0\"[%d]\n[8] \"s%d1\"[%d]\n", g,
                    l, g, l, g, l + 1, g, l + 1);
        for (int s = 0; s < 2; s++)
            fprintf(f, "Switch 8 \"s%d%d\"\n[8] \"s%d%d\"[7]\n", g, s, (g + 1) % 3, s);
    }
    for (int g = 0; g < 3; g++)
        fprintf(f, "Ca 1 \"n%d0\"\nCa 1 \"n%d1\"\n", g, g);
    fclose(f);
    struct net *n = parsed(text);
    assert_int_equal(n->node[node_of(n, "s10")].tier, 1);
    topo_init(&t);
    net_declare(&t, n, "dump");
    assert_int_equal(t.declared_groups, 6 + 3);
    for (int g = 0; g < 3; g++) {
        char a[8], b[8], spines[16];
        snprintf(a, sizeof(a), "n%d0", g);
        snprintf(b, sizeof(b), "n%d1", g);
        snprintf(spines, sizeof(spines), "s%d0..s%d1", g, g);
        assert_string_equal(claimed(&t, LEVEL_SPINE, a), spines);
        assert_string_equal(claimed(&t, LEVEL_SPINE, b), spines);
    }
    topo_free(&t);
    net_free(n);
    free(text);
}

/* A host without one of its rails, one with a cable in the wrong group, a storage leaf for all. */
static void odd_hosts_stay_in_their_group(void **state)
{
    struct net *n =
        parsed("Switch 8 \"a1\"\n[1] \"1a\"\n[2] \"2a\"\n[3] \"3a\"\nSwitch 8 \"a2\"\n[1] "
               "\"1b\"\n[2] \"2b\"\n[4] \"6c\"\n"
               "Switch 8 \"b1\"\n[1] \"4a\"\n[2] \"5a\"\n[3] \"6a\"\nSwitch 8 \"b2\"\n[1] "
               "\"4b\"\n[2] \"5b\"\n"
               "Switch 8 \"st\"\n[1] \"1s\"\n[2] \"2s\"\n[3] \"4s\"\n[4] \"5s\"\n[8] \"sp\"[5]\n"
               "Switch 8 \"sp\"\n[1] \"a1\"[8]\n[2] \"a2\"[8]\n[3] \"b1\"[8]\n[4] \"b2\"[8]\n"
               "Ca 1 \"1a\" # \"n1 a\"\nCa 1 \"1b\" # \"n1 b\"\nCa 1 \"1s\" # \"n1 s\"\n"
               "Ca 1 \"2a\" # \"n2 a\"\nCa 1 \"2b\" # \"n2 b\"\nCa 1 \"2s\" # \"n2 s\"\nCa 1 "
               "\"3a\" # \"n3 a\"\n"
               "Ca 1 \"4a\" # \"n4 a\"\nCa 1 \"4b\" # \"n4 b\"\nCa 1 \"4s\" # \"n4 s\"\n"
               "Ca 1 \"5a\" # \"n5 a\"\nCa 1 \"5b\" # \"n5 b\"\nCa 1 \"5s\" # \"n5 s\"\n"
               "Ca 1 \"6a\" # \"n6 a\"\nCa 1 \"6c\" # \"n6 b\"\n");
    struct topo t;

    (void)state;
    topo_init(&t);
    net_declare(&t, n, "dump");
    assert_int_equal(t.declared_groups, 2);
    assert_string_equal(claimed(&t, LEVEL_LEAF, "n1"), claimed(&t, LEVEL_LEAF, "n2"));
    assert_string_equal(claimed(&t, LEVEL_LEAF, "n1"), claimed(&t, LEVEL_LEAF, "n3"));
    assert_string_equal(claimed(&t, LEVEL_LEAF, "n4"), claimed(&t, LEVEL_LEAF, "n5"));
    assert_string_not_equal(claimed(&t, LEVEL_LEAF, "n1"), claimed(&t, LEVEL_LEAF, "n4"));
    topo_free(&t);
    net_free(n);
}

static void the_real_dump(void **state)
{
    struct topo t;

    (void)state;
    if (access(real, R_OK) != 0)
        skip();
    topo_init(&t);
    read_into(&t, real);
    assert_int_equal(count_kind(t.net, NET_SWITCH, 0), 31);
    assert_int_equal(count_kind(t.net, NET_SWITCH, 1), 9);
    assert_int_equal(count_kind(t.net, NET_HCA, -1) + count_kind(t.net, NET_AGGREGATION, -1), 582);
    assert_int_equal(count_kind(t.net, NET_AGGREGATION, -1), 40);
    assert_int_equal(2 * t.net->cables, 2228);
    for (int i = 0; i < t.net->cables; i++)
        assert_true(t.net->cable[i].Bps == 50e9 && !t.net->cable[i].differ);
    assert_int_equal(t.declared_groups, 8);
    groups_add_hosts(&t);
    assert_int_equal(t.hosts, 121);
    assert_string_equal(claimed(&t, LEVEL_LEAF, "a08-p1-dgx-04-c17"),
                        "A09-P1-IBLEAF-01-04..A09-P1-IBLEAF-04-04 (4)");
    sources_done(&t);
    assert_int_equal(t.nics, 470);
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_data),
        cmocka_unit_test(a_fabric_is_read_once),
        cmocka_unit_test(what_real_dumps_have),
        cmocka_unit_test(the_bare_style_of_ibsim),
        cmocka_unit_test(the_log_of_a_terminal),
        cmocka_unit_test(groups_of_a_dragonfly_plus_are_claimed_as_spines),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(descriptions_name_hosts_or_do_not),
        cmocka_unit_test(groups_of_leaves_are_claimed),
        cmocka_unit_test(nics_and_endpoints_learn_their_leaf),
        cmocka_unit_test(guids_name_what_descriptions_do_not),
        cmocka_unit_test(adapters_that_are_counted_from_one),
        cmocka_unit_test(networks_become_one),
        cmocka_unit_test(unconnected_subnets_are_told_apart),
        cmocka_unit_test(pods_are_claimed_as_spines),
        cmocka_unit_test(odd_hosts_stay_in_their_group),
        cmocka_unit_test(the_real_dump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
