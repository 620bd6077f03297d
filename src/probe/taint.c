/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/taint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "topo/host/nvml.h"

static const char prefix[] = "tainted: ";

/* A look costs as much as a small point on a GPU with 18 NVLinks.  Points follow each other
 * closely, so the look that ended one begins the next, unless it is older than this. */
static const double fresh = 0.02;

enum { TOLD_MAX = 8 };

struct taint {
    struct nvml *nvml;
    int gpu;
    double seen; /* when `last` was taken */
    int xid;     /* the last one since it was opened */
    struct nvml_counts first, before, last;
};

static void look(struct taint *t)
{
    nvml_look(t->nvml, t->gpu, &t->last);
    t->xid = t->last.xid ? t->last.xid : t->xid;
    t->seen = log_now();
}

struct taint *taint_open(const char *busid)
{
    struct taint *t = mem_calloc(1, sizeof(*t));

    if (nvml_open(&t->nvml, NULL) < 0 || (t->gpu = nvml_find(t->nvml, busid)) < 0) {
        taint_close(t);
        return NULL;
    }
    nvml_watch(t->nvml, t->gpu);
    look(t);
    t->first = t->before = t->last;
    return t;
}

void taint_close(struct taint *t)
{
    if (!t)
        return;
    nvml_close(t->nvml);
    free(t);
}

void taint_begin(struct taint *t)
{
    if (!t)
        return;
    if (log_now() - t->seen > fresh)
        look(t);
    t->before = t->last;
}

bool taint_end(struct taint *t, char text[TAINT_TEXT])
{
    *text = '\0';
    if (!t)
        return false;
    look(t);
    return nvml_harm(&t->before, &t->last, text, TAINT_TEXT);
}

bool taint_since_open(struct taint *t, char text[TAINT_TEXT])
{
    *text = '\0';
    if (!t)
        return false;
    struct nvml_counts all = t->last;
    all.xid = t->xid;
    return nvml_harm(&t->first, &all, text, TAINT_TEXT);
}

struct taint *taint_watch(const struct world *w, const struct topo *t)
{
    const struct endpoint *e = w->solo ? NULL : &t->endpoint[w->rank];

    return e && e->kind == ENDPOINT_GPU && e->busid[0] ? taint_open(e->busid) : NULL;
}

static void tell(const struct topo *t, const char *all, int ranks)
{
    int told = 0;

    for (int r = 0; r < ranks; r++) {
        const char *text = all + (size_t)r * TAINT_TEXT;
        const struct endpoint *e = &t->endpoint[r];
        if (*text && ++told <= TOLD_MAX)
            log_warn("during the campaign, endpoint %d (%s:%d): %s", r,
                     t->host[e->place.at[LEVEL_HOST]].name, e->local, text);
    }
    if (told > TOLD_MAX)
        log_warn("during the campaign, %d more endpoints suffered", told - TOLD_MAX);
}

int taint_report(struct taint *t, struct world *w, const struct topo *topo, struct err *err)
{
    char mine[TAINT_TEXT] = "", *all = NULL;

    if (w->solo)
        return 0;
    taint_since_open(t, mine);
    if (w->rank == 0)
        all = mem_calloc((size_t)w->size, TAINT_TEXT);
    int rc = w->gather(w, mine, TAINT_TEXT, all, err);
    if (all && rc == 0)
        tell(topo, all, w->size);
    free(all);
    return rc;
}

void taint_note(struct point *p, const struct topo *t, int endpoint, const char *text)
{
    const struct endpoint *e = &t->endpoint[endpoint];

    snprintf(p->note, sizeof(p->note), "%sendpoint %d (%.40s:%d): %s", prefix, endpoint,
             t->host[e->place.at[LEVEL_HOST]].name, e->local, text);
}

void taint_note_port(struct point *p, const struct topo *t, int host, const char *port,
                     const char *text)
{
    snprintf(p->note, sizeof(p->note), "%s%s on %.40s: %s", prefix, port, t->host[host].name, text);
}

bool taint_is(const struct point *p)
{
    const char *subject;

    return p->stop != STOP_FAILED && !p->wrong && taint_subject(p, &subject) > 0;
}

int taint_subject(const struct point *p, const char **subject)
{
    const char *s = *subject = p->note + sizeof(prefix) - 1, *end;
    int endpoint;

    if (strncmp(p->note, prefix, sizeof(prefix) - 1) != 0 || !(end = strstr(s, ": ")))
        return 0;
    const char *on = strstr(s, " on ");
    bool good = !strncmp(s, "endpoint ", 9) ? sscanf(s, "endpoint %9d (", &endpoint) == 1
                                            : on && on > s && on < end;
    return good ? (int)(end - s) : 0;
}

const char *taint_words(const struct point *p)
{
    const char *subject;
    int len = taint_subject(p, &subject);

    return len ? subject + len + 2 : "";
}
