#!/usr/bin/env python3
"""faults.py [--seconds N] [--seed N] [--page FILE] - campaigns under faults, and what is left of them, as a table.

Kinds of faults take turns until the time is up.  A row: how often, how often the culprit was named and an innocent
rank instead, seconds from the fault to the end (median, worst), finished points that were lost, exit codes, how often
--resume finished the campaign, processes and folders that were left.  Exit 1 where a limit is missed: a point lost, an
innocent accused, more than one culprit in 50 (and more than one at all) not named, a process left, a wrong answer, a
campaign not resumed."""
import argparse
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.path.abspath(os.environ.get("RG_BUILD", "build"))
RAILGAUGE = os.path.join(BUILD, "railgauge")
MPI = ["-t", "mpi", "--no-plots", "--no-verdict", "--no-retest", "-b", "8", "-e", "32K", "-f", "8", "--op",
       "all_reduce,pair_bw", "--pair-bytes", "64K", "--epochs", "8", "-n", "50", "-w", "1", "--hang-after", "2s"]
SIM = ["-t", "sim", "--fabric", "hgx-h100", "--racks", "2", "--no-plots", "--no-verdict", "--op", "pairs", "-b", "64K", "-e", "1M"]
DATA = ("topology.json", "plan.tsv", "points.tsv", "matrix.json", "campaign.json")


def environment(tmp, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "RAILGAUGE_FAULT"))}
    return {**env, "TMPDIR": tmp, "XDG_RUNTIME_DIR": tmp, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}


def processes():
    """{pid: (parent, name, state)} of this machine."""
    out = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(path).read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        out[int(text.split()[0])] = (int(parent), name, state)
    return out


def below(pid):
    all_, found, again = processes(), {}, True
    while again:
        again = False
        for p, (parent, name, state) in all_.items():
            if p not in found and (parent == pid or parent in found):
                found[p] = name
                again = True
    return found


def alive(pids):
    now = processes()
    return [p for p, name in pids.items() if p in now and now[p][1] == name and now[p][2] != "Z"]


def rows(folder):
    try:
        lines = open(os.path.join(folder, "points.tsv"), "rb").read().split(b"\n")[:-1]
    except OSError:
        return []
    return [line for line in lines if line and not line.startswith((b"#", b"round\t"))]


class Row:
    def __init__(self, name):
        self.name, self.n, self.asked, self.right, self.innocent, self.lost, self.left, self.wrong = name, 0, 0, 0, 0, 0, 0, 0
        self.seconds, self.codes, self.resumed, self.resumable = [], set(), 0, 0

    def cells(self):
        took = f"{statistics.median(self.seconds):.2f}, {max(self.seconds):.2f}" if self.seconds else ""
        return [self.name, self.n, f"{self.right} of {self.asked}" if self.asked else "", self.innocent or 0, took, self.lost,
                ", ".join(map(str, sorted(self.codes))), f"{self.resumed} of {self.resumable}" if self.resumable else "",
                self.left, self.wrong]


