/* SPDX-License-Identifier: BSD-3-Clause */
/* lint_net.c - one thing is made odd in a fabric that is right, and that is what is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topo/lint/lint.h"
#include "topo/sources/net/ibnet.h"

enum { GROUPS = 4, RAILS = 2, SPINES = 2, HOSTS = 4, CABLES = 2 };

/* Four groups of four hosts, two rails, two spines, two cables to each: every speed is `rate`. */
static void make(struct topo *t, const char *rate)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    struct err err;

    for (int g = 0; g < GROUPS; g++)
        for (int r = 0; r < RAILS; r++) {
            fprintf(f, "Switch 64 \"leaf-%d%d\"\n", g, r);
            for (int h = 0; h < HOSTS; h++)
                fprintf(f, "[%d] \"n%d%d-%d\"[1] # \"\" %s\n", h + 1, g, h, r, rate);
            for (int s = 0; s < SPINES; s++)
                for (int c = 0; c < CABLES; c++)
                    fprintf(f, "[%d] \"spine-%d\"[%d] # \"\" %s\n", 33 + s * CABLES + c, s,
                            1 + (g * RAILS + r) * CABLES + c, rate);
        }
    for (int s = 0; s < SPINES; s++)
        fprintf(f, "Switch 64 \"spine-%d\"\n", s);
    for (int g = 0; g < GROUPS; g++)
        for (int h = 0; h < HOSTS; h++)
            for (int r = 0; r < RAILS; r++)
                fprintf(f, "Ca 1 \"n%d%d-%d\" # \"n%d%d mlx5_%d\"\n", g, h, r, g, h, r);
    fclose(f);
    topo_init(t);
    if (ibnet_parse(&t->net, text, len, "made", &err) < 0)
        fail_msg("%s", err.text);
    free(text);
}

static int find(const struct topo *t, const char *name)
{
    for (int i = 0; i < t->net->nodes; i++)
        if (!strcmp(t->net->node[i].name, name))
            return i;
    fail_msg("no %s", name);
    return -1;
}

/* The cable at a port of a switch. */
static struct net_cable *at(const struct topo *t, const char *name, int port)
{
    int node = find(t, name);

    for (int i = 0; i < t->net->cables; i++) {
        struct net_cable *c = &t->net->cable[i];
        if ((c->a == node && c->port_a == port) || (c->b == node && c->port_b == port))
            return c;
    }
    fail_msg("no cable at %s[%d]", name, port);
    return NULL;
}

static void unplug(struct topo *t, const char *name, int port)
{
    struct net_cable *c = at(t, name, port);

    *c = t->net->cable[--t->net->cables];
}

static void slow_down(struct net_cable *c, int width, const char *speed)
{
    c->width = width;
    snprintf(c->speed, sizeof(c->speed), "%s", speed);
    c->Bps = net_rate(width, speed);
}

/* Exactly these findings, in order; frees t. */
struct wanted {
    const char *kind, *what, *text;
    bool bad;
};
static void said(struct topo *t, const struct wanted *w, int count)
{
    struct lint l = {0};

    net_tiers(t->net);
    int said_by_it = lint_net(&l, t);
    assert_int_equal(said_by_it, l.findings);
    for (int i = 0; i < l.findings && i < count; i++) {
        assert_string_equal(l.finding[i].kind, w[i].kind);
        assert_string_equal(l.finding[i].what, w[i].what);
        if (!strstr(l.finding[i].text, w[i].text))
            fail_msg("\"%s\" has no \"%s\"", l.finding[i].text, w[i].text);
        assert_int_equal(l.finding[i].bad, w[i].bad);
    }
    if (l.findings != count)
        fail_msg("%d findings, not %d; %s", l.findings, count,
                 l.findings > count ? l.finding[count].text : "");
    lint_free(&l);
    topo_free(t);
}
#define SAID(t, ...)                                                                               \
    said(t, (const struct wanted[]){__VA_ARGS__},                                                  \
         (int)(sizeof((const struct wanted[]){__VA_ARGS__}) / sizeof(struct wanted)))

static void nothing_is_odd(void **state)
{
    struct lint l = {0};
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    said(&t, NULL, 0);
    topo_init(&t);
    assert_int_equal(lint_net(&l, &t), 0); /* no network */
    topo_free(&t);
}

