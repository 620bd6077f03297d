/* command.h - the subcommands: one file and one row each.
 *
 * A command parses its own argv (opt.h; argv[0] is "railgauge NAME" for messages), calls the library
 * and prints.  It returns an exit code of err.h, or -1 with err, which main.c prints.  To add one: a
 * file here, a row below, a section in the man page and a test in tests/cli. */
#ifndef RG_COMMAND_H
#define RG_COMMAND_H

#include "base/opt.h"

/* ROW(x, name, help): cmd_x() is what is typed as `name`. */
// clang-format off
#define COMMANDS(ROW)                                                                               \
    ROW(run, "run", "the whole chain: discover, plan, probe, fit, predict, plot")                   \
    ROW(discover, "discover", "write topology.json: what this machine is")                          \
    ROW(plan, "plan", "write plan.tsv: what will be measured")                                      \
    ROW(probe, "probe", "write points.tsv: measure the plan")                                       \
    ROW(import, "import", "points.tsv from what nccl-tests printed")                                \
    ROW(fit, "fit", "write matrix.json: the cost matrix")                                           \
    ROW(show, "show", "print tiers, pairs, collectives and findings of a matrix")                   \
    ROW(cost, "cost", "what one transfer or collective costs")                                      \
    ROW(nodes, "nodes", "what a job costs on a list of nodes, or the best of the free ones")        \
    ROW(predict, "predict", "training step time for a model, layout and placement")                 \
    ROW(place, "place", "nodes and the order of ranks with the shortest step")                      \
    ROW(check_placement, "check-placement", "are a job's nodes where its segments need them")       \
    ROW(replay, "replay", "run a step's messages here, beside their prediction")                    \
    ROW(models, "models", "the model architectures that predict knows")                             \
    ROW(search, "search", "the best layouts of a model on so many GPUs")                            \
    ROW(calibrate, "calibrate", "refit the constants of the step model to measured steps")          \
    ROW(plot, "plot", "pictures of a campaign or a matrix")                                         \
    ROW(accept, "accept", "one verdict of a campaign, against limits and a reference")              \
    ROW(compare, "compare", "what changed between two campaigns on the same machine")               \
    ROW(lint, "lint", "the odd one out among hosts, GPUs, NICs and cables, before any benchmark")   \
    ROW(explain, "explain", "one pair in words: its way, what it should give, what was measured")   \
    ROW(declared, "declared", "what sources declare of the structure, beside what was measured")    \
    ROW(export, "export", "the matrix in formats of other tools")                                   \
    ROW(tune, "tune", "NCCL's best algorithm and protocol per size, from a sweep")                  \
    ROW(seal, "seal", "the checksum of files that were changed by hand")                            \
    ROW(curves, "curves", "how well curves are interpolated, against a table of measured ones")
// clang-format on

#define COMMAND_PROTOTYPE(x, name, help) int cmd_##x(int argc, char **argv, struct err *err);
COMMANDS(COMMAND_PROTOTYPE)
#undef COMMAND_PROTOTYPE

#endif
