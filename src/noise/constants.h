/* constants.h - every number of src/noise that decides something, with its reason.
 *
 * Code reads noise_constants and never writes it.  Tests write it: each number has a test that fails when the
 * number moves, on both sides. */
#ifndef RG_NOISE_CONSTANTS_H
#define RG_NOISE_CONSTANTS_H

/* ROW(name, value, reason).  Effects are logarithms of a rate: 0.02 is 2 %. */
// clang-format off
#define NOISE_CONSTANTS(ROW)                                                                              \
    ROW(delta, 0.02, "least effect: nobody acts on less, and healthy NICs differ by 1 %")                  \
    ROW(suspect, 0.02, "chance of suspecting a healthy part in stage 1: it costs looks, no verdict")       \
    ROW(false_part, 0.01, "chance that a campaign names a healthy part")                                   \
    ROW(suspects, 24, "parts that the looks of stage 2 suffice for")                                       \
    ROW(children, 0.8, "share of a group that shows what the group is named for: 3 of 4 is no host")       \
    ROW(half, 0.5, "a child, a side or a tier shows an effect from half of it on")                         \
    ROW(slow, 0.08, "a look is slow from here on: beyond the spread of healthy parts and turns")           \
    ROW(deep, 0.3, "and deep from here on: stray points are mostly shallower (0.8)")                       \
    ROW(slow_sigma, 4, "standard deviations of its class that a slow look is below as well")               \
    ROW(stray_depth, 0.75, "strays as deep as so much of an effect can make it")                           \
    ROW(block_seen, 0.2, "share of the best block's weight below which a block is not seen")               \
    ROW(weight_floor, 0.01, "noise that looks share: classes without noise do not rule alone")             \
    ROW(fine_floor, 0.04, "a partner is fine down to here")                                                \
    ROW(fine_sigma, 4, "and down to so many standard deviations between parts")                            \
    ROW(fine_later, 0.6, "quantile beside fine partners: slow to half of them is still fine")           \
    ROW(fine_looks, 3, "looks that a median needs")                                                        \
    ROW(turn_looks, 8, "looks of a turn that tell what the turn does")                                     \
    ROW(turn_most, 0.15, "what a turn may cost all of its pairs, where pairs at once get what one gets alone")   \
    ROW(class_looks, 12, "looks of a class that tell where its heap is; fewer: their median")              \
    ROW(heap, 0.3, "share of a class that its fast heap holds at least: one slow host of three leaves a third")   \
    ROW(heap_slack, 3, "a fast heap may be so much wider than the densest: a slow one may hold twice as many")      \
    ROW(crowded, 0.85, "of what a pair gets alone: with less beside others only pairs alone tell of their ends") \
    ROW(collided, 0.7071, "nearer to a half than to all, by ratio: two flows on one uplink")                 \
    ROW(hashed, 0.2, "share of looks beside others that get a half, above that alone: flows are hashed")     \
    ROW(fast, 0.75, "quantile of a turn, or of an end before its partners are judged: untouched by slow parts") \
    ROW(reach, 4, "standard deviations that looks count to for what is usual (Tukey's biweight)")          \
    ROW(winsor, 3, "and that a block counts for at most in a part's variance")                             \
    ROW(prior_least, 3, "least weight of the like's variance, in blocks: parts are not all alike")         \
    ROW(prior_most, 40, "and its most: nor quite alike")                                                   \
    ROW(prior_few, 4, "its weight where few parts tell it")                                                \
    ROW(var_few, 1e-4, "variance of blocks where no part tells it: 1 %")                                   \
    ROW(stray_sigma, 3, "standard deviations beyond delta from which on a block is stray")                 \
    ROW(prior_parts, 8, "parts that tell how parts differ and how blocks vary")                            \
    ROW(least_nic, 0.5, "stray blocks of NICs that are assumed where none was seen")                       \
    ROW(least_group, 0.1, "the same of groups, whose blocks hold many looks")                              \
    ROW(narrow_blocks, 5, "blocks in which one side or tier is judged alone: of 2 or 3 a stray decides")       \
    ROW(control_blocks, 40, "blocks of five controls: how often blocks of stage 2 are stray")                  \
    ROW(share_least, 0.1, "share of slow looks from which on a part is called intermittent")               \
    ROW(share_out, 1e-3, "chance below which a part no longer defines what is usual of its like")          \
    ROW(share_looks, 10, "looks of all parts that a leaf's own share of slow looks is shrunk by")          \
    ROW(below, 0.1, "a part below a named group is named for so much more")                                \
    ROW(steady_share, 0.85, "share of slow looks from which on a part is slow at all times")               \
    ROW(quiet, 0.2, "share of slow looks alone below which a part is slow only beside others")             \
    ROW(loud, 0.8, "and the share beside others above which it is")                                        \
    ROW(seldom, 0.25, "share of slow looks below which slow samples explain them")                          \
    ROW(loaded_looks, 4, "pairs drawn at random that tell what load costs")                                \
    ROW(pair_blocks, 3, "blocks that a pair is seen in before it is judged")                               \
    ROW(pairs_least, 3, "pairs of a tier that it takes to name a part: of two either may be the odd one")     \
    ROW(pair_suspects, 8, "pairs that are measured again, of those that stand out with fine ends")          \
    ROW(fresh_children, 5, "NICs of eight that stage 2 measures: more than one host's four")                \
    ROW(pairs_to, 256, "endpoints whose pairs stage 1 can judge: each is seen in several blocks")           \
    ROW(few_partners, 8, "with more partners than this each look has a partner of its own")                \
    ROW(inside_looks, 4, "looks within a group that tell the group from its uplinks")                      \
    ROW(dead_share, 0.8, "share of looks without an answer from which on a part is dead")                  \
    ROW(repeats, 4, "looks to each distinct latency from which on a clock counts in steps")                \
    ROW(ticks, 2.2, "steps between latencies that a late part is late by at least: two may be one of the clock") \
    ROW(flows_many, 0.5, "share of a leaf's busiest turn from which on many of its NICs send at once")      \
    ROW(flows_full, 0.8, "and nearly all; uplinks that carry fewer than this share are not full")
// clang-format on

struct noise_constants {
#define NOISE_FIELD(name, value, reason) double name;
    NOISE_CONSTANTS(NOISE_FIELD)
#undef NOISE_FIELD
};
extern struct noise_constants noise_constants;

#endif
