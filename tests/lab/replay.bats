#!/usr/bin/env bats
# bats file_tags=nightly
# The truth for predicted messages: curves of the job's own groups are measured, then the step's messages run
# on the same links, and what was predicted must be what is measured.
#
# Compute is a wait of set length, 80 % of most steps here, and agrees by construction: a step within 5 % may hide messages
# that are off by 25 %.  So message seconds are judged by themselves, term by term: those inside layers, which the main
# stream waits for in full; those between stages, without the predicted bubble; and what is seen of the side stream, all
# its messages together, as a wait is booked on the message that is late and not on the one that kept it.  This proves
# curves, groups side by side and the overlap of two streams; it proves nothing of compute, of what a GPU's kernels and
# messages take from each other, nor of networks larger than eight hosts.
#
#   ONLY='^pp' bats tests/lab/replay.bats       only these cases

bats_require_minimum_version 1.5.0
load helper

: "${RACKS=2}" "${PER=4}" "${NIC=400}" "${TRUNK=200}" "${DELAY_US=50}" "${DEGRADE=}"

median_most=5 # per cent of the step
single_most=15
# Of message seconds.  Messages of some 30 KiB among eight ranks on cores that are shared take twice as long alone, each
# after a barrier, as one behind the other in a step.
message_median_most=30 # per cent
message_most=2.25      # times too slow or too fast
# Two groups of these cases share the trunk, and nothing keeps them in step: while one computes the other has
# the trunk for itself.  The prediction lets them meet every time, c seconds, which is the most; groups that
# drifted apart for good wait max(c/2, c - compute), which is the least (bounds of a closed queueing network:
# Denning & Buzen 1978).  What is measured must lie between the two.
turns='^(tp|ep)-mixed$'
# Printed and not judged: here the main stream's all_to_all and the side stream's messages crowd one NIC, first
# come, first served, and the prediction lets them run beside each other; it is up to 30 % too fast.
unjudged='^ep-fsdp$'

# name, then the job; ranks of a case that ends in -mixed alternate between the racks, and everything else is as
# in the case before it.
cases() {
    local dense="--model $BATS_TEST_DIRNAME/jobs/dense.json" moe="--model $BATS_TEST_DIRNAME/jobs/moe.json"
    local mixed="--order $BATS_FILE_TMPDIR/mixed"
    cat <<EOF
fsdp $dense --layout dp_shard=8
fsdp-mixed $dense --layout dp_shard=8 $mixed
zero1 $dense --layout dp_shard=8 --strategy zero1 --batch 16
hsdp $dense --layout dp_replicate=2,dp_shard=4 --strategy hsdp
hsdp-mixed $dense --layout dp_replicate=2,dp_shard=4 --strategy hsdp $mixed
tp $dense --layout tp=4,dp_shard=2 --strategy zero1 --seq 32768
tp-mixed $dense --layout tp=4,dp_shard=2 --strategy zero1 --seq 32768 $mixed
pp $dense --layout pp=2,dp_shard=4 --strategy zero1 --batch 32
pp-mixed $dense --layout pp=2,dp_shard=4 --strategy zero1 --batch 32 $mixed
pp4 $dense --layout pp=4,dp_shard=2 --strategy zero1 --batch 16
interleaved $dense --layout pp=4,dp_shard=2 --strategy zero1 --batch 16 --stages-per-rank 2
tp8 $dense --layout tp=8 --strategy zero1
tp8-mixed $dense --layout tp=8 --strategy zero1 $mixed
tp2pp2 $dense --layout tp=2,pp=2,dp_shard=2 --strategy zero1 --batch 8
ep $moe --layout dp_shard=8,ep=4 --strategy zero1 --batch 16 --seq 16384
ep-mixed $moe --layout dp_shard=8,ep=4 --strategy zero1 --batch 16 --seq 16384 $mixed
ep8 $moe --layout dp_shard=8,ep=8 --strategy fsdp --seq 16384
ep-fsdp $moe --layout dp_shard=8,ep=4 --strategy fsdp --seq 16384
EOF
}

