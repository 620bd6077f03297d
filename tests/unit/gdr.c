/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr.c - how NICs reach the memory of GPUs, by the files that tell it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/mem.h"
#include "spawn.h"
#include "topo/topo.h"

#define OPEN_DRIVER                                                                                \
    "/proc/driver/nvidia/version: NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "       \
    "570.86.15  Release Build\n"
#define CLOSED_DRIVER                                                                              \
    "/proc/driver/nvidia/version: NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104  "       \
    "Release Build\n"
#define KERNEL(release) "/proc/sys/kernel/osrelease: " release "\n"
#define PEERMEM "/sys/module/nvidia_peermem/version: 570.86.15\n"

static const struct {
    const char *machine, *gdr, *why; /* why: part of it; NULL: nothing is said */
} row[] = {
    {"/proc/other: 1\n", "", NULL},
    {OPEN_DRIVER KERNEL("6.8.0-31-generic"), "dma-buf possible", "only a transfer proves"},
    {OPEN_DRIVER KERNEL("5.12.0"), "dma-buf possible", "only a transfer proves"},
    {OPEN_DRIVER KERNEL("5.4.0-200-generic"), "none", NULL},
    {CLOSED_DRIVER KERNEL("6.8.0-31-generic"), "none", NULL},
    {OPEN_DRIVER, "", "the kernel's version, which is not told"},
    {OPEN_DRIVER KERNEL("6.8.0") PEERMEM, "nvidia_peermem 570.86.15", "only a transfer proves"},
    {CLOSED_DRIVER PEERMEM, "nvidia_peermem 570.86.15", "nvidia_peermem 570.86.15 is loaded"},
    {CLOSED_DRIVER "/sys/kernel/mm/memory_peers/nv_mem/version: 1.3\n", "nv_peer_mem 1.3",
     "is loaded"},
    {CLOSED_DRIVER "/sys/kernel/mm/memory_peers/nv_mem_nc/version: 1.0\n", "nv_peer_mem (nc) 1.0",
     "is loaded"},
    {CLOSED_DRIVER
     "/sys/module/nvidia_peermem/version: \\033[31m570012345678901234567890123456789\n",
     "nvidia_peermem ?[31m5700123456789012345", "is loaded"},
};

static const char *why(const struct topo *t)
{
    for (int i = 0; i < t->unseens; i++)
        if (!strcmp(t->unseen[i].what, "GPUDirect RDMA"))
            return t->unseen[i].why;
    return NULL;
}

TEST(every_state_is_told_for_what_it_proves)
{
    char folder[] = "/tmp/railgauge-gdr-XXXXXX";

    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *file = mem_printf("%s/m.txt", folder), *root = mem_printf("%s/%zu", folder, i);
        FILE *f = fopen(file, "w");
        struct topo t;
        struct err err;
        assert_non_null(f);
        fputs(row[i].machine, f);
        fclose(f);
        spawn((const char *[]){"sh", "tests/machines/unpack.sh", file, root, NULL});
        topo_init(&t);
        assert_int_equal(topo_read_gdr(&t, topo_add_host(&t, "m"), root, &err), 0);
        assert_string_equal(t.host[0].gdr, row[i].gdr);
        assert_int_equal(!why(&t), !row[i].why);
        if (row[i].why && !strstr(why(&t), row[i].why))
            fail_msg("row %zu: \"%s\" where \"%s\" is expected", i, why(&t), row[i].why);
        assert_int_equal(topo_read_gdr(&t, 1, root, &err), -1);
        assert_string_equal(err.text, "no host 1");
        topo_free(&t);
        free(file);
        free(root);
    }
    spawn((const char *[]){"rm", "-r", folder, NULL});
}
