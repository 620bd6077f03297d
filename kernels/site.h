/* site.h - folders of the user's Python packages, for libraries from a wheel or conda that the
 * loader does not find.
 *
 * Searched in Python's order: $PYTHONPATH; $VIRTUAL_ENV; $CONDA_PREFIX; the python3 on PATH by its
 * pyvenv.cfg (PEP 405), or by the prefix of the file that it links to, with the user's own
 * packages (PEP 370) first and Debian's dist-packages last.  Python is run, for at most two
 * seconds, only if python3 is a script (a shim of pyenv or asdf) that hides the real one. */
#ifndef RG_SITE_H
#define RG_SITE_H

#include "base/process.h"

struct site {
    struct words packages; /* existing folders, without repetition */
    struct words lib; /* PREFIX/lib of conda environments, where their packages put libraries */
};

void site_find(struct site *s);
void site_free(struct site *s);

#endif
