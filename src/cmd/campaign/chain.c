/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/campaign/chain_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/units.h"
#include "measure/campaign_files.h"
#include "step/job.h"
#include "topo/nccl_profile.h"
#include "topo/nic.h"

/* --- steps by the MPI program --- */

/* Run the program with these words; `what` names it in the error. */
static int chain_mpi(struct chain *c, const struct words *args, const char *what, struct err *err)
{
    int code;

    c->launch.dir = c->dir;
    c->launch.until = c->until;
    c->launch.hang_after = c->probe.measure.hang_after;
    if (launch_run(&c->launch, args, &code, err) < 0)
        return -1;
    if (code == EXIT_CUT)
        return err_code(err, EXIT_CUT, "%s was cut short", what);
    if (code && c->launch.reason[0]) /* last, because launchers add many lines to the rank's own */
        return err_code(err, code, "%s failed: %s", what, c->launch.reason);
    return code ? err_code(err, code, "%s ended with exit code %d", what, code) : 0;
}

/* The list ends with NULL. */
static void add_words(struct words *w, const char *const *word)
{
    for (int i = 0; word[i]; i++)
        words_add(w, "%s", word[i]);
}

/* "probe" with the transport, then fixed words (ending with NULL), then all given options that the
 * MPI program accepts with this transport; "auto" may become mpi or nccl. */
static struct words probe_words(const struct chain *c, const char *const *fixed)
{
    const struct transport *asked = transport_find(c->transport);
    struct words w = {NULL, 0};

    add_words(&w, (const char *[]){"probe", "-t", c->transport, NULL});
    add_words(&w, fixed);
    if (log_is_quiet())
        words_add(&w, "--quiet");
    opt_again(c->line, c->argc, c->argv, probe_options, &w);
    for (const struct transport *t = transports; t->name; t++)
        for (int i = 0; t->options[i] && (asked ? t == asked : t->automatic); i++)
            opt_again(c->line, c->argc, c->argv, t->options[i]->rows, &w);
    return w;
}

/* Measure each GPU alone; write the results to path. */
static int mpi_compute(struct chain *c, const char *path, bool dry_run, struct err *err)
{
    struct words w = {NULL, 0};

    add_words(&w, (const char *[]){"probe", "--compute", "-o", path, NULL});
    if (!c->device.gemm) /* the products that a user names are all that is measured by shape */
        words_add(&w, "--model=%s,%s", c->model ? c->model : DEVICE_MODELS, DEVICE_MODELS);
    words_add(&w, "--half-width=%.9f", c->probe.measure.half_width);
    if (c->probe.measure.time_cap > 0)
        words_add(&w, "--time-cap=%.9f", c->probe.measure.time_cap);
    if (nccl_opts_asked.share_gpu)
        words_add(&w, "--share-gpu");
    opt_again(c->line, c->argc, c->argv, device_options, &w);
    if (dry_run)
        words_add(&w, "--dry-run");
    int rc = chain_mpi(c, &w, "probe --compute", err);
    words_free(&w);
    return rc;
}

static bool exists(const struct chain *c, const char *name)
{
    char *path = file_join(c->dir, name);
    bool yes = access(path, F_OK) == 0;

    free(path);
    return yes;
}

int chain_transport(struct chain *c, struct err *err)
{
    const char *simulated = transport_solo()->name;
    char names[TRANSPORT_NAMES];

    if (!c->transport)
        c->transport = "auto";
    if (!strcmp(c->transport, "auto") && c->sim.fabric)
        c->transport = simulated;
    const struct transport *t = transport_find(c->transport);
    struct near near = {.word = c->transport};
    if (!t && strcmp(c->transport, "auto")) {
        transport_each(near_try, &near);
        return err_usage(err, "no transport \"%s\"%s; known are auto, %s", c->transport,
                         near_text(&near), transport_names(names, true));
    }
    if (c->sim.fabric && (!t || t->ranks))
        return err_usage(err, "--fabric %s belongs to --transport %s", c->sim.fabric, simulated);
    if (t && !t->ranks && (c->launch.hosts || c->launch.command))
        return err_usage(err, "%s is not for --transport %s, which simulates all hosts here",
                         c->launch.hosts ? "--hosts" : "--launch", t->name);
    return transport_limit(&c->probe.plan.ops, t, err);
}