measure_curves() {
    local name words args=()
    while read -r name words; do
        [[ ! $name =~ ${ONLY:-.} ]] || args+=(--for-job "$words")
    done < <(cases)
    railgauge run -t mpi --launch "$BATS_TEST_DIRNAME/lab.sh mpirun" -o "$campaign" --no-verdict --no-plots \
        --op pair_latency,pair_bw --epochs 1 --pair-bytes 64K -b 4K -e 1M -f 2 --max-run 300ms --time-cap 60ms --no-check \
        "${args[@]}" >"$BATS_FILE_TMPDIR/log" 2>&1 || {
        cat "$BATS_FILE_TMPDIR/log"
        return 1
    }
}

# Those that count.
judged() { awk -F'\t' -v no="$unjudged" '$1 !~ no' "$results"; }

# message_rows NAME OUT: lines of $messages: name, what, predicted and measured seconds, of what is at least 3 % of the step.
message_rows() {
    jq -r --arg n "$1" '
        .measured_s as $step
        | ([.prediction.terms[] | select(.message) | {(.label): .message.phase}] | add) as $phase
        | (if any(.terms[]; .bubble_s) then "between stages, side stream" else "side stream" end) as $others
        | [.terms[1:][] | . + {kind: (if $phase[.term] == "layer" then .term else $others end),
            predicted_s: (.predicted_s - (.bubble_s // 0)),
            measured_s: ([.measured_s - (.bubble_s // 0), 1e-6] | max)}]
        | group_by(.kind)[] | [$n, .[0].kind, (map(.predicted_s) | add), (map(.measured_s) | add)]
        | select(([.[2], .[3]] | max) >= 0.03 * $step) | @tsv' "$2" >>"$messages"
}

# replay NAME SIZE... JOB...: one line of $results: name, predicted and measured seconds, error in per cent, and
# the seconds predicted when two groups take turns in layers.  What else runs on this machine, and a lost packet,
# make a step longer and never shorter: a long one is replayed again, and the shortest of three counts.
replay() {
    local name=$1 out=$BATS_FILE_TMPDIR/$1.json again=$BATS_FILE_TMPDIR/again.json
    shift
    rm -f "$out"
    for _ in 1 2 3; do
        timeout 300 "$BATS_TEST_DIRNAME/lab.sh" mpirun railgauge-probe replay "$campaign/matrix.json" "$@" --steps 2 \
            --json -o "$again" </dev/null >/dev/null 2>"$BATS_FILE_TMPDIR/$name.err" || {
            cat "$BATS_FILE_TMPDIR/$name.err"
            return 1
        }
        if [ ! -e "$out" ] || jq -es '.[0].measured_s < .[1].measured_s' "$again" "$out" >/dev/null; then mv "$again" "$out"; fi
        ! jq -e '.measured_s <= 1.05 * .predicted_s' "$out" >/dev/null || break
    done
    jq -r --arg n "$name" '
        .prediction.compute_s as $w
        | ([.prediction.terms[] | select(.message.phase == "layer").s] | add // 0) as $c
        | [$n, .predicted_s, .measured_s, 100 * .error, .predicted_s - $c + ([$c / 2, $c - $w] | max)]
        | @tsv' "$out" >>"$results"
    message_rows "$name" "$out"
}

# replay_all [PATTERN]: the cases whose names it matches, those of ONLY.
replay_all() {
    local name words like size
    while read -r name words; do
        [[ $name =~ ${ONLY:-.} && $name =~ ${1:-.} ]] || continue
        like=$BATS_FILE_TMPDIR/${name%-mixed}.json
        size=(--compute-share 80% --seconds 1)
        [[ $name != *-mixed ]] || read -ra size < <(jq -r '"--shrink \(.shrink) --flops \(.flops)"' "$like")
        # shellcheck disable=SC2086 # words of a job
        replay "$name" "${size[@]}" $words || return 1
    done < <(cases)
}

# Message seconds that count: name, what, predicted / measured.
judged_messages() { awk -F'\t' -v no="$unjudged|$turns" '$1 !~ no { print $1 "\t" $2 "\t" $3 / $4 }' "$messages"; }

far_messages() {
    judged_messages | awk -F'\t' -v most="$message_most" '
        $3 > most || $3 < 1 / most { printf "%s: %s %.2f times what was measured\n", $1, $2, $3 }'
}

# Judged cases that are out of bounds: name, error, error of taking turns.
far_off() {
    judged | awk -F'\t' -v most="$single_most" -v turns="$turns" '
        function off(predicted) { return 100 * (predicted / $3 - 1) }
        { least = $1 ~ turns ? off($5) : $4 }
        $4 < -most || least > most { printf "%s: %+.1f %%, in turns %+.1f %%\n", $1, $4, least }'
}

# Groups side by side whose samples did not meet, as a core was away, make a curve too fast, and every replay of it is
# long then: those curves are measured once more.
again_with_other_curves() {
    local names
    names=$({ far_off; far_messages; } | cut -d: -f1 | sort -u | paste -sd'|')
    [ -n "$names" ] || return 0
    echo "# measured anew for $names" >&3
    campaign=$campaign.again
    measure_curves
    local list
    for list in "$results" "$messages"; do
        grep -vE "^($names)"$'\t' "$list" >"$list.kept" || true
        mv "$list.kept" "$list"
    done
    replay_all "^($names)\$"
}

setup_file() {
    [ -z "${RG_SAN:-}" ] || return 0
    lab usable >/dev/null 2>&1 || return 0 # each test says why it is skipped
    export LAB=rgstep$$ campaign=$BATS_FILE_TMPDIR/campaign results=$BATS_FILE_TMPDIR/results messages=$BATS_FILE_TMPDIR/messages
    export RACKS PER NIC TRUNK DELAY_US DEGRADE
    lab_alone
    printf '%s\n' 0 4 1 5 2 6 3 7 >"$BATS_FILE_TMPDIR/mixed"
    lab up
    measure_curves
    replay_all
    again_with_other_curves
}

setup() {
    [ -z "${RG_SAN:-}" ] || skip "times under sanitizers are no truth, and tests/mpi/replay.bats runs there"
    need_lab
}

teardown_file() {
    [ -z "${LAB-}" ] || lab down
}

@test "predicted steps beside measured ones" {
    awk -F'\t' -v turns="$turns" '{
        printf "# %-12s predicted %.3f s, measured %.3f s, off by %+.1f %%", $1, $2, $3, $4
        printf $1 ~ turns ? ", in turns %.3f s\n" : "\n", $5
    }' "$results" >&3
    [ "$(wc -l <"$results")" -ge 12 ] || [ -n "${ONLY-}" ]
}

@test "message seconds beside measured ones: half of them within $message_median_most %, each within x$message_most" {
    awk -F'\t' '{ printf "# %-12s %-32s predicted %.3f s, measured %.3f s, off by %+.0f %%\n", $1, $2, $3, $4, 100 * ($3 / $4 - 1) }' "$messages" >&3
    judged_messages | awk -F'\t' '{ print $3 < 1 ? 1 - $3 : $3 - 1 }' | sort -g | awk -v most="$message_median_most" '
        { v[NR] = 100 * $1 }
        END {
            median = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
            printf "median %.1f %% of %d\n", median, NR
            exit !(NR > 0 && median <= most)
        }'
    far_messages
    [ -z "$(far_messages)" ]
}

@test "half of them are within $median_most %" {
    judged | awk -F'\t' '{ print $4 < 0 ? -$4 : $4 }' | sort -g | awk -v most="$median_most" '
        { v[NR] = $1 }
        END {
            median = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
            printf "median %.1f %%\n", median
            exit !(NR > 0 && median <= most)
        }'
}

@test "all of them are within $single_most %, and groups that take turns between never and always meeting" {
    [ "$(judged | wc -l)" -gt 0 ]
    far_off
    [ -z "$(far_off)" ]
}

# Measured times closer than 2 % say nothing about which is faster.
@test "of two placements the faster one is predicted to be the faster" {
    awk -F'\t' '
        { predicted[$1] = $2; measured[$1] = $3 }
        END {
            for (name in measured) {
                other = name "-mixed"
                if (!(other in measured)) continue
                gap = measured[other] / measured[name]
                if (gap < 1.02 && gap > 1 / 1.02) continue
                pairs++
                if ((gap > 1) == (predicted[other] > predicted[name])) continue
                printf "%s: %.3f and %.3f s predicted, %.3f and %.3f s measured\n", name, predicted[name],
                    predicted[other], measured[name], measured[other]
                bad++
            }
            exit pairs < least || bad > 0
        }' least="$([ -n "${ONLY-}" ]; echo $?)" "$results"
}
