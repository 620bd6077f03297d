/* matrix_json.h - matrix.json in memory; src/schema/matrix.schema.json describes the file. */
#ifndef RG_MATRIX_JSON_H
#define RG_MATRIX_JSON_H

#include "cost/matrix.h"

#define MATRIX_FORMAT "railgauge-matrix"
enum { MATRIX_VERSION = 1 };

json_t *matrix_pack(const struct matrix *m); /* new reference; NULL: a text is not UTF-8 */
/* m is initialised here; on failure nothing needs to be freed.  path is for messages. */
int matrix_unpack(struct matrix *m, json_t *root, const char *path, struct err *err);
/* json_parse() and matrix_unpack(). */
int matrix_parse(struct matrix *m, const char *text, size_t len, const char *path, struct err *err);

/* The numbers of coverage.h; new reference. */
json_t *coverage_pack(const struct tier *t);

#endif