class Suite:
    def __init__(self, seed):
        self.random, self.rows, self.notes = random.Random(seed), {}, []
        self.top = tempfile.mkdtemp(prefix="rg-faults-")
        os.chdir(self.top)
        self.whole = {}

    def row(self, name):
        return self.rows.setdefault(name, Row(name))

    def note(self, row, text):
        self.notes.append(f"{row.name}: {text}")
        print(f"# {row.name}: {text}", file=sys.stderr)

    # --- ranks, launcher and run over MPI ---
    def mpi(self, name, ranks, strike, culprit=True, codes=(75,)):
        """strike(run, launcher, pids of ranks): signals sent; returns the pids that may be named."""
        row, folder, tmp = self.row(name), "cut", tempfile.mkdtemp(dir=self.top)
        shutil.rmtree(folder, ignore_errors=True)
        words = [RAILGAUGE, "run", *MPI, "--ranks", str(ranks), "-o", folder]
        run = subprocess.Popen(words, env=environment(tmp), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
        least, until = self.random.randrange(1, 100), time.monotonic() + 30
        while len(rows(folder)) < least and run.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        family = below(run.pid)
        launcher = [p for p, n in family.items() if n.startswith(("mpirun", "orterun", "prterun"))]
        probes = sorted(p for p, n in family.items() if n.startswith("railgauge-prob"))
        if run.poll() is not None or len(probes) != ranks or not launcher:
            run.kill()
            run.wait()
            return  # it was over before
        before, begin = rows(folder), time.monotonic()
        victims = strike(run, launcher[0], probes)
        try:
            code = run.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.note(row, "not over after 60 s")
            os.killpg(run.pid, signal.SIGKILL)
            code = run.wait()
            row.wrong += 1
        took = time.monotonic() - begin
        if code == 0:
            return  # the last point was made before the fault had an effect
        row.n += 1
        row.codes.add(code)
        row.seconds.append(took)
        wait = time.monotonic() + 5
        while alive(family) and time.monotonic() < wait:
            time.sleep(0.05)
        left = alive(family)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        row.left += len(left)
        if left or code not in codes:
            self.note(row, f"exit {code}, {len(left)} processes left")
            row.wrong += code not in codes
        self.name_of(row, folder, victims, culprit)
        self.finish(row, words, folder, before, environment(tmp))
        shutil.rmtree(tmp)

    def name_of(self, row, folder, victims, culprit):
        try:
            named = json.load(open(os.path.join(folder, "verdict.json")))["culprit"]["pid"]
        except (OSError, KeyError, TypeError):
            named = None
        if culprit:
            row.asked += 1
            row.right += named in victims
            if named not in victims:
                self.note(row, f"named {named}, not one of {victims}")
        row.innocent += named is not None and named not in victims

    def finish(self, row, words, folder, before, env):
        """What was there is there, and --resume measures the rest."""
        after = rows(folder)
        row.lost += len(before) - len([r for r, s in zip(before, after) if r == s])
        row.resumable += 1
        again = subprocess.run([*words, "--resume"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        end = rows(folder)
        # How many rows a whole campaign has depends on what time left and on suspects that are measured again: it is whole if
        # nothing is left to measure.
        more = subprocess.run([*words, "--resume"], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        good = (again.returncode == 0 and more.returncode == 0 and end[:len(after)] == after
                and rows(folder) == end)
        row.resumed += good
        if not good:
            self.note(row, f"resume: exit {again.returncode}, {len(after)} -> {len(end)} rows: {again.stderr[-300:]}")

    def ranks(self, kind, sig, how="one"):
        n = self.random.choice((2, 4, 4, 8))

        def strike(_run, _launcher, probes):
            victims = {"one": [self.random.choice(probes)], "rank 0": probes[:1], "several": self.random.sample(probes, max(2, n // 2)),
                       "all": probes}[how]
            for pid in victims:
                os.kill(pid, sig)
            return victims
        # Silence of all may be the listener's own: then nobody is named, rightly.
        self.mpi(f"{kind}, {how}", n, strike, culprit=(kind, how) != ("stopped", "all"))

    def hook(self, kind):
        """Faults inside a rank: the pid is in the verdict, so the rank is what is compared."""
        n, row = self.random.choice((2, 4, 8)), self.row(f"rank {kind}, one")
        rank, tmp = self.random.randrange(n), tempfile.mkdtemp(dir=self.top)
        shutil.rmtree("hook", ignore_errors=True)
        words = [RAILGAUGE, "run", *MPI, "--ranks", str(n), "-o", "hook"]
        env = environment(tmp, RAILGAUGE_FAULT=f"{kind}:{rank}:{self.random.randrange(1, 12)}")
        run = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120, check=False)
        row.n += 1
        row.codes.add(run.returncode)
        try:
            named = json.load(open("hook/verdict.json"))["culprit"]["rank"]
        except (OSError, KeyError, TypeError):
            named = None
        row.asked += 1
        row.right += named == rank
        row.innocent += named is not None and named != rank
        if named != rank:
            self.note(row, f"named rank {named}, not {rank} of {n}")
        self.finish(row, words, "hook", rows("hook"), environment(tmp))
        shutil.rmtree(tmp)

    def whole_run(self, what, sig):
        def strike(run, launcher, _probes):
            os.kill(launcher if what == "launcher" else run.pid, sig)
            return []
        codes = (-sig,) if what == "run" and sig == signal.SIGKILL else (75,)
        self.mpi(f"{what} {sig.name}", self.random.choice((2, 4)), strike, culprit=False, codes=codes)

    # --- one process, simulated ---
    def base(self):
        if not os.path.exists("base"):
            subprocess.run([RAILGAUGE, "run", *SIM, "-o", "base"], env=environment(self.top), capture_output=True, check=True)
        return rows("base")

    def sim(self, name, prepare=None, env=None, strike=None, codes=(74,), stdout=subprocess.DEVNULL):
        """A simulated campaign, cut by something; then it is finished, and is what it is without."""
        row, want = self.row(name), self.base()
        shutil.rmtree("sim", ignore_errors=True)
        words = [RAILGAUGE, "run", *SIM, "-o", "sim"]
        begin = time.monotonic()
        run = subprocess.Popen(words, env=environment(self.top, **(env or {})), stdin=subprocess.DEVNULL, stdout=stdout,
                               stderr=subprocess.DEVNULL, preexec_fn=prepare)
        if strike:
            time.sleep(self.random.uniform(0, 0.15))
            strike(run)
        code = run.wait(timeout=120)
        if code == 0:
            return
        row.n += 1
        row.codes.add(code)
        row.seconds.append(time.monotonic() - begin)
        if code not in codes:
            row.wrong += 1
            self.note(row, f"exit {code}")
        had = rows("sim")
        if had != want[:len(had)]:
            row.wrong += 1
            self.note(row, "rows that are not those of a whole campaign")
        row.resumable += 1
        resume = ["--resume"] if os.path.exists("sim/topology.json") else []
        if not resume:
            shutil.rmtree("sim", ignore_errors=True)
        again = subprocess.run([*words, *resume], env=environment(self.top), capture_output=True, text=True, errors="replace", check=False)
        row.resumed += again.returncode == 0 and rows("sim") == want
        if again.returncode or rows("sim") != want:
            self.note(row, f"resume: exit {again.returncode} {again.stderr[-300:]}")
        row.left += len(glob.glob("sim/*.tmp.*"))

    def stopped(self, sig):
        codes = (-sig,) if sig == signal.SIGKILL else (75, -sig)
        self.sim(f"simulation {sig.name}", strike=lambda run: os.kill(run.pid, sig), codes=codes)

    def small_files(self):
        most = self.random.randrange(0, 400000)
        self.sim("file may not grow (ulimit -f)", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))

    def no_memory(self):
        self.sim("an allocation fails", env={"LD_PRELOAD": f"{BUILD}/fake/liboom.so", "OOM_ON": "1",
                                             "OOM_AT": str(self.random.randrange(1, 20000))}, codes=(71, 74))

    def bad_calls(self):
        self.sim("fsync of a folder fails", env={"LD_PRELOAD": f"{BUILD}/fake/libnolocks.so", "NOLOCKS": "dirsync=5"})

    def output_full(self):
        with open("/dev/full", "w") as full:
            self.sim("standard output is full", stdout=full)

    def flip(self):
        """A flipped bit in any file: refused, or no answer is another."""
        row, name = self.row("a flipped bit"), self.random.choice(DATA)
        self.base()
        shutil.rmtree("flip", ignore_errors=True)
        shutil.copytree("base", "flip")
        path = os.path.join("flip", name)
        data = bytearray(open(path, "rb").read())
        data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        open(path, "wb").write(data)
        words = {"matrix.json": ["show", "flip/matrix.json", "tiers", "--json"], "campaign.json": ["run", "--resume", "-o", "flip", "-q", "--no-verdict"]}
        words = words.get(name, ["fit", "flip/topology.json", "flip/plan.tsv", "flip/points.tsv", "-o", "out.json", "-q", "--no-verdict"])
        self.answers(row, words, name)

    def answers(self, row, words, name):
        def ask(folder):
            run = subprocess.run([RAILGAUGE, *[w.replace("flip", folder) for w in words]], env=environment(self.top),
                                 capture_output=True, text=True, errors="replace", timeout=60, check=False)
            text = run.stdout.replace(folder, "")
            if words[0] == "fit" and run.returncode == 0:
                text = json.dumps([json.load(open("out.json"))[k] for k in ("tiers", "collectives", "exceptions")])
            return run.returncode, re.sub(r'"provenance".*?\n }', "", text, flags=re.S)
        if words[0] == "run":
            code, same = ask("flip")[0], rows("flip") == self.base()
        else:
            code, text = ask("flip")
            same = text == self.whole.setdefault(name, ask("base"))[1]
        row.n += 1
        row.codes.add(code)
        if code < 0 or (code == 0 and not same):
            row.wrong += 1
            self.note(row, f"{name}: exit {code}, another answer")

    def torn(self):
        row, want = self.row("points.tsv torn anywhere"), self.base()
        shutil.rmtree("torn", ignore_errors=True)
        shutil.copytree("base", "torn")
        data = open("torn/points.tsv", "rb").read()
        first = data.index(b"\nround\t") + 1
        at = self.random.randrange(data.index(b"\n", first) + 1, len(data))
        open("torn/points.tsv", "wb").write(data[:at])
        had = rows("torn")
        again = subprocess.run([RAILGAUGE, "run", *SIM, "-o", "torn", "--resume"], env=environment(self.top), capture_output=True,
                               text=True, errors="replace", check=False)
        row.n += 1
        row.codes.add(again.returncode)
        row.resumable += 1
        row.resumed += again.returncode == 0 and rows("torn") == want
        row.lost += had != want[:len(had)]

    def two_writers(self):
        row = self.row("two runs in one folder")
        shutil.rmtree("two", ignore_errors=True)
        runs = [subprocess.Popen([RAILGAUGE, "run", *SIM, "-o", "two"], env=environment(self.top), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(3)]
        codes = [r.wait(timeout=60) for r in runs]
        row.n += 1
        row.codes.update(codes)
        row.resumable += 1
        row.resumed += rows("two") == self.base()
        row.wrong += codes.count(0) != 1 or any(c not in (0, 74, 78) for c in codes)

    def bomb(self):
        deep = self.random.choice((1000, 100000))
        name, text, words = self.random.choice((
            ("b.json", "[" * deep, ["show", "b.json", "tiers"]),
            ("b.json", '{"format": "railgauge-matrix", "x": ' + '{"x":' * deep, ["show", "b.json", "tiers"]),
            ("b.xml", '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + "".join(
                f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(20)) + "]><nvidia_smi_log>&u;</nvidia_smi_log>",
             ["discover", "--smi-xml", "n1=b.xml"]),
            ("b.xml", "<a>" * deep, ["discover", "--smi-xml", "n1=b.xml"]),
            ("b.yaml", "- topology: a\n  tree:\n    a: &a [x]\n" + "".join(
                f"    {chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(20)),
             ["declared", "base", "--slurm", "b.yaml"])))
        self.base()
        open(name, "w").write(text)
        row, begin = self.row("JSON, XML and YAML bombs"), time.monotonic()
        run = subprocess.run([RAILGAUGE, *words], env=environment(self.top), capture_output=True, text=True, errors="replace", timeout=60, check=False,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
        row.n += 1
        row.codes.add(run.returncode)
        row.seconds.append(time.monotonic() - begin)
        row.wrong += run.returncode not in (64, 65, 66)
        if run.returncode not in (64, 65, 66):
            self.note(row, f"{words}: exit {run.returncode} {run.stderr[-200:]}")

    def kinds(self):
        s = signal
        mpi = [lambda k=k, g=g, h=h: self.ranks(k, g, h) for k, g in (("killed", s.SIGKILL), ("segfault", s.SIGSEGV), ("stopped", s.SIGSTOP))
               for h in ("one", "rank 0", "several", "all")]
        mpi += [lambda k=k: self.hook(k) for k in ("exit", "spin", "ill")]
        mpi += [lambda w=w, g=g: self.whole_run(w, g) for w in ("launcher", "run") for g in (s.SIGKILL, s.SIGTERM)]
        mpi += [lambda: self.whole_run("run", s.SIGHUP), lambda: self.whole_run("run", s.SIGINT)]
        quick = [self.flip, self.torn, self.small_files, self.output_full, self.two_writers, self.bomb, self.flip, self.torn]
        quick += [lambda g=g: self.stopped(g) for g in (s.SIGKILL, s.SIGTERM, s.SIGINT)]
        if not os.environ.get("RG_SAN"):
            quick += [self.no_memory, self.bad_calls]
        return mpi if os.access(os.path.join(BUILD, "railgauge-probe"), os.X_OK) else [], quick

    def go(self, seconds):
        until, (mpi, quick), i = time.monotonic() + seconds, self.kinds(), 0
        while time.monotonic() < until:
            if mpi:
                mpi[i % len(mpi)]()
            for k in range(4):
                quick[(4 * i + k) % len(quick)]()
            i += 1


HEAD = ["fault", "injected", "culprit named", "innocents", "seconds (median, worst)", "points lost", "exit codes", "resumed",
        "left", "wrong"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--page")
    a = p.parse_args()
    suite = Suite(a.seed)
    page = a.page and os.path.join(os.environ.get("PWD", "."), a.page)
    print(f"# seed {a.seed}", file=sys.stderr)
    broken = False
    try:
        suite.go(a.seconds)
    except Exception:  # what was found until then is told, too
        traceback.print_exc()
        broken = True
    finally:
        os.chdir("/")
        shutil.rmtree(suite.top, ignore_errors=True)
    all_ = sorted(suite.rows.values(), key=lambda r: r.name)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(map(str, r.cells())) + " |" for r in all_ if r.n]
    asked, right = sum(r.asked for r in all_), sum(r.right for r in all_)
    deaths = [t for r in all_ if r.name.startswith(("killed", "segfault")) for t in r.seconds]
    stops = [t for r in all_ if r.name.startswith("stopped") for t in r.seconds]
    total = f"{sum(r.n for r in all_)} faults; culprit named in {right} of {asked}; {sum(r.innocent for r in all_)} innocents accused; " \
            f"{sum(r.lost for r in all_)} points lost; resumed {sum(r.resumed for r in all_)} of {sum(r.resumable for r in all_)}"
    if deaths and stops:
        total += f"; seconds to the end of the run: {statistics.median(deaths):.2f} after a death, {statistics.median(stops):.2f} " \
                 f"after a stop (medians), at most {max(deaths):.2f} and {max(stops):.2f}"
    print("\n".join(lines) + "\n\n" + total)
    if page:
        text = open(page).read()
        at, end = "<!-- faults -->\n", "<!-- end of faults -->"
        open(page, "w").write(text[:text.index(at) + len(at)] + total + ".\n\n" + "\n".join(lines) + "\n" + text[text.index(end):])
    bad = sum(r.lost + r.innocent + r.left + r.wrong + r.resumable - r.resumed for r in all_) or asked - right > max(1, 0.02 * asked) or broken
    sys.exit(1 if bad else 0)


main()
