#!/usr/bin/env bats
# resume.bats - nothing is measured twice, nothing is lost, and only one campaign writes a file.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
}

# What a test that failed left.
teardown() {
    [ -z "${job-}" ] || ended "$job" || pkill --parent "$job" --signal KILL || true
}

# One pair at one size, some seconds long: half-width 0 is never reached.
long_plan() { plan "isolated pair_bw 1048576 1048576 2 0,1,2,3,4 0>1"; }
long=(--plan plan.tsv --half-width 0 --time-cap 700ms --no-retest)

@test "a second run measures only what is missing" {
    args=(-b 8 -e 64 -n 2 -w 0 --epochs 2 --op all_reduce,pair_latency --no-retest --max-run 60s)
    ranks 2 "$probe" probe "${args[@]}"
    cp points.tsv whole.tsv
    ranks 2 "$probe" probe "${args[@]}"
    cmp points.tsv whole.tsv # nothing was missing
    head -n -5 whole.tsv >points.tsv
    cp points.tsv start.tsv
    ranks 2 "$probe" probe "${args[@]}"
    cmp <(head -c "$(stat -c %s start.tsv)" points.tsv) start.tsv
    # the same keys, other times
    diff <(cut -f 1-3,10 whole.tsv | grep -v '^#' | sort) <(cut -f 1-3,10 points.tsv | grep -v '^#' | sort)
}

@test "points of another plan are refused, and its plan file stays" {
    ranks 2 "$probe" probe -b 8 -e 8 -n 1 --epochs 1 --op all_reduce
    cp plan.tsv before.tsv
    run ranks 2 "$probe" probe -b 8 -e 16 -n 1 --epochs 1 --op all_reduce
    [ "$status" -eq 65 ]
    [[ $output == *"points.tsv"*"plan"* ]]
    cmp plan.tsv before.tsv
}

# The ranks of one start are the children of its mpirun.
one_stopped() { pgrep --parent "$1" --runstates T >/dev/null; }

@test "a second writer is refused" {
    long_plan >plan.tsv
    # A rank of the first stops after two points, and goes on when the second was refused.
    RAILGAUGE_WATCH=off RAILGAUGE_FAULT=stop:1:3 "${mpirun[@]}" -n 2 "$probe" probe "${long[@]}" 3>&- &
    job=$!
    await 60 one_stopped "$job"
    run ranks 2 "$probe" probe "${long[@]}"
    pkill --parent "$job" --signal CONT
    echo "$output"
    [ "$status" -eq 74 ]
    [[ $output == *"points.tsv: "*"another process"* ]]
    wait "$job"
    [ "$(rows)" -eq 5 ]
}

stop_and_resume() {
    long_plan >plan.tsv
    "${mpirun[@]}" -n 2 "$probe" probe "${long[@]}" >out 2>&1 3>&- &
    job=$!
    await 60 has_rows 1
    case $1 in
    mpirun) kill -s "$2" "$job" ;;
    ranks) pkill --parent "$job" --signal "$2" ;;
    esac
    status=0
    wait "$job" || status=$?
    cat out
    [ "$status" -eq 75 ]
    [[ $(<out) == *"railgauge-probe: stopped by a signal; --resume measures what is missing"* ]]
    local had
    had=$(rows)
    [ "$had" -ge 1 ]
    [ "$had" -lt 5 ]
    ranks 2 "$probe" probe "${long[@]}"
    [ "$(rows)" -eq 5 ]
}

@test "SIGTERM to the ranks: exit 75 with what was measured, a second run finishes" { stop_and_resume ranks TERM; }
@test "SIGUSR1 to mpirun: the same" { stop_and_resume mpirun USR1; }

@test "a spent budget: exit 75 and the rest later" {
    long_plan >plan.tsv
    run ranks 2 "$probe" probe "${long[@]}" --budget 1s
    [ "$status" -eq 75 ]
    [[ $output == *"the budget of 1 s is spent; --resume measures what is missing"* ]]
    [ "$(rows)" -lt 5 ]
    ranks 2 "$probe" probe "${long[@]}"
    [ "$(rows)" -eq 5 ]
}

