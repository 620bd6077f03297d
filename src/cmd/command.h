/* command.h - the command line of a subcommand: a table of its options, one of its words, what it
 * shares with others, and what must hold of all of them. */
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

#endif
