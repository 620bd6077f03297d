/* SPDX-License-Identifier: BSD-3-Clause */
/* A line that a rank, or anybody who found the port, sends to the watch: what is accepted keeps its
 * bounds, and comes back the same when it is written and read again. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "watch/watch_wire.h"

static void bounded(const char *words, size_t size)
{
    size_t n = strnlen(words, size);

    if (n == size)
        abort();
    for (size_t i = 0; i < n; i++)
        if (words[i] < ' ' || words[i] > '~')
            abort();
}

static void same_hello(const struct watch_hello *h)
{
    struct watch_line again;
    char line[WATCH_LINE];
    int n = watch_hello_format(line, h);

    bounded(h->token, sizeof(h->token));
    bounded(h->host, sizeof(h->host));
    if (h->rank < 0 || h->rank >= h->ranks || h->ranks > WATCH_RANKS || n >= WATCH_LINE)
        abort();
    line[n - 1] = '\0';
    if (watch_line_parse(&again, line) < 0 || again.kind != WATCH_HELLO ||
        strcmp(again.hello.token, h->token) || strcmp(again.hello.host, h->host) ||
        again.hello.rank != h->rank || again.hello.ranks != h->ranks || again.hello.pid != h->pid ||
        again.hello.patience_ms != h->patience_ms)
        abort();
}

static void same_beat(const struct watch_beat *b)
{
    struct watch_line again;
    char line[WATCH_LINE];
    int n = watch_beat_format(line, b);

    bounded(b->words, sizeof(b->words));
    bounded(b->call, sizeof(b->call));
    if (b->state > WATCH_WAITING || b->expect < 0 || b->kept < 0 || b->total < 0 ||
        b->pulse > WATCH_HELD || n >= WATCH_LINE)
        abort();
    line[n - 1] = '\0';
    if (watch_line_parse(&again, line) < 0 || again.kind != WATCH_BEAT ||
        strcmp(again.beat.words, b->words) || again.beat.moves != b->moves ||
        again.beat.steps != b->steps || again.beat.pulse != b->pulse ||
        strcmp(again.beat.call, b->call) || again.beat.state != b->state ||
        fabs(again.beat.expect - fmin(b->expect, 1e6)) > 1e-3)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[WATCH_LINE];
    struct watch_where where;
    struct watch_line l;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (watch_line_parse(&l, text) == 0 && l.kind == WATCH_HELLO)
        same_hello(&l.hello);
    else if (l.kind == WATCH_BEAT && watch_line_parse(&l, text) == 0)
        same_beat(&l.beat);
    else
        bounded(l.beat.words, sizeof(l.beat.words));
    if (watch_where_parse(&where, text) == 0) {
        bounded(where.port, sizeof(where.port));
        if (!where.address[0] || !where.token[0] ||
            strnlen(where.token, WATCH_TOKEN) >= WATCH_TOKEN)
            abort();
    }
    return 0;
}
