/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - railgauge check: a campaign with a time limit, and the verdict; --last repeats the last
 * verdict. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/campaign/chain_impl.h"
#include "cmd/command.h"
#include "cmd/judged_impl.h"
#include "topo/sources/sources.h"
#include "verdict/health.h"

struct args {
    struct chain chain;
    struct judged_args of;
    double limit, max_age; /* s */
    const char *state, *host, *take;
    int style; /* enum judged_style */
    bool last, reason;
};

static const struct opt options[] = {
    {"limit", 0, "TIME", "longest time of the whole check (default 2m)",
     OPT_SECONDS(struct args, limit)},
    {"last", 0, NULL, "print the last result of HOST (default: this host) without measuring",
     OPT_INTO(struct args, last)},
    {"max-age", 0, "TIME", "with --last, ignore results older than this (default 24h)",
     OPT_SECONDS(struct args, max_age)},
    {"state", 0, "DIR",
     "directory of the last results (default $RAILGAUGE_STATE, /var/lib/railgauge or "
     "~/.local/state/railgauge)",
     OPT_INTO(struct args, state)},
    {"take", 0, "DIR",
     "first copy the result of HOST from this state directory of an unprivileged user, if it is "
     "newer; then as --last",
     OPT_INTO(struct args, take)},
    {"reason", 0, NULL, "print only a line HOST REASON for each host to drain",
     OPT_INTO(struct args, reason)},
    JUDGED_AGAINST(struct args, of),
    JUDGED_LIMITS(struct args, of),
    JUDGED_STYLE(struct args, style),
    {"output", 'o', "DIR", "keep the campaign in this new directory",
     OPT_INTO(struct args, chain.dir)},
    CHAIN_TRUST(struct args, chain),
    {"transport", 't', "NAME",
     "library or method that moves the data: auto, nccl, copy, mpi, verbs or sim (default auto: "
     "sim with --fabric, nccl if every rank has a GPU, else mpi)",
     OPT_INTO(struct args, chain.transport), .values = transport_each},
    INPUT_JSON(struct args, of.in.json),
    INPUT_QUIET(struct args, of.in.quiet),
    {0},
};

static const struct opt words[] = {{"host", OPT_INTO(struct args, host)}, {0}};

/* Options for a short measurement, placed before the typed options: each part of a host with some
 * partners, and a single collective. */
static char *const small[] = {"--op=pair_latency,pair_bw,all_reduce", "--stepfactor=16",
                              "--epochs=3", "--matchings=4"};
enum { SMALL = sizeof(small) / sizeof(*small) };

/* s: ranks that do not leave are ended within 4 s (launch.c); then the measurements are judged. */
enum { LEAST = 10, RESERVE = 5 };

static int refuse(void *args, struct err *err)
{
    const struct args *a = args;

    if (a->host && !a->last && !a->take)
        return err_usage(err, "a host is for --last; --hosts says where to measure");
    if (a->limit < LEAST)
        return err_usage(err,
                         "--limit %g s is less than %d s, which starting and ending ranks takes",
                         a->limit, LEAST);
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = refuse,
    .usage = "[--last|--take DIR [HOST]]",
    .set = {{.rows = launch_options, .at = offsetof(struct args, chain.launch)},
            {.rows = probe_options, .at = offsetof(struct args, chain.probe)},
            {.rows = sim_options, .at = offsetof(struct args, chain.sim)}},
    .more = transport_options,
    .doc = "Measure for a minute or two on the nodes of this job, or on this host, and "
           "judge as accept does.\vjobs/health shows its use in prologs, epilogs, health "
           "checks and cron.",
    .examples =
        (const struct opt_example[]){
            OPT_ELSEWHERE("Check the nodes of this job, or this host", "railgauge check"),
            OPT_ELSEWHERE("Compare with an earlier matrix, in at most a minute",
                          "railgauge check --limit 1m --against site/matrix.json"),
            OPT_EXAMPLE("Print the last result of this host, without measuring",
                        "railgauge check --last"),
            OPT_ELSEWHERE("Print the last result of a host for Nagios",
                          "railgauge check --last n03 --max-age 2h --exit-style nagios"),
            OPT_ELSEWHERE("Measure as the user railgauge, and let root keep the result",
                          "railgauge check --take /run/railgauge-check"),
            OPT_EXAMPLE("Print the hosts to drain, for scontrol",
                        "railgauge check --last --reason"),
            {0}},
    .exits = EXIT_CODES("1 a check fails, 2 could not judge, ", ", 75 cut short, 78 configuration"),
};

