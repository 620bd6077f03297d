/* SPDX-License-Identifier: BSD-3-Clause */
/* trial_rows.c - the table "trials" of topology.json: FABRIC handles tried, bandwidth measured. */
#include <stdio.h>

#include "base/mem.h"
#include "topo/host/mnnvl.h"
#include "topo/topo_impl.h"

const char *const trial_columns[TRIAL_COLUMNS] = {"host",   "allocate", "export",
                                                  "import", "Bps",      "why"};

static json_t *works_json(int works)
{
    return works < 0 ? json_null() : json_boolean(works);
}

json_t *trial_row(const struct mnnvl_trial *r)
{
    return json_pack("[i, o, o, o, o, o]", r->host, works_json(r->allocate), works_json(r->export),
                     works_json(r->import), r->Bps > 0 ? json_real(r->Bps) : json_null(),
                     *r->why ? json_string(r->why) : json_null());
}

int trial_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0;

    if (topo_table_open(&b, path, "trials", table, trial_columns, TRIAL_COLUMNS, err) < 0)
        return -1;
    while (topo_table_next(&b, TRIAL_COLUMNS, &rc)) {
        struct mnnvl_trial r = {.host = 0};
        if (cell_index(&b, 0, t->hosts, false, &r.host) < 0 || cell_maybe(&b, 1, &r.allocate) < 0 ||
            cell_maybe(&b, 2, &r.export) < 0 || cell_maybe(&b, 3, &r.import) < 0 ||
            cell_number(&b, 4, 1e15, &r.Bps) < 0 ||
            cell_copy(&b, 5, true, r.why, sizeof(r.why)) < 0)
            return -1;
        if (t->trials && t->trial[t->trials - 1].host >= r.host)
            return cell_bad(&b, 0, "not after the host of the row before");
        MEM_PUSH(t->trial, t->trials) = r;
    }
    return rc;
}
