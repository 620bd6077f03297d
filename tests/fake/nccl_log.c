/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's log: NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE as NCCL 2.28 reads them (debug.cc),
 * and the shape of its lines: "HOST:PID:TID [DEVICE] NCCL INFO text". */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl_fake.h"

enum level { NONE, VERSION, WARN, INFO };

static struct {
    bool open;
    enum level level;
    unsigned parts;
    FILE *file;
    char host[64], last[1024];
} state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int device_now;

static enum level read_level(void)
{
    static const char *const words[] = {"VERSION", "WARN", "INFO"};
    const char *text = getenv("NCCL_DEBUG");

    for (int i = 0; text && i < 3; i++)
        if (!strcasecmp(text, words[i]))
            return (enum level)(VERSION + i);
    return text && !strcasecmp(text, "TRACE") ? INFO : NONE;
}

static unsigned part_of(const char *word)
{
    static const char *const words[] = {"INIT",      "COLL", "P2P",     "SHM",  "NET",   "GRAPH",
                                        "TUNING",    "ENV",  "ALLOC",   "CALL", "PROXY", "NVLS",
                                        "BOOTSTRAP", "REG",  "PROFILE", "RAS"};

    if (!strcasecmp(word, "ALL"))
        return ~0U;
    for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcasecmp(word, words[i]))
            return 1U << i;
    return 0;
}

static unsigned read_parts(void)
{
    const char *text = getenv("NCCL_DEBUG_SUBSYS");
    unsigned parts = 0;
    bool invert = text && *text == '^';
    char *copy, *save = NULL;

    if (!text)
        return LOG_INIT | LOG_BOOTSTRAP | LOG_ENV;
    copy = strdup(text + invert);
    for (char *w = copy ? strtok_r(copy, ",", &save) : NULL; w; w = strtok_r(NULL, ",", &save))
        parts |= part_of(w);
    free(copy);
    return invert ? ~parts : parts;
}

static FILE *open_file(void)
{
    const char *text = getenv("NCCL_DEBUG_FILE");
    char name[4096], *to = name;
    FILE *file;

    if (!text || state.level <= VERSION)
        return stdout;
    while (*text && to < name + sizeof(name) - 128) {
        if (*text != '%') {
            *to++ = *text++;
            continue;
        }
        if (text[1] == 'h')
            to += sprintf(to, "%s", state.host);
        else if (text[1] == 'p')
            to += sprintf(to, "%d", (int)getpid());
        else if (text[1] == '%')
            *to++ = '%';
        else
            to += sprintf(to, "%%%c", text[1]);
        text += text[1] ? 2 : 1;
    }
    *to = '\0';
    file = *name ? fopen(name, "w") : NULL;
    if (file)
        setlinebuf(file);
    return file ? file : stdout;
}

/* NCCL reads its variables at the first line; `lock` is held. */
static void open_log(void)
{
    if (state.open)
        return;
    state.open = true;
    story_host(state.host, sizeof(state.host), cuda_load() && cuda.rank ? cuda.rank() : 0);
    state.level = read_level();
    state.parts = read_parts();
    state.file = open_file();
}

static void write_line(enum level level, const char *text)
{
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;

    if (level == VERSION) {
        fprintf(state.file, "%s\n", text);
    } else if (level == WARN) {
        localtime_r(&now, &tm);
        strftime(when, sizeof(when), "[%F %T] ", &tm);
        fprintf(state.file, "\n%s%s:%d:%d [%d] fake.cc:1 NCCL WARN %s\n", when, state.host,
                (int)getpid(), (int)syscall(SYS_gettid), device_now, text);
    } else {
        fprintf(state.file, "%s:%d:%d [%d] NCCL INFO %s\n", state.host, (int)getpid(),
                (int)syscall(SYS_gettid), device_now, text);
    }
    fflush(state.file);
}

static void say(enum level level, unsigned parts, const char *fmt, va_list ap)
{
    char text[1024];

    vsnprintf(text, sizeof(text), fmt, ap);
    pthread_mutex_lock(&lock);
    open_log();
    if (level == WARN)
        snprintf(state.last, sizeof(state.last), "%s", text);
    if (state.level >= level && (state.parts & parts))
        write_line(level, text);
    pthread_mutex_unlock(&lock);
}

void log_info(unsigned parts, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(INFO, parts, fmt, ap);
    va_end(ap);
}

void log_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(WARN, ~0U, fmt, ap);
    va_end(ap);
}

static void say_version(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(VERSION, ~0U, fmt, ap);
    va_end(ap);
}

/* Once a process: rank 0 in one bare line, at level INFO everyone in a line like the others. */
void log_version(int rank)
{
    static _Atomic bool done;
    int v = fake_version();

    pthread_mutex_lock(&lock);
    open_log();
    pthread_mutex_unlock(&lock);
    if (state.level == NONE || (rank && state.level < INFO) || atomic_exchange(&done, true))
        return;
    if (state.level < INFO)
        say_version("NCCL version %d.%d.%d+cuda13.0", v / 10000, v / 100 % 100, v % 100);
    else
        log_info(~0U, "NCCL version %d.%d.%d+cuda13.0", v / 10000, v / 100 % 100, v % 100);
}

const char *log_last(void)
{
    return state.last;
}

void log_device(int device)
{
    device_now = device;
}
