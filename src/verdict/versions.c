/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/versions.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/nic.h"

static const char not_told[] = "not told";

static void set(struct versions *v, int campaign, const char *what, const char *value)
{
    int i = 0;

    while (i < v->rows && strcmp(v->row[i].what, what) != 0)
        i++;
    if (i == v->rows) {
        struct version_row *r = &MEM_PUSH(v->row, v->rows);
        *r = (struct version_row){mem_strdup(what),
                                  mem_calloc((size_t)v->campaigns, sizeof(char *))};
        for (int k = 0; k < v->campaigns; k++)
            r->value[k] = mem_strdup(not_told);
    }
    free(v->row[i].value[campaign]);
    v->row[i].value[campaign] = mem_strdup(value);
}

/* --- devices: number with each value --- */

struct tally {
    const char *what, *value;
    int count;
};

struct tallies {
    struct tally *tally;
    int tallies;
};

static void count(struct tallies *t, const char *what, const char *value)
{
    if (!*value)
        return;
    for (int i = 0; i < t->tallies; i++)
        if (!strcmp(t->tally[i].what, what) && !strcmp(t->tally[i].value, value)) {
            t->tally[i].count++;
            return;
        }
    MEM_PUSH(t->tally, t->tallies) = (struct tally){what, value, 1};
}

static int by_count(const void *x, const void *y)
{
    const struct tally *a = x, *b = y;
    int order = strcmp(a->what, b->what);

    order = order ? order : (a->count < b->count) - (a->count > b->count);
    return order ? order : strcmp(a->value, b->value);
}

enum { VALUES_SHOWN = 4 };

/* Add the values of one noun from row `first` on.  Returns the row behind them. */
static int tell(struct versions *v, int campaign, const struct tallies *t, int first)
{
    const struct tally *all = t->tally;
    char *text = NULL;
    int i = first;

    for (; i < t->tallies && !strcmp(all[i].what, all[first].what); i++)
        if (i - first < VALUES_SHOWN)
            text =
                mem_append(text, "%s%s on %d", i > first ? ", " : "", all[i].value, all[i].count);
    if (i - first > VALUES_SHOWN)
        text = mem_append(text, " and %d more", i - first - VALUES_SHOWN);
    set(v, campaign, all[first].what, i - first > 1 ? text : all[first].value);
    free(text);
    return i;
}

static void devices(struct versions *v, int campaign, const struct topo *t)
{
    struct tallies all = {0};
    char **noun = NULL;
    int nouns = 0;

    for (int i = 0; i < t->gpus; i++)
        count(&all, "GPU driver", t->gpu[i].driver);
    for (int i = 0; i < t->nics; i++) {
        const struct nic *n = &t->nic[i];
        MEM_PUSH(noun, nouns) =
            *n->board ? mem_printf("NIC firmware, %s", n->board) : mem_strdup("NIC firmware");
        count(&all, noun[nouns - 1], n->firmware);
        count(&all, "NIC driver", n->driver);
    }
    if (all.tallies)
        qsort(all.tally, (size_t)all.tallies, sizeof(*all.tally), by_count);
    for (int i = 0; i < all.tallies;)
        i = tell(v, campaign, &all, i);
    for (int i = 0; i < nouns; i++)
        free(noun[i]);
    free(noun);
    free(all.tally);
}

/* --- whole campaign --- */

/* Add the provenance's texts, except time, place and command of the start. */
static void provenance(struct versions *v, int campaign, json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach(from, key, value)
    {
        if (json_is_string(value) && strcmp(key, "host") != 0 && strcmp(key, "time_utc") != 0)
            set(v, campaign, key, json_string_value(value));
    }
}

void versions_list(struct versions *v, const struct campaign *const *c, int n)
{
    *v = (struct versions){.campaigns = n};
    for (int k = 0; k < n; k++) {
        devices(v, k, c[k]->topo);
        provenance(v, k, c[k]->matrix->provenance);
    }
}

void versions_free(struct versions *v)
{
    for (int i = 0; i < v->rows; i++) {
        for (int k = 0; k < v->campaigns; k++)
            free(v->row[i].value[k]);
        free(v->row[i].value);
        free(v->row[i].what);
    }
    free(v->row);
    *v = (struct versions){0};
}
