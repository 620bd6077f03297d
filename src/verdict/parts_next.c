/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "step/predict.h"
#include "topo/nic.h"
#include "verdict/parts_impl.h"

/* --- cost of a part --- */

/* jobs on fewer GPUs are represented by the smaller model */
enum { LARGE_JOB = 64, TENSOR_MAX = 8 };

/* Returns the usual layout: sharded over everything, tensor parallel inside hosts if that
 * divides. */
static char *usual_layout(const struct topo *t)
{
    int *per = mem_calloc((size_t)t->hosts + 1, sizeof(*per)), tp = TENSOR_MAX, n = t->endpoints;

    for (int i = 0; i < n; i++)
        per[topo_at(t, i, LEVEL_HOST)]++;
    for (int i = 0; i < t->hosts; i++)
        while (per[i] % tp)
            tp /= 2;
    while (tp > 1 && n / tp < 2)
        tp /= 2;
    free(per);
    return mem_printf("dp_shard=%d,tp=%d", n / tp, tp);
}

/* Returns seconds of a step with only these parts; NAN: unknown. */
static double step_with(const struct matrix *m, struct exception *only, int n, const char *model,
                        const char *layout)
{
    struct matrix as = *m;
    struct prediction p;
    struct err err = {0, ""};

    as.exception = only;
    as.exceptions = n;
    double sec = predict_layout(&p, &as, model, layout, STRATEGY_FSDP, 0, &err) < 0 ? NAN : p.sec;
    prediction_free(&p);
    return sec;
}

/* Collect the exceptions with the part and state of a row. */
static int row_exceptions(const struct matrix *m, const struct part_row *r, struct exception *out)
{
    const struct exception *e = &m->exception[r->exception];
    int n = 0;

    for (int i = 0; i < m->exceptions && n < r->exceptions; i++) {
        const struct exception *x = &m->exception[i];
        if (parts_same(x, e))
            out[n++] = *x;
    }
    return n;
}

void parts_price(struct parts *p, const struct matrix *m)
{
    const struct topo *t = &m->topo;

    if (!p->rows || t->endpoints < 2 || t->endpoint[0].kind != ENDPOINT_GPU)
        return;
    const char *model = t->endpoints >= LARGE_JOB ? "llama3.1-70b" : "llama3.1-8b";
    char *layout = usual_layout(t);
    struct exception *only = mem_calloc((size_t)m->exceptions + 1, sizeof(*only));
    double well = step_with(m, NULL, 0, model, layout);
    for (int i = 0, asked = 0; i < p->rows && asked < PARTS_PRICED && well > 0; i++) {
        struct part_row *r = &p->row[i];
        if (r->exception < 0)
            continue;
        if (r->state == STATE_WRONG || r->state == STATE_DEAD) {
            r->cost = INFINITY;
            continue;
        }
        r->cost = step_with(m, only, row_exceptions(m, r, only), model, layout) / well - 1;
        asked++;
    }
    if (well > 0)
        p->job = mem_printf("%s %s", model, layout);
    free(only);
    free(layout);
}

/* --- next step --- */

struct repair {
    const char *kind, *state, *link, *below, *above, *next, *source;
};

/* Returns the kind of link of the part, in the words of repairs.json; NULL: unknown. */
static const char *link_of(const struct parts *p, const struct parts_input *in,
                           const struct part_row *r)
{
    int nic = r->places ? r->place[0].nic : -1;
    const struct exception *e = r->exception < 0 ? NULL : &in->m->exception[r->exception];

    if (e && e->tier >= 0 && !in->m->tier[e->tier].nic)
        return p->topo.endpoint[0].kind == ENDPOINT_GPU &&
                       strcmp(in->m->tier[e->tier].rule.name, "host") != 0
                   ? "nvlink"
                   : NULL;
    if (nic < 0 || p->topo.nic[nic].layer == LINK_UNKNOWN)
        return NULL;
    return p->topo.nic[nic].layer == LINK_INFINIBAND ? "infiniband" : "ethernet";
}

static bool fits(const struct repair *x, const struct part_row *r, const char *link,
                 const char *transport)
{
    if (x->below && (!r->below || strcmp(x->below, below_name[r->below->is]) != 0))
        return false;
    if (x->above && strcmp(x->above, transport) != 0)
        return false;

    return (!x->kind || !strcmp(x->kind, part_kind_name[r->kind])) &&
           (!x->state || !strcmp(x->state, part_state_name[r->state])) &&
           (!x->link || (link && !strcmp(x->link, link)));
}

