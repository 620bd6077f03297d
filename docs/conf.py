# conf.py - the pages as a site that needs no server and loads nothing from elsewhere: make site.
#
# Sphinx, MyST and furo from PyPI (tests/venv.sh), formulas as MathML.  The pages of the commands are made of the rows that
# `railgauge COMMAND --help=tsv` prints, which make the manual pages too.
import os
import subprocess
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

project = "railgauge"
author = "the railgauge authors"
release = version = os.environ["RAILGAUGE_VERSION"]
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"railgauge {release}"
html_show_sphinx = False
html_math_renderer = "mathml"
# Links to files of the sources that are no pages stay links.
suppress_warnings = ["myst.xref_missing"]


def mathml(self, node):
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    self.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def said(program, *words):
    return subprocess.run([os.environ["RAILGAUGE_BUILD"] + "/" + program, *words], check=True, capture_output=True, text=True).stdout


def safe(text):
    """Text of a row as MyST, which would read <, * and _ as marks."""
    for mark in "\\<>*_`|#$[]":
        text = text.replace(mark, "\\" + mark)
    return text[:1].upper() + text[1:]


def page(program, command, purpose):
    lines = [f"# {program} {command}", "", safe(purpose) + "."]
    group = ""
    for row in (line.split("\t") for line in said(program, command, "--help=tsv").splitlines()):
        if row[0] == "usage":
            lines += ["", "```text", f"{program} {command} [option ...] " + row[1].replace("\\n", "\n"), "```"]
        elif row[0] == "headline":
            group = row[6]
            lines += ["", "## " + safe(group)]
        elif row[0] == "option":
            if row[1] == "own" and group != "own":
                group = "own"
                lines += ["", "## Options"]
            if row[1] == "every" and group != "every":
                group = "every"
                lines += ["", "## Every command"]
            letter = f"-{row[3]}, " if row[3] else ""
            word = (f"[={row[4]}]" if row[5] else f" {row[4]}") if row[4] else ""
            lines += ["", f"`{letter}--{row[2]}{word}`", ": " + safe(row[6]) + "."]
        elif row[0] == "exit":
            lines += ["", "## Exit status", "", safe(row[1])]
        elif row[0] == "example":
            if group != "example":
                group = "example"
                lines += ["", "## Examples"]
            lines += ["", safe(row[2]) + ":", "", "```sh", row[3], "```"]
    return "\n".join(lines) + "\n"


def commands(app):
    target = Path(app.srcdir, "commands")
    target.mkdir(exist_ok=True)
    for program in ("railgauge", "railgauge-calibrate"):
        for line in said(program, "--help").splitlines():
            words = line.split(None, 1)
            if line.startswith("  ") and line[2:3].isalpha() and len(words) == 2 and (program, words[0]) != ("railgauge-calibrate", "completion"):
                Path(target, f"{program}-{words[0]}.md").write_text(page(program, *words))


def setup(app):
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("builder-inited", commands, priority=1)
