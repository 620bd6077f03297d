/* own.h - folders that no other user can change, and refusal of files that belong to other users.
 *
 * A process of root must neither write through a name that another user can replace, nor believe what
 * another user wrote.  The superuser and the owner of "/" are trusted: in a user namespace the real
 * root has another number. */
#ifndef RG_OWN_H
#define RG_OWN_H

#include "base/err.h"

/* Make a new folder STEM-XXXXXX of mode 0700 in the first of the folders `base` (NULL or "": skipped;
 * `count` of them) where only we could rename it: each folder on the resolved path belongs to us or to
 * root, and others cannot write to it unless it is sticky.  The caller frees.  NULL: EXIT_CONFIG, with the
 * reason of the last one. */
char *own_dir(const char *const *base, int count, const char *stem, struct err *err);
/* Remove a folder with everything in it.  Links are removed and never followed.  NULL is fine. */
void own_remove(const char *dir);

/* EXIT_CONFIG unless `path` belongs to us or to root; of a link, the link and what it leads to; of a
 * folder, each name in it as well.  A missing path is fine. */
int own_check(const char *path, struct err *err);

#endif
