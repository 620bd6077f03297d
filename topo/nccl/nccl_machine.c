/* SPDX-License-Identifier: BSD-3-Clause */
/* The graph itself, and the speeds that NCCL assumes for its links (src/graph/topo.h, topo.cc). */
#include "topo/nccl/nccl_machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void machine_join(struct machine *m, int a, int b, enum nccl_path_type type, double Bps,
                  bool one_way)
{
    struct machine_node *n = &m->node[a];
    int i = 0;

    while (i < n->links && (n->link[i].to != b || n->link[i].type != type))
        i++;
    if (i == n->links)
        MEM_PUSH(n->link, n->links) = (struct machine_link){.to = b, .type = (unsigned char)type};
    n->link[i].Bps += Bps;
    if (!one_way)
        machine_join(m, b, a, type, Bps, true);
}

void machine_free(struct machine *m)
{
    for (int i = 0; i < m->nodes; i++)
        free(m->node[i].link);
    free(m->node);
    memset(m, 0, sizeof(*m));
}

double machine_cpu_speed(const char *arch, const char *vendor, long long family, long long model)
{
    if (!arch)
        return 5000;
    if (!strncmp(arch, "arm64", 5))
        return 6;
    if (!strncmp(arch, "ppc64", 5))
        return 32;
    if (vendor && !strcmp(vendor, "AuthenticAMD"))
        return 16;
    if (vendor && !strcmp(vendor, "GenuineIntel"))
        return family != 6 ? 6 : model >= 0xcf ? 40 : model >= 0x8f ? 22 : model >= 0x55 ? 10 : 6;
    if (vendor && (!strcmp(vendor, "CentaurHauls") || !strcmp(vendor, "  Shanghai  ")))
        return family == 7 && model == 0x5b ? 9 : 6;
    return 5000;
}

/* The unit of the table is 100 Mb/s a lane; PCIe 3 is the default. */
double machine_pci_speed(const char *speed, long long width)
{
    static const struct {
        const char *begins;
        int rate;
    } gen[] = {{"2.5 GT/s", 15},       {"5 GT/s", 30},          {"8 GT/s", 60},
               {"16 GT/s", 120},       {"32 GT/s", 240},        {"5.0 GT/s PCIe", 30},
               {"8.0 GT/s PCIe", 60},  {"16.0 GT/s PCIe", 120}, {"32.0 GT/s PCIe", 240},
               {"64.0 GT/s PCIe", 480}};
    int rate = 60;

    for (size_t i = 0; speed && i < sizeof(gen) / sizeof(*gen); i++)
        if (!strncmp(speed, gen[i].begins, strlen(gen[i].begins)))
            rate = gen[i].rate;
    return (double)(width ? width : 16) * rate / 80;
}

int machine_broadcom(uint64_t device, int level)
{
    uint64_t id = device & ~0xfffull;

    return id == 0x1000c0101000a000ull                                 ? 4
           : id == (0x1000c03010000000ull | (unsigned)level * 0x1000u) ? 5
                                                                       : 0;
}

double machine_nvlink_speed(int sm)
{
    return sm >= 100 ? 40.1 : sm >= 90 ? 20.6 : sm == 86 ? 12 : sm >= 70 ? 20 : sm >= 60 ? 18 : 20;
}
