/* command.h - subcommands of railgauge and of railgauge-calibrate: a file and a row each.
 *
 * A command parses its own argv (opt.h; argv[0] is "railgauge NAME" for messages), calls the
 * library and prints.  It returns an exit code of err.h, or -1 with err, printed by main.c.  The
 * file ends with `const struct command NAME_command = {&its line, its function};`.  To add a
 * command: a file here, a row below, a section in the man page and a test in tests/cli. */
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
    ROW(STEPS, "steps of run, one by one, and what they rest on")
#define COMMAND_GROUP(x, title) COMMAND_##x,
enum command_group { COMMAND_GROUPS(COMMAND_GROUP) COMMAND_GROUP_COUNT };
#undef COMMAND_GROUP

/* ROW(x, name, group, help): x_command is typed as `name`. */
// clang-format off
#define COMMANDS(ROW)                                                                              \
    ROW(run, "run", MEASURE, "the whole chain: discover, plan, probe, fit, predict, plot")         \
    ROW(check, "check", MEASURE, "minutes on a job's nodes, judged; what the last of them said")   \
    ROW(import, "import", MEASURE, "points.tsv from what nccl-tests printed")                      \
    ROW(show, "show", JUDGE, "print tiers, pairs, collectives and findings of a matrix")           \
    ROW(accept, "accept", JUDGE, "one verdict of a campaign, against limits and a reference")      \
    ROW(report, "report", JUDGE, "a campaign and its verdict as one HTML page")                    \
    ROW(compare, "compare", JUDGE, "what changed between two campaigns on the same machine")       \
    ROW(lint, "lint", JUDGE, "the odd one out among hosts, GPUs, NICs and cables, before any benchmark")\
    ROW(explain, "explain", JUDGE, "one pair in words: its way, what it should give, what was measured")\
    ROW(declared, "declared", JUDGE, "what sources declare of the structure, beside what was measured")\
    ROW(predict, "predict", PREDICT, "training step time for a model, layout and placement")       \
    ROW(search, "search", PREDICT, "the best layouts of a model on so many GPUs")                  \
    ROW(place, "place", PREDICT, "nodes and the order of ranks with the shortest step")            \
    ROW(nodes, "nodes", PREDICT, "what a job costs on a list of nodes, or the best of the free ones")\
    ROW(cost, "cost", PREDICT, "what one transfer or collective costs")                            \
    ROW(models, "models", PREDICT, "the model architectures that predict knows")                   \
    ROW(replay, "replay", PREDICT, "run a step's messages here, beside their prediction")          \
    ROW(check_placement, "check-placement", PREDICT, "are a job's nodes where its segments need them")\
    ROW(export, "export", HAND, "the matrix in formats of other tools")                            \
    ROW(completion, "completion", HAND, "words of commands for the completion of a shell")         \
    ROW(plot, "plot", HAND, "pictures of a campaign or a matrix")                                  \
    ROW(tune, "tune", HAND, "NCCL's best algorithm and protocol per size, from a sweep")           \
    ROW(discover, "discover", STEPS, "write topology.json: what this machine is")                  \
    ROW(plan, "plan", STEPS, "write plan.tsv: what will be measured")                              \
    ROW(probe, "probe", STEPS, "write points.tsv: measure the plan")                               \
    ROW(fit, "fit", STEPS, "write matrix.json: the cost matrix")                                   \
    ROW(seal, "seal", STEPS, "the checksum of files that were changed by hand")

/* Commands for developers of the models, of the program railgauge-calibrate. */
#define CALIBRATE_COMMANDS(ROW)                                                                    \
    ROW(refit, "refit", MODEL, "refit the constants of the step model to measured steps")          \
    ROW(score, "score", MODEL, "errors of the step model against tables of measured steps")        \
    ROW(claims, "claims", MODEL, "verdicts on the claims of publications about steps")             \
    ROW(curves, "curves", MODEL, "errors of interpolated curves against measured ones")            \
    ROW(completion, "completion", HAND, "words of commands for the completion of a shell")
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