static const char *group_of(const struct topo *t, const struct part_row *r, enum level level)
{
    int at = r->places ? r->place[0].at[level] : -1;

    return at < 0 ? NULL : t->group[level].name[at];
}

/* Returns the value of a word between braces.  The caller frees. */
static char *stands_for(const struct topo *t, const struct part_row *r, const char *word, int len)
{
    const struct part_place *p = r->places ? &r->place[0] : NULL;
    const struct nic *n = p && p->nic >= 0 ? &t->nic[p->nic] : NULL;
    const char *leaf = group_of(t, r, LEVEL_LEAF), *host = group_of(t, r, LEVEL_HOST),
               *rack = group_of(t, r, LEVEL_RACK), *domain = group_of(t, r, LEVEL_DOMAIN);
    const struct {
        const char *word, *text, *otherwise;
    } row[] = {
        {"part", r->name, ""},
        {"host", host, "its host"},
        {"nic", n ? n->name : NULL, "the NIC"},
        {"leaf", leaf ? leaf : rack, "the switch"},
        {"rack", rack, "the rack"},
        {"domain", domain ? domain : rack, "the domain"},
        {"links", r->kind == PART_KIND_UPLINKS ? r->name : NULL, "its links to other racks"}};

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
        if ((int)strlen(row[i].word) == len && !strncmp(row[i].word, word, (size_t)len))
            return mem_strdup(row[i].text ? row[i].text : row[i].otherwise);
    if (len == 4 && !strncmp(word, "port", 4))
        return n && *n->leaf ? mem_printf("%s port %s", n->leaf, n->leaf_port)
                             : mem_strdup("its switch port");
    if (len == 3 && !strncmp(word, "gpu", 3) && p && p->endpoint >= 0)
        return mem_printf("%d", t->endpoint[p->endpoint].local);
    return mem_printf("%.*s", len, word);
}

static char *fill_in(const char *text, const struct topo *t, const struct part_row *r)
{
    char *out = mem_strdup("");

    while (*text) {
        int plain = (int)strcspn(text, "{");
        out = mem_append(out, "%.*s", plain, text);
        text += plain;
        if (!*text)
            break;
        int len = (int)strcspn(++text, "}");
        char *name = stands_for(t, r, text, len);
        out = mem_append(out, "%s", name);
        free(name);
        text += len + (text[len] == '}');
    }
    return out;
}

static int read_repair(struct repair *x, json_t *from, const char *where, struct err *err)
{
    *x = (struct repair){0};
    return json_take(from, where, err, "{s?s, s?s, s?s, s?s, s?s, s:s, s:s}", "kind", &x->kind,
                     "state", &x->state, "link", &x->link, "below", &x->below, "above", &x->above,
                     "next", &x->next, "source", &x->source);
}

/* Give each row the first repair that matches it. */
static int advise(struct parts *p, const struct parts_input *in, json_t *list, const char *path,
                  struct err *err)
{
    char where[512];

    for (struct part_row *r = p->row; p->rows && r < p->row + p->rows; r++) {
        const char *link = link_of(p, in, r);
        for (size_t i = 0; i < json_array_size(list) && !r->next; i++) {
            struct repair x;
            snprintf(where, sizeof(where), "%s: repairs[%zu]", path, i);
            if (read_repair(&x, json_array_get(list, i), where, err) < 0)
                return -1;
            if (!fits(&x, r, link, in->m->transport))
                continue;
            r->next = fill_in(x.next, &p->topo, r);
            r->source = mem_strdup(x.source);
        }
        r->next = r->next ? r->next : mem_strdup("");
        r->source = r->source ? r->source : mem_strdup("");
    }
    return 0;
}

int parts_advise(struct parts *p, const struct parts_input *in, struct err *err)
{
    char *path = p->rows ? file_data("jobs/repairs.json") : NULL;
    json_t *root = NULL, *list;
    int rc = -1;

    if (!p->rows)
        return 0;
    if (!path)
        return err_config(err, "jobs/repairs.json is not installed; RAILGAUGE_DATA says where data "
                               "files are");
    if (json_open(&root, path, "railgauge-repairs", 1, err) == 0 &&
        json_take(root, path, err, "{s:s, s:i, s?s, s?s, s:o}", "format", &(const char *){0},
                  "version", &(int){0}, "$schema", &(const char *){0}, SEAL_KEY, &(const char *){0},
                  "repairs", &list) == 0)
        rc = json_is_array(list) ? advise(p, in, list, path, err)
                                 : err_data(err, "%s: \"repairs\" is not a list", path);
    json_decref(root);
    free(path);
    return rc;
}
