/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_handle.c - try whether FABRIC handles work.  State, clique and IMEX channel can all look
 * right while memory cannot be shared between hosts.  Therefore: allocate, export, import, read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "kernels/kernels.h"
#include "topo/sources/host/mnnvl.h"
#include "transport/gpu/transport_copy_impl.h"

enum { BYTES = 4096 };

/* Sent as bytes between equal programs. */
struct fabric_offer {
    struct gpu_export handle;
    uint64_t word; /* value written there */
    int there;
};

static void fail(struct fabric_handle *t, const char *text)
{
    snprintf(t->why, sizeof(t->why), "%.95s", text);
}

static int put_word(const struct gpu_buffer *b, uint64_t *word, bool read, struct err *err)
{
    gpu_stream s;

    if (gpu_stream_open(&s, err) < 0)
        return -1;
    int rc = read ? gpu_memcpy(word, b->at, sizeof(*word), s, err)
                  : gpu_memcpy(b->at, word, sizeof(*word), s, err);
    if (rc == 0)
        rc = gpu_stream_wait(s, err);
    gpu_stream_close(s);
    return rc;
}

static void offer_own(struct fabric_handle *t, struct fabric_offer *o, struct gpu_buffer *own)
{
    struct err why = {0, ""};

    t->allocate = gpu_alloc(own, GPU_FABRIC, BYTES, &why) == 0;
    if (t->allocate)
        t->export =
            gpu_export(own, &o->handle, &why) == 0 && put_word(own, &o->word, false, &why) == 0;
    o->there = t->export == 1;
    if (!o->there)
        fail(t, why.text);
}

/* Import the memory of the left neighbour, if it has any. */
static void import_left(struct fabric_handle *t, const struct fabric_offer *left, int rank)
{
    struct gpu_buffer b = {.at = NULL};
    struct err why = {0, ""};
    uint64_t word = 0;

    if (!left->there)
        return;
    t->import = gpu_import(&b, &left->handle, &why) == 0 && put_word(&b, &word, true, &why) == 0;
    if (t->import && word != left->word) {
        t->import = 0;
        snprintf(why.text, sizeof(why.text),
                 "the memory of rank %d reads 0x%016llx where "
                 "0x%016llx was written",
                 rank, (unsigned long long)word, (unsigned long long)left->word);
    }
    gpu_free(&b);
    if (!t->import && !t->why[0])
        fail(t, why.text);
}

int fabric_handle_try(struct world *w, struct fabric_handle **each, struct err *err)
{
    struct fabric_offer mine = {.word = 0x5261696c67617567u + (unsigned)w->rank};
    struct fabric_handle t = {0, -1, -1, kernels_there(NULL), "", ""};
    struct gpu_buffer own = {.at = NULL};
    void *offers = NULL, *tries = NULL;
    int left = (w->rank + w->size - 1) % w->size;

    host_self(t.host, sizeof(t.host));
    offer_own(&t, &mine, &own);
    int rc = w->agree(w, world_trade(w, &mine, sizeof(mine), &offers, err), err);
    if (rc == 0 && w->size > 1)
        import_left(&t, (const struct fabric_offer *)offers + left, left);
    if (rc == 0) /* keep memory until no neighbour reads it */
        rc = w->agree(w, world_trade(w, &t, sizeof(t), &tries, err), err);
    gpu_free(&own);
    free(offers);
    *each = tries;
    return rc;
}

static int worse(int a, int b)
{
    return a == 0 || b == 0 ? 0 : a < b ? b : a;
}

struct mnnvl_trial *fabric_handle_trials(const struct topo *t, const struct fabric_handle *each,
                                         int *count)
{
    struct mnnvl_trial *out = mem_calloc((size_t)t->hosts + 1, sizeof(*out));

    *count = 0;
    for (int h = 0; h < t->hosts; h++)
        out[h] = (struct mnnvl_trial){.host = h, .allocate = -1, .export = -1, .import = -1};
    for (int i = 0; i < t->endpoints; i++) {
        struct mnnvl_trial *o = &out[t->endpoint[i].place.at[LEVEL_HOST]];
        o->allocate = worse(o->allocate, each[i].allocate);
        o->export = worse(o->export, each[i].export);
        o->import = worse(o->import, each[i].import);
        if (!o->why[0] && each[i].why[0])
            snprintf(o->why, sizeof(o->why), "%s", each[i].why);
    }
    for (int h = 0; h < t->hosts; h++)
        if (out[h].allocate >= 0)
            out[(*count)++] = out[h];
    return out;
}
