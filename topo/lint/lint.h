/* lint.h - what is odd about a machine before anything was measured: a list of findings that every
 * check appends to (net_lint.h for switches and cables, others for hosts).
 *
 * A check compares what is of the same kind, names the odd one out, and says what its peers have.
 */
#ifndef RG_LINT_H
#define RG_LINT_H

#include <stdbool.h>

struct lint_finding {
    char *kind; /* one word to filter by, the same for all findings of a check: "cables" */
    char *what; /* who is odd: "leaf-03[17]", "node07 mlx5_2" */
    char *text; /* the whole sentence: what it has, what its peers have */
    bool bad;   /* costs performance or hides a part; else only worth knowing */
};

struct lint {
    struct lint_finding *finding;
    int findings;
};

/* Append; texts are copied.  lint_add() says bad, lint_note() worth knowing. */
void lint_add(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void lint_note(struct lint *l, const char *kind, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int lint_bad(const struct lint *l); /* how many are bad */
void lint_free(struct lint *l);

#endif
