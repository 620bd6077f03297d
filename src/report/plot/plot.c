/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/plot/plot.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

extern char **environ;

const char *const plot_name[PLOT_FIGURES] = {"tiers",   "busbw", "heat",    "dist",   "step",
                                             "scaling", "score", "history", "compare"};
const char *const plot_extension[PLOT_FORMATS] = {"png", "svg", "pdf"};

/* State of a figure: its tables are written, and gnuplot draws. */
struct drawing {
    enum plot_figure figure;
    char *script, *temp, *picture;
    FILE *log; /* messages of gnuplot */
    pid_t pid;
    int failed; /* errno if it could not be started */
};

static void start_gnuplot(struct drawing *d, const char *data, const char *format)
{
    const char *const argv[] = {"gnuplot", "-d", "-c", d->script, data, d->temp, format, NULL};
    posix_spawn_file_actions_t files;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fileno(d->log), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, fileno(d->log), STDERR_FILENO);
    d->failed = posix_spawnp(&d->pid, argv[0], &files, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
}

/* Last message of gnuplot that is not a warning, as one line without control characters. */
static void last_words(char *buf, size_t size, FILE *log)
{
    char line[400];

    snprintf(buf, size, "(it said nothing)");
    rewind(log);
    while (fgets(line, sizeof(line), log)) {
        size_t n = strcspn(line, "\n");
        while (n && isspace((unsigned char)line[n - 1]))
            n--;
        line[n] = '\0';
        for (size_t i = 0; i < n; i++)
            if (iscntrl((unsigned char)line[i]))
                line[i] = '?';
        if (n > 1 && !strstr(line, "warning:") && strspn(line, " ^") != n)
            snprintf(buf, size, "%s", line);
    }
}

/* True if the file ends as its format requires. */
static bool whole(const char *path, const char *format)
{
    static const char png[] = "IEND\xae\x42\x60\x82";
    const char *mark = !strcmp(format, "png") ? png : !strcmp(format, "svg") ? "</svg>" : "%%EOF";
    char tail[64];
    FILE *f = fopen(path, "rb");
    bool found = false;
    size_t n = 0;

    if (!f)
        return false;
    if (fseek(f, -(long)sizeof(tail), SEEK_END) == 0)
        n = fread(tail, 1, sizeof(tail), f);
    fclose(f);
    found = n && memmem(tail, n, mark, strlen(mark)) != NULL;
    return found;
}

/* Start plots/SCRIPT.gp on the tables in `data`; drawing_end() waits for it.  -1: the script is not
 * installed (EXIT_CONFIG), or there is no file for its messages. */
static int drawing_begin(struct drawing *d, const char *data, const char *format, struct err *err)
{
    char *name = mem_printf("plots/%s.gp", plot_name[d->figure]);
    char *in = realpath(data, NULL);
    int rc = -1;

    d->script = file_data(name);
    if (!d->script) {
        err_config(err, "%s is not installed; $RAILGAUGE_DATA names the folder that has plots/",
                   name);
    } else if (!in) {
        err_noinput(err, "%s: %s", data, strerror(errno));
    } else if (!(d->log = tmpfile())) {
        err_io(err, "cannot make a temporary file: %s", strerror(errno));
    } else {
        /* Absolute, so that no file name is read as an option or a command; beside the data, in a
         * directory of this program. */
        d->temp = mem_printf("%s/.%s.%ld.%s", in, plot_name[d->figure], (long)getpid(), format);
        start_gnuplot(d, in, format);
        rc = 0;
    }
    free(name);
    free(in);
    return rc;
}

/* Returns 0: drawn.  1: no gnuplot in PATH.  -1: gnuplot failed (EXIT_DATA, with its message), or
 * the picture is incomplete (EXIT_IO). */
