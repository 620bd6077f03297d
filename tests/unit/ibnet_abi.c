/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_impl.h - our declarations beside those of infiniband/ibnetdisc.h, where it is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "topo/sources/net/ibnet_impl.h"

/* That header takes the other two, and its Debian package does not bring them. */
#if __has_include(<infiniband/ibnetdisc.h>) && __has_include(<infiniband/mad.h>) &&               \
    __has_include(<infiniband/umad.h>)
#include <infiniband/ibnetdisc.h>

#define SAME(ours, our_member, theirs, their_member)                                               \
    do {                                                                                           \
        assert_int_equal(offsetof(ours, our_member), offsetof(theirs, their_member));              \
        assert_int_equal(sizeof(((ours *)0)->our_member), sizeof(((theirs *)0)->their_member));    \
    } while (0)

static void layouts_are_those_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct ibnd_path), sizeof(ib_portid_t));
    SAME(struct ibnd_node_own, next, ibnd_node_t, next);
    SAME(struct ibnd_node_own, lid, ibnd_node_t, smalid);
    SAME(struct ibnd_node_own, guid, ibnd_node_t, guid);
    SAME(struct ibnd_node_own, type, ibnd_node_t, type);
    SAME(struct ibnd_node_own, ports, ibnd_node_t, numports);
    SAME(struct ibnd_node_own, info, ibnd_node_t, info);
    SAME(struct ibnd_node_own, name, ibnd_node_t, nodedesc);
    SAME(struct ibnd_node_own, port, ibnd_node_t, ports);
    SAME(struct ibnd_port_own, guid, ibnd_port_t, guid);
    SAME(struct ibnd_port_own, number, ibnd_port_t, portnum);
    SAME(struct ibnd_port_own, node, ibnd_port_t, node);
    SAME(struct ibnd_port_own, peer, ibnd_port_t, remoteport);
    SAME(struct ibnd_port_own, lid, ibnd_port_t, base_lid);
    SAME(struct ibnd_port_own, info, ibnd_port_t, info);
    SAME(struct ibnd_fabric_own, nodes, ibnd_fabric_t, nodes);
    assert_int_equal(sizeof(struct ibnd_config_own), sizeof(ibnd_config_t));
    SAME(struct ibnd_config_own, timeout_ms, ibnd_config_t, timeout_ms);
    SAME(struct ibnd_config_own, retries, ibnd_config_t, retries);
    SAME(struct ibnd_config_own, mkey, ibnd_config_t, mkey);
    assert_int_equal(IBND_CA, IB_NODE_CA);
    assert_int_equal(IBND_SWITCH, IB_NODE_SWITCH);
    assert_int_equal(IBND_ROUTER, IB_NODE_ROUTER);
}

/* Arguments and results: a call through either pointer is the same call. */
static void functions_are_those_of_the_header(void **state)
{
    (void)state;
    assert_true(__builtin_types_compatible_p(
        __typeof__(&ibnd_discover_fabric),
        ibnd_fabric_t *(*)(char *, int, ib_portid_t *, struct ibnd_config *)));
    assert_true(
        __builtin_types_compatible_p(__typeof__(&ibnd_destroy_fabric), void (*)(ibnd_fabric_t *)));
}
#else
static void layouts_are_those_of_the_header(void **state)
{
    (void)state;
    skip(); /* no infiniband/ibnetdisc.h */
}

static void functions_are_those_of_the_header(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_those_of_the_header),
        cmocka_unit_test(functions_are_those_of_the_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
