/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/campaign_files.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/units.h"
#include "measure/taint.h"
#include "watch/watch.h"

int campaign_files_plan(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        struct err *err)
{
    int rc = 0;

    if (w->rank == 0)
        rc = a->plan ? plan_load(&f->plan, a->plan, f->topo.endpoints, err)
                     : plan_make(&f->plan, &f->topo, &a->probe.plan, err);
    rc = w->agree(w, rc, err);
    if (rc == 0)
        rc = plan_share(&f->plan, "the plan of rank 0", w, f->topo.endpoints, err);
    return w->agree(w, rc, err);
}

/* Add the provenance of an existing topology file that this process does not know itself. */
static void keep_provenance(const char *path)
{
    static const char *const own[] = {"tool", "tool_version", "command",
                                      "host", "time_utc",     "environment"};
    json_t *file = json_load_file(path, 0, NULL), *now = json_provenance(), *was;
    const char *key;

    json_object_foreach(json_object_get(file, "provenance"), key, was)
    {
        bool ours = json_object_get(now, key) != NULL;
        for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
            ours = ours || !strcmp(key, own[i]);
        if (!ours && json_is_string(was))
            json_provenance_add(key, json_string_value(was));
    }
    json_decref(now);
    json_decref(file);
}

/* again: the file already belongs to this campaign. */
static int save_topology(const struct campaign_files *f, bool again, struct err *err)
{
    char *path = file_beside(f->output, "topology.json");

    if (again)
        keep_provenance(path);
    int rc = topo_save(&f->topo, path, err);
    free(path);
    return rc;
}

int campaign_files_save_topology(const struct campaign_files *f, struct err *err)
{
    return save_topology(f, true, err);
}

static int save_inputs(const struct campaign_files *f, const struct probe_args *a, struct err *err)
{
    char *plan = file_beside(f->output, "plan.tsv");
    int rc = a->topology ? 0 : save_topology(f, false, err);

    if (rc == 0 && !a->plan)
        rc = plan_save(&f->plan, plan, err);
    free(plan);
    return rc;
}

/* Open the log first, because it refuses the points of a different plan before the plan file is
 * replaced. */
int campaign_files_open(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        const char *transport, struct err *err)
{
    int rc = 0;

    f->output = a->output ? a->output : "points.tsv";
    if (w->rank == 0)
        rc = points_open(&f->log, f->output, plan_crc(&f->plan), &f->topo, transport, err);
    if (rc == 0 && w->rank == 0)
        rc = save_inputs(f, a, err);
    return w->agree(w, rc, err);
}

/* --- time of a campaign --- */

static const char *const spent_name[SPENT_COUNT] = {
    [SPENT_START] = "start",
    [SPENT_SAMPLES] = "samples",
    [SPENT_OPENING] = "opening",
    [SPENT_EXCHANGES] = "exchanges",
};

static void tell_time(const struct measure_time *t)
{
    char estimated[UNITS_TEXT], took[UNITS_TEXT], text[UNITS_TEXT], *rest = NULL;
    double share[SPENT_COUNT];

    for (int i = 0; i < SPENT_COUNT; i++) {
        share[i] = 100 * t->spent[i] / t->took;
        if (i != SPENT_SAMPLES)
            rest = mem_append(rest, ", %.0f %% %s", share[i], spent_name[i]);
    }
    if (t->estimated > 0)
        log_info("took %s, estimated %s at its start: %.0f %% of it samples (%s)%s",
                 units_seconds_text(took, t->took), units_seconds_text(estimated, t->estimated),
                 share[SPENT_SAMPLES], units_seconds_text(text, t->spent[SPENT_SAMPLES]), rest);
    free(rest);
}

static json_t *time_json(const struct measure_time *t)
{
    json_t *o = json_pack("{s:f, s:f, s:f}", "estimated_seconds", t->estimated, "took_seconds",
                          t->took, "warmup_seconds", t->warmup);

    for (int i = 0; i < SPENT_COUNT; i++) {
        char *key = mem_printf("%s_seconds", spent_name[i]);
        json_object_set_new(o, key, json_real(t->spent[i]));
        free(key);
    }
    return o;
}

int campaign_files_note_time(const struct campaign_files *f, const struct measure_time *t,
                             struct err *err)
{
    char *path = file_beside(f->output, "campaign.json");
    json_t *root = json_load_file(path, 0, NULL), *all = json_object_get(root, "measured");
    int rc = 0;

    tell_time(t);
    if (root && !all)
        json_object_set_new(root, "measured", all = json_array());
    if (json_is_array(all)) {
        json_array_append_new(all, time_json(t));
        rc = json_save(root, path, err);
    }
    json_decref(root);
    free(path);
    return rc;
}

static void stop(int sig)
{
    (void)sig;
    measure_stop = 1;
    watch_stopping();
}

void campaign_files_catch_signals(void)
{
    struct sigaction act = {.sa_handler = stop, .sa_flags = SA_RESTART};
    struct signals before;

    signals_catch(&before, stop);
    sigaction(SIGUSR1, &act, NULL); /* sent by schedulers before the time limit */
}

