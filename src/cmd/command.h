/* command.h - the subcommands: one file each, listed in the table of main.c.
 *
 * A command parses its own argv (opt.h; argv[0] is "railgauge NAME" for messages), calls the library
 * and prints.  It returns an exit code of err.h.  To add one: a file here, a line below, a row in
 * main.c, a section in the man page and a test in tests/cli. */
#ifndef RG_COMMAND_H
#define RG_COMMAND_H

#include "base/opt.h"

int cmd_discover(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_cost(int argc, char **argv);
int cmd_nodes(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_place(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_models(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_declared(int argc, char **argv);
int cmd_lint(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_curves(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_check_placement(int argc, char **argv);
int cmd_seal(int argc, char **argv);
int cmd_run(int argc, char **argv);

struct matrix;

/* EXIT_BELOW where a part is named (wrong data, dead, slow), else EXIT_GOOD. */
int cmd_verdict(const struct matrix *m);
/* Print "railgauge NAME: text" on stderr and return the code of err. */
int cmd_fail(const char *name, const struct err *err);

#endif
