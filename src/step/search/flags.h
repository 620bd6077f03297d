/* flags.h - a layout and its recipe as settings of the framework that would run it.
 *
 *   megatron    arguments of Megatron-LM's pretrain_*.py: megatron/training/arguments.py, and
 *               the fields of megatron/core/model_parallel_config.py,
 *               transformer/transformer_config.py and megatron/training/config, which become
 *               arguments of their name; d98e8a64
 *   torchtitan  TOML of torchtitan v0.2.2: torchtitan/config/job_config.py */
#ifndef RG_FLAGS_H
#define RG_FLAGS_H

#include <stdio.h>

#include "step/layout.h"

enum framework { FRAMEWORK_MEGATRON, FRAMEWORK_TORCHTITAN, FRAMEWORK_COUNT };
extern const char *const framework_name[FRAMEWORK_COUNT];

/* Write one line per setting; settings that the framework lacks are lines "# cannot: ...".  After
 * layout_check().  Returns the number of these lines. */
int framework_flags(FILE *out, enum framework framework, const struct model *m,
                    const struct layout *l, const struct recipe *r);

#endif
