/* smi_table.h - the table of `nvidia-smi topo -m`, with tabs between its cells, and its legends.
 *
 *             GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity    GPU NUMA ID
 *     GPU0     X      NV18    PIX     0-47            0                N/A
 *
 * As it comes out of logs and tickets: the header underlined by escape codes, tabs turned into
 * blanks, cells glued together ("NODENODE"), cells missing at the end of a row.  A row whose X is
 * not in its own column cannot be trusted and is refused.  Codes: the legend that the command
 * prints, and SOC, the word of drivers of 2017 for SYS. */
#ifndef RG_SMI_TABLE_H
#define RG_SMI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { SMI_DEVICES = 128, SMI_NVLINKS = 1000 };

struct smi_table {
    struct smi_device {
        bool gpu;
        int number;    /* of the GPU; NIC0 or, up to release 515, -1 */
        char name[32]; /* a NIC's as the legend has it */
        bool seen;     /* has a row */
    } device[SMI_DEVICES];
    int devices;
    /* What a cell says: SMI_NVLINKS + NVLinks, enum gpu_path, or -1. */
    short cell[SMI_DEVICES][SMI_DEVICES];
    int numa[SMI_DEVICES];
};

/* Every GPU has a row afterwards; else EXIT_DATA with file, line, value and reason. */
int smi_table_parse(struct smi_table *b, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
