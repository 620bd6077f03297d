/* SPDX-License-Identifier: BSD-3-Clause */
/* junit.c - the verdict as test cases for readers of JUnit's XML: Jenkins, GitLab, ReFrame's
 * readers.
 *
 * A suite of the checks: FAIL is a failure; UNKNOWN is an error, or skipped if it does not count; a
 * warning is a passed case with output.  A suite of the hosts, followed by parts that do not belong
 * to a single host (leaves, racks, cables): a part that fails its check is the failure of its
 * host.  Attributes are those that Jenkins' and GitLab's parsers read (testmoapp/junitxml). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "export/export_impl.h"
#include "verdict/accept.h"
#include "verdict/parts.h"

/* A test case and its result: NULL, or the element with type and message. */
struct junit_case {
    char *classname, *name;
    const char *element, *type; /* "failure", "error", "skipped"; NULL: passed */
    char *message;              /* output of a passed case, or NULL */
};

struct junit {
    struct junit_case *item;
    int count;
};

static struct junit_case *add(struct junit *j, char *classname, char *name)
{
    MEM_PUSH(j->item, j->count) = (struct junit_case){.classname = classname, .name = name};
    return &j->item[j->count - 1];
}

static void put_attribute(FILE *out, const char *name, const char *text)
{
    char *safe = export_xml(text);

    fprintf(out, " %s=\"%s\"", name, safe);
    free(safe);
}

static void put_case(FILE *out, const struct junit_case *c)
{
    fputs("    <testcase", out);
    put_attribute(out, "classname", c->classname);
    put_attribute(out, "name", c->name);
    fputs(" time=\"0\"", out);
    if (c->element) {
        fprintf(out, ">\n      <%s", c->element);
        put_attribute(out, "message", c->message);
        if (strcmp(c->element, "skipped") != 0)
            put_attribute(out, "type", c->type);
        fputs("/>\n    </testcase>\n", out);
    } else if (c->message) {
        char *safe = export_xml(c->message);
        fprintf(out, ">\n      <system-out>%s</system-out>\n    </testcase>\n", safe);
        free(safe);
    } else
        fputs("/>\n", out);
}

static int count(const struct junit *j, const char *element)
{
    int n = 0;

    for (int i = 0; i < j->count; i++)
        n += j->item[i].element && !strcmp(j->item[i].element, element);
    return n;
}

static void put_counts(FILE *out, int tests, int failures, int errors, int skipped)
{
    fprintf(out, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"0\">\n", tests,
            failures, errors, skipped);
}

static void put_suite(const struct export_run *e, const char *name, const struct junit *j)
{
    const char *time = json_string_value(json_object_get(e->m->provenance, "time_utc"));

    fputs("  <testsuite", e->out);
    put_attribute(e->out, "name", name);
    if (time && strlen(time) > 1)
        fprintf(e->out, " timestamp=\"%.*s\"", (int)strcspn(time, "Z<&\""), time);
    put_counts(e->out, j->count, count(j, "failure"), count(j, "error"), count(j, "skipped"));
    for (int i = 0; i < j->count; i++)
        put_case(e->out, &j->item[i]);
    fputs("  </testsuite>\n", e->out);
}

static void done(struct junit *j)
{
    for (int i = 0; i < j->count; i++) {
        free(j->item[i].classname);
        free(j->item[i].name);
        free(j->item[i].message);
    }
    free(j->item);
}

/* --- checks --- */

/* "60.3 %, limit >= 90.0 %, 95.0 % of gb200-nvl72 (465 GB/s)" */
static char *figures(const struct accept_row *r)
{
    const struct limit_check *c = &limit_check[r->limit->check];
    char value[LIMIT_TEXT], bound[LIMIT_TEXT];

    if (!isfinite(r->value) || !isfinite(r->bound))
        return mem_strdup(r->why);
    return mem_printf("%s, limit %s %s%s%s%s%s", limit_value_text(value, c->unit, r->value),
                      c->least ? ">=" : "<=", limit_value_text(bound, c->unit, r->bound),
                      *r->of ? ", " : "", r->of, *r->why ? ": " : "", r->why);
}

static void add_check(struct junit *j, const struct accept_row *r)
{
    struct junit_case *c =
        add(j, mem_printf("railgauge.%s", limit_check[r->limit->check].name), mem_strdup(r->what));

    c->type = accept_name[r->is];
    if (r->is == ACCEPT_FAIL)
        c->element = "failure";
    else if (r->is == ACCEPT_UNKNOWN)
        c->element = r->limit->optional ? "skipped" : "error";
    char *text = r->is == ACCEPT_UNKNOWN ? mem_strdup(r->why) : figures(r);
    c->message = r->is == ACCEPT_WARN ? mem_printf("WARN: %s", text) : mem_strdup(text);
    free(text);
}

/* --- hosts, and parts of no single host --- */

/* True if the part fails a check, or is dead, wrong or the fabric itself. */
static bool is_fault(const struct export_run *e, const struct part_row *p)
{
    if (p->state == STATE_DEAD || p->state == STATE_WRONG || p->exception < 0)
        return true;
    for (int i = 0; i < e->accept->rows; i++)
        if (e->accept->row[i].is == ACCEPT_FAIL && e->accept->row[i].part == p - e->parts->row)
            return true;
    return false;
}

static void blame(struct junit_case *c, const struct part_row *p)
{
    char speed[PART_SPEED];

    c->element = "failure";
    c->type = part_state_name[p->state];
    c->message = mem_append(c->message, "%s%s: %s over %s, %d pairs; %s", c->message ? "; " : "",
                            p->name, part_speed(p, speed), p->over, p->pairs, p->next);
}

