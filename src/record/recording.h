/* recording.h - read the output of another benchmark: nccl-tests.
 *
 * A recording is the standard output of one of its programs (2.0 to 2.19; several consecutive runs
 * are allowed, and lines that a launcher or NCCL prints in between are skipped) or the file written
 * by -J.  Facts of the format: NVIDIA nccl-tests, src/util.cu and src/common.cu of v2.0.0, v2.9.0,
 * v2.13.0, v2.16.0 and v2.19.6: columns are named by a comment line that begins "# size count
 * type", the redop, root and i_* columns are optional, the program's name is printed from 2.16 on,
 * a rank's PCI address is complete from 2.15 on.  Sizes are op.h's S, times are means over the
 * iterations; the rates must agree with size / time.
 *
 * Errors name file, line (JSON: the row), value and reason: EXIT_DATA. */
#ifndef RG_RECORDING_H
#define RG_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/stats.h"

struct recording_half {
    /* n 0: not measured; median holds the mean of n if only the mean is known */
    struct summary sec;
    bool mean;  /* median holds the mean */
    int wrong;  /* elements; -1: not checked */
    double bus; /* busbw / algbw as printed; 0: too small to tell */
};

struct recording_row {
    int line;
    size_t bytes;
    char type[16], redop[16];
    int root;
    struct recording_half half[2]; /* out of place, in place */
};

struct recording_rank {
    int line, rank, group, device;
    char host[256], busid[16], model[48];
};

/* A run of a program. */
struct recording_table {
    char program[32]; /* "all_reduce_perf"; "": not printed */
    int line, iters, threads, gpus;
    size_t factor; /* factor of sizes; 0: sizes grow by a number of bytes */
    bool ended;    /* the last line of the run was found */
    struct recording_rank *rank;
    int ranks;
    struct recording_row *row;
    int rows;
};

struct recording {
    char *path;
    bool json;        /* JSON: the `line` of a row is its index in "results" */
    char version[24]; /* version of nccl-tests; "": not printed */
    int library;      /* 22809; 0: not printed */
    struct recording_table *table;
    int tables;
};

int recording_load(struct recording *r, const char *path, struct err *err);
/* Parse from memory: text is NUL-terminated, len bytes without the NUL, and is modified. */
int recording_parse(struct recording *r, const char *path, char *text, size_t len, struct err *err);
void recording_free(struct recording *r);

/* --- shared by the two readers --- */
int recording_parse_json(struct recording *r, const char *text, size_t len, struct err *err);
struct recording_table *recording_add(struct recording *r, int line);
/* "0000:19:00" as in topo.h; "": any other text. */
void recording_busid(char out[16], const char *text);
/* "FILE:LINE", in JSON "FILE: LIST[LINE]". */
const char *recording_at(const struct recording *r, const char *list, int line, char buf[320]);
/* Check that text is 1..max printable ASCII characters.  `what` begins with an article. */
int recording_plain(const struct recording *r, int line, const char *what, const char *text,
                    size_t max, struct err *err);
/* Fill in a half that took `sec` and printed these rates, GB/s.  EXIT_DATA if size, time and algbw
 * disagree. */
int recording_set(const struct recording *r, const struct recording_row *row,
                  struct recording_half *h, double sec, const double rate[2], int n,
                  struct err *err);

#endif
