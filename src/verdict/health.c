/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/health.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

#define FORMAT "railgauge-health"
enum { VERSION = 1 };

/* --- words --- */

/* Replace characters with a meaning for a shell, scontrol or a log. */
static char *plain(char *text)
{
    for (char *s = text; *s; s++)
        if (*s < ' ' || *s > '~' || strchr("\"'`$\\|", *s))
            *s = ' ';
    if (strlen(text) > HEALTH_REASON)
        memcpy(text + HEALTH_REASON - 3, "...", 4);
    return text;
}

/* "NIC mlx5_1 of r00n04 (GPU 1) at 60 % of normal over all NICs, 5 partners" */
static char *part_reason(const struct part_row *r)
{
    bool gives = r->state == STATE_WRONG || r->state == STATE_DEAD, has = r->state == STATE_SAMPLES;
    char speed[PART_SPEED];

    return mem_printf("%s %s %s over %s, %d partner%s", r->name,
                      gives ? "gives"
                      : has ? "has"
                            : "at",
                      part_words(r, speed), r->over, r->partners, units_s(r->partners));
}

/* Returns the worst verdict of the limits on a part. */
static enum accept_is part_verdict(const struct health_input *in, int part)
{
    const struct part_row *p = &in->parts->row[part];
    const struct accept *a = in->accept;
    enum accept_is worst = ACCEPT_PASS;

    for (int i = 0; i < a->rows; i++) {
        const struct accept_row *r = &a->row[i];
        bool its = r->limit->check == CHECK_WRONG_DATA   ? p->state == STATE_WRONG
                   : r->limit->check == CHECK_DEAD_PARTS ? p->state == STATE_DEAD
                                                         : r->part == part;
        if (its && r->is != ACCEPT_UNKNOWN && r->is > worst)
            worst = r->is;
    }
    return worst;
}

static bool is_in(const struct matrix *m, const struct part_row *p, int host)
{
    if (p->exception < 0)
        return true;
    for (int i = 0; i < m->topo.endpoints; i++)
        if (topo_at(&m->topo, i, LEVEL_HOST) == host &&
            matrix_touches(m, &m->exception[p->exception], i))
            return true;
    return false;
}

static void say(struct health *h, enum accept_is verdict, char *why, int *more)
{
    if (verdict > h->verdict || !h->reason) {
        free(h->reason);
        h->verdict = verdict;
        h->reason = why;
    } else {
        *more += verdict == h->verdict;
        free(why);
    }
}

/* Judge the host's own parts and those that contain it; parts are sorted worst first. */
static void judge_parts(struct health *h, const struct health_input *in, int host)
{
    int more = 0;

    for (int i = 0; i < in->parts->rows; i++) {
        const struct part_row *p = &in->parts->row[i];
        enum accept_is is = part_verdict(in, i);
        if (is == ACCEPT_PASS || !is_in(in->m, p, host))
            continue;
        bool its = part_host(p) == host && p->confidence > CONFIDENCE_LOW;
        say(h, its ? is : ACCEPT_WARN, part_reason(p), &more);
    }
    if (more)
        h->reason = mem_append(h->reason, "; and %d more", more);
}

/* True for checks that a bad part of one host affects for all hosts. */
static bool follows(enum check c)
{
    return c == CHECK_WRONG_DATA || c == CHECK_FAILED_POINTS || c == CHECK_DEAD_PARTS ||
           c == CHECK_BUSBW || c == CHECK_COLLECTIVE || c == CHECK_SEEN;
}

static bool some_host_fails(const struct health_input *in)
{
    for (int i = 0; i < in->parts->rows; i++)
        if (part_host(&in->parts->row[i]) >= 0 && part_verdict(in, i) == ACCEPT_FAIL)
            return true;
    return false;
}

/* Returns the text of the first row with this verdict that no part explains.  The caller frees. */
static char *row_words(const struct health_input *in, enum accept_is is)
{
    const struct accept *a = in->accept;
    bool named = some_host_fails(in);

    for (int i = 0; i < a->rows; i++) {
        const struct accept_row *r = &a->row[i];
        enum check c = r->limit->check;
        if (r->is != is || r->part >= 0 || (named && follows(c)) ||
            (is == ACCEPT_UNKNOWN && r->limit->optional))
            continue;
        return in->trouble && (c == CHECK_WRONG_DATA || c == CHECK_FAILED_POINTS)
                   ? mem_strdup(in->trouble)
                   : accept_text(r);
    }
    return NULL;
}

static void replace(struct health *h, enum accept_is verdict, char *reason)
{
    free(h->reason);
    h->verdict = verdict;
    h->reason = reason;
}

static void judge(struct health *h, const struct health_input *in, int host)
{
    const struct accept *a = in->accept;
    bool alone = in->m->topo.hosts == 1;

    judge_parts(h, in, host);
    if (h->verdict == ACCEPT_FAIL)
        return;
    char *why = a->verdict == ACCEPT_PASS ? NULL : row_words(in, a->verdict);
    enum accept_is is = a->verdict == ACCEPT_FAIL && !alone ? ACCEPT_WARN : a->verdict;
    if (a->verdict == ACCEPT_UNKNOWN || (why && is > h->verdict))
        replace(h, is, why ? why : mem_strdup("no limit could be judged"));
    else
        free(why);
    if (in->cut && h->verdict != ACCEPT_FAIL)
        replace(h, ACCEPT_UNKNOWN, mem_strdup(in->cut));
}

