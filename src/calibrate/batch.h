/* batch.h - a table of published or own steps, with one question for predict.h per row.
 *
 * Columns, in any order; unknown ones are named in a note and ignored:
 *
 *   id model params hardware gpus gpus_per_node nvlink_domain internode_fabric dtype seq_len
 *   global_batch micro_batch tp pp cp ep etp dp vp ga zero_stage/fsdp recompute metric value
 *                unit
 *   source publication release layout_known split notes fabric (or preset) segment mesh_order
 *          flops,
 *   and every key of recipe_argument (recipe.h): stack, schedule, dispatch_bytes, cuda_graphs,
 *       ...
 *
 * model, hardware, gpus and value are required.  A blank cell states nothing.  Priority of
 * settings: columns with words of the command line; the words of dtype, zero_stage/fsdp and
 * recompute; settings known of the publication, which are data: jobs/training/publications.json,
 * matched by `publication` or `source`.  `notes` and `source` have no other meaning.  Memory read
 * on the fullest GPU is in memory_read_GB (or memory_GB).
 *
 * A row is never dropped.  It is predicted, or has a reason: BATCH_MISS for a step time that could
 * not be predicted, BATCH_CLAIM for a value that is no step time (a ratio, a wall time, "does not
 * fit"), which case files judge. */
#ifndef RG_BATCH_H
#define RG_BATCH_H

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/tsv.h"
#include "step/predict.h"

enum batch_status { BATCH_PREDICTED, BATCH_MISS, BATCH_CLAIM, BATCH_STATUS_COUNT };
extern const char *const batch_status_name[BATCH_STATUS_COUNT];

enum { BATCH_RELEASE = 96, BATCH_PUBLISHER = 96, BATCH_REASON = 768, BATCH_LAYOUT = 96 };

struct batch_row {
    /* As printed, pointing into the table; "" if the column is absent. */
    const char *id, *model, *hardware, *dtype, *split, *source;
    const struct json_t *publications; /* owned by the batch */
    const struct tsv *table;
    int at;          /* index of the row in that table */
    char own_id[24]; /* "line 17" if the table has no id */
    int line;        /* line of the file */
    /* Question. */
    const char *preset;                     /* name in topo/fabrics, or a file */
    int gpus, gpus_per_node, nvlink_domain; /* last two 0: as in the preset */
    int segment;  /* hosts taken per rack in turn; 0: not stated, and no habit of the preset */
    int mesh;     /* enum mesh_order */
    int etp;      /* 0: not stated */
    double flops; /* FLOP/s reached by the GPU; 0: by preset and constants */
    double machine_doubt; /* widening of the interval for an unknown machine, share of the step */
    bool chunks_said;     /* vp is a number */
    int other_dtype;      /* other possible dtype; -1: no doubt */
    bool odd;             /* machine unlike its kind, or unknown: excluded from fits */
    int fits_with;    /* recompute that fits, of enum recompute; the step may be timed with less */
    double gpu_bytes; /* memory of a build unlike the preset's; 0: as in the preset */
    char layout[BATCH_LAYOUT];
    struct recipe recipe;
    char release[BATCH_RELEASE]; /* software release: "megatron-bridge 26.04", "mlperf v5.1" */
    /* publisher of the figures: "megatron-bridge", "mosaicml/llm-foundry" */
    char publisher[BATCH_PUBLISHER];
    bool released; /* release is a real one, not the source as a substitute */
    char *family;  /* Scope of one anchor: model, GPU, dtype, release, adapters or all weights. */
    char *job;     /* equal for rows with the same job, on the same software or another */
    char *same;    /* family, mesh without its data-parallel axes, micro batch, sequence */
    /* Value as printed, in s per step, or tokens/s or FLOP/s per GPU; NAN for claims. */
    double printed;
    int metric;        /* enum metric_kind of batch_impl.h */
    int reads;         /* enum memory_kind */
    double read_bytes; /* fullest GPU, as published; NAN: not stated */
    /* Results; s; NAN if there is none. */
    enum batch_status status;
    char reason[BATCH_REASON]; /* why not predicted, or assumptions; "" */
    double measured, predicted, lo, hi, tokens;
    double bytes, bytes_lo, bytes_hi; /* prediction of read_bytes, of the kind that the row reads */
    /* from struct prediction; doubt about the dtype */
    double terms_deviation, software_share, doubt;
    enum known known;
    bool dense;
    int anchor;               /* row whose measured step fixes this family; -1: none */
    double stretch, anchored; /* factor on compute from that anchor; prediction with it */
    int same_anchor;          /* anchor among rows of one layout: smallest job; -1: none */
    double same_anchored;
    const char *group;           /* group left out when this row was predicted; NULL: none */
    struct batch_inputs *inputs; /* data of the question, owned by batch_predict.c */
};

/* True for rows kept apart from the fit: "test", "test_held_back". */
static inline bool batch_is_test(const struct batch_row *r)
{
    return !strncmp(r->split, "test", 4);
}

struct batch {
    struct tsv table;
    struct batch_row *row;
    int rows;
    char **note; /* notes on the table as a whole */
    int notes;
    struct tsv **more; /* tables after the first */
    int mores;
    struct json_t *publications; /* jobs/training/publications.json */
    struct batch_cache *cache;
};

/* Read the table and turn rows into questions.  EXIT_DATA for errors of the table; errors of a row
 * become its reason.  Call batch_free() even after an error. */
int batch_load(struct batch *b, const char *path, struct err *err);
/* Several tables, whose rows are appended in order, and the rows to leave out.  A row is left out
 * if all conditions of one text in `leave_out` hold: "hardware=H100,pp>1,id=nt_*", each a column,
 * an operator of = != < <= > >=, and a number or a shell pattern. */
struct batch_tables {
    const char **table, **leave_out;
    int tables, leave_outs;
};
/* The caller frees *left, even after an error. */
int batch_load_tables(struct batch *b, const struct batch_tables *from, bool **left,
                      struct err *err);
void batch_free(struct batch *b);

/* Turn the row into a claim, so that it is neither predicted nor scored. */
void batch_drop(struct batch_row *r);

/* Load models, presets and matrices, each once, choose settings that rows do not state (c gives
 * their memory needs), and price the messages of every row.  Rows that cannot be resolved become
 * misses. */
void batch_resolve(struct batch *b, const struct constants *c);
void batch_resolve_row(struct batch *b, int row, const struct constants *c); /* a single row */
/* Predict every resolved row, without an anchor. */
void batch_predict(struct batch *b, const struct constants *c);
void batch_predict_row(struct batch *b, int row, const struct constants *c); /* a single row */
/* Returns the question of a resolved row; it points into b and c. */
struct question batch_question(const struct batch_row *r, const struct constants *c);
/* Set the memory that a resolved row needs on a GPU, with r->fits_with. */
void batch_memory(struct memory *mem, const struct batch_row *r, const struct constants *c);
/* Returns seconds of a step of that row, equal to predict_step() but without text, in a few
 * microseconds.  stretch 0: no anchor.  NAN with the reason in err. */
double batch_seconds(const struct batch_row *r, const struct constants *c, double stretch,
                     struct err *err);

#endif
