/* SPDX-License-Identifier: BSD-3-Clause */
/* One process plays the rank whose NCCL writes the log: what is set, what is read, what is removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

#include "base/file.h"
#include "base/mem.h"
#include "transport/nccl/nccl_readback.h"

static const char *const ours[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE",
                                   "NCCL_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE_RANK"};

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        unsetenv(ours[i]);
    return 0;
}

static void copy_file(const char *from, const char *to)
{
    char *text;
    size_t len;
    struct err err = {0};

    assert_int_equal(file_read(&text, &len, from, 1 << 20, &err), 0);
    FILE *f = fopen(to, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    fclose(f);
    free(text);
}

TEST_WITH(a_log_is_read_back, clean, NULL)
{
    struct nccl_readback *r;
    struct nccl_profile p;
    struct topo t;
    struct err err = {0};

    topo_init(&t);
    topo_add_endpoint(&t, topo_add_host(&t, "n1"), ENDPOINT_GPU);
    setenv("NCCL_DEBUG_SUBSYS", "COLL", 1);
    assert_int_equal(nccl_readback_open(&r, &world_solo, true, &err), 0);
    assert_string_equal(getenv("NCCL_DEBUG"), "INFO");
    assert_string_equal(getenv("NCCL_DEBUG_SUBSYS"), "INIT,GRAPH,NET,ENV,TUNING,COLL");
    assert_string_equal(getenv("NCCL_TOPO_DUMP_FILE_RANK"), "0");
    char *log = mem_strdup(getenv("NCCL_DEBUG_FILE"));
    char *xml = mem_strdup(getenv("NCCL_TOPO_DUMP_FILE"));
    assert_true(strncmp(log, "/proc/self/fd/", 14) == 0 && strncmp(xml, "/proc/self/fd/", 14) == 0);
    copy_file("tests/golden/nccl/2.19.log", log);
    copy_file("tests/golden/nccl/hgx-h200-8gpu-8cx7.xml", xml);
    assert_int_equal(nccl_readback_collect(r, &p, &t, &err), 0);
    assert_string_equal(p.version, "2.19.4+cuda12.2");
    assert_int_equal(p.links, 4);
    assert_int_equal(p.ranks, 1);
    assert_int_equal(p.rank[0].endpoint, 0);
    assert_int_equal(p.n_paths, 1);
    assert_int_equal(p.paths[0].gpus, 8);
    assert_int_equal(p.paths_comm[0], 0);
    assert_int_equal(p.where[0].gpu, 0); /* rank 0 of the dump is endpoint 0 */
    nccl_profile_free(&p);
    nccl_readback_close(r);
    assert_int_equal(access(log, F_OK), -1); /* its descriptor is closed, and it never had a name */
    assert_int_equal(access(xml, F_OK), -1);
    assert_null(getenv("NCCL_DEBUG_FILE"));
    assert_null(getenv("NCCL_DEBUG"));
    free(log);
    free(xml);
    topo_free(&t);
}

TEST_WITH(a_broken_dump_is_said, clean, NULL)
{
    struct nccl_readback *r;
    struct nccl_profile p;
    struct err err = {0};

    assert_int_equal(nccl_readback_open(&r, &world_solo, false, &err), 0);
    assert_string_equal(getenv("NCCL_DEBUG_SUBSYS"), "INIT,GRAPH,NET,ENV");
    copy_file("tests/golden/nccl/2.30.log", getenv("NCCL_DEBUG_FILE"));
    copy_file("tests/golden/nccl/2.30.log", getenv("NCCL_TOPO_DUMP_FILE"));
    assert_int_equal(nccl_readback_collect(r, &p, NULL, &err), 0);
    assert_int_equal(p.n_paths, 0);
    assert_int_equal(p.findings, 1);
    assert_true(strstr(p.finding[0], "rank 0: NCCL's topology dump cannot be read: ") ==
                p.finding[0]);
    nccl_profile_free(&p);
    nccl_readback_close(r);
}

/* A user who wants the log elsewhere gets it; then nothing can be read back, and that is said. */
TEST_WITH(the_users_file_is_his, clean, NULL)
{
    struct nccl_readback *r;
    struct nccl_profile p;
    struct err err = {0};

    setenv("NCCL_DEBUG_FILE", "/dev/null", 1);
    assert_int_equal(nccl_readback_open(&r, &world_solo, false, &err), 0);
    assert_string_equal(getenv("NCCL_DEBUG_FILE"), "/dev/null");
    assert_null(getenv("NCCL_TOPO_DUMP_FILE"));
    assert_int_equal(nccl_readback_collect(r, &p, NULL, &err), 0);
    assert_int_equal(p.lines, 0);
    assert_string_equal(p.finding[0],
                        "NCCL_DEBUG_FILE is set: what NCCL built cannot be read back");
    nccl_profile_free(&p);
    nccl_readback_close(r);
}

/* Files in memory: no folder for temporary files is needed, and nothing is in it. */
TEST_WITH(no_folder, clean, NULL)
{
    struct nccl_readback *r;
    struct err err = {0};

    setenv("TMPDIR", "/nonexistent", 1);
    assert_int_equal(nccl_readback_open(&r, &world_solo, false, &err), 0);
    nccl_readback_close(r);
    unsetenv("TMPDIR");
}

TEST_WITH(no_descriptor, clean, NULL)
{
    struct nccl_readback *r;
    struct err err = {0};
    struct rlimit old, none = {0};

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(nccl_readback_open(&r, &world_solo, false, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(err.code, EXIT_IO);
    assert_string_equal(err.text, "a file in memory for NCCL_DEBUG_FILE: Too many open files");
    assert_null(r);
}

static bool told(char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strstr(list[i], text))
            return true;
    return false;
}

/* The environment wins over a file; comments and unknown names are nobody's business. */
TEST_WITH(strays, clean, NULL)
{
    char root[] = "/tmp/railgauge-strays-XXXXXX";
    struct err err = {0};
    int n;

    assert_non_null(mkdtemp(root));
    char *etc = mem_printf("%s/etc", root), *conf = mem_printf("%s/etc/nccl.conf", root);
    assert_int_equal(file_mkdir(etc, &err), 0);
    FILE *f = fopen(conf, "we");
    fputs("# NCCL_NET=none\nNCCL_GRAPH_FILE=/opt/graph.xml\r\nNCCL_ALGO=Tree\nNCCL_SOCKET=1\n", f);
    fclose(f);
    setenv("NCCL_CONF_FILE", "/nonexistent", 1);
    setenv("NCCL_ALGO", "Ring", 1);
    char **list = nccl_env_set(root, &n);
    assert_true(told(list, n, "NCCL_ALGO=Ring: the algorithm is fixed for all sizes"));
    assert_true(told(list, n, "NCCL_GRAPH_FILE=/opt/graph.xml in "));
    assert_true(told(list, n, "rings and trees are not searched but taken from this file"));
    assert_false(told(list, n, "Tree"));
    assert_false(told(list, n, "NCCL_NET"));
    assert_false(told(list, n, "NCCL_SOCKET"));
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_CONF_FILE");
    unlink(conf);
    rmdir(etc);
    rmdir(root);
    free(conf);
    free(etc);
}
