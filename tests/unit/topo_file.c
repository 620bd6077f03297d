/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_load.c, topo_save.c - topology.json there and back, and what is refused. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "test.h"
#include "topo/fabrics/fabric.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/mnnvl.h"
#include "topo/topo_impl.h"

static char path[] = "/tmp/railgauge-topo-XXXXXX.json";
static const char golden[] = "tests/golden/topology.json";

static int make_path(void **state)
{
    int fd = mkstemps(path, 5);

    (void)state;
    return fd < 0 || close(fd) != 0;
}

static int remove_path(void **state)
{
    (void)state;
    return remove(path);
}

static void same_text(const char *a, const char *b)
{
    assert_int_equal(!a, !b);
    if (a)
        assert_string_equal(a, b);
}

static void same_names(const struct topo *a, const struct topo *b)
{
    for (int l = 0; l < LEVEL_COUNT; l++) {
        assert_int_equal(a->group[l].count, b->group[l].count);
        for (int i = 0; i < a->group[l].count; i++)
            assert_string_equal(a->group[l].name[i], b->group[l].name[i]);
    }
    assert_int_equal(a->tiers, b->tiers);
    for (int i = 0; i < a->tiers; i++) {
        assert_string_equal(a->tier[i].name, b->tier[i].name);
        assert_int_equal(a->tier[i].same, b->tier[i].same);
    }
    assert_int_equal(a->unseens, b->unseens);
    for (int i = 0; i < a->unseens; i++) {
        assert_string_equal(a->unseen[i].what, b->unseen[i].what);
        assert_string_equal(a->unseen[i].why, b->unseen[i].why);
    }
    same_text(a->fabric, b->fabric);
}

static void same_endpoints(const struct topo *a, const struct topo *b)
{
    assert_int_equal(a->endpoints, b->endpoints);
    for (int i = 0; i < a->endpoints; i++) {
        const struct endpoint *x = &a->endpoint[i], *y = &b->endpoint[i];
        assert_memory_equal(&x->place, &y->place, sizeof(x->place));
        assert_memory_equal(x->source, y->source, sizeof(x->source));
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->local, y->local);
        assert_int_equal(x->numa, y->numa);
        assert_int_equal(x->nic, y->nic);
        assert_string_equal(x->busid, y->busid);
        assert_string_equal(x->model, y->model);
    }
}

static void same_topo(const struct topo *a, const struct topo *b)
{
    assert_int_equal(a->hosts, b->hosts);
    for (int i = 0; i < a->hosts; i++) {
        assert_string_equal(a->host[i].name, b->host[i].name);
        same_text(a->host[i].cpu, b->host[i].cpu);
        assert_int_equal(a->host[i].sockets, b->host[i].sockets);
        assert_int_equal(a->host[i].cores, b->host[i].cores);
        assert_int_equal(a->host[i].endpoints, b->host[i].endpoints);
        assert_true(a->host[i].memory_bytes == b->host[i].memory_bytes);
        assert_string_equal(a->host[i].gdr, b->host[i].gdr);
    }
    assert_int_equal(a->nics, b->nics);
    for (int i = 0; i < a->nics; i++) {
        const struct nic *x = &a->nic[i], *y = &b->nic[i];
        assert_int_equal(x->host, y->host);
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->busid, y->busid);
        assert_int_equal(x->layer, y->layer);
        assert_true(x->rate_Bps == y->rate_Bps);
        assert_int_equal(x->up, y->up);
        assert_int_equal(x->rdma, y->rdma);
        assert_int_equal(x->numa, y->numa);
        assert_int_equal(x->source, y->source);
        assert_string_equal(x->guid, y->guid);
        assert_string_equal(x->gid, y->gid);
        assert_string_equal(x->gid_type, y->gid_type);
        assert_int_equal(x->gid_index, y->gid_index);
        assert_string_equal(x->board, y->board);
        assert_string_equal(x->netdev, y->netdev);
        assert_string_equal(x->leaf, y->leaf);
        assert_string_equal(x->leaf_port, y->leaf_port);
        assert_int_equal(x->leaf_source, y->leaf_source);
        assert_int_equal(x->rail, y->rail);
        assert_int_equal(x->plane, y->plane);
        assert_int_equal(x->use, y->use);
        assert_int_equal(x->rail_source, y->rail_source);
        assert_int_equal(x->plane_source, y->plane_source);
        assert_int_equal(x->use_source, y->use_source);
        assert_string_equal(x->why, y->why);
    }
    same_endpoints(a, b);
    same_names(a, b);
}

