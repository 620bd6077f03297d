/* parts_impl.h - what the files of parts.h hand to each other. */
#ifndef RG_PARTS_IMPL_H
#define RG_PARTS_IMPL_H

#include "verdict/parts.h"

/* Exceptions of one row: the same part, side and state, whatever tier shows it. */
static inline bool parts_same(const struct exception *x, const struct exception *y)
{
    return x->part == y->part && x->a == y->a && x->b == y->b && x->wrong == y->wrong &&
           x->declared == y->declared && matrix_state(x) == matrix_state(y) && x->side == y->side;
}

/* Appends and frees `more`, with a separator where both have text. */
char *parts_also(char *text, const char *separator, char *more);
/* place, name, where and missing of a row whose worst exception is e. */
void parts_place(struct part_row *r, const struct topo *t, const struct exception *e);
json_t *parts_places_json(const struct topo *t, const struct part_row *r); /* new reference */
/* trouble of all rows. */
void parts_trouble(struct parts *all, const struct parts_input *in);
/* Of the first PARTS_PRICED rows `cost`, from a training step with this part only and with none. */
enum { PARTS_PRICED = 64 };
void parts_price(struct parts *p, const struct matrix *m);
/* below of all rows. */
void parts_below(struct parts *p, const struct parts_input *in);
/* Of all rows `next` and `source`, from jobs/repairs.json. */
int parts_advise(struct parts *p, const struct parts_input *in, struct err *err);

#endif
