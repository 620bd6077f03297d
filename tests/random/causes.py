# SPDX-License-Identifier: BSD-3-Clause
"""Faults and the parts that are named for them, as sets of directed pairs: what campaigns.py and worlds.py score with."""
import collections
import json
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAME = 0.75  # share of either set's pairs that the other has
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


# What the number of a fault counts.
AT = {"nic": "endpoint", "gpu": "endpoint", "host": "host", "dead": "host", "corrupt": "endpoint", "rack-pair": "rack",
      "leaf": "leaf", "uplinks": "leaf", "rack": "rack", "rack-uplinks": "rack", "cable": "endpoint", "fabric": "fabric"}


def fault(f, kind, n, factor, side="", other=None):
    """(argument, Cause): number n of what AT says, the second end of a cable or of two racks in `other`."""
    tx, rx = side != ":rx", side != ":tx"
    host, rack, at_leaf = f.at["host"], f.at["rack"], f.at["leaf"]
    if kind == "nic":
        text, ends, slow = f"slow-nic={n}:{factor}{side}", [n], lambda a, b: f.nic(a, b) and (a == n and tx or b == n and rx)
    elif kind == "gpu":
        text, ends, slow = f"slow-gpu={n}:{factor}", [n], lambda a, b: not f.nic(a, b) and n in (a, b)
    elif kind == "host":
        text, ends, slow = f"slow-host={n}:{factor}", members(host, n), lambda a, b: n in (host[a], host[b])
    elif kind == "dead":
        return f"dead-host={n}", Cause("dead", members(host, n), lambda a, b: n in (host[a], host[b]), 0, "dead")
    elif kind == "corrupt":
        return f"corrupt={n}", Cause("corrupt", [n], lambda a, b: n in (a, b), 0, "wrong")
    elif kind == "rack-pair":
        text, ends = f"slow-racks={n}-{other}:{factor}", members(rack, n) + members(rack, other)
        slow = lambda a, b: {rack[a], rack[b]} == {n, other}
    elif kind == "leaf":
        text, ends = f"slow-leaf={n}:{factor}", members(at_leaf, n)
        slow = lambda a, b: f.nic(a, b) and n in (at_leaf[a], at_leaf[b])
    elif kind == "uplinks":
        text, ends = f"slow-uplinks={n}:{factor}{side}", members(at_leaf, n)
        slow = lambda a, b: f.nic(a, b) and at_leaf[a] != at_leaf[b] and (at_leaf[a] == n and tx or at_leaf[b] == n and rx)
    elif kind == "rack":
        text, ends = f"slow-rack={n}:{factor}", members(rack, n)
        slow = lambda a, b: f.nic(a, b) and n in (rack[a], rack[b])
    elif kind == "rack-uplinks":
        text, ends = f"slow-rack-uplinks={n}:{factor}{side}", members(rack, n)
        slow = lambda a, b: f.nic(a, b) and rack[a] != rack[b] and (rack[a] == n and tx or rack[b] == n and rx)
    elif kind == "cable":
        text, ends, slow = f"slow-cable={n}-{other}:{factor}", [n], lambda x, y: {x, y} == {n, other}
    else:
        text, ends, slow = f"slow-fabric={factor}", list(range(f.count)), f.nic
    return text, Cause(kind, ends, slow, factor)



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

    @staticmethod
    def state(e):
        """The state of an exception; of a file that does not say it, as far as it follows."""
        if "state" in e:
            return e["state"]
        return "wrong" if e.get("wrong") else "dead" if e["factor"] == 0 else "late" if e["factor"] == 1 else "slow"

    def cause(self, key, es):
        ends = [a for a in range(self.count) if any(self.is_end(e, a) for e in es)]
        kind = "wrong" if any(e.get("wrong") for e in es) else "dead" if es[0]["factor"] == 0 else "slow"
        text = f"{key[0]} {key[1]}" + (f"-{key[2]}" if key[2] >= 0 else "")
        factor = min(es, key=lambda e: -e["evidence"])["factor"]
        c = Cause(text, ends, lambda a, b: any(self.slow(e, a, b) for e in es), factor, kind)
        c.states = sorted({self.state(e) for e in es})
        c.only = sorted({e["side"] for e in es if e["side"] != "both"} | {e["tier"] for e in es if "tier" in e}) if all(
            e["side"] != "both" or "tier" in e for e in es) else []
        return c

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
