/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.c - the shipped presets and what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "test.h"
#include "topo/fabrics/fabric.h"

/* Seconds of a published collective: linear in bytes between points; the first point's time below
 * it; above the last one further bytes take what those of the last segment took, and no less than
 * the last size's took on average. */
static double time_of(const struct fabric_collective *c, double bytes)
{
    if (!c->points)
        return c->alpha.value + bytes * op_bus_factor(c->op, c->ranks) / c->busbw.value;
    const struct fabric_point *p = c->point, *last = p + c->points - 1;
    if (bytes <= p->bytes)
        return p->sec;
    while (p < last && p[1].bytes < bytes)
        p++;
    const struct fabric_point *a = p < last ? p : last - 1;
    double slope = (a[1].sec - a->sec) / (a[1].bytes - a->bytes);
    if (p < last)
        return a->sec + (bytes - a->bytes) * slope;
    return last->sec + (bytes - last->bytes) * fmax(slope, last->sec / last->bytes);
}

TEST(every_shipped_preset_loads_and_its_numbers_have_sources)
{
    struct err err;
    char **names;
    int count;

    assert_int_equal(fabric_list(&names, &count, &err), 0);
    assert_int_equal(count, 19);
    for (int i = 0; i < count; i++) {
        struct fabric f;
        if (fabric_load(&f, names[i], &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(f.name, names[i]);
        assert_true(f.tiers >= 2 && f.collectives >= 4 && f.gpu.peaks >= 1);
        assert_string_equal(f.gpu.peak[0].dtype, "bf16");
        for (int k = 0; k < f.tiers; k++) {
            assert_true(strlen(f.tier[k].alpha.source) > 5);
            assert_true(f.tier[k].Bps.value <= f.tier[k].peak.value);
            assert_true(f.tier[k].bi_Bps.value <= f.tier[k].Bps.value);
            assert_true(f.tier[k].alpha.value < 1e-3);
        }
        fabric_free(&f);
    }
    hostlist_free(names, count);
}

TEST(the_numbers_of_gb200_are_the_published_ones)
{
    struct fabric f;
    struct err err;

    assert_int_equal(fabric_load(&f, "gb200-nvl72", &err), 0);
    assert_int_equal(f.hosts_per_domain * f.gpus_per_host, 72);
    assert_string_equal(f.tier[1].rule.name, "rail");
    assert_int_equal(f.tier[1].rule.same, 1u << LEVEL_LEAF);
    assert_true(f.tier[1].Bps.value == 49.2e9);
    assert_int_equal(f.tier[1].Bps.kind, KIND_MEASURED);
    assert_non_null(strstr(f.tier[1].Bps.source, "#1801"));
    assert_int_equal(f.tier[0].alpha.kind, KIND_INFERRED);
    assert_true(f.gpu.peak[0].flops.value == 2500e12);
    fabric_free(&f);
}

/* The machines that steps were published for: what a GPU holds and computes. */
static const struct {
    const char *fabric;
    int gpus, ranks; /* of a host; of its largest measured collective in one domain */
    double memory, bf16, fp8;
} machine[] = {
    {"hgx-a100", 8, 8, 85.0e9, 312e12, 0},
    {"hgx-a100-40", 8, 8, 42.5e9, 312e12, 0},
    {"hgx-a100-omnipath", 8, 8, 85.0e9, 312e12, 0},
    {"hgx-h100", 8, 8, 85.0e9, 989e12, 1979e12},
    {"hgx-h100-efa", 8, 8, 85.0e9, 989e12, 1979e12},
    {"hgx-h20", 8, 8, 102.1e9, 148e12, 296e12},
    {"hgx-h200", 8, 8, 150.1e9, 989e12, 1979e12},
    {"h200-nvl", 4, 4, 150.1e9, 835.5e12, 1670.5e12},
    {"hgx-b200", 8, 8, 191.5e9, 2250e12, 4500e12},
    {"hgx-b300", 8, 8, 287.4e9, 2250e12, 4500e12},
    {"gb200-nvl72", 4, 72, 197.9e9, 2500e12, 5e15},
    {"gb300-nvl72", 4, 72, 297.0e9, 2500e12, 5e15},
};

static double peak(const struct fabric *f, const char *dtype)
{
    for (int i = 0; i < f->gpu.peaks; i++)
        if (!strcmp(f->gpu.peak[i].dtype, dtype))
            return f->gpu.peak[i].flops.value;
    return 0;
}

TEST(every_machine_of_published_steps_is_there)
{
    struct fabric f;
    struct err err;

    for (size_t i = 0; i < sizeof(machine) / sizeof(*machine); i++) {
        int ranks = 0;
        if (fabric_load(&f, machine[i].fabric, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(f.gpus_per_host, machine[i].gpus);
        assert_true(fabs(f.gpu.memory_bytes.value - machine[i].memory) < 0.1e9);
        assert_true(peak(&f, "bf16") == machine[i].bf16 && peak(&f, "fp16") == machine[i].bf16);
        assert_true(peak(&f, "fp8") == machine[i].fp8);
        assert_true(peak(&f, "mxfp8") == (peak(&f, "nvfp4") > 0 ? machine[i].fp8 : 0));
        assert_true(peak(&f, "tf32") > peak(&f, "fp32") && peak(&f, "fp32") > 0);
        for (int k = 0; k < f.collectives; k++)
            if (f.collective[k].domains == 1 && f.collective[k].points > 3)
                ranks = f.collective[k].ranks > ranks ? f.collective[k].ranks : ranks;
        assert_int_equal(ranks, machine[i].ranks);
        fabric_free(&f);
    }
}

TEST(published_points_are_met_and_quoted_rates_with_them)
{
    struct fabric f;
    struct err err;

    assert_int_equal(fabric_load(&f, "gb200-nvl72", &err), 0);
    for (int i = 0; i < f.collectives; i++) {
        const struct fabric_collective *c = &f.collective[i];
        for (int k = 0; k < c->points; k++)
            assert_true(fabs(time_of(c, c->point[k].bytes) / c->point[k].sec - 1) < 1e-12);
        double big = c->points ? c->point[c->points - 1].bytes : 1e12;
        double busbw = big / time_of(c, big) * op_bus_factor(c->op, c->ranks);
        if (c->points) /* alpha and busbw are those of the curve */
            assert_true(fabs(busbw / c->busbw.value - 1) < 0.005);
        if (c->domains == 1 ||
            c->alpha.kind == KIND_MEASURED) /* else the model says what smaller ones take */
            assert_true(time_of(c, 8) <= 1.001 * c->alpha.value);
        double twice = time_of(c, 2 * big);
        assert_true(twice >= 1.999999 * time_of(c, big) || !c->points);
        if (c->op == OP_ALL_REDUCE && c->ranks == 72) {
            double sec = time_of(c, 0x1p30) / 2 + time_of(c, 0x1p31) / 2;
            assert_true(fabs(time_of(c, 1.5 * 0x1p30) / sec - 1) < 1e-9);
        }
    }
    fabric_free(&f);
}

TEST(eight_racks_of_gb200_have_the_places_they_should)
{
    struct fabric f;
    struct topo t;
    struct err err;

    assert_int_equal(fabric_load(&f, "gb200-nvl72", &err), 0);
    assert_int_equal(fabric_topo(&f, 8, false, &t, &err), 0);
    assert_int_equal(t.endpoints, 576);
    assert_int_equal(t.group[LEVEL_RACK].count, 8);
    assert_int_equal(t.group[LEVEL_DOMAIN].count, 8);
    assert_int_equal(t.group[LEVEL_LEAF].count, 8); /* 2 groups of 4 racks, 4 rails */
    assert_int_equal(t.group[LEVEL_RAIL].count, 4);
    assert_int_equal(t.nics, 576);
    assert_string_equal(t.host[18].name, "r01n00");
    assert_string_equal(t.group[LEVEL_RACK].name[7], "rack-07");
    for (int i = 0; i < t.endpoints; i++) {
        assert_int_equal(t.endpoint[i].place.at[LEVEL_RACK], i / 72);
        assert_int_equal(t.endpoint[i].place.at[LEVEL_HOST], i / 4);
        assert_int_equal(t.endpoint[i].nic, i);
        assert_int_equal(t.endpoint[i].source[LEVEL_LEAF], SOURCE_PRESET);
    }
    assert_int_equal(topo_tier(&t, 0, 71), 0);
    assert_int_equal(topo_tier(&t, 0, 72), 1);
    assert_int_equal(topo_tier(&t, 0, 73), 2);
    assert_int_equal(topo_tier(&t, 0, 4 * 72), 2);
    assert_string_equal(t.fabric, "gb200-nvl72");
    topo_free(&t);
    fabric_free(&f);
}

TEST(gpus_of_a_host_share_one_nic_where_there_is_one)
{
    struct fabric f;
    struct topo t;
    struct err err;

    assert_int_equal(fabric_load(&f, "rtxpro6000-100gbe", &err), 0);
    assert_int_equal(fabric_topo(&f, 0, false, &t, &err), 0);
    assert_int_equal(t.endpoints, 16);
    assert_int_equal(t.nics, 2);
    assert_int_equal(t.endpoint[7].nic, 0);
    assert_int_equal(t.endpoint[8].nic, 1);
    assert_int_equal(t.endpoint[0].place.at[LEVEL_DOMAIN], -1);
    assert_string_equal(t.unseen[0].what, "NVLink domain");
    assert_string_equal(t.unseen[0].why, "the preset rtxpro6000-100gbe has none");
    assert_string_equal(t.tier[1].name, "tcp");
    topo_free(&t);
    fabric_free(&f);
}

TEST(blind_tells_hosts_only)
{
    struct fabric f;
    struct topo t;
    struct err err;

    assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
    assert_int_equal(fabric_topo(&f, 2, true, &t, &err), 0);
    assert_int_equal(t.endpoints, 64);
    assert_int_equal(t.nics, 0);
    for (int i = 0; i < t.endpoints; i++)
        for (int l = LEVEL_HOST + 1; l < LEVEL_COUNT; l++)
            assert_int_equal(t.endpoint[i].place.at[l], -1);
    assert_int_equal(t.unseens, 5);
    assert_string_equal(t.unseen[2].what, "rack");
    assert_string_equal(t.unseen[2].why, "hidden by --blind");
    assert_int_equal(t.tiers, 2);
    topo_free(&t);
    fabric_free(&f);
}

TEST(a_hundred_thousand_endpoints_take_seconds_at_most)
{
    clock_t start = clock(); /* of this process: others may have the core meanwhile */
    struct fabric f;
    struct topo t;
    struct err err;

    assert_int_equal(fabric_load(&f, "gb300-nvl72", &err), 0);
    assert_int_equal(fabric_topo(&f, 1389, false, &t, &err), 0);
    assert_int_equal(t.endpoints, 1389 * 72);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
    topo_free(&t);
    assert_int_equal(fabric_topo(&f, 1000000, false, &t, &err), -1);
    assert_string_equal(err.text, "1000000 racks of gb300-nvl72 are 72000000 endpoints, more than "
                                  "1048576");
    assert_int_equal(err.code, EXIT_USAGE);
    topo_free(&t);
    fabric_free(&f);
}

TEST(an_unknown_preset_is_refused_with_the_known_ones)
{
    struct fabric f;
    struct err err;

    assert_int_equal(fabric_load(&f, "gb200", &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(
        strstr(err.text,
               "no fabric \"gb200\" (did you mean \"gb200-nvl72\"?); known: gb200-nvl72, gb300"));
    assert_int_equal(fabric_load(&f, "/nonexistent/x.json", &err), -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
}

/* One change to a good preset, and the words that must answer it. */
static const struct {
    const char *path;  /* of keys and indices */
    const char *value; /* JSON; NULL removes */
    const char *text;
} bad[] = {
    {"format", "\"railgauge-matrix\"", "format is \"railgauge-matrix\""},
    {"version", "2", "version 2 of railgauge-fabric is not one of 1..1"},
    {"surprise", "1", "surprise"},
    {"gpu", NULL, "gpu"},
    {"gpu", "\"h1000\"", "gpu \"h1000\" is not a file of topo/gpus"},
    {"gpu", "\"v100-sxm2-32gb\"", "tiers[0].peak_Bps is 9e+11, and all NVLinks of Tesla V100 SXM2"},
    {"gpu nvlink_Bps value", "0", "gpu.nvlink_Bps: \"value\" is 0, outside"},
    {"base", "{}", "base: "},
    {"base", "{\"preset\": \"hgx-h1000\"}", "preset \"hgx-h1000\" is not a file of topo/fabrics"},
    {"base", "{\"preset\": \"hgx-h20\"}", "base: that preset is itself made from another"},
    {"base", "{\"preset\": \"hgx-h100\", \"collectives\": \"some\"}",
     "\"some\" is not all, inside,"},
    {"gpu peaks", "[]", "gpu.peaks is empty"},
    {"gpu memory_bytes value", "-1", "gpu.memory_bytes: \"value\" is -1, outside"},
    {"gpu memory_bytes value", "\"80G\"", "gpu.memory_bytes: \"value\" is not a number"},
    {"gpu memory_bytes kind", "\"guessed\"", "kind \"guessed\" is not measured, stated, spec or"},
    {"gpu memory_bytes source", "\"hearsay\"", "source \"hearsay\" is not in \"sources\""},
    {"gpu memory_bytes unit", "\"B\"", "unit"},
    {"nic link_layer", "\"token-ring\"", "link_layer \"token-ring\" is not infiniband or ethernet"},
    {"layout gpus_per_host", "0", "layout: \"gpus_per_host\" is 0, outside 1..64"},
    {"layout gpus_per_host", "4.5", "layout: \"gpus_per_host\" is 4.5, not a whole number"},
    {"layout uplink_share", "1.5", "layout: \"uplink_share\" is 1.5, outside"},
    {"tiers", "[]", "tiers: 0 of them where 1..16 are possible"},
    {"tiers 0 same 0", "\"galaxy\"", "tiers[0]: same[0] \"galaxy\" is not host, domain,"},
    {"tiers 0 same", "[\"host\", \"host\"]", "tiers[0]: same[1] \"host\" is there twice"},
    {"tiers 0 same", "[]", "tiers[0]: \"same\" must be empty in the last tier and only there"},
    {"tiers 1 name", "\"mnnvl\"", "tiers[1]: a second tier \"mnnvl\""},
    {"tiers 1 name", "\"a name of more than 23 characters\"", "has not 1..23 characters"},
    {"tiers 2 alpha_s value", "0", "tiers[2].alpha_s: \"value\" is 0, outside"},
    {"collectives 0 op", "\"pair_bw\"", "collectives[0]: op \"pair_bw\" is not a collective"},
    {"collectives 0 ranks", "1", "collectives[0]: \"ranks\" is 1, outside"},
    {"collectives 1 domains", "3", "do not divide into 3 domains"},
    {"collectives", "{}", "\"collectives\" is not a list"},
    {"ep_kernels", "{}", "\"ep_kernels\" is not a list"},
    {"ep_kernels 0 ranks", "1", "ep_kernels[0]: \"ranks\" is 1, outside"},
    {"ep_kernels 5 domains", "3", "ep_kernels[5]: 16 ranks do not divide into 3 domains"},
    {"ep_kernels 0 combine_Bps", NULL, "ep_kernels[0]: key \"combine_Bps\" is missing"},
    {"ep_kernels 0 dispatch_Bps value", "0", "ep_kernels[0].dispatch_Bps: \"value\" is 0, outside"},
    {"ep_kernels 0 speed", "1", "ep_kernels[0]: unknown key: speed"},
    {"collectives 0 points kind", "\"heard\"", "collectives[0].points: kind \"heard\" is not"},
    {"collectives 0 points source", "\"nobody\"", "points: source \"nobody\" is not in"},
    {"collectives 0 points sec", "[1e-5]", "bytes and 1 sec where as many, 2..256, are needed"},
    {"collectives 0 points bytes", "[]", "collectives[0].points: 0 bytes and"},
    {"collectives 0 points bytes 1", "512", "points: bytes[1] is not a number above 512"},
    {"collectives 0 points bytes 0", "\"1K\"", "points: bytes[0] is not a number above 0"},
    {"collectives 0 points sec 2", "0", "points: sec[2] is not a number above 0"},
    {"collectives 0 points unit", "\"s\"", "collectives[0].points: unknown key: unit"},
};

static void change(json_t *root, const char *path, const char *value)
{
    char *copy = strdup(path), *save, *key = strtok_r(copy, " ", &save), *next;
    json_t *to = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;

    for (; (next = strtok_r(NULL, " ", &save)); key = next)
        root = json_is_array(root) ? json_array_get(root, (size_t)strtol(key, NULL, 10))
                                   : json_object_get(root, key);
    if (json_is_array(root))
        json_array_set_new(root, (size_t)strtol(key, NULL, 10), to);
    else if (to)
        json_object_set_new(root, key, to);
    else
        json_object_del(root, key);
    free(copy);
}

/* The preset with its GPU in it, as a file of a user's may be. */
static json_t *whole(const char *path)
{
    json_t *root = json_load_file(path, 0, NULL);
    char *file = mem_printf("topo/gpus/%s.json", json_string_value(json_object_get(root, "gpu")));
    json_t *gpu = json_load_file(file, 0, NULL);

    assert_non_null(gpu);
    json_object_set(root, "gpu", json_object_get(gpu, "gpu"));
    json_object_update(json_object_get(root, "sources"), json_object_get(gpu, "sources"));
    json_decref(gpu);
    free(file);
    return root;
}

static int collectives_of(const struct fabric *f, bool between)
{
    int n = 0;

    for (int i = 0; i < f->collectives; i++)
        n += (f->collective[i].domains > 1) == between;
    return n;
}

/* What is not said is as the base has it, and of its collectives stays what was asked for. */
TEST(a_preset_may_be_made_from_another)
{
    static const struct {
        const char *word;
        bool inside, between;
    } keeps[] = {{"all", true, true},
                 {"inside", true, false},
                 {"between", false, true},
                 {"none", false, false}};
    char path[] = "/tmp/railgauge-fabric-XXXXXX.json";
    int fd = mkstemps(path, 5);
    struct fabric base, f;

    assert_int_equal(fabric_load(&base, "hgx-h100", NULL), 0);
    for (size_t i = 0; i < sizeof(keeps) / sizeof(*keeps); i++) {
        json_t *root =
            json_pack("{s:s, s:i, s:s, s:s, s:{}, s:{s:s, s:s}, s:s}", "format", "railgauge-fabric",
                      "version", 1, "name", "x", "title", "X", "sources", "base", "preset",
                      "hgx-h100", "collectives", keeps[i].word, "gpu", "h20");
        assert_int_equal(json_dump_file(root, path, 0), 0);
        json_decref(root);
        assert_int_equal(fabric_load(&f, path, NULL), 0);
        assert_string_equal(f.name, "x");
        assert_string_equal(f.gpu.name, "NVIDIA H20");
        assert_string_equal(f.nic.name, base.nic.name);
        assert_true(f.tiers == base.tiers && f.hosts_per_leaf == base.hosts_per_leaf);
        assert_int_equal(collectives_of(&f, false),
                         keeps[i].inside ? collectives_of(&base, false) : 0);
        assert_int_equal(collectives_of(&f, true),
                         keeps[i].between ? collectives_of(&base, true) : 0);
        fabric_free(&f);
    }
    fabric_free(&base);
    close(fd);
    remove(path);
}

TEST(every_bad_value_is_refused_with_its_place)
{
    char path[] = "/tmp/railgauge-fabric-XXXXXX.json";
    int fd = mkstemps(path, 5);
    struct fabric f;
    struct err err;

    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *root = whole("topo/fabrics/gb200-nvl72.json");
        change(root, bad[i].path, bad[i].value);
        assert_int_equal(json_dump_file(root, path, 0), 0);
        json_decref(root);
        if (fabric_load(&f, path, &err) == 0)
            fail_msg("%s = %s was accepted", bad[i].path, bad[i].value);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].text) || strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("%s = %s: \"%s\" without \"%s\"", bad[i].path, bad[i].value, err.text,
                     bad[i].text);
    }
    remove(path);
}
