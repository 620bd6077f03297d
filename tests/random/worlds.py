#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The exam: simulated campaigns of worlds x faults x presets x seeds, each judged by railgauge, and the score of that.

    tests/random/worlds.py -n 400                     400 campaigns, every fault and every world equally often
    tests/random/worlds.py --limits                   exit 1 if a limit is broken
    tests/random/worlds.py --only stray5:nic:gb200-nvl72/4:1     one campaign again, with commands and exceptions
    tests/random/worlds.py --baseline OTHER/build     another build beside: its own verdicts on the same faults

A campaign is WORLD:FAULT:PRESET/RACKS:SEED.  Everything that is drawn for it (place and size of the fault, seeds of noise
and machine) follows from that text, so each line of the output can be repeated alone.  World "own" is the simulator
without --world.

  named    a part slows the same pairs as the fault (SAME in causes.py), and by the right factor if the fault is steady
  state    named, and in the state of the fault (STATES)
  false    parts with more than a tenth of their pairs untouched by the fault; of a healthy campaign every part; in how
           many campaigns
  pieces   further parts inside the fault: 68 NICs for one leaf are 68 pieces
  codes    run and accept exit with 1 for a fault, with 0 for a healthy fabric
  PASS     accept says PASS of a healthy fabric

Two more parts: `compare` of two campaigns of one machine (equal --machine, other --sim-seed), unchanged and 2 % slower, and
`check` on healthy busy hosts and with one NIC at 0.6."""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile

from causes import AT, SAME, TOP, Cause, Fabric, Named, fault, members, share

# Noise that any real fabric may have.  The limits are about these.
PLAUSIBLE = ["clean", "stray2", "stray5", "stray10", "contention10", "collisions", "collisions-kept", "adaptive10", "tail25",
             "host-minute", "drift10", "mix"]
# The others are properties of a fabric or one kind of noise alone.
FURTHER = ["own", "parts1", "ladder1", "group-epoch1", "turn1", "bimodal", "clock1us", "pxn", "leaf3", "pods2", "pods7",
           "dragonfly"]
PRESETS = ["gb200-nvl72/4", "hgx-h100/16", "hgx-h100/24", "gb300-nvl72-spectrumx/4", "rtxpro6000-100gbe/16"]
FACTORS = [0.5, 0.6, 0.7, 0.8]
OWN_NOISE = "3%"

# Steady faults of at most 0.8.  ":way": one direction, transmit or receive.
STEADY = ["nic", "nic:way", "gpu", "host", "leaf", "uplinks", "rack", "rack-uplinks", "rack-pair"]
LATE = ["late-nic", "late-host", "late-leaf", "late-rack"]
# Kinds with a state: (kind, factors, text behind "@", states that are right).  A share of 0.8 of the time is nearly always.
# Half of what a message of 64 KiB takes is latency, so a factor of 0.5 would hardly show there.
STATES = {
    "time20": ("nic", [0.5], "time=0.2", ["intermittent"]),
    "time40": ("nic", [0.5], "time=0.4", ["intermittent"]),
    "time60": ("nic", [0.5], "time=0.6", ["intermittent"]),
    "time80": ("nic", [0.5], "time=0.8", ["intermittent", "slow"]),
    "host-time60": ("host", [0.5], "time=0.6", ["intermittent"]),
    "samples10": ("nic", [0.5], "samples=0.1", ["slow-samples"]),
    "samples30": ("nic", [0.5], "samples=0.3", ["slow-samples"]),
    "load": ("nic", [0.5, 0.6, 0.7], "load", ["under-load"]),
    "both": ("nic", [0.5, 0.6, 0.7], "both", ["both-ways"]),
    "small": ("nic", [0.3, 0.4], "to=64K", ["small-sizes"]),
    "large": ("nic", [0.5, 0.6, 0.7], "from=128M", ["large-sizes"]),
}
WRONG = {"wrong20": 0.2, "wrong50": 0.5, "wrong": 1}
FAULTS = [*STEADY, "mild", *STATES, *LATE, "lost-uplinks", *WRONG, "dead"]
HEALTHY = "healthy"
CHECK_WORLDS = ["contention10", "tail25", "host-minute", "stray5", "mix"]
CHECK_PRESETS = ["gb200-nvl72/2", "hgx-h100/4", "rtxpro6000-100gbe/4"]
PAIR = "pair"  # a host of two GPUs, nothing else

# (what, rows of the score, figure, least or most, at which).  Of the plausible worlds alone.
LIMITS = [
    ("steady faults of at most 0.8 named as their kind", ["nic", "nic:way", "gpu", "host", "leaf", "uplinks", "rack"], "named", ">=", 0.97),
    ("exit codes of these", ["nic", "nic:way", "gpu", "host", "leaf", "uplinks", "rack"], "codes", ">=", 0.97),
    ("healthy campaigns that PASS", [HEALTHY], "passed", ">=", 0.98),
    ("exit codes of these", [HEALTHY], "codes", ">=", 0.98),
    ("false parts a campaign", [*FAULTS, HEALTHY], "false", "<=", 0.01),
    ("intermittent, 40 % of the time and more", ["time40", "time60", "time80", "host-time60"], "state", ">=", 0.9),
    ("only both ways, only small or large sizes", ["both", "small", "large"], "state", ">=", 0.9),
    ("latency of a leaf", ["late-leaf"], "state", ">=", 0.9),
    ("uplinks that a leaf lost", ["lost-uplinks"], "state", ">=", 0.9),
    ("dead, or wrong in each check", ["dead", "wrong"], "state", ">=", 0.97),
]


# --- what is drawn ---

def number(f, kind, rng):
    count = {"endpoint": f.count, "host": f.hosts, "rack": f.racks, "leaf": f.leaves}
    return rng.randrange(count[AT[kind]])


def late(f, kind, n):
    """Three microseconds more.  The simulator has no late host: all its NICs are late."""
    level = kind.removeprefix("late-")
    if level == "nic":
        ends, words = [n], [f"late-nic={n}:3us"]
    else:
        ends = members(f.at[level], n)
        words = [f"late-nic={e}:3us" for e in ends] if level == "host" else [f"{kind}={n}:3us"]
    inside = set(ends)
    return words, Cause(kind, ends, lambda a, b: f.nic(a, b) and (a in inside or b in inside), 1, "late")


class Case:
    """One campaign: its fabric, the arguments of its fault, the pairs of it, the states that are right."""

    def __init__(self, name):
        self.name = name
        self.world, what, layout, _ = name.replace(":way", "/way").split(":")
        self.fault = what.replace("/way", ":way")
        preset, racks = layout.split("/")
        self.fabric = Fabric(preset, int(racks))
        self.rng = random.Random(f"railgauge {name}")
        self.seeds = [self.rng.randrange(1, 1 << 30) for _ in range(3)]
        self.words, self.cause, self.states = [], None, []
        if self.fault != HEALTHY:
            self.draw()

    def draw(self):
        f, rng, kind, behind, factors, self.states = self.fabric, self.rng, self.fault, "", FACTORS, ["slow"]
        if kind in STATES:
            kind, factors, behind, self.states = STATES[kind]
        elif kind == "mild":
            kind, factors = rng.choice(STEADY), [0.85, 0.9]
        elif kind in WRONG:
            behind = f"checks={WRONG[kind]}" if WRONG[kind] < 1 else ""
            kind, self.states = "corrupt", ["wrong"]
        elif kind == "dead":
            self.states = ["dead"]
        elif kind == "lost-uplinks":
            kind, factors, self.states = "uplinks", [0.25, 0.5, 0.75], ["lost-uplinks"]
        side = rng.choice([":tx", ":rx"]) if kind.endswith(":way") else ""
        kind = kind.removesuffix(":way")
        if kind in LATE:
            level = kind.removeprefix("late-")
            self.words, self.cause = late(f, kind, number(f, level, rng))
            self.states = ["late"]
            return
        n, factor = number(f, kind, rng), rng.choice(factors)
        other = (n + 1 + rng.randrange(f.racks - 1)) % f.racks if kind == "rack-pair" else None
        text, self.cause = fault(f, kind, n, factor, side, other)
        if self.fault == "lost-uplinks":
            text = text.replace("slow-", "lost-")
        self.words = [text + (f"@{behind}" if behind else "")]

    def simulated(self, seed=0):
        words = ["-t", "sim", "--fabric", self.fabric.preset, "--racks", str(self.fabric.racks), "--sim-seed", str(self.seeds[seed])]
        if self.world == "own":
            return [*words, "--noise", OWN_NOISE]
        return [*words, "--world", self.world, "--machine", str(self.seeds[2])]

    def run(self, where, seed=0, more=()):
        return ["run", *self.simulated(seed), *(w for text in (*self.words, *more) for w in ("--fault", text)), "--op", "pairs",
                "--no-plots", "-o", where]


# --- what is said ---

def railgauge(build, *words, **more):
    return subprocess.run([f"{build}/railgauge", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)


def has_worlds(build):
    return any(b"--world" in railgauge(build, "run", h).stdout for h in ("--help=simulation", "--help"))


class Broken(Exception):
    """A program that gives no answer: a signal, an error, a file that cannot be read."""


def verdict_of(build, where):
    accept = railgauge(build, "accept", where, "--json")
    try:
        return accept.returncode, json.loads(accept.stdout)
    except ValueError:
        raise Broken(f"accept ends with {accept.returncode}: {accept.stderr.decode()[-500:]}") from None


def spell(parts):
    """The first three, and how many more."""
    text = ", ".join(f"{' '.join([p.text, *p.only])} at {p.factor:.2f} {'+'.join(p.states)}" for p in parts[:3])
    return text + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")


def judge(case, named, codes, verdict):
    """Scores of one campaign, and what to say of it."""
    s, said, count = collections.Counter(campaigns=1), [], case.fabric.count
    rng, cause = random.Random(case.name), case.cause
    right = None if case.fault == "mild" else int(cause is not None)  # at 0.9 no limit of accept need be broken
    s["codes"] = int(right is None or all(c in (None, right) for c in codes))
    if not s["codes"]:
        said.append(f"exit codes {codes[0]} of run, {codes[1]} of accept: {verdict['line']}")
    if cause is None:
        s["healthy"], s["passed"], s["false"] = 1, int(verdict["verdict"] == "PASS"), len(named.part)
        s["accused"] = int(bool(named.part))
        if named.part:
            said.append("false: " + spell(named.part))
        if not s["passed"] and s["codes"]:
            said.append(f"no PASS: {verdict['line']}")
        return s, said
    own, near, false = None, [], []
    for p in named.part:
        inside = share(rng, p, [cause], count)
        if inside < 0.9:
            false.append(p)
            continue
        steady = cause.kind == "slow" and case.states == ["slow"]
        fits = not steady or abs(p.factor / cause.factor - 1) < 0.15
        if share(rng, cause, [p], count) >= SAME and fits and not own:
            own = p
        else:
            near.append(p)
    s["faults"], s["named"], s["pieces"] = 1, int(own is not None), len(near)
    s["state"] = int(own is not None and any(x in case.states for x in own.states))
    s["false"], s["accused"] = len(false), int(bool(false))
    if false:
        said.append("false: " + spell(false))
    if not own:
        said.append("is not named" + (f", but {spell(near)}" if near else ""))
    elif not s["state"]:
        said.append(f"is called {'+'.join(own.states)}")
    if own and near:
        said.append(f"pieces beside: {spell(near)}")
    return s, said


def score_folder(case, build, where, code):
    code_accept, verdict = verdict_of(build, where)
    try:
        named = Named(where)
    except (OSError, ValueError, KeyError) as e:
        raise Broken(f"no matrix: {e}") from None
    return judge(case, named, (code, code_accept), verdict), named


def finished(p):
    """Its exit code; a signal, or an error that is no verdict, is broken."""
    if p.returncode not in (0, 1):
        raise Broken(f"{' '.join(p.args[1:])}\n    ends with {p.returncode}: {p.stderr.decode()[-500:]}")
    return p.returncode


def campaign(name, o, where):
    """[(Counter, lines)] of the build and of the baseline."""
    case = Case(name)
    code, out = finished(railgauge(o.build, *case.run(where + "/c"))), []
    scored, named = score_folder(case, o.build, where + "/c", code)
    out.append(scored)
    if o.baseline:
        out.append(baseline(case, o, where))
    if o.only:
        print("railgauge", *case.run("DIR"))
        for e in named.m["exceptions"]:
            print("   ", json.dumps(e))
        for e in named.findings:
            print("   ", e["kind"], e["text"][:300])
    return out


def baseline(case, o, where):
    """The same fault under the other build, or if it knows no worlds its fit of the same points; `run` has no exit code then."""
    code = None
    if o.baseline_runs:
        code = finished(railgauge(o.baseline, *case.run(where + "/old")))
    else:
        shutil.copytree(where + "/c", where + "/old", ignore=shutil.ignore_patterns("matrix.json", "verdict.json"))
        finished(railgauge(o.baseline, "fit", "-q", where + "/old"))
    return score_folder(case, o.baseline, where + "/old", code)[0]


# --- compare, and check ---

def compared(name, o, where):
    """One machine twice, and 2 % slower the second time: what compare says."""
    case, s, said = Case(name), collections.Counter(pairs=1), []
    for folder, seed, more in (("a", 0, []), ("same", 1, []), ("slower", 1, ["slow-fabric=0.98"])):
        finished(railgauge(o.build, *case.run(f"{where}/{folder}", seed, more)))
    for folder in ("same", "slower"):
        p = railgauge(o.build, "compare", where + "/a", f"{where}/{folder}", "--json")
        finished(p)
        answer = json.loads(p.stdout)
        changed = [f for f in answer["figures"] if f["change"] in ("worse", "better")]
        parts = [f for f in answer["parts"] if f["change"] != "same"]
        if folder == "same":
            s["alarms"] = int(p.returncode != 0 or bool(changed) or bool(parts))
            if s["alarms"]:
                said.append(f"false alarm: {answer['line']}" + "".join(f"; {c['what']} {c['change']}" for c in [*changed, *parts][:3]))
        else:
            s["found"] = int(p.returncode == 1 and any(f["change"] == "worse" for f in changed))
            if not s["found"]:
                said.append(f"-2 % is not seen: {answer['line']}")
    if o.only:
        print("railgauge", *case.run("A"), "\nrailgauge", *case.run("B", 1))
    return [(s, said)]


def pair_fabric(where):
    """A host of two GPUs as a preset of its own: nothing to compare with but the preset's figures."""
    with open(f"{TOP}/topo/fabrics/hgx-h100.json", encoding="utf-8") as f:
        o = json.load(f)
    o["name"] = "pair"
    o["layout"].update(gpus_per_host=2, nics_per_host=2, hosts_per_domain=1, hosts_per_rack=1, hosts_per_leaf=1, default_racks=1)
    with open(where, "w", encoding="utf-8") as f:
        json.dump(o, f)
    return where