int chain_trusts(const struct chain *c, const char *path, struct err *err)
{
    struct err why;

    if (c->trust || file_check_owner(path, &why) == 0)
        return 0;
    return err_config(err, "%s; --trust-owner uses it all the same", why.text);
}

/* --- lock of the directory --- */

static int in_use(const struct chain *c, const char *by, struct err *err)
{
    return err_io(err, "%s: another run is using this folder%s", c->dir, by);
}

/* When a process started, clock ticks since boot (proc(5), field 22); 0: no such process. */
static unsigned long long start_of(int pid)
{
    char path[64], text[1024] = "";
    unsigned long long start = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(text, sizeof(text), f)) {
        char *at = strrchr(text, ')'); /* the name before it may have spaces */
        for (int i = 0; at && i < 20; i++)
            at = strchr(at + 1, ' ');
        start = at ? strtoull(at, NULL, 10) : 0;
    }
    if (f)
        fclose(f);
    return start;
}

/* True if the process named in the text ran on this host and is gone. */
static bool is_gone(const char *text)
{
    char self[256], host[256];
    unsigned long long start;
    int pid;

    return sscanf(text, "%255s %d %llu", host, &pid, &start) == 3 && pid > 0 &&
           !strcmp(host, host_kernel(self, sizeof(self))) && start_of(pid) != start;
}

/* Remove what a process left that is gone.  A rename shows whether another run was quicker. */
static bool take_over(const char *path, const char *left)
{
    char *aside = mem_printf("%s.%d", path, (int)getpid()), *text = NULL;
    bool same = rename(path, aside) == 0 && file_read(&text, NULL, aside, 4096, NULL) == 0 &&
                !strcmp(text, left);

    if (!same && text)
        (void)!link(aside, path);
    unlink(aside);
    free(text);
    free(aside);
    return same;
}

static int write_owner(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
    char self[256];

    if (fd < 0)
        return -1;
    int rc = dprintf(fd, "%s %d %llu\n", host_kernel(self, sizeof(self)), (int)getpid(),
                     start_of((int)getpid())) > 0 &&
                     fsync(fd) == 0
                 ? 0
                 : -1;
    return close(fd) == 0 ? rc : -1;
}

/* Where nothing can be locked. */
static int own_dir(struct chain *c, struct err *err)
{
    char *path = file_join(c->dir, ".owner"), *text = NULL, *by = NULL;
    int rc = write_owner(path), why = errno;

    if (rc < 0 && why == EEXIST && file_read(&text, NULL, path, 4096, NULL) == 0 && is_gone(text) &&
        take_over(path, text)) {
        rc = write_owner(path);
        why = errno;
    }
    if (rc < 0 && why == EEXIST) {
        by = mem_printf(": host, process and start %.*s; if it is gone, remove %s",
                        (int)strcspn(text ? text : "", "\n"), text ? text : "", path);
        in_use(c, by, err);
    } else if (rc < 0) {
        err_io(err, "%s: %s", path, strerror(why));
    } else {
        log_warn("%s: no locks here; %s marks this run instead", c->dir, path);
        c->owner = path;
        path = NULL;
    }
    free(by);
    free(text);
    free(path);
    return rc;
}

/* Only a lock that another process holds (EWOULDBLOCK; EACCES for fcntl) is another run. */
static int lock_file(struct chain *c, struct err *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path = file_join(c->dir, ".lock");

    close(c->lock);
    c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    int rc = c->lock < 0 ? -1 : fcntl(c->lock, F_SETLK, &whole), why = errno;
    if (c->lock < 0)
        err_io(err, "%s: %s", path, strerror(why));
    else if (rc < 0 && (why == EAGAIN || why == EACCES))
        in_use(c, "", err);
    else if (rc < 0) {
        unlink(path);
        rc = own_dir(c, err);
    }
    free(path);
    return rc;
}

