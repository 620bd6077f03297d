/* constants.h - every number of src/noise that decides something, with its reason.
 *
 * Code reads noise_constants and never writes it.  Tests write it: each number has a test that fails when the
 * number moves, on both sides. */
#ifndef RG_NOISE_CONSTANTS_H
#define RG_NOISE_CONSTANTS_H

/* ROW(name, value, meaning and reason).  Effects are logarithms of a rate: 0.02 is 2 %.  A look is one measured pair,
 * a class holds the looks of one operation, size and tier, alone or beside others (noise.h). */
// clang-format off
#define NOISE_CONSTANTS(ROW)                                                                                                      \
    ROW(delta, 0.02, "Smallest effect that is named. Nobody replaces a part for less, and healthy NICs differ by 1 %.")           \
    ROW(suspect, 0.02, "Chance that stage 1 suspects a healthy part. A suspicion costs measurements, not a verdict.")             \
    ROW(false_part, 0.01, "Chance that a campaign names a healthy part.")                                                         \
    ROW(suspects, 24, "Largest number of suspects. The measurements of stage 2 suffice for so many.")                             \
    ROW(children, 0.8, "Share of a group's members that must show the effect before the group is named. 3 of 4 are not enough.")  \
    ROW(half, 0.5, "Share of its own looks from which on a member, a side or a tier shows an effect.")                            \
    ROW(slow, 0.08, "Effect from which on a look is slow. It is beyond the spread of healthy parts and turns.")                   \
    ROW(deep, 0.3, "Effect from which on a slow look is deep. Most stray points are shallower (rate 0.8, effect 0.22).")          \
    ROW(slow_sigma, 4, "Standard deviations of its class that a slow look lies below normal as well.")                            \
    ROW(stray_depth, 0.75, "Depth, relative to a part's effect, from which on a stray block could cause the effect.")             \
    ROW(block_seen, 0.2, "Weight of a block, relative to the best block of the part, below which the block is left out.")         \
    ROW(weight_floor, 0.01, "Noise that is assumed for every class, so that a class without noise does not decide alone.")        \
    ROW(fine_floor, 0.04, "Effect down to which a partner is fine.")                                                              \
    ROW(fine_sigma, 4, "Standard deviations between parts down to which a partner is fine.")                                      \
    ROW(fine_later, 0.6, "Quantile of a part's looks beside fine partners. A part that is slow in half of them is still fine.")   \
    ROW(fine_looks, 3, "Looks that a median needs.")                                                                              \
    ROW(turn_looks, 8, "Looks of a turn that show what the turn does to all of them.")                                            \
    ROW(turn_most, 0.15, "Largest effect of a turn on all of its pairs, where a pair gets the same alone and beside others.")     \
    ROW(class_looks, 12, "Looks of a class that show where its densest values are. With fewer the median is taken.")              \
    ROW(heap, 0.3, "Smallest share of a class in its fast values. One slow host of three leaves a third.")                        \
    ROW(heap_slack, 3, "Largest width of the fast values, relative to the densest ones. Slow values may be twice as many.")       \
    ROW(crowded, 0.85, "Share of its rate alone below which a pair beside others says nothing about its two ends.")               \
    ROW(collided, 0.7071, "Share of its rate alone that is nearer to a half than to all, by ratio: two flows share one uplink.")  \
    ROW(hashed, 0.2, "Share of looks beside others at half rate, beyond that alone, from which on flows are hashed.")             \
    ROW(clear, 0.9, "Quantile of looks beside others where flows are hashed. Up to two of three looks collide.")                  \
    ROW(fast, 0.75, "Quantile that slow parts do not reach, of a turn and of an end before its partners are judged.")             \
    ROW(reach, 4, "Standard deviations up to which a look counts for the normal value (Tukey's biweight).")                       \
    ROW(winsor, 3, "Standard deviations that a block counts for at most in the variance of a part.")                              \
    ROW(prior_least, 3, "Smallest weight, in blocks, of the variance of similar parts. Parts are not all alike.")                 \
    ROW(prior_most, 40, "Largest weight, in blocks, of the variance of similar parts. Parts are not exactly alike.")              \
    ROW(prior_few, 4, "Weight of that variance if few parts were seen.")                                                          \
    ROW(var_few, 1e-4, "Variance of blocks if no part shows it: 1 %, squared.")                                                   \
    ROW(stray_sigma, 3, "Standard deviations beyond delta from which on a block is stray.")                                       \
    ROW(prior_parts, 8, "Number of parts that show how parts differ and how blocks vary.")                                        \
    ROW(least_nic, 0.5, "Stray blocks of NICs that are assumed if none was seen.")                                                \
    ROW(least_group, 0.1, "Stray blocks of groups that are assumed if none was seen. A block of a group holds many looks.")       \
    ROW(narrow_blocks, 5, "Blocks that one side or one tier needs to be judged alone. Of 2 or 3 blocks a stray one decides.")     \
    ROW(control_blocks, 40, "Blocks of five controls each that show how often blocks of stage 2 are stray.")                      \
    ROW(share_least, 0.1, "Share of slow looks from which on a part is called intermittent.")                                     \
    ROW(share_out, 1e-3, "Chance below which a part no longer counts for the normal share of similar parts.")                     \
    ROW(share_looks, 10, "Looks at the share of all parts that are added to those of a leaf (shrinkage).")                        \
    ROW(below, 0.1, "Effect, beyond that of a named group, that a part below the group needs to be named as well.")               \
    ROW(steady_share, 0.85, "Share of slow looks from which on a part is slow at all times.")                                     \
    ROW(quiet, 0.2, "Share of slow looks alone below which a part is slow only beside other traffic.")                            \
    ROW(loud, 0.8, "Share of slow looks beside others above which a part is slow only beside other traffic.")                     \
    ROW(seldom, 0.25, "Share of slow looks below which slow samples within the looks explain them.")                              \
    ROW(loaded_looks, 4, "Randomly drawn pairs that show what load costs.")                                                       \
    ROW(pair_blocks, 3, "Blocks in which a pair must be seen before it is judged.")                                               \
    ROW(pairs_least, 3, "Pairs of a tier that are needed to name a part. Of two pairs either may be the odd one.")                \
    ROW(pair_suspects, 8, "Pairs that are measured again, of those that stand out between fine ends.")                            \
    ROW(fresh_children, 5, "Members of a suspected group that stage 2 measures: 5 of 8, more than the 4 NICs of one host.")       \
    ROW(pairs_to, 256, "Endpoints up to which stage 1 judges pairs. Each pair is seen in several blocks.")                        \
    ROW(few_partners, 8, "Partners beyond which each look has a partner of its own. Their share is not asked then.")              \
    ROW(inside_looks, 4, "Looks within a group that tell the group from its uplinks.")                                            \
    ROW(dead_share, 0.8, "Share of looks without an answer from which on a part is dead.")                                        \
    ROW(repeats, 4, "Looks for each distinct latency from which on a clock counts in steps.")                                     \
    ROW(ticks, 2.2, "Clock steps that a late part adds at least. A difference of two may come from the clock.")                   \
    ROW(flows_many, 0.5, "Share of the flows in a leaf's busiest turn from which on many of its NICs send at once.")              \
    ROW(flows_full, 0.8, "Share of those flows from which on nearly all NICs send. Uplinks with fewer flows are not full.")
// clang-format on

struct noise_constants {
#define NOISE_FIELD(name, value, reason) double name;
    NOISE_CONSTANTS(NOISE_FIELD)
#undef NOISE_FIELD
};
extern struct noise_constants noise_constants;

#endif
