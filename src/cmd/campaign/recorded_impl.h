/* recorded_impl.h - results of railgauge import for a job's own records, besides the campaign: its
 * clocks, traffic and late ranks, and comparisons with a prediction and a matrix. */
#ifndef RG_RECORDED_H
#define RG_RECORDED_H

#include <jansson.h>

#include "record/import.h"
#include "record/job/answers.h"

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

/* Read the directory into r and im, and add to its sentences.  Call recorded_free() in any case,
 * after recorded_init(). */
void recorded_init(struct recorded *r, const struct recorded_args *a);
int recorded_open(struct recorded *r, struct import *im, struct err *err);
void recorded_free(struct recorded *r);

void recorded_print(const struct recorded *r, const struct import *im);
/* Members of import's output; new reference. */
json_t *recorded_json(const struct recorded *r, const struct import *im);

#endif
