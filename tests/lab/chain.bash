# chain.bash - the chain in a lab, and what its cost matrix must say; shared by the tests that differ in
# parameters only.  Parameters in the environment win over a test's own:
#
#   RACKS=4 PER=3 NIC=600 TRUNK=200 DELAY_US=80 DEGRADE='7:150' bats tests/lab/two_racks.bats
#
# shellcheck shell=bash disable=SC2016,SC2154 # jq programs; parameters

load helper

bandwidth_tolerance=0.03
delay_tolerance_us=40

# chain_in_lab: discover, plan, probe and fit in a lab of the parameters; leaves truth.tsv, matrix.json and
# costs.tsv (src dst seconds-of-8-bytes seconds-of-64-MiB) in $campaign.
chain_in_lab() {
    export LAB=rgchain$$ campaign=$BATS_FILE_TMPDIR/campaign
    export RACKS PER NIC TRUNK DELAY_US DEGRADE
    lab_alone
    lab up
    railgauge run -t mpi --launch "$BATS_TEST_DIRNAME/lab.sh mpirun" -o "$campaign" --no-verdict --no-plots \
        --op pair_latency,pair_bw --pair-bytes 64K --epochs 3 -f 4 -e 1M --time-cap 30ms \
        >"$BATS_FILE_TMPDIR/log" 2>&1 || {
        cat "$BATS_FILE_TMPDIR/log"
        return 1
    }
    lab truth | sed 1d >"$campaign/truth.tsv"
    pair_costs >"$campaign/costs.tsv"
}

# Every pair in the order of the truth.
pair_costs() { paste <(cut -f1,2 "$campaign/truth.tsv") <(seconds 8) <(seconds 64M); }

seconds() {
    railgauge export --format tsv --per endpoint --bytes "$1" "$campaign/matrix.json" | awk 'NR > 1 { print $5 / 1e6 }'
}

lab_gone() { [ -z "${LAB-}" ] || lab down; }

matrix() { jq -r "$1" "$campaign/matrix.json"; }

# Each endpoint's rack, from runs [count, first, step].
racks_are_recovered() {
    local found truth i
    found=$(matrix '[.places.levels.rack.at[] | . as [$n, $v, $step] | range($n)
                     | $v + . * ($step // 0)] | map(tostring) | join(" ")')
    truth=$(for ((i = 0; i < RACKS * PER; i++)); do echo $((i / PER)); done | paste -sd' ')
    echo "racks found: $found"
    echo "truth:       $truth"
    [ "$found" = "$truth" ]
    [ "$(matrix .places.levels.rack.source)" = measured ]
}

bandwidths_are_true() {
    paste "$campaign/truth.tsv" "$campaign/costs.tsv" | awk -v most="$bandwidth_tolerance" '{
        mbit = 64 * 1048576 * 8e-6 / $8
        off = mbit / $3 - 1
        if (off < -most || off > most) {
            printf "pair %s>%s: %.1f Mbit/s, truth %.1f (%+.1f %%)\n", $1, $2, mbit, $3, 100 * off
            bad++
        }
    }
    END { exit NR == 0 || bad > 0 }'
}

# Against the median pair of one rack: what the machine itself takes is in both.
delays_are_true() {
    local near
    near=$(paste "$campaign/truth.tsv" "$campaign/costs.tsv" |
        awk -v per="$PER" 'int($1 / per) == int($2 / per) {print $7 * 1e6}' | sort -g |
        awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}')
    paste "$campaign/truth.tsv" "$campaign/costs.tsv" |
        awk -v near="$near" -v most="$delay_tolerance_us" '{
            off = $7 * 1e6 - near - $4
            if (off < -most || off > most) {
                printf "pair %s>%s: %.1f us, %.1f near, injected %s\n", $1, $2, $7 * 1e6, near, $4
                bad++
            }
        }
        END { exit NR == 0 || bad > 0 }'
}

# Every exception names a degraded host or its endpoint (one a host, so that their ids are equal), and
# every host that is slower than what it is measured against is named.
degraded_nics_are_named() {
    local named degraded
    matrix '.exceptions[] | "\(.part) \(.a) factor \(.factor): \(.why)"'
    [ "$(matrix '[.exceptions[] | select(.part != "endpoint" and .part != "host")] | length')" -eq 0 ]
    named=$(matrix '.exceptions[].a' | sort -nu | paste -sd' ')
    degraded=$(for d in $DEGRADE; do echo "${d%:*}"; done | sort -nu | paste -sd' ')
    [ "$named" = "$degraded" ]
}

# Only where two hosts can ask more of a trunk than it has.
contention_is_told_apart() {
    matrix '.findings[] | "\(.kind): \(.text)"'
    matrix '.findings[] | select(.kind == "contention") | .text' |
        grep -E '^rack-[0-9]+ and rack-[0-9]+: .* a shared trunk, not a bad link$'
}
