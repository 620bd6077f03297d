/* railgauge.h - read a cost matrix from C: what does it cost to put these ranks there?
 *
 * A handle is immutable: any number of threads may query it at once.  Queries allocate nothing.
 * Sizes are bytes, times are seconds; NAN means unknown.  Link with `pkg-config --libs railgauge`.
 */
#ifndef RAILGAUGE_H
#define RAILGAUGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct railgauge;

/* Open matrix.json.  Returns 0, or -1 with a sentence in err; the caller closes. */
int railgauge_open(struct railgauge **out, const char *path, char err[256]);

/* Number of endpoints; ids are 0..count-1. */
int railgauge_count(const struct railgauge *r);

/* Endpoint id of GPU (or socket) number `gpu` on `host`, or -1. */
int railgauge_find(const struct railgauge *r, const char *host, int gpu);

/* Seconds to move `bytes` one way from src to dst.  NAN: an id is out of range or the pair is
 * unknown; INFINITY: a part on the way is dead.  src == dst: 0. */
double railgauge_pair(const struct railgauge *r, int src, int dst, size_t bytes);

/* Seconds for a collective ("all_gather", ...) on n endpoints; bytes as nccl-tests counts them (the
 * largest buffer of one rank).  NAN: unknown op or id, or n < 2. */
double railgauge_collective(const struct railgauge *r, const char *op, const int *ids, int n,
                            size_t bytes);

void railgauge_close(struct railgauge *r); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
