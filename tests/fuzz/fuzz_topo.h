/* fuzz_topo.h - readers of files about hosts: refused with a reason, or what was read can be
 * written as topology.json and read again. */
#ifndef RG_FUZZ_TOPO_H
#define RG_FUZZ_TOPO_H

#include <string.h>

#include "fuzz.h"
#include "topo/groups.h"
#include "topo/sources/sources.h"

static inline void fuzz_again(struct topo *t)
{
    struct topo again;
    struct err e = {0};

    if (!t->tiers)
        topo_default_tiers(t);
    char *json = topo_text(t);
    if (topo_parse(&again, json, strlen(json), "again", &e) < 0) {
        fprintf(stderr, "%s\n%s\n", e.text, json);
        abort();
    }
    if (again.gpus != t->gpus || again.nics != t->nics || again.endpoints != t->endpoints)
        abort();
    topo_free(&again);
    free(json);
}

typedef int fuzz_reader(struct topo *t, int host, const char *text, size_t len, const char *path,
                        struct err *err);

/* A file about one host; the second reading meets what the first one left there. */
static inline void fuzz_topo(fuzz_reader *read, const uint8_t *data, size_t size, int times)
{
    struct topo t;
    struct err e = {0};
    char *text = malloc(size + 1);
    int rc = 0;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    topo_init(&t);
    int host = topo_add_host(&t, "host");
    for (int i = 0; i < times && rc == 0; i++)
        rc = read(&t, host, text, size, "fuzz", &e);
    if (rc < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        sources_done(&t);
        fuzz_again(&t);
    }
    topo_free(&t);
    free(text);
}

/* A file about many hosts: declared groups that can be applied.  No NUL follows the text. */
static inline void fuzz_declared(fuzz_reader *read, const uint8_t *data, size_t size)
{
    struct topo t;
    struct err e = {0};

    topo_init(&t);
    if (read(&t, -1, (const char *)data, size, "fuzz", &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        groups_add_hosts(&t);
        groups_apply(&t);
        if (t.hosts)
            fuzz_again(&t);
    }
    topo_free(&t);
}

#endif
