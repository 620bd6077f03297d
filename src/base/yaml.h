/* yaml.h - reader of one YAML or JSON document of another program, as jansson values with line
 * numbers for messages.
 *
 * Limits, because the text is from outside: 64 levels, 16 million values, 256 MiB.  Refused with
 * EXIT_DATA, file and line: aliases (a short text could expand to a huge one), tags other than
 * !!str, keys that are not text or duplicate, a second document, and bytes of 0 in a text.  Plain
 * scalars follow YAML 1.2's core schema with decimal numbers only: null, true, 18 and 2.5 have
 * their meaning; "007", "1_000", "0x12", yes and everything quoted is text.
 *
 * A text that starts with { or [ is JSON, with the same limits, without line numbers. */
#ifndef RG_YAML_H
#define RG_YAML_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

enum { YAML_DEPTH = 64, YAML_VALUES = 16 << 20, YAML_BYTES = 256 << 20 };

struct yaml {
    json_t *root; /* objects, arrays, scalars; an empty document is null */
    char *path;
    struct yaml_line {
        const json_t *value;
        int line; /* from 1 */
    } * line;
    int lines;
    char where[320];
};

/* Parse from memory; path is used in messages.  Call yaml_done() also after an error (the name
 * yaml_free() belongs to libyaml). */
int yaml_parse(struct yaml *y, const char *text, size_t len, const char *path, struct err *err);
void yaml_done(struct yaml *y);

/* "m.yaml:12", the start of the value; "m.yaml" if unknown (JSON; null, true and false are shared
 * values).  Stored in y->where until the next call. */
const char *yaml_where(struct yaml *y, const json_t *value);
int yaml_line(const struct yaml *y, const json_t *value); /* 0: unknown */
/* Name that may have been written without quotes: a text, or the digits of an integer; NULL for
 * everything else.  The caller frees. */
char *yaml_text(const json_t *value);

/* Write a text as a scalar that every reader takes for the same text: plain if it is a word that
 * begins with a letter, else in double quotes. */
void yaml_put(FILE *f, const char *text);

#endif
