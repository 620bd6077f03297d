#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random campaigns: faults are put into a simulated fabric, and what `railgauge run` and `railgauge accept` make of it is
held against them.

    tests/random/campaigns.py -n 100 --seed 1       a hundred campaigns, one line for each that is not as it should be
    tests/random/campaigns.py --only 1:37           one of them again, the commands and all parts printed

A fault is the set of directed pairs that it slows, and so is a part that was named; the part is the fault's own when the
two sets are the same (either direction counts for both), its factor is right, and it is wrong, dead or slow as the fault
is.  Two names are therefore taken for one exactly where the topology leaves no pair to tell them apart: the leaf of a rack
that has no other is that rack; where nobody within a rack, or below a leaf, meets over NICs its uplinks are all there is.

Not asked, and never counted as found: what other faults hide (fewer than seven in ten of its pairs are slowest by
it), a cable where not all pairs were measured, a group that a blind campaign did not find, or one of only two that it
found. A part is false when it slows pairs that no fault slows; more lines than one for a cause are counted as pieces.
The whole fabric is no part: accept must fail, and nothing may be named for it."""
import argparse
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from causes import AT, SAME, TOP, Fabric, Named, fault, share

PRESETS = ["gb200-nvl72", "hgx-h100", "gb300-nvl72-spectrumx", "rtxpro6000-100gbe"]
KINDS = ["nic", "gpu", "host", "dead", "corrupt", "rack-pair", "leaf", "uplinks", "rack", "rack-uplinks", "cable", "fabric"]
HIDDEN = 0.9  # a fault above this share of what others leave does not show
EXACT_TO = 600  # endpoints up to which all pairs are measured for a cable's sake


def draw_fault(rng, f, kind):
    """(argument, Cause)"""
    factor = round(rng.uniform(0.3, 0.87), 2)
    drawn = dict(zip(("endpoint", "host", "rack", "leaf"), (rng.randrange(n) for n in (f.count, f.hosts, f.racks, f.leaves))))
    side = rng.choice(["", "", ":tx", ":rx"])
    n, other = drawn.get(AT[kind]), None
    if kind == "rack-pair":
        other = (n + 1 + rng.randrange(f.racks - 1)) % f.racks
    elif kind == "cable":
        other = rng.choice([x for x in range(f.count) if f.nic(n, x)])
    return fault(f, kind, n, factor, side, other)


class Scene:
    def __init__(self, seed, small):
        rng = random.Random(f"railgauge {seed}")
        most = 10 if small else 40
        self.seed, self.rng = seed, rng
        self.fabric = Fabric(rng.choice(PRESETS), 8 + int((most - 7) * rng.random() ** 2))
        self.noise = round(rng.uniform(0.01, 0.08), 3)
        self.blind = rng.randrange(8) == 0
        self.ops = "pairs,collectives" if rng.randrange(4) == 0 else "pairs"
        self.argument, self.fault = [], []
        wanted = rng.randrange(5)
        while len(self.fault) < wanted:
            text, cause = draw_fault(rng, self.fabric, rng.choice(KINDS))
            self.argument.append(text)
            self.fault.append(cause)
        self.exact = self.fabric.count <= EXACT_TO and any(c.text == "cable" for c in self.fault)

    def command(self, where):
        f = self.fabric
        words = ["run", "-t", "sim", "--fabric", f.preset, "--racks", str(f.racks), "--noise", str(self.noise), "--sim-seed",
                 str(self.rng.randrange(1 << 30)), "--op", self.ops, "--no-plots", "-o", where]
        words += ["--blind"] if self.blind else []
        words += [["--exact"], ["--cables", "10m"]][self.rng.randrange(2)] if self.exact else []
        for text in self.argument:
            words += ["--fault", text]
        return words

    def left(self, fault, a, b):
        """What the other faults leave of a pair."""
        return min([1] + [c.factor for c in self.fault if c is not fault and c.has(a, b)])

    def relative(self, fault):
        """Its factor as it shows, and how much of it shows."""
        pairs = fault.draw(self.rng, self.fabric.count)
        rest = [self.left(fault, a, b) for a, b in pairs]
        seen = [x for x in rest if fault.factor <= HIDDEN * x]
        fabric = min([1] + [c.factor for c in self.fault if c is not fault and c.text == "fabric"])
        over_nics = sum(self.fabric.nic(a, b) for a, b in pairs) > len(pairs) / 2
        return fault.factor / (fabric if over_nics and fault.factor else 1), len(seen) / max(1, len(rest))


class Score:
    def __init__(self):
        self.asked, self.found = collections.Counter(), collections.Counter()
        self.confusion = collections.Counter()
        self.campaigns = self.false = self.pieces = self.codes = self.healthy = self.passed = self.unasked = 0

    def say(self, out):
        for kind in KINDS:
            if self.asked[kind]:
                print(f"{kind:13s} found {self.found[kind]:4d} of {self.asked[kind]:4d}", file=out)
        asked, found = sum(self.asked.values()), sum(self.found.values())
        print(f"all           found {found:4d} of {asked:4d}: {100 * found / max(1, asked):.1f} %; {self.unasked} not asked")
        print(f"{self.campaigns} campaigns: {self.false} false parts, {self.pieces} pieces, {self.codes} wrong exit codes, "
              f"{self.passed} of {self.healthy} healthy ones pass", file=out)
        for (kind, named), n in sorted(self.confusion.items()):
            print(f"  {kind} named {named}: {n}", file=out)

    def good(self):
        asked, found = sum(self.asked.values()), sum(self.found.values())
        return found >= 0.95 * asked and 1000 * self.false <= 3 * self.campaigns and not self.codes and not self.pieces


def judge(s, named, codes, verdict, score, complain):
    rng, f = s.rng, s.fabric
    own, asked = {}, []
    causes = [c for c in s.fault if c.text != "fabric"]
    for c in s.fault:
        if c.text == "fabric":
            asked.append((c, c.factor))
            continue
        relative, shows = s.relative(c)
        if shows < 0.7 or (c.text == "cable" and not s.exact) or (relative > 0.87 and c.kind == "slow"):
            score.unasked += 1
        elif c.text != "cable" and not all(named.can_name(ends) for ends in c.groups()):
            score.unasked += 1
        else:
            asked.append((c, relative))
    for c, relative in asked:
        score.asked[c.text] += 1
        if c.text == "fabric":
            bad = [r for r in verdict["checks"] if r["check"] == "tier-bandwidth" and r["verdict"] == "FAIL"]
            score.found["fabric"] += bool(bad)
            if not bad:
                complain(f"the fabric at {c.factor} is not seen")
            continue
        best, name = 0, "nothing"
        for p in named.part:
            if share(rng, p, [c], f.count) < 0.1:
                continue
            both = min(share(rng, p, [c], f.count), share(rng, c, [p], f.count))
            right = p.kind == c.kind and (c.kind != "slow" or abs(p.factor / relative - 1) < 0.15)
            if both >= SAME and right:
                own[id(c)] = p
            if both >= best:
                best, name = both, p.text.split()[0] + ("" if right or both < SAME else f" at {p.factor:.2f}")
        if id(c) in own:
            score.found[c.text] += 1
        else:
            score.confusion[c.text, name] += 1
            complain(f"{c.text} at {relative:.2f} is named {name}")
    for p in named.part:
        if share(rng, p, causes, f.count) < 0.9:
            score.false += 1
            complain(f"false: {p.kind} {p.text} at {p.factor:.2f}")
        elif p not in own.values() and any(share(rng, p, [c], f.count) > 0.9 for c, _ in asked if id(c) in own):
            score.pieces += 1
            complain(f"a piece: {p.kind} {p.text} at {p.factor:.2f}")
    right = None if s.fault and not asked else 1 if asked else 0
    score.healthy += not s.fault
    score.passed += not s.fault and codes[1] == 0
    alone = all(c.text == "fabric" for c, _ in asked)  # which `run` cannot know
    if right is not None and (codes[1] != right or codes[0] != right and not (alone and codes[0] == 0)):
        score.codes += 1
        complain(f"run ends with {codes[0]}, accept with {codes[1]}: {verdict.get('line')}")


def campaign(seed, o, score):
    s = Scene(seed, o.small)
    where = tempfile.mkdtemp(prefix="rg-random-", dir=o.dir)
    command = s.command(where + "/c")
    said = []
    try:
        def railgauge(*words):
            return subprocess.run([f"{o.build}/railgauge", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

        run = railgauge(*command)
        accept = railgauge("accept", where + "/c", "--json")
        try:
            named = Named(where + "/c")
            verdict = json.loads(accept.stdout)
        except (OSError, ValueError) as e:
            sys.exit(f"campaign {seed}: {e}: {run.stderr.decode()[-500:]}{accept.stderr.decode()[-500:]}\n{' '.join(command)}")
        score.campaigns += 1
        judge(s, named, (run.returncode, accept.returncode), verdict, score, said.append)
        if said or o.only:
            blind = ", blind" if s.blind else ""
            print(f"campaign {seed}: {s.fabric.preset}, {s.fabric.racks} racks, noise {s.noise}{blind}: {' '.join(s.argument)}")
            print("".join(f"    {line}\n" for line in said), end="")
        if o.only:
            print("railgauge", *command)
            for e in named.m["exceptions"]:
                print("   ", json.dumps(e))
            for e in named.findings:
                print("   ", e["kind"], e["text"][:300])
            print("   ", verdict.get("line"))
    finally:
        if not o.keep:
            shutil.rmtree(where)
        sys.stdout.flush()


def main():
    a = argparse.ArgumentParser(description="random faults in simulated fabrics, and what is said of them")
    a.add_argument("-n", type=int, default=20, help="campaigns")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--first", type=int, default=0, help="number of the first campaign of this seed")
    a.add_argument("--only", help="SEED:NUMBER, once more and loud")
    a.add_argument("--small", action="store_true", help="8 to 10 racks")
    a.add_argument("--keep", action="store_true", help="leave the campaigns where they are")
    a.add_argument("--dir", help="where they are made")
    a.add_argument("--build", default=os.environ.get("RG_BUILD", TOP + "/build"))
    o = a.parse_args()
    score = Score()
    for seed in [o.only] if o.only else [f"{o.seed}:{i}" for i in range(o.first, o.first + o.n)]:
        campaign(seed, o, score)
    score.say(sys.stdout)
    return 0 if score.good() else 1


if __name__ == "__main__":
    sys.exit(main())
