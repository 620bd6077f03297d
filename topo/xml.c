/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/xml.h"

#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* 2.9 has deprecated what older ones have. */
#if XML_MAJOR_VERSION < 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION < 9)
#define XML_GetCurrentLineNumber64 XML_GetCurrentLineNumber
#endif

struct hidden {
    XML_Parser parser;
    const struct xml_reader *reader;
    int elements;
    char *text; /* text of the innermost element */
    int length;
};

static int xml_line(const struct xml *x)
{
    const struct hidden *h = x->hidden;

    return (int)XML_GetCurrentLineNumber64(h->parser);
}

void xml_bad(struct xml *x, const char *fmt, ...)
{
    struct hidden *h = x->hidden;
    char text[256];
    va_list args;

    if (x->failed)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    err_data(x->err, "%s:%d: %s", x->path, xml_line(x), text);
    x->failed = true;
    XML_StopParser(h->parser, XML_FALSE);
}

static void on_start(void *data, const char *name, const char **attributes)
{
    struct xml *x = data;
    struct hidden *h = x->hidden;

    if (x->failed)
        return;
    if (x->depth >= h->reader->depths || ++h->elements > h->reader->elements) {
        xml_bad(x, "more than %d elements, or deeper than %d", h->reader->elements,
                h->reader->depths);
        return;
    }
    x->depth++;
    h->length = 0;
    h->reader->start(x, name, attributes);
}

static void on_text(void *data, const char *text, int length)
{
    struct hidden *h = ((struct xml *)data)->hidden;

    for (int i = 0; i < length; i++)
        MEM_PUSH(h->text, h->length) = text[i];
}

static char *trimmed(struct hidden *h)
{
    static const char blanks[] = " \t\r\n";

    MEM_PUSH(h->text, h->length) = '\0';
    char *from = h->text + strspn(h->text, blanks), *end = from + strlen(from);
    while (end > from && strchr(blanks, end[-1]))
        *--end = '\0';
    return from;
}

static void on_end(void *data, const char *name)
{
    struct xml *x = data;
    struct hidden *h = x->hidden;

    if (x->failed)
        return;
    if (h->reader->end)
        h->reader->end(x, name, trimmed(h));
    h->length = 0;
    x->depth--;
}

/* Refuse an internal subset, because entities could be declared in it. */
static void on_doctype(void *data, const char *name, const char *system, const char *public_id,
                       int inside)
{
    struct xml *x = data;
    struct hidden *h = x->hidden;

    (void)name, (void)system, (void)public_id;
    if (!h->reader->doctype)
        xml_bad(x, "a DOCTYPE has no place in %s", h->reader->what);
    else if (inside)
        xml_bad(x, "declarations have no place in %s", h->reader->what);
}

int xml_read(const struct xml_reader *r, void *user, const char *text, size_t len, const char *path,
             struct err *err)
{
    struct hidden h = {.parser = NULL, .reader = r};
    struct xml x = {.user = user, .path = path, .err = err, .hidden = &h};

    if (len > r->bytes || len > INT_MAX)
        return err_data(err, "%s: %zu bytes are more than %zu", path, len, r->bytes);
    h.parser = XML_ParserCreate(NULL);
    if (!h.parser)
        return err_io(err, "%s: out of memory", path);
    XML_SetUserData(h.parser, &x);
    XML_SetElementHandler(h.parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(h.parser, on_doctype);
    if (r->end)
        XML_SetCharacterDataHandler(h.parser, on_text);
    int rc = XML_Parse(h.parser, text, (int)len, 1) == XML_STATUS_OK && !x.failed ? 0 : -1;
    if (rc < 0 && !x.failed && XML_GetErrorCode(h.parser) == XML_ERROR_NO_MEMORY)
        err_io(err, "%s: out of memory", path);
    else if (rc < 0 && !x.failed)
        xml_bad(&x, "%s", XML_ErrorString(XML_GetErrorCode(h.parser)));
    XML_ParserFree(h.parser);
    free(h.text);
    return rc;
}

const char *xml_attribute(const char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (!strcmp(*attributes, name))
            return attributes[1];
    return NULL;
}

long long xml_whole(struct xml *x, const char **attributes, const char *name, long long min,
                    long long max, long long fallback)
{
    const char *text = xml_attribute(attributes, name);
    char *end;

    if (!text)
        return fallback;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (errno || end == text || *end || value < min || value > max) {
        xml_bad(x, "%s=\"%.40s\" is no number from %lld to %lld", name, text, min, max);
        return fallback;
    }
    return value;
}

void xml_keep(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
    for (char *c = to; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
}
