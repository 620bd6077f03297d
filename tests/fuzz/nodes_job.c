/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a job, as a user of the cluster may write them: what is accepted keeps its bounds
 * and names no file, and a mix that is accepted has a cost or a reason. */
#include <math.h>
#include <string.h>

#include "../unit/small.h"
#include "fuzz.h"
#include "place/place.h"

static void bounded(const struct place_job *j)
{
    if (j->trains == (j->mix.messages > 0) || j->mix.messages > TRAFFIC_MAX || j->per_node < 0 ||
        j->per_node > 1 << 10)
        abort();
    for (int i = 0; i < j->mix.messages; i++) {
        const struct message *m = &j->mix.message[i];
        if (!m->label || m->span.size < 0 || m->span.size == 1 || m->span.stride < 1 ||
            !(m->count >= 0 && m->count <= 1e9) || !(m->bytes >= 0))
            abort();
    }
    if (j->trains && (strchr(j->opts.model, '/') || strstr(j->opts.model, ".json/")))
        abort();
    if (j->opts.place.order || j->opts.place.nodes || j->opts.constants)
        abort();
}

static void priced(const char *text)
{
    static const int hosts[] = {0, 5, 1, 4};
    struct err e = {0, ""};
    struct place_sets b;
    struct place_job j;
    struct matrix m;

    small_matrix(&m);
    if (place_job_open(&j, &m, text, &e) < 0)
        abort();
    double sec = place_job_cost(&j, hosts, 4, &e);
    if (isnan(sec) ? !e.text[0] : !(sec >= 0))
        abort();
    if (place_job_sets(&b, &j, hosts, 4, 2, 3, 0, &e) == 0 &&
        (b.count < 1 || b.count > 3 || !(b.sec[0] >= 0 && b.sec[0] < INFINITY)))
        abort();
    place_sets_free(&b);
    place_job_close(&j);
    matrix_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0, ""};
    struct place_job j;
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (place_job_words(&j, text, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        bounded(&j);
        if (!j.trains)
            priced(text);
    }
    place_job_close(&j);
    free(text);
    return 0;
}
