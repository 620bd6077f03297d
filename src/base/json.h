/* json.h - our JSON files over jansson: every file has "format" and "version", unknown keys are
 * errors, and messages name file, line (syntax) or path (content), value and reason.
 *
 * Reading style: json_open() checks the envelope; then each object is unpacked with json_take(),
 * which is json_unpack_ex() with our message. */
#ifndef RG_JSON_H
#define RG_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

/* Let jansson end the program when out of memory, as mem.h does.  Called first by the programs,
 * because it affects the whole process. */
void json_memory(void);

/* Load a file (at most 256 MiB) and check {"format": format, "version": 1..version}, and the
 * checksum if present (file.h).  The caller calls json_decref(*out). */
int json_open(json_t **out, const char *path, const char *format, int version, struct err *err);
/* Like json_open(), from memory; path is used in messages. */
int json_parse(json_t **out, const char *text, size_t len, const char *path, const char *format,
               int version, struct err *err);
/* A file that should carry a checksum has none.  EXIT_DATA if railgauge wrote it (its provenance has
 * the version): the checksum was removed, which is like a wrong one.  A file written by hand is
 * reported to the receiver that json_on_unsealed() sets; none initially. */
int json_unsealed(const json_t *provenance, const char *path, struct err *err);
void json_on_unsealed(void (*tell)(const char *path));
json_t *json_finite(double x);                    /* number, or null if not finite; new reference */
json_t *json_bytes(double x);                     /* the same, rounded to an integer */
json_t *json_texts(char *const *text, int count); /* list; new reference */
/* Print with indentation 1, nine digits, one trailing newline.  Returns 0; -1 if jansson failed
 * (other errors are the stream's).  Numbers that are whole become integers, in `root` too, as does
 * every "bytes" and "..._bytes": some readers, such as jq 1.7, distinguish 4096.0 from 4096. */
int json_print(FILE *out, json_t *root);
/* Output the result of a command: to the file `output` unless NULL, and to standard output if
 * `print`.  Takes ownership of root. */
int json_answer(json_t *root, const char *output, bool print, struct err *err);
/* Add {"format": format, "version": 1, ...} to an object's members, or to a list as the member
 * `key`.  Takes ownership of value; NULL stays NULL. */
static inline json_t *json_framed(const char *format, const char *key, json_t *value)
{
    json_t *out = value ? json_pack("{s:s, s:i}", "format", format, "version", 1) : NULL;

    if (json_is_object(value)) {
        json_object_update_missing(out, value);
        json_decref(value);
    } else if (value)
        json_object_set_new(out, key, value);
    return out;
}
/* Save atomically, printed as by json_print(); sealed if it has SEAL_KEY: SEAL_EMPTY (file.h). */
int json_save(json_t *root, const char *path, struct err *err);
/* Like json_save() for a text, which is sealed in place. */
int json_save_text(char *text, size_t len, const char *path, struct err *err);

/* Unpack `value` like json_unpack_ex() with a flat format; other keys are errors.  `where`, such
 * as "m.json: tiers[2]", begins the message. */
int json_take(json_t *value, const char *where, struct err *err, const char *fmt, ...);
/* Take values by a list of keys, borrowed into out[]; NULL: an optional key is missing.  Other
 * keys are errors.  type: 's', 'b', 'I' as in a format, 0: any. */
struct json_key {
    const char *name;
    bool optional;
    char type;
};
int json_take_keys(json_t *value, const char *where, const struct json_key *key, int keys,
                   json_t **out, struct err *err);
/* Read a number (integer or real) of an object, which must lie in [min, max].  Missing: *out is
 * unchanged and 0 is returned if optional, else an error. */
int json_number(json_t *object, const char *where, const char *key, double min, double max,
                int optional, double *out, struct err *err);

/* Provenance of a file: tool, version, command line as typed, host, UTC time; "environment":
 * NCCL_*, UCX_*, CUDA_VISIBLE_DEVICES and OMPI_MCA_* at program start; "environment_set": NCCL_*
 * that the program has set since, absent if none.  New reference. */
json_t *json_provenance(void);
/* Record argv and environment for json_provenance().  Called once, first, by the programs. */
void json_provenance_argv(int argc, char **argv);
/* Add a fact to every later json_provenance(): "mpi", "Open MPI v4.1.4 ...". */
void json_provenance_add(const char *key, const char *value);

#endif