static void add_parts(struct junit *j, const struct export_run *e)
{
    for (int h = 0; h < e->topo->hosts; h++)
        add(j, mem_strdup("railgauge.host"), mem_strdup(e->topo->host[h].name));
    for (int i = 0; i < e->parts->rows; i++) {
        const struct part_row *p = &e->parts->row[i];
        int host = part_host(p);
        if (is_fault(e, p))
            blame(host >= 0 && host < e->topo->hosts
                      ? &j->item[host]
                      : add(j, mem_printf("railgauge.%s", part_kind_name[p->kind]),
                            mem_strdup(p->name)),
                  p);
    }
}

static void add_racks(struct junit *j, const struct export_run *e)
{
    const struct names *rack = &e->parts->topo.group[LEVEL_RACK];

    for (int i = 0; i < rack->count; i++) {
        enum accept_is is = accept_rack(e->accept, e->parts, i);
        struct junit_case *c = add(j, mem_strdup("railgauge.rack"), mem_strdup(rack->name[i]));
        c->type = accept_name[is];
        c->element = is == ACCEPT_FAIL ? "failure" : is == ACCEPT_UNKNOWN ? "error" : NULL;
        c->message = is == ACCEPT_PASS ? NULL
                                       : mem_strdup(is == ACCEPT_UNKNOWN
                                                        ? "not all of its parts were judged"
                                                        : "a part of it stands out: see the hosts");
    }
}

enum { SUITE_CHECKS, SUITE_PARTS, SUITE_RACKS, SUITES };

static void fill_suites(struct junit suite[SUITES], const struct export_run *e)
{
    for (int i = 0; i < e->accept->rows; i++)
        add_check(&suite[SUITE_CHECKS], &e->accept->row[i]);
    add_parts(&suite[SUITE_PARTS], e);
    add_racks(&suite[SUITE_RACKS], e);
}

static const char *suite_name(const struct export_run *e, int suite)
{
    static const char *const name[SUITES] = {"checks", "hosts and parts", "racks"};

    return suite == SUITE_CHECKS && e->ask->name ? e->ask->name : name[suite];
}

int junit_write(const struct export_run *e, struct err *err)
{
    struct junit suite[SUITES] = {{0}};
    int tests = 0, failures = 0, errors = 0, skipped = 0;

    (void)err;
    fill_suites(suite, e);
    for (int i = 0; i < SUITES; i++) {
        tests += suite[i].count;
        failures += count(&suite[i], "failure");
        errors += count(&suite[i], "error");
        skipped += count(&suite[i], "skipped");
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"railgauge\"", e->out);
    put_counts(e->out, tests, failures, errors, skipped);
    for (int i = 0; i < SUITES; i++) {
        if (suite[i].count)
            put_suite(e, suite_name(e, i), &suite[i]);
        done(&suite[i]);
    }
    fputs("</testsuites>\n", e->out);
    return 0;
}

/* --- the same as CTRF, version 1.0.0 (ctrf-io/ctrf, schema/ctrf.schema.json) --- */

static const char *ctrf_status(const struct junit_case *c)
{
    if (!c->element)
        return "passed";
    return !strcmp(c->element, "failure")   ? "failed"
           : !strcmp(c->element, "skipped") ? "skipped"
                                            : "other";
}

static json_t *ctrf_case(const struct junit_case *c, const char *suite)
{
    json_t *out = json_pack("{s:s, s:s, s:i, s:[s, s]}", "name", c->name, "status", ctrf_status(c),
                            "duration", 0, "suite", suite, c->classname);

    if (c->type)
        json_object_set_new(out, "rawStatus", json_string(c->type));
    if (c->message)
        json_object_set_new(out, "message", json_string(c->message));
    return out;
}

/* Milliseconds since 1970 of the campaign; 0: not stated. */
static json_int_t ctrf_time(const struct export_run *e)
{
    const char *text = json_string_value(json_object_get(e->m->provenance, "time_utc"));
    struct tm tm = {0};

    return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (json_int_t)timegm(&tm) * 1000 : 0;
}

int ctrf_write(const struct export_run *e, struct err *err)
{
    struct junit suite[SUITES] = {{0}};
    json_t *tests = json_array();
    int number[4] = {0};
    static const char *const status[4] = {"passed", "failed", "skipped", "other"};

    fill_suites(suite, e);
    for (int i = 0; i < SUITES; i++) {
        for (int k = 0; k < suite[i].count; k++) {
            for (int n = 0; n < 4; n++)
                number[n] += !strcmp(ctrf_status(&suite[i].item[k]), status[n]);
            json_array_append_new(tests, ctrf_case(&suite[i].item[k], suite_name(e, i)));
        }
        done(&suite[i]);
    }
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:{s:{s:s}, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I}, s:o}}",
        "reportFormat", "CTRF", "specVersion", "1.0.0", "generatedBy", "railgauge " RG_VERSION,
        "results", "tool", "name", "railgauge", "summary", "tests", (int)json_array_size(tests),
        "passed", number[0], "failed", number[1], "skipped", number[2], "other", number[3],
        "pending", 0, "start", ctrf_time(e), "stop", ctrf_time(e), "tests", tests);
    int rc = json_print(e->out, root) < 0 ? err_set(err, "the cases cannot be printed") : 0;
    json_decref(root);
    return rc;
}
