/* campaign.h - campaign.json: the options that a campaign was begun with, so that --resume needs no
 * other word, and refuses those that differ. */
#ifndef RG_CAMPAIGN_H
#define RG_CAMPAIGN_H

#include "base/err.h"
#include "cmd/command.h"

/* The options of this command line into DIR/campaign.json. */
int campaign_save(const struct command *c, int argc, char **argv, const char *dir, struct err *err);

/* The command line *argv with what DIR/campaign.json remembers put before its options; without that
 * file (of an older version) as it is.  An option given now that is not as it was then is refused
 * (EXIT_USAGE, with both), but for those that change no measurement.  The caller keeps *argv until
 * the program ends. */
int campaign_recall(const struct command *c, int *argc, char ***argv, const char *dir,
                    struct err *err);

#endif
