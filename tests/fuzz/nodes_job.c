/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a job, as a user of the cluster may write them: what is accepted keeps its bounds
 * and names no file, and a mix that is accepted has a cost or a reason. */
#include <math.h>
#include <string.h>

#include "../unit/small.h"
#include "fuzz.h"
#include "place/nodes.h"

static void bounded(const struct nodes_job *j)
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
    struct nodes_best b;
    struct nodes_job j;
    struct matrix m;

    small_matrix(&m);
    if (nodes_job_open(&j, &m, text, &e) < 0)
        abort();
    double sec = nodes_cost(&j, hosts, 4, &e);
    if (isnan(sec) ? !e.text[0] : !(sec >= 0))
        abort();
    if (nodes_best(&b, &j, hosts, 4, 2, 3, &e) == 0 &&
        (b.count < 1 || b.count > 3 || !(b.sec[0] >= 0 && b.sec[0] < INFINITY)))
        abort();
    nodes_best_free(&b);
    nodes_job_close(&j);
    matrix_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0, ""};
    struct nodes_job j;
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (nodes_job_words(&j, text, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        bounded(&j);
        if (!j.trains)
            priced(text);
    }
    nodes_job_close(&j);
    free(text);
    return 0;
}