def checked(name, o, where):
    """check of hosts that are busy and healthy, or have one NIC at 0.6: who fails."""
    world, what, layout, _ = name.split(":")
    preset, racks = layout.split("/")
    rng = random.Random(f"railgauge check {name}")
    s, said, bad = collections.Counter(checks=1), [], None
    fabric = pair_fabric(where + "/pair.json") if preset == PAIR else preset
    words = ["check", "--fabric", fabric, "--racks", racks, "--world", world, "--sim-seed", str(rng.randrange(1, 1 << 30)),
             "--machine", str(rng.randrange(1, 1 << 30)), "--reason", "--state", where + "/state"]
    if what == "nic":
        f = Fabric(preset, int(racks))
        e = rng.randrange(f.count)
        h = f.at["host"][e]
        bad = f"r{h // f.per_rack:02d}n{h % f.per_rack:02d}"
        words += ["--fault", f"slow-nic={e}:0.6"]
    p = railgauge(o.build, *words)
    failed = [line.split()[0] for line in p.stdout.decode().splitlines()]
    s["failed"] = int(any(h != bad for h in failed) or (not bad and p.returncode != 0))
    s["sick"] = int(what == "nic")
    s["found"] = int(bad in failed and finished(p) == 1)
    if s["failed"] or (bad and not s["found"]):
        said.append(f"exit {p.returncode}: {p.stdout.decode()[:300].strip() or 'no host fails'} {p.stderr.decode()[-200:].strip()}".strip())
    if o.only:
        print("railgauge", *words, "\n" + p.stdout.decode())
    return [(s, said)]


