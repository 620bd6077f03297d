/* page.h - the report of a campaign as one HTML file that needs nothing else: verdict, parts, checks,
 * pictures, tables and the data behind them.
 *
 * Everything but hover, sorting and zooming is in the HTML itself, so that it reads, prints and is
 * searched without scripts.  Every text passes html() (page_impl.h), and the page's own policy lets
 * no script run but page.js as it was built in, and nothing be loaded. */
#ifndef RG_PAGE_H
#define RG_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "cost/matrix.h"
#include "probe/point.h"
#include "verdict/accept.h"
#include "verdict/history.h"
#include "verdict/parts.h"

/* What the page is of; nothing is owned. */
struct page {
    const char *path;  /* the campaign's folder, or a matrix file */
    const char *title; /* NULL: made of the machine */
    const struct matrix *m;
    const struct topo *t;   /* its devices: topology.json where that is, else the matrix's */
    const struct points *p; /* NULL: there are none */
    const struct accept *accept;
    const struct parts *parts; /* of the same matrix */
    const char *line;          /* the verdict in one sentence */
    json_t *checks, *told;     /* rows of the verdict and parts, as accept prints them */
    const char *against;       /* what shares of limits are of, or NULL */
    const char *limits_name;
    const struct history *history; /* that ends with this campaign; NULL: none was asked for */
};

#define PAGE_FORMAT "railgauge-report"
enum { PAGE_VERSION = 1 };

/* What the page shows, computed once: page_facts_free(). */
struct page_facts;
struct page_facts *page_facts(const struct page *page);
void page_facts_free(struct page_facts *f);

/* src/schema/report.schema.json; new reference. */
json_t *page_data(const struct page_facts *f);
/* data is embedded as it is. */
void page_write(FILE *out, const struct page_facts *f, json_t *data);

#endif
