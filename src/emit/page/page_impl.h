/* page_impl.h - what the files of a page share. */
#ifndef RG_PAGE_IMPL_H
#define RG_PAGE_IMPL_H

#include <stdbool.h>

#include "base/units.h"
#include "emit/page/page.h"
#include "emit/plot/plot_data.h"

/* --- page_html.c --- */

/* As fprintf(), and every %s is escaped: the only way from text to HTML.  Characters that HTML has no
 * place for become U+FFFD. */
void html(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* JSON inside a script element: no "<" is left. */
void html_json(FILE *out, json_t *data);
/* The SHA-256 (FIPS 180-4) of a text in base64, as content security policies have it. */
enum { HTML_HASH = 48, HTML_HEX = 65 };
char *html_hash(char buf[HTML_HASH], const char *text, size_t len);
char *html_hex(char buf[HTML_HEX], const char *text, size_t len); /* as sha256sum prints it */
char *html_base64(const unsigned char *in, size_t len);           /* the caller frees */

/* A section with its heading, which says what was found; it is open until html_end(). */
void html_section(FILE *out, const char *id, char *heading);
static inline void html_end(FILE *out)
{
    fputs("</section>\n", out);
}
/* A table whose heads are separated by "|"; a "#" before one: of numbers.  Open until
 * html_table_end(). */
void html_table(FILE *out, const char *id, const char *caption, const char *heads);
static inline void html_table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}
enum { PERCENT_TEXT = 24 };
char *percent_text(char buf[PERCENT_TEXT], double share); /* "98.4 %", "-" */

/* --- page_facts.c --- */

/* A share of expected: median over partners with its 95 % interval. */
struct page_share {
    double mid, lo, hi;
    int n; /* 0: no pair */
};
enum page_way { WAY_NEAR_TX, WAY_NEAR_RX, WAY_NIC_TX, WAY_NIC_RX, WAYS };
extern const char *const way_name[WAYS]; /* "inside, sends", ... "network, receives" */

/* MARK_BEHIND: its traffic passes a leaf, uplinks or what lies between racks that is slow. */
enum page_mark { MARK_NONE, MARK_BEHIND, MARK_LATE, MARK_SLOW, MARK_DEAD, MARK_WRONG, MARKS };
extern const struct page_mark_look {
    const char *word, *sign, *class;
} page_mark_look[MARKS];
enum page_mark page_mark_of(const struct part_row *r);

struct page_end {
    struct page_share way[WAYS];
    double least;        /* of the medians; NAN: not measured */
    int partners;        /* it was measured with, in either direction */
    int wrong;           /* pairs whose data arrived wrong at it or from it */
    enum page_mark mark; /* by the worst part that it is in */
    int part;            /* that one, -1 */
    int block, row;      /* where it is drawn */
};

struct page_pair {
    int src, dst, tier;
    double share, lo, hi; /* NAN: no data */
    bool alone, wrong;
    bool by_nic; /* with NVLink left, where the two have it */
    bool clean;  /* no part at fault is on its way */
};

/* A rack, or where none is visible endpoints that stand together. */
struct page_block {
    char *name;
    int first, count; /* in order[] */
    int *host;        /* its rows, from below */
    int hosts;
    int marked, behind; /* endpoints at fault; behind a part that is */
    double least;       /* share of an endpoint in it; NAN: none */
    bool slots;         /* rows are in the order of their slots, else of names */
};

struct page_facts {
    const struct page *in;
    const struct matrix *m;
    const struct topo *t;  /* places, as the matrix has them: some are found by measuring */
    const struct topo *hw; /* devices */
    bool simulated;
    json_t *provenance; /* of the points where there are some, else of the matrix; owned */
    double bytes;       /* of the pairs below; 0: there are none */
    double expected[TIER_MAX];
    double limit; /* share below which a pair is slow */
    int *order;   /* place in pictures -> endpoint */
    int *place;
    struct page_end *end; /* by endpoint */
    struct page_pair *pair;
    int pairs, slow, wrong, failed;
    int slow_clean; /* slow ones that no part at fault explains */
    int by_nic;
    /* How many pairs there are and how many of them the page keeps: those that are well, the others. */
    int all[2], keep[2];
    struct page_block *block;
    int blocks;
    bool racks; /* blocks are racks */
};

/* Of n things m are kept, evenly: is the k-th? */
static inline bool page_keeps(int k, int m, int n)
{
    return (long)(k + 1) * m / n != (long)k * m / n;
}

/* Worth a look: slow, wrong or without data. */
static inline bool page_odd(const struct page_facts *f, const struct page_pair *p)
{
    return !(p->share >= f->limit);
}

/* "r00n04:1" */
char *page_endpoint(const struct page_facts *f, int endpoint, char buf[300]);

/* The slot of a row; -1: not told. */
int page_slot(const struct page_facts *f, const struct page_block *b, int row);

/* --- sections, in their order --- */
void page_parts(FILE *out, const struct page_facts *f);
void page_racks(FILE *out, const struct page_facts *f);
void page_map(FILE *out, const struct page_facts *f);
void page_curves(FILE *out, const struct page_facts *f);
void page_checks(FILE *out, const struct page_facts *f);
void page_history(FILE *out, const struct page_facts *f); /* nothing without one */
void page_coverage(FILE *out, const struct page_facts *f);
void page_counters(FILE *out, const struct page_facts *f);
void page_compute(FILE *out, const struct page_facts *f);
void page_environment(FILE *out, const struct page_facts *f);

#endif
