#!/usr/bin/env bats
# completion.bats - the scripts of railgauge completion, asked by the shells themselves.

bats_require_minimum_version 1.5.0

need() { command -v "$1" >/dev/null || skip "no $1 here (package $1)"; }

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# tab WORD... - what bash offers for the last word.
tab() {
    bash -c 'source <(railgauge completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _railgauge; printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sort
}

@test "bash: commands, options, and the names that options and words know" {
    [ "$(tab railgauge pre)" = predict ]
    [ "$(tab railgauge '' | grep -vc -- --)" -eq "$(railgauge --help | grep -c '^  [a-z]')" ]
    [ "$(tab railgauge show --j)" = --json ]
    [ "$(tab railgauge predict --model llama3.1-4)" = llama3.1-405b ]
    [ "$(tab railgauge predict --model = llama3.1-4)" = llama3.1-405b ]
    [ "$(tab railgauge predict -m '' | wc -l)" -eq "$(ls "$BATS_TEST_DIRNAME/../../jobs/training/models" | wc -l)" ]
    [ "$(tab railgauge run --fabric hgx-h2 | xargs)" = "hgx-h20 hgx-h200" ]
    [ "$(tab railgauge export --format '')" = "$(railgauge export --list-formats | awk '{print $1}' | sort)" ]
    [ "$(tab railgauge export --per '' | xargs)" = "endpoint host" ]
    [ "$(tab railgauge run -t s)" = sim ]
    [ "$(tab railgauge place --write rank)" = rankfile ]
    [ "$(tab railgauge cost --op all_re)" = all_reduce ]
    [ "$(tab railgauge predict --spread '' | xargs)" = "block cyclic" ]
    [ "$(tab railgauge accept --exit-style n)" = nagios ]
    [ "$(tab railgauge completion z)" = zsh ]
    mkdir "tiers of last month"
    [ "$(tab railgauge show c ti)" = "$(printf 'tiers\ntiers of last month')" ]
    # A value that nobody knows is left to bash, which takes files.
    [ -z "$(tab railgauge fit --output x)" ]
    [ -z "$(tab railgauge nosuch x)" ]
}

@test "bash: each option of each command's --help is offered, and no other" {
    for c in $(railgauge --help | awk '/^  [a-z]/ {print $1}'); do
        railgauge "$c" --help=all | sed -n '/^Examples:/q;p' | grep -E '^ {2,6}(-., )?--[a-z]' | sed -E 's/^ *//; s/  .*//' |
            grep -oE -- '--[a-z0-9_-]+' | grep -vE '^--(help|usage|version)$' | sort -u >said
        tab railgauge "$c" -- | grep -vE '^--(help|usage|version)$' | sort -u >offered
        diff said offered || { echo "$c"; false; }
    done
}

@test "bash: railgauge-calibrate has a script of its own" {
    calibrate() { bash -c 'source <(railgauge-calibrate completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _railgauge_calibrate; printf "%s\n" "${COMPREPLY[@]}"' - railgauge-calibrate "$@"; }
    [ "$(calibrate sc)" = score ]
    [ "$(calibrate score --leave-one-out s)" = source ]
    [ "$(calibrate claims --mark)" = --markdown ]
    calibrate claims '' | grep -qx mlperf-v6
    railgauge-calibrate completion zsh | grep -q '^#compdef railgauge-calibrate$'
    railgauge-calibrate completion fish | grep -q "^complete -c railgauge-calibrate -f -n __fish_use_subcommand -a refit "
    [ -z "$(tab railgauge calib)" ]
}

@test "bash takes the script whole, and shellcheck has no remark" {
    railgauge completion bash >s
    bash -n s
    grep -q '^complete -o default -F _railgauge railgauge$' s
    need shellcheck
    shellcheck -s bash s
}

@test "fish: commands, options, names" {
    need fish
    railgauge completion fish >s
    fish_tab() { HOME=$PWD fish -c "source s; complete -C '$1'" | cut -f1; }
    [ "$(fish_tab 'railgauge expo')" = export ]
    [ "$(fish_tab 'railgauge show --js')" = --json ]
    [ "$(fish_tab 'railgauge export -f openm')" = openmetrics ]
    [ "$(fish_tab 'railgauge export --format=openm')" = --format=openmetrics ]
    [ "$(fish_tab 'railgauge predict --model llama3.1-4')" = llama3.1-405b ]
    [ "$(fish_tab 'railgauge show c coll')" = collectives ]
    [ "$(fish_tab 'railgauge predict --spread cy')" = cyclic ]
    ! fish_tab 'railgauge show --' | grep -q -- --format
}

# What stands on the line of an interactive zsh after a tab.
zsh_tab() {
    python3 - "$1" <<'PY'
import os, pty, re, select, sys, time
def until(fd, pattern, seconds=30):
    text, end = "", time.monotonic() + seconds
    while not re.search(pattern, text):
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit("no %r in %r" % (pattern, text))
        text += os.read(fd, 4096).decode(errors="replace")
    return text
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="vt100", COLUMNS="200", HOME=os.getcwd())
    os.execvp("zsh", ["zsh", "-f", "-i"])
os.write(fd, b"autoload -Uz compinit; compinit -u -d ./dump; source ./s; setopt no_beep; bindkey '^I' complete-word; PS1=G''O:\n")
until(fd, "GO:") # zsh reads the line itself from here on
os.write(fd, sys.argv[1].encode())
until(fd, re.escape(sys.argv[1][-4:]))
os.write(fd, b"\t") # alone: zsh does not complete while more is typed
until(fd, ".")
os.write(fd, b"\x01echo '\x05' END''ED\n")
print(re.findall(r"([^\r\n]*) ENDED", until(fd, r"\n.*ENDED"))[-1].rstrip())
os.write(fd, b"exit\n")
os.waitpid(pid, 0)
PY
}

@test "zsh: commands, options, names, in an interactive shell" {
    need zsh
    railgauge completion zsh >s
    zsh -n s
    while IFS='|' read -r typed want; do
        got=$(zsh_tab "$typed")
        [ "$got" = "$want" ] || { echo "$typed: $got"; false; }
    done <<EOF
railgauge expo|railgauge export
railgauge show --js|railgauge show --json
railgauge export -f openm|railgauge export -f openmetrics
railgauge predict --fabric=rtxp|railgauge predict --fabric=rtxpro6000-100gbe
railgauge show c coll|railgauge show c collectives
railgauge predict --spread cy|railgauge predict --spread cyclic
EOF
}

@test "another shell is refused with the known ones" {
    run --separate-stderr railgauge completion tcsh
    [ "$status" -eq 64 ]
    [[ $stderr == 'railgauge completion: no shell "tcsh"; known are bash, zsh and fish'* ]]
    run --separate-stderr railgauge completion
    [ "$status" -eq 64 ]
    [[ $stderr == "railgauge completion: which shell: bash, zsh or fish"* ]]
}
