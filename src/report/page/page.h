/* page.h - report of a campaign as one self-contained HTML file: verdict, parts, checks, pictures,
 * tables and their data.
 *
 * Everything but hover, sorting and zooming is in the HTML itself, so that the page can be read,
 * printed and searched without scripts.  Every text passes html() (page_impl.h), and the page's own
 * policy allows no script but page.js as built in, and no loading. */
#ifndef RG_PAGE_H
#define RG_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "matrix/matrix.h"
#include "measure/point.h"
#include "verdict/accept.h"
#include "verdict/history.h"
#include "verdict/parts.h"

/* Input of the page; all pointers are borrowed. */
struct page {
    const char *path;  /* campaign directory, or a matrix file */
    const char *title; /* NULL: made from the machine */
    const struct matrix *m;
    /* topology for the devices: topology.json if present, else the matrix's */
    const struct topo *t;
    const struct points *p; /* NULL: none */
    const struct accept *accept;
    const struct parts *parts; /* parts of the same matrix */
    const char *line;          /* verdict as a sentence */
    json_t *checks, *told;     /* rows of the verdict, and parts, as printed by accept */
    const char *against;       /* reference of the limits' shares, or NULL */
    const char *limits_name;
    const struct history *history; /* history that ends with this campaign; NULL: not requested */
};

#define PAGE_FORMAT "railgauge-report"
enum { PAGE_VERSION = 1 };

/* Contents of the page, computed once.  Free with page_facts_free(). */
struct page_facts;
struct page_facts *page_facts(const struct page *page);
void page_facts_free(struct page_facts *f);

/* JSON as in src/schema/report.schema.json; a new reference. */
json_t *page_data(const struct page_facts *f);
/* data is embedded unchanged. */
void page_write(FILE *out, const struct page_facts *f, json_t *data);

#endif
