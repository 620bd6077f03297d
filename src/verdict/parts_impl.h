/* parts_impl.h - functions shared by the files of parts.h. */
#ifndef RG_PARTS_IMPL_H
#define RG_PARTS_IMPL_H

#include "verdict/parts.h"

/* True if two exceptions belong to one row: same part, side and state, in whatever tier. */
static inline bool parts_same(const struct exception *x, const struct exception *y)
{
    return x->part == y->part && x->a == y->a && x->b == y->b && x->wrong == y->wrong &&
           x->declared == y->declared && matrix_state(x) == matrix_state(y) && x->side == y->side;
}

/* Append `more` to text and free it.  The separator is added if both are not empty. */
char *parts_also(char *text, const char *separator, char *more);
/* Set place, name, where and missing of a row whose worst exception is e. */
void parts_place(struct part_row *r, const struct topo *t, const struct exception *e);
json_t *parts_places_json(const struct topo *t, const struct part_row *r); /* new reference */
/* Set trouble of all rows. */
void parts_trouble(struct parts *all, const struct parts_input *in);
/* Set cost of the first PARTS_PRICED rows: a training step with this part alone, relative to one
 * without parts. */
enum { PARTS_PRICED = 64 };
void parts_price(struct parts *p, const struct matrix *m);
/* Set below of all rows. */
void parts_below(struct parts *p, const struct parts_input *in);
/* Set next and source of all rows from jobs/repairs.json. */
int parts_advise(struct parts *p, const struct parts_input *in, struct err *err);

#endif
