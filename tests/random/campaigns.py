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

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRESETS = ["gb200-nvl72", "hgx-h100", "gb300-nvl72-spectrumx", "rtxpro6000-100gbe"]
KINDS = ["nic", "gpu", "host", "dead", "corrupt", "rack-pair", "leaf", "uplinks", "rack", "rack-uplinks", "cable", "fabric"]
SAME = 0.75  # share of either set's pairs that the other has
HIDDEN = 0.9  # a fault above this share of what others leave does not show
EXACT_TO = 600  # endpoints up to which all pairs are measured for a cable's sake
SAMPLE = 400


class Fabric:
    """Where everything is: the truth of a preset."""

    def __init__(self, preset, racks):
        with open(f"{TOP}/topo/fabrics/{preset}.json", encoding="utf-8") as f:
            o = json.load(f)["layout"]
        self.preset, self.racks = preset, racks
        self.per_host, self.per_rack = o["gpus_per_host"], o["hosts_per_rack"]
        self.hosts = racks * self.per_rack
        self.count = self.hosts * self.per_host
        domain, leaf = o["hosts_per_domain"] or 1, o["hosts_per_leaf"]
        rails = o["nics_per_host"] if o["rail_optimised"] else 1
        self.at = {"host": [], "rack": [], "domain": [], "leaf": []}
        for e in range(self.count):
            h = e // self.per_host
            self.at["host"].append(h)
            self.at["rack"].append(h // self.per_rack)
            self.at["domain"].append(h // domain)
            self.at["leaf"].append(h // leaf * rails + (e % self.per_host * rails // self.per_host if rails > 1 else 0))
        self.leaves = self.at["leaf"][-1] + 1

    def nic(self, a, b):
        return self.at["domain"][a] != self.at["domain"][b]


class Cause:
    """Pairs (a, b), and who may be an end of one: a fault, or parts of one place."""

    def __init__(self, text, ends, slow, factor, kind="slow"):
        self.text, self.ends, self.slow, self.factor, self.kind = text, ends, slow, factor, kind

    def groups(self):
        """What must be known by name to name it: its ends, of two racks each."""
        half = len(self.ends) // 2
        return [self.ends[:half], self.ends[half:]] if self.text == "rack-pair" else [self.ends]

    def has(self, a, b):
        return self.slow(a, b) or self.slow(b, a)

    def draw(self, rng, count, n=SAMPLE):
        """Some of its pairs."""
        out = []
        for _ in range(1000 + 20 * n):
            a, b = rng.choice(self.ends), rng.randrange(count)
            if rng.random() < 0.5 and len(self.ends) > 1:  # large parts: both ends may be inside
                b = rng.choice(self.ends)
            if a != b and self.has(a, b):
                out.append((a, b))
                if len(out) == n:
                    break
        return out


def members(at, value):
    return [e for e, v in enumerate(at) if v == value]


def draw_fault(rng, f, kind):
    """(argument, Cause); the kind is drawn anew where the fabric has no such thing."""
    factor = round(rng.uniform(0.3, 0.87), 2)
    e, h, r, leaf = (rng.randrange(n) for n in (f.count, f.hosts, f.racks, f.leaves))
    side = rng.choice(["", "", ":tx", ":rx"])
    tx, rx = side != ":rx", side != ":tx"
    host, rack, at_leaf = f.at["host"], f.at["rack"], f.at["leaf"]
    everybody = range(f.count)
    if kind == "nic":
        text, ends, slow = f"slow-nic={e}:{factor}{side}", [e], lambda a, b: f.nic(a, b) and (a == e and tx or b == e and rx)
    elif kind == "gpu":
        text, ends, slow = f"slow-gpu={e}:{factor}", [e], lambda a, b: not f.nic(a, b) and e in (a, b)
    elif kind == "host":
        text, ends, slow = f"slow-host={h}:{factor}", members(host, h), lambda a, b: h in (host[a], host[b])
    elif kind == "dead":
        return f"dead-host={h}", Cause("dead", members(host, h), lambda a, b: h in (host[a], host[b]), 0, "dead")
    elif kind == "corrupt":
        return f"corrupt={e}", Cause("corrupt", [e], lambda a, b: e in (a, b), 0, "wrong")
    elif kind == "rack-pair":
        q = (r + 1 + rng.randrange(f.racks - 1)) % f.racks
        text, ends = f"slow-racks={r}-{q}:{factor}", members(rack, r) + members(rack, q)
        slow = lambda a, b: {rack[a], rack[b]} == {r, q}
    elif kind == "leaf":
        text, ends = f"slow-leaf={leaf}:{factor}", members(at_leaf, leaf)
        slow = lambda a, b: f.nic(a, b) and leaf in (at_leaf[a], at_leaf[b])
    elif kind == "uplinks":
        text, ends = f"slow-uplinks={leaf}:{factor}{side}", members(at_leaf, leaf)
        slow = lambda a, b: f.nic(a, b) and at_leaf[a] != at_leaf[b] and (at_leaf[a] == leaf and tx or at_leaf[b] == leaf and rx)
    elif kind == "rack":
        text, ends = f"slow-rack={r}:{factor}", members(rack, r)
        slow = lambda a, b: f.nic(a, b) and r in (rack[a], rack[b])
    elif kind == "rack-uplinks":
        text, ends = f"slow-rack-uplinks={r}:{factor}{side}", members(rack, r)
        slow = lambda a, b: f.nic(a, b) and rack[a] != rack[b] and (rack[a] == r and tx or rack[b] == r and rx)
    elif kind == "cable":
        b = rng.choice([x for x in everybody if f.nic(e, x)])
        text, ends, slow = f"slow-cable={e}-{b}:{factor}", [e], lambda x, y: {x, y} == {e, b}
    else:
        text, ends, slow = f"slow-fabric={factor}", list(everybody), f.nic
    return text, Cause(kind, ends, slow, factor)


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


# --- what was named ---

def unpack_runs(runs, row, count):
    out = []
    for run in runs:
        value, step = run[1], run[2] if len(run) > 2 else 0
        for k in range(run[0]):
            if isinstance(value, list):
                out += [v + k * step if v >= 0 else v for v in value]
            else:
                out += [value + k * step if value >= 0 else value] * row
    assert len(out) == count, (len(out), count)
    return out


class Named:
    """The parts of a matrix.json, each as its pairs."""

    def __init__(self, where):
        with open(f"{where}/matrix.json", encoding="utf-8") as f:
            m = json.load(f)
        p = m["places"]
        self.m, self.count, self.tiers = m, p["endpoints"], m["tiers"]
        self.at = {name: unpack_runs(level["at"], p["row"], self.count) for name, level in p["levels"].items()}
        self.findings = m["findings"]
        groups = collections.defaultdict(list)
        for e in m["exceptions"]:
            groups[e["part"], e["a"], e.get("b", -1)].append(e)
        self.part = [self.cause(key, es) for key, es in groups.items()]

    def tier(self, a, b):
        for i, t in enumerate(self.tiers):
            if all(name in self.at and self.at[name][a] == self.at[name][b] >= 0 for name in t["same"]):
                return i
        return len(self.tiers) - 1

    def passes(self, e, a, b):
        part, x, y = e["part"], e["a"], e.get("b", -1)
        tx, rx = e["side"] != "rx", e["side"] != "tx"
        if part in ("endpoint", "pair"):
            p, q = a, b
        else:
            level = {"host": "host", "leaf": "leaf", "leaf_uplinks": "leaf"}.get(part, "rack")
            p, q = self.at[level][a], self.at[level][b]
        if y >= 0:
            return (tx and p == x and q == y) or (rx and p == y and q == x)
        if part.endswith("uplinks") and (p == q or min(p, q) < 0):
            return False
        return (tx and p == x) or (rx and q == x)

    def slow(self, e, a, b):
        if not self.passes(e, a, b):
            return False
        tier = self.tiers[self.tier(a, b)]
        if "tier" in e:
            return tier["name"] == e["tier"]
        return tier["nic"] or e["factor"] == 0

    def cause(self, key, es):
        ends = [a for a in range(self.count) if any(self.is_end(e, a) for e in es)]
        kind = "wrong" if any(e.get("wrong") for e in es) else "dead" if es[0]["factor"] == 0 else "slow"
        text = f"{key[0]} {key[1]}" + (f"-{key[2]}" if key[2] >= 0 else "")
        factor = min(es, key=lambda e: -e["evidence"])["factor"]
        return Cause(text, ends, lambda a, b: any(self.slow(e, a, b) for e in es), factor, kind)

    def is_end(self, e, a):
        part = e["part"]
        level = {"host": "host", "leaf": "leaf", "leaf_uplinks": "leaf"}.get(part, "rack")
        p = a if part in ("endpoint", "pair") else self.at[level][a]
        return p in (e["a"], e.get("b", -2))

    def can_name(self, ends):
        """Is there a group of just these, and two others to tell which is odd, or do they need none?"""
        if len(ends) == 1:
            return True
        for at in self.at.values():
            value = at[ends[0]]
            if value >= 0 and len(ends) == sum(at[e] == value for e in ends) == sum(v == value for v in at):
                return max(at) > 1
        return False


def share(rng, of, among, count):
    """Of the pairs of `of`: how many are in one of `among`."""
    pairs = of.draw(rng, count, SAMPLE // 2)
    return sum(any(c.has(a, b) for c in among) for a, b in pairs) / max(1, len(pairs))


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
