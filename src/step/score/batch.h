/* batch.h - a table of published or own steps, each row a question for predict.h.
 *
 * Columns, in any order; unknown ones are named in a note and ignored:
 *
 *   id model params hardware gpus gpus_per_node nvlink_domain internode_fabric dtype seq_len
 *   global_batch micro_batch tp pp cp ep etp dp vp ga zero_stage/fsdp recompute metric value unit
 *   source publication release layout_known split notes fabric (or preset) segment mesh_order flops,
 *   and every key of recipe_argument (recipe.h): stack, schedule, dispatch_bytes, cuda_graphs, ...
 *
 * model, hardware, gpus and value must be there.  A blank cell says nothing.  What a row says in a
 * column of the command line's words rules; then the words of dtype, zero_stage/fsdp and recompute;
 * then what its publication is known for, which is data: jobs/training/publications.json, matched by
 * `publication` or by `source`.  `notes` and `source` carry no other meaning.  Memory that was
 * read of the fullest GPU stands in memory_read_GB (or memory_GB).
 *
 * A row is never dropped.  Either it is predicted, or it says why not: BATCH_MISS for a step time
 * that could not be predicted, BATCH_CLAIM for what is no step time (a ratio, a wall time, "does
 * not fit"), which case files judge. */
#ifndef RG_BATCH_H
#define RG_BATCH_H

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/tsv.h"
#include "step/layout.h"
#include "step/predict.h"
#include "step/recipe.h"

enum batch_status { BATCH_PREDICTED, BATCH_MISS, BATCH_CLAIM, BATCH_STATUS_COUNT };
extern const char *const batch_status_name[BATCH_STATUS_COUNT];

enum { BATCH_RELEASE = 96, BATCH_PUBLISHER = 96, BATCH_REASON = 768, BATCH_LAYOUT = 96 };

struct batch_row {
    /* as printed; these point into the table, "" when the column is absent */
    const char *id, *model, *hardware, *dtype, *split, *source;
    const struct json_t *publications; /* of the batch */
    const struct tsv *table;
    int at;          /* row of that table */
    char own_id[24]; /* "line 17", where the table has no id */
    int line;        /* in the file */
    /* what it asks */
    const char *preset;                     /* of topo/fabrics, or a file */
    int gpus, gpus_per_node, nvlink_domain; /* the last two 0: as the preset has them */
    int segment;  /* hosts taken of a rack in turn; 0: not said, and none of the preset's habit */
    int mesh;     /* enum mesh_order */
    int etp;      /* 0: not said */
    double flops; /* FLOP/s that the GPU reaches; 0: by preset and constants */
    double
        machine_doubt; /* share of the step that the interval is wider for, as a machine is not known */
    bool chunks_said; /* vp is a number */
    int other_dtype;  /* it may as well be this one; -1: no doubt */
    bool odd;         /* the machine is unlike its kind, or unknown: no row to fit to */
    int fits_with;    /* recompute that fits, of enum recompute; the step may be timed with less */
    double gpu_bytes; /* of a build unlike the preset's; 0: as that has it */
    char layout[BATCH_LAYOUT];
    struct recipe recipe;
    char release[BATCH_RELEASE];     /* of the software: "megatron-bridge 26.04", "mlperf v5.1" */
    char publisher[BATCH_PUBLISHER]; /* of the figures: "megatron-bridge", "mosaicml/llm-foundry" */
    bool released;                   /* the release is one, not the source for want of one */
    char *family; /* what one anchor fixes: model, GPU, dtype, release, adapters or all weights */
    char *job;    /* equal for rows that ask the same of the same software or of another */
    char *same;   /* family, mesh without its data-parallel axes, micro batch, sequence */
    double
        printed; /* value as printed, in s per step, tokens/s or FLOP/s per GPU; NAN for claims */
    int metric;  /* enum metric_kind of batch_impl.h */
    int reads;   /* enum memory_kind */
    double read_bytes; /* of the fullest GPU, as published; NAN: not said */
    /* what came out; seconds, NAN where there is none */
    enum batch_status status;
    char reason[BATCH_REASON]; /* why not predicted, or what was assumed; "" */
    double measured, predicted, lo, hi, tokens;
    double bytes, bytes_lo, bytes_hi; /* what read_bytes was predicted to be, as the row is read */
    double terms_deviation, software_share, doubt; /* struct prediction; of the dtype */
    enum known known;
    bool dense;
    int anchor;               /* row whose measured step fixes this family; -1: none */
    double stretch, anchored; /* of compute by that anchor; with it */
    int same_anchor;          /* the same within rows of one layout: smallest job; -1 */
    double same_anchored;
    const char *group;           /* that was left out when this row was predicted; NULL: none */
    struct batch_inputs *inputs; /* batch_predict.c: what the question points to */
};

/* Kept apart from the fit: "test", "test_held_back". */
static inline bool batch_is_test(const struct batch_row *r)
{
    return !strncmp(r->split, "test", 4);
}

struct batch {
    struct tsv table;
    struct batch_row *row;
    int rows;
    char **note; /* of the table as a whole */
    int notes;
    struct tsv **more; /* the tables behind the first */
    int mores;
    struct json_t *publications; /* jobs/training/publications.json */
    struct batch_cache *cache;
};

/* Reads the table and turns rows into questions; batch_free() also after an error.  EXIT_DATA for
 * what is wrong with the table; what is wrong with a row is that row's reason. */
int batch_load(struct batch *b, const char *path, struct err *err);
/* Several tables, the rows of each behind those of the one before, and which of them are left out:
 * those for which all conditions of one of `leave_out` hold: "hardware=H100,pp>1,id=nt_*", a column,
 * an operator of = != < <= > >=, and a number or a pattern of the shell's. */
struct batch_tables {
    const char **table, **leave_out;
    int tables, leave_outs;
};
/* The caller frees *left, also after an error. */
int batch_load_tables(struct batch *b, const struct batch_tables *from, bool **left,
                      struct err *err);
void batch_free(struct batch *b);

/* The row becomes a claim: it is neither predicted nor scored. */
void batch_drop(struct batch_row *r);

/* Loads models, presets and matrices, each once, settles what rows leave unsaid (c says what memory
 * they need), and prices the messages of every row; rows that cannot be resolved
 * become misses. */
void batch_resolve(struct batch *b, const struct constants *c);
void batch_resolve_row(struct batch *b, int row, const struct constants *c); /* one of them */
/* Predicts every row that was resolved, without an anchor. */
void batch_predict(struct batch *b, const struct constants *c);
void batch_predict_row(struct batch *b, int row, const struct constants *c); /* one of them */
/* The question of a row that was resolved; it points into b and c. */
struct question batch_question(const struct batch_row *r, const struct constants *c);
/* What a row that was resolved needs of a GPU, with r->fits_with. */
void batch_memory(struct memory *mem, const struct batch_row *r, const struct constants *c);
/* Seconds of a step of that row, as predict_step() has them but without words: some microseconds.
 * stretch 0: no anchor.  NAN with the reason in err. */
double batch_seconds(const struct batch_row *r, const struct constants *c, double stretch,
                     struct err *err);

#endif
