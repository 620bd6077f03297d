/* SPDX-License-Identifier: BSD-3-Clause */
/* import.c - railgauge import: make a campaign from output of nccl-tests or from records of a
 * job. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/campaign/recorded_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "record/import.h"

struct args {
    const char *output, *topology, **file;
    int files;
    bool quiet, json;
    struct import_opts import;
    struct recorded_args recorded;
};

static int take_format(void *args, char *name, struct err *err)
{
    (void)args;
    return strcmp(name, "nccl-tests") ? err_usage(err, "%s: only nccl-tests is known", name) : 0;
}

static int take_op(void *args, char *name, struct err *err)
{
    struct near near = {.word = name};
    struct args *a = args;

    a->import.op = op_find(name);
    if (a->import.op >= 0 && !op_is_pair((enum op)a->import.op))
        return 0;
    op_each(near_try, &near);
    return err_usage(err, "no collective \"%s\"%s", name, near_text(&near));
}

static const struct opt options[] = {
    {"format", 0, "nccl-tests", "format of FILE (default nccl-tests)", OPT_CALL(take_format)},
    {"output", 'o', "FILE",
     "points file; plan.tsv and topology.json are written beside it (default points.tsv)",
     OPT_INTO(struct args, output)},
    {"op", 0, "NAME", "collective, if FILE does not name it (before nccl-tests 2.16)",
     OPT_CALL(take_op), .values = op_each},
    {"in-place", 0, NULL, "use the in-place columns (default: out-of-place)",
     OPT_INTO(struct args, import.in_place)},
    {"topology", 0, "FILE", "topology.json in which to look up the ranks' hosts and devices",
     OPT_INTO(struct args, topology)},
    {"hosts", 0, "LIST", "hosts in rank order, if FILE has no rank lines: n[01-18]",
     OPT_INTO(struct args, import.hosts)},
    {"ranks", 0, "N", "number of ranks, equal on each host, if FILE has no rank lines",
     OPT_INT(struct args, import.ranks, 2, 1 << 20)},
    {.help = "the record of a job, instead of FILE", .group = "record"},
    {"nccl-profile", 0, "DIR",
     "directory that librailgauge-nccl.so wrote, with the files of all ranks",
     OPT_INTO(struct args, recorded.dir), .group = "record"},
    {"for-job", 0, "WORDS",
     "compare the bytes sent with the prediction for this job: '--model llama3.1-8b --layout "
     "tp=4,dp=2'",
     OPT_INTO(struct args, recorded.job), .group = "record"},
    {"against", 0, "MATRIX", "compare the times of collectives with this matrix",
     OPT_INTO(struct args, recorded.against), .group = "record"},
    {"traffic", 0, "FILE", "write the bytes of a step between ranks, for railgauge place --traffic",
     OPT_INTO(struct args, recorded.traffic), .group = "record"},
    {"quiet", 'q', NULL, "print only errors", OPT_INTO(struct args, quiet)},
    INPUT_JSON(struct args, json),
    {0},
};

static const struct opt words[] = {
    {"output", OPT_LIST(struct args, file, files)},
    {0},
};

static int need_records(void *args, struct err *err)
{
    const struct args *a = args;
    const struct recorded_args *r = &a->recorded;

    if (!a->files && !r->dir)
        return err_usage(err, "give the output of nccl-tests or the file of its -J, or with "
                              "--nccl-profile the folder of a job's records");
    if (a->files && r->dir)
        return err_usage(err, "\"%s\" and --nccl-profile: one or the other", a->file[0]);
    if (!r->dir && (r->job || r->against || r->traffic))
        return err_usage(err, "--%s is of a job's records: it needs --nccl-profile",
                         r->job       ? "for-job"
                         : r->against ? "against"
                                      : "traffic");
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = need_records,
    .usage = "FILE...\n"
             "--nccl-profile DIR",
    .doc = "Turn the output of nccl-tests, or the record of a job, into points.tsv, "
           "plan.tsv and topology.json for railgauge fit.\vEach FILE is the output of one "
           "or more runs, or the file that -J wrote. Lines of mpirun, srun and NCCL are "
           "skipped. Times are means, as nccl-tests takes them; with -I 1 -J they are "
           "medians.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Import two outputs of nccl-tests into a new campaign, and make its matrix",
                        "railgauge import all_reduce.txt all_gather.txt -o c/points.tsv && "
                        "railgauge fit c"),
            OPT_ELSEWHERE("Look up hosts and devices in a topology",
                          "railgauge import --topology topology.json slurm-4711.out"),
            OPT_ELSEWHERE(
                "Import a table without rank lines",
                "railgauge import --op all_reduce --hosts 'n[1-2]' --ranks 16 pasted.txt"),
            OPT_ELSEWHERE("Compare the record of a job with its prediction",
                          "railgauge import --nccl-profile records --against matrix.json \\\n"
                          "      --for-job '--model llama3.1-8b --layout tp=4,dp=2'"),
            {0}},
    .exits = EXIT_CODES("", ", 78 a campaign is there already"),
};

static int read_files(struct import *im, const struct args *a, struct err *err)
{
    char version[24];

    for (int i = 0; i < a->files; i++) {
        struct recording r;
        if (recording_load(&r, a->file[i], err) < 0)
            return -1;
        int rc = import_add(im, &r, err);
        snprintf(version, sizeof(version), "%d.%d.%d", r.library / 10000, r.library / 100 % 100,
                 r.library % 100);
        if (r.library)
            json_provenance_add("nccl", version);
        if (*r.version)
            json_provenance_add("nccl_tests", r.version);
        recording_free(&r);
        if (rc < 0)
            return -1;
    }
    import_end(im, "nccl-tests does not print them");
    return 0;
}

static int read_records(struct import *im, struct recorded *r, struct err *err)
{
    int rc = recorded_open(r, im, err);

    if (rc == 0)
        import_end(im, "a job's records do not tell them");
    return rc;
}

/* Write a new file; an existing one is never continued. */
static int write_points(const struct import *im, const char *path, struct err *err)
{
    struct points_log *log;

    if (points_open(&log, path, plan_crc(&im->plan), &im->topo, "nccl", err) < 0)
        return -1;
    for (int i = 0; i < im->rows; i++)
        points_add(log, &im->row[i]);
    return points_close(log, err);
}

