# bad.py - in tests/bad: what the programs refuse of these kinds is refused in Python, with its place and in bounded time.
import re
import sys
import time
import warnings

from railgauge import Error, Matrix, Topology, read_plan, read_points

READ = {"topology": Topology, "matrix": Matrix, "plan": lambda path: read_plan(path, 4), "points": read_points}
# cells of other tables than these are handed on as they are
ELSE = re.compile(r": nccl: |: (?!hosts|nics|endpoints)\w+\.rows\[")
# what is of several files (another plan, another topology) is a campaign's
ELSEWHERE = ("points/other-plan.tsv", "points/other-endpoints.tsv", "points/only-header.tsv")

warnings.simplefilter("ignore")
seen = wrong = 0
for line in open("manifest.tsv", encoding="utf-8"):
    path, _, code, words = line.rstrip("\n").split("\t")
    kind = path.partition("/")[0]
    if kind not in READ or code not in ("0", "65") or path in ELSEWHERE:
        continue
    if kind == "topology" and ELSE.search(words):
        continue
    seen += 1
    before = time.process_time()
    try:
        READ[kind](path)
        said = None
    except Error as why:
        said = str(why)
    if (said is None) != (code == "0") or (said and not said.startswith(path)) or time.process_time() - before > 5:
        wrong += 1
        print(f"{path}: exit {code}, here: {said}")
print(f"{seen} files")
sys.exit(wrong > 0 or seen < 200)