static int lock_dir(struct chain *c, struct err *err)
{
    c->lock = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->lock < 0)
        return err_io(err, "%s: %s", c->dir, strerror(errno));
    if (flock(c->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? in_use(c, "", err) : lock_file(c, err);
}

static void unlock_dir(struct chain *c)
{
    if (c->owner)
        unlink(c->owner);
    free(c->owner);
    c->owner = NULL;
    if (c->lock > 0)
        close(c->lock);
    c->lock = -1;
}

int chain_open(struct chain *c, struct err *err)
{
    if (c->dir && chain_trusts(c, c->dir, err) < 0)
        return -1;
    if (c->resume && !exists(c, "topology.json"))
        return err_noinput(err, "%s holds no campaign that could be resumed", c->dir);
    if (!c->dir && !(c->dir = c->made = campaign_files_dir(time(NULL), err)))
        return -1;
    if (!strncmp(c->dir, CAMPAIGN_LAST "/", strlen(CAMPAIGN_LAST "/")) &&
        access(CAMPAIGN_LAST, F_OK) != 0)
        return err_noinput(err, "%s: no campaign is here yet for %s to link to", c->dir,
                           CAMPAIGN_LAST);
    if (file_mkdir(c->dir, err) < 0)
        return -1;
    if (lock_dir(c, err) < 0)
        return -1;
    if (!c->resume && exists(c, "points.tsv"))
        return err_config(
            err, "%s already holds a campaign; --resume finishes it, another -o starts a new one",
            c->dir);
    return 0;
}

/* Read from the topology's provenance what "auto" became. */
static int learn_transport(struct chain *c, const char *path, struct err *err)
{
    json_t *root, *word;

    if (strcmp(c->transport, "auto"))
        return 0;
    if (json_open(&root, path, "railgauge-topology", 1, err) < 0)
        return -1;
    word = json_object_get(json_object_get(root, "provenance"), "transport");
    const struct transport *t = transport_find(json_string_value(word));
    c->transport = (t && t->automatic ? t : transports)->name;
    json_decref(root);
    return 0;
}

/* Ranks without GPUs continue with a plan made by themselves, unless the plan depends on more than
 * the options passed to them. */
static int mpi_discover(struct chain *c, struct err *err)
{
    const char *ends = c->jobs || c->until > 0 ? "all" : "gpus";
    char *path = file_join(c->dir, "points.tsv");
    struct words w = probe_words(c, (const char *[]){"--discover", ends, "-o", path, NULL});
    int rc = chain_mpi(c, &w, "probe", err);

    c->probed = exists(c, "points.tsv"); /* chain_open() found none */
    words_free(&w);
    free(path);
    return rc;
}

/* Load the topology, resolve "auto", and name a new directory. */
static int learn_topology(struct chain *c, const char *path, struct err *err)
{
    if (!chain_is_sim(c) && learn_transport(c, path, err) < 0)
        return -1;
    if (chain_is_sim(c) && !c->resume) { /* just saved; a copy costs 90 MB for 100,000 endpoints */
        c->topo = c->bed.seen;
        c->bed.given = true;
    } else if (topo_load(&c->topo, path, err) < 0)
        return -1;
    if (c->resume && !c->launch.hosts && !c->launch.ranks)
        c->launch.ranks =
            c->topo.endpoints; /* the default comes from this machine, which may have changed */
    if (c->made && campaign_files_name_dir(&c->made, &c->topo, err) < 0)
        return -1;
    c->dir = c->made ? c->made : c->dir;
    return 0;
}

/* Step topology.json.  Failed points do not end the chain, nor discard the others. */
static int discover(struct chain *c, struct err *err)
{
    char *path = file_join(c->dir, "topology.json");
    struct err why;
    int rc = 0;

    if (chain_is_sim(c))
        rc = sim_bed_open(&c->bed, &c->sim, err);
    if (rc == 0 && !(c->resume && exists(c, "topology.json")))
        rc = chain_is_sim(c) ? topo_save(&c->bed.seen, path, err) : mpi_discover(c, err);
    if ((rc == 0 || c->probed) && learn_topology(c, path, rc < 0 ? &why : err) < 0)
        rc = -1;
    if (rc < 0 && c->made) {
        char *lock = file_join(c->made, ".lock");
        unlock_dir(c);
        unlink(lock);
        free(lock);
        campaign_files_drop_dir(c->made);
    }
    free(path);
    malloc_trim(0); /* the JSON took many times the memory */
    return rc;
}

enum { BLOCKS_LEAST = 3 }; /* blocks needed to tell a bad minute from a bad part */

/* Shorten a plan that takes longer than the time left: three blocks of time, then one, then only
 * pairs, then a shorter time for each. */
static int shorten(struct chain *c, const struct topo *t, struct err *err)
{
    static const unsigned pairs = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW | 1u << OP_PAIR_BIBW;
    struct measure_opts *o = &c->probe.measure;
    struct plan_opts *p = &c->probe.plan;
    double left = c->until - log_now(), takes;

    while ((takes = plan_seconds(&c->plan, t, o)) > left && (p->epochs > 1 || p->ops & ~pairs)) {
        if (p->epochs == 1)
            p->ops &= pairs;
        p->epochs = p->epochs > BLOCKS_LEAST ? BLOCKS_LEAST : 1;
        plan_free(&c->plan);
        if (plan_make(&c->plan, t, p, err) < 0)
            return -1;
    }
    if (takes > left && left > 0)
        o->time_cap = plan_time_cap(&c->plan, t, o->time_cap) * left / takes;
    return 0;
}

static int make_plan(struct chain *c, const struct topo *t, struct err *err)
{
    if (!transport_find(c->transport)->nics || (!chain_is_sim(c) && !nccl_opts_on_nvlink()))
        c->probe.plan.nics = false;
    int rc = plan_make(&c->plan, t, &c->probe.plan, err);

    if (rc == 0 && c->until > 0)
        rc = shorten(c, t, err);
    for (int i = 0; rc == 0 && i < c->jobs; i++)
        rc = job_plan(&c->plan, c->job[i], t, &c->probe.plan, err);
    return rc;
}

/* Step plan.tsv. */
static int plan(struct chain *c, struct err *err)
{
    char *path = file_join(c->dir, "plan.tsv");
    int rc;

    if (c->probed || (c->resume && exists(c, "plan.tsv")))
        rc = plan_load(&c->plan, path, c->topo.endpoints, err);
    else if ((rc = make_plan(c, &c->topo, err)) == 0)
        rc = plan_save(&c->plan, path, err);
    free(path);
    return rc;
}

static void stop(int sig)
{
    (void)sig;
    measure_stop = 1;
}

/* Measure a simulated campaign in this process; a signal ends it after the current point. */
static int probe_sim(struct chain *c, const char *path, const struct measure_opts *how,
                     struct err *err)
{
    struct points_log *log;
    struct signals before;

    /* Catch signals before the file exists, because an observer that sees the file relies on it. */
    signals_catch(&before, stop);
    int rc = points_open(&log, path, plan_crc(&c->plan), &c->topo, c->transport, err);
    if (rc == 0) {
        rc = measure_plan(&world_solo, transport_find(c->transport), &c->topo, &c->plan, how, log,
                          err);
        points_take(log, &c->points);
        rc = points_close(log, rc < 0 ? NULL : err) < 0 ? -1 : rc;
    }
    signals_release(&before);
    return rc;
}

/* Plugin of the network that NCCL used in the first pass; the caller frees.  NULL: NCCL's own. */
static char *used_plugin(const char *topology)
{
    struct nccl_profile p = {.lines = 0};
    struct topo t;
    struct err why;
    char *name = NULL;

    if (topo_load(&t, topology, &why) < 0)
        return NULL;
    if (t.nccl && nccl_profile_read(&p, t.nccl, topology, &why) == 0)
        for (int i = 0; i < p.ranks && !name; i++)
            if (*p.rank[i].net && strcasecmp(p.rank[i].net, "IB") != 0 &&
                strcasecmp(p.rank[i].net, "Socket") != 0)
                name = mem_strdup(p.rank[i].net);
    nccl_profile_free(&p);
    topo_free(&t);
    return name;
}

/* With NVLink bypassed, the program is started again, because NCCL reads its variables once. */
static void add_nic_words(struct words *w, const struct chain *c, const struct measure_opts *how,
                          const char *topology)
{
    const struct nic *nic = &c->topo.nic[c->topo.endpoint[0].nic];
    char *plugin = used_plugin(topology);

    words_add(w, "--nic-pass");
    if (plugin)
        words_add(w, "--path=plugin:%s", plugin);
    else
        words_add(w, "--path=%s",
                  nic_is_efa(nic)               ? "plugin"
                  : nic->layer == LINK_ETHERNET ? "roce"
                                                : "ib");
    free(plugin);
    if (how->budget > 0)
        words_add(w, "--budget=%.3f", how->budget);
}

static int probe_mpi(struct chain *c, const char *path, const struct measure_opts *how,
                     struct err *err)
{
    char *topology = file_join(c->dir, "topology.json"), *plan = file_join(c->dir, "plan.tsv");
    const char *fixed[] = {"--topology", topology, "--plan", plan, "-o", path, NULL};
    struct words w = probe_words(c, fixed);

    if (c->until > 0)
        words_add(&w, "--budget=%.9f", how->budget);
    if (c->until > 0 && how->time_cap > 0)
        words_add(&w, "--time-cap=%.9f", how->time_cap);
    if (how->nics)
        add_nic_words(&w, c, how, topology);
    int rc = chain_mpi(c, &w, how->nics ? "the pass through the NICs" : "probe", err);
    words_free(&w);
    free(topology);
    free(plan);
    return rc;
}

static int probe_pass(struct chain *c, const char *path, const struct measure_opts *how,
                      struct err *err)
{
    return chain_is_sim(c) ? probe_sim(c, path, how, err) : probe_mpi(c, path, how, err);
}

/* Failed or wrong points do not end the chain: the measurements are fitted, and run reports the
 * failures. */
static int look_for_trouble(struct chain *c, const char *path, int rc, struct err *err)
{
    struct points *p = &c->points;
    struct err why;

    if (!p->count && points_load(p, path, rc < 0 ? &why : err) < 0)
        return -1;
    c->trouble = campaign_files_failed(p) ? campaign_files_trouble(p) : NULL;
    return c->trouble ? 0 : rc;
}

static bool has_nic_points(const char *path)
{
    struct points p;
    struct err why;
    bool has = false;

    if (points_load(&p, path, &why) < 0)
        return false;
    for (int i = 0; i < p.count; i++)
        has = has || stage_by_nic(p.point[i].stage);
    points_free(&p);
    return has;
}

/* Second pass, if NVLink connects all endpoints.  If NCCL cannot use the NICs, only the results of
 * this pass are missing.  Measurements over another path must not be kept. */
static int probe_nics(struct chain *c, const char *path, double spent, struct err *err)
{
    struct measure_opts how = c->probe.measure;
    struct err why = {0, ""};

    how.nics = true;
    if (how.budget > 0)
        how.budget = fmax(1e-3, how.budget - spent);
    if (probe_pass(c, path, &how, &why) == 0)
        return 0;
    bool nothing = why.code == EXIT_CONFIG && !has_nic_points(path);
    if (nothing || why.code == EXIT_UNJUDGED) {
        log_warn("%s%s", why.text, nothing ? ": what NICs carry is not known" : "");
        return 0;
    }
    return err_code(err, why.code, "%s%s", why.text,
                    why.code == EXIT_CONFIG ? "; --no-nic-pass and another -o leave it out" : "");
}

/* Step points.tsv; rc: of the start for discovery.  If the second pass has begun, the first is
 * complete; starting the first again would fail, because no message would prove the path. */
static int probe(struct chain *c, int rc, struct err *err)
{
    char *path = file_join(c->dir, "points.tsv");
    double began = log_now(), *budget = &c->probe.measure.budget;
    const bool over = c->resume && has_nic_points(path);

    if (c->until > 0)
        *budget = fmax(fmin(*budget > 0 ? *budget : INFINITY, c->until - began), 1e-3);
    if (!over && !c->probed)
        rc = probe_pass(c, path, &c->probe.measure, err);
    bool goes_on = rc == 0 || err->code == EXIT_UNJUDGED;

    if (goes_on && plan_points(&c->plan, true) > 0 &&
        probe_nics(c, path, log_now() - began, err) < 0) {
        goes_on = false;
        rc = -1;
    }
    if (goes_on)
        rc = look_for_trouble(c, path, rc, err);
    c->spent = rc < 0 && err->code == EXIT_CUT && c->until > 0 && log_now() >= began + *budget;
    free(path);
    return rc;
}

static bool computes(const struct chain *c)
{
    const struct transport *t = transport_find(c->transport);

    return !c->no_compute && t && t->memory == TRANSPORT_GPU;
}

/* Step compute.tsv, if ranks have GPUs. */
static int compute(struct chain *c, struct err *err)
{
    char *path = file_join(c->dir, "compute.tsv");
    int rc = !computes(c) || exists(c, "compute.tsv") ? 0 : mpi_compute(c, path, false, err);

    free(path);
    return rc;
}

/* Load facts that the ranks learned of MPI meanwhile.  Not for a simulation, without such facts and
 * with a large topology. */
static int learn_mpi(struct chain *c, struct err *err)
{
    if (chain_is_sim(c))
        return 0;
    char *path = file_join(c->dir, "topology.json");
    struct topo now;
    int rc = topo_load(&now, path, err);

    if (rc == 0 && now.mpi && !c->topo.mpi)
        c->topo.mpi = json_incref(now.mpi);
    if (rc == 0)
        topo_free(&now);
    free(path);
    return rc;
}

static int take_steps(struct chain *c, struct err *err)
{
    /* Return tables of millions of rows to the system when freed; otherwise tables of a step would
     * stay beside those of the next step. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    int rc = discover(c, err);

    if ((rc < 0 && !(c->probed && err->code == EXIT_UNJUDGED)) || plan(c, err) < 0)
        return -1;
    if (chain_is_sim(c)) { /* ranks print it with their estimate */
        log_info("%s: %d endpoint%s, %d round%s over %s", c->dir, c->topo.endpoints,
                 units_s(c->topo.endpoints), c->plan.rounds, units_s(c->plan.rounds), c->transport);
        plan_sees_log(&c->plan, &c->topo);
    }
    if (probe(c, rc, err) < 0 || learn_mpi(c, err) < 0 || compute(c, err) < 0)
        return -1;
    plan_forget_pairs(&c->plan);
    if (chain_is_sim(c))
        sim_bed_free(&c->bed);
    return chain_fit(c, err);
}

