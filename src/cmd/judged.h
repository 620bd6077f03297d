/* judged.h - a campaign, what it is compared with, and its verdict: what accept says of it and report
 * draws. */
#ifndef RG_JUDGED_H
#define RG_JUDGED_H

#include "base/table.h"
#include "cmd/input.h"
#include "verdict/accept.h"
#include "verdict/parts.h"

struct judged_args {
    struct input_args in;
    const char *against, *limits; /* options; NULL: what goes with the machine */
};

#define JUDGED_AGAINST(type, member)                                                               \
    {                                                                                              \
        "against", 0, "PRESET|MATRIX|DIR", "what shares are of; else the preset of the GPUs seen", \
            OPT_INTO(type, member.against), .values = fabric_each                                  \
    }
#define JUDGED_LIMITS(type, member)                                                                \
    {                                                                                              \
        "limits", 0, "FILE", "these limits instead of those of railgauge",                         \
            OPT_INTO(type, member.limits)                                                          \
    }

/* Of exit codes: ours, or those of monitoring plugins, which are the verdict's number. */
enum judged_style { JUDGED_OWN, JUDGED_NAGIOS };
extern const char *const judged_style[];
#define JUDGED_STYLE(type, member)                                                                 \
    {                                                                                              \
        "exit-style", 0, "NAME", "railgauge or nagios: 0 1 2 3 and one line with figures",         \
            OPT_WORD(type, member, judged_style)                                                   \
    }

enum { JUDGED_STEPS = 5 }; /* next steps printed: more would push the checks off the screen */

struct judged {
    struct input in; /* matrix and topology; points where they are */
    struct input_below below;
    struct matrix reference;
    char *against; /* name of the reference; NULL: none is known */
    struct limits limits;
    const char *limits_name; /* the file, else the title of the built-in ones */
    struct accept accept;
    struct parts parts;
    char *line; /* the verdict in one sentence: how many checks, and the worst of them */
};

/* judged_free() in any case, after judged_init(). */
void judged_init(struct judged *j);
int judged_open(struct judged *j, const struct judged_args *a, struct err *err);
void judged_free(struct judged *j);

/* The one line of monitoring plugins on standard output: "PASS: text" without its first word, and
 * the figures of `a` unless that is NULL. */
void judged_nagios(enum accept_is verdict, const char *line, const struct accept *a);

/* The first lines for people: the verdict, what it is against, what was looked at. */
void judged_print(const struct judged *j, const char *campaign);
json_t *judged_seen(const struct judged *j); /* what was looked at, a list; new reference */
/* A row a check, what needs a person first; brief: only those. */
void judged_table(struct table *t, const struct accept *a, bool brief);
extern const char *const judged_unit[]; /* "count", "share", "Bps", "s", by enum limit_unit */

#endif
