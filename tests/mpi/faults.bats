#!/usr/bin/env bats
# faults.bats - what fails on one rank ends or marks it on all, said once, with one exit code, in time.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
}

# mpirun's own words around a rank's exit code.
finalized() { [[ $output != *'without calling "finalize"'* ]]; }

@test "wrong usage is said once and exits with 64" {
    run ranks 4 "$probe" probe --bogus
    [ "$status" -eq 64 ]
    [ "$(grep -c "railgauge-probe probe: unrecognized option '--bogus'" <<<"$output")" -eq 1 ]
    finalized
    run ranks 2 "$probe" probe -e x
    [ "$status" -eq 64 ]
    [[ $output == *'--maxbytes: "x" is not a size such as 8, 32K, 1M or 8G'* ]]
    run ranks 2 "$probe" frobnicate
    [ "$status" -eq 64 ]
    [[ $output == *'railgauge-probe: no command "frobnicate"; the commands are discover, probe and replay'* ]]
}

@test "the program lists its commands and says its version without one" {
    run -0 "$probe" --help
    [[ $output == "Usage: railgauge-probe COMMAND [OPTION...]"*"  discover "*"  probe "*"  replay "* ]]
    run -0 "$probe" --version
    [[ $output == "railgauge-probe $(railgauge --version | awk '{ print $2 }')"*"GPU kernels: "* ]]
}

@test "--help is printed once and is no error" {
    run ranks 2 "$probe" probe --help
    [ "$status" -eq 0 ]
    [ "$(grep -c '^Usage: railgauge-probe probe' <<<"$output")" -eq 1 ]
    [[ $output == *"mpirun -n 8 railgauge-probe probe --exact"* ]]
    finalized
}

@test "a plan that is not there: 66, named, nobody hangs" {
    run ranks 4 "$probe" probe --plan nothere.tsv
    [ "$status" -eq 66 ]
    [ "$(grep -c 'railgauge-probe: nothere.tsv: No such file or directory' <<<"$output")" -eq 1 ]
    finalized
}

@test "a topology of another number of ranks is refused with both numbers" {
    ranks 2 "$probe" discover -q -o two.json
    run ranks 3 "$probe" probe --topology two.json
    [ "$status" -eq 78 ]
    [[ $output == *"two.json has 2 endpoints, but 3 ranks run: start one rank an endpoint"* ]]
    finalized
}

@test "a plan of more ranks than run is refused" {
    plan "collective all_reduce 8 8 2 0 0-7" >plan.tsv
    run ranks 2 "$probe" probe --plan plan.tsv
    [ "$status" -eq 65 ]
    [[ $output == *"plan.tsv:3: "* ]]
    finalized
}

@test "sim is not for ranks" {
    run ranks 2 "$probe" probe --transport sim
    [ "$status" -eq 64 ]
    [[ $output == *"transport sim needs no ranks: use railgauge probe --transport sim"* ]]
    run ranks 2 "$probe" probe --transport carrier-pigeon
    [ "$status" -eq 64 ]
    [[ $output == *'no transport "carrier-pigeon"; this program has mpi, nccl, copy and verbs'* ]]
}

@test "more memory than there is becomes a failed point with its reason, not a killed job" {
    plan "collective all_reduce 1125899906842624 1125899906842624 2 0 0-1" \
        "collective all_reduce 8 8 2 0 0-1" >plan.tsv
    run ranks 2 "$probe" probe --plan plan.tsv -n 1
    echo "$output"
    [ "$status" -eq 2 ]
    [ "$(column stop points.tsv | xargs)" = "failed count" ]
    [[ $(column note points.tsv | head -n 1) == "rank 0 (host $(hostname)): two buffers of 1.00 PiB for 2 ranks here, but "*" is free" ]]
}

@test "one rank that cannot allocate: the group fails together and the rest is measured" {
    [ -z "${RG_SAN:-}" ] || skip "sanitizers do not run under ulimit -v"
    need_memory 6 # two buffers on each of two ranks
    plan "collective all_reduce 1073741824 1073741824 2 0 0-1" "collective all_reduce 8 8 2 0 0-2" >plan.tsv
    cat >limited <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" != 1 ] || ulimit -v 2000000
exec "$@"
END
    chmod +x limited
    run ranks 3 ./limited "$probe" probe --plan plan.tsv -n 1
    echo "$output"
    [ "$status" -eq 2 ]
    [ "$(column stop points.tsv | xargs)" = "failed count" ]
    [ "$(column note points.tsv | head -n 1)" = "rank 1 (host $(hostname)): cannot allocate two buffers of 1.00 GiB" ]
    [[ $output == *"points.tsv: data were wrong in 0 of 2 points and 1 failed; first: rank 1 "* ]]
}

@test "a minute of campaigns under faults: no point is lost, no innocent named, everything is resumed" {
    [ -z "${RG_SAN-}" ] || skip "make SAN=... check-faults"
    command -v python3 >/dev/null || skip "python3 is not installed"
    seed=(--seed 1)
    [ -z "${RG_ALL-}" ] || seed=()
    RG_BUILD=$build run timeout 600 python3 "$BATS_TEST_DIRNAME/../faults.py" --seconds 50 "${seed[@]}"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "the fault suite finds what it looks for: a lost row, an innocent, a campaign that is not resumed" {
    command -v python3 >/dev/null || skip "python3 is not installed"
    mkdir -p cheat
    # A run that drops a row when it resumes.
    cat >cheat/railgauge <<END
#!/bin/bash
$build/railgauge "\$@" || exit
[[ " \$* " != *" --resume "* || ! -s torn/points.tsv ]] || sed -i '\$d' torn/points.tsv
END
    chmod +x cheat/railgauge
    RG_BUILD=$PWD/cheat run timeout 300 python3 "$BATS_TEST_DIRNAME/../faults.py" --seconds 20 --seed 1
    [ "$status" -eq 1 ]
    [[ $output == *"points.tsv torn anywhere | "*" | 0 of "* ]]
}
