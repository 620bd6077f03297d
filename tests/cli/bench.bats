#!/usr/bin/env bats
# bench.bats - what the benchmark of pairs says of programs whose times are known: stand-ins, no clock.

bats_require_minimum_version 1.5.0

top=$BATS_TEST_DIRNAME/../..

# A yardstick of 1 us a message and a probe that takes SLOW times as long.
setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -p bin build/tests/bench
    cat >bin/mpirun <<'EOF'
#!/bin/bash
while [[ $1 != */* ]]; do shift; done
exec "$@"
EOF
    cat >build/tests/bench/pingpong <<'EOF'
#!/bin/bash
for ((i = 0; i < $# / 4; i++)); do echo "1.00${RANDOM:0:1}e-6"; done
EOF
    cat >build/railgauge-probe <<'EOF'
#!/bin/bash
[ "$1" = probe ] || exit 0
echo "$@" >>"$LOG"
while [ $# -gt 1 ]; do
    [ "$1" != --plan ] || plan=$2
    [ "$1" != -o ] || out=$2
    shift
done
printf 'op\tbytes\tsec\n' >"$out"
awk -F'\t' -v slow="$SLOW" 'NR > 2 {print $3 "\t" $4 "\t" 1e-6 * slow}' "$plan" >>"$out"
EOF
    chmod +x bin/mpirun build/railgauge-probe build/tests/bench/pingpong
    export PATH=$PWD/bin:$PATH LOG=$PWD/log
}

# pair SLOW - the benchmark where the probe takes SLOW times as long.
pair() {
    SLOW=$1 RG_BUILD=$PWD/build run "$top/tests/bench/pair.sh" "$PWD/out.tsv"
    echo "$output"
}

@test "as fast as the bare loop: every target is met" {
    pair 1
    [ "$status" -eq 0 ]
    [ "$(cut -f 7 out.tsv | grep -c '^met$')" -eq 5 ]
    [ "$(grep -c probe log)" -eq 9 ]
}

@test "a tenth slower: every target is missed after three times the turns, and the exit code is 1" {
    pair 1.1
    [ "$status" -eq 1 ]
    [ "$(cut -f 7 out.tsv | grep -c '^missed (')" -eq 5 ]
    [ "$(grep -c probe log)" -eq 27 ]
}

@test "a program that is not built is named" {
    rm build/tests/bench/pingpong
    pair 1
    [ "$status" -ne 0 ]
    [[ $output == *"pingpong is not built"* ]]
}

@test "OSU's programs are set beside ours, in our units and with their window" {
    printf '#!/bin/bash\necho "# OSU MPI Latency Test"; echo "${2%%:*}   0.50"\n' >bin/osu_latency
    printf '#!/bin/bash\necho "# OSU MPI Bi-Directional Bandwidth Test"; echo "${2%%:*}   20000.00"\n' >bin/osu_bibw
    chmod +x bin/osu_*
    pair 1
    [ "$status" -eq 0 ]
    grep -q $'^pair_latency, 8 B\t1\tus\t-\tosu_latency 0.50\t2\t-$' out.tsv                    # 1 us beside 0.5
    grep -q $'^pair_bibw, 1048576 B\t1049\tGB/s\t-\tosu_bibw 10\t104.9\t-$' out.tsv # 1 MiB in 1 us; both directions are 20
    ! grep -q osu_bw out.tsv
    grep -q -- '--window 64' log
}

@test "the table: a goal is missed where every turn misses, open where some do, and a run is a line of JSON" {
    . "$top/tests/bench/table.bash"
    JSON=$PWD/history.json
    for values in '9 11 10.5' '10.6 11 12' '1 2 3'; do
        table_open "$PWD/t.tsv" >/dev/null
        row 'a row of "three"' "$values" ms '<= 10'
        row 'and its peer' "$values" ms '<= 2' peer '9 10 11'
        table_close || echo "exit $?"
    done >said
    cat said
    diff <(cut -f 7 t.tsv) <(printf 'verdict\nmet\nmet\n')
    [ "$(grep -c 'missed within the noise (9 to 11)$' said)" = 1 ]
    [ "$(grep -c 'missed (10.6 to 12)$' said)" = 1 ]
    [ "$(grep -c '^exit 1$' said)" = 1 ] # the second table alone
    python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("history.json")]
assert [line["table"] for line in lines] == ["t"] * 3
row = lines[2]["rows"][1]
assert (row["name"], row["value"], row["peer"], row["ratio"], row["verdict"]) == ("and its peer", 2, "peer 10", 0.2, "met")
assert lines[0]["rows"][0]["name"] == 'a row of "three"' and lines[0]["rows"][0]["peer"] is None
PY
}

# Series of random seeds (printed): 40 % of the turns are disturbed, up to threefold, on either side.
@test "the judge: disturbed turns are no miss, a slower program is one through the same noise" {
    judge() { # SEED SLOW TURNS
        awk -v seed="$1" -v slow="$2" -v n="$3" '
            function disturbed() { return (1 + 0.02 * rand()) * (rand() < 0.4 ? 1 + 2 * rand() : 1) }
            BEGIN {srand(seed); for (i = 0; i < n; i++) print 1e-6 * disturbed(), 1e-6 * slow * disturbed()}' |
            awk -f "$top/tests/bench/judge.awk" -v way=latency -v op="<=" -v limit=1.05
    }
    false_alarms=0 seen=0 missed=0
    [ -n "${RG_ALL-}" ] || RANDOM=1
    for _ in {1..20}; do
        seed=$RANDOM
        even=$(judge $seed 1 27) slow=$(judge $seed 1.3 27)
        echo "seed $seed: $even | $slow"
        [[ $even != *missed ]] || false_alarms=$((false_alarms + 1))
        [[ $slow != *missed ]] || seen=$((seen + 1))
        [[ $slow != *met ]] || missed=$((missed + 1))
    done
    echo "$false_alarms false alarms, $missed not seen, $seen of 20 told"
    [ $false_alarms -le 1 ]
    [ $missed -le 1 ]
    [ $seen -ge 15 ]
}