def one(what, name, o):
    """What a piece of work says, in a folder of its own."""
    where = tempfile.mkdtemp(prefix="rg-worlds-", dir=o.dir)
    try:
        return {"": campaign, "compare ": compared, "check ": checked}[what](name, o, where)
    except Broken as e:
        return [(collections.Counter(campaigns=1, broken=1), [f"broken: {e}"])]
    finally:
        if not o.keep:
            shutil.rmtree(where)


# --- the list, the tables ---

def cycle(items, text):
    """All items again and again, each time in another order that follows from the text."""
    rng = random.Random(text)
    while True:
        yield from rng.sample(items, len(items))


def draw_list(o):
    """The first n names, each fault equally often (healthy four times as often), and each world and preset to each fault."""
    kinds = cycle(o.faults, f"faults {o.seed}")
    worlds = {k: cycle(o.worlds, f"worlds {o.seed} {k}") for k in o.faults}
    presets = {(k, w): cycle(o.presets, f"presets {o.seed} {k} {w}") for k in o.faults for w in o.worlds}
    seen, out = collections.Counter(), []
    while len(out) < o.n:
        k = next(kinds)
        w = next(worlds[k])
        p = next(presets[k, w])
        seen[w, k, p] += 1
        out.append(f"{w}:{k}:{p}:{o.seed}.{seen[w, k, p]}")
    return out


