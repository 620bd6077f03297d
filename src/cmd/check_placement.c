/* SPDX-License-Identifier: BSD-3-Clause */
/* check_placement.c - railgauge check-placement: at a job's start, check that the nodes are where
 * the segments need them. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/process.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "place/segments.h"
#include "topo/groups.h"

/* --- query of the job's nodes --- */

enum { TEXT_MAX = 64 << 20, NODES_MAX_DIGITS = 8 };

/* srun with its words; command line options override those in the job's environment. */
static int srun_words(struct words *w, const char *label, const char *nodes, struct err *err)
{
    static const char *const fixed[] = {
        "--ntasks-per-node=1", "--cpus-per-task=1",    "--overlap",
        "--mpi=none",          "--distribution=block", "--kill-on-bad-exit=0"};
    char exe[PATH_MAX] = "";

    if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
        return err_config(err, "cannot start srun: %s", strerror(errno));
    words_add(w, "srun");
    words_add(w, "--nodes=%s", nodes);
    words_add(w, "--ntasks=%s", nodes);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        words_add(w, "%s", fixed[i]);
    words_add(w, "%s", exe);
    words_add(w, "check-placement");
    words_add(w, "--tell");
    if (label)
        words_add(w, "--label=%s", label);
    return 0;
}

static int judge_srun(const struct process *p, struct err *err)
{
    if (p->failed)
        return err_config(err, "cannot start srun: %s", strerror(p->failed));
    if (p->len > p->max)
        return err_data(err, "srun printed more than %zu bytes", p->max);
    if (!p->whole)
        return err_set(err, "srun gave no answer within %g s (--patience)", p->seconds);
    if (strlen(p->text) != p->len)
        return err_data(err, "srun printed a byte of 0");
    if (WIFSIGNALED(p->status))
        return err_config(err, "srun failed (signal %d)", WTERMSIG(p->status));
    return p->status ? err_config(err, "srun failed (exit %d)", WEXITSTATUS(p->status)) : 0;
}

/* Let srun start this program once on each of the job's nodes with --tell; *text is their output
 * (topo/sources/host/self_report.h).  label: variable with a label, or NULL.  EXIT_CONFIG with its exit
 * code if srun is missing or fails (its own messages go to stderr).  EXIT_UNJUDGED without an
 * answer within `patience` seconds; srun is then ended.  The caller frees *text. */
static int ask_each_node(char **text, const char *label, double patience, struct err *err)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    struct process p = {.max = TEXT_MAX, .seconds = patience, .end_by = SIGTERM, .speaks = true};
    struct words w = {NULL, 0};

    if (!nodes || !*nodes || strlen(nodes) > NODES_MAX_DIGITS ||
        strspn(nodes, "0123456789") != strlen(nodes))
        return err_config(err, "SLURM_JOB_NUM_NODES is \"%.40s\", not the job's number of nodes",
                          nodes ? nodes : "");
    if (srun_words(&w, label, nodes, err) < 0)
        return -1;
    p.argv = (const char *const *)w.word;
    process_run(&p);
    words_free(&w);
    *text = p.text; /* freed by the caller in any case */
    return judge_srun(&p, err);
}

/* --- result --- */

/* New reference. */
static json_t *placement_json(const struct segments *s, const struct segment_verdict *v)
{
    json_t *who = json_array();

    for (int i = 0; i < s->opinions; i++)
        json_array_append_new(
            who, json_pack("{s:s, s:i}", "name", s->opinion[i].who, "nodes", s->opinion[i].told));
    return json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:s?}", "format",
                     "railgauge-placement", "version", 1, "verdict",
                     v->split     ? "split"
                     : v->unknown ? "unknown"
                                  : "good",
                     "nodes", s->nodes, "segment", s->size, "segments", v->segments, "together",
                     v->together, "split", v->split, "unknown", v->unknown, "sources", who,
                     "findings", json_texts(v->word, v->words), "disagreements",
                     json_texts(v->differ, v->differs), "better_order", v->order);
}

static void placement_text(FILE *out, const struct segments *s, const struct segment_verdict *v)
{
    fprintf(out, "placement  %d node%s, %d segment%s of %d%s\n", s->nodes, s->nodes == 1 ? "" : "s",
            v->segments, v->segments == 1 ? "" : "s", s->size,
            s->nodes % s->size ? ", the last one shorter" : "");
    for (int i = 0; i < s->opinions; i++)
        fprintf(out, "%-10s %s, %d node%s\n", i ? "" : "sources", s->opinion[i].who,
                s->opinion[i].told, s->opinion[i].told == 1 ? "" : "s");
    fprintf(out, "%-10s %d of %d together\n", "segments", v->together, v->segments);
    for (int i = 0; i < v->words; i++)
        fprintf(out, "  %s\n", v->word[i]);
    for (int i = 0; i < v->differs; i++)
        fprintf(out, "  %s\n", v->differ[i]);
    if (v->order)
        fprintf(out, "  in another order the same nodes make whole segments: %s\n", v->order);
}

/* --- the command --- */

enum { HOSTS_MAX_BYTES = 64 << 20 };