@test "railgauge run: SIGTERM ends it with 75 and --resume finishes" {
    small=(-t mpi -o dir --ranks 2 --op pair_bw -b 1M -e 1M --pair-bytes 1M --half-width 0 --time-cap 700ms --no-retest --no-plots)
    railgauge run "${small[@]}" >out 2>&1 &
    job=$!
    await 60 has_rows 1 dir/points.tsv
    kill -s TERM "$job"
    status=0
    wait "$job" || status=$?
    cat out
    [ "$status" -eq 75 ]
    [[ $(<out) == *"railgauge run: probe was cut short; --resume -o dir continues"* ]]
    had=$(rows dir/points.tsv)
    [ "$had" -ge 1 ]
    run railgauge run "${small[@]}" --resume
    [ "$(rows dir/points.tsv)" -gt "$had" ]
}

# Whoever flushes waits once, for 0.2 s, between a row and the flush that holds it; how long the machine takes for that
# is its own affair.
@test "a power cut at any moment costs the rows of the last 0.2 s" {
    [ -z "${RG_SAN:-}" ] || skip "a sanitizer's library must come first"
    [ -e "$build/fake/libpowercut.so" ] || skip "the stand-ins are not built (make check builds them)"
    POWERCUT=$PWD/cut LD_PRELOAD=$build/fake/libpowercut.so ranks 2 "$probe" probe -b 8 -e 64K -f 2 --time-cap 5ms -n 30 --no-retest \
        --op all_reduce,all_gather,pair_latency
    awk 'NR == FNR { if ($1 == "s") flushes[$2]; if ($1 == "w") writes[$2]; next }
        $1 == "w" { size[++n] = $3 }
        $1 == "p" && $2 in flushes && !($2 in writes) { waits++; longest = longest > $3 ? longest : $3; for (i = done + 1; i <= n; i++) waited[i]++ }
        $1 == "s" { s++; while (done < n && size[done + 1] <= $3) if (waited[++done] > 1) late++ }
        END {
            printf "%d writes, %d flushes, %d waits of at most %d ms; %d rows late, %d lost\n", n, s, waits, longest, late, n - done
            # nobody waits for the disk after each row: a flush has its wait before it, but for the last ones
            exit !(n > 100 && waits > 0 && s <= waits + 2 && longest == 200 && !late && n == done)
        }' cut cut
    # What was flushed last before a moment of our choice is a file that is continued.
    cp points.tsv whole.tsv
    size=$(awk '$1 == "s" { s[++n] = $3 } END { print s[int(n / 2)] }' cut)
    head -c "$size" whole.tsv >points.tsv
    ranks 2 "$probe" probe -b 8 -e 64K -f 2 --time-cap 5ms -n 30 --no-retest --op all_reduce,all_gather,pair_latency
    diff <(cut -f 1-3,10 whole.tsv | grep -v '^#' | sort) <(cut -f 1-3,10 points.tsv | grep -v '^#' | sort)
}

@test "what needs no measuring is flushed once" {
    [ -z "${RG_SAN:-}" ] || skip "a sanitizer's library must come first"
    [ -e "$build/fake/libpowercut.so" ] || skip "the stand-ins are not built (make check builds them)"
    POWERCUT=$PWD/cut LD_PRELOAD=$build/fake/libpowercut.so railgauge run -t sim --fabric hgx-h100 --racks 1 --no-plots -o sim
    [ "$(grep -c '^s' cut)" -le 2 ]
    [ "$(awk '$1 == "s" { last = $3 } END { print last }' cut)" = "$(stat -c %s sim/points.tsv)" ]
}

# Rows are in the file when the next size begins, whoever dies.
@test "kill -9 of a rank at any point loses nothing that was finished" {
    for at in 2 5 9; do
        for who in 0 1; do
            rm -f points.tsv plan.tsv
            RAILGAUGE_FAULT=kill:$who:$at run ranks 2 "$probe" probe -b 8 -e 64K -n 3 --epochs 1 --no-retest --op all_reduce
            [ "$status" -ne 0 ]
            echo "rank $who, point $at: $(rows) rows"
            [ "$(rows)" -eq $((at - 1)) ]
        done
    done
}
