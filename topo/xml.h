/* xml.h - reader of foreign XML, with limits on bytes, elements and depth, and without entities
 * (nothing is ever fetched or expanded).
 *
 * A reader provides two functions.  Either reports an error with xml_bad(): the first message is
 * kept, with file and line, and reading ends. */
#ifndef RG_XML_H
#define RG_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct xml {
    void *user;
    const char *path;
    struct err *err;
    int depth;    /* depth of the element being opened or closed; root: 1 */
    bool failed;  /* set by xml_bad() */
    void *hidden; /* private to the parser */
};

struct xml_reader {
    const char *what;     /* name in messages: "NCCL's topology" */
    size_t bytes;         /* maximum */
    int elements, depths; /* maximum */
    bool doctype;         /* a DOCTYPE with a DTD name is allowed and ignored */
    /* attributes: name, value, name, value ... NULL */
    void (*start)(struct xml *x, const char *name, const char **attributes);
    /* text: characters of the element after its last child, without surrounding blanks */
    void (*end)(struct xml *x, const char *name, const char *text);
};

/* Parse text.  Errors are EXIT_DATA with path, line and reason. */
int xml_read(const struct xml_reader *r, void *user, const char *text, size_t len, const char *path,
             struct err *err);
void xml_bad(struct xml *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *xml_attribute(const char **attributes, const char *name); /* NULL: missing */
/* Whole number, decimal or 0x...; if missing: fallback. */
long long xml_whole(struct xml *x, const char **attributes, const char *name, long long min,
                    long long max, long long fallback);
/* Copy foreign text into a field: printable ASCII, others become '?', cut if too long. */
void xml_keep(char *to, size_t size, const char *from);

#endif
