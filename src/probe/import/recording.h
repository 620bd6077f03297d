/* recording.h - what somebody else's benchmark printed, read back: the output of nccl-tests.
 *
 * A recording is the standard output of one of its programs (2.0 to 2.19, several runs one after
 * another are fine, what a launcher or NCCL prints around them is passed over) or the file of its
 * -J.  Facts of the format: NVIDIA nccl-tests, src/util.cu and src/common.cu of v2.0.0, v2.9.0,
 * v2.13.0, v2.16.0 and v2.19.6: columns are named by a comment line that begins "# size count
 * type", the redop, root and i_* columns are not always there, the program's name is said from 2.16
 * on, a rank's PCI address is whole from 2.15 on.  Sizes are op.h's S, times are means over the
 * iterations; the rates are size / time and are held against it.
 *
 * Errors name file, line (JSON: the row), value and reason: EXIT_DATA. */
#ifndef RG_RECORDING_H
#define RG_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/stats.h"

struct recording_half {
    struct summary sec; /* n 0: not measured; median is the mean of n where that is all we know */
    bool mean;          /* it is */
    int wrong;          /* elements; -1: not checked */
    double bus;         /* busbw / algbw as printed; 0: too small to tell */
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

/* One run of one program. */
struct recording_table {
    char program[32]; /* "all_reduce_perf", "" where it is not said */
    int line, iters, threads, gpus;
    size_t factor; /* of sizes; 0: steps of bytes */
    bool ended;    /* its last line is there */
    struct recording_rank *rank;
    int ranks;
    struct recording_row *row;
    int rows;
};

struct recording {
    char *path;
    bool json;        /* a row's `line` is its index in "results" then */
    char version[24]; /* of nccl-tests, "" where it is not said */
    int library;      /* 22809; 0: not said */
    struct recording_table *table;
    int tables;
};

int recording_load(struct recording *r, const char *path, struct err *err);
/* From memory: text is NUL-terminated, len bytes without it, and is cut up. */
int recording_parse(struct recording *r, const char *path, char *text, size_t len, struct err *err);
void recording_free(struct recording *r);

/* --- for the two readers --- */
int recording_parse_json(struct recording *r, const char *text, size_t len, struct err *err);
/* A new table behind the others. */
struct recording_table *recording_add(struct recording *r, int line);
/* "0000:19:00" as topo.h writes it; anything else is not known: "". */
void recording_busid(char out[16], const char *text);
/* "FILE:LINE", in JSON "FILE: LIST[LINE]". */
const char *recording_at(const struct recording *r, const char *list, int line, char buf[320]);
/* Is text 1..max printable ASCII characters?  `what` begins with an article. */
int recording_plain(const struct recording *r, int line, const char *what, const char *text,
                    size_t max, struct err *err);
/* A half that took `sec` and printed these rates, GB/s: do size, time and algbw agree? */
int recording_set(const struct recording *r, const struct recording_row *row,
                  struct recording_half *h, double sec, const double rate[2], int n,
                  struct err *err);

#endif
