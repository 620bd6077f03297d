/* slurm_words.h - names and comments of the files for Slurm; the tree that two of them hold. */
#ifndef RG_EMIT_SLURM_WORDS_H
#define RG_EMIT_SLURM_WORDS_H

#include "emit/export/slurm.h"
#include "topo/claim.h"

enum { SLURM_NAME_LONG = 40 }; /* characters of names that people still read */
enum { SLURM_LAYERS = LEVEL_COUNT + 2 * CLAIM_ABOVE };

/* A name that Slurm's lists can fold: a letter, then letters, digits, '_' and '-'. */
bool slurm_folds(const char *name);
/* NodeName's characters; brackets and commas would fold, '=' and blanks end a word: EXIT_DATA. */
int slurm_check_hosts(const struct topo *t, struct err *err);
/* Hosts as a list; the caller frees. */
char *slurm_fold(const struct topo *t, const int *host, int hosts);
/* Names for the file; hostlist_free(). */
char **slurm_block_names(const struct blocks *b, const char *word);

/* Lines of comment: any sentence; what this is and from what; what a unit is; that a name is not
 * the topology's; hosts that are in no block. */
void slurm_comment(FILE *f, const char *text);
void slurm_head(FILE *f, const struct matrix *m, const char *what, const struct slurm_release *r);
void slurm_groups_from(FILE *f, const struct blocks *b, const char *unit);
void slurm_renamed(FILE *f, const char *now, const char *was);
/* export_complete() for hosts that are in no block. */
int slurm_complete(const struct export_ask *ask, const struct matrix *m, const struct blocks *b,
                   struct err *err);
void slurm_left_over(FILE *f, const struct matrix *m, const struct blocks *b);

/* Switches in layers, the leaves first; one root above the last when that has several. */
struct slurm_tree {
    struct blocks leaf;
    struct slurm_layer {
        char **was, **name; /* the topology's, the file's */
        int count;
        int *up; /* of each, in the next layer; NULL in the last */
    } layer[SLURM_LAYERS];
    int layers;
    char **left; /* "spine+1 (slurm x.conf): ...": what is known and has no place in a tree */
    int lefts;
    char root[24]; /* a name that no other switch has */
};
int slurm_tree_make(struct slurm_tree *t, const struct matrix *m, double bytes, struct err *err);
void slurm_tree_free(struct slurm_tree *t);
/* Calls put() for each switch from the root down; of children and nodes one is NULL. */
void slurm_tree_put(FILE *f, const struct matrix *m, const struct slurm_tree *t,
                    void (*put)(FILE *f, const char *name, const char *children,
                                const char *nodes));

#endif
