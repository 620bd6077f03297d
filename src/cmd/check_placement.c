/* check_placement.c - railgauge check-placement: at a job's start, are its nodes where its segments
 * need them? */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "cmd/srun_tell.h"
#include "topo/claim.h"
#include "verdict/segments_from.h"

enum { TELL = 0x500, SEGMENT, HOSTS, TOPOLOGY, LABEL, PATIENCE };
enum { HOSTS_MAX_BYTES = 64 << 20 };

struct args {
    bool tell, quiet;
    int segment;
    const char *hosts, *label;
    double patience;
    struct input_args in;
};

static const struct argp_option options[] = {
    {"segment", SEGMENT, "N", 0, "nodes that must share a block, as srun --segment=N", 0},
    {"hosts", HOSTS, "FILE", 0,
     "nodes by rank, one a line, with what --tell printed there (- is standard input); default: "
     "srun asks the nodes of this job",
     0},
    {"topology", TOPOLOGY, "FILE", 0, "a topology.json or matrix.json that knows the nodes", 0},
    {"label", LABEL, "NAME", 0, "environment variable that holds the block of a node", 0},
    {"tell", TELL, NULL, 0, "only print what this node knows of itself", 0},
    {"patience", PATIENCE, "TIME", 0, "how long srun may take (default 30s)", 0},
    {"quiet", 'q', NULL, 0, "print nothing when all is well", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err;

    switch (key) {
    case TELL:
        a->tell = true;
        break;
    case SEGMENT:
        if (units_int(&a->segment, arg, 1, HOSTLIST_MAX, &err) < 0)
            argp_error(state, "--segment: %s", err.text);
        break;
    case HOSTS:
        a->hosts = arg;
        break;
    case TOPOLOGY:
        a->in.file = arg;
        break;
    case LABEL:
        a->label = arg;
        break;
    case PATIENCE:
        if (units_seconds(&a->patience, arg, &err) < 0)
            argp_error(state, "--patience: %s", err.text);
        break;
    case 'q':
        a->quiet = true;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->in;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "what is \"%s\"? Nodes come from --hosts", arg);
        break;
    case ARGP_KEY_END:
        if (!a->tell && !a->segment)
            argp_error(state, "--segment N is needed: how many nodes must share a block");
        if (!a->tell && !a->hosts && !getenv("SLURM_JOB_ID"))
            argp_error(state, "this is no job of Slurm: give --hosts FILE, or pipe into --hosts - "
                              "what --tell prints on each node");
        if (a->tell && (a->segment || a->hosts || a->in.file || a->in.json || a->in.sources.count))
            argp_error(state, "--tell only prints; it takes --label");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Check at a job's start, without privileges, that the nodes of each segment share a "
           "block: by SLURM_TOPOLOGY_ADDR, by the NVLink domain that the driver tells, by a label, "
           "by files.  Exit 1: a segment is split; 2: nobody knows."
           "\vIn a batch script of Slurm, and with other launchers:\n\n"
           "  railgauge check-placement --segment 4 || exit 1\n"
           "  mpirun -N 1 railgauge check-placement --tell | railgauge check-placement --hosts - "
           "--segment 16\n"
           "  railgauge check-placement --hosts hostfile --topology topology.json --segment 16\n",
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

static json_t *texts(char *const *text, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(text[i]));
    return list;
}

static void print_json(const struct segments *s, const struct segment_verdict *v)
{
    json_t *who = json_array();

    for (int i = 0; i < s->opinions; i++)
        json_array_append_new(
            who, json_pack("{s:s, s:i}", "name", s->opinion[i].who, "nodes", s->opinion[i].told));
    json_t *root = json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:s?}",
                             "format", "railgauge-placement", "version", 1, "verdict",
                             v->split     ? "split"
                             : v->unknown ? "unknown"
                                          : "good",
                             "nodes", s->nodes, "segment", s->size, "segments", v->segments,
                             "together", v->together, "split", v->split, "unknown", v->unknown,
                             "sources", who, "findings", texts(v->word, v->words), "disagreements",
                             texts(v->differ, v->differs), "better_order", v->order);
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

static void print_text(const struct segments *s, const struct segment_verdict *v)
{
    printf("placement  %d node%s, %d segment%s of %d%s\n", s->nodes, s->nodes == 1 ? "" : "s",
           v->segments, v->segments == 1 ? "" : "s", s->size,
           s->nodes % s->size ? ", the last one shorter" : "");
    for (int i = 0; i < s->opinions; i++)
        printf("%-10s %s, %d node%s\n", i ? "" : "sources", s->opinion[i].who, s->opinion[i].told,
               s->opinion[i].told == 1 ? "" : "s");
    printf("%-10s %d of %d together\n", "segments", v->together, v->segments);
    for (int i = 0; i < v->words; i++)
        printf("  %s\n", v->word[i]);
    for (int i = 0; i < v->differs; i++)
        printf("  %s\n", v->differ[i]);
    if (v->order)
        printf("  in another order the same nodes make whole segments: %s\n", v->order);
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
        if (a->in.json)
            print_json(&s, &v);
        else if (!a->quiet || v.words || v.differs)
            print_text(&s, &v);
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

    if (input_parse(&argp, INPUT_SOURCES | INPUT_JSON, argc, argv, &a))
        return EXIT_USAGE;
    if (a.tell)
        return tell(a.label);
    /* As a step with many tasks: the first one asks for all. */
    if (!a.hosts && step && rank && strcmp(rank, "0") != 0)
        return EXIT_GOOD;
    int rc = check(&a, &err);
    input_args_free(&a.in);
    return rc < 0 ? cmd_fail("check-placement", &err) : EXIT_GOOD;
}