/* --- state directory --- */

/* The caller frees. */
static char *state_dir(const struct args *a, bool writes)
{
    static const char system[] = "/var/lib/railgauge";
    const char *given = a->state ? a->state : getenv("RAILGAUGE_STATE");
    const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");

    if (given && *given)
        return mem_strdup(given);
    if (geteuid() == 0 || access(system, writes ? W_OK : X_OK) == 0 || !home)
        return mem_strdup(system);
    return state && *state ? file_join(state, "railgauge")
                           : mem_printf("%s/.local/state/railgauge", home);
}

static int own_code(enum accept_is is)
{
    return is == ACCEPT_FAIL ? EXIT_BELOW : is == ACCEPT_UNKNOWN ? EXIT_UNJUDGED : EXIT_GOOD;
}

static int code_of(const struct args *a, enum accept_is is)
{
    return a->style == JUDGED_NAGIOS ? (int)is : own_code(is);
}

static void print_reason(const struct health *h)
{
    if (h->verdict == ACCEPT_FAIL)
        printf("%s %s\n", h->host, h->reason);
}

/* --- --last --- */

/* Slurm's name of this node, if any; else its own. */
static const char *this_host(char buf[256])
{
    const char *node = getenv("SLURMD_NODENAME");

    return node && *node ? node : host_self(buf, 256);
}

enum { FUTURE = 3600 }; /* s that clocks of hosts may differ */

static void look_at_age(struct health *h, double max_age)
{
    double age = (double)time(NULL) - h->time;
    char old[UNITS_TEXT], most[UNITS_TEXT];

    if (age > max_age)
        health_doubt(h,
                     mem_printf("railgauge: could not judge: last check is %s old, more than %s",
                                units_seconds_text(old, age), units_seconds_text(most, max_age)));
    else if (age < -FUTURE)
        health_doubt(h, mem_printf("railgauge: could not judge: last check is of a time to come"));
}

static void print_last(const struct args *a, const struct health *h)
{
    char *line = mem_printf("%s: %s%s%s", accept_name[h->verdict], h->host, *h->reason ? ": " : "",
                            h->reason);

    if (a->reason)
        print_reason(h);
    else if (a->style == JUDGED_NAGIOS)
        judged_nagios(h->verdict, line, NULL);
    else if (!a->of.in.quiet)
        puts(line);
    free(line);
}

/* Root acts on a verdict, so no other user may be able to write it. */
static int load_own(struct health *h, const struct args *a, const char *dir, const char *host,
                    struct err *err)
{
    int rc = health_load(h, dir, host, err);
    char *safe = rc == 0 && !a->chain.trust ? file_for_root(h->path, err) : NULL;

    if (rc == 0 && !a->chain.trust && !safe)
        rc = -1;
    free(safe);
    return rc;
}

/* EXIT_CONFIG unless only the owner of the folder can have written the file in it. */
static int check_sender(const char *dir, const char *file, struct err *err)
{
    struct stat folder, st;

    if (lstat(dir, &folder) < 0 || lstat(file, &st) < 0)
        return err_noinput(err, "%s: %s", file, strerror(errno));
    if (!S_ISDIR(folder.st_mode) || folder.st_mode & (S_IWGRP | S_IWOTH))
        return err_config(err, "%s: not a folder that only its owner may write to", dir);
    if (!S_ISREG(st.st_mode) || st.st_uid != folder.st_uid)
        return err_config(err, "%s: not a file of the owner of its folder (user %u)", file,
                          folder.st_uid);
    return 0;
}

