/* SPDX-License-Identifier: BSD-3-Clause */
/* smi_topo.c - nvidia-smi topo -m as it comes out of a terminal, a log or a ticket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/mnnvl.h"
#include "topo/sources/sources.h"

#define FOLDER "tests/machines/smi-topo/"

static void parse(struct topo *t, const char *text)
{
    struct err err = {0};

    topo_init(t);
    if (smi_topo_parse(t, topo_add_host(t, "n1"), text, strlen(text), "f", &err) < 0)
        fail_msg("%s", err.text);
}

static char *load(const char *name)
{
    char *path = mem_printf(FOLDER "%s", name), *text;
    struct err err;
    size_t len;

    if (file_read(&text, &len, path, 1 << 20, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    return text;
}

static void same_facts(const struct topo *a, const struct topo *b)
{
    assert_int_equal(a->gpus, b->gpus);
    assert_int_equal(a->nics, b->nics);
    assert_int_equal(a->endpoints, b->endpoints);
    for (int i = 0; i < a->gpus; i++)
        assert_memory_equal(&a->gpu[i], &b->gpu[i], sizeof(a->gpu[i]));
    for (int i = 0; i < a->endpoints; i++) {
        assert_int_equal(a->endpoint[i].nic, b->endpoint[i].nic);
        assert_int_equal(a->endpoint[i].numa, b->endpoint[i].numa);
    }
}

TEST(a_board_with_switches_has_links_paths_and_nearest_nics)
{
    char *text = load("hgx-h100-8gpu-8nic.txt");
    struct topo t;

    parse(&t, text);
    assert_int_equal(t.gpus, 8);
    for (int i = 0; i < 8; i++) {
        const struct gpu *g = &t.gpu[i];
        assert_int_equal(g->links, 18);
        assert_int_equal(g->remotes, 1);
        assert_int_equal(g->remote[0].kind, LINK_END_SWITCH);
        assert_int_equal(g->paths, 8);
        assert_int_equal(g->path[i], PATH_SELF);
        assert_int_equal(g->path[(i + 1) % 8], -1); /* the table tells of NVLink there */
        assert_int_equal(t.endpoint[i].nic, i);
        assert_int_equal(t.endpoint[i].numa, i / 4);
        assert_int_equal(t.endpoint[i].source[LEVEL_DOMAIN], SOURCE_SMI);
    }
    assert_string_equal(t.nic[7].name, "mlx5_7");
    assert_int_equal(t.nic[7].source, SOURCE_SMI);
    assert_true(t.nic[7].rdma && t.nic[7].rate_Bps == 0);
    topo_free(&t);
    free(text);
}

