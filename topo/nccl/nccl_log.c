/* SPDX-License-Identifier: BSD-3-Clause */
/* A line is "HOST:PID:TID [DEV] NCCL INFO TEXT" (NCCL 2.24 and later can put a time before it; a
 * WARN has "FILE:LINE" before its word).  What a TEXT means is in the table of
 * nccl_log_facts.c.
 *
 * Connections do not name their communicator.  NCCL makes a communicator in a thread of its own, so
 * what is between its "Init START" and "Init COMPLETE" is found by the thread; from 2.22 on most
 * connections come later, with the first operation, and in threads of their own: those belong to
 * the communicator that the process worked with (the marks of its measuring thread), and without
 * marks to the newest one in which it has one of the two ranks. */
#include "topo/nccl/nccl_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/nccl/nccl_log_parts.h"

/* --- whose line is it --- */
enum { LOOK_BACK = 4096 }; /* communicators; a line of an older one is lost */

int log_thread(const struct log *l)
{
    for (int i = 0; i < l->threads; i++)
        if (l->thread[i].tid == l->tid)
            return l->thread[i].comm;
    return -1;
}

void log_thread_set(struct log *l, int comm)
{
    int i = 0;

    while (i < l->threads && l->thread[i].tid != l->tid)
        i++;
    if (i == l->threads && l->threads < THREADS)
        l->threads++;
    else if (i == l->threads) { /* the oldest gives way */
        memmove(l->thread, l->thread + 1, sizeof(l->thread) - sizeof(*l->thread));
        i--;
    }
    l->thread[i].tid = l->tid;
    l->thread[i].comm = comm;
}

int log_comm_at(const struct log *l, unsigned long long address)
{
    for (int i = l->pointers - 1; i >= 0 && i > l->pointers - LOOK_BACK; i--)
        if (l->pointer[i].address == address)
            return l->pointer[i].comm;
    return -1;
}

/* The communicator of the mark; -1: there is none. */
static int log_marked(const struct log *l)
{
    return l->now ? log_comm_at(l, l->now->comm) : -1;
}

int log_current(const struct log *l)
{
    int c = log_thread(l);

    if (c < 0)
        c = log_marked(l);
    return c >= 0 ? c : l->p->comms - 1;
}

int log_comm_of_link(const struct log *l, int from, int to)
{
    int c = log_thread(l);

    if (c < 0)
        c = log_marked(l);
    if (c >= 0 && from < l->p->comm[c].ranks && to < l->p->comm[c].ranks)
        return c;
    for (c = l->p->comms - 1; c >= 0 && c > l->p->comms - LOOK_BACK; c--) {
        const struct nccl_comm_profile *m = &l->p->comm[c];
        if (from < m->ranks && to < m->ranks && (m->rank == from || m->rank == to))
            return c;
    }
    return -1;
}

int log_comm_add(struct log *l, unsigned long long address, int rank, int ranks)
{
    struct nccl_profile *p = l->p;

    if (p->comms >= NCCL_COMMS_MAX) {
        p->dropped++;
        return -1;
    }
    MEM_PUSH(p->comm, p->comms) = (struct nccl_comm_profile){.ranks = ranks,
                                                             .rank = rank,
                                                             .mnnvl = -1,
                                                             .coll = -1,
                                                             .nvls = -1,
                                                             .p2p = -1,
                                                             .p2p_peer = -1};
    MEM_PUSH(l->pointer, l->pointers) = (struct pointer){address, p->comms - 1};
    return p->comms - 1;
}

enum { PREFIX_MAX = 512 };

/* "host:pid:TID [0] " right before the word; -1: not there. */
static long thread_id(const char *line, const char *word)
{
    const char *s = word;

    while (s > line && s[-1] != '[' && word - s < PREFIX_MAX) /* WARN: FILE:LINE is between */
        s--;
    if (s - line < 3)
        return -1;
    const char *end = s - 1; /* at '[' */
    for (s = end; s > line && s[-1] != ':' && end - s < 16;)
        s--;
    return s > line && s[-1] == ':' ? strtol(s, NULL, 10) : -1;
}

static void take_line(struct log *l, char *line, size_t len)
{
    const char *at;

    line[len] = '\0';
    for (size_t i = 0; i < len; i++) /* it goes into JSON and onto terminals */
        if (line[i] < ' ' || line[i] > '~')
            line[i] = line[i] == '\t' ? ' ' : '?';
    while (len && (line[len - 1] == '?' || line[len - 1] == ' '))
        line[--len] = '\0';
    if ((at = strstr(line, "NCCL INFO "))) {
        l->p->lines++;
        l->tid = thread_id(line, at);
        log_fact(l, at + 10);
    } else if ((at = strstr(line, "NCCL WARN "))) {
        l->p->lines++;
        if (at[10] && !nccl_profile_note(&l->p->warn, &l->p->warns, at + 10))
            l->p->dropped++;
    } else if (!strncmp(line, "NCCL version ", 13)) {
        l->p->lines++;
        log_version(l, line + 13);
    }
}

static void begin(struct log *l, struct nccl_profile *out)
{
    memset(out, 0, sizeof(*out));
    memset(l, 0, sizeof(*l));
    l->p = out;
    MEM_PUSH(out->seat, out->seats) = (struct nccl_seat){.endpoint = -1, .nvls = -1};
}

static void end(struct log *l)
{
    map_free(&l->links);
    map_free(&l->choices);
    free(l->pointer);
}

void nccl_log_parse(struct nccl_profile *out, const char *text, size_t len)
{
    char line[NCCL_LOG_LINE_MAX];
    struct log l;

    begin(&l, out);
    while (len) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;
        size_t kept = n < sizeof(line) ? n : sizeof(line) - 1;
        memcpy(line, text, kept);
        take_line(&l, line, kept);
        n += nl != NULL;
        text += n;
        len -= n;
    }
    end(&l);
}

/* A line begins at this byte of the log. */
static void move_on(struct log *l, long long at)
{
    const struct nccl_log_mark *next = l->now ? l->now + 1 : l->mark;

    for (; next && next < l->mark + l->marks && next->from <= at; next++)
        l->now = next;
}

int nccl_log_read(struct nccl_profile *out, const char *path, const struct nccl_log_mark *mark,
                  int marks, struct err *err)
{
    char line[NCCL_LOG_LINE_MAX];
    struct log l;
    FILE *f = fopen(path, "re");

    memset(out, 0, sizeof(*out));
    if (!f)
        return err_noinput(err, "%s: %s", path, strerror(errno));
    begin(&l, out);
    l.mark = mark;
    l.marks = marks;
    bool fresh = true; /* at the beginning of a line */
    for (;;) {
        if (fresh && marks)
            move_on(&l, ftello(f));
        if (!fgets(line, sizeof(line), f))
            break;
        size_t n = strlen(line);
        bool ends = n && line[n - 1] == '\n';
        if (fresh && n)
            take_line(&l, line, ends ? n - 1 : n);
        fresh = ends;
    }
    int rc = ferror(f) ? err_noinput(err, "%s: %s", path, strerror(errno)) : 0;
    fclose(f);
    end(&l);
    if (rc < 0)
        nccl_profile_free(out);
    return rc;
}
