/* check_placement.c - railgauge check-placement: at a job's start, are its nodes where its segments
 * need them? */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "cmd/placement_text.h"
#include "cmd/srun_tell.h"
#include "place/segments_from.h"
#include "topo/claim.h"

enum { HOSTS_MAX_BYTES = 64 << 20 };

struct args {
    bool tell;
    int segment;
    const char *hosts, *label;
    double patience;
    struct input_args in;
};

static const struct opt options[] = {
    {"segment", 0, "N", "nodes that must share a block, as srun --segment=N",
     OPT_INT(struct args, segment, 1, HOSTLIST_MAX)},
    {"hosts", 0, "FILE",
     "nodes by rank, one a line, with what --tell printed there (- is standard input); default: "
     "srun asks the nodes of this job",
     OPT_INTO(struct args, hosts)},
    {"topology", 0, "FILE", "a topology.json or matrix.json that knows the nodes",
     OPT_INTO(struct args, in.file)},
    {"label", 0, "NAME", "environment variable that holds the block of a node",
     OPT_INTO(struct args, label)},
    {"tell", 0, NULL, "only print what this node knows of itself", OPT_INTO(struct args, tell)},
    {"patience", 0, "TIME", "how long srun may take (default 30s)",
     OPT_SECONDS(struct args, patience)},
    {"quiet", 'q', NULL, "print nothing when all is well", OPT_INTO(struct args, in.quiet)},
    {0},
};

static int check_args(void *args, struct err *err)
{
    const struct args *a = args;

    if (!a->tell && !a->segment)
        return err_usage(err, "--segment N is needed: how many nodes must share a block");
    if (!a->tell && !a->hosts && !getenv("SLURM_JOB_ID"))
        return err_usage(err, "this is no job of Slurm: give --hosts FILE, or pipe into --hosts - "
                              "what --tell prints on each node");
    if (a->tell && (a->segment || a->hosts || a->in.file || a->in.json || a->in.sources.count))
        return err_usage(err, "--tell only prints; it takes --label");
    return 0;
}

static const struct command command = {
    .options = options,
    .words = opt_none,
    .check = check_args,
    .takes = INPUT_SOURCES | INPUT_JSON,
    .input = offsetof(struct args, in),
    .doc = "Check at a job's start, without privileges, that the nodes of each segment share a "
           "block: by SLURM_TOPOLOGY_ADDR, by the NVLink domain that the driver tells, by a label, "
           "by files."
           "\vIn a batch script of Slurm, and with other launchers:\n\n"
           "  railgauge check-placement --segment 4 || exit 1\n"
           "  mpirun -N 1 railgauge check-placement --tell |\n"
           "      railgauge check-placement --hosts - --segment 16\n"
           "  railgauge check-placement --hosts hostfile \\\n"
           "      --topology topology.json --segment 16\n\n" EXIT_CODES(
               "1 a segment is split, 2 nobody knows, ", ", 78 configuration"),
};

static int tell(const char *label)
{
    struct told t;

    told_here(&t, label);
    char *line = told_line(&t);
    puts(line);
    free(line);
    told_free(&t);
    return EXIT_GOOD;
}

static int read_input(char **text, size_t *len, struct err *err)
{
    size_t room = 4096, n;

    *text = mem_realloc(NULL, room + 1, 1);
    for (*len = 0; (n = fread(*text + *len, 1, room - *len, stdin)); *len += n)
        if (*len + n == room) {
            if (room > HOSTS_MAX_BYTES)
                return err_data(err, "standard input: more than %d bytes", HOSTS_MAX_BYTES);
            *text = mem_realloc(*text, (room *= 2) + 1, 1);
        }
    (*text)[*len] = '\0';
    return ferror(stdin) ? err_io(err, "standard input: %s", strerror(errno)) : 0;
}

static int read_told(struct told **list, int *count, const struct args *a, struct err *err)
{
    bool in = a->hosts && !strcmp(a->hosts, "-");
    char *text = NULL;
    size_t len = 0;
    int rc = !a->hosts ? srun_tell(&text, a->label, a->patience, err)
             : in      ? read_input(&text, &len, err)
                       : file_read(&text, &len, a->hosts, HOSTS_MAX_BYTES, err);

    if (rc == 0 && a->hosts && strlen(text) != len)
        rc = err_data(err, "%s: a byte of 0 at %zu", a->hosts, strlen(text));
    if (rc == 0)
        rc = told_parse(list, count, text,
                        in         ? "standard input"
                        : a->hosts ? a->hosts
                                   : "srun",
                        err);
    free(text);
    return rc;
}

static const struct input_ask ask = {INPUT_TOPO | INPUT_MATRIX, INPUT_TOPO, 0};

/* A topology, or the matrix that holds one; files of others beside it. */
static int read_files(struct segments *s, const struct args *a, struct err *err)
{
    const char *slash = a->in.file ? strrchr(a->in.file, '/') : NULL;
    struct input in;

    input_init(&in);
    int rc = input_open(&in, &a->in, &ask, err);
    if (rc == 0)
        rc = source_args_read(&a->in.sources, &in.t, err);
    if (rc == 0) {
        if (a->in.sources.count)
            sources_done(&in.t);
        claims_add_hosts(&in.t);
        segments_from_topo(s, &in.t, slash ? slash + 1 : a->in.file ? a->in.file : "");
    }
    input_free(&in);
    return rc;
}

static int check(const struct args *a, struct err *err)
{
    struct segments s;
    struct segment_verdict v = {0};
    struct told *list = NULL;
    int count = 0, rc;

    segments_init(&s, a->segment);
    rc = read_told(&list, &count, a, err);
    if (rc == 0)
        rc = segments_from_told(&s, list, count, err);
    if (rc == 0 && (a->in.file || a->in.sources.count))
        rc = read_files(&s, a, err);
    if (rc == 0) {
        segments_judge(&v, &s);
        json_t *json = a->in.json ? placement_json(&s, &v) : NULL;
        if (json)
            json_print(stdout, json);
        else if (!a->in.quiet || v.words || v.differs)
            placement_text(stdout, &s, &v);
        json_decref(json);
        rc = segments_exit(&v, &s, err) ? -1 : 0;
    }
    segment_verdict_free(&v);
    told_list_free(list, count);
    segments_free(&s);
    return rc;
}

int cmd_check_placement(int argc, char **argv)
{
    struct args a = {.patience = 30};
    const char *rank = getenv("SLURM_PROCID"), *step = getenv("SLURM_STEP_ID");
    struct err err;

    command_parse(&command, argc, argv, &a);
    if (a.tell)
        return tell(a.label);
    /* As a step with many tasks: the first one asks for all. */
    if (!a.hosts && step && rank && strcmp(rank, "0") != 0)
        return EXIT_GOOD;
    int rc = check(&a, &err);
    input_args_free(&a.in);
    return rc < 0 ? cmd_fail("check-placement", &err) : EXIT_GOOD;
}
