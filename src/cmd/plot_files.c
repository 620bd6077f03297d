/* plot_files.c - pictures of files that hold predictions. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/plot_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "emit/text/term.h"

/* What the files held. */
struct held {
    struct step_bars steps;
    struct scaling scaling;
    struct tsv score;
    bool has_score;
};

/* The file of LABEL=FILE; a name with "=" that is there is only a name. */
static const char *file_of(const char *word)
{
    const char *equal = strchr(word, '=');

    return equal && access(word, F_OK) < 0 ? equal + 1 : word;
}

static int load_steps(struct held *h, const struct plot_files *f, struct err *err)
{
    for (int i = 0; i < f->paths; i++) {
        const char *file = file_of(f->path[i]);
        char *label = mem_strdup(f->path[i]);
        label[file > f->path[i] ? file - f->path[i] - 1 : 0] = '\0';
        int rc = step_bars_add(&h->steps, *label ? label : NULL, file, err);
        free(label);
        if (rc < 0)
            return -1;
    }
    return f->measured ? step_bars_measured(&h->steps, f->measured, err) : 0;
}

static int load_scaling(struct held *h, const struct plot_files *f, struct err *err)
{
    const char *file = file_of(f->path[0]);

    if (f->paths == 1 && access(file, R_OK) == 0 && !step_is_json(file)) {
        if (f->measured)
            return err_usage(err, "--measured: %s has a column for that", file);
        return scaling_load(&h->scaling, file, err);
    }
    if (load_steps(h, f, err) < 0)
        return -1;
    return scaling_of_steps(&h->scaling, &h->steps, err);
}

static int load(struct held *h, const struct plot_files *f, struct err *err)
{
    *h = (struct held){.has_score = false};
    if (f->figure == PLOT_STEP)
        return load_steps(h, f, err);
    if (f->figure == PLOT_SCALING)
        return load_scaling(h, f, err);
    if (f->paths > 1)
        return err_usage(err, "score is drawn of one table, and %d are given", f->paths);
    h->has_score = score_table_load(&h->score, f->path[0], err) == 0;
    return h->has_score ? 0 : -1;
}

static void release(struct held *h)
{
    step_bars_free(&h->steps);
    scaling_free(&h->scaling);
    if (h->has_score)
        tsv_free(&h->score);
}

int plot_files_draw(const struct plot_files *f, const char *out, enum plot_format format,
                    struct plot_result *r, struct err *err)
{
    struct held h;
    int rc = load(&h, f, err);

    *r = (struct plot_result){.gnuplot = true};
    if (rc == 0) {
        const struct plot_source s = {.steps = &h.steps,
                                      .top = f->top,
                                      .scaling = &h.scaling,
                                      .score = &h.score,
                                      .by = f->by};
        char *folder = out ? mem_strdup(out) : plot_folder(file_of(f->path[0]));
        rc = plot_draw(&s, folder, 1u << f->figure, format, r, err);
        free(folder);
    }
    release(&h);
    return rc;
}

int plot_files_print(const struct plot_files *f, struct err *err)
{
    struct held h;
    int rc = load(&h, f, err);

    if (rc == 0 && f->figure == PLOT_STEP)
        rc = plot_text_step(stdout, &h.steps, f->top, term_columns(stdout), err);
    else if (rc == 0 && f->figure == PLOT_SCALING)
        rc = plot_text_scaling(stdout, &h.scaling, err);
    else if (rc == 0)
        rc = plot_text_score(stdout, &h.score, f->by, err);
    release(&h);
    return rc;
}