def share_of(part, whole):
    return part / whole if whole else float("nan")


class Score:
    """Counters of one build, by fault, world and both."""

    def __init__(self):
        self.by = collections.defaultdict(collections.Counter)

    def add(self, name, s):
        case = name.replace(":way", "/way").split(":")
        self.by["world", case[0]].update(s)
        self.by["fault", case[1].replace("/way", ":way")].update(s)
        self.by["both", case[0], case[1].replace("/way", ":way")].update(s)

    def sum(self, worlds, faults):
        total = collections.Counter()
        for w in worlds:
            for f in faults:
                total.update(self.by["both", w, f])
        return total


def cells(s):
    """The columns of one build."""
    of = lambda part, whole: f"{s[part]}/{s[whole]}" if s[whole] else ""
    return [of("named", "faults"), of("state", "faults"), of("passed", "healthy"), f"{s['false']} in {s['accused']}" if s["false"] else "0", str(s["pieces"]), of("codes", "campaigns")]


HEADS = ["named", "in state", "PASS", "false", "pieces", "codes right"]


def table(title, heads, rows, page):
    if page:
        print(f"\n{title}:\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", file=page)
        for r in rows:
            print(f"| {' | '.join(r)} |", file=page)
    width = [max(len(r[i]) for r in [heads, *rows]) for i in range(len(heads))]
    print(f"\n{title}")
    for r in [heads, *rows]:
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, width))).rstrip())


