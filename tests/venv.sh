#!/bin/sh
# venv.sh - Python packages from PyPI for a test, without touching this system's Python.
#
#   python=$(tests/venv.sh NAME PACKAGE...)      make or reuse ${RAILGAUGE_CACHE:-~/.cache/railgauge}/venv-NAME, print its Python
#
# One that was made for other packages or by another Python is made anew.  Exit 77 and one line of reason: it cannot be done
# here.
set -eu

name=$1
shift
cache=${RAILGAUGE_CACHE:-${HOME:-/root}/.cache/railgauge}
venv=$cache/venv-$name

skip() {
    echo "venv.sh: $*" >&2
    exit 77
}

command -v python3 >/dev/null || skip "python3 is not installed"
mkdir -p "$cache" 2>/dev/null || skip "$cache cannot be written"
exec 9>"$venv.lock"
flock -w 600 9 || skip "another test makes $venv"
want="$(python3 -c 'import sys; print(sys.executable, sys.version)') $*"
if [ "$(cat "$venv/made-for" 2>/dev/null)" != "$want" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >"$venv.log" 2>&1 || skip "python3 -m venv fails (package python3-venv?): $(tail -1 "$venv.log")"
    timeout 400 "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 15 "$@" >"$venv.log" 2>&1 9>&- ||
        skip "pip cannot install $*: $(tail -1 "$venv.log")"
    printf '%s\n' "$want" >"$venv/made-for"
fi
echo "$venv/bin/python"