static int drawing_judge(const struct drawing *d, const char *format, struct err *err)
{
    char words[400];
    int status = 0;

    if (d->failed == ENOENT)
        return 1;
    if (d->failed)
        return err_io(err, "cannot start gnuplot: %s", strerror(d->failed));
    while (waitpid(d->pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_io(err, "cannot wait for gnuplot: %s", strerror(errno));
    last_words(words, sizeof(words), d->log);
    if (WIFSIGNALED(status))
        return err_io(err, "gnuplot died of signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return err_data(err, "gnuplot %s: exit status %d: %s", d->script, WEXITSTATUS(status),
                        words);
    if (!whole(d->temp, format))
        return err_io(err, "gnuplot %s wrote half a picture; is the disk full?", d->script);
    if (rename(d->temp, d->picture) < 0)
        return err_io(err, "cannot rename %s to %s: %s", d->temp, d->picture, strerror(errno));
    return 0;
}

/* Put the picture in place atomically, or report the reason in r or err; d is empty afterwards. */
static int drawing_end(struct drawing *d, const char *format, struct plot_result *r,
                       struct err *err)
{
    int rc = d->temp ? drawing_judge(d, format, err) : 0;

    if (rc && d->temp)
        unlink(d->temp);
    if (rc > 0) {
        r->gnuplot = false;
        r->why[d->figure] = mem_strdup("gnuplot was not found");
    } else if (rc == 0 && d->temp) {
        r->file[d->figure] = d->picture;
        d->picture = NULL;
    }
    if (d->log)
        fclose(d->log);
    free(d->script);
    free(d->temp);
    free(d->picture);
    *d = (struct drawing){.pid = 0};
    return rc < 0 ? -1 : 0;
}

static plot_writer *const plot_tables[PLOT_FIGURES] = {
    plot_data_tiers,   plot_data_busbw, plot_data_heat,    plot_data_dist,   plot_data_step,
    plot_data_scaling, plot_data_score, plot_data_history, plot_data_compare};

/* Returns 1: started; 0: skipped with a reason in r; -1: failed. */
static int begin_figure(struct drawing *d, const struct plot_source *s, const char *out,
                        enum plot_figure figure, const char *format, struct plot_result *r,
                        struct err *err)
{
    char *data = file_join(out, "data");
    struct err why = {0};
    int rc = plot_tables[figure](s, data, &why);

    if (rc < 0 && why.code == EXIT_DATA) {
        r->why[figure] = mem_strdup(why.text);
        rc = 0;
    } else if (rc < 0) {
        err_code(err, why.code, "%s", why.text);
    } else {
        d->figure = figure;
        d->picture = mem_printf("%s/%s.%s", out, plot_name[figure], format);
        rc = drawing_begin(d, data, format, err) < 0 ? -1 : 1;
    }
    free(data);
    return rc;
}

/* --- appearance --- */

enum { SIZE_LEAST = 300, SIZE_MOST = 20000, COLOURS = 6 };

int plot_size(struct plot_look *l, const char *text, struct err *err)
{
    static const struct {
        const char *name;
        int width, height;
    } sizes[] = {{"slide", 2560, 1440}, {"paper", 1400, 0}};
    int used = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (!strcmp(text, sizes[i].name)) {
            l->width = sizes[i].width;
            l->height = sizes[i].height;
            return 0;
        }
    if (sscanf(text, "%5dx%5d%n", &l->width, &l->height, &used) != 2 || text[used] ||
        l->width < SIZE_LEAST || l->height < SIZE_LEAST || l->width > SIZE_MOST ||
        l->height > SIZE_MOST)
        return err_usage(err, "\"%.40s\" is none of slide, paper, and WIDTHxHEIGHT from %d to %d",
                         text, SIZE_LEAST, SIZE_MOST);
    return 0;
}

/* Row of a palette; name NULL: the first.  An error lists the existing names. */
static const struct tsv_row *find_palette(const struct tsv *t, const char *name, struct err *err)
{
    struct near near = {.word = name ? name : ""};
    const struct tsv_row *found = NULL;
    char *names = mem_strdup("");

    for (int i = 0; i < t->rows && !found; i++) {
        const char *known = t->row[i].cell[0];
        if (!name || !strcmp(known, name))
            found = &t->row[i];
        near_try(&near, known);
        names = mem_append(names, "%s%s", i ? ", " : "", known);
    }
    if (!found)
        err_usage(err, "no palette \"%.40s\"%s; there are %s", name, near_text(&near), names);
    free(names);
    return found;
}

static int put_look(FILE *out, const struct tsv *t, const struct plot_look *look, struct err *err)
{
    const struct tsv_row *palette = find_palette(t, look->palette, err);
    char title[PLOT_TEXT];

    if (!palette)
        return -1;
    fprintf(out, "key\tvalue\ntitle\t%s\nwidth\t%d\nheight\t%d\n",
            plot_text(title, look->title ? look->title : "", PLOT_TEXT - 8), look->width,
            look->height);
    for (int i = 1; i <= COLOURS; i++)
        fprintf(out, "colour%d\t%s\n", i, palette->cell[i]);
    return 0;
}

/* Write look.tsv for style.gp. */
static int write_look(const char *data, const struct plot_look *look, struct err *err)
{
    char *path = file_data("plots/palettes.tsv"), *to = file_join(data, "look.tsv");
    struct file_out out = {0};
    struct tsv t = {0};
    int rc = -1;

    if (!path)
        err_config(err,
                   "plots/palettes.tsv is not installed; $RAILGAUGE_DATA names the folder that "
                   "has plots/");
    else if (tsv_load(&t, path, err) == 0 && t.columns > COLOURS) {
        rc = file_begin(&out, to, err);
        if (rc == 0)
            rc = put_look(out.stream, &t, look, err);
        if (rc == 0)
            rc = file_commit(&out, err);
        file_abort(&out);
    }
    tsv_free(&t);
    free(path);
    free(to);
    return rc;
}

/* Figures of pairs come last: the others are drawn while points are read. */
static const enum plot_figure turns[PLOT_FIGURES] = {PLOT_TIERS,   PLOT_BUSBW, PLOT_STEP,
                                                     PLOT_SCALING, PLOT_SCORE, PLOT_HISTORY,
                                                     PLOT_COMPARE, PLOT_HEAT,  PLOT_DIST};

static int read_points(struct plot_source *s, enum plot_figure figure, struct points *p,
                       struct err *err)
{
    bool wanted = (figure == PLOT_HEAT || figure == PLOT_DIST) && s->points_file && !s->points;

    if (!wanted)
        return 0;
    if (points_load(p, s->points_file, err) < 0)
        return -1;
    s->points = p;
    return 0;
}

/* Like plot_draw(), with reasons that may already be in r.  Figures are drawn in parallel. */
static int draw(const struct plot_source *s, const char *out, unsigned figures,
                enum plot_format format, const struct plot_look *look, struct plot_result *r,
                struct err *err)
{
    struct drawing d[PLOT_FIGURES] = {{.pid = 0}};
    struct pair_map pairs = {.n = 0};
    struct points points = {.count = 0};
    struct plot_source source = *s;
    char *data = file_join(out, "data");
    int rc = file_mkdir(data, err), made = 0;
    const char *why = "", *kind = plot_extension[format];

    source.pairs = &pairs;
    if (rc == 0)
        rc = write_look(data, look, err);
    for (int turn = 0; turn < PLOT_FIGURES && rc == 0; turn++) {
        enum plot_figure i = turns[turn];
        if (!(figures >> i & 1))
            continue;
        rc = read_points(&source, i, &points, err);
        int n = rc < 0 ? -1 : begin_figure(&d[i], &source, out, i, kind, r, err);
        rc = n < 0 ? -1 : 0;
        made += n > 0;
        why = n == 0 && r->why[i] ? r->why[i] : why;
    }
    for (int i = 0; i < PLOT_FIGURES; i++) /* figures before a failed one are finished, too */
        if (drawing_end(&d[i], kind, r, rc == 0 ? err : NULL) < 0)
            rc = -1;
    pair_map_free(&pairs);
    points_free(&points);
    free(data);
    return rc == 0 && !made ? err_data(err, "%s", why) : rc;
}

int plot_draw(const struct plot_source *s, const char *out, unsigned figures,
              enum plot_format format, const struct plot_look *look, struct plot_result *r,
              struct err *err)
{
    *r = (struct plot_result){.gnuplot = true};
    return draw(s, out, figures, format, look, r, err);
}

/* Path of this file in a directory; NULL if it is missing or path is not a directory.  The caller
 * frees. */
static char *file_in(const char *path, const char *name)
{
    struct stat st;
    char *file = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? file_join(path, name) : NULL;

    if (file && access(file, F_OK) < 0) {
        free(file);
        file = NULL;
    }
    return file;
}

int plot_load(const char *path, struct matrix *m, struct points **points, struct err *err)
{
    char *file = file_in(path, "points.tsv");
    int rc = matrix_load(m, path, MATRIX_WHOLE, err);

    *points = NULL;
    if (rc == 0 && file) {
        *points = mem_calloc(1, sizeof(**points));
        rc = points_load(*points, file, err);
    }
    if (rc < 0 && *points) {
        matrix_free(m);
        free(*points);
        *points = NULL;
    }
    free(file);
    return rc;
}

char *plot_folder(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return file_join(path, "plots");
    if (!strcmp(name, "matrix.json") && slash)
        return mem_printf("%.*s/plots", (int)(slash - path), path);
    return mem_printf("%.*s-plots", (int)(dot > name ? (size_t)(dot - path) : strlen(path)), path);
}

/* Load the predicted steps of a campaign if requested.  If the file has none, the figure is skipped
 * with a reason, like any other without data. */
static int load_steps(struct step_bars *b, const char *path, unsigned *figures,
                      struct plot_result *r, struct err *err)
{
    const unsigned step = 1u << PLOT_STEP;
    char *file = file_join(path, "prediction.json");
    struct err why = {0, ""};
    int rc = 0;

    if (*figures == PLOT_ALL && access(file, F_OK) < 0)
        *figures &= ~step;
    if (*figures & step && step_bars_add(b, NULL, file, &why) < 0) {
        *figures &= ~step;
        if (!*figures || why.code != EXIT_DATA)
            rc = err_code(err, why.code, "%s", why.text);
        else
            r->why[PLOT_STEP] = mem_strdup(why.text);
    }
    free(file);
    return rc;
}

int plot_campaign(const char *path, const struct points *points, const char *out, unsigned figures,
                  enum plot_format format, const struct pair_only *only,
                  const struct plot_look *look, struct plot_result *r, struct err *err)
{
    struct step_bars steps = {0};
    struct matrix m;
    int rc;

    *r = (struct plot_result){.gnuplot = true};
    if (matrix_load(&m, path, MATRIX_WHOLE, err) < 0)
        return -1;
    rc = load_steps(&steps, path, &figures, r, err);
    if (rc == 0) {
        char *file = file_in(path, "points.tsv"),
             *folder = out ? mem_strdup(out) : plot_folder(path);
        const struct plot_source s = {
            .matrix = &m, .points = points, .points_file = file, .steps = &steps, .only = *only};
        rc = draw(&s, folder, figures, format, look, r, err);
        free(folder);
        free(file);
    }
    step_bars_free(&steps);
    matrix_free(&m);
    return rc;
}

void plot_result_free(struct plot_result *r)
{
    for (int i = 0; i < PLOT_FIGURES; i++) {
        free(r->file[i]);
        free(r->why[i]);
    }
    memset(r, 0, sizeof(*r));
}
