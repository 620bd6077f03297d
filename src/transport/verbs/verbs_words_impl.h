/* verbs_words_impl.h - messages for failures of queue pairs. */
#ifndef RG_VERBS_WORDS_H
#define RG_VERBS_WORDS_H

#include <stdbool.h>

#include "base/err.h"

/* One end of a queue pair. */
struct verbs_end {
    int rank;
    const char *host, *port; /* "node03", "mlx5_2:1" */
};

/* Text of a completion's status (enum verbs_wc_status), "retry exceeded"; "status 42" is written to
 * out. */
const char *verbs_words(int status, char out[32]);
/* Distance of this status from the cause, to compare errors of several members; 0 is the cause. */
int verbs_words_rank(int status);
/* Set "retry exceeded: rank 3 (node03 mlx5_2:1) to rank 7 (node07 mlx5_2:1): path down, or PFC
 * deadlock".  Returns -1 with EXIT_IO. */
int verbs_words_fail(int status, unsigned vendor, const struct verbs_end *from,
                     const struct verbs_end *to, struct err *err);
/* Text of a device event; NULL: the event does not end a measurement. */
const char *verbs_words_event(int type);

#endif
