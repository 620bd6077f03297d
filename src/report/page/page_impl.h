/* page_impl.h - shared by the files of a page. */
#ifndef RG_PAGE_IMPL_H
#define RG_PAGE_IMPL_H

#include <stdbool.h>

#include "base/units.h"
#include "report/page/page.h"
#include "report/plot/plot_data.h"

/* --- page_html.c --- */

/* Like fprintf(), but every %s is escaped: the only way from text to HTML.  Characters that HTML
 * does not allow become U+FFFD. */
void html(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write JSON inside a script element: no "<" remains. */
void html_json(FILE *out, json_t *data);
/* SHA-256 (FIPS 180-4) of a text in base64, as in content security policies. */
enum { HTML_HASH = 48, HTML_HEX = 65 };
char *html_hash(char buf[HTML_HASH], const char *text, size_t len);
/* SHA-256 of a file as printed by sha256sum, and its length. */
int html_file_hex(char buf[HTML_HEX], size_t *len, const char *path);
char *html_base64(const unsigned char *in, size_t len); /* the caller frees */

/* Start a section with a heading that states the result; html_end() closes it. */
void html_section(FILE *out, const char *id, char *heading);
static inline void html_end(FILE *out)
{
    fputs("</section>\n", out);
}
/* Start a table; heads are separated by "|", "#" before a head marks numbers.  html_table_end()
 * closes it. */
void html_table(FILE *out, const char *id, const char *caption, const char *heads);
static inline void html_table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}
enum { PERCENT_TEXT = 24 };
char *percent_text(char buf[PERCENT_TEXT], double share); /* "98.4 %", "-" */

/* --- page_facts.c --- */

/* Share of expected speed: median over partners with its 95 % interval. */
struct page_share {
    double mid, lo, hi;
    int n; /* 0: no pair */
};
enum page_way { WAY_NEAR_TX, WAY_NEAR_RX, WAY_NIC_TX, WAY_NIC_RX, WAYS };
extern const char *const way_name[WAYS]; /* "inside, sends", ... "network, receives" */

/* MARK_BEHIND: its traffic crosses a slow leaf, slow uplinks or a slow connection between racks. */
enum page_mark { MARK_NONE, MARK_BEHIND, MARK_LATE, MARK_SLOW, MARK_DEAD, MARK_WRONG, MARKS };
extern const struct page_mark_look {
    const char *word, *sign, *css;
} page_mark_look[MARKS];
enum page_mark page_mark_of(const struct part_row *r);

struct page_end {
    struct page_share way[WAYS];
    double least;        /* smallest of the medians; NAN: not measured */
    int partners;        /* number of partners, in either direction */
    int wrong;           /* pairs with wrong data at or from this endpoint */
    enum page_mark mark; /* by its worst part */
    int part;            /* that part; -1: none */
    int block, row;      /* position in pictures */
};

struct page_pair {
    int src, dst, tier;
    double share, lo, hi; /* NAN: no data */
    bool alone, wrong;
    bool by_nic; /* with NVLink bypassed, if the two have NVLink */
    bool clean;  /* no faulty part is on its path */
};

/* A rack or, if no rack is visible, adjacent endpoints. */
struct page_block {
    char *name;
    int first, count; /* range in order[] */
    int *host;        /* host of each row, from below */
    int hosts;
    int marked, behind; /* endpoints at fault; endpoints behind a faulty part */
    double least;       /* smallest share of an endpoint; NAN: none */
    bool slots;         /* rows are ordered by slot, else by name */
};

struct page_facts {
    const struct page *in;
    const struct matrix *m;
    const struct topo *t;  /* topology of the matrix; some of it was found by measuring */
    const struct topo *hw; /* topology with devices */
    bool simulated;
    json_t *provenance; /* from the points if there are any, else from the matrix; owned */
    double bytes;       /* message size of the pairs below; 0: no pairs */
    double expected[TIER_MAX];
    double limit; /* pairs below this share are slow */
    int *order;   /* position in pictures -> endpoint */
    int *place;
    struct page_end *end; /* indexed by endpoint */
    struct page_pair *pair;
    int pairs, slow, wrong, failed;
    int slow_clean; /* slow pairs that no faulty part explains */
    int by_nic;
    /* Number of pairs, and number kept in the page: [0] good pairs, [1] the others. */
    int all[2], keep[2];
    struct page_block *block;
    int blocks;
    bool racks; /* blocks are racks */
};

/* True if element k is kept when m of n elements are kept, evenly. */
static inline bool page_keeps(int k, int m, int n)
{
    return (long)(k + 1) * m / n != (long)k * m / n;
}

/* True for a slow or wrong pair, or one without data. */
static inline bool page_odd(const struct page_facts *f, const struct page_pair *p)
{
    return !(p->share >= f->limit);
}

/* "r00n04:1" */
char *page_endpoint(const struct page_facts *f, int endpoint, char buf[300]);

/* Slot of a row; -1: not known. */
int page_slot(const struct page_facts *f, const struct page_block *b, int row);

/* --- sections, in order --- */
void page_parts(FILE *out, const struct page_facts *f);
void page_racks(FILE *out, const struct page_facts *f);
void page_map(FILE *out, const struct page_facts *f);
void page_curves(FILE *out, const struct page_facts *f);
void page_checks(FILE *out, const struct page_facts *f);
void page_history(FILE *out, const struct page_facts *f); /* writes nothing without a history */
void page_coverage(FILE *out, const struct page_facts *f);
void page_counters(FILE *out, const struct page_facts *f);
void page_compute(FILE *out, const struct page_facts *f);
void page_environment(FILE *out, const struct page_facts *f);

#endif