/* --- the file --- */

static json_t *host_parts_json(const struct health_input *in, int host)
{
    json_t *list = json_array();

    for (int i = 0; i < in->parts->rows; i++) {
        const struct part_row *p = &in->parts->row[i];
        if (is_in(in->m, p, host))
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:s}", "name",
                                                  p->name, "kind", part_kind_name[p->kind], "state",
                                                  part_state_name[p->state], "speed",
                                                  json_finite(p->factor), "over", p->over,
                                                  "partners", p->partners, "next", p->next));
    }
    return list;
}

static json_t *pack(const struct health *h, const struct health_input *in, int host)
{
    const struct topo *t = &in->m->topo;
    char *hosts = hostlist_fold(t->group[LEVEL_HOST].name, t->group[LEVEL_HOST].count);
    json_t *made = in->m->provenance ? json_deep_copy(in->m->provenance) : json_provenance();

    json_t *root = json_pack(
        "{s:s, s:i, s:o, s:s, s:I, s:s, s:s, s:o, s:{s:s, s:s, s:s, s:s?, s:s?}}", "format", FORMAT,
        "version", VERSION, "provenance", made, "host", h->host, "time_s", (json_int_t)h->time,
        "verdict", accept_name[h->verdict], "reason", h->reason, "parts", host_parts_json(in, host),
        "check", "verdict", accept_name[in->accept->verdict], "line", in->line, "hosts", hosts,
        "against", in->against, "limits_file", in->limits_file);
    free(hosts);
    return root;
}

void health_of(struct health *h, const struct health_input *in, int host)
{
    *h = (struct health){.host = mem_strdup(in->m->topo.host[host].name),
                         .line = mem_strdup(in->line),
                         .time = (double)time(NULL)};
    judge(h, in, host);
    char *text =
        h->verdict == ACCEPT_PASS ? mem_strdup("") : mem_printf("railgauge: %s", h->reason);
    free(h->reason);
    h->reason = plain(text);
    h->json = pack(h, in, host);
}

static char *path_of(const char *dir, const char *host, struct err *err)
{
    if (!*host || *host == '.' || strchr(host, '/')) {
        err_data(err, "\"%s\" is no name of a host", host);
        return NULL;
    }
    /* Schedulers use host names without the domain; an address has no domain. */
    size_t length = strspn(host, "0123456789.") == strlen(host) ? strlen(host) : strcspn(host, ".");
    char *name = mem_printf("%.*s.json", (int)length, host), *path = file_join(dir, name);
    free(name);
    return path;
}

int health_save(const struct health *h, const char *dir, struct err *err)
{
    char *path = path_of(dir, h->host, err);
    int rc = path ? json_save(h->json, path, err) : -1;

    free(path);
    return rc;
}

static int unpack(struct health *h, const char *path, struct err *err)
{
    const char *host, *verdict, *reason, *line;
    json_t *check, *parts, *made;
    json_int_t when;

    if (json_take(h->json, path, err, "{s:s, s:i, s:o, s:s, s:I, s:s, s:s, s:o, s:o}", "format",
                  &(const char *){0}, "version", &(int){0}, "provenance", &made, "host", &host,
                  "time_s", &when, "verdict", &verdict, "reason", &reason, "parts", &parts, "check",
                  &check) < 0)
        return -1;
    line = json_string_value(json_object_get(check, "line"));
    if (!line)
        return err_data(err, "%s: \"check\" has no \"line\"", path);
    int is = 0;
    while (is < ACCEPT_IS_COUNT && strcmp(verdict, accept_name[is]) != 0)
        is++;
    if (is == ACCEPT_IS_COUNT)
        return err_data(err, "%s: no verdict \"%s\"", path, verdict);
    h->host = mem_strdup(host);
    h->verdict = (enum accept_is)is;
    h->reason = plain(mem_strdup(reason));
    h->line = mem_strdup(line);
    h->time = (double)when;
    return 0;
}

int health_load(struct health *h, const char *dir, const char *host, struct err *err)
{
    char *path = path_of(dir, host, err);

    *h = (struct health){.path = path};
    int rc = path ? json_open(&h->json, path, FORMAT, VERSION, err) : -1;
    if (rc == 0)
        rc = unpack(h, path, err);
    return rc;
}

void health_doubt(struct health *h, char *reason)
{
    free(h->reason);
    h->verdict = ACCEPT_UNKNOWN;
    h->reason = plain(reason);
    if (h->json) {
        json_object_set_new(h->json, "verdict", json_string(accept_name[h->verdict]));
        json_object_set_new(h->json, "reason", json_string(h->reason));
    }
}

void health_free(struct health *h)
{
    json_decref(h->json);
    free(h->host);
    free(h->reason);
    free(h->line);
    free(h->path);
    *h = (struct health){0};
}
