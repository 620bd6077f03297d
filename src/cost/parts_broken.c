/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/mem.h"
#include "cost/parts.h"

enum { ASKED_MIN = 2 };

/* --- the dead: nobody gets an answer, while those who asked answer others --- */

static void add_dead(struct fit *f, int endpoint)
{
    struct exception e = {.part = PART_ENDPOINT, .a = endpoint, .b = -1, .tier = -1};

    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].src == endpoint || f->sample[i].dst == endpoint) {
            if (f->sample[i].explained < 0)
                f->sample[i].explained = f->m->exceptions;
            e.evidence++;
        }
    MEM_PUSH(f->m->exception, f->m->exceptions) = e;
}

void parts_broken(struct fit *f)
{
    int n = f->m->topo.endpoints;
    int *answers = mem_calloc((size_t)n, sizeof(*answers)),
        *asked = mem_calloc((size_t)n, sizeof(*asked));
    bool anybody = false;

    for (int i = 0; i < f->samples; i++) {
        const struct sample *s = &f->sample[i];
        asked[s->src]++;
        asked[s->dst]++;
        answers[s->src] += s->residual > 0;
        answers[s->dst] += s->residual > 0;
        anybody = anybody || s->residual > 0;
    }
    for (int i = 0; i < n && anybody; i++)
        if (asked[i] >= ASKED_MIN && !answers[i])
            add_dead(f, i);
    free(answers);
    free(asked);
}
