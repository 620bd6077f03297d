/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/campaign/launch_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/units.h"
#include "topo/sources/sources.h"
#include "watch/watch_listen.h"

const struct opt launch_options[] = {
    {"hosts", 0, "LIST|FILE",
     "hosts to run on: n[01-18]:4,login:1 or a host file (default: this machine)",
     OPT_INTO(struct launch, hosts)},
    {"ranks", 0, "N",
     "number of ranks (default: one per core here, 2 to 4; with --hosts as given there, or one per "
     "host)",
     OPT_INT(struct launch, ranks, 2, 1 << 20)},
    {"launch", 0, "COMMAND", "command that starts the MPI program (default: mpirun)",
     OPT_INTO(struct launch, command)},
    {"watch-address", 0, "ADDRESS",
     "address on which the ranks' signs of life are received (default: of the interface that "
     "reaches the hosts)",
     OPT_INTO(struct launch, address)},
    {0},
};

/* Program of this name beside this executable; NULL: none.  The caller frees. */
static char *beside(const char *name)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    if (n <= 0)
        return NULL;
    exe[n] = '\0';
    char *path = mem_printf("%.*s/%s", (int)(strrchr(exe, '/') - exe), exe, name);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* RAILGAUGE_MPI names one of several that were built for different MPIs (make MPI=NAME). */
char *launch_program(struct err *err)
{
    const char *mpi = getenv("RAILGAUGE_MPI");
    char name[64], *found;

    if (!mpi || !*mpi)
        mpi = NULL;
    if (mpi && (strlen(mpi) > 32 || strchr(mpi, '/'))) {
        err_usage(err, "RAILGAUGE_MPI=%.40s is no name of an MPI", mpi);
        return NULL;
    }
    snprintf(name, sizeof(name), "railgauge-probe%s%s", mpi ? "-" : "", mpi ? mpi : "");
    found = beside(name);
    if (!found)
        found = process_find(name, true);
    if (!found && mpi)
        err_config(err, "%s is neither beside railgauge nor in PATH (build it with make MPI=%s)",
                   name, mpi);
    else if (!found)
        err_config(err, "railgauge-probe is neither beside railgauge nor in PATH (it needs MPI: "
                        "build it with make)");
    return found;
}

int launch_exec(const struct words *args, struct err *err)
{
    char *program = launch_program(err),
         **argv = mem_calloc((size_t)args->count + 2, sizeof(*argv));

    argv[0] = program;
    memcpy(argv + 1, args->word, (size_t)args->count * sizeof(*argv));
    if (program) {
        execv(program, argv);
        err_config(err, "%s: %s", program, strerror(errno));
    }
    free(argv);
    free(program);
    return -1;
}

static void add_split(struct words *w, const char *text)
{
    char *copy = mem_strdup(text), *save = NULL;

    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save))
        words_add(w, "%s", t);
    free(copy);
}

