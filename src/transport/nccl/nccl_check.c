/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_check.c - verify every byte of an operation.  Patterns are written and compared by kernels
 * if the program has them, else on the host. */
#include "transport/nccl/nccl_session_impl.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/pattern.h"
#include "measure/transports/nccl_opts.h"
#include "measure/verify.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_readback.h"
#include "transport/nccl/nccl_wait.h"
#include "watch/watch.h"

/* One check: data, method, and source of the message. */
struct nccl_check {
    struct nccl_session *c;
    const struct nccl_job *j;
    struct verify v;
    struct verify_piece *piece;
    int pieces;
    bool typed;             /* patterns of pattern.h are used: not a sum of uint32 */
    struct nccl_step *step; /* of the current half: moving or comparing */
    bool *wrong;            /* wrong data arrived, which does not damage the communicator */
};

/* Wait until the stream is done.  A stream that fails is a fault of the step. */
static int settle(const struct nccl_check *l, struct err *err)
{
    if (nccl_wait_stream(l->c->conn, l->c->side.stream, l->step) == 0)
        return 0;
    return err_code(err, l->step->err.code, "%s", l->step->err.text);
}

static bool is_typed(const struct nccl_session *c, enum op op)
{
    return op_adds(op) && (c->side.sum_dtype != NCCL_UINT32 || c->side.redop != NCCL_SUM);
}

static uint64_t onehot_key(const struct nccl_check *l, const struct verify_piece *p)
{
    return verify_key(0, p->block, l->v.seed);
}

static size_t elements(const struct nccl_check *l, const struct verify_piece *p)
{
    return p->len / nccl_dtype_size(l->j->dtype);
}

/* --- filling in --- */

static int fill_kernel(const struct nccl_check *l, const struct verify_piece *p, struct err *err)
{
    const struct nccl_side *s = &l->c->side;
    unsigned char *at = l->j->from + p->at;
    unsigned seed = l->v.seed;

    if (l->typed && p->sum)
        return kernel_fill_onehot(at, elements(l, p), l->j->dtype, p->rank, s->size,
                                  onehot_key(l, p), s->redop, s->stream, err);
    if (p->sum)
        return kernel_fill_term(at, p->len, verify_key(p->rank, p->block, seed),
                                verify_key(p->rank - 1, p->block, seed), p->rank == 0, s->stream,
                                err);
    return kernel_fill(at, p->len, verify_key(p->rank, p->block, seed), s->stream, err);
}

static int fill_host(const struct nccl_check *l, const struct verify_piece *p, struct err *err)
{
    const struct nccl_side *s = &l->c->side;
    unsigned char *copy = malloc(p->len + 1);

    if (!copy)
        return err_io(err, "no memory for %zu bytes of pattern", p->len);
    if (l->typed && p->sum)
        onehot_fill(copy, elements(l, p), l->j->dtype, p->rank, s->size, onehot_key(l, p),
                    s->redop);
    else
        verify_fill_piece(copy, p, l->v.seed);
    int rc = gpu_memcpy(l->j->from + p->at, copy, p->len, s->stream, err);
    if (rc == 0)
        rc = settle(l, err);
    free(copy);
    return rc;
}

static int fill(const struct nccl_check *l, const struct verify_moved *m, struct err *err)
{
    int n, rc = 0;
    struct verify_piece *p = verify_sent(m, &n);

    for (int i = 0; i < n && rc == 0; i++)
        rc = (kernels_there(NULL) ? fill_kernel : fill_host)(l, &p[i], err);
    free(p);
    return rc;
}

/* --- comparing --- */

/* Copy bytes of the GPU to the host.  The caller frees. */
static unsigned char *fetch(const struct nccl_check *l, size_t at, size_t len, struct err *err)
{
    unsigned char *copy = malloc(len + 1);

    if (!copy)
        err_io(err, "no memory for %zu received bytes", len);
    else if (gpu_memcpy(copy, l->j->to + at, len, l->c->side.stream, err) == 0 &&
             settle(l, err) == 0)
        return copy;
    free(copy);
    return NULL;
}

static int tell_element(const struct nccl_check *l, const struct verify_piece *p, size_t index,
                        uint64_t got, struct err *err)
{
    const struct verify *v = &l->v;
    int type = l->j->dtype, digits = 2 * onehot_width(type), redop = l->c->side.redop;
    uint64_t want =
        onehot_wanted(type, redop, l->c->side.size, pattern_word(onehot_key(l, p), index));

    return err_set(err,
                   "%s of %zu bytes: rank %d (host %s): element %zu (%s, %s over %d ranks) is "
                   "0x%0*llx, expected 0x%0*llx",
                   op_name(v->op), v->bytes, v->rank, v->host, index, nccl_dtype_name[type],
                   nccl_redop_name[redop], l->c->side.size, digits, (unsigned long long)got, digits,
                   (unsigned long long)want);
}

/* Set the message for a wrong byte at `off` (typed: element `off`) of a piece. */
static int tell(const struct nccl_check *l, const struct verify_piece *p, size_t off,
                struct err *err)
{
    size_t width = l->typed ? (size_t)onehot_width(l->j->dtype) : 1;
    unsigned char *byte = fetch(l, p->at + off * width, width, err);
    uint64_t got = 0;

    if (!byte)
        return -1;
    memcpy(&got, byte, width);
    free(byte);
    *l->wrong = true;
    if (l->typed)
        return tell_element(l, p, off, got, err);
    return verify_wrong_byte(&l->v, p, off, (unsigned char)got, err);
}

static int find_kernel(const struct nccl_check *l, const struct verify_piece *p, uint64_t *wrong,
                       struct err *err)
{
    const struct nccl_side *s = &l->c->side;
    const unsigned char *at = l->j->to + p->at;

