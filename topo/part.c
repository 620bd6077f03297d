/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/part.h"

#include "topo/topo.h"

const char *const part_name[PART_COUNT] = {"endpoint", "host", "rack_pair",   "pair",
                                           "leaf",     "rack", "rack_uplinks"};
const char *const part_state_name[STATE_COUNT] = {
    "slow",         "intermittent", "under-load", "both-ways", "small-sizes", "large-sizes",
    "slow-samples", "lost-uplinks", "late",       "dead",      "wrong"};
const char *const part_kind_name[PART_KIND_COUNT] = {"gpu",   "cpu",       "nic",    "host",
                                                     "cable", "link",      "leaf",   "uplinks",
                                                     "rack",  "rack-pair", "domain", "fabric"};
const int part_level[PART_COUNT] = {[PART_ENDPOINT] = -1,
                                    [PART_HOST] = LEVEL_HOST,
                                    [PART_RACK_PAIR] = LEVEL_RACK,
                                    [PART_PAIR] = -1,
                                    [PART_LEAF] = LEVEL_LEAF,
                                    [PART_RACK] = LEVEL_RACK,
                                    [PART_RACK_UPLINKS] = LEVEL_RACK};
const char *const side_name[SIDE_COUNT] = {"both", "tx", "rx"};