/* Copy the result of this host, if it is newer.  The sender speaks for no other host, and not for
 * times to come, which would hide every later result. */
static int take_result(const struct args *a, const char *dir, const char *host, struct err *err)
{
    struct health sent, own = {0};
    struct err none;
    size_t n = strcspn(host, ".");
    int rc = health_load(&sent, a->take, host, err);

    if (rc == 0)
        rc = check_sender(a->take, sent.path, err);
    if (rc == 0 && (strncasecmp(sent.host, host, n) != 0 || !strchr(".", sent.host[n])))
        rc = err_data(err, "%s: of host %s, not of %s", sent.path, sent.host, host);
    if (rc == 0 && sent.time > (double)time(NULL) + FUTURE)
        rc = err_data(err, "%s: of a time to come", sent.path);
    if (rc == 0)
        rc = file_mkdir(dir, err);
    if (rc == 0 && (load_own(&own, a, dir, host, &none) < 0 || own.time < sent.time))
        rc = health_save(&sent, dir, err);
    health_free(&own);
    health_free(&sent);
    return rc;
}

/* An unreadable state is a verdict, too. */
static int answer_last(const struct args *a, struct err *err)
{
    char buf[256], *dir = state_dir(a, a->take);
    const char *host = a->host ? a->host : this_host(buf);
    struct health h = {0};
    struct err why;
    int rc = 0;

    if ((a->take && take_result(a, dir, host, &why) < 0) || load_own(&h, a, dir, host, &why) < 0) {
        health_free(&h);
        h.host = mem_strdup(host);
        health_doubt(&h, mem_printf("railgauge: could not judge: %s", why.text));
    } else
        look_at_age(&h, a->max_age);
    if (a->of.in.json && h.json)
        rc = json_answer(json_incref(h.json), NULL, true, err);
    else if (a->of.in.json)
        rc = err_set(err, "%s", h.reason);
    else
        print_last(a, &h);
    int code = code_of(a, h.verdict);
    health_free(&h);
    free(dir);
    return rc < 0 ? -1 : code;
}

/* --- choice of hosts --- */

static int gpus_here(void)
{
    char name[256];
    struct topo t;
    struct err err;

    topo_init(&t);
    int host = topo_add_host(&t, host_self(name, sizeof(name)));
    int n = topo_read_nvml(&t, host, "", &err) == 0 ? t.gpus : 0;
    topo_free(&t);
    return n;
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    struct err err;
    int n = 0;

    return text && units_int(&n, text, 1, 1 << 20, &err) == 0 ? n : 0;
}

/* A rank per GPU, on the nodes of the job if there is a job.  A prolog or an epilog has a job's
 * variables, too, but checks only its own node. */
static void choose_hosts(struct args *a)
{
    struct launch *l = &a->chain.launch;
    const char *nodes = getenv("SLURM_JOB_NODELIST");
    int count = nodes && !getenv("SLURM_SCRIPT_CONTEXT") ? number_of("SLURM_JOB_NUM_NODES") : 0;

    if (a->chain.sim.fabric || l->command || l->hosts || l->ranks)
        return;
    int each = count ? number_of("SLURM_GPUS_ON_NODE") : 0;
    if (count && !each)
        each = number_of("SLURM_NTASKS_PER_NODE");
    if (!each)
        each = gpus_here();
    if (count > 1) {
        a->chain.launch.hosts = nodes;
        l->ranks = count * (each ? each : 1);
    } else if (each > 1)
        l->ranks = each;
}

/* If the limit interrupted the chain, what was measured counts and the rest is unknown.  A rank
 * that died or hangs does not prevent a verdict. */
static int measure(struct chain *c, struct err *err)
{
    int rc = chain_transport(c, err);

    if (rc == 0)
        rc = chain_open(c, err);
    if (rc == 0)
        rc = chain_run(c, err);
    if (rc < 0 && c->spent && chain_fit(c, err) == 0)
        return 0;
    char *way = rc < 0 ? strstr(err->text, ", --resume") : NULL;
    if (way)
        *way = '\0';
    if (rc < 0 && log_now() >= c->until)
        err_set(err, "the limit was spent before there was anything to judge");
    else if (way)
        err->code = EXIT_UNJUDGED;
    return rc;
}

