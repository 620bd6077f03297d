/* site.h - the folders of Python's packages that a user works with, for libraries that came in a
 * wheel or with conda and that the loader does not know of.
 *
 * In the order of Python itself: $PYTHONPATH; $VIRTUAL_ENV; $CONDA_PREFIX; the python3 on PATH by
 * its pyvenv.cfg (PEP 405), or by the prefix of the file that it is a link to, with the user's own
 * packages (PEP 370) first and Debian's dist-packages last.  Python is run, for two seconds at
 * most, only where python3 is a script (a shim of pyenv or asdf) that hides which one it starts. */
#ifndef RG_SITE_H
#define RG_SITE_H

#include "base/process.h"

struct site {
    struct words packages; /* folders that are there, each once */
    struct words lib; /* PREFIX/lib of conda environments, whose packages put libraries there */
};

/* The first program of this name in PATH, NULL: none; the caller frees. */
char *site_program(const char *name);

void site_find(struct site *s);
void site_free(struct site *s);

#endif
