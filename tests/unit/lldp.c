/* SPDX-License-Identifier: BSD-3-Clause */
/* lldp.c - what switches announce, onto the NICs whose interface hears it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/mem.h"
#include "spawn.h"
#include "topo/nic.h"
#include "topo/sources/net/lldp_impl.h"
#include "topo/sources/sources.h"

static char folder[] = "/tmp/railgauge-lldp-XXXXXX";

static const struct nic *nic(const struct topo *t, int host, const char *name)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && !strcmp(t->nic[i].name, name))
            return &t->nic[i];
    fail_msg("no NIC %s", name);
    return NULL;
}

TEST(rdma_ports_have_the_switch_of_their_interface)
{
    static const struct {
        const char *nic, *leaf, *port;
    } row[] = {{"mlx5_0", "leaf-01", "swp11s0"},
               {"mlx5_1", "leaf-02", "swp11s0"}, /* and not the agent on the card */
               {"mlx5_1:2", "leaf-02", "swp11s1"},
               {"mlx5_bond_0", "storage-sw-01", "Ethernet1/3"},
               {"mlx5_3", "", ""},
               {"eno1", "mgmt-sw-01", "Eth1/17"},
               {"bond0", "storage-sw-01", "Ethernet1/3"}};
    struct topo t;
    struct err err;

    assert_non_null(mkdtemp(folder));
    spawn((const char *[]){"sh", "tests/machines/unpack.sh", "tests/machines/roce.txt", folder,
                           NULL});
    topo_init(&t);
    int host = topo_add_host(&t, "roce");
    assert_int_equal(topo_read_sysfs_net(&t, host, folder, &err), 0);
    spawn((const char *[]){"rm", "-r", folder, NULL});
    int before = t.nics;
    assert_int_equal(lldp_read(&t, host, "tests/machines/lldp/roce.txt", &err), 0);
    assert_int_equal(t.nics, before); /* a port of the bond is no NIC of its own */
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const struct nic *n = nic(&t, host, row[i].nic);
        assert_string_equal(n->leaf, row[i].leaf);
        assert_string_equal(n->leaf_port, row[i].port);
        assert_int_equal(n->leaf_source, *row[i].leaf ? SOURCE_LLDP : SOURCE_NONE);
    }
    topo_free(&t);
}

static int parse(struct topo *t, const char *text, struct err *err)
{
    *err = (struct err){0};
    topo_init(t);
    return lldp_parse(t, topo_add_host(t, "h"), text, strlen(text), "f", err);
}

TEST(the_words_of_lldpcli)
{
    struct err err;
    struct topo t;

    /* A VLAN's interface has a dot; a switch without a name is known by its address; a port by the
     * best of its names. */
    assert_int_equal(parse(&t,
                           "lldp.eth0.100.via=LLDP\r\n"
                           "lldp.eth0.100.chassis.mac=00:00:5e:00:53:01\n"
                           "lldp.eth0.100.port.mac=00:00:5e:00:53:02\n"
                           "lldp.eth0.100.port.descr=uplink.port.ifname=no\n"
                           "lldp.eth0.100.vlan.vlan-id=100\n",
                           &err),
                     0);
    assert_int_equal(t.nics, 1);
    assert_string_equal(t.nic[0].name, "eth0.100");
    assert_string_equal(t.nic[0].leaf, "00:00:5e:00:53:01");
    assert_string_equal(t.nic[0].leaf_port, "uplink.port.ifname=no");
    assert_int_equal(t.nic[0].source, SOURCE_LLDP);
    assert_true(t.nic[0].up && !t.nic[0].rdma && t.nic[0].layer == LINK_ETHERNET);
    topo_free(&t);
    /* Every kind of id that lldpcli prints; one that it cannot show is none. */
    static const char *const id[] = {"mac", "local", "ip", "ifname", "ifalias"};
    for (size_t i = 0; i < sizeof(id) / sizeof(*id); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "lldp.e.via=LLDP\nlldp.e.chassis.%s=192.0.2.7\nlldp.e.port.%s=192.0.2.8\n", id[i],
                 id[i]);
        assert_int_equal(parse(&t, text, &err), 0);
        assert_string_equal(t.nic[0].leaf, "192.0.2.7");
        assert_string_equal(t.nic[0].leaf_port, "192.0.2.8");
        topo_free(&t);
    }
    assert_int_equal(parse(&t, "lldp.e.via=LLDP\nlldp.e.chassis.unhandled=\n", &err), 0);
    assert_int_equal(t.nics, 0);
    topo_free(&t);
    /* No neighbour is no error. */
    assert_int_equal(parse(&t, "", &err), 0);
    assert_int_equal(t.nics, 0);
    assert_int_equal(t.unseens, 1);
    assert_string_equal(t.unseen[0].what, "LLDP neighbours of h");
    topo_free(&t);
    /* What the subnet told stays. */
    assert_int_equal(parse(&t, "lldp.e.via=LLDP\nlldp.e.chassis.name=one\n", &err), 0);
    strcpy(t.nic[0].leaf, "from-the-subnet");
    t.nic[0].leaf_source = SOURCE_IBNET;
    static const char two[] = "lldp.e.via=LLDP\nlldp.e.chassis.name=two\n";
    assert_int_equal(lldp_parse(&t, 0, two, strlen(two), "f", &err), 0);
    assert_string_equal(t.nic[0].leaf, "from-the-subnet");
    topo_free(&t);
}

/* One daemon's answer in its three forms. */
TEST(all_forms_say_the_same)
{
    static const char *const form[] = {"good-keyvalue.txt", "good.json", "good0.json"};
    char *first = NULL;

    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++) {
        char *path = mem_printf("tests/bad/lldp/%s", form[i]), *text = NULL;
        struct topo t;
        struct err err;
        size_t len;
        topo_init(&t);
        topo_add_host(&t, "h");
        assert_int_equal(lldp_read(&t, 0, path, &err), 0);
        FILE *f = open_memstream(&text, &len);
        for (int k = 0; k < t.nics; k++)
            fprintf(f, "%s %s %s\n", t.nic[k].name, t.nic[k].leaf, t.nic[k].leaf_port);
        fclose(f);
        assert_string_equal(text, "eth0 leaf-sw-07 swp17\neth1 leaf-sw-07 sw1\n");
        if (first)
            assert_string_equal(text, first);
        free(first);
        first = text;
        topo_free(&t);
        free(path);
    }
    free(first);
}

TEST(what_cannot_be_lldp_is_refused)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        {"<lldp/>\n", "f: not what lldpcli -f keyvalue (json, json0) show neighbors prints"},
        {"{\"lldpd\": []}\n", "f: no \"lldp\": not what lldpcli -f json (json0) show"},
        {"lldp.eth0.via=LLDP\nlldp.eth0.chassis.name\n",
         "f:2: \"lldp.eth0.chassis.name\" has no ="},
        {"lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=\n", "f:2: \"\" is no name of 1 to 64"},
        {"lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=a\033[31mb\n",
         "f:2: \"a?[31mb\" has a character that is not printable"},
        {"lldp.interface-of-18-ch.via=LLDP\n", "names an interface of more than 15 characters"},
        {"lldp.e 0.via=LLDP\n", "f:1: \"e 0\" names no interface"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct err err;
        struct topo t;
        assert_int_equal(parse(&t, row[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, row[i].why))
            fail_msg("\"%s\" where \"%s\" is expected", err.text, row[i].why);
        topo_free(&t);
    }
}