/* --- result --- */

struct answer {
    const struct judged *judged;
    struct health *host;
    int hosts;
    const char *state;
    double took;
    char *cut; /* reason for an incomplete measurement; NULL: complete */
};

/* The missing part may be the bad one, so only FAIL remains certain. */
static void doubt(struct answer *w, struct judged *j, const struct chain *c)
{
    if (!c->spent)
        return;
    double all = plan_points(&c->plan, false) + plan_points(&c->plan, true);
    w->cut = j->in.p.count < all
                 ? mem_printf("the limit was spent after %d of %.0f points", j->in.p.count, all)
                 : mem_strdup("the limit was spent before all that stood out was measured again");
    if (j->accept.verdict == ACCEPT_FAIL)
        return;
    free(j->line);
    j->accept.verdict = ACCEPT_UNKNOWN;
    j->line = mem_printf("%s: %s", accept_name[ACCEPT_UNKNOWN], w->cut);
}

static void judge_hosts(struct answer *w, const struct args *a)
{
    const struct judged *j = w->judged;

    w->hosts = j->in.m.topo.hosts;
    w->host = mem_calloc((size_t)w->hosts, sizeof(*w->host));
    for (int i = 0; i < w->hosts; i++)
        health_of(&w->host[i],
                  &(struct health_input){&j->in.m, &j->accept, &j->parts, j->line, j->against,
                                         a->of.limits, a->chain.trouble, w->cut},
                  i);
}

static int save_hosts(const struct answer *w, struct err *err)
{
    int rc = file_mkdir(w->state, err);

    for (int i = 0; i < w->hosts && rc == 0; i++)
        rc = health_save(&w->host[i], w->state, err);
    return rc;
}

static json_t *report(const struct answer *w, const struct args *a)
{
    const struct judged *j = w->judged;
    json_t *hosts = json_array();

    for (int i = 0; i < w->hosts; i++)
        json_array_append_new(hosts, json_pack("{s:s, s:s, s:s}", "host", w->host[i].host,
                                               "verdict", accept_name[w->host[i].verdict], "reason",
                                               w->host[i].reason));
    json_t *root =
        json_pack("{s:s, s:i, s:o, s:s, s:s, s:s?, s:s?, s:s?, s:s, s:f, s:b, s:o, s:o}", "format",
                  "railgauge-check", "version", 1, "provenance", json_provenance(), "verdict",
                  accept_name[j->accept.verdict], "line", j->line, "campaign", a->chain.dir,
                  "against", j->against, "limits_file", a->of.limits, "state", w->state, "took_s",
                  w->took, "complete", !w->cut, "hosts", hosts, "checks", judged_json(&j->accept));
    return root;
}

/* Print hosts with the same result in one line. */
static void print_hosts(const struct answer *w)
{
    bool *told = mem_calloc((size_t)w->hosts + 1, sizeof(*told));
    char **names = mem_calloc((size_t)w->hosts + 1, sizeof(*names));

    for (int i = 0; i < w->hosts; i++) {
        const struct health *h = &w->host[i];
        int n = 0;
        if (told[i] || h->verdict == ACCEPT_PASS)
            continue;
        for (int k = i; k < w->hosts; k++)
            if (w->host[k].verdict == h->verdict && !strcmp(w->host[k].reason, h->reason)) {
                names[n++] = w->host[k].host;
                told[k] = true;
            }
        char *list = hostlist_fold(names, n);
        table_wrap(stdout, 2, "%s %s: %s", accept_name[h->verdict], list, h->reason);
        free(list);
    }
    free(names);
    free(told);
}

