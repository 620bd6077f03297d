/* xml.h - foreign XML by its elements, bounded: bytes, elements, depth, and no entities (nothing is
 * ever fetched or expanded).
 *
 * A reader gives two functions.  Whichever finds something wrong calls xml_bad(): the first
 * sentence stays, with file and line, and reading ends. */
#ifndef RG_XML_H
#define RG_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct xml {
    void *user;
    const char *path;
    struct err *err;
    int depth;    /* of the element that is being opened or closed; the root has 1 */
    bool failed;  /* by xml_bad() */
    void *hidden; /* the parser's */
};

struct xml_reader {
    const char *what;     /* for messages: "NCCL's topology" */
    size_t bytes;         /* at most */
    int elements, depths; /* at most */
    bool doctype;         /* the name of a DTD may stand there, and is not looked at */
    /* attributes: name, value, name, value ... NULL */
    void (*start)(struct xml *x, const char *name, const char **attributes);
    /* text: what stands in the element since its last child, without blanks around it */
    void (*end)(struct xml *x, const char *name, const char *text);
};

/* EXIT_DATA with path, line and reason. */
int xml_read(const struct xml_reader *r, void *user, const char *text, size_t len, const char *path,
             struct err *err);
void xml_bad(struct xml *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *xml_attribute(const char **attributes, const char *name); /* NULL: not there */
/* A whole number, decimal or 0x...; not there: fallback. */
long long xml_whole(struct xml *x, const char **attributes, const char *name, long long min,
                    long long max, long long fallback);
/* Text of others into a field: printable ASCII, '?' for the rest, cut where it is too long. */
void xml_keep(char *to, size_t size, const char *from);

#endif
