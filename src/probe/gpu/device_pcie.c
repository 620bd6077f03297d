/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PCIe link carries per direction after line coding: 8b/10b up to 5 GT/s, 128b/130b up to 32
 * GT/s, and 242 of 256 bytes of a flit from 64 GT/s on (PCI Express Base Specification 6.0, 4.2).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probe/gpu/device.h"

static const struct {
    double transfers, coding; /* GT/s of a lane; payload share */
} generation[] = {{2.5, 0.8},        {5, 0.8},          {8, 128.0 / 130},
                  {16, 128.0 / 130}, {32, 128.0 / 130}, {64, 242.0 / 256}};
enum { GENERATIONS = sizeof(generation) / sizeof(*generation) };

/* The number that a file of sysfs begins with: "32.0 GT/s PCIe", "16"; 0 when it says none. */
static double number_in(const char *root, const char *busid, const char *name)
{
    char *path = mem_printf("%s/sys/bus/pci/devices/%s/%s", root, busid, name);
    FILE *f = fopen(path, "r");
    char text[64] = "";

    if (f) {
        if (!fgets(text, sizeof(text), f))
            text[0] = '\0';
        fclose(f);
    }
    free(path);
    double v = strtod(text, NULL);
    return isfinite(v) && v > 0 && v < 1e4 ? v : 0;
}

static int generation_of(double transfers)
{
    for (int i = 0; i < GENERATIONS; i++)
        if (fabs(generation[i].transfers - transfers) < 0.1)
            return i;
    return -1;
}

double device_pcie(const char *root, const char *busid, char note[120])
{
    int most = generation_of(number_in(root, busid, "max_link_speed"));
    int now = generation_of(number_in(root, busid, "current_link_speed"));
    double lanes = number_in(root, busid, "max_link_width");
    double trained = number_in(root, busid, "current_link_width");

    note[0] = '\0';
    if (most < 0 || lanes < 1 || lanes > 32)
        return 0;
    if ((now >= 0 && now < most) || (trained > 0 && trained < lanes))
        snprintf(note, 120, "the PCIe link is trained at gen %d x%.0f of gen %d x%.0f", now + 1,
                 trained, most + 1, lanes);
    return generation[most].transfers * 1e9 / 8 * generation[most].coding * lanes;
}