static int cores_here(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* One rank per core; with more, the sharing of cores would be measured. */
static int ranks_here(void)
{
    int cores = cores_here();

    return cores < 2 ? 2 : cores > 4 ? 4 : cores;
}

/* 64 ranks on two cores start and end in good order; thousands take the machine's processes and
 * memory before anything is measured. */
enum { RANKS_A_CORE = 32 };

static int check_ranks(int ranks, struct err *err)
{
    int cores = cores_here();

    if (ranks <= RANKS_A_CORE * cores)
        return 0;
    return err_usage(err,
                     "%d ranks are too many for this machine: at most %d, %d for each of its %d "
                     "cores (--hosts or --launch start them elsewhere)",
                     ranks, RANKS_A_CORE * cores, RANKS_A_CORE, cores);
}

/* Inside a scheduler's allocation mpirun uses all allocated hosts. */
static bool in_allocation(void)
{
    static const char *const scheduled[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", NULL};

    for (int i = 0; scheduled[i]; i++)
        if (getenv(scheduled[i]))
            return true;
    return false;
}

/* True if mpirun is Hydra, that of MPICH, MVAPICH and Intel MPI, whose words differ from Open MPI's.
 * Its file tells, behind all links, so that a dry run starts nothing: mpiexec.hydra, .../mpich/bin,
 * /opt/intel/oneapi/mpi. */
static bool is_hydra(void)
{
    static const char *const open_mpi[] = {"openmpi", "/ompi", "hpcx", "orterun", "prte"},
                             *const hydra[] = {"hydra", "mpich", "mvapich", "/intel", "/impi"};
    char *found = process_find("mpirun", true), *file = found ? realpath(found, NULL) : NULL;
    bool is = false;

    for (int i = 0; file && i < 5; i++)
        is = is || strstr(file, hydra[i]);
    for (int i = 0; file && i < 5; i++)
        is = is && !strstr(file, open_mpi[i]);
    free(file);
    free(found);
    return is;
}

/* -H host:ranks,... for --hosts (Hydra: -hosts); *ranks is the sum. */
static int add_hosts(struct words *w, const char *hosts, bool hydra, int *ranks, struct err *err)
{
    struct hostfile s;
    char *list = NULL;

    int rc = hostfile_read(&s, hosts, err);
    if (rc == 0)
        rc = hostfile_deal(&s, ranks, err);
    for (int i = 0; rc == 0 && i < s.hosts; i++)
        list = mem_append(list, "%s%s:%d", i ? "," : "", s.host[i], s.slot[i]);
    if (rc == 0) {
        words_add(w, "%s", hydra ? "-hosts" : "-H");
        words_add(w, "%s", list);
    }
    free(list);
    hostfile_free(&s);
    return rc;
}

/* True if all ranks are on this host and the user has not configured Open MPI.  Without networks it
 * starts sooner, and Open MPI 5 does not print a line of its tcp module for each pair of
 * interfaces.  All networks are named, because this setting replaces the exclusions of Debian's
 * openmpi-mca-params.conf: ofi would end with a sleep(1). */
#define NO_NETWORKS "^tcp,ofi,openib,uct"
static bool needs_no_networks(const struct launch *l)
{
    return !l->hosts && !in_allocation() && !getenv("OMPI_MCA_btl") && !getenv("OMPI_MCA_pml");
}

/* True if no rank can be on another host. */
static bool stays_here(const struct launch *l)
{
    return !l->command && !l->hosts && !in_allocation();
}

/* Words for mpirun: Open MPI's, or Hydra's, which binds nothing and hands on all variables unasked.
 * Ranks may outnumber cores, so ranks yield while waiting and are not bound. */
static int add_mpirun(struct words *w, const struct launch *l, struct err *err)
{
    struct words hosts = {NULL, 0};
    int ranks = l->hosts || l->ranks ? l->ranks : ranks_here();
    bool hydra = is_hydra();

    if (stays_here(l) ? check_ranks(ranks, err) < 0
                      : l->hosts && add_hosts(&hosts, l->hosts, hydra, &ranks, err) < 0)
        return -1;
    words_add(w, "mpirun");
    words_add(w, "-n");
    words_add(w, "%d", ranks);
    if (!hydra)
        add_split(w, "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1");
    if (!hydra && needs_no_networks(l))
        add_split(w, "--mca btl " NO_NETWORKS);
    if (!hydra && geteuid() == 0)
        words_add(w, "--allow-run-as-root");
    for (int i = 0; i < hosts.count; i++)
        words_add(w, "%s", hosts.word[i]);
    if (!hydra && l->hosts && l->dir)
        add_split(w, "-x RAILGAUGE_WATCH -x RAILGAUGE_PROGRESS");
    words_free(&hosts);
    return 0;
}

static int make_words(struct words *w, const struct launch *l, const struct words *args,
                      struct err *err)
{
    char *program = launch_program(err);
    int rc = program ? 0 : -1;

    if (rc == 0 && l->command)
        add_split(w, l->command);
    else if (rc == 0)
        rc = add_mpirun(w, l, err);
    if (rc == 0)
        words_add(w, "%s", program);
    for (int i = 0; rc == 0 && i < args->count; i++)
        words_add(w, "%s", args->word[i]);
    if (rc == 0 && log_trusts_environment())
        words_add(w, "--trust-environment");
    free(program);
    return rc;
}

int launch_print(const struct launch *l, const struct words *args, FILE *out, struct err *err)
{
    struct words w = {NULL, 0};
    int rc = make_words(&w, l, args, err);

    for (int i = 0; rc == 0 && i < w.count; i++)
        fprintf(out, "%s%s", i ? " " : "", w.word[i]);
    if (rc == 0)
        fputc('\n', out);
    words_free(&w);
    return rc;
}

/* --- private directories for files of MPI on a host during a run: the session directory of mpirun,
 * sockets and files of PMIx, shared memory files ---
 *
 * The usual names below /tmp and /dev/shm are predictable.  If another user creates such a name
 * beforehand as a link, root would write to or empty the target of the link (Open MPI 4.1:
 * orte/util/session_dir.c). */

/* Directories with mode 0700; NULL: none, the environment is unchanged. */
struct session {
    char *dir;    /* TMPDIR of the launcher, used by Open MPI 4 and 5, PMIx and MPICH */
    char *shared; /* NULL: no /dev/shm, or ranks on other hosts, too */
    int lock[2];  /* locks of both while in use; -1: none */
};

/* Make them below the runtime directory of the service or of the user, for root below /run, else
 * below TMPDIR or /tmp.  The user's runtime directory may not exist on other hosts; Open MPI
 * creates TMPDIR there if a scheduler passes it on. */
static int session_open(struct session *s, bool here, struct err *err)
{
    const char *const base[] = {here ? getenv("RUNTIME_DIRECTORY") : NULL,
                                here ? getenv("XDG_RUNTIME_DIR") : NULL,
                                geteuid() == 0 ? "/run" : NULL, getenv("TMPDIR"), "/tmp"};
    const char *const memory[] = {"/dev/shm"};

    s->dir = file_private_dir(base, sizeof(base) / sizeof(*base), "railgauge", &s->lock[0], err);
    if (s->dir && here)
        s->shared = file_private_dir(memory, 1, "railgauge", &s->lock[1], NULL);
    return s->dir ? 0 : -1;
}

/* Called in the child that becomes the launcher.  Other hosts lack the directories, without harm,
 * because mpirun does not pass TMPDIR on. */
static void session_enter(const struct session *s)
{
    static const char *const shared[] = {"OMPI_MCA_btl_vader_backing_directory",
                                         "OMPI_MCA_btl_sm_backing_directory",
                                         "OMPI_MCA_osc_sm_backing_directory", "UCX_POSIX_DIR"};

    if (s->dir)
        setenv("TMPDIR", s->dir, 1);
    for (size_t i = 0; s->shared && i < sizeof(shared) / sizeof(*shared); i++)
        setenv(shared[i], s->shared, 0);
}

static void session_close(struct session *s)
{
    file_remove_dir(s->dir);
    file_remove_dir(s->shared);
    for (int i = 0; i < 2; i++)
        if (s->lock[i] >= 0)
            close(s->lock[i]);
    free(s->dir);
    free(s->shared);
}

static volatile pid_t child;
static volatile sig_atomic_t stopped, passes_on;

/* Watched ranks are asked over the side channel, because launchers take seconds to pass a signal
 * on.  A second signal ends them at once. */
static void take_signal(int sig)
{
    if (child > 0 && (passes_on || stopped))
        kill(child, sig == SIGINT ? SIGINT : SIGTERM);
    stopped = 1;
}

/* Called in the child.  The launcher gets a process group of its own, so that all of it can be
 * ended; this group must not read the terminal.  The child dies with the parent. */
static void become(const char *file, char **word, const struct session *session,
                   const sigset_t *mask, pid_t parent, int said)
{
    int input = open("/dev/null", O_RDONLY);

    if (input >= 0)
        dup2(input, STDIN_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_CUT);
    sigprocmask(SIG_SETMASK, mask, NULL);
    session_enter(session);
    execvp(file, word); /* also a script without its first line */
    (void)!write(said, &errno, sizeof(errno));
    _exit(127);
}

/* A path in word[0] was typed; a name is looked up. */
static int spawn(pid_t *pid, char **word, const struct session *session, const sigset_t *mask,
                 struct err *err)
{
    char *file = process_find(word[0], true);
    int said[2], why = 0;
    pid_t self = getpid();

    if (!file && !strcmp(word[0], "mpirun"))
        return err_config(err, "no mpirun in PATH: install Open MPI (Debian: openmpi-bin, RHEL: "
                               "openmpi) or load its module; --launch takes another launcher");
    if (!file)
        return err_config(err, "cannot start %s: not in PATH", word[0]);
    if (pipe2(said, O_CLOEXEC) < 0) {
        free(file);
        return err_io(err, "cannot start %s: %s", word[0], strerror(errno));
    }
    fflush(NULL);
    *pid = fork();
    if (*pid == 0)
        become(file, word, session, mask, self, said[1]);
    why = *pid < 0 ? errno : 0;
    close(said[1]);
    if (*pid > 0 && read(said[0], &why, sizeof(why)) > 0)
        waitpid(*pid, NULL, 0);
    close(said[0]);
    free(file);
    return why ? err_config(err, "cannot start %s: %s", word[0], strerror(why)) : 0;
}

/* True if the launcher has ended.  Waits at most `ms` for that, or for messages of the ranks. */
static bool has_ended(pid_t pid, struct listener *watch, int ms, int *status)
{
    if (watch)
        listen_turn(watch, ms);
    return waitpid(pid, status, watch ? WNOHANG : 0) == pid;
}

/* Reason to end a launcher early. */
enum reason { GOES_ON, HAS_VERDICT, IS_STOPPED, IS_LATE };

/* Seconds after the reason arose: the ranks may leave on their own; then the launcher is asked to
 * end; then all are killed, also stopped processes (SIGSTOP). */
static const struct {
    double ask_ranks, ask, end;
} patience[] = {
    [HAS_VERDICT] = {1e9, 0.7, 3.7}, [IS_STOPPED] = {0, 0.7, 3.7}, [IS_LATE] = {1e9, 0, 1}};

/* s between the last goodbye of a rank and the end of the wait for the launcher */
static const double late_after = 5;

static void end_launcher(pid_t pid, struct listener *watch, enum reason why, int *status)
{
    const struct verdict *v = watch ? listen_verdict(watch) : NULL;
    /* ranks that none hears do not leave on their own */
    bool deaf = v && v->kind == VERDICT_SILENT && v->rank < 0;
    double since = log_now(), ask = deaf ? 0 : patience[why].ask;
    bool asked_ranks = false, asked = false, ended = false;

    /* The end of a launcher that is late takes ranks along, whose death is no news. */
    while (why == IS_LATE ? waitpid(pid, status, WNOHANG) != pid
                          : !has_ended(pid, watch, 20, status)) {
        double waited = log_now() - since;
        if (why == IS_LATE)
            usleep(20000);
        if (!asked_ranks && waited >= patience[why].ask_ranks) {
            listen_stop(watch);
            asked_ranks = true;
        } else if (!asked && waited >= ask) {
            kill(pid, SIGTERM);
            asked = true;
        } else if (!ended && waited >= patience[why].end) {
            kill(-pid, SIGKILL);
            ended = true;
        }
    }
    if (ended || why == HAS_VERDICT)
        listen_kill(watch);
}

static enum reason look(const struct listener *watch, double *over_since)
{
    if (listen_verdict(watch))
        return HAS_VERDICT;
    if (stopped)
        return IS_STOPPED;
    if (!listen_over(watch, true))
        *over_since = log_now();
    return log_now() - *over_since > late_after ? IS_LATE : GOES_ON;
}

/* At this time of log_now() the ranks are asked to leave, as by a signal; 0: never. */
static void set_alarm(double until)
{
    double left = until > 0 ? fmax(until - log_now(), 0.001) : 0;
    struct itimerval t = {.it_value = {(time_t)left, (suseconds_t)(fmod(left, 1) * 1e6)}};
    struct sigaction act = {.sa_handler = take_signal, .sa_flags = SA_RESTART};

    if (until > 0)
        sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &t, NULL);
}

/* The end of the launcher must end a wait for messages of the ranks. */
static void wake(int sig)
{
    (void)sig;
}

/* Wait until the launcher has ended, by itself or because of a verdict.  If it ends first, the last
 * messages of the ranks are still received.  Signals are blocked until there is a launcher, then as
 * in `mask`. */
static enum reason wait_for(pid_t pid, struct listener *watch, const sigset_t *mask, double until,
                            int *status)
{
    struct sigaction act = {.sa_handler = wake, .sa_flags = SA_RESTART}, left_alone;
    enum reason why = GOES_ON;
    double over_since = log_now();
    struct signals before;

    child = pid;
    stopped = 0;
    passes_on = !watch;
    signals_catch(&before, take_signal);
    sigaction(SIGCHLD, &act, &left_alone);
    set_alarm(until);
    sigprocmask(SIG_SETMASK, mask, NULL);
    while (!has_ended(pid, watch, 50, status))
        if (watch && (why = look(watch, &over_since)) != GOES_ON) {
            end_launcher(pid, watch, why, status);
            break;
        }
    set_alarm(0);
    sigaction(SIGCHLD, &left_alone, NULL);
    signals_release(&before);
    child = 0;
    for (int i = 0;
         watch && why != IS_LATE && i < 10 && !listen_verdict(watch) && !listen_over(watch, false);
         i++)
        listen_turn(watch, 20);
    return why;
}

/* Choose by the hosts if all are known; a user's launcher or an allocation may have more hosts. */
static void choose_address(const struct launch *l, char out[64], struct err *err)
{
    struct hostfile s = {NULL, NULL, 0};
    char *here = (char *)"localhost";

    if (l->hosts && hostfile_read(&s, l->hosts, err) == 0)
        listen_address(s.host, s.hosts, out);
    else
        listen_address(&here, stays_here(l), out);
    hostfile_free(&s);
}

/* The ranks get the address through the environment.  A failure leaves the campaign unwatched. */
static struct listener *open_watch(const struct launch *l)
{
    const char *given = getenv("RAILGAUGE_WATCH");
    char address[64];
    struct listener *watch = NULL;
    struct err err = {0, ""};

    if (!l->dir || (given && !strcmp(given, "off")))
        return NULL;
    choose_address(l, address, &err);
    if (listen_open(&watch, l->address ? l->address : address, l->hang_after, l->dir, &err) < 0)
        log_warn("%s: a rank that hangs or dies will not be named", err.text);
    else
        setenv("RAILGAUGE_WATCH", listen_where(watch), 1);
    return watch;
}

static void close_watch(struct listener *watch)
{
    if (watch)
        unsetenv("RAILGAUGE_WATCH");
    listen_close(watch);
}

/* Open MPI 4 and 5 map 4 MiB of /dev/shm for each rank of a host (btl vader and sm, segment_size).
 * Containers have 64 MiB by default, some 64 KiB; ranks then die of SIGBUS without a word.  Returns
 * that text, which the caller frees; NULL: there is room. */
static char *little_shared_memory(const struct launch *l)
{
    enum { RANK = 4 << 20 };
    const char *there = getenv("RAILGAUGE_SHM");
    int ranks = l->ranks ? l->ranks : ranks_here();
    char left[UNITS_TEXT];
    struct statvfs s;

    if (!stays_here(l) || statvfs(there ? there : "/dev/shm", &s) != 0)
        return NULL;
    double bytes = (double)s.f_bavail * (double)s.f_frsize;
    return bytes < (double)ranks * RANK
               ? mem_printf("%s has %s left, Open MPI takes 4 MiB of it for each of %d ranks",
                            there ? there : "/dev/shm", units_bytes_text(left, bytes), ranks)
               : NULL;
}
#define MORE_SHARED_MEMORY "make it larger (docker --shm-size, an emptyDir of medium Memory)"

/* Codes of the ranks are kept; other codes are the launcher's. */
static int judge_end(const struct launch *l, const char *launcher, int code, bool met,
                     const char *memory, struct err *err)
{
    static const int ours[] = {EXIT_GOOD,    EXIT_UNJUDGED, EXIT_USAGE, EXIT_DATA,
                               EXIT_NOINPUT, EXIT_IO,       EXIT_CUT,   EXIT_CONFIG};

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (code == ours[i])
            return 0;
    if (memory)
        return err_code(err, met ? EXIT_CUT : EXIT_CONFIG, "%s ended with exit code %d: %s; %s",
                        launcher, code, memory, MORE_SHARED_MEMORY);
    if (met || (code > 128 && code < 128 + 65))
        return err_code(err, EXIT_CUT, "%s ended with exit code %d while its ranks were at work",
                        launcher, code);
    return err_config(err,
                      "%s ended with exit code %d and no rank began on %s: do its words fit, and "
                      "are all hosts reached (ssh, or the scheduler)?",
                      launcher, code, l->hosts ? l->hosts : "this machine");
}

/* mpirun crashes or hangs if it cannot open enough files. */
static int check_files(struct err *err)
{
    enum { FILES = 128 };
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= FILES)
        return 0;
    if (r.rlim_max >= FILES) {
        r.rlim_cur = r.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &r) == 0
                   ? 0
                   : err_config(err, "ulimit -n: %s", strerror(errno));
    }
    return err_config(err, "only %llu files may be open at once (ulimit -n): ranks need %d or more",
                      (unsigned long long)r.rlim_max, FILES);
}