static void print_text(const struct answer *w)
{
    const struct judged *j = w->judged;
    char took[UNITS_TEXT];

    table_wrap(stdout, 2, "%s", j->line);
    print_hosts(w);
    table_wrap(stdout, 2, "%d host%s compared with %s, limits: %s, in %s%s; kept in %s", w->hosts,
               units_s(w->hosts), j->against ? j->against : "no reference", j->limits_name,
               units_seconds_text(took, w->took), w->cut ? ", cut short by the limit" : "",
               w->state);
}

static int show(const struct answer *w, const struct args *a, struct err *err)
{
    const struct accept *accept = &w->judged->accept;

    if (a->of.in.json)
        return json_answer(report(w, a), NULL, true, err);
    if (a->reason)
        for (int i = 0; i < w->hosts; i++)
            print_reason(&w->host[i]);
    else if (a->style == JUDGED_NAGIOS)
        judged_nagios(accept->verdict, w->judged->line, accept);
    else if (!a->of.in.quiet)
        print_text(w);
    return 0;
}

static int judge(struct args *a, const char *dir, double begin, int *code, struct err *err)
{
    struct judged j;
    char *state = state_dir(a, true);

    judged_init(&j);
    a->of.in.file = dir;
    int rc = judged_open(&j, &a->of, err);
    if (rc == 0) {
        struct answer w = {.judged = &j, .state = state, .took = log_now() - begin};
        doubt(&w, &j, &a->chain);
        judge_hosts(&w, a);
        rc = chain_trusts(&a->chain, state, err);
        if (rc == 0)
            rc = save_hosts(&w, err);
        if (rc == 0)
            rc = show(&w, a, err);
        for (int i = 0; i < w.hosts; i++)
            health_free(&w.host[i]);
        free(w.host);
        free(w.cut);
        *code = code_of(a, j.accept.verdict);
    }
    judged_free(&j);
    free(state);
    return rc;
}

/* Run the chain, in a new directory unless a directory is given. */
static int run(struct args *a, int *code, struct err *err)
{
    double begin = log_now();
    int lock = -1;
    const char *const tmp[] = {getenv("TMPDIR"), "/tmp"};
    char *dir = a->chain.dir ? NULL : file_private_dir(tmp, 2, "railgauge-check", &lock, err);
    const char *kept = a->chain.dir;
    int rc = -1;

    if (lock >= 0)
        close(lock); /* chain_open() locks it again */
    a->chain.until = begin + a->limit - RESERVE;
    a->chain.no_compute = true;
    a->chain.dir = kept ? kept : dir;
    choose_hosts(a);
    if (a->chain.dir)
        rc = measure(&a->chain, err);
    if (rc == 0) {
        const char *from = a->chain.dir;
        a->chain.dir = kept;
        rc = judge(a, from, begin, code, err);
    }
    file_remove_dir(dir);
    free(dir);
    return rc;
}

static int cmd_check(int argc, char **argv, struct err *err)
{
    struct args a = {.limit = 120, .max_age = 86400};
    char **all = mem_calloc((size_t)argc + SMALL + 1, sizeof(*all));
    int code = EXIT_GOOD;

    all[0] = argv[0];
    memcpy(all + 1, small, sizeof(small));
    memcpy(all + 1 + SMALL, argv + 1, (size_t)(argc - 1) * sizeof(*all));
    probe_opts_defaults(&a.chain.probe);
    log_setup(argv[0], LOG_WARN); /* progress messages have no reader */
    opt_parse(&command, argc + SMALL, all, OPT_EXITS, &a);
    a.chain.line = &command;
    a.chain.argc = argc + SMALL;
    a.chain.argv = all;
    int rc = a.last || a.take ? code = answer_last(&a, err) : run(&a, &code, err);
    chain_close(&a.chain);
    free(all);
    rc = rc < 0 ? -1 : code;
    if (rc < 0 && a.style == JUDGED_NAGIOS) {
        /* whatever the reason, because a plugin has only four codes */
        char *line = mem_printf("%s: %s", accept_name[ACCEPT_UNKNOWN], err->text);
        judged_nagios(ACCEPT_UNKNOWN, line, NULL);
        free(line);
        return ACCEPT_UNKNOWN;
    }
    return rc;
}

const struct command check_command = {&command, cmd_check};
