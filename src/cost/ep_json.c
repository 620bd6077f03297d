/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cost/ep.h"

enum { PLACE = 384, EP_MAX = 1024, RANKS_MAX = 1 << 20 };

json_t *ep_pack(const struct matrix *m)
{
    json_t *list = json_array();

    for (int i = 0; i < m->eps; i++) {
        const struct ep_curve *e = &m->ep[i];
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:s, s:s}", "kernel", e->kernel,
                            "ranks", e->ranks, "domains", e->domains, "alpha_s", e->alpha,
                            "dispatch_Bps", e->Bps[0], "combine_Bps", e->Bps[1], "basis",
                            basis_name[e->basis], "source", e->source ? e->source : ""));
    }
    return list;
}

static int unpack_one(struct ep_curve *e, json_t *value, const char *where, struct err *err)
{
    const char *kernel, *basis, *source;
    json_t *number[3];

    if (json_take(value, where, err, "{s:s, s:i, s:i, s:o, s:o, s:o, s:s, s:s}", "kernel", &kernel,
                  "ranks", &e->ranks, "domains", &e->domains, "alpha_s", &number[0], "dispatch_Bps",
                  &number[1], "combine_Bps", &number[2], "basis", &basis, "source", &source) < 0 ||
        json_number(value, where, "alpha_s", 0, 1e9, 0, &e->alpha, err) < 0 ||
        json_number(value, where, "dispatch_Bps", 1, 1e18, 0, &e->Bps[0], err) < 0 ||
        json_number(value, where, "combine_Bps", 1, 1e18, 0, &e->Bps[1], err) < 0)
        return -1;
    e->kernel = mem_strdup(kernel);
    e->source = mem_strdup(source);
    if (e->ranks < 2 || e->ranks > RANKS_MAX || e->domains < 1 || e->domains > e->ranks)
        return err_data(err, "%s: no group has %d ranks in %d domains", where, e->ranks,
                        e->domains);
    for (int b = 0; b < BASIS_COUNT; b++)
        if (!strcmp(basis_name[b], basis)) {
            e->basis = b;
            return 0;
        }
    return err_data(err, "%s: basis \"%s\" is not known", where, basis);
}

int ep_unpack(struct matrix *m, json_t *list, const char *where, struct err *err)
{
    char at[PLACE];

    if (!json_is_array(list) || json_array_size(list) > EP_MAX)
        return err_data(err, "%s is not a list of at most %d", where, EP_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        snprintf(at, sizeof(at), "%s[%zu]", where, i);
        MEM_PUSH(m->ep, m->eps) = (struct ep_curve){0};
        if (unpack_one(&m->ep[i], json_array_get(list, i), at, err) < 0)
            return -1;
    }
    return 0;
}
