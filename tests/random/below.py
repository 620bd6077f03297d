#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random campaigns in pairs, one below the other: faults are put into the one, the other, both or none, and what
`railgauge show parts` and `railgauge explain` say with --below is held against them.

    tests/random/below.py -n 100 --seed 1       a hundred pairs, one line for each that is not as it should be
    tests/random/below.py --only 1:37           one of them again, kept in ./below-1-37

Both are simulated on the same preset and then renamed, the upper to nccl or mpi, the lower to verbs.  The lower has other
noise, and in some only the first racks, or its hosts and so its ranks in another order.  Of each fault is asked that the
row of that part says the verdict that follows from what was put in, with both rates within 6 % of the formula's; of each
part that only the lower has that it is listed; of a pair through a fault, and of one through none, that explain says the
same.  What the fit did not name above is not asked of the rows.  Near the bound (0.9) nothing is put: either answer is right."""
import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("RG_BUILD")
RAILGAUGE = os.path.join(BUILD, "railgauge") if BUILD else "railgauge"
TABLE = []
for i in range(256):
    for _ in range(8):
        i = (i >> 1) ^ 0x82F63B78 if i & 1 else i >> 1
    TABLE.append(i)


def crc32c(text):
    c = 0xFFFFFFFF
    for b in text.encode():
        c = TABLE[(c ^ b) & 255] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def railgauge(*args, ok=(0,)):
    p = subprocess.run([RAILGAUGE, *args], capture_output=True, text=True, check=False)
    if p.returncode not in ok:
        raise RuntimeError(f"railgauge {' '.join(args)}: exit {p.returncode}: {p.stderr}")
    return p.stdout


def campaign(where, spec, racks, faults, seed):
    railgauge("run", "--transport", "sim", "--no-plots", "--no-verdict", "--fabric", spec["fabric"], "--racks", str(racks),
              "--noise", "2%", "--op", "pairs", "--sim-seed", str(seed), "-q", "-o", where,
              *(a for f in faults for a in ("--fault", f)))


def rows_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read().split("\n")


def shuffle(where, rng):
    """The hosts of a campaign in another order, and so its endpoints: topology, plan and points anew, and the fit."""
    with open(f"{where}/topology.json", encoding="utf-8") as f:
        t = json.load(f)
    hosts, ends = t["hosts"]["rows"], t["endpoints"]["rows"]
    order = list(range(len(hosts)))
    rng.shuffle(order)
    place = {h: i for i, h in enumerate(order)}
    old = sorted(range(len(ends)), key=lambda e: (place[ends[e][0]], e))
    new = {e: i for i, e in enumerate(old)}
    t["hosts"]["rows"] = [hosts[h] for h in order]
    t["endpoints"]["rows"] = [[place[ends[e][0]], *ends[e][1:]] for e in old]
    t["nics"]["rows"] = [[place[n[0]], *n[1:]] for n in t["nics"]["rows"]]
    with open(f"{where}/topology.json", "w", encoding="utf-8") as f:
        json.dump(t, f)
    railgauge("seal", f"{where}/topology.json")
    plan = [re.sub(r"\d+", lambda m: str(new[int(m[0])]), r) if k == 7 else r
            for line in rows_of(f"{where}/plan.tsv") for k, r in enumerate((line + "\n").split("\t"))]
    text = "".join(p if p.endswith("\n") else p + "\t" for p in plan)[:-1]
    with open(f"{where}/plan.tsv", "w", encoding="utf-8") as f:
        f.write(text)
    out = []
    for k, line in enumerate(rows_of(f"{where}/points.tsv")):
        if k == 0:
            line = re.sub(r"plan=\w+", f"plan={crc32c(text):08x}", re.sub(r" topology=\w+", "", line))
        elif k > 2 and line:
            cell = line.split("\t")[:-1]
            for i in (6, 7, 19, 21):
                cell[i] = str(new[int(cell[i])]) if int(cell[i]) >= 0 else cell[i]
            body = "\t".join(cell) + "\t"
            line = f"{body}{crc32c(body):08x}"
        out.append(line)
    with open(f"{where}/points.tsv", "w", encoding="utf-8") as f:
        f.write("\n".join(out))
    railgauge("fit", "-q", "--no-verdict", where)


def rename(where, transport):
    """As if it had been measured over another transport."""
    with open(f"{where}/matrix.json", encoding="utf-8") as f:
        m = json.load(f)
    m["transport"] = transport
    with open(f"{where}/matrix.json", "w", encoding="utf-8") as f:
        json.dump(m, f)
    railgauge("seal", f"{where}/matrix.json")
    rows = rows_of(f"{where}/points.tsv")
    rows[0] = re.sub(r"transport=\w+", f"transport={transport}", rows[0])
    with open(f"{where}/points.tsv", "w", encoding="utf-8") as f:
        f.write("\n".join(rows))


class Fault:
    """A NIC or a host at two rates: left of the upper layer's and of the lower's, 1 where it is well."""

    def __init__(self, rng, spec, racks, kind):
        self.kind, self.per_host = kind, spec["per_host"]
        self.end = rng.randrange(racks * spec["hosts"] * self.per_host)
        self.host = self.end // self.per_host
        self.rack = self.host // spec["hosts"]
        self.side = rng.choice(["", ":tx", ":rx"]) if kind == "nic" else ""
        low = rng.uniform(0.3, 0.65)
        self.above, self.below = {"above": (low, 1), "below": (1, low), "both": (low, low),
                                  "more": (low, rng.uniform(low + 0.1, max(low + 0.11, 0.8)))}[rng.choice(["above", "below", "both", "more"])]

    def option(self, left):
        return f"slow-host={self.host}:{left:.3f}" if self.kind == "host" else f"slow-nic={self.end}:{left:.3f}{self.side}"

    def is_row(self, spec, row):
        name = f"r{self.rack:02d}n{self.host % spec['hosts']:02d}"
        place = row["places"][0] if row["places"] else {}
        if place.get("host") != name:
            return False
        return row["kind"] == self.kind and (self.kind == "host" or place.get("device") == self.end % self.per_host)

    def expected(self, seen):
        if not seen:
            return "not-measured"
        if self.above == 1:
            return None
        return "good" if self.below == 1 else "slow" if self.below == self.above else "both"


FABRICS = [{"fabric": "gb200-nvl72", "hosts": 18, "per_host": 4, "Bps": 49.2e9},
           {"fabric": "hgx-h100", "hosts": 4, "per_host": 8, "Bps": 49.2e9}]


class Pair:
    """Two campaigns, and what is wrong with what was said of them."""

    def __init__(self, seed, number, where):
        rng = random.Random(f"{seed}:{number}")
        self.rng, self.where, self.bad, self.asked = rng, where, [], collections.Counter()
        self.spec = rng.choice(FABRICS)
        self.racks = 2 if self.spec["hosts"] > 8 else rng.choice([3, 4])
        self.below_racks = rng.choice([self.racks, self.racks, self.racks - 1])
        self.faults = []
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            f = Fault(rng, self.spec, self.racks, rng.choice(["nic", "nic", "nic", "host"]))
            if all(f.host != g.host for g in self.faults):
                self.faults.append(f)
        self.upper, self.shuffled = rng.choice(["nccl", "mpi"]), rng.random() < 0.4
        self.by_matrix = rng.random() < 0.2

    def make(self):
        up, low = f"{self.where}/up", f"{self.where}/low"
        campaign(up, self.spec, self.racks, [f.option(f.above) for f in self.faults if f.above < 1], 1)
        campaign(low, self.spec, self.below_racks,
                 [f.option(f.below) for f in self.faults if f.below < 1 and f.rack < self.below_racks], 2)
        if self.shuffled:
            shuffle(low, self.rng)
        rename(up, self.upper)
        rename(low, "verbs")
        self.below = f"{low}/matrix.json" if self.by_matrix else low

    def say(self, text):
        self.bad.append(text)

    def rates(self, what, said, above, below):
        for name, want in (("rate_above", above), ("rate_below", below)):
            got = said[name]["Bps"]
            if got is None or abs(got / (want * self.spec["Bps"]) - 1) > 0.06:
                self.say(f"{what}: {name} {got}, not {want * self.spec['Bps']:.4g}")

    def parts(self):
        o = json.loads(railgauge("show", f"{self.where}/up", "parts", "--below", self.below, "--json"))
        for f in self.faults:
            row = [r for r in o["parts"] if f.is_row(self.spec, r)]
            seen = f.rack < self.below_racks
            apart = seen and (self.below_racks > 1 or self.spec["hosts"] < 18)  # not all in one NVLink domain
            want = f.expected(apart)
            listed = [x for x in o["below_only"] if f"r{f.rack:02d}n{f.host % self.spec['hosts']:02d}" in x]
            if want is None or f.above == 1:
                self.asked["listed" if seen and f.above == 1 else "not listed"] += 1
                if bool(listed) != (seen and f.above == 1):
                    self.say(f"{f.option(f.below)}, only below: listed {listed}")
                continue
            if not row:
                print(f"{self.where}: {f.option(f.above)} was not named by the fit", file=sys.stderr)
                continue
            said = row[0]["below"]
            self.asked[want] += 1
            if said["verdict"] != want:
                self.say(f"{f.option(f.above)}, {f.below:.3f} below: {said['verdict']}, not {want}: {said['text']}")
            elif want != "not-measured" and f.kind == "nic":
                self.rates(f.option(f.above), said, f.above, f.below)
        hurt = {f"r{f.rack:02d}n{f.host % self.spec['hosts']:02d}" for f in self.faults}
        for r in o["parts"]:
            if r["places"] and r["places"][0].get("host") not in hurt:
                print(f"{self.where}: the fit named {r['name']}", file=sys.stderr)

    def name(self, end):
        host = end // self.spec["per_host"]
        return f"r{host // self.spec['hosts']:02d}n{host % self.spec['hosts']:02d}:{end % self.spec['per_host']}"

    def left(self, src, dst):
        """What faults leave of src -> dst, above and below, over NICs."""
        above, below = 1.0, 1.0
        for f in self.faults:
            for end, way in ((src, ":tx"), (dst, ":rx")):
                if end // f.per_host == f.host if f.kind == "host" else end == f.end and f.side in ("", way):
                    above, below = min(above, f.above), min(below, f.below)
        return above, below

    def pairs_of(self, where):
        with open(f"{self.where}/{where}/topology.json", encoding="utf-8") as f:
            t = json.load(f)
        column = t["endpoints"]["columns"]
        name = [f"{t['hosts']['rows'][e[column.index('host')]][0]}:{e[column.index('local')]}" for e in t["endpoints"]["rows"]]
        out = {}
        for line in rows_of(f"{self.where}/{where}/points.tsv")[3:]:
            cell = line.split("\t")
            if len(cell) > 8 and cell[4] == "pair_bw":
                out.setdefault((name[int(cell[6])], name[int(cell[7])]), set()).add(cell[9])
        return out

    def explained(self):
        up, low = self.pairs_of("up"), self.pairs_of("low")
        domain = 1 if self.spec["hosts"] < 18 else 18
        ends = self.racks * self.spec["hosts"] * self.spec["per_host"]
        pairs = [(a, b) for a in range(ends) for b in range(ends)
                 if a // self.spec["per_host"] // domain != b // self.spec["per_host"] // domain and (self.name(a), self.name(b)) in up]
        touched = [p for p in pairs if min(self.left(*p)) < 1]
        for src, dst in self.rng.sample(pairs, 2) + self.rng.sample(touched, min(4, len(touched))):
            a, b = self.name(src), self.name(dst)
            said = json.loads(railgauge("explain", f"{self.where}/up", a, b, "--below", f"{self.where}/low", "--json"))["below"]
            above, below = self.left(src, dst)
            want = ("not-measured" if (a, b) not in low else "fine" if above == below == 1 else "good" if below == 1
                    else "other-path" if above == 1 else "slow" if above == below else "both")
            self.asked[want] += 1
            if said["verdict"] != want:
                self.say(f"{a} -> {b}, {above:.3f} above, {below:.3f} below: {said['verdict']}, not {want}: {said['text']}")
            elif want != "not-measured":
                self.rates(f"{a} -> {b}", said, above, below)

    def run(self):
        self.make()
        self.parts()
        self.explained()
        what = (f"{self.spec['fabric']} {self.racks} racks, {self.below_racks} below, {self.upper}"
                f"{', shuffled' if self.shuffled else ''}{', matrix alone' if self.by_matrix else ''}, "
                f"{[(f.option(f.above), round(f.below, 3)) for f in self.faults]}")
        return [f"{what}: {b}" for b in self.bad], what, self.asked


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("-n", type=int, default=20)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", help="SEED:NUMBER")
    a = a.parse_args()
    seed, numbers = a.seed, range(a.n)
    if a.only:
        seed, only = (int(x) for x in a.only.split(":"))
        numbers = [only]
    bad, all_asked = 0, collections.Counter()
    for number in numbers:
        where = f"below-{seed}-{number}" if a.only else tempfile.mkdtemp(prefix="below.")
        os.makedirs(where, exist_ok=True)
        wrong, what, asked = Pair(seed, number, where).run()
        all_asked.update(asked)
        bad += bool(wrong)
        for line in wrong:
            print(f"{seed}:{number}: {line}")
        if a.only:
            print(what)
        else:
            shutil.rmtree(where)
    print(f"{len(numbers)} pairs of campaigns, seed {seed}: {bad} with something wrong; asked: "
          + ", ".join(f"{n} {name}" for name, n in sorted(all_asked.items())))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