/* Two hosts that differ in everything a file can hold. */
static void make_mixed(struct topo *t)
{
    topo_init(t);
    int a = topo_add_host(t, "login"), b = topo_add_host(t, "gpu-1");
    t->host[a].cpu = strdup("AMD EPYC 9654");
    t->host[a].sockets = 2;
    t->host[a].cores = 192;
    t->host[a].memory_bytes = 1623497637888.0;
    t->nic = calloc(8, sizeof(*t->nic));
    t->nics = 2;
    struct nic *n = &t->nic[0];
    nic_init(n, b);
    strcpy(n->name, "mlx5_0");
    strcpy(n->busid, "0000:1b:00.0");
    n->layer = LINK_INFINIBAND;
    n->rate_Bps = 5e10;
    n->up = n->rdma = true;
    n->numa = 1;
    n->source = SOURCE_SYSFS;
    strcpy(n->guid, "0xb8e924030091a2c0");
    strcpy(n->gid, "fe80::b8e9:2403:91:a2c0");
    strcpy(n->gid_type, "IB");
    n->gid_index = 0;
    strcpy(n->board, "MT_0000000838");
    strcpy(n->netdev, "ib0");
    strcpy(n->leaf, "leaf-03");
    strcpy(n->leaf_port, "17/1");
    n->leaf_source = SOURCE_IBNET;
    n->rail = 3;
    n->plane = 1;
    n->use = NIC_COMPUTE;
    n->rail_source = SOURCE_IBNET;
    n->plane_source = SOURCE_NCCL;
    n->use_source = SOURCE_USER;
    strcpy(n->why, "near GPU 0");
    nic_init(&t->nic[1], a);
    strcpy(t->nic[1].name, "eth0");
    t->nic[1].layer = LINK_ETHERNET;
    t->nic[1].source = SOURCE_HWLOC;
    strcpy(t->host[b].gdr, "nvidia_peermem 570.86.15");
    int id = topo_add_endpoint(t, b, ENDPOINT_GPU);
    t->endpoint[id].nic = 0;
    t->endpoint[id].numa = 1;
    strcpy(t->endpoint[id].busid, "0000:19:00.0");
    strcpy(t->endpoint[id].model, "NVIDIA H100");
    t->endpoint[id].place.at[LEVEL_RACK] = topo_add_group(t, LEVEL_RACK, "reihe 4 \"süd\"");
    t->endpoint[id].source[LEVEL_RACK] = SOURCE_USER;
    topo_add_endpoint(t, a, ENDPOINT_CPU);
    topo_unseen(t, "NVLink domain", "no NVIDIA driver");
    topo_default_tiers(t);
}

TEST(what_is_saved_is_loaded_again)
{
    struct topo a, b;
    struct err err;

    make_mixed(&a);
    assert_int_equal(topo_save(&a, path, &err), 0);
    if (topo_load(&b, path, &err) < 0)
        fail_msg("%s", err.text);
    same_topo(&a, &b);
    topo_free(&a);
    topo_free(&b);
}

TEST(the_golden_file_is_the_preset_that_it_was_made_from)
{
    struct topo a, b;
    struct fabric f;
    struct err err;

    assert_int_equal(fabric_load(&f, "rtxpro6000-100gbe", &err), 0);
    assert_int_equal(fabric_topo(&f, 0, false, &a, &err), 0);
    if (topo_load(&b, golden, &err) < 0)
        fail_msg("%s", err.text);
    same_topo(&a, &b);
    fabric_free(&f);
    topo_free(&a);
    topo_free(&b);
}

/* The table of GPUs in its file; a new reference. */
static json_t *saved_gpus(struct topo *t)
{
    struct err err;

    assert_int_equal(topo_save(t, path, &err), 0);
    json_t *file = json_load_file(path, 0, NULL);
    json_t *gpus = json_incref(json_object_get(file, gpu_rows.key));
    json_decref(file);
    return gpus;
}

