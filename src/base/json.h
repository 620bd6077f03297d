/* json.h - our JSON files over jansson: every file carries "format" and "version", unknown keys are
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

/* Out of memory inside jansson ends this program as it does in mem.h.  For the mains, first: it
 * concerns the whole process. */
void json_memory(void);

/* Load path (at most 256 MiB) and check {"format": format, "version": 1..version}, and the checksum
 * where there is one (file.h).  The caller json_decref()s *out. */
int json_open(json_t **out, const char *path, const char *format, int version, struct err *err);
/* The same from memory; path is for messages. */
int json_parse(json_t **out, const char *text, size_t len, const char *path, const char *format,
               int version, struct err *err);
/* For readers of what should carry a checksum: this one has none, as it was written by hand or by
 * an older version.  json_on_unsealed() says who wants to know; nobody at first. */
void json_unsealed(const char *path);
void json_on_unsealed(void (*tell)(const char *path));
json_t *json_finite(double x); /* a number, or null where it is none; new reference */
json_t *json_bytes(double x);  /* the same, rounded to an integer */
json_t *json_texts(char *const *text, int count); /* a list; new reference */
/* Indented by 1, nine digits, one trailing newline; 0, or -1 when jansson could not (else the
 * stream knows).  A number that is whole becomes an integer, in `root` too, and so does every
 * "bytes" and "..._bytes": readers such as jq 1.7 keep 4096.0 apart from 4096. */
int json_print(FILE *out, json_t *root);
/* What a command answers: into the file `output` unless that is NULL, on standard output where
 * `print`.  Takes root over. */
int json_answer(json_t *root, const char *output, bool print, struct err *err);
/* {"format": format, "version": 1, ...} of an object's members, or of a list as the member `key`; takes
 * value over, NULL stays NULL. */
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
/* The same into a file, atomically; with the key SEAL_KEY: SEAL_EMPTY sealed (file.h). */
int json_save(json_t *root, const char *path, struct err *err);
/* The same of text, which is sealed in place. */
int json_save_text(char *text, size_t len, const char *path, struct err *err);

/* json_unpack_ex of a flat format on `value`, where other keys are errors; `where` such as "m.json:
 * tiers[2]" starts the message. */
int json_take(json_t *value, const char *where, struct err *err, const char *fmt, ...);
/* Values by a list of keys, borrowed into out[]; NULL: an optional one is not there.  Other keys are
 * errors.  type: 's', 'b', 'I' as in a format, 0: any. */
struct json_key {
    const char *name;
    bool optional;
    char type;
};
int json_take_keys(json_t *value, const char *where, const struct json_key *key, int keys,
                   json_t **out, struct err *err);
/* A number (integer or real) of an object that must lie in [min, max]; absent: *out stays as it is
 * and 0 is returned when optional, else an error. */
int json_number(json_t *object, const char *where, const char *key, double min, double max,
                int optional, double *out, struct err *err);

/* Who made a file and how: tool, version, command line as typed, host, UTC time, "environment":
 * NCCL_*, UCX_*, CUDA_VISIBLE_DEVICES and the OMPI_MCA_* that were there when the program started,
 * and "environment_set": NCCL_* that it has set for itself since, absent when none.  New reference.
 */
json_t *json_provenance(void);
/* Remember argv and environment for json_provenance(); called once by the mains, first. */
void json_provenance_argv(int argc, char **argv);
/* One more fact for every later json_provenance(): "mpi", "Open MPI v4.1.4 ...". */
void json_provenance_add(const char *key, const char *value);

#endif