/* Add how to continue, if a campaign exists and the message lacks it. */
static void add_way(const struct chain *c, struct err *err)
{
    char *topology = file_join(c->dir ? c->dir : "", "topology.json");
    size_t used = strlen(err->text);

    if (c->dir && c->until <= 0 && !strstr(err->text, "--resume") && access(topology, F_OK) == 0)
        snprintf(err->text + used, sizeof(err->text) - used, "; --resume -o %s continues", c->dir);
    free(topology);
}

int chain_run(struct chain *c, struct err *err)
{
    int rc = take_steps(c, err);

    if (rc < 0 && err->code == EXIT_CUT)
        add_way(c, err);
    return rc;
}

/* The cost of the plan is known only once ranks are started, which a dry run does not do. */
static int dry_run_mpi(struct chain *c, FILE *out, struct err *err)
{
    const char *fixed[] = {"--dry-run", NULL};
    struct words w = probe_words(c, fixed);
    int rc = launch_print(&c->launch, &w, out, err);

    fflush(out);
    if (rc == 0 && c->launch.hosts)
        log_info("nothing is started on other hosts: what the plan costs is known when they are; "
                 "\"railgauge plan TOPOLOGY --dry-run\" says it");
    else if (rc == 0)
        rc = chain_mpi(c, &w, "dry run", err);
    words_free(&w);
    return rc < 0 || c->launch.hosts || !computes(c) ? rc
                                                     : mpi_compute(c, "compute.tsv", true, err);
}

int chain_dry_run(struct chain *c, FILE *out, struct err *err)
{
    if (!chain_is_sim(c))
        return dry_run_mpi(c, out, err);
    if (sim_bed_open(&c->bed, &c->sim, err) < 0 || make_plan(c, &c->bed.seen, err) < 0)
        return -1;
    plan_cost_print(out, &c->plan, &c->bed.seen, &c->probe.measure);
    return 0;
}

void chain_close(struct chain *c)
{
    for (int i = 0; i < c->predictions; i++)
        prediction_free(&c->predicted[i]);
    free(c->job);
    free(c->made);
    free(c->trouble);
    matrix_free(&c->matrix);
    points_free(&c->points);
    plan_free(&c->plan);
    if (chain_is_sim(c))
        sim_bed_free(&c->bed);
    topo_free(&c->topo);
    sim_opts_free(&c->sim);
    unlock_dir(c);
}