TEST(rows_of_gpus_come_back)
{
    struct topo a, b, c;
    struct err err;

    if (topo_load(&a, "tests/golden/topology-gb300.json", &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(a.gpus, 4);
    assert_int_equal(a.endpoint[0].gpu, 0);
    a.gpu[1].down = 5;
    a.gpu[0].counted = true;
    a.gpu[2].path[0] = -1;
    assert_int_equal(topo_save(&a, path, &err), 0);
    if (topo_load(&b, path, &err) < 0)
        fail_msg("%s", err.text);
    same_topo(&a, &b);
    topo_copy(&c, &b);
    assert_int_equal(c.gpus, 4);
    json_t *x = saved_gpus(&a), *y = saved_gpus(&c);
    assert_int_equal(json_array_size(json_object_get(x, "rows")), 4);
    assert_true(json_equal(x, y));
    json_decref(x);
    json_decref(y);
    assert_int_equal(c.trials, 1);
    assert_int_equal(c.trial[0].allocate, 1);
    assert_int_equal(c.trial[0].import, 0);
    assert_string_equal(c.trial[0].why, "CUDA_ERROR_NOT_PERMITTED");
    assert_int_equal(b.gpu[1].down, 5);
    assert_true(b.gpu[0].counted && !b.gpu[1].counted);
    assert_int_equal(b.gpu[2].path[0], -1);
    topo_free(&a);
    topo_free(&b);
    topo_free(&c);
}

TEST(a_hundred_thousand_endpoints_stay_small_and_quick)
{
    struct topo a, b;
    struct fabric f;
    struct err err;
    struct stat st;

    assert_int_equal(fabric_load(&f, "gb200-nvl72", &err), 0);
    assert_int_equal(fabric_topo(&f, 1389, false, &a, &err), 0);
    clock_t start = clock(); /* of this process: others may have the core meanwhile */
    assert_int_equal(topo_save(&a, path, &err), 0);
    assert_int_equal(topo_load(&b, path, &err), 0);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);
    same_topo(&a, &b);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 20 << 20);
    fabric_free(&f);
    topo_free(&a);
    topo_free(&b);
}