TEST(what_logs_do_to_the_table_changes_nothing)
{
    char *good = load("hgx-h100-8gpu-8nic.txt"), *ansi = load("hgx-h100-8gpu-8nic-ansi.txt");
    char *blanks = mem_strdup(good), *glued = mem_calloc(strlen(good) + 1, 1), *to = glued;
    struct topo a, b;

    parse(&a, good);
    parse(&b, ansi);
    same_facts(&a, &b);
    topo_free(&b);
    for (char *c = blanks; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    parse(&b, blanks);
    same_facts(&a, &b);
    topo_free(&b);
    char *mail = mem_calloc(3 * strlen(good) + 3, 1), *end = mail;
    for (const char *c = good; *c; c++) { /* quoted */
        if (c == good || c[-1] == '\n')
            end = stpcpy(end, "> ");
        *end++ = *c;
    }
    assert_int_equal(strncmp(mail, "> ", 2), 0);
    parse(&b, mail);
    same_facts(&a, &b);
    topo_free(&b);
    free(mail);
    for (const char *c = good; *c; c++) /* "NODE\tNODE" as "NODENODE" */
        if (*c != '\t' || c - good < 4 || strncmp(c - 4, "NODE", 4) != 0 ||
            (strncmp(c + 1, "NODE", 4) != 0 && strncmp(c + 1, "PIX", 3) != 0))
            *to++ = *c;
    assert_non_null(strstr(glued, "NODENODE"));
    parse(&b, glued);
    same_facts(&a, &b);
    topo_free(&b);
    topo_free(&a);
    free(good);
    free(ansi);
    free(blanks);
    free(glued);
}

/* Every row of the table broken at each of its blanks in turn, as mail programs do. */
TEST(rows_may_be_broken)
{
    char *good = load("hgx-h100-8gpu-8nic.txt"), *end = strstr(good, "\nGPU3");
    struct topo a, b;

    parse(&a, good);
    assert_non_null(end);
    end = strchr(end + 1, '\n');
    for (char *c = strstr(good, "\nGPU3") + 6; c < end; c++) {
        if (*c != '\t' || c[1] == '\t' || c[1] == '\n' || strncmp(c + 1, "N/A", 3) == 0)
            continue;
        char *broken = mem_printf("%.*s\n%s", (int)(c - good), good, c + 1);
        parse(&b, broken);
        same_facts(&a, &b);
        topo_free(&b);
        free(broken);
    }
    topo_free(&a);
    free(good);
}

/* What the driver leaves out (a GPU that fell off the bus, or is another container's) leaves a gap. */
TEST(gaps_in_the_numbers_stay)
{
    static const char text[] = "\tGPU0\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\n"
                               "GPU0\t X \tNV18\tNV18\tPIX\t0-47\t0\n"
                               "GPU2\tNV18\t X \tNV18\tNODE\t0-47\t0\n"
                               "GPU3\tNV18\tNV18\t X \tSYS\t48-95\t1\n"
                               "NIC0\tPIX\tNODE\tSYS\t X \n";
    static const int number[] = {0, 2, 3}, numa[] = {0, 0, 1};
    struct topo t;

    parse(&t, text);
    assert_int_equal(t.endpoints, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t.endpoint[i].local, number[i]);
        assert_int_equal(t.gpu[t.endpoint[i].gpu].index, number[i]);
        assert_int_equal(t.endpoint[i].numa, numa[i]);
    }
    topo_free(&t);
}

/* A row that ends early goes on with its CPUs: the cells that it lacks are not told, the next rows
 * are read as they are. */
TEST(rows_may_end_early)
{
    static const char text[] = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
                               "GPU0\t X \tPHB\t0-47\t0\n"
                               "GPU1\tPHB\t X \tPIX\t48-95\t1\n"
                               "NIC0\tSYS\tPIX\t X \n";
    struct topo t;

    parse(&t, text);
    assert_int_equal(t.gpus, 2);
    assert_int_equal(t.gpu[0].path[1], PATH_PHB);
    assert_int_equal(t.endpoint[0].numa, 0);
    assert_int_equal(t.endpoint[1].numa, 1);
    assert_int_equal(t.endpoint[1].nic, 0);
    topo_free(&t);
}

TEST(across_sockets_nothing_is_near)
{
    char *text = load("gb200-tray-4gpu-6nic.txt");
    struct topo t;

    parse(&t, text);
    assert_int_equal(t.nics, 6);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t.endpoint[i].nic, -1);
        assert_int_equal(t.endpoint[i].numa, i / 2);
        assert_int_equal(t.gpu[i].links, 18);
    }
    topo_free(&t);
    free(text);
    text = load("rtxpro6000-8gpu-2epyc-2nic.txt");
    parse(&t, text);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(t.endpoint[i].nic, i / 4);
        assert_int_equal(t.gpu[i].links, -1); /* nobody's are in use: not told */
        assert_int_equal(t.gpu[i].path[(i + 1) % 4 + i / 4 * 4], PATH_NODE);
        assert_int_equal(t.gpu[i].path[(i + 4) % 8], PATH_SYS);
    }
    topo_free(&t);
    free(text);
    text = load("pcie-2gpu-phb.txt");
    parse(&t, text);
    assert_int_equal(t.gpu[0].path[1], PATH_PHB);
    assert_int_equal(t.nics, 0);
    topo_free(&t);
    free(text);
}

