/* SPDX-License-Identifier: BSD-3-Clause */
/* case_json.c - the verdicts of a case for programs. */
#include <math.h>
#include <string.h>

#include "step/score/case.h"

#include "base/json.h"
/* JSON has no NaN; an unknown number is null. */
static json_t *claim_json(const struct case_claim *k)
{
    json_t *readings = json_array();

    for (int i = 0; i < k->readings; i++)
        json_array_append_new(readings, json_pack("{s:s, s:o}", "as", k->reading[i].text, "value",
                                                  json_finite(k->reading[i].value)));
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:o}", "claim", k->text,
                  "value", k->expression, "unit", k->unit->name, "published",
                  k->unit->fits ? json_boolean(k->published > 0) : json_finite(k->published),
                  "ours", json_finite(k->ours), "lo", json_finite(k->lo), "hi", json_finite(k->hi),
                  "off", json_finite(k->off), "verdict", case_verdict_name[k->verdict], "expect",
                  case_verdict_name[k->expect], "reason", k->reason, "readings", readings);
    if (k->note)
        json_object_set_new(o, "note", json_string(k->note));
    return o;
}

static json_t *job_json(const struct case_job *j)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "name", j->name, "model", j->opts.model,
                     "layout", j->opts.layout ? j->opts.layout : "dp=auto", "gpus", j->gpus,
                     "step_s", json_finite(j->sec), "memory_bytes", json_finite(j->bytes),
                     "capacity_bytes", j->capacity > 0 ? json_real(j->capacity) : json_null());
}

json_t *case_json(const struct casefile *c)
{
    char with[CASE_COMBINATION];
    json_t *jobs = json_array(), *claims = json_array(), *solved = json_array(),
           *assumed = json_array();

    for (int i = 0; i < c->claims; i++)
        json_array_append_new(claims, claim_json(&c->claim[i]));
    for (int i = 0; i < c->jobs; i++)
        json_array_append_new(jobs, job_json(&c->job[i]));
    for (int i = 0; i < c->solves; i++)
        json_array_append_new(solved,
                              json_pack("{s:s, s:o, s:s}", "setting", c->solve[i].key, "found",
                                        json_finite(c->solve[i].found), "why", c->solve[i].why));
    for (int i = 0; i < c->assumes; i++)
        json_array_append_new(assumed, json_string(c->assumed[i]));
    json_t *together = json_pack("{s:i, s:i, s:s}", "held", c->held, "of", c->held_of, "unknowns",
                                 case_combination(with, c, c->held_by));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "file", c->path, "title",
                     c->title, "publication", c->publication, "date", c->date, "assumed", assumed,
                     "solved", solved, "claims", claims, "together", together, "jobs", jobs);
}
