/* yaml.h - one YAML or JSON document of another program as jansson values, with the line of each
 * for messages.
 *
 * Bounded, because the text is from outside: 64 levels deep, 16 million values, 256 MiB.  Aliases
 * (with them a short text can name a huge one), tags other than !!str, keys that are not text or
 * are there twice, a second document and bytes of 0 in a text are refused, EXIT_DATA, with file and
 * line.  Plain scalars follow YAML 1.2's core schema with decimal numbers only: null, true, 18 and
 * 2.5 are what they look like; "007", "1_000", "0x12", yes and everything quoted is text.
 *
 * A text that starts with { or [ is JSON, the same limits, without lines. */
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

/* From memory; path is for messages.  yaml_done() also after an error (libyaml has a yaml_free() of
 * its own). */
int yaml_parse(struct yaml *y, const char *text, size_t len, const char *path, struct err *err);
void yaml_done(struct yaml *y);

/* "m.yaml:12", where the value starts; "m.yaml" when that is not known (JSON; null, true and false
 * are shared values).  In y->where: good until the next call. */
const char *yaml_where(struct yaml *y, const json_t *value);
int yaml_line(const struct yaml *y, const json_t *value); /* 0: not known */
/* A name that may have been written without quotes: of a text the text, of an integer its digits;
 * NULL for everything else.  The caller frees. */
char *yaml_text(const json_t *value);

/* A text as a scalar that every reader takes for that text: plain where it is a word that begins
 * with a letter, else in double quotes. */
void yaml_put(FILE *f, const char *text);

#endif
