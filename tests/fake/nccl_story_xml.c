/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE: small, but of the form of graph/xml.cc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_story.h"

static const struct card *card_of(const struct ncclComm *c, int rank)
{
    return &c->table->seat[rank].card;
}

static bool here(const struct ncclComm *c, int rank)
{
    return card_of(c, rank)->host_hash == c->self.host_hash;
}

static void bus_text(char text[16], uint64_t bus)
{
    snprintf(text, 16, "%04x:%02x:%02x.%x", (unsigned)(bus >> 20) & 0xffff,
             (unsigned)(bus >> 12) & 0xff, (unsigned)(bus >> 4) & 0xff, (unsigned)bus & 0xf);
}

static void write_gpu(FILE *f, const struct ncclComm *c, int rank)
{
    char bus[16], other[16];

    bus_text(bus, card_of(c, rank)->bus);
    fprintf(f,
            "    <pci busid=\"%s\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2335\" "
            "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n",
            bus);
    fprintf(f, "      <gpu dev=\"%d\" sm=\"90\" rank=\"%d\" gdr=\"1\">\n",
            card_of(c, rank)->nvml_device, rank);
    for (int r = 0; r < c->ranks; r++)
        if (r != rank && here(c, r) && !strcmp(story_path(c, rank, r), "NVL")) {
            bus_text(other, card_of(c, r)->bus);
            fprintf(f, "        <nvlink target=\"%s\" count=\"18\" tclass=\"0x030200\"/>\n", other);
        }
    fputs("      </gpu>\n    </pci>\n", f);
}

static void write_nic(FILE *f, int i)
{
    const char *text = story_profile()->nic[i];
    int name = (int)strcspn(text, ":");

    fprintf(f,
            "    <pci busid=\"0000:%02x:00.0\" class=\"0x020700\" vendor=\"0x15b3\" "
            "device=\"0x1021\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n",
            0x20 + i);
    fprintf(f,
            "      <nic>\n        <net name=\"%.*s\" dev=\"%d\" latency=\"0.000000\" "
            "speed=\"400000\" port=\"1\" guid=\"0x%x\" maxconn=\"131072\" gdr=\"1\"/>\n",
            name, text, i, 0x1000 + i);
    fputs("      </nic>\n    </pci>\n", f);
}

static void write_topo(FILE *f, const struct ncclComm *c)
{
    fputs("<system version=\"1\">\n  <cpu numaid=\"0\" affinity=\"ffffffff\" arch=\"x86_64\" "
          "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n",
          f);
    for (int r = 0; r < c->ranks; r++)
        if (here(c, r))
            write_gpu(f, c, r);
    for (int i = 0; i < story_profile()->nics; i++)
        write_nic(f, i);
    fputs("  </cpu>\n</system>\n", f);
}

static void write_graph(FILE *f, const struct ncclComm *c, enum story_graph g, int pattern)
{
    const struct story_profile *p = story_profile();
    int channels = g == STORY_NVLS ? c->profile->nvls : c->profile->channels;
    bool inter = c->profile->nodes > 1;

    fprintf(f,
            "  <graph id=\"%d\" pattern=\"%d\" crossnic=\"0\" nchannels=\"%d\" "
            "speedintra=\"%g\" speedinter=\"%g\" latencyinter=\"0\" typeintra=\"%s\" "
            "typeinter=\"%s\" samechannels=\"%d\">\n",
            g == STORY_NVLS ? 3 : (int)g, pattern, channels, p->bw[g].intra,
            inter ? p->bw[g].inter : 0.0, p->bw[g].type_intra, inter ? p->bw[g].type_inter : "PIX",
            g != STORY_NVLS);
    for (int i = 0; i < channels; i++) {
        fputs("    <channel>\n", f);
        if (inter)
            fputs("      <net dev=\"0\"/>\n", f);
        for (int r = 0; r < c->ranks; r++)
            if (here(c, c->profile->order[r]))
                fprintf(f, "      <gpu dev=\"%d\"/>\n",
                        card_of(c, c->profile->order[r])->nvml_device);
        if (inter)
            fputs("      <net dev=\"0\"/>\n", f);
        fputs("    </channel>\n", f);
    }
    fputs("  </graph>\n", f);
}

static void write_graphs(FILE *f, const struct ncclComm *c)
{
    fputs("<graphs version=\"1\">\n", f);
    write_graph(f, c, STORY_RING, 4);
    write_graph(f, c, STORY_TREE, 1);
    if (c->profile->nvls)
        write_graph(f, c, STORY_NVLS, 5);
    fputs("</graphs>\n", f);
}

static void dump(struct ncclComm *c, const char *variable, const char *rank,
                 void (*write)(FILE *, const struct ncclComm *))
{
    const char *path = getenv(variable);
    FILE *f;

    if (!path || c->rank != story_param(rank, 0))
        return;
    log_info(LOG_ENV, "%s set by environment to %s", variable, path);
    f = fopen(path, "w");
    if (!f) {
        log_warn("Unable to open %s, not dumping topology.", path);
        return;
    }
    write(f, c);
    fclose(f);
}

void story_dump(struct ncclComm *c)
{
    dump(c, "NCCL_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE_RANK", write_topo);
    dump(c, "NCCL_GRAPH_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE_RANK", write_graphs);
}