static void a_pair_with_one_cable(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    unplug(&t, "leaf-10", 36);
    SAID(&t, {"cables", "leaf-10 - spine-1",
              "1 cable where 15 of 16 pairs of leaf and spine have 2; there is leaf-10[35] to "
              "spine-1[5]",
              true});
}

static void a_pair_with_none(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    unplug(&t, "leaf-10", 35);
    unplug(&t, "leaf-10", 36);
    SAID(&t,
         {"uplink", "leaf-10",
          "no cable to spine-1, to which 7 of 7 switches with the same neighbours have one", true});
}

/* The management leaf of a large fabric has two uplinks where the others have eight. */
static void a_leaf_of_another_kind_is_said_once(void **state)
{
    for (int uplinks = 2; uplinks <= 7; uplinks++) {
        char *text = NULL, said_is[120];
        size_t len;
        FILE *f = open_memstream(&text, &len);
        struct topo t;
        struct err err;
        for (int l = 0; l < 6; l++) {
            fprintf(f, "Switch 64 \"%s%d\"\n[1] \"n%d\"[1]\n", l ? "leaf-" : "mgmt-", l, l);
            for (int s = 0; s < (l ? 8 : uplinks); s++)
                fprintf(f, "[%d] \"spine-%d\"[%d]\n", 33 + s, s, 1 + l);
        }
        for (int s = 0; s < 8; s++)
            fprintf(f, "Switch 64 \"spine-%d\"\n", s);
        for (int l = 0; l < 6; l++)
            fprintf(f, "Ca 1 \"n%d\" # \"n%d mlx5_0\"\n", l, l);
        fclose(f);
        topo_init(&t);
        if (ibnet_parse(&t.net, text, len, "made", &err) < 0)
            fail_msg("%s", err.text);
        free(text);
        net_tiers(t.net);
        struct lint l = {0};
        lint_net(&l, &t);
        snprintf(said_is, sizeof(said_is),
                 "mgmt-0: cables to %d switches above it, where 5 others have 8", uplinks);
        assert_int_equal(l.findings, uplinks <= 4 ? 1 : 8 - uplinks);
        assert_int_equal(lint_bad(&l), uplinks <= 4 ? 0 : 8 - uplinks);
        if (uplinks <= 4)
            assert_non_null(strstr(l.finding[0].text, said_is));
        lint_free(&l);
        topo_free(&t);
    }
    (void)state;
}

static void slow_and_narrow_cables(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    slow_down(at(&t, "leaf-21", 34), 4, "HDR");
    slow_down(at(&t, "leaf-00", 2), 2, "NDR");
    at(&t, "leaf-01", 4)->differ = true;
    SAID(&t,
         {"width", "leaf-00[2] - n01 mlx5_0[1]",
          "2xNDR where 3 of 4 adapters on that leaf have 4xNDR", true},
         {"speed", "leaf-21[34] - spine-0[12]",
          "4xHDR where 31 of 32 cables between these tiers have 4xNDR", true},
         {"ends", "leaf-01[4] - n03 mlx5_1[1]", "its ends tell different rates", true});
}

/* A leaf of older adapters is no fault, and where all are slow none is odd. */
static void what_is_slow_together_is_not_odd(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    for (int port = 1; port <= HOSTS; port++)
        slow_down(at(&t, "leaf-00", port), 4, "HDR");
    said(&t, NULL, 0);
    make(&t, "4xSDR");
    SAID(&t, {"speed", "all cables", "all 64 cables tell SDR", false});
    make(&t, ""); /* no rates at all */
    said(&t, NULL, 0);
}

static void a_host_without_a_rail(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    unplug(&t, "leaf-21", 3);
    SAID(&t, {"rails", "n22",
              "1 adapter in the network where 3 of the 4 hosts of leaf-[20-21] have 2; none on "
              "leaf-21",
              true});
}

static void an_adapter_without_a_name_may_be_the_missing_one(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    snprintf(t.net->node[find(&t, "n22 mlx5_1")].name, 65,
             "MT4129 ConnectX7   Mellanox Technologies");
    SAID(&t, {"rails", "n22", "none on leaf-21, where an adapter without a name may be its", false},
         {"names", "adapters", "1 of 32 adapters have no host's name", false});
}