/* One change to the golden file, and the words that must answer it. */
static const struct {
    const char *path, *value, *text;
} bad[] = {
    {"format", "\"x\"", "format is \"x\" where \"railgauge-topology\" is needed"},
    {"version", "2", "version 2 of railgauge-topology is not one of 1..1"},
    {"extra", "1", "extra"},
    {"hosts", NULL, "hosts"},
    {"provenance", "7", "\"provenance\" is not an object"},
    {"fabric", "\"a\\u0007b\"", "fabric: a control character (0x07) at position 1"},
    {"fabric", "\"\"", "fabric: a text of 0 characters where 1..255 are possible"},
    {"fabric", "5", "fabric: no text"},
    {"tiers", "[]", "tiers: 0 of them where 1..16 are possible"},
    {"tiers 0 same", "[]", "tiers[0]: \"same\" must be empty in the last tier and only there"},
    {"tiers 1 same", "[\"host\"]", "tiers[1]: \"same\" must be empty in the last tier"},
    {"tiers 0 same 0", "\"room\"", "tiers[0]: same[0] \"room\" is not host, domain, leaf"},
    {"tiers 0 name", "\"\"", "tiers[0]: a text of 0 characters where 1..23"},
    {"unseen", "{}", "\"unseen\" is not a list"},
    {"unseen 0 why", "3", "unseen[0]"},
    {"levels cabinet", "[]", "levels: unknown key: cabinet"},
    {"levels rack", "\"r\"", "levels.rack is not a list of at most 1048576 names"},
    {"levels rack", "[\"a\", \"a\"]", "levels.rack[1]: \"a\" is there twice"},
    {"levels rack 0", "4", "levels.rack[0]: no text"},
    {"levels leaf", "[]", "endpoints.rows[0]: leaf is 0, but there are none"},
    {"hosts columns 1", "\"model\"", "hosts: columns[1] is \"model\" where \"cpu\" is needed"},
    {"hosts rows", "4", "hosts: rows is not a list"},
    {"hosts rows 1", "[\"b\"]", "hosts.rows[1]: 1 cells where 5 are needed"},
    {"hosts rows 1 0", "\"r00n00\"", "hosts.rows[1]: name is \"r00n00\", there twice"},
    {"hosts rows 1 0", "null", "hosts.rows[1]: name is null, not a text"},
    {"hosts rows 0 2", "-1", "hosts.rows[0]: sockets is -1, not a whole number of 0..65534"},
    {"hosts rows 0 4", "-1.5", "hosts.rows[0]: memory_bytes is -1.5, not a positive number"},
    {"nics rows 0 0", "2", "nics.rows[0]: host is 2, not a whole number of 0..1"},
    {"nics rows 0 1", "\"a name of more than thirty-one characters\"", "nics.rows[0]: name is"},
    {"nics rows 0 3", "\"fddi\"", "nics.rows[0]: link_layer is \"fddi\", not a known word"},
    {"nics rows 0 4", "\"fast\"", "nics.rows[0]: rate_Bps is \"fast\", not a positive number"},
    {"nics rows 0 5", "1", "nics.rows[0]: up is 1, not true or false"},
    {"nics rows 1 8", "\"rumour\"", "nics.rows[1]: source is \"rumour\", not a known word"},
    {"endpoints rows 3 0", "9", "endpoints.rows[3]: host is 9, not a whole number of 0..1"},
    {"endpoints rows 3 0", "null", "endpoints.rows[3]: host is null, not a whole number of 0..1"},
    {"endpoints rows 3 3", "1", "endpoints.rows[3]: rack is 1, not a whole number of 0..0 or"},
    {"endpoints rows 3 3", "null", "endpoints.rows[3]: rack is null, which does not fit its"},
    {"endpoints rows 3 5", "1.5", "endpoints.rows[3]: local is 1.5, not a whole number"},
    {"endpoints rows 3 6", "\"tpu\"", "endpoints.rows[3]: kind is \"tpu\", not a known word"},
    {"endpoints rows 3 8", "1", "endpoints.rows[3]: nic is 1, a NIC of another host"},
    {"endpoints rows 3 8", "99999999999", "nic is 99999999999, not a whole number of 0..1"},
    {"endpoints rows 3 9", "\"0000:00:00.0 and more\"", "endpoints.rows[3]: busid is"},
    {"endpoints rows 3 10", "1", "endpoints.rows[3]: model is 1, not a whole number of 0..0"},
    {"endpoints rows 3 11", "5", "endpoints.rows[3]: source is 5, not a whole number of 0..0"},
    {"endpoints rows 3", "{}", "endpoints.rows[3]: 0 cells where 12 are needed"},
    {"models 0", "[]", "endpoints.rows[0]: model is 0, and that entry of \"models\" is no text"},
    {"sources 0 1", "\"spy\"", "an entry of \"sources\" with unknown words"},
    {"sources 0", "[]", "an entry of \"sources\" with unknown words"},
};

static void change(json_t *root, const char *where, const char *value)
{
    char *copy = strdup(where), *save, *key = strtok_r(copy, " ", &save), *next;
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

TEST(every_bad_value_is_refused_with_its_place)
{
    struct topo t;
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *root = json_load_file(golden, 0, NULL);
        assert_non_null(root);
        json_object_del(root, "checksum");
        change(root, bad[i].path, bad[i].value);
        assert_int_equal(json_dump_file(root, path, 0), 0);
        json_decref(root);
        if (topo_load(&t, path, &err) == 0)
            fail_msg("%s = %s was accepted", bad[i].path, bad[i].value);
        assert_int_equal(err.code, EXIT_DATA);
        assert_int_equal(t.endpoints, 0);
        if (!strstr(err.text, bad[i].text) || strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("%s = %s: \"%s\" without \"%s\"", bad[i].path, bad[i].value, err.text,
                     bad[i].text);
    }
}

TEST(text_that_is_no_json_is_refused_with_its_line)
{
    static const char text[] = "{\"format\": \"railgauge-topology\",\n \"version\": 1,\n oops}";
    struct topo t;
    struct err err;

    assert_int_equal(topo_parse(&t, text, strlen(text), "t.json", &err), -1);
    assert_int_equal(strncmp(err.text, "t.json:3: ", 10), 0);
    assert_int_equal(topo_load(&t, "/nonexistent.json", &err), -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_int_equal(topo_save(&t, "/nonexistent/t.json", &err), -1);
    assert_int_equal(err.code, EXIT_IO);
}

TEST_GROUP(make_path, remove_path)
