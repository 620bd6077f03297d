/* plot_files.h - pictures of files that hold predictions, for railgauge plot. */
#ifndef RG_PLOT_FILES_H
#define RG_PLOT_FILES_H

#include "emit/plot/plot.h"

/* One of PLOT_STEP, PLOT_SCALING, PLOT_SCORE and what it is drawn of.  A path that is no file but
 * LABEL=FILE names its steps. */
struct plot_files {
    enum plot_figure figure;
    const char **path;
    int paths, top;            /* top 0: STEP_TOP */
    const char *measured, *by; /* or NULL */
};

/* Into out, or "plots" beside the first file. */
int plot_files_draw(const struct plot_files *f, const char *out, enum plot_format format,
                    struct plot_result *r, struct err *err);
int plot_files_print(const struct plot_files *f, struct err *err);

#endif
