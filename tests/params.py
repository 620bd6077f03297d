#!/usr/bin/env python3
"""params.py - functions with seven parameters or more, err included: at most MOST, a number that only falls.  Group what
travels together into a struct that is a noun, instead of adding a parameter.

    params.py          test the limit
    params.py --list   print the functions
"""

import re
import subprocess
import sys

MOST = 87
MANY = 7
DEFINITION = re.compile(r"^(?:[a-z_][\w *]*?[ *])(\w+)\(((?:[^;{}()]|\([^()]*\))*)\)\s*\{", re.M)


def parameters(text):
    depth = count = 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        count += c == "," and depth == 0
    return count + 1


files = subprocess.check_output(["git", "ls-files", "src/*.[ch]", "topo/*.[ch]", "kernels/*.[ch]"], text=True).split()
found = []
for name in files:
    with open(name, encoding="utf-8") as f:
        code = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    found += [(parameters(m[2]), name, m[1]) for m in DEFINITION.finditer(code) if parameters(m[2]) >= MANY]
if sys.argv[1:] == ["--list"]:
    for row in sorted(found, reverse=True):
        print(*row)
elif len(found) > MOST:
    sys.exit(f"params: {len(found)} functions have {MANY} parameters or more, {MOST} are allowed (--list)")
