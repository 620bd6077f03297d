/* units.h - text to numbers and back; the only place that knows K = 1024 and G = 1e9.
 *
 * Sizes are binary (32K = 32768, as nccl-tests), rates are decimal (GB/s = 1e9 B/s).  Parsing is
 * strict: the whole text must be used, and what is wrong is said with the text itself (EXIT_USAGE).
 */
#ifndef RG_UNITS_H
#define RG_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

int units_bytes(size_t *out, const char *text,
                struct err *err); /* "8", "32K", "1M", "8G", "1MiB" */
int units_int(int *out, const char *text, int min, int max, struct err *err);
int units_u64(uint64_t *out, const char *text, struct err *err);
int units_double(double *out, const char *text, double min, double max, struct err *err);
int units_share(double *out, const char *text, struct err *err); /* "3%" or "0.03", 0..1 */
int units_seconds(double *out, const char *text,
                  struct err *err); /* "50us", "2ms", "1.5", "10m", "2h" */

enum { UNITS_TEXT = 24 };                                   /* room for any text made below */
char *units_bytes_text(char buf[UNITS_TEXT], double bytes); /* "256 KiB", "1.5 GiB" */
char *units_seconds_text(char buf[UNITS_TEXT],
                         double seconds);                /* "2.10 us", "13.3 s", "1 h 02 m" */
char *units_rate_text(char buf[UNITS_TEXT], double Bps); /* "49.2 GB/s", "119 MB/s" */

/* The end of a counted word, "1 host", "2 hosts": "" for one, else "s"; other plurals: the word. */
const char *units_s(long long n);
const char *units_plural(long long n, const char *one, const char *many);

#endif
