/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "test.h"

#include "matrix/shape.h"
#include "small.h"

TEST(hosts_are_domains_where_no_nvlink_is_known)
{
    struct topo t;
    struct shape s;
    char text[48];

    small_topo(&t, 2, 4, 2, true, ENDPOINT_CPU);
    shape_of(&s, &t, (int[]){0, 1, 2, 3, 8, 9}, 6);
    assert_int_equal(s.ranks, 6);
    assert_int_equal(s.domains, 3);
    assert_int_equal(s.per_domain, 2);
    assert_int_equal(s.nodes, 3);
    assert_int_equal(s.nics, 1); /* the CPUs of a host share one */
    assert_int_equal(s.racks, 2);
    assert_string_equal(shape_text(text, &s), "6 ranks, 3 domains of 2");
    topo_free(&t);
}

TEST(the_fewest_members_per_domain_count)
{
    struct topo t;
    struct shape s;

    small_topo(&t, 1, 3, 4, false, ENDPOINT_GPU);
    shape_of(&s, &t, (int[]){0, 1, 2, 4, 8, 9}, 6);
    assert_int_equal(s.per_domain, 1);
    assert_int_equal(s.racks, 0); /* not visible is not "one rack" */
    shape_of(&s, &t, (int[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    assert_int_equal(s.nics, 4); /* a GPU has a NIC of its own where none was seen */
    topo_free(&t);
}

TEST(order_does_not_matter_and_thousands_of_domains_are_counted)
{
    enum { HOSTS = 10000 };
    struct topo t;
    struct shape s;
    int *ids = malloc(2 * HOSTS * sizeof(*ids));

    small_topo(&t, 1, HOSTS, 2, false, ENDPOINT_GPU);
    for (int i = 0; i < 2 * HOSTS; i++)
        ids[i] = (int)((i * 7919L) % (2 * HOSTS));
    shape_of(&s, &t, ids, 2 * HOSTS);
    assert_int_equal(s.domains, HOSTS);
    assert_int_equal(s.per_domain, 2);
    topo_free(&t);
    free(ids);
}

TEST(nodes_inside_a_domain_do_not_matter_but_nics_across_do)
{
    struct shape a = {8, 1, 8, 1, 8, 1}, b = {8, 1, 8, 2, 4, 1};

    assert_true(shape_equal(&a, &b));
    a.domains = b.domains = 2;
    a.per_domain = b.per_domain = 4;
    assert_false(shape_equal(&a, &b));
    b.nics = a.nics;
    assert_true(shape_equal(&a, &b));
    b.racks = 2;
    assert_false(shape_equal(&a, &b));
    b.racks = 0;
    assert_true(shape_equal(&a, &b));
}
