/* recorded.h - what railgauge import makes of a job's own records, beside the campaign: its clocks,
 * traffic and late ranks, and what a prediction and a matrix say of the same. */
#ifndef RG_RECORDED_H
#define RG_RECORDED_H

#include <jansson.h>

#include "probe/import/import.h"
#include "probe/import/record_job.h"
#include "probe/import/record_steps.h"
#include "verdict/job/late.h"
#include "verdict/job/priced.h"
#include "verdict/job/sent.h"

/* As typed. */
struct recorded_args {
    const char *dir, *job, *against, *traffic;
};

struct recorded {
    const struct recorded_args *args;
    struct record_job job;
    struct record_steps steps;
    struct late late;
    struct sent sent;
    struct matrix matrix;
    struct priced priced;
};

/* Reads the folder into r and im, to whose sentences it adds.  recorded_free() in any case, after
 * recorded_init(). */
void recorded_init(struct recorded *r, const struct recorded_args *a);
int recorded_open(struct recorded *r, struct import *im, struct err *err);
void recorded_free(struct recorded *r);

void recorded_print(const struct recorded *r, const struct import *im);
/* Members of import's answer; new reference. */
json_t *recorded_json(const struct recorded *r, const struct import *im);

#endif