def print_scores(scores, page):
    names = ["", " (baseline)"][:len(scores)]
    heads = [h + n for n in names for h in HEADS]
    for level, order in (("world", [*PLAUSIBLE, *FURTHER]), ("fault", [HEALTHY, *FAULTS])):
        rows = [[x, str(scores[0].by[level, x]["campaigns"]), *(c for s in scores for c in cells(s.by[level, x]))]
                for x in order if scores[0].by[level, x]["campaigns"]]
        table(f"by {level}", [level, "campaigns", *heads], rows, page)


def limit(text, value, sign, bound, n, most=None):
    """A line; false if it is broken."""
    if not n:
        return True
    good = value >= bound if sign == ">=" else value <= bound
    shown = f"{value:.3f}" if most is None else f"{value:g}"
    print(f"  {'met   ' if good else 'BROKEN'} {text}: {shown} {sign} {bound:g} ({n})")
    return good


def check_limits(scores, compares, checks):
    print("\nlimits (plausible worlds)")
    ok = True
    for text, faults, figure, sign, goal in LIMITS:
        s = scores[0].sum(PLAUSIBLE, faults)
        ok &= limit(text, share_of(s[figure], s["campaigns"]), sign, goal, s["campaigns"])
    for w in sorted(compares):
        ok &= limit(f"false alarms of compare, {w}", share_of(compares[w]["alarms"], compares[w]["pairs"]), "<=", 0.01, compares[w]["pairs"])
    total = sum(compares.values(), collections.Counter())
    ok &= limit("-2 % found by compare", share_of(total["found"], total["pairs"]), ">=", 0.95, total["pairs"])
    total = sum(checks.values(), collections.Counter())
    ok &= limit("checks that fail a healthy host", total["failed"], "<=", 0, total["checks"], 0)
    ok &= limit("a NIC at 0.6 found by check", share_of(total["found"], total["sick"]), ">=", 1, total["sick"])
    if len(scores) > 1:
        mine, theirs = (s.sum(["own"], FAULTS) for s in scores)
        ok &= limit("the simulator's own world: named, not fewer than the baseline", mine["named"], ">=", theirs["named"], mine["faults"], 0)
    return bool(ok)