/* srun and similar launchers use own daemons to make the directories, and pass all variables on to
 * hosts without private directories. */
static bool is_mpirun(const char *word)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun"};
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strncmp(name, names[i], strlen(names[i]))) /* mpirun.openmpi, mpiexec.hydra */
            return true;
    return false;
}

int launch_run(struct launch *l, const struct words *args, int *code, struct err *err)
{
    struct words w = {NULL, 0};
    struct listener *watch = NULL;
    struct session session = {.lock = {-1, -1}};
    const struct verdict *verdict;
    char *memory = NULL;
    sigset_t mask;
    pid_t pid = -1;
    int status = 0, rc = -1;

    l->reason[0] = '\0';
    if (check_files(err) < 0 || make_words(&w, l, args, err) < 0 ||
        (is_mpirun(w.word[0]) && session_open(&session, stays_here(l), err) < 0))
        goto out;
    if (is_mpirun(w.word[0]))
        memory = little_shared_memory(l);
    if (memory)
        log_warn("%s: if they die of signal 7, " MORE_SHARED_MEMORY, memory);
    /* The ranks' own stderr is a pipe to the launcher. */
    setenv("RAILGAUGE_PROGRESS", isatty(STDERR_FILENO) ? "1" : "0", 0);
    watch = open_watch(l);
    signals_hold(&mask);
    if (spawn(&pid, w.word, &session, &mask, err) < 0) {
        sigprocmask(SIG_SETMASK, &mask, NULL);
        goto out;
    }
    enum reason why = wait_for(pid, watch, &mask, l->until, &status);
    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    /* mpirun returns 1 for 75 of the ranks, or 0 if it was asked to end */
    if (stopped && (*code || watch))
        *code = EXIT_CUT;
    snprintf(l->reason, sizeof(l->reason), "%s", watch ? listen_failed(watch) : "");
    verdict = watch && !stopped ? listen_verdict(watch) : NULL;
    if (verdict)
        rc = err_code(err, EXIT_CUT, "%s", verdict->text);
    else if (why == IS_LATE)
        rc = err_code(err, EXIT_CUT,
                      "%s was still there %g s after its ranks had ended and was ended", w.word[0],
                      late_after);
    else
        rc = stopped ? 0 : judge_end(l, w.word[0], *code, watch && listen_met(watch), memory, err);
out:
    close_watch(watch);
    session_close(&session);
    words_free(&w);
    free(memory);
    return rc;
}
