/* replay_report.h - a replay beside its prediction, as a table and as JSON. */
#ifndef RG_REPLAY_REPORT_H
#define RG_REPLAY_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "step/replay/replay_case.h"
#include "step/replay/replay_mpi.h"

void replay_text(FILE *out, const struct replay_case *c, const struct replay_result *r);
json_t *replay_json(const struct replay_case *c, const struct replay_result *r,
                    const struct matrix *m); /* new reference */

#endif
