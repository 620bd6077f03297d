/* gnuplot.h - run one of the scripts in plots/, without a shell. */
#ifndef RG_GNUPLOT_H
#define RG_GNUPLOT_H

#include "base/err.h"

/* Draw plots/SCRIPT.gp from the tables in `data` into the file `picture` (replaced atomically).
 * 0: drawn.  1: there is no gnuplot in PATH.  -1: the script is not installed (EXIT_CONFIG),
 * gnuplot failed (EXIT_DATA, with its own words), or the picture is not whole (EXIT_IO). */
int gnuplot_draw(const char *script, const char *data, const char *picture, const char *format,
                 struct err *err);

#endif