static int write_files(const struct import *im, const struct args *a, struct err *err)
{
    char *copy = mem_strdup(a->output), *dir = dirname(copy);
    char *path[] = {file_join(dir, "topology.json"), file_join(dir, "plan.tsv")};
    int rc = file_mkdir(dir, err);

    for (int i = a->topology != NULL; i < 3 && rc == 0; i++) {
        const char *there = i < 2 ? path[i] : a->output;
        if (access(there, F_OK) == 0)
            rc = err_config(err, "%s is there already; another -o starts a new campaign", there);
    }
    if (rc == 0 && !a->topology)
        rc = topo_save(&im->topo, path[0], err);
    if (rc == 0)
        rc = plan_save(&im->plan, path[1], err);
    if (rc == 0)
        rc = write_points(im, a->output, err);
    free(path[0]);
    free(path[1]);
    free(copy);
    return rc;
}

static int report(const struct import *im, const struct recorded *r, const struct args *a,
                  struct err *err)
{
    for (int i = 0; i < im->saids; i++)
        log_warn("%s", im->said[i]);
    if (!a->topology)
        log_info("NVLink domains, NICs, rails and racks are not visible in these files; --topology "
                 "says them");
    if (a->json) {
        json_t *out =
            json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:i}", "format", "railgauge-import",
                      "version", 1, "file", a->output, "runs", im->plan.rounds, "endpoints",
                      im->topo.endpoints, "hosts", im->topo.hosts, "points", im->rows);
        if (a->recorded.dir)
            json_object_set_new(out, "recorded", recorded_json(r, im));
        return json_answer(out, NULL, true, err);
    }
    printf("%s: %d %s on %d GPUs, %d hosts: %d points\n", a->output, im->plan.rounds,
           a->recorded.dir ? "kinds of collectives of a job" : "runs", im->topo.endpoints,
           im->topo.hosts, im->rows);
    if (a->recorded.dir)
        recorded_print(r, im);
    return 0;
}

static int cmd_import(int argc, char **argv, struct err *err)
{
    struct args a = {.output = "points.tsv", .import = {.op = -1}};
    struct topo known;
    struct import im = {.rows = 0};
    struct recorded r;

    topo_init(&known);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    recorded_init(&r, &a.recorded);
    int rc = a.topology ? topo_load(&known, a.topology, err) : 0;
    if (rc == 0) {
        a.import.topo = a.topology ? &known : NULL;
        import_init(&im, &a.import);
        rc = a.recorded.dir ? read_records(&im, &r, err) : read_files(&im, &a, err);
    }
    if (rc == 0)
        rc = write_files(&im, &a, err);
    if (rc == 0 && !a.quiet)
        rc = report(&im, &r, &a, err);
    recorded_free(&r);
    import_free(&im);
    topo_free(&known);
    free(a.file);
    return rc;
}

const struct command import_command = {&command, cmd_import};
