/* fit.c - railgauge fit: topology, plan and points become the cost matrix. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/fit_files.h"

enum { COMPUTE = 0x600 };

struct args {
    const char *out, *file[3], *compute;
    int files;
    bool quiet;
    struct fit_opts fit;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "write here (default: matrix.json in DIR, or here)", 0},
    {"outlier", 'x', "SHARE", 0, "bandwidth loss from which a part is called slow (default 3.5%)",
     0},
    {"compute", COMPUTE, "FILE", 0,
     "what GPUs compute and move alone (default: compute.tsv in DIR where it is)", 0},
    {"quiet", 'q', NULL, 0, "print nothing", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err;

    switch (key) {
    case 'o':
        a->out = arg;
        break;
    case 'q':
        a->quiet = true;
        break;
    case COMPUTE:
        a->compute = arg;
        break;
    case 'x':
        if (units_share(&a->fit.outlier, arg, &err) < 0)
            argp_error(state, "--outlier: %s", err.text);
        break;
    case ARGP_KEY_ARG:
        if (a->files == 3)
            argp_error(state, "what is \"%s\"?", arg);
        a->file[a->files++] = arg;
        break;
    case ARGP_KEY_END:
        if (a->files != 1 && a->files != 3)
            argp_error(state, "give a campaign directory, or TOPOLOGY PLAN POINTS");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DIR\nTOPOLOGY PLAN POINTS",
    .doc = "Make the cost matrix from measured points."
           "\vTiers are confirmed or split by clustering measured pairs; slow parts become "
           "exceptions with their evidence; what is odd but no fault becomes a finding.\n\n"
           "  railgauge fit campaign\n"
           "  railgauge fit topology.json plan.tsv points.tsv -o matrix.json\n",
};

/* Paths of the three inputs, of the output, and of compute.tsv or NULL; the caller frees all. */
static void find_files(const struct args *a, char *path[5])
{
    static const char *const names[] = {"topology.json", "plan.tsv", "points.tsv", "matrix.json"};

    for (int i = 0; i < 3; i++)
        path[i] = a->files == 1 ? file_join(a->file[0], names[i]) : strdup(a->file[i]);
    path[3] = a->out          ? strdup(a->out)
              : a->files == 1 ? file_join(a->file[0], names[3])
                              : strdup(names[3]);
    path[4] = a->compute      ? strdup(a->compute)
              : a->files == 1 ? file_join(a->file[0], "compute.tsv")
                              : NULL;
    if (!a->compute && path[4] && access(path[4], F_OK) != 0) {
        free(path[4]);
        path[4] = NULL;
    }
}

int cmd_fit(int argc, char **argv)
{
    struct args a = {0};
    struct matrix m;
    struct err err;
    char *path[5];

    fit_defaults(&a.fit);
    matrix_init(&m);
    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    find_files(&a, path);
    int rc = fit_files(&m, path[0], path[1], path[2], path[4], &a.fit, &err);
    if (rc == 0)
        rc = matrix_save(&m, path[3], &err);
    if (rc == 0 && !a.quiet)
        printf("%s: %d endpoints, %d tiers, %d collective curves, %d exceptions, %d findings\n",
               path[3], m.topo.endpoints, m.tiers, m.collectives, m.exceptions, m.findings);
    matrix_free(&m);
    for (int i = 0; i < 5; i++)
        free(path[i]);
    return rc < 0 ? cmd_fail("fit", &err) : EXIT_GOOD;
}
