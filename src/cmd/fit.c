/* SPDX-License-Identifier: BSD-3-Clause */
/* fit.c - railgauge fit: make the cost matrix from topology, plan and points. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/campaign/chain_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/text/report.h"

struct args {
    const char *out, *file[3], *compute;
    bool quiet, json, no_verdict;
    struct fit_opts fit;
};

static const struct opt options[] = {
    {"output", 'o', "FILE", "file to write (default: matrix.json in DIR, or here)",
     OPT_INTO(struct args, out)},
    {"outlier", 'x', "SHARE", "bandwidth loss from which a part is slow (default 3.5%)",
     OPT_SHARE(struct args, fit.outlier)},
    {"compute", 0, "FILE",
     "file of what each GPU computes and moves alone (default: compute.tsv in DIR, if there)",
     OPT_INTO(struct args, compute)},
    {"no-verdict", 0, NULL, "exit with 0 even if a part is named",
     OPT_INTO(struct args, no_verdict)},
    {"quiet", 'q', NULL, "print nothing", OPT_INTO(struct args, quiet)},
    INPUT_JSON(struct args, json),
    {0},
};

static const struct opt words[] = {
    {"campaign", .help = "give a campaign directory, or TOPOLOGY PLAN POINTS",
     OPT_INTO(struct args, file[0])},
    {"plan", OPT_INTO(struct args, file[1])},
    {"points", .help = "give a campaign directory, or TOPOLOGY PLAN POINTS",
     OPT_INTO(struct args, file[2])},
    {0},
};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "DIR\nTOPOLOGY PLAN POINTS",
    .doc = "Make the cost matrix from measured points.\vClustering of the measured pairs "
           "confirms or splits tiers. Slow parts become exceptions with their evidence; "
           "oddities that are no fault become findings.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Write campaign/matrix.json", "railgauge fit campaign"),
            OPT_EXAMPLE("Name the three files",
                        "railgauge fit topology.json plan.tsv points.tsv -o fitted.json"),
            {0}},
    .exits = EXIT_CODES("1 a part is named, in any state (not with --no-verdict), ", ""),
};

/* Paths of the three inputs, the output, and compute.tsv or NULL.  The caller frees all. */
static void find_files(const struct args *a, char *path[5])
{
    static const char *const names[] = {"topology.json", "plan.tsv", "points.tsv", "matrix.json"};
    const bool dir = !a->file[1];

    for (int i = 0; i < 3; i++)
        path[i] = dir ? file_join(a->file[0], names[i]) : mem_strdup(a->file[i]);
    path[3] = a->out ? mem_strdup(a->out)
              : dir  ? file_join(a->file[0], names[3])
                     : mem_strdup(names[3]);
    path[4] = a->compute ? mem_strdup(a->compute)
              : dir      ? file_join(a->file[0], "compute.tsv")
                         : NULL;
    if (!a->compute && path[4] && access(path[4], F_OK) != 0) {
        free(path[4]);
        path[4] = NULL;
    }
}

static int cmd_fit(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct matrix m;
    struct points points = {0};
    char *path[5];

    fit_defaults(&a.fit);
    matrix_init(&m);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    find_files(&a, path);
    int rc = chain_fit_files(&m, path[0], path[1], path[2], &points, path[4], &a.fit, err);
    points_free(&points);
    if (rc == 0)
        rc = matrix_save(&m, path[3], err);
    if (rc == 0 && a.json)
        rc = json_answer(json_framed("railgauge-show", NULL, matrix_report(NULL, &m, 0)), NULL,
                         true, err);
    else if (rc == 0 && !a.quiet)
        printf("%s: %d endpoint%s, %d tier%s, %d collective curve%s, %d exception%s, %d "
               "finding%s\n",
               path[3], m.topo.endpoints, units_s(m.topo.endpoints), m.tiers, units_s(m.tiers),
               m.collectives, units_s(m.collectives), matrix_faults(&m), units_s(matrix_faults(&m)),
               m.findings, units_s(m.findings));
    int verdict = matrix_faults(&m) && !a.no_verdict ? EXIT_BELOW : EXIT_GOOD;
    matrix_free(&m);
    for (int i = 0; i < 5; i++)
        free(path[i]);
    return rc < 0 ? -1 : verdict;
}

const struct command fit_command = {&command, cmd_fit};
