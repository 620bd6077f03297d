/* command.h - subcommands of railgauge and of railgauge-calibrate: a file and a row each.
 *
 * A command parses its own argv (opt.h; argv[0] is "railgauge NAME" for messages), calls the
 * library and prints.  It returns an exit code of err.h, or -1 with err, printed by main.c.  The
 * file ends with `const struct command NAME_command = {&its line, its function};`.  To add a
 * command: a file here, a row below, a section in the man page and a test in tests/cli.
 *
 * Example:
 *
 *     #include "base/err.h"
 *     #include "base/opt.h"
 *     struct args {
 *         int ranks;
 *     };
 *     static const struct opt options[] = {
 *         {"ranks", 0, "N", "number of ranks", OPT_INT(struct args, ranks, 1, 1 << 20)}, {0}};
 *     static const struct opt_line line = {.options = options,
 *                                          .doc = "Count the ranks.",
 *                                          .exits = EXIT_CODES("", "")};
 *
 *     static int cmd_plan(int argc, char **argv, struct err *err)
 *     {
 *         struct args a = {.ranks = 1};
 *
 *         opt_parse(&line, argc, argv, OPT_EXITS, &a);
 *         return a.ranks > 1 ? EXIT_GOOD : err_usage(err, "--ranks: 1, nothing to count");
 *     }
 *
 *     const struct command plan_command = {&line, cmd_plan}; */
#ifndef RG_COMMAND_H
#define RG_COMMAND_H

#include "base/opt.h"

/* Purposes of commands, which are the groups of railgauge --help. */
#define COMMAND_GROUPS(ROW)                                                                        \
    ROW(MEASURE, "measure")                                                                        \
    ROW(JUDGE, "judge what was measured")                                                          \
    ROW(PREDICT, "predict and place jobs")                                                         \
    ROW(MODEL, "fit and judge the models")                                                         \
    ROW(HAND, "hand on to other tools")                                                            \
    ROW(STEPS, "steps of run, one by one")
#define COMMAND_GROUP(x, title) COMMAND_##x,
enum command_group { COMMAND_GROUPS(COMMAND_GROUP) COMMAND_GROUP_COUNT };
#undef COMMAND_GROUP

/* ROW(x, name, group, help): x_command is typed as `name`. */
// clang-format off
#define COMMANDS(ROW)                                                                              \
    ROW(run, "run", MEASURE, "the whole chain: discover, plan, probe, fit, predict, plot")         \
    ROW(check, "check", MEASURE, "a short check of the nodes of a job, and its last result")       \
    ROW(import, "import", MEASURE, "points.tsv from the output of nccl-tests or the record of a job")\
    ROW(show, "show", JUDGE, "tiers, pairs, collectives and findings of a matrix")                 \
    ROW(accept, "accept", JUDGE, "one verdict on a campaign, by limits and a reference")           \
    ROW(report, "report", JUDGE, "a campaign and its verdict as one HTML page")                    \
    ROW(compare, "compare", JUDGE, "changes between campaigns on the same machine")                \
    ROW(lint, "lint", JUDGE, "the host, GPU, NIC or cable that differs, before any measurement")   \
    ROW(explain, "explain", JUDGE, "the path of one pair: hops, data sheet, measurements")         \
    ROW(declared, "declared", JUDGE, "declared groups of hosts beside the measured ones")          \
    ROW(predict, "predict", PREDICT, "training step time of a model, layout and placement")        \
    ROW(search, "search", PREDICT, "the best layouts of a model on a number of GPUs")              \
    ROW(place, "place", PREDICT, "nodes and order of ranks with the shortest step")                \
    ROW(nodes, "nodes", PREDICT, "cost of a job on a list of nodes, or the best of the free nodes")\
    ROW(cost, "cost", PREDICT, "time of one transfer or collective")                               \
    ROW(models, "models", PREDICT, "the models that predict knows")                                \
    ROW(replay, "replay", PREDICT, "run the messages of a step here, beside their prediction")     \
    ROW(check_placement, "check-placement", PREDICT, "check that a job's nodes share blocks as its segments need")\
    ROW(export, "export", HAND, "the matrix in formats of other tools")                            \
    ROW(completion, "completion", HAND, "script that completes commands and options in a shell")   \
    ROW(plot, "plot", HAND, "pictures of campaigns, matrices and predictions")                     \
    ROW(tune, "tune", HAND, "the best algorithm and protocol of NCCL per size, from a sweep")      \
    ROW(discover, "discover", STEPS, "write topology.json: this machine as far as it is visible")  \
    ROW(plan, "plan", STEPS, "write plan.tsv: the list of measurements")                           \
    ROW(probe, "probe", STEPS, "write points.tsv: measure the plan")                               \
    ROW(fit, "fit", STEPS, "write matrix.json: the cost matrix")                                   \
    ROW(seal, "seal", STEPS, "write the checksum of files that were changed by hand")

/* Commands for developers of the models, of the program railgauge-calibrate. */
#define CALIBRATE_COMMANDS(ROW)                                                                    \
    ROW(refit, "refit", MODEL, "refit the constants of the step model to measured steps")          \
    ROW(score, "score", MODEL, "errors of the step model against tables of measured steps")        \
    ROW(claims, "claims", MODEL, "verdicts on the claims of publications about steps")             \
    ROW(curves, "curves", MODEL, "errors of interpolated curves against measured ones")            \
    ROW(completion, "completion", HAND, "script that completes commands and options in a shell")
// clang-format on

struct command {
    const struct opt_line *line;
    int (*run)(int argc, char **argv, struct err *err);
};

#define COMMAND_PROTOTYPE(x, name, group, help) extern const struct command x##_command;
COMMANDS(COMMAND_PROTOTYPE)
CALIBRATE_COMMANDS(COMMAND_PROTOTYPE)
#undef COMMAND_PROTOTYPE

/* The program of developers is the same file by another name. */
#define CALIBRATE_PROGRAM "railgauge-calibrate"

#endif
