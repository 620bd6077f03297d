/* example.c - a scheduler's view: cc example.c $(pkg-config --cflags --libs railgauge) */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <railgauge.h>

int main(int argc, char **argv)
{
    struct railgauge *r;
    char why[256];

    if (argc != 4) {
        fprintf(stderr, "usage: example MATRIX HOST HOST\n");
        return 64;
    }
    if (railgauge_open(&r, argv[1], why) < 0) {
        fprintf(stderr, "example: %s\n", why);
        return 65;
    }
    int ids[2] = {railgauge_find(r, argv[2], 0), railgauge_find(r, argv[3], 0)};
    printf("%d endpoints\n", railgauge_count(r));
    printf("1 MiB: %.1f us\n", 1e6 * railgauge_pair(r, ids[0], ids[1], 1 << 20));
    printf("all_reduce of 1 MiB: %.1f us\n",
           1e6 * railgauge_collective(r, "all_reduce", ids, 2, 1 << 20));
    railgauge_close(r);
    return 0;
}
