/* file.h - reading of files, atomic writing, CRC32C, private folders, seal of our JSON files. */
#ifndef RG_FILE_H
#define RG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Read a whole regular file; *text is NUL-terminated and the caller frees it.  Missing or
 * unreadable: EXIT_NOINPUT with the path and errno; larger than max: EXIT_DATA. */
int file_read(char **text, size_t *len, const char *path, size_t max, struct err *err);

/* Read a file block by block.  take() gets text[*len], which it may modify and which has room for
 * a NUL at its end, and sets *len to the number of bytes it used; the rest is passed again, with
 * more.  over: no data follow.  A failure of take() ends file_blocks() with the same error. */
typedef int file_taker(void *to, char *text, size_t *len, bool over, struct err *err);
int file_blocks(const char *path, file_taker *take, void *to, struct err *err);

/* Write a file atomically.  Data go to a temporary name in the same folder; file_commit() flushes,
 * fsyncs and renames, so that readers see the old file or the new one, and a full disk leaves the
 * old one.  file_abort() removes the temporary file; after a commit it does nothing.  Temporary
 * files of killed writers of the same file are removed by the next writer.  Targets that are no
 * regular files (/dev/null, a pipe) are written directly. */
struct file_out {
    FILE *stream;
    char *path, *temp;
    struct file_out *next; /* next unfinished file */
};
int file_begin(struct file_out *f, const char *path, struct err *err);
int file_commit(struct file_out *f, struct err *err);
void file_abort(struct file_out *f);

char *file_join(const char *dir, const char *name); /* the caller frees */
/* Path of `name` in the folder that contains the file `path`.  The caller frees. */
char *file_beside(const char *path, const char *name);
/* Create a folder with its parents; an existing one is no error.  The umask applies, and users
 * other than owner and group get no access to the folder itself, because its files name hosts,
 * serial numbers and commands. */
int file_mkdir(const char *path, struct err *err);

/* CRC32C (Castagnoli, RFC 3720 appendix B.4), reflected; start with crc = 0. */
uint32_t file_crc32c(uint32_t crc, const void *data, size_t len);

/* Find a data file (fabrics, models, plots): below $RAILGAUGE_DATA, else beside the program's
 * source tree, else in PREFIX/share/railgauge.  Returns "DIR/name" if it is readable, else NULL.
 * The caller frees. */
char *file_data(const char *name);
/* Find a file that a user names: the path itself if it contains "/" or ends in ".json", else
 * FOLDER/NAME.json of the data; NULL: none.  The caller frees. */
char *file_data_named(const char *folder, const char *name);
/* List the names of FOLDER/NAME.json, sorted; returns the number.  The caller frees all. */
int file_data_names(const char *folder, char ***names);
/* Pass the same names to a callback. */
void file_data_each(const char *folder, name_taker *take, void *to);

/* --- folders that no other user can change, and files of other users.  A process of root must
 * neither write through a name that another user can replace, nor trust what another user wrote.
 * --- */

/* Create a folder STEM-XXXXXX of mode 0700, in the first folder of `base` (NULL or "": skipped;
 * `count` of them) where only we could rename it: each folder on the resolved path belongs to us
 * or to root, and others cannot write to it unless it is sticky.  *lock is a descriptor that marks
 * it as in use (-1: none); the caller closes it after file_remove_dir().  Folders that killed
 * processes left are removed.  NULL: EXIT_CONFIG with the reason for the last base.  The caller
 * frees. */
char *file_private_dir(const char *const *base, int count, const char *stem, int *lock,
                       struct err *err);
/* Remove a folder with all contents.  Links are removed, never followed.  NULL is allowed. */
void file_remove_dir(const char *dir);
/* EXIT_CONFIG unless `path` belongs to us or to root; for a link, both the link and its target;
 * for a folder, also each name in it.  A missing path is no error. */
int file_check_owner(const char *path, struct err *err);
/* Return the path by which to load, start or believe a file that the environment led to; the caller
 * frees.  For an ordinary user that is `path`.  For root it is the path without links, and NULL with
 * EXIT_CONFIG if another user could replace the file, unless --trust-environment was given. */
char *file_for_root(const char *path, struct err *err);

/* --- seal: the checksum of a JSON file of ours, inside the file, so that later changes are
 * detected: "checksum": "8 hexadecimal digits", a key of the outermost object.  It is the CRC32C
 * of the text without white space outside strings, with zeros in place of those digits:
 * indentation may change, nothing else. --- */

#define SEAL_KEY "checksum"
#define SEAL_EMPTY "00000000" /* value before sealing */

/* Find the digits in text[len], which must be JSON; NULL: no such key, or another value.  *crc,
 * unless NULL, receives the correct checksum. */
const char *seal_find(const char *text, size_t len, uint32_t *crc);
/* Write the correct digits at the place that seal_find() finds. */
void seal_set(char *text, size_t len);
/* Return a sealed copy, NUL-terminated; the key is added if missing.  The caller frees. */
char *seal_text(const char *text, size_t len, size_t *sealed_len);

#endif
