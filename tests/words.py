#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""words.py - hold the comments of each folder to plain English (CONTRIBUTING.md, "How we write").

Three figures by folder: comments that begin with a pronoun, a preposition or a question; words that point at
something instead of naming it, in 100 words; sentences that begin with "Of".  And each NAME.c or NAME.h in a
comment has to exist here, or to stand in FOREIGN.  Exit code 1 above a limit.

    tests/words.py             all folders of src, topo and kernels
    tests/words.py --list DIR  the comments of a folder that count as weak, with file and line"""
import os
import re
import sys

WEAK, POINTING, LEAST = 6.0, 5.6, 20  # percent of comments; in 100 words; a smaller folder is judged with its parent
PRONOUNS = """it its itself they them their theirs he him his she her what whatever who whoever whom whose which
whichever those these ones none nobody everybody everything anybody anything somebody something such both others
another""".split()
FIRST = {*PRONOUNS, "where", "how", "why", "else"}
PREPOSITIONS = """of in into on onto at by from with within toward towards over under below above behind between beside
besides beyond among against across along around through throughout until till during despite since off near inside
outside than upon via""".split()
# Folders that are not rewritten yet, with limits of their own, which only fall: percent, in 100 words, "Of".
LATER = {}
# Clauses that name their subject after the comma, and fixed phrases of contracts.
FINE = re.compile(r"(?:in (?:order|case|practice|general)|at (?:least|most)|on (?:success|failure|error)|by default|"
                  r"with [^,.]{3,60},|in [^,.]{3,60},|on [^,.]{3,60},|at [^,.]{3,60},|from [^,.]{3,60},|"
                  r"(?:these|such|another|both|which) \w+ (?:is|are|has|have|may|must|can)\b)", re.I)
SKIP = re.compile(r"SPDX|clang-format|cppcheck|shellcheck|^-+ .* -+$|[;{}]$")
# Files of Open MPI, NCCL, Slurm, lldpd, rdma-core and libc.
FOREIGN = set("""block_record.c cuda.h graph.h jansson.h kv_writer.c mad.h mpi.h mtl.h nccl.h nvml.h pml.h ras_internal.h switch_record.c
sysexits.h topology_tree.c""".split())
NAME = re.compile(r"(?<![\w/.<-])([a-z][a-z0-9_]*\.[ch])\b(?!\w)")


def comments(path):
    """(line, text) of each comment."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for m in re.finditer(r'"(?:\\.|[^"\\])*"|/\*(.*?)\*/|((?://[^\n]*\n\s*)+)', text, re.S):
        body = m.group(1) or m.group(2)
        if body:
            plain = " ".join(re.sub(r"^[ \t]*(?:\*|//)+", "", row).strip() for row in body.split("\n")).strip()
            if len(re.findall(r"[A-Za-z]{2,}", plain)) > 2 and not SKIP.search(plain):
                yield text.count("\n", 0, m.start()) + 1, plain


def is_weak(text):
    text = re.sub(r"^[\w.]+\.[ch] - ", "", text)
    first = re.match(r"[A-Za-z']+", text)
    word = first.group(0).lower() if first else ""
    asks = re.match(r"[^.!]*?\?(?:\s|$)", text)
    return bool(asks) or (word in FIRST or word in PREPOSITIONS) and not FINE.match(text)


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    os.chdir(top)
    files = [os.path.join(d, f) for root in ("src", "topo", "kernels") for d, _, names in os.walk(root)
             for f in names if f.endswith((".c", ".h", ".cu"))]
    here = {os.path.basename(f) for f in files} | {f for _, _, names in os.walk("tests") for f in names}
    listed = sys.argv[2] if sys.argv[1:2] == ["--list"] else None
    folder, failed = {}, 0
    for path in sorted(files):
        row = folder.setdefault(os.path.dirname(path), [0, 0, 0, 0, 0])
        for line, text in comments(path):
            words = re.findall(r"[A-Za-z][A-Za-z'_-]*", text)
            weak = is_weak(text)
            row[0] += 1
            row[1] += weak
            row[2] += len(words)
            row[3] += sum(w.lower() in PRONOUNS for w in words)
            row[4] += len(re.findall(r"(?:^|[.!?:]\s+)Of ", text))
            if weak and listed == os.path.dirname(path):
                print(f"{path}:{line}: {text[:150]}")
            for name in NAME.findall(text):
                if name not in here and name not in FOREIGN:
                    print(f"{path}:{line}: there is no {name}")
                    failed = 1
    for name, (texts, weak, words, pointing, of) in sorted(folder.items()):
        share, rate = 100 * weak / max(texts, 1), 100 * pointing / max(words, 1)
        most = LATER.get(name, (WEAK, POINTING, 0))
        if texts >= LEAST and (share > most[0] or rate > most[1] or of > most[2]):
            print(f"{name}: {share:.1f} % of {texts} comments begin weakly (at most {most[0]:g}), {rate:.1f} pointing words in 100 "
                  f"(at most {most[1]:g}), {of} sentences begin with \"Of\" (at most {most[2]})")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
