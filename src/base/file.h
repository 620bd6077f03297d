/* file.h - whole files in, atomic files out, CRC32C, private folders, and the seal of our JSON files. */
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

/* The same, a block after the other: take() gets text[*len], which it may change and which has room for
 * a NUL behind it, and says in *len what of it is used; the rest comes again, with more.  over: nothing
 * follows.  A failure of take() is file_blocks()'s. */
typedef int file_taker(void *to, char *text, size_t *len, bool over, struct err *err);
int file_blocks(const char *path, file_taker *take, void *to, struct err *err);

/* Write under a temporary name in the same folder; file_commit() flushes, fsyncs and renames, so
 * that readers see the old file or the new one and a full disk leaves the old one.  file_abort()
 * removes the temporary file; it may follow a commit (then it does nothing).  What a killed writer
 * of the same file has left is removed by the next.  What is no file (/dev/null, a pipe) is written
 * to as it is. */
struct file_out {
    FILE *stream;
    char *path, *temp;
    struct file_out *next; /* of those that are unfinished */
};
int file_begin(struct file_out *f, const char *path, struct err *err);
int file_commit(struct file_out *f, struct err *err);
void file_abort(struct file_out *f);

char *file_join(const char *dir, const char *name); /* the caller frees */
/* `name` in the folder that holds the file `path`; the caller frees. */
char *file_beside(const char *path, const char *name);
/* With parents; existing is fine.  The umask decides, but others than owner and group get nothing
 * of the folder itself: files in it name hosts, serial numbers and commands. */
int file_mkdir(const char *path, struct err *err);

/* CRC32C (Castagnoli, RFC 3720 appendix B.4), reflected; start with crc = 0. */
uint32_t file_crc32c(uint32_t crc, const void *data, size_t len);

/* Where the data files are (fabrics, models, plots): $RAILGAUGE_DATA, else beside the program's
 * source tree, else PREFIX/share/railgauge.  Returns "DIR/name" if it is readable, else NULL;
 * caller frees. */
char *file_data(const char *name);
/* What a user names: a file as it is, where it has a "/" or ends in ".json", else FOLDER/NAME.json of
 * the data; NULL: there is none.  The caller frees. */
char *file_data_named(const char *folder, const char *name);
/* The names of a folder's NAME.json, sorted; returns how many.  The caller frees each and the list.
 */
int file_data_names(const char *folder, char ***names);
void file_data_each(const char *folder, name_taker *take, void *to); /* the same, told */

/* --- folders that no other user can change, and files of other users.  A process of root must neither
 * write through a name that another user can replace, nor believe what another user wrote. --- */

/* Make a new folder STEM-XXXXXX of mode 0700 in the first of the folders `base` (NULL or "": skipped;
 * `count` of them) where only we could rename it: each folder on the resolved path belongs to us or to
 * root, and others cannot write to it unless it is sticky.  *lock is a descriptor that says it is in use:
 * the caller closes it (-1: none) after file_remove_dir(), and frees.  Those that killed processes left
 * there are removed.  NULL: EXIT_CONFIG, with the reason of the last one. */
char *file_private_dir(const char *const *base, int count, const char *stem, int *lock,
                       struct err *err);
/* Remove a folder with everything in it.  Links are removed and never followed.  NULL is fine. */
void file_remove_dir(const char *dir);
/* EXIT_CONFIG unless `path` belongs to us or to root; of a link, the link and what it leads to; of a
 * folder, each name in it as well.  A missing path is fine. */
int file_check_owner(const char *path, struct err *err);

/* --- the seal: the checksum that a JSON file of ours carries of its own text, so that what changed
 * in it since it was written is found: "checksum": "8 hexadecimal digits", a key of the outermost
 * object.  It is the CRC32C of the text without white space outside of strings, with zeros for those
 * digits: an indentation may change, nothing else. --- */

#define SEAL_KEY "checksum"
#define SEAL_EMPTY "00000000" /* of a text that is yet to be sealed */

/* Where the digits are in text[len], which must be JSON; NULL: it has no such key, or another
 * value. *crc, unless NULL, is what they should say. */
const char *seal_find(const char *text, size_t len, uint32_t *crc);
/* Write the digits that seal_find() finds. */
void seal_set(char *text, size_t len);
/* A sealed copy of the text, NUL-terminated, where the key is made if need be; the caller frees. */
char *seal_text(const char *text, size_t len, size_t *sealed_len);

#endif
