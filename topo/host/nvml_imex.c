/* SPDX-License-Identifier: BSD-3-Clause */
/* The channels that memory shared between hosts needs, as files. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "topo/host/nvml.h"

int nvml_imex_channels(const char *root)
{
    static const char folder[] = "/dev/nvidia-caps-imex-channels";
    char *dev = mem_printf("%s/dev", root), *path = mem_printf("%s%s", root, folder);
    int channels = access(dev, F_OK) == 0 ? 0 : -1;
    DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *one = mem_printf("%s/%s", path, e->d_name);
        if (!strncmp(e->d_name, "channel", 7) && access(one, R_OK | W_OK) == 0 && channels < 65535)
            channels++;
        free(one);
    }
    if (dir)
        closedir(dir);
    free(dev);
    free(path);
    return channels;
}

int nvml_imex_nodes(const char *root)
{
    char *path = mem_printf("%s/etc/nvidia-imex/nodes_config.cfg", root), line[512];
    FILE *f = fopen(path, "r");
    int nodes = f ? 0 : -1;

    while (f && fgets(line, sizeof(line), f)) {
        size_t skip = strspn(line, " \t\r\n");
        nodes += line[skip] && line[skip] != '#' && nodes < 65535;
    }
    if (f)
        fclose(f);
    free(path);
    return nodes;
}