TEST(a_gpu_that_lost_its_links_stands_out)
{
    struct topo t;
    struct mnnvl m;

    parse(&t, "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
              "GPU0\t X \tNV18\tNODE\tNV18\t0-7\n"
              "GPU1\tNV18\t X \tNODE\tNV18\t0-7\n"
              "GPU2\tNODE\tNODE\t X \tSYS\t0-7\n"
              "GPU3\tNV18\tNV18\tSYS\t X \t0-7\n");
    assert_int_equal(t.gpu[1].links, 18);
    assert_int_equal(t.gpu[2].links, 0);
    assert_int_equal(t.gpu[2].path[3], PATH_SYS);
    mnnvl_judge(&m, &t, NULL, 0);
    assert_int_equal(m.host[0].verdict, MNNVL_BAD);
    assert_string_equal(m.host[0].why, "GPU 2: 0 NVLinks where others have 18");
    mnnvl_free(&m);
    topo_free(&t);
}

TEST(links_between_gpus_are_counted_one_by_one)
{
    struct topo t;

    parse(&t, "\tGPU0\tGPU1\tGPU2\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
              "GPU0\t X \tNV2\tNV1\tPIX\t0-7\t0\n"
              "GPU1\tNV2\t X \tSYS\tPHB\t0-7\t0\n"
              "GPU2\tNV1\tSYS\t X \n" /* the rest of the row is lost */
              "mlx5_0\tPIX\tPHB\tSYS\t X \n");
    assert_int_equal(t.gpu[0].links, 3);
    assert_int_equal(t.gpu[0].remotes, 2);
    assert_int_equal(t.gpu[0].remote[0].kind, LINK_END_GPU);
    assert_int_equal(t.gpu[0].remote[0].links, 2);
    assert_int_equal(t.gpu[2].links, 1);
    assert_int_equal(t.endpoint[1].nic, 0);
    assert_int_equal(t.endpoint[1].numa, 0);
    assert_int_equal(t.endpoint[2].numa, -1);
    assert_int_equal(t.endpoint[2].nic, -1);
    topo_free(&t);
}

TEST(a_table_that_cannot_be_trusted_is_refused)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        {"", "f: no header with GPU0"},
        {"No devices were found\n", "f: no header with GPU0"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNV1\n", "f: GPU1 has no row"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\t X \tNV1\n",
         "f:3: the row of GPU1 has its X in column 1"},
        {"\tGPU0\tGPU1\nGPU0\tNV1\tNV1\n", "f:2: the row of GPU0 has no X in column 1"},
        {"\tGPU0\nGPU0\t X \nGPU0\t X \n", "f:3: GPU0 has two rows"},
        {"\tGPU0\nGPU0\t X \nGPU7\tSYS\n", "f:3: row \"GPU7\" has no column"},
        {"\tGPU0\tGPU1\nGPU0\t X \tFOO\n", "f:2: \"FOO\" in the row of GPU0 is no path"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNV\n", "f:2: \"NV\" in the row of GPU0 is no path"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNODENODE\n", "f:2: \"NODENODE\" in the row of GPU0"},
        {"\tGPU99\nGPU99\t X \n", "f: GPU99 is more than the 32 GPUs of a host"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct err err = {0};
        struct topo t;
        topo_init(&t);
        int rc = smi_topo_parse(&t, topo_add_host(&t, "n1"), row[i].text, strlen(row[i].text), "f",
                                &err);
        assert_int_equal(rc, -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, row[i].why))
            fail_msg("\"%s\" where \"%s\" is expected", err.text, row[i].why);
        topo_free(&t);
    }
}
