/* verbs_words.h - what a queue pair's end means: words for people. */
#ifndef RG_VERBS_WORDS_H
#define RG_VERBS_WORDS_H

#include <stdbool.h>

#include "base/err.h"

/* One end of a queue pair. */
struct verbs_end {
    int rank;
    const char *host, *port; /* "node03", "mlx5_2:1" */
};

/* "retry exceeded" of a completion's status (enum verbs_wc_status); "status 42" goes into out. */
const char *verbs_words(int status, char out[32]);
/* How near it is to the cause, of several members' errors; 0 is the cause itself. */
int verbs_words_rank(int status);
/* "retry exceeded: rank 3 (node03 mlx5_2:1) to rank 7 (node07 mlx5_2:1): path down, or PFC deadlock";
 * -1, EXIT_IO. */
int verbs_words_fail(int status, unsigned vendor, const struct verbs_end *from,
                     const struct verbs_end *to, struct err *err);
/* The same of an event that the device told; NULL: nothing that ends a measurement. */
const char *verbs_words_event(int type);

#endif