    if (l->typed)
        return kernel_find_onehot(at, 0, elements(l, p), l->j->dtype, s->size, onehot_key(l, p),
                                  s->redop, wrong, s->stream, err);
    return kernel_find(at, p->len, verify_key(p->rank, p->block, l->v.seed), wrong, s->stream, err);
}

/* Check all pieces at once, then read for each where it differs. */
static int find_kernels(const struct nccl_check *l, struct err *err)
{
    struct gpu_buffer box = {NULL};
    int rc = gpu_alloc(&box, GPU_PINNED, sizeof(uint64_t) * (size_t)l->pieces, err);
    uint64_t *wrong = (uint64_t *)(void *)box.at;

    for (int i = 0; i < l->pieces && rc == 0; i++)
        rc = find_kernel(l, &l->piece[i], &wrong[i], err);
    if (rc == 0)
        rc = settle(l, err);
    for (int i = 0; i < l->pieces && rc == 0; i++)
        if (wrong[i] != UINT64_MAX)
            rc = tell(l, &l->piece[i], (size_t)wrong[i], err);
    /* otherwise the GPU may still write there, and freeing would wait */
    if (l->step->blame == NCCL_FINE)
        gpu_free(&box);
    return rc;
}

static int find_host(const struct nccl_check *l, const struct verify_piece *p, struct err *err)
{
    unsigned char *copy = fetch(l, p->at, p->len, err);
    size_t off;
    bool wrong;

    if (!copy)
        return -1;
    if (l->typed)
        wrong = onehot_find(copy, 0, elements(l, p), l->j->dtype, l->c->side.size, onehot_key(l, p),
                            l->c->side.redop, &off);
    else
        wrong = verify_find(copy, p->len, p->rank, p->block, l->v.seed, &off);
    free(copy);
    return wrong ? tell(l, p, off, err) : 0;
}

/* Apply RAILGAUGE_FLIP on the GPU: copy to the host and back. */
static int flip(const struct nccl_check *l, struct err *err)
{
    const struct verify_piece *last = &l->piece[l->pieces - 1];
    size_t len = last->at + last->len;

    if (!getenv("RAILGAUGE_FLIP"))
        return 0;
    unsigned char *copy = fetch(l, 0, len, err);
    int rc = copy ? verify_flip(&l->v, copy, len, err) : -1;
    *l->wrong = copy && rc < 0; /* a malformed variable is no fault of the GPU */
    if (rc == 0)
        rc = gpu_memcpy(l->j->to, copy, len, l->c->side.stream, err);
    if (rc == 0)
        rc = settle(l, err);
    free(copy);
    return rc;
}

static int find(struct nccl_check *l, const struct verify_moved *m, struct err *err)
{
    int rc;

    l->piece = verify_received(m, &l->pieces);
    rc = l->pieces ? flip(l, err) : 0;
    if (rc == 0 && l->pieces && kernels_there(NULL))
        rc = find_kernels(l, err);
    else
        for (int i = 0; i < l->pieces && rc == 0; i++)
            rc = find_host(l, &l->piece[i], err);
    free(l->piece);
    return rc;
}

/* If half a check failed by a fault of the GPU that no step reported yet, record it in the step. */
static void blame(struct nccl_check *l, int rc, const struct err *why)
{
    if (rc == 0 || l->step->blame != NCCL_FINE)
        return;
    l->step->err = *why;
    nccl_wait_fault(l->c->conn, l->step);
}

/* Run the operation once, after filling in. */
static int move(struct nccl_check *l, const struct verify_moved *m, struct err *err)
{
    struct nccl_session *c = l->c;
    struct err why = {0, ""};
    int rc = fill(l, m, &why);

    blame(l, rc, &why);
    if (rc == 0 && nccl_session_enqueue(c, l->j, l->step) == 0)
        nccl_wait_stream(c->conn, c->side.stream, l->step);
    watch_step();
    return nccl_session_agree(c, l->j, l->step, NULL, NULL, err);
}

static int compare(struct nccl_check *l, const struct verify_moved *m, struct err *err)
{
    *l->step = (struct nccl_step){NCCL_FINE};
    int rc = find(l, m, err);
    if (!*l->wrong)
        blame(l, rc, err);
    return nccl_session_agree(l->c, l->j, l->step, NULL, NULL, err);
}

int nccl_check(void *ctx, enum op op, size_t bytes, struct err *err)
{
    struct nccl_session *c = ctx;
    struct nccl_step step = {NCCL_FINE};
    struct nccl_job j;
    bool wrong = false;

    if (nccl_job_make(&j, &c->side, op, bytes, err) < 0)
        return -1;
    if (!c->conn)
        return err_set(err, "%s: no communicator", nccl_wait_who(c->side.member[c->side.self]));
    nccl_session_turn(c, &j); /* use another place each time */
    struct nccl_check l = {.c = c,
                           .j = &j,
                           .v = {op, bytes, c->side.member[c->side.self], c->host, ++c->checks},
                           .typed = is_typed(c, op),
                           .step = &step,
                           .wrong = &wrong};
    struct verify_moved m = verify_moves(op, c->side.member, c->side.size, c->side.self, j.block);
    m.stride = j.stride;
    m.slots = j.slots;
    nccl_readback_mark(c->side.comm);
    watch_enter("check of %s of %zu bytes on %d ranks", op_name(op), bytes, c->side.size);
    int rc = move(&l, &m, err);
    if (rc == 0)
        rc = compare(&l, &m, err);
    watch_leave();
    return rc < 0 ? rc : world_mpi_together(c->conn->shared, wrong ? -1 : 0, err);
}
