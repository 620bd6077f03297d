#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the constants that decide what is said of a fabric: each is multiplied by 0.7 and by 1.4, whole numbers to
whole numbers, and a unit test must fail each time.

    make mutants                                         every constant of every file of TARGETS
    make mutants MUTANTS='--file noise/constants --only delta,slow'

A mutant is one object, or those of the sources that see a header, linked before the library.  The tests of a file run in
turn until one fails.  A mutant that no test notices is printed as "survives"; the exit code is then 1.
Called by make, because it needs the compiler's words: RG_BUILD, RG_COMPILE, RG_LIBS."""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FACTORS = (0.7, 1.4)
SECONDS = 120  # a mutant may make a test run for ever
NUMBER = r"-?\d[\d.]*(?:e[-+]?\d+)?"
ROW = re.compile(rf"(\bROW\((\w+),\s*)({NUMBER})(?=,)")
DEFINE = re.compile(rf"(^#define\s+(\w+)\s+)({NUMBER})(?=\s*$)", re.M)
BLOCK = re.compile(r"^(?:static const double|enum \{)[^;]*;", re.M)
MEMBER = re.compile(rf"(\b(\w+)\s*=\s*)({NUMBER})(?=\s*[,;}}/])")

# File below src, unit tests (the quickest first), sources to compile anew (of a header), names that decide nothing:
# limits of arithmetic and memory.
TARGETS = [
    ("noise/constants.h", ["noise_edges"], ["noise/constants.c"], ()),
    ("verdict/epochs.h", ["epochs"], ["verdict/epochs.c", "verdict/compare.c"], ()),
    ("verdict/compare.h", ["compare"], ["verdict/compare.c"], ()),
    ("verdict/history.h", ["history"], ["verdict/history.c"], ()),
    ("verdict/accept.h", ["accept"], ["verdict/accept.c"], ()),
    ("verdict/accept.c", ["accept"], (), ()),
    ("base/stats.h", ["stats"], ["base/stats.c"], ("STATS_Z90", "STATS_Z95", "STATS_RANKED", "STATS_LEVELS")),
    ("fit/classes_impl.h", ["classes"], ["fit/classes.c"], ()),
    ("fit/classes.c", ["classes"], (), ()),
    ("fit/fit_impl.h", ["fit_edges"], ["fit/baseline.c", "fit/uplinks.c"], ()),
    ("fit/parts.c", ["fit_edges"], (), ()),
    ("fit/uplinks.c", ["fit_edges"], (), ("ABOVE_MAX",)),
]


def constants_of(text):
    """(name, value as written, where the value stands) of a source."""
    spans = [(m[2], m[3], m.span(3)) for r in (ROW, DEFINE) for m in r.finditer(text)]
    for block in BLOCK.finditer(text):
        spans += [(m[2], m[3], m.span(3)) for m in MEMBER.finditer(text, *block.span())]
    return spans


def moved(value, factor):
    """The value as written times factor; a whole number moves by one at least."""
    if not value.isdigit():
        return f"{float(value) * factor:.6g}"
    n, new = int(value), round(int(value) * factor)
    return str(new if new != n else n + (1 if factor > 1 else -1))


def run_tests(programs):
    """The first test that fails, or nothing."""
    env = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP", "RAILGAUGE_DATA": TOP}  # a mutant lies far from the data
    for p in programs:
        name = os.path.basename(p).removeprefix("test-")
        try:
            r = subprocess.run([p], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, env=env, cwd=TOP, check=False)
        except subprocess.TimeoutExpired:
            return f"{name}: no end"
        bad = re.findall(r"^not ok \d+ - (\w+)", r.stdout.decode(), re.M)
        if bad:
            return f"{name}: {bad[0]}" + (f" and {len(bad) - 1} more" if len(bad) > 1 else "")
        if r.returncode:
            return f"{name}: exit {r.returncode}"
    return ""


class Target:
    def __init__(self, build, path, tests, sources, idle):
        self.build, self.path = build, path
        self.tests = [t for t in tests if os.path.exists(f"{TOP}/tests/unit/{t}.c")]
        self.sources = list(sources) or [path]
        self.compile, self.libs = shlex.split(os.environ["RG_COMPILE"]), shlex.split(os.environ["RG_LIBS"])
        with open(f"{TOP}/src/{path}", encoding="utf-8") as f:
            self.text = f.read()
        self.constants = [c for c in constants_of(self.text) if c[0] not in idle]

    def compile_mutant(self, where, text):
        os.makedirs(os.path.dirname(f"{where}/{self.path}"))
        with open(f"{where}/{self.path}", "w", encoding="utf-8") as f:
            f.write(text)
        objects = []
        for i, s in enumerate(self.sources):
            objects.append(f"{where}/{i}.o")
            source = f"{where}/{s}" if s == self.path else f"src/{s}"
            subprocess.run([self.compile[0], f"-I{where}", *self.compile[1:], "-c", "-o", objects[-1], source], cwd=TOP, check=True)
        return objects

    def mutant(self, span, value):
        """What fails when the constant at span has this value."""
        with tempfile.TemporaryDirectory(prefix="rg-mutant-") as where:
            objects = self.compile_mutant(where, self.text[:span[0]] + value + self.text[span[1]:])
            for test in self.tests:
                program = f"{where}/test-{test}"
                subprocess.run([self.compile[0], "-o", program, f"{self.build}/tests/unit/{test}.c.o", *objects, *self.libs], cwd=TOP, check=True)
                failed = run_tests([program])
                if failed:
                    return failed
        return "survives"


def arguments():
    a = argparse.ArgumentParser(description="each constant times 0.7 and 1.4: does a unit test fail?")
    a.add_argument("--file", default="", help="only of files whose path has this in it")
    a.add_argument("--only", type=lambda t: t.split(","), help="NAME,NAME of the constants")
    a.add_argument("--markdown", action="store_true")
    a.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)))
    o = a.parse_args()
    o.build = os.environ["RG_BUILD"]
    return o


def main():
    o = arguments()
    targets = [Target(o.build, *t) for t in TARGETS if o.file in t[0]]
    whole = run_tests(sorted({f"{o.build}/tests/unit/{t}" for target in targets for t in target.tests}))
    if whole:
        sys.exit(f"mutants: fails without a mutant: {whole}")
    alive = mutants = 0
    line = "| {} | {} | {} | {} |" if o.markdown else "{:16} {:>8}  {:64} {}"
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for t in targets:
            rows = [c for c in t.constants if not o.only or c[0] in o.only]
            jobs = [[pool.submit(t.mutant, span, moved(value, f)) for f in FACTORS] for _, value, span in rows]
            if rows:
                print(f"\nsrc/{t.path}\n\n" + line.format("constant", "value", *(f"x {f:g}" for f in FACTORS)))
                print("|---|---|---|---|\n" if o.markdown else "", end="")
            for (name, value, _), pair in zip(rows, jobs):
                cells = [j.result() for j in pair]
                alive += cells.count("survives")
                mutants += len(cells)
                print(line.format(name, value, *cells), flush=True)
    print(f"\n{mutants} mutants: {alive} survive")
    return 1 if alive or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
