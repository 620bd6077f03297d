/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/host/reasons.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/host/gpu.h"

void reasons_add(struct reasons *r, const struct gpu *g, const char *fmt, ...)
{
    char text[REASON];
    va_list ap;
    int i = 0;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    while (i < r->count && strcmp(r->one[i].text, text) != 0)
        i++;
    if (i == REASONS)
        return;
    if (i == r->count) {
        r->one[i].gpus = 0;
        r->one[i].links = r->links;
        memcpy(r->one[r->count++].text, text, sizeof(text));
    }
    if (g && g->index < 64)
        r->one[i].gpus |= 1ULL << g->index;
}

/* "GPU 2: ", "GPUs 0, 1: ", "all 4 GPUs: ", "" */
static void name_gpus(char *text, size_t len, unsigned long long gpus, int all)
{
    int n = __builtin_popcountll(gpus), at = 0;

    if (len)
        *text = '\0';
    if (n > 1 && n == all) {
        snprintf(text, len, "all %d GPUs: ", n);
        return;
    }
    for (int i = 0; n && i < 64 && at < (int)len; i++)
        if (gpus >> i & 1)
            at += snprintf(text + at, len - (size_t)at, "%s%d",
                           at      ? ", "
                           : n > 1 ? "GPUs "
                                   : "GPU ",
                           i);
    if (n && at < (int)len)
        snprintf(text + at, len - (size_t)at, ": ");
}

char *reasons_text(const struct reasons *r, int gpus, bool links)
{
    char *all = NULL;

    for (int i = 0; i < r->count; i++) {
        char who[160];
        if (r->one[i].links && !links)
            continue;
        name_gpus(who, sizeof(who), r->one[i].gpus, gpus);
        char *longer = mem_printf("%s%s%s%s", all ? all : "", all ? "; " : "", who, r->one[i].text);
        free(all);
        all = longer;
    }
    return all;
}
