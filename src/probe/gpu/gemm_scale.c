/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales of blocks in the order that the tensor cores read them (cuBLASLt documentation, "1D Block
 * Scaling Factors Layout"): tiles of 128 rows by 4 blocks, tile after tile along k; inside a tile
 * row r and block b stand at r % 32 * 16 + r / 32 * 4 + b.  What lies outside of the matrix is
 * zero. */
#include <stdbool.h>

#include "probe/gpu/gemm_own.h"

enum { TILE_ROWS = 128, TILE_BLOCKS = 4, TILE = TILE_ROWS * TILE_BLOCKS };

static size_t parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

static size_t tiles_along(const struct gemm_kind *kind, size_t k)
{
    return parts(parts(k, (size_t)kind->along), TILE_BLOCKS);
}

size_t gemm_scale_bytes(const struct gemm_kind *kind, size_t rows, size_t k)
{
    return kind->along ? parts(rows, TILE_ROWS) * tiles_along(kind, k) * TILE : 0;
}

/* Multiplicative hashing of both, then once more of the upper half with the lower one. */
unsigned gemm_mix(size_t row, size_t column)
{
    unsigned mixed = (unsigned)row * 2654435761u ^ (unsigned)column * 2246822519u;

    return (mixed ^ mixed >> 15) * 3266489917u;
}

int gemm_scale_power(int operand, size_t row, size_t block)
{
    return (int)(gemm_mix(row, block) >> 31) - operand;
}

static void put_tile(unsigned char *at, int operand, const struct gemm_kind *kind, size_t row,
                     size_t block, size_t rows, size_t blocks)
{
    for (size_t r = 0; r < TILE_ROWS; r++)
        for (size_t b = 0; b < TILE_BLOCKS; b++) {
            bool inside = row + r < rows && block + b < blocks;
            int code = kind->scale_one + kind->step * gemm_scale_power(operand, row + r, block + b);
            at[r % 32 * 16 + r / 32 * 4 + b] = (unsigned char)(inside ? code : 0);
        }
}

int gemm_scale_fill(struct gemm *g, int operand, const struct gemm_kind *kind, size_t rows,
                    size_t k, gpu_stream stream, struct err *err)
{
    if (!kind->along)
        return 0;
    size_t blocks = parts(k, (size_t)kind->along), along = tiles_along(kind, k);
    size_t tiles = gemm_scale_bytes(kind, rows, k) / TILE;

    for (size_t t = 0, n; t < tiles; t += n) {
        n = tiles - t < GEMM_BLOCK / TILE ? tiles - t : GEMM_BLOCK / TILE;
        for (size_t i = 0; i < n; i++)
            put_tile(g->block.at + i * TILE, operand, kind, (t + i) / along * TILE_ROWS,
                     (t + i) % along * TILE_BLOCKS, rows, blocks);
        if (gpu_copy(g->scale[operand].at + t * TILE, g->block.at, n * TILE, stream, err) < 0 ||
            gpu_wait(stream, err) < 0)
            return -1;
    }
    return 0;
}