def everything(o):
    """(what, name) of each piece of work."""
    work = [("", name) for name in draw_list(o)] if o.n else []
    for k in range(o.compare):
        worlds = [w for w in o.worlds if w in PLAUSIBLE or w in FURTHER]
        work += [("compare ", f"{w}:healthy:{o.presets[(k + i) % len(o.presets)]}:{o.seed}.{k}") for i, w in enumerate(worlds)]
    for k in range(o.check):
        world, preset = CHECK_WORLDS[k % len(CHECK_WORLDS)], CHECK_PRESETS[k // len(CHECK_WORLDS) % len(CHECK_PRESETS)]
        work += [("check ", f"{world}:{what}:{p}:{o.seed}.{k}")
                 for what, p in (("healthy", preset), ("healthy", PAIR + "/1"), ("nic", preset))]
    return work


def arguments():
    words = lambda text: text.split(",")
    a = argparse.ArgumentParser(description="faults in simulated fabrics with the noise of real ones, and what is said of them")
    a.add_argument("-n", type=int, default=400, help="campaigns")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--worlds", type=words, default=[*PLAUSIBLE, *FURTHER], help="plausible, or NAME,NAME")
    a.add_argument("--faults", type=words, default=[*FAULTS, *[HEALTHY] * 4], help="NAME,NAME")
    a.add_argument("--presets", type=words, default=PRESETS, help="NAME/RACKS,NAME/RACKS")
    a.add_argument("--compare", type=int, default=0, help="pairs of campaigns to compare, in each world")
    a.add_argument("--check", type=int, default=0, help="checks: of healthy hosts, of a pair alone, with a NIC at 0.6")
    a.add_argument("--only", help="[compare|check ]WORLD:FAULT:PRESET/RACKS:SEED, once more and loud")
    a.add_argument("--baseline", help="build that is scored beside; without --world it fits the points of the other")
    a.add_argument("--limits", action="store_true", help="exit 1 if one is broken")
    a.add_argument("--markdown", metavar="FILE", help="the tables there as well, for a page")
    a.add_argument("--keep", action="store_true", help="leave the campaigns where they are")
    a.add_argument("--dir", help="where they are made")
    a.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)), help="campaigns at once")
    a.add_argument("--build", default=os.environ.get("RG_BUILD", TOP + "/build"))
    o = a.parse_args()
    if o.worlds == ["plausible"]:
        o.worlds = PLAUSIBLE
    for what, known in (("worlds", [*PLAUSIBLE, *FURTHER]), ("faults", [*FAULTS, HEALTHY])):
        for x in getattr(o, what):
            if x not in known:
                a.error(f"--{what} {x}: known are {' '.join(known)}")
    o.baseline_runs = bool(o.baseline) and has_worlds(o.baseline)
    return o


def main():
    o = arguments()
    if o.only:
        what, space, name = o.only.rpartition(" ")
        for _, said in one(what + space, name, o):
            print(*(f"  {line}" for line in said) if said else ["  as it should be"], sep="\n")
        return 0
    scores, broken = [Score(), Score()] if o.baseline else [Score()], 0
    compares, checks = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    with concurrent.futures.ProcessPoolExecutor(o.j) as pool:
        for what, name, job in [(w, n, pool.submit(one, w, n, o)) for w, n in everything(o)]:
            for score, (s, said) in zip(scores, job.result()):
                if what == "":
                    score.add(name, s)
                else:
                    (compares if what == "compare " else checks)[name.split(":")[0]].update(s)
                broken += s["broken"]
                for line in said if score is scores[0] else []:
                    print(f"{what}{name}: {line}", flush=True)
    page = open(o.markdown, "w", encoding="utf-8") if o.markdown else None  # pylint: disable=consider-using-with
    if o.n:
        print_scores(scores, page)
    if compares:
        table("compare", ["world", "false alarms", "-2 % found"],
              [[w, f"{s['alarms']}/{s['pairs']}", f"{s['found']}/{s['pairs']}"] for w, s in compares.items()], page)
    if checks:
        table("check", ["world", "healthy hosts failed", "NIC at 0.6 found"],
              [[w, f"{s['failed']}/{s['checks']}", f"{s['found']}/{s['sick']}"] for w, s in checks.items()], page)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if page:
        page.close()
    print(f"\nseed {o.seed}: {o.n} campaigns, {used.ru_utime + used.ru_stime:.0f} s of processor time")
    good = not broken
    if broken:
        print(f"{broken} without an answer")
    if o.limits:
        good &= check_limits(scores, compares, checks)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
