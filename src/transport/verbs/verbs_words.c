/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_words_impl.h"

#include <stdio.h>

#include "kernels/verbs_api.h"

/* Statuses are those of ibv_poll_cq(3) and of the InfiniBand Architecture Specification, 11.6.2;
 * the usual causes are from operators' experience. */
static const struct {
    int status, rank;
    const char *words, *hint;
} table[] = {
    {VERBS_WC_LOCAL_LENGTH, 0, "local length error",
     "a message is longer than the receive that was posted, or than the port's largest"},
    {VERBS_WC_LOCAL_QP_OPERATION, 0, "local queue pair error",
     "the device refused the request: driver and firmware do not fit, or a limit was passed"},
    {VERBS_WC_LOCAL_PROTECTION, 0, "local protection error",
     "the memory is not registered as the request needs it, or was unmapped under it"},
    {VERBS_WC_FLUSHED, 8, "flushed", "the queue pair failed before; another request says why"},
    {VERBS_WC_BAD_RESPONSE, 2, "bad response",
     "the peer's answer makes no sense: damaged packets, or a peer that was restarted"},
    {VERBS_WC_LOCAL_ACCESS, 1, "local access error",
     "the peer wrote where this rank's memory does not allow it"},
    {VERBS_WC_REMOTE_INVALID_REQUEST, 2, "remote invalid request",
     "the peer does not take this: its queue pair is set up otherwise, or the message is too long"},
    {VERBS_WC_REMOTE_ACCESS, 2, "remote access error",
     "the peer's memory is gone or not registered for this"},
    {VERBS_WC_REMOTE_OPERATION, 4, "remote operation error",
     "the peer could not finish it: its own error says why"},
    {VERBS_WC_RETRY_EXCEEDED, 3, "retry exceeded", "path down, or PFC deadlock"},
    {VERBS_WC_RNR_RETRY_EXCEEDED, 3, "receiver not ready",
     "the peer lives and posts no receives: its process is stopped or hangs"},
    {VERBS_WC_REMOTE_ABORTED, 4, "remote abort", "the peer closed the connection"},
    {VERBS_WC_FATAL, 0, "fatal device error", "the device or its firmware stopped: see dmesg"},
    {VERBS_WC_RESPONSE_TIMEOUT, 3, "response timeout", "the peer does not answer"},
    {VERBS_WC_GENERAL, 0, "general error", "the driver says no more: see dmesg"},
};
enum { STATUSES = sizeof(table) / sizeof(*table) };

static int find(int status)
{
    int i = 0;

    while (i < STATUSES && table[i].status != status)
        i++;
    return i;
}

const char *verbs_words(int status, char out[32])
{
    int i = find(status);

    if (i < STATUSES)
        return table[i].words;
    snprintf(out, 32, "status %d", status);
    return out;
}

int verbs_words_rank(int status)
{
    int i = find(status);

    return i < STATUSES ? table[i].rank : 5;
}

int verbs_words_fail(int status, unsigned vendor, const struct verbs_end *from,
                     const struct verbs_end *to, struct err *err)
{
    char number[32], more[32] = "";
    int i = find(status);

    if (vendor)
        snprintf(more, sizeof(more), " (vendor's code 0x%x)", vendor);
    return err_io(err, "%s: rank %d (%.40s %.30s) to rank %d (%.40s %.30s): %s%s",
                  verbs_words(status, number), from->rank, from->host, from->port, to->rank,
                  to->host, to->port,
                  i < STATUSES ? table[i].hint : "the library knows of no such status", more);
}

const char *verbs_words_event(int type)
{
    return type == VERBS_EVENT_CQ_ERROR       ? "a completion queue ran over"
           : type == VERBS_EVENT_QP_FATAL     ? "a queue pair failed"
           : type == VERBS_EVENT_QP_REQUEST   ? "a peer's request made no sense"
           : type == VERBS_EVENT_QP_ACCESS    ? "a peer's request was not allowed"
           : type == VERBS_EVENT_DEVICE_FATAL ? "the device failed, see dmesg"
           : type == VERBS_EVENT_PORT_ERROR   ? "the port went down"
                                              : NULL;
}
