/* judged_impl.h - a campaign with reference and verdict, for accept (prints the verdict) and report
 * (draws it). */
#ifndef RG_JUDGED_H
#define RG_JUDGED_H

#include "base/table.h"
#include "cmd/input_impl.h"
#include "verdict/accept.h"
#include "verdict/parts.h"

struct judged_args {
    struct input_args in;
    const char *against, *limits; /* options; NULL: default for the machine */
};

#define JUDGED_AGAINST(type, member)                                                               \
    {                                                                                              \
        "against", 0, "PRESET|MATRIX|DIR",                                                         \
            "reference of the shares of expected (default: the preset of the GPUs)",               \
            OPT_INTO(type, member.against), .values = fabric_each                                  \
    }
#define JUDGED_LIMITS(type, member)                                                                \
    {                                                                                              \
        "limits", 0, "FILE", "limits to use instead of those of railgauge",                        \
            OPT_INTO(type, member.limits)                                                          \
    }

/* Exit codes: the project's own, or the number of the verdict as in monitoring plugins. */
enum judged_style { JUDGED_OWN, JUDGED_NAGIOS };
extern const char *const judged_style[];
#define JUDGED_STYLE(type, member)                                                                 \
    {                                                                                              \
        "exit-style", 0, "NAME",                                                                   \
            "exit codes and output: railgauge, or nagios (0 1 2 3 and one line)",                  \
            OPT_WORD(type, member, judged_style)                                                   \
    }

enum { JUDGED_STEPS = 5 }; /* parts printed; railgauge show DIR parts has all */

struct judged {
    struct input in; /* matrix and topology; points if present */
    struct input_below below;
    struct matrix reference;
    char *against; /* name of the reference; NULL: none known */
    struct limits limits;
    const char *limits_name; /* file, else the title of the built-in limits */
    struct accept accept;
    struct parts parts;
    char *line; /* verdict in one sentence: number of checks, and the worst of them */
};

/* Call judged_free() in any case, after judged_init(). */
void judged_init(struct judged *j);
int judged_open(struct judged *j, const struct judged_args *a, struct err *err);
void judged_free(struct judged *j);

/* Print the line of monitoring plugins on standard output: "PASS: text" without the first word, and
 * the figures of `a` unless NULL. */
void judged_nagios(enum accept_is verdict, const char *line, const struct accept *a);

/* Print verdict, reference, the checks that did not pass (all: every check), parts and coverage. */
void judged_print(const struct judged *j, const char *campaign, bool all);
json_t *judged_seen(const struct judged *j);  /* coverage as a list; new reference */
json_t *judged_racks(const struct judged *j); /* a row per rack; new reference */
/* Return a row per check, the most urgent first, as a new reference. */
json_t *judged_json(const struct accept *a);
extern const char *const judged_unit[]; /* "count", "share", "Bps", "s", by enum limit_unit */

#endif
