#!/usr/bin/env python3
"""faults.py [--seconds N] [--seed N] [--page FILE] [--add FILE] [--ranks] - campaigns under faults, and what is left of them, as a table.

Kinds of faults take turns until the time is up.  A row: how often, how often the culprit was named and an innocent
rank instead, seconds from the fault to the end (median, worst), finished points that were lost, exit codes, how often
--resume finished the campaign, processes and folders that were left.  Exit 1 where a limit is missed: a point lost, an
innocent accused, more than one culprit in 50 (and more than one at all) not named, a process left, a wrong answer, a
campaign not resumed.  --add: rows of earlier runs are in this file, and the table is of all of them."""
import argparse
import fcntl
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback

BUILD = os.path.abspath(os.environ.get("RG_BUILD", "build"))
FAULTY = os.path.join(BUILD, "fake", "libfaulty.so")
FREEZE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi", "freeze.py")
RAILGAUGE = os.path.join(BUILD, "railgauge")
MPI = ["-t", "mpi", "--no-plots", "--no-verdict", "--no-retest", "-b", "8", "-e", "32K", "-f", "8", "--op",
       "all_reduce,pair_bw", "--pair-bytes", "64K", "--epochs", "8", "-n", "50", "-w", "1", "--hang-after", "2s"]
# For many ranks on few cores.
FEW = ["-t", "mpi", "--no-plots", "--no-verdict", "--no-retest", "-b", "8", "-e", "512", "-f", "8", "--op", "all_reduce", "--epochs", "3",
       "-n", "20", "-w", "1", "--max-run", "60s", "--hang-after", "2s"]
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