char *campaign_files_trouble(const struct points *all)
{
    int wrong = 0, failed = 0, tainted = 0;
    const char *first = NULL, *taint = NULL;

    for (int i = 0; i < all->count; i++) {
        const struct point *p = &all->point[i];
        bool bad = p->wrong || p->stop == STOP_FAILED;
        wrong += p->wrong;
        failed += p->stop == STOP_FAILED;
        tainted += taint_is(p);
        first = !first && bad ? point_words(p) : first;
        taint = !taint && taint_is(p) ? p->note : taint;
    }
    char *text = first ? mem_printf("data were wrong in %d of %d points and %d failed; first: %s",
                                    wrong, all->count, failed, first)
                       : NULL;
    if (taint)
        text = mem_append(text, "%s%d of %d points are tainted; first: %s", first ? "; " : "",
                          tainted, all->count, taint);
    return text;
}

bool campaign_files_failed(const struct points *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->point[i].wrong || all->point[i].stop == STOP_FAILED)
            return true;
    return false;
}

int campaign_files_close(struct campaign_files *f, int rc, struct err *err)
{
    char *trouble = f->log ? campaign_files_trouble(points_all(f->log)) : NULL;
    bool failed = trouble && campaign_files_failed(points_all(f->log));

    if (points_close(f->log, rc < 0 ? NULL : err) < 0)
        rc = -1;
    f->log = NULL;
    if (trouble && (rc < 0 || !failed))
        log_warn("%s: %s", f->output, trouble);
    else if (trouble)
        rc = err_set(err, "%s: %s", f->output, trouble);
    free(trouble);
    return rc;
}

/* --- directory of a campaign without a given one --- */

/* Try `stem`, "stem-2" ... until a name is free.  Any other failure is reported in err. */
static char *first_free(const char *stem, int (*take)(const char *path, void *with), void *with,
                        struct err *err)
{
    for (int i = 1; i < 1000; i++) {
        char *path = i == 1 ? mem_strdup(stem) : mem_printf("%s-%d", stem, i);
        if (take(path, with) == 0)
            return path;
        bool taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;
        if (!taken)
            err_io(err, "%s: cannot make the folder: %s", path, strerror(errno));
        free(path);
        if (!taken)
            return NULL;
    }
    err_io(err, "%s and 998 more of that name exist; -o names another folder", stem);
    return NULL;
}

static int make_dir(const char *path, void *with)
{
    (void)with;
    return mkdir(path, 0770);
}

/* rename(2) never replaces a directory that holds a file. */
static int rename_dir(const char *path, void *with)
{
    return rename(with, path);
}

char *campaign_files_dir(time_t now, struct err *err)
{
    char stem[64];
    struct tm tm;

    strftime(stem, sizeof(stem), "campaign-%Y-%m-%dT%H%M", gmtime_r(&now, &tm));
    return first_free(stem, make_dir, NULL, err);
}

/* Make the new link beside the old link and rename, so that "last" always exists. */
static void link_last(const char *dir)
{
    char *temp = mem_printf("." CAMPAIGN_LAST ".%ld", (long)getpid());
    struct stat st;

    if (lstat(CAMPAIGN_LAST, &st) == 0 && !S_ISLNK(st.st_mode))
        log_warn(CAMPAIGN_LAST " is no link and stays as it is; the campaign is %s", dir);
    else {
        unlink(temp);
        if (symlink(dir, temp) < 0 || rename(temp, CAMPAIGN_LAST) < 0) {
            log_warn(CAMPAIGN_LAST ": no link to %s: %s", dir, strerror(errno));
            unlink(temp);
        }
    }
    free(temp);
}

static char *dated_name(const char *dir, const struct topo *t)
{
    enum { LONGEST = 80 };
    const struct names *hosts = &t->group[LEVEL_HOST], *racks = &t->group[LEVEL_RACK], *n = hosts;

    if (racks->count && topo_at(t, 0, LEVEL_RACK) >= 0)
        n = racks;
    char *name = mem_printf("%s-%.*s", dir, LONGEST, t->fabric ? t->fabric : n->name[0]);
    if (!t->fabric && n->count > 1)
        name = mem_append(name, "+%d", n->count - 1);
    for (char *s = name; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._+-", *s))
            *s = '-';
    return name;
}

int campaign_files_name_dir(char **dir, const struct topo *t, struct err *err)
{
    char *stem = dated_name(*dir, t), *path = first_free(stem, rename_dir, *dir, err);

    free(stem);
    if (!path)
        return -1;
    free(*dir);
    *dir = path;
    link_last(path);
    return 0;
}

char *campaign_files_last_dir(struct err *err)
{
    char to[PATH_MAX];
    ssize_t n = readlink(CAMPAIGN_LAST, to, sizeof(to) - 1);

    if (n < 0) {
        err_noinput(err, "no campaign to resume: " CAMPAIGN_LAST ": %s; -o names one",
                    errno == EINVAL ? "it is no link" : strerror(errno));
        return NULL;
    }
    to[n] = '\0';
    return mem_strdup(to);
}

void campaign_files_drop_dir(const char *dir)
{
    static const char *const results[] = {"topology.json", "verdict.json"};

    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
        char *path = file_join(dir, results[i]);
        bool there = access(path, F_OK) == 0;
        free(path);
        if (there)
            return;
    }
    char *options = file_join(dir, "campaign.json");
    unlink(options);
    rmdir(dir);
    free(options);
}
