/* coverage.h - what a campaign looked at: a fault of one pair shows only where that pair was
 * measured. */
#ifndef RG_COVERAGE_H
#define RG_COVERAGE_H

#include "cost/fit/fit_state.h"

/* Fill measured, possible and partners of each tier, and say in a finding what was looked at, what
 * that cannot show, and what does. */
void coverage_tell(struct fit *f);

#endif