struct args {
    bool tell;
    int segment;
    const char *hosts, *label;
    double patience;
    struct input_args in;
};

static const struct opt options[] = {
    {"segment", 0, "N", "nodes that must share a block, as in srun --segment=N",
     OPT_INT(struct args, segment, 1, HOSTLIST_MAX)},
    {"hosts", 0, "FILE",
     "nodes by rank, one per line, with what --tell printed there; - is standard input (default: "
     "ask the nodes of this job by srun)",
     OPT_INTO(struct args, hosts)},
    {"topology", 0, "FILE", "topology.json or matrix.json that holds the nodes",
     OPT_INTO(struct args, in.file)},
    {"label", 0, "NAME", "environment variable with the block of a node",
     OPT_INTO(struct args, label)},
    {"tell", 0, NULL, "print only what this node knows of itself", OPT_INTO(struct args, tell)},
    {"patience", 0, "TIME", "longest wait for srun (default 30s)",
     OPT_SECONDS(struct args, patience)},
    {"quiet", 'q', NULL, "print nothing if the placement is good", OPT_INTO(struct args, in.quiet)},
    INPUT_JSON(struct args, in.json),
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

static const struct opt_line command = {
    .options = options,
    .check = check_args,
    .set = {INPUT_SOURCES(struct args, in)},
    .doc = "Check at the start of a job, without privileges, that the nodes of each "
           "segment share a block: by SLURM_TOPOLOGY_ADDR, the driver's NVLink domain, a "
           "label, or files.",
    .examples =
        (const struct opt_example[]){
            OPT_ELSEWHERE("Stop a batch script of Slurm on a bad placement",
                          "railgauge check-placement --segment 4 || exit 1"),
            OPT_ELSEWHERE("Ask each node under another launcher",
                          "mpirun -N 1 railgauge check-placement --tell |\n"
                          "      railgauge check-placement --hosts - --segment 16"),
            OPT_EXAMPLE(
                "Look the nodes up in a topology",
                "railgauge check-placement --hosts hosts --topology topology.json --segment 2"),
            {0}},
    .exits = EXIT_CODES("1 a segment is split, 2 not known, ", ", 78 configuration"),
};

static int tell(const char *label)
{
    struct self_report t;

    self_report_here(&t, label);
    char *line = self_report_line(&t);
    puts(line);
    free(line);
    self_report_free(&t);
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

static int read_told(struct self_report **list, int *count, const struct args *a, struct err *err)
{
    bool in = a->hosts && !strcmp(a->hosts, "-");
    char *text = NULL;
    size_t len = 0;
    int rc = !a->hosts ? ask_each_node(&text, a->label, a->patience, err)
             : in      ? read_input(&text, &len, err)
                       : file_read(&text, &len, a->hosts, HOSTS_MAX_BYTES, err);

    if (rc == 0 && a->hosts && strlen(text) != len)
        rc = err_data(err, "%s: a byte of 0 at %zu", a->hosts, strlen(text));
    if (rc == 0)
        rc = self_report_parse(list, count, text,
                               in         ? "standard input"
                               : a->hosts ? a->hosts
                                          : "srun",
                               err);
    free(text);
    return rc;
}

static const struct input_ask ask = {INPUT_TOPO | INPUT_MATRIX, INPUT_TOPO, 0};

/* A topology, or a matrix that holds one, and external files. */
static int read_files(struct segments *s, const struct args *a, struct err *err)
{
    const char *slash = a->in.file ? strrchr(a->in.file, '/') : NULL;
    struct input in;

    input_init(&in);
    int rc = input_open(&in, &a->in, &ask, err);
    if (rc == 0)
        rc = input_sources_read(&a->in.sources, &in.t, err);
    if (rc == 0) {
        if (a->in.sources.count)
            sources_done(&in.t);
        groups_add_hosts(&in.t);
        segments_from_topo(s, &in.t, slash ? slash + 1 : a->in.file ? a->in.file : "");
    }
    input_free(&in);
    return rc;
}

static int judge_nodes(const struct args *a, struct err *err)
{
    struct segments s;
    struct segment_verdict v = {0};
    struct self_report *list = NULL;
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
            json_answer(placement_json(&s, &v), NULL, true, err);
        else if (!a->in.quiet || v.words || v.differs)
            placement_text(stdout, &s, &v);
        rc = segments_exit(&v, &s, err) ? -1 : 0;
    }
    segment_verdict_free(&v);
    self_report_list_free(list, count);
    segments_free(&s);
    return rc;
}

static int cmd_check_placement(int argc, char **argv, struct err *err)
{
    struct args a = {.patience = 30};
    const char *rank = getenv("SLURM_PROCID"), *step = getenv("SLURM_STEP_ID");

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (a.tell)
        return tell(a.label);
    /* In a step with many tasks, the first one asks for all. */
    if (!a.hosts && step && rank && strcmp(rank, "0") != 0)
        return EXIT_GOOD;
    int rc = judge_nodes(&a, err);
    input_args_free(&a.in);
    return rc;
}

const struct command check_placement_command = {&command, cmd_check_placement};
