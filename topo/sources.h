/* sources.h - files and commands of others that say something about the machine: one table, from
 * which every command that takes them makes its options (cmd/source_args.h).
 *
 * A reader adds facts with their source and what it could not see (topo_unseen); it never removes
 * or resolves.  What is not there is no error, what cannot be understood is: EXIT_DATA with file,
 * line, value and reason, and t is as it was or partly filled.  Text from outside is bounded and
 * stripped of control characters. */
#ifndef RG_SOURCES_H
#define RG_SOURCES_H

#include "topo/topo.h"

struct source_file {
    const char *name; /* of the option: "slurm" */
    const char *arg;  /* "FILE" */
    const char *help;
    bool host; /* speaks of one host: the option takes [HOST=]FILE */
    /* host: its index in t, -1 for files that speak of many. */
    int (*read)(struct topo *t, int host, const char *path, struct err *err);
};
extern const struct source_file source_file[];
extern const int source_files;

/* One given file.  text is as typed: "FILE" or, where the source speaks of one host, "HOST=FILE";
 * without HOST it is the only host of t, or else the file's name up to the first dot; a host that t
 * lacks is added.  another: a file of this kind was read before, so this one is not of the only
 * host unless HOST says so.  Afterwards the caller calls sources_done() once. */
int sources_read(struct topo *t, const struct source_file *s, const char *text, bool another,
                 struct err *err);
/* What several sources make together: rails and uses of NICs, coordinates from claims. */
void sources_done(struct topo *t);

#endif