def hears_hangup(tty):
    """In the child: a suite under nohup must not hand its deafness on; tty: standard input is the terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def drain(fd):
    """What a terminal shows must be read, or its writers wait."""
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass


def listening(pid):
    """Addresses on which a process listens."""
    inodes = set()
    for fd in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            inodes.add(os.readlink(fd).strip("socket:[]"))
        except OSError:
            pass
    table = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    found = [w[1].split(":") for w in table if w[3] == "0A" and w[9] in inodes]
    return [(socket.inet_ntoa(bytes.fromhex(a)[::-1]), int(p, 16)) for a, p in found]


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
                ", ".join([str(c) for c in sorted(self.codes) if c >= 0] + ["signal"] * any(c < 0 for c in self.codes)), f"{self.resumed} of {self.resumable}" if self.resumable else "",
                self.left, self.wrong]


KINDS = {"killed": "death", "segfault": "death", "stopped": "stop", "thread": "freeze"}


def kind_of(name):
    """death, stop, freeze: of a rank of few; "": the time is another one."""
    return "" if " cores" in name or "last point" in name else KINDS.get(re.split("[, ]", name)[0], "")


def add_up(rows_, path, run):
    """Add what earlier runs found, which is in the file, and write all of it there."""
    runs = [run]
    if path and os.path.exists(path):
        old = json.load(open(path))
        runs = old["runs"] + runs
        for had in old["rows"]:
            row = rows_.setdefault(had["name"], Row(had["name"]))
            for key, value in had.items():
                if key == "codes":
                    row.codes.update(value)
                elif key != "name":
                    setattr(row, key, value + getattr(row, key))
    if path:
        json.dump({"runs": runs, "rows": [{**vars(r), "codes": sorted(r.codes)} for r in rows_.values()]}, open(path, "w"), indent=1)
    return runs


class Suite:
    def __init__(self, seed):
        self.load = []
        self.random, self.rows, self.notes, self.before_resume = random.Random(seed), {}, [], None
        self.top = tempfile.mkdtemp(prefix="rg-faults-")
        os.chdir(self.top)
        self.whole = {}

    def row(self, name):
        return self.rows.setdefault(name, Row(name))

    def note(self, row, text):
        self.notes.append(f"{row.name}: {text}")
        print(f"# {row.name}: {text}", file=sys.stderr)

    # --- ranks, launcher and run over MPI ---
    def mpi(self, name, ranks, strike, culprit=True, codes=(75,), launch=None, tty=False, few=False):
        """strike(run, launcher, pids of ranks) returns the pids that may be named, or None: nothing was struck.
        culprit: True: one of them is to be named; None: nobody is, in the words of "all N ranks"."""
        row, folder, tmp = self.row(name), "cut", tempfile.mkdtemp(dir=self.top)
        shutil.rmtree(folder, ignore_errors=True)
        words = [RAILGAUGE, "run", *(FEW if few else MPI), *(["--launch", launch] if launch else ["--ranks", str(ranks)]), "-o", folder]
        self.tty, mine = os.openpty() if tty else (-1, subprocess.DEVNULL)
        run = subprocess.Popen(words, env=environment(tmp), stdin=mine, stdout=mine, stderr=mine, start_new_session=True,
                               preexec_fn=lambda: hears_hangup(tty))
        if tty:
            os.close(mine)
            threading.Thread(target=drain, args=(self.tty,), daemon=True).start()
        least, until = self.random.randrange(1, 7 if few else 100), time.monotonic() + 30
        while len(rows(folder)) < least and run.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        family = below(run.pid)
        launcher = [p for p, n in family.items() if n.startswith(("mpirun", "orterun", "prterun"))]
        probes = sorted(p for p, n in family.items() if n.startswith("railgauge-prob"))
        if run.poll() is not None or len(probes) != ranks or not launcher:
            run.kill()
            run.wait()
            return  # it was over before
        before = rows(folder)
        try:
            victims = strike(run, launcher[0], probes)
        except ProcessLookupError:  # it ended meanwhile
            victims = None
        begin = time.monotonic()
        if victims is None:  # the fault is not possible, here or now
            run.kill()
            run.wait()
            return
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

    def steady(self, name, ranks, env=None, during=None, codes=(0,), words=()):
        """What harms no campaign: it ends as ever, and nobody is named."""
        row, tmp = self.row(name), tempfile.mkdtemp(dir=self.top)
        shutil.rmtree("steady", ignore_errors=True)
        words = [RAILGAUGE, "run", *MPI, "--ranks", str(ranks), *words, "-o", "steady"]
        with open("steady.log", "w+") as log:
            run = subprocess.Popen(words, env=environment(tmp, **(env or {})), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=log)
            until = time.monotonic() + 60
            while during and not rows("steady") and run.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            happened = not during or (run.poll() is None and during(run))
            code = run.wait(timeout=300)
            log.seek(0)
            said = log.read()
        shutil.rmtree(tmp)
        if not happened:
            return rows("steady")
        row.n += 1
        row.codes.add(code)
        row.innocent += os.path.exists("steady/verdict.json")
        if code not in codes or os.path.exists("steady/verdict.json"):
            row.wrong += code not in codes
            self.note(row, f"exit {code}: {said[-300:]}")
        return rows("steady")

    def name_of(self, row, folder, victims, culprit):
        try:
            verdict = json.load(open(os.path.join(folder, "verdict.json")))
            named, text = (verdict["culprit"] or {}).get("pid"), verdict["text"]
        except OSError:
            named, text = None, ""
        if culprit is not False:
            # Of ranks that die at once no one is the cause; one that died 0.1 s before the last is named.
            right = named in victims or (culprit is None and not named and text.startswith("all "))
            row.asked += 1
            row.right += right
            if not right:
                self.note(row, f"named {named}, not one of {victims}: {text}")
        row.innocent += named is not None and named not in victims

    def finish(self, row, words, folder, before, env):
        """What was there is there, and --resume measures the rest."""
        after = rows(folder)
        row.lost += len(before) - len([r for r, s in zip(before, after) if r == s])
        row.resumable += 1
        again = subprocess.run([*words, "--resume"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        end = rows(folder)
        # How many rows a whole campaign has depends on what time left and on suspects that are measured again: it is whole if
        # nothing is left to measure.  On a busy machine the points of one resume may make suspects of the next.
        code, last = again.returncode, end
        for _ in range(3):
            more = subprocess.run([*words, "--resume"], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            code, before_more, last = code or more.returncode, last, rows(folder)
            if last == before_more:
                break
        good = code == 0 and last == before_more and last[:len(end)] == end and end[:len(after)] == after
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
        all_ = how == "all" or (how == "several" and n == 2)
        self.mpi(f"{kind}, {how}", n, strike, culprit=not all_ or (None if kind != "stopped" else False))

    def freeze(self, kind):
        """The measuring thread of a rank stands still where it is; its watch thread lives on."""
        tracers = []

        def strike(_run, _launcher, probes):
            victim = self.random.choice(probes)
            tracers.append(subprocess.Popen([sys.executable, FREEZE, kind, str(victim)], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL))
            return [victim] if tracers[0].stdout.readline() else None
        self.mpi(f"thread {'stopped' if kind == 'stop' else 'spins'}, one", self.random.choice((2, 4, 4, 8)), strike)
        for t in tracers:
            t.communicate()

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

    def set_clock(self):
        self.steady("clock set, over MPI", 4, {"LD_PRELOAD": FAULTY, "FAULTY": self.clock()})

    def harmless(self):
        def during(run):
            family = below(run.pid)
            for _ in range(20):
                pid = self.random.choice([run.pid, *(p for p, n in family.items() if n.startswith(("mpirun", "railgauge")))])
                try:
                    os.kill(pid, self.random.choice((signal.SIGURG, signal.SIGCHLD, signal.SIGCONT, signal.SIGWINCH)))
                except ProcessLookupError:
                    pass
                time.sleep(0.01)
            return True
        self.steady("signals that mean nothing", 4, during=during)

    def strangers(self):
        """Connections to the side channel that have no token, or half a line, or too long a one."""
        def during(run):
            ports = listening(run.pid)
            for i in range(50 * len(ports)):
                talk = socket.socket()
                talk.settimeout(1)
                try:
                    talk.connect(ports[i % len(ports)])
                    talk.send(self.random.choice((b"", b"hello ", b"bye\n", b"\0" * 100, b"x" * 100000, b"beat 1 2 1 0 0 0 0 - x\n",
                                                  b"hello 0123456789abcdef0123456789abcdef 0 4 1 8000 n\nbye\n", b"GET / HTTP/1.0\r\n\r\n")))
                except OSError:
                    pass
                finally:
                    talk.close()
            return bool(ports)
        self.steady("strangers on the side channel", 4, during=during)

    def crowd(self, sig=None):
        """As many ranks as this machine may have: 32 a core."""
        n = 32 * len(os.sched_getaffinity(0))
        if sig is None:
            self.steady(f"{n} ranks on {n // 32} cores", n, words=FEW)
            return

        def strike(_run, _launcher, probes):
            victim = self.random.choice(probes)
            os.kill(victim, sig)
            return [victim]
        self.mpi(f"{'killed' if sig == signal.SIGKILL else 'stopped'}, one of {n} on {n // 32} cores", n, strike, few=True)

    def wrong_data(self):
        """A bit arrives wrong: the point says so, with rank and byte, and the others are as ever."""
        rank, row = self.random.randrange(4), self.row("data arrive wrong")
        had = row.n
        got = self.steady(row.name, 4, {"RAILGAUGE_FLIP": f"all_reduce:{rank}:{self.random.randrange(8)}:{self.random.randrange(8)}"}, codes=(2,))
        if row.n > had:
            told = [r for r in got if b"all_reduce" in r and f"rank {rank} (host".encode() in r]
            accused = [r for r in got if re.search(rb"rank (?!%d )\d+ \(host" % rank, r)]
            row.asked += 1
            row.right += bool(told)
            row.innocent += len(accused)
            if accused or not told:
                self.note(row, f"{len(told)} rows name rank {rank}, {len(accused)} another")

    def after_last(self, launcher="railgauge run", words=()):
        """A rank stops itself in MPI_Finalize."""
        n, row, tmp = 3, self.row(f"stopped after its last point, {launcher}"), tempfile.mkdtemp(dir=self.top)
        rank, env = self.random.randrange(n), environment(tmp)
        shutil.rmtree("last", ignore_errors=True)
        os.mkdir("last")
        with open("faulty.sh", "w") as f:
            f.write(f"#!/bin/sh\nFAULTY=stop={rank} LD_PRELOAD={FAULTY} exec \"$@\"\n")
        os.chmod("faulty.sh", 0o755)
        start = ["mpirun", "-n", str(n), "--oversubscribe", "--bind-to", "none", os.path.abspath("faulty.sh")]
        if "nccl" in words:
            with open("gpus.txt", "w") as f:
                f.write("devices 8\n")
            env = {**env, "LD_LIBRARY_PATH": f"{BUILD}/fake", "FAKE_GPU": os.path.abspath("gpus.txt"), "NCCL_RAS_ADDR": "127.0.0.1:1"}
        small = ["--op", "all_reduce", "-b", "8", "-e", "8", "-n", "5", "-w", "1", "--no-retest", "--hang-after", "2s", *words]
        if launcher == "railgauge run":
            command = [RAILGAUGE, "run", "-t", "mpi", *small, "--no-plots", "--launch", " ".join(start), "-o", "last"]
        else:
            command = [*start, os.path.join(BUILD, "railgauge-probe"), "probe", *small, "-q", "-o", "last/points.tsv"]
        run = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
        begin = stopped = None
        until = time.monotonic() + 100
        while run.poll() is None and time.monotonic() < until:
            family = below(run.pid)
            now = processes()
            stopped = begin or any(n.startswith("railgauge-prob") and p in now and now[p][2] == "T" for p, n in family.items())
            begin = begin or (time.monotonic() if stopped else None)
            time.sleep(0.01)
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            self.note(row, "not over after 100 s")
            row.wrong += 1
        code = run.wait()
        if begin:
            row.n += 1
            row.codes.add(code)
            row.seconds.append(time.monotonic() - begin)
            row.wrong += code != 75
            try:
                named = json.load(open("last/verdict.json"))["culprit"]["rank"]
            except (OSError, TypeError):
                named = None
            row.asked += 1
            row.right += named == rank
            row.innocent += named not in (rank, None)
            if named != rank or code != 75:
                self.note(row, f"exit {code}, named rank {named}, not {rank}")
            row.left += len(alive(family))
        shutil.rmtree(tmp)

    def daemon(self):
        """Two nodes that are host names of their own: the daemon of MPI on the second is killed."""
        with open("ssh", "w") as f:
            f.write("#!/bin/sh\nwhile :; do case $1 in -*) shift ;; *) break ;; esac; done\nexport NODE=\"$1\"\nshift\n"
                    "exec unshare --uts sh -c 'hostname \"$NODE\"; eval \"$0\"' \"$*\"\n")
        os.chmod("ssh", 0o755)
        launch = f"mpirun --mca plm_rsh_agent {os.path.abspath('ssh')} -H n1:2,n2:2 -n 4 --oversubscribe --bind-to none"

        def strike(run, _launcher, _probes):
            daemons = [p for p, name in below(run.pid).items() if name.startswith(("orted", "prted"))]
            if not daemons:
                return None
            victim = self.random.choice(daemons)
            own = [p for p, name in below(victim).items() if name.startswith("railgauge-prob")]
            os.kill(victim, signal.SIGKILL)
            return own or None
        self.mpi("node's daemon killed", 4, strike, culprit=False, launch=launch, few=True)

    def closed_terminal(self):
        def strike(_run, _launcher, _probes):
            os.close(self.tty)
            return []
        # 74: the last point was made, and its table could not be printed.
        self.mpi("terminal closed", 4, strike, culprit=False, codes=(74, 75), tty=True)

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

    def sim(self, name, prepare=None, env=None, strike=None, codes=(74,), stdout=subprocess.DEVNULL, wrap=(), happened=None,
            folder="sim"):
        """A simulated campaign, cut by something; then it is finished, and is what it is without.
        happened: True if the fault struck, also where the campaign ended well."""
        row, want = self.row(name), self.base()
        shutil.rmtree(folder, ignore_errors=True)
        words = [RAILGAUGE, "run", *SIM, "-o", folder]
        begin = time.monotonic()
        run = subprocess.Popen([*wrap, *words], env=environment(self.top, **(env or {})), stdin=subprocess.DEVNULL, stdout=stdout,
                               stderr=subprocess.DEVNULL, preexec_fn=prepare)
        if strike:
            time.sleep(self.random.uniform(0, 0.15))
            strike(run)
        code = run.wait(timeout=120)
        if code == 0 and not (happened and happened()):
            return
        row.n += 1
        row.codes.add(code)
        row.seconds.append(time.monotonic() - begin)
        had = rows(folder)
        if code == 0 and had != want:
            row.wrong += 1
            self.note(row, f"exit 0 with {len(had)} of {len(want)} rows")
        if code == 0:
            return
        if code not in codes:
            row.wrong += 1
            self.note(row, f"exit {code} {' '.join(map(str, wrap))}")
        self.resume_sim(row, words, folder, want, had)

    def resume_sim(self, row, words, folder, want, had):
        if had != want[:len(had)]:
            row.wrong += 1
            self.note(row, "rows that are not those of a whole campaign")
        row.resumable += 1
        if self.before_resume:
            self.before_resume()
        resume = ["--resume"] if os.path.exists(folder + "/topology.json") else []
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
        again = subprocess.run([*words, *resume], env=environment(self.top), capture_output=True, text=True, errors="replace", check=False)
        end = rows(folder)
        row.resumed += again.returncode == 0 and end == want
        row.lost += len(had) - len([r for r, s in zip(had, end) if r == s])
        if again.returncode or end != want:
            self.note(row, f"resume: exit {again.returncode} {again.stderr[-300:]}")
        row.left += len(glob.glob(folder + "/*.tmp.*"))

    def stopped(self, sig):
        codes = (-sig,) if sig == signal.SIGKILL else (75, -sig)
        self.sim(f"simulation {sig.name}", strike=lambda run: os.kill(run.pid, sig), codes=codes)

    def clock(self):
        return f"clock={self.random.choice((-1, 1)) * self.random.choice((1, 60, 3600, 86400, 40000000))} calls={self.random.randrange(0, 8)}"

    def set_clock_sim(self):
        self.sim("clock set", env={"LD_PRELOAD": FAULTY, "FAULTY": self.clock()}, happened=lambda: True, codes=())

    def bad_call(self, name, calls, errors, on=("", "+")):
        """The n-th of a call fails, or each from there on.  The loader's own calls come first and are spared."""
        call, error = self.random.choice(calls), self.random.choice(errors)
        first, most = {"openat": (25, 75), "close": (25, 60), "write": (1, 250)}.get(call, (1, 12))
        inject = f"inject={call}:error={error}:when={self.random.randrange(first, most)}{self.random.choice(on)}"
        # Reading may fail before anything is known of a campaign.
        self.sim(name, wrap=("strace", "-f", "-qq", "-o", "calls", "-e", f"trace={call}", "-e", inject),
                 happened=lambda: "(INJECTED)" in open("calls", errors="replace").read(),
                 codes=(64, 65, 66, 71, 74, 78, 127)) # 127: a library of the program itself could not be opened

    def disk_full(self):
        """A real file system that is full; more room for the resume."""
        os.makedirs("small", exist_ok=True)
        room = self.random.randrange(8, 120)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={4 * room}k", "faults", "small"], capture_output=True, check=False).returncode:
            return
        grow = ["mount", "-o", "remount,size=64m", "small"]
        self.before_resume = lambda: subprocess.run(grow, capture_output=True, check=True)
        try:
            self.sim("disk full", folder="small/sim")
        finally:
            self.before_resume = None
            subprocess.run(["umount", "small"], check=True)

    def ulimits(self):
        kind, value = self.random.choice(((resource.RLIMIT_NOFILE, self.random.randrange(3, 12)),
                                          (resource.RLIMIT_AS, self.random.randrange(8 << 20, 40 << 20)),
                                          (resource.RLIMIT_STACK, self.random.randrange(64 << 10, 1 << 20)),
                                          (resource.RLIMIT_NPROC, 1), (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_CORE, 0)))

        def started():
            return True
        # 127: the loader found no memory or descriptor for a library
        self.sim("limits of the shell (ulimit)", lambda: resource.setrlimit(kind, (value, value)), happened=started,
                 codes=(66, 71, 74, 78, 127))

    def closed_output(self):
        which = self.random.choice(((1,), (2,), (1, 2), (0, 1, 2)))
        self.sim("standard streams closed", lambda: [os.close(fd) for fd in which], happened=lambda: True)

    def any_signal(self):
        sig = self.random.choice([s for s in signal.valid_signals() if s not in
                                  (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)])
        self.sim("any signal at any moment", strike=lambda run: os.kill(run.pid, sig), codes=(75, -sig))

    def elsewhere(self):
        """A cut campaign in another place: other options are refused and change nothing, none resumes it."""
        row, want = self.row("resumed elsewhere, with other options"), self.base()
        for name in ("cut", "deep"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree("base", "cut")
        data = open("cut/points.tsv", "rb").read()
        open("cut/points.tsv", "wb").write(data[:self.random.randrange(data.index(b"\n", data.index(b"\nround\t") + 1) + 1, len(data))])
        os.mkdir("deep")
        os.rename("cut", "deep/campaign")
        had = rows("deep/campaign")
        other = self.random.choice((["--op", "pair_bw"], ["-e", "2M"], ["-b", "8"], ["--racks", "3"], ["--seed", "7"], ["-n", "3"],
                                    ["--fabric", "gb200-nvl72"], ["--epochs", "3"], ["-t", "mpi"]))
        words = [RAILGAUGE, "run", "-o", "deep/campaign", "--resume", "--no-plots", "-q"]
        refused = subprocess.run([*words, *other], env=environment(self.top), capture_output=True, check=False).returncode
        row.lost += rows("deep/campaign") != had
        again = subprocess.run(words, env=environment(self.top), capture_output=True, text=True, errors="replace", check=False)
        row.n += 1
        row.codes.add(refused)
        row.wrong += refused != 64
        row.resumable += 1
        row.resumed += again.returncode in (0, 1) and rows("deep/campaign") == want
        if refused != 64 or rows("deep/campaign") != want:
            self.note(row, f"{other}: exit {refused}; resume: {again.returncode} {again.stderr[-300:]}")

    def link(self):
        """Links of another user where files are written: not followed, whatever they are called."""
        row = self.row("links in output, state and session folders")
        self.base()
        for name in ("linked", "state", "victim"):
            shutil.rmtree(name, ignore_errors=True)
        os.mkdir("victim")
        open("victim/file", "w").write("kept")
        where = self.random.choice(("output", "state", "session"))
        env = environment(self.top)
        if where == "output":
            name = self.random.choice((*DATA, "verdict.json", "prediction.json", ".lock", ".owner", "report.html"))
            os.mkdir("linked")
            os.symlink(os.path.abspath("victim/file"), f"linked/{name}")
            os.chown(f"linked/{name}", 65534, 65534, follow_symlinks=False)
            words = ["run", *SIM, "-o", "linked"]
        elif where == "state":
            os.symlink(os.path.abspath("victim"), "linked")
            os.chown("linked", 65534, 65534, follow_symlinks=False)
            words = ["check", "--fabric", "hgx-h100", "--racks", "1", "--op", "pairs", "-b", "1M", "-e", "1M", "--state", "linked"]
        else:
            os.symlink(os.path.abspath("victim"), "linked")
            os.chown("linked", 65534, 65534, follow_symlinks=False)
            env = {**env, "XDG_RUNTIME_DIR": os.path.abspath("linked")}
            words = ["run", "-t", "mpi", "--launch", "mpirun --version", "--no-plots", "-o", "state"]
        run = subprocess.run([RAILGAUGE, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=False)
        row.n += 1
        row.codes.add(run.returncode)
        harmed = os.listdir("victim") != ["file"] or open("victim/file").read() != "kept"
        row.wrong += harmed or run.returncode < 0
        if harmed:
            self.note(row, f"{words}: the link was followed")
        if os.path.islink("linked"):
            os.unlink("linked")

    def small_files(self):
        most = self.random.randrange(0, 400000)
        self.sim("file may not grow (ulimit -f)", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))

    def no_memory(self):
        self.sim("an allocation fails", env={"LD_PRELOAD": f"{BUILD}/fake/liboom.so", "OOM_ON": "1",
                                             "OOM_AT": str(self.random.randrange(1, 20000))}, codes=(71, 74))

    def bad_calls(self):
        self.sim("fsync of a folder fails", env={"LD_PRELOAD": f"{BUILD}/fake/libfaulty.so", "FAULTY": "dirsync=5"})

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
        mpi += 2 * [lambda k=k: self.freeze(k) for k in ("stop", "spin")]
        if self.only_ranks:
            self.random.shuffle(mpi)
            return mpi, []
        mpi += [lambda k=k: self.hook(k) for k in ("exit", "spin", "ill")]
        mpi += [lambda w=w, g=g: self.whole_run(w, g) for w in ("launcher", "run") for g in (s.SIGKILL, s.SIGTERM)]
        mpi += [lambda: self.whole_run("run", s.SIGHUP), lambda: self.whole_run("run", s.SIGINT)]
        mpi += [self.harmless, self.strangers, self.wrong_data, self.closed_terminal]
        quick = [self.flip, self.torn, self.small_files, self.output_full, self.two_writers, self.bomb, self.elsewhere,
                 self.closed_output, self.any_signal]
        quick += [lambda g=g: self.stopped(g) for g in (s.SIGKILL, s.SIGTERM, s.SIGINT)]
        if os.geteuid() == 0:
            quick += [self.disk_full, self.link]
        if os.geteuid() == 0 and subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode == 0:
            mpi += [self.daemon] if self.long else []
        if not os.environ.get("RG_SAN"):
            quick += [self.no_memory, self.bad_calls, self.set_clock_sim, self.ulimits]
            mpi += [self.set_clock, self.after_last, lambda: self.after_last("mpirun"),
                    lambda: self.after_last("mpirun, NCCL's stand-in", ("-t", "nccl"))]
            mpi += [self.crowd, lambda: self.crowd(s.SIGKILL), lambda: self.crowd(s.SIGSTOP)] if self.long else []
        if not os.environ.get("RG_SAN") and shutil.which("strace"):
            quick += [lambda: self.bad_call("a call fails: EIO, ENOSPC, EROFS", ("write", "fsync", "fdatasync", "rename", "openat",
                                            "ftruncate", "mkdir", "unlink"), ("EIO", "ENOSPC", "EROFS")),
                      lambda: self.bad_call("NFS, Lustre: ESTALE, EIO at close", ("write", "fsync", "fdatasync", "rename", "openat",
                                            "close"), ("ESTALE", "EIO")),
                      lambda: self.bad_call("fsync fails (EIO)", ("fsync", "fdatasync"), ("EIO",)),
                      lambda: self.bad_call("quota: EDQUOT at write and close", ("write", "close"), ("EDQUOT",))]
        self.random.shuffle(mpi)
        self.random.shuffle(quick)
        return mpi if os.access(os.path.join(BUILD, "railgauge-probe"), os.X_OK) else [], quick

    def go(self, seconds, only_ranks=False):
        self.only_ranks = only_ranks
        # Many ranks take long to start: not in the sample of each day.
        self.long = seconds > 100
        each = 10 if self.long else 4  # simulated campaigns for each of MPI, which takes ten times as long
        until, (mpi, quick), i = time.monotonic() + seconds, self.kinds(), 0
        while time.monotonic() < until:
            self.load.append(os.getloadavg()[0])
            if mpi:
                mpi[i % len(mpi)]()
            for k in range(each if quick else 0):
                quick[(each * i + k) % len(quick)]()
            i += 1


HEAD = ["fault", "injected", "culprit named", "innocents", "seconds (median, worst)", "points lost", "exit codes", "resumed",
        "left", "wrong"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--page")
    p.add_argument("--add")
    p.add_argument("--ranks", action="store_true", help="only ranks that die, stop or freeze, for their times")
    a = p.parse_args()
    page, add = (f and os.path.abspath(f) for f in (a.page, a.add))
    suite = Suite(a.seed)
    print(f"# seed {a.seed}", file=sys.stderr)
    broken = False
    try:
        suite.go(a.seconds, a.ranks)
    except Exception:  # what was found until then is told, too
        traceback.print_exc()
        broken = True
    finally:
        os.chdir("/")
        shutil.rmtree(suite.top, ignore_errors=True)
    load = statistics.median(suite.load or [0])
    runs = add_up(suite.rows, add, {"seed": a.seed, "seconds": a.seconds, "load": round(load, 1)})
    all_ = sorted(suite.rows.values(), key=lambda r: r.name)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(map(str, r.cells())) + " |" for r in all_ if r.n]
    asked, right = sum(r.asked for r in all_), sum(r.right for r in all_)
    took = {kind: [t for r in all_ if kind_of(r.name) == kind for t in r.seconds] for kind in ("death", "stop", "freeze")}
    total = f"{sum(r.n for r in all_)} faults; culprit named in {right} of {asked}; {sum(r.innocent for r in all_)} innocents accused; " \
            f"{sum(r.lost for r in all_)} points lost; resumed {sum(r.resumed for r in all_)} of {sum(r.resumable for r in all_)}"
    if any(took.values()):
        total += "; seconds to the end of the run (median, 9 of 10 within, worst): " + ", ".join(
            f"{statistics.median(t):.2f}, {sorted(t)[9 * len(t) // 10]:.2f}, {max(t):.2f} after a {kind}" for kind, t in took.items() if t)
    loads = ", ".join(f"{r['load']:g}" for r in runs)
    total += f"; {len(runs)} run{'s' * (len(runs) > 1)} of {sum(r['seconds'] for r in runs) / 60:.0f} minutes in all " \
             f"(seed{'s' * (len(runs) > 1)} {', '.join(str(r['seed']) for r in runs)}), median load {loads} on {os.cpu_count()} cores"
    print("\n".join(lines) + "\n\n" + total)
    if page:
        text = open(page).read()
        at, end = "<!-- faults -->\n", "<!-- end of faults -->"
        open(page, "w").write(text[:text.index(at) + len(at)] + total + ".\n\n" + "\n".join(lines) + "\n" + text[text.index(end):])
    bad = sum(r.lost + r.innocent + r.left + r.wrong + r.resumable - r.resumed for r in all_) or asked - right > max(1, 0.02 * asked) or broken
    sys.exit(1 if bad else 0)


main()