/* The subnet manager's host on a spine makes no leaf of it. */
static void a_host_on_a_spine(void **state)
{
    struct net_node manager = {
        .kind = NET_HCA, .guid = 77, .name = "ufm mlx5_0", .ports = 1, .host = -1};
    struct topo t, more;
    struct err err;

    (void)state;
    make(&t, "4xNDR");
    topo_init(&more);
    int spine = find(&t, "spine-1");
    more.net = net_copy(t.net);
    more.net->node[0] = manager; /* any place: the cable below is the only one */
    more.net->node[1] = t.net->node[spine];
    more.net->nodes = 2;
    more.net->cables = 0;
    more.net->node[1].guid = t.net->node[spine].guid = 88;
    net_add_cable(more.net, (struct net_cable){.a = 0, .port_a = 1, .b = 1, .port_b = 64});
    assert_int_equal(net_merge(t.net, more.net, "more", &err), 0);
    assert_int_equal(t.net->node[spine].tier, 1);
    topo_free(&more);
    unplug(&t, "leaf-10", 36);
    SAID(&t,
         {"cables", "leaf-10 - spine-1", "1 cable where 15 of 16 pairs of leaf and spine", true});
}

static void swapped_cables(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    struct net_cable *c = at(&t, "leaf-00", 2), *d = at(&t, "leaf-01", 2);
    int b = c->b;
    c->b = d->b;
    d->b = b;
    SAID(&t,
         {"leaf", "n01 mlx5_0", "cabled to leaf-01[2] where 3 of 4 hosts have theirs on leaf-00",
          true},
         {"leaf", "n01 mlx5_1", "cabled to leaf-00[2] where 3 of 4 hosts have theirs on leaf-01",
          true});
}

static void a_leaf_that_is_not_there(void **state)
{
    struct topo t;

    (void)state;
    make(&t, "4xNDR");
    for (int port = 1; port <= HOSTS; port++)
        unplug(&t, "leaf-21", port);
    for (int port = 33; port < 37; port++)
        unplug(&t, "leaf-21", port);
    SAID(&t,
         {"leaves", "leaf-20", "1 leaf for its 4 hosts where 3 of 4 groups of hosts have 2", true});
}

static void the_real_dump(void **state)
{
    static const char real[] = "../shared/fixtures/ibnetdiscover/example.out";
    int cables = 0, swapped = 0, leaves = 0, rates = 0;
    struct lint l = {0};
    struct topo t;
    struct err err;

    (void)state;
    if (access(real, R_OK) != 0)
        skip();
    topo_init(&t);
    assert_int_equal(ibnet_read(&t, -1, real, &err), 0);
    lint_net(&l, &t);
    for (int i = 0; i < l.findings; i++) {
        cables += !strcmp(l.finding[i].kind, "cables");
        rates += !strcmp(l.finding[i].kind, "speed") || !strcmp(l.finding[i].kind, "width");
        swapped += !strncmp(l.finding[i].what, "b08-p1-dgx-08-c01 HCA-", 22);
        leaves += !strcmp(l.finding[i].what, "A09-P1-IBLEAF-01-01..A09-P1-IBLEAF-04-01 (3)");
    }
    assert_int_equal(cables, 6);
    assert_int_equal(rates, 0);
    assert_int_equal(swapped, 2);
    assert_int_equal(leaves, 1);
    lint_free(&l);
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_odd),
        cmocka_unit_test(a_pair_with_one_cable),
        cmocka_unit_test(a_pair_with_none),
        cmocka_unit_test(a_leaf_of_another_kind_is_said_once),
        cmocka_unit_test(slow_and_narrow_cables),
        cmocka_unit_test(what_is_slow_together_is_not_odd),
        cmocka_unit_test(a_host_without_a_rail),
        cmocka_unit_test(an_adapter_without_a_name_may_be_the_missing_one),
        cmocka_unit_test(a_host_on_a_spine),
        cmocka_unit_test(swapped_cables),
        cmocka_unit_test(a_leaf_that_is_not_there),
        cmocka_unit_test(the_real_dump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
