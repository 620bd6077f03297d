/* command.h - the subcommands: one file each, listed in the table of main.c; and the command line of
 * each: a table of its options, one of its words, what it shares with others, and what must hold of
 * all of them.
 *
 * A command parses its own argv (argv[0] is "railgauge NAME" for messages), calls the library and
 * prints.  It returns an exit code of err.h.  To add one: a file here, a line below, a row in
 * main.c, a section in the man page and a test in tests/cli. */
#ifndef RG_COMMAND_H
#define RG_COMMAND_H

#include "base/opt.h"

/* Options that others have as well; `at` is where their input lies in the command's arguments. */
struct command_child {
    struct argp_child child;
    size_t at;
};

enum { COMMAND_CHILDREN = 7 };

struct command {
    const struct opt *options, *words; /* each ends with {0}; words NULL: a child takes them */
    const char *usage, *doc;           /* args_doc and doc of argp */
    /* After everything: 0, or -1 with what cannot be. */
    int (*check)(void *args, struct err *err);
    /* Options of input.h: which of them (0: none), and where the struct input_args is. */
    unsigned takes;
    size_t input;
    struct command_child child[COMMAND_CHILDREN]; /* ends with {0} */
};

/* Fill args, which hold the defaults.  Ends the program after --help and on bad usage, as argp
 * does. */
void command_parse(const struct command *c, int argc, char **argv, void *args);

/* Each option of such a command line, once it was parsed well: its long name and its value (NULL: a
 * flag), in order. */
void command_given(const struct command *c, int argc, char **argv,
                   void (*take)(void *to, const char *name, const char *value), void *to);

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
