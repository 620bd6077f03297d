#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutants of the constants: each number in a table of rows ROW(name, value, "reason") is multiplied and divided by a factor,
and a unit test must fail each time.

    make mutants                      every row of src/noise/constants.h, by 1.5
    make mutants MUTANTS='--factor 1.2 --only delta,slow'

The table must stand in FOLDER/constants.h, and FOLDER/constants.c alone must hold its values, so that a mutant is one
object that is linked before the library.  A mutant that no test notices is printed as "survives"; the exit code is then 1.
Called by make, because it needs the compiler's words: RG_BUILD, RG_COMPILE, RG_LIBS."""
import argparse
import concurrent.futures
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = re.compile(r'^(\s*ROW\((\w+),\s*)([-+.\deE]+)(\s*,)', re.M)
SECONDS = 300  # a mutant may make a test run for ever


def run_tests(programs):
    """Names of the tests that fail: the first of each program that does."""
    failed = []
    env = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    for p in programs:
        name = os.path.basename(p)
        try:
            r = subprocess.run([p], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, env=env, cwd=TOP, check=False)
        except subprocess.TimeoutExpired:
            failed.append(f"{name}: no end")
            continue
        bad = re.findall(r"^not ok \d+ - (\w+)", r.stdout.decode(), re.M)
        if bad:
            failed.append(f"{name}: {bad[0]}" + (f" and {len(bad) - 1} more" if len(bad) > 1 else ""))
        elif r.returncode:
            failed.append(f"{name}: exit {r.returncode}")
    return failed


class Build:
    def __init__(self, o):
        self.o, self.folder = o, os.path.dirname(o.table)
        self.compile, self.libs = shlex.split(os.environ["RG_COMPILE"]), shlex.split(os.environ["RG_LIBS"])
        with open(f"{TOP}/{o.table}", encoding="utf-8") as f:
            self.text = f.read()

    def mutant(self, name, value):
        """What fails when this constant has this value."""
        with tempfile.TemporaryDirectory(prefix="rg-mutant-") as where:
            inside = self.folder.removeprefix("src/")
            os.makedirs(f"{where}/{inside}")
            text = ROW.sub(lambda m: f"{m[1]}{value:.9g}{m[4]}" if m[2] == name else m[0], self.text)
            with open(f"{where}/{inside}/constants.h", "w", encoding="utf-8") as f:
                f.write(text)
            subprocess.run([self.compile[0], f"-I{where}", *self.compile[1:], "-c", "-o", f"{where}/constants.o",
                            f"{self.folder}/constants.c"], cwd=TOP, check=True)
            programs = []
            for test in self.o.tests:
                programs.append(f"{where}/{test}")
                subprocess.run([self.compile[0], "-o", programs[-1], f"{self.o.build}/tests/unit/{test}.c.o", f"{where}/constants.o",
                                f"{self.o.build}/librg.a", *self.libs], cwd=TOP, check=True)
            return run_tests(programs)


def arguments():
    a = argparse.ArgumentParser(description="each constant times and by a factor: does a unit test fail?")
    a.add_argument("--table", default="src/noise/constants.h")
    a.add_argument("--tests", type=lambda t: t.split(","), help="unit tests (default all whose name begins with the folder's)")
    a.add_argument("--only", type=lambda t: t.split(","), help="NAME,NAME of the constants")
    a.add_argument("--factor", type=float, default=1.5)
    a.add_argument("--markdown", action="store_true")
    a.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)))
    o = a.parse_args()
    o.build = os.environ["RG_BUILD"]
    if not os.path.exists(f"{TOP}/{o.table}"):
        a.exit(66, f"mutants: {o.table} is not there\n")
    noun = os.path.basename(os.path.dirname(o.table))
    o.tests = o.tests or sorted(os.path.basename(f)[:-2] for f in glob.glob(f"{TOP}/tests/unit/{noun}*.c"))
    if not o.tests:
        a.exit(66, f"mutants: no tests/unit/{noun}*.c\n")
    return o


def main():
    o = arguments()
    build = Build(o)
    rows = [(m[2], float(m[3])) for m in ROW.finditer(build.text) if not o.only or m[2] in o.only]
    whole = run_tests([f"{o.build}/tests/unit/{t}" for t in o.tests])
    if whole:
        sys.exit(f"mutants: fails without a mutant: {', '.join(whole)}")
    alive = 0
    line = "| {} | {} | {} | {} |" if o.markdown else "{:16} {:>8}  {:44} {}"
    print(line.format("constant", "value", f"times {o.factor:g}", f"by {o.factor:g}"))
    if o.markdown:
        print("|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        jobs = [[pool.submit(build.mutant, name, v) for v in (value * o.factor, value / o.factor)] for name, value in rows]
        for (name, value), pair in zip(rows, jobs):
            cells = [", ".join(j.result()) or "survives" for j in pair]
            alive += cells.count("survives")
            print(line.format(name, f"{value:g}", *cells), flush=True)
    print(f"\n{2 * len(rows)} mutants of {o.table} under {' '.join(o.tests)}: {alive} survive")
    return 1 if alive or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
