/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts that are declared in the wrong rack: placed where they are measured before parts are judged. */
#include <string.h>

#include "base/mem.h"
#include "campaign.h"
#include "test.h"

enum { RACKS = 4, GPUS = 4 };

static char preset[96];

/* GB200 with racks (and NVLink domains) of so many hosts. */
static void write_preset(int hosts_per_rack)
{
    json_t *root = json_load_file("topo/fabrics/gb200-nvl72.json", 0, NULL),
           *layout = json_object_get(root, "layout");

    assert_non_null(layout);
    json_object_set_new(layout, "hosts_per_rack", json_integer(hosts_per_rack));
    json_object_set_new(layout, "hosts_per_domain", json_integer(hosts_per_rack));
    json_object_del(layout, "job_hosts_per_rack");
    json_object_set_new(root, "name", json_string("moved"));
    assert_int_equal(json_dump_file(root, preset, 0), 0);
    json_decref(root);
}

/* wrong: of each host the rack that it is declared in, with its domain; -1: the right one. */
static void declare(struct topo *t, const void *wrong)
{
    for (int i = 0; i < t->endpoints; i++) {
        int in = ((const int *)wrong)[topo_at(t, i, LEVEL_HOST)];
        if (in >= 0)
            t->endpoint[i].place.at[LEVEL_RACK] = t->endpoint[i].place.at[LEVEL_DOMAIN] = in;
    }
}

static void measure(struct matrix *m, const int *wrong, const char *fault)
{
    struct sim_opts o = {.fabric = preset,
                         .racks = RACKS,
                         .noise = 0.02,
                         .seed = 5,
                         .fault = &fault,
                         .faults = fault != NULL};
    struct plan_opts p;

    plan_defaults(&p);
    p.ops = 1u << OP_PAIR_BW | 1u << OP_PAIR_LATENCY;
    p.min_bytes = p.max_bytes = p.pair_bytes = 64 << 20;
    p.epochs = 2;
    campaign_of(m, &o, &p, campaign_points, declare, wrong);
}

static const char *said(const struct matrix *m)
{
    for (int i = 0; i < m->findings; i++)
        if (!strcmp(m->finding[i].kind, "racks"))
            return m->finding[i].text;
    return "";
}

static int *declared_right(int hosts)
{
    return mem_ints(hosts, -1);
}

/* Every host is in the rack (and domain) that it is built into. */
static bool all_at_home(const struct matrix *m, int per)
{
    for (int i = 0; i < m->topo.endpoints; i++)
        for (int l = LEVEL_DOMAIN; l <= LEVEL_RACK; l++)
            if (l != LEVEL_LEAF && topo_at(&m->topo, i, l) != i / GPUS / per)
                return false;
    return true;
}

TEST(one_host_is_placed_where_it_is_measured)
{
    int *wrong = declared_right(RACKS * 18);
    struct matrix m;

    write_preset(18);
    wrong[5] = 2;
    measure(&m, wrong, NULL);
    assert_string_equal(said(&m), "host r00n05 is measured in rack-00, declared in rack-02: the "
                                  "declaration is wrong; the measured group is used");
    assert_true(all_at_home(&m, 18));
    assert_int_equal(m.exceptions, 0);
    matrix_free(&m);
    free(wrong);
}

/* A NIC that is bad is named all the same, and nobody else. */
TEST(two_that_were_swapped)
{
    int *wrong = declared_right(RACKS * 18);
    struct matrix m;

    write_preset(18);
    wrong[5] = 2;
    wrong[40] = 0;
    measure(&m, wrong, "slow-nic=100:0.6");
    assert_non_null(strstr(said(&m), "host r00n05 is measured in rack-00, declared in rack-02; "
                                     "host r02n04 is measured in rack-02, declared in rack-00"));
    assert_true(all_at_home(&m, 18));
    assert_int_equal(m.exceptions, 1);
    assert_int_equal(m.exception[0].a, 100);
    matrix_free(&m);
    free(wrong);
}

/* A quarter of the hosts, and one more: then it is another machine's file. */
TEST(a_quarter_is_a_slip)
{
    write_preset(18);
    for (int n = 18; n <= 19; n++) {
        int *wrong = declared_right(RACKS * 18);
        struct matrix m;
        for (int i = 0; i < n; i++)
            wrong[i % RACKS * 18 + i / RACKS] = (i % RACKS + 1) % RACKS;
        measure(&m, wrong, NULL);
        if (all_at_home(&m, 18) != (n == 18) ||
            !strstr(said(&m), "the declared racks are used") != (n == 18))
            fail_msg("%d of 72: %s", n, said(&m));
        matrix_free(&m);
        free(wrong);
    }
}

/* In a rack of two nobody knows which of both is declared wrongly. */
TEST(it_takes_two_to_tell)
{
    for (int per = 2; per <= 3; per++) {
        int *wrong = declared_right(RACKS * per);
        struct matrix m;
        write_preset(per);
        wrong[1] = 2;
        measure(&m, wrong, NULL);
        if (all_at_home(&m, per) != (per == 3))
            fail_msg("racks of %d: %s", per, said(&m));
        matrix_free(&m);
        free(wrong);
    }
}

static int open_folder(void **state)
{
    int rc = campaign_setup(state);

    snprintf(preset, sizeof(preset), "%s/moved.json", campaign_folder);
    return rc;
}

static int close_folder(void **state)
{
    unlink(preset);
    return campaign_teardown(state);
}

TEST_GROUP(open_folder, close_folder)
