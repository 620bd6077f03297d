/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay_side.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

static void *side_main(void *arg)
{
    struct side *s = arg;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->done == s->started && !s->leave)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->done == s->started)
            break;
        int k = s->message[s->done];
        struct lane *l = &s->lane[k];
        pthread_mutex_unlock(&s->lock);
        double from = log_now();
        int code = mpi_ops[l->job.op].once(&l->ctx, &l->job);
        pthread_mutex_lock(&s->lock);
        s->run[k] += log_now() - from;
        s->done++;
        s->code = s->code == MPI_SUCCESS ? code : s->code;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void side_start(struct side *s, int message)
{
    pthread_mutex_lock(&s->lock);
    s->message[s->started++] = message;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int side_wait(struct side *s, int ticket)
{
    pthread_mutex_lock(&s->lock);
    while (s->done < ticket)
        pthread_cond_wait(&s->changed, &s->lock);
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

int side_open(struct side *s, struct lane *lane, int tickets, struct err *err)
{
    int level = MPI_THREAD_SINGLE;

    if (!tickets)
        return 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE)
        return err_config(err, "this MPI has no MPI_THREAD_MULTIPLE, which messages beside compute "
                               "need");
    s->message = mem_calloc((size_t)tickets, sizeof(*s->message));
    s->lane = lane;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    int code = pthread_create(&s->thread, NULL, side_main, s);
    if (!code)
        return 0;
    free(s->message);
    s->message = NULL;
    return err_set(err, "no thread for messages beside compute: %s", strerror(code));
}

void side_close(struct side *s)
{
    if (!s->message)
        return;
    pthread_mutex_lock(&s->lock);
    s->leave = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->message);
}
