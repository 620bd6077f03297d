/* history_impl.h - what the files of history.h hand to each other. */
#ifndef RG_HISTORY_IMPL_H
#define RG_HISTORY_IMPL_H

#include "verdict/history.h"

/* part and parts, of the campaigns that stayed. */
int history_parts(struct history *h, double tolerance, struct err *err);

#endif
