#!/usr/bin/env bats
# cost.bats - railgauge cost: one transfer or one collective, with the source of the number.

bats_require_minimum_version 1.5.0
load rejects
matrix=tests/golden/matrix.json

@test "a pair by host and index, with the curve it comes from" {
    run railgauge cost $matrix n00:0 n00:1 8
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "1.00 us"* ]]
    [ "${lines[1]}" = "  from: measured pair of tier shm" ]
}

@test "a slow part is named" {
    run railgauge cost $matrix n05:0 n04:0 1G
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "  from: pair of tier rack, extrapolated from 16 B measured; 30 % of normal by host n05" ]
    [[ ${lines[2]} == *"this is 30 % of that speed" ]]
    run railgauge cost $matrix 10 8 1G --json
    [ "$(jq -r .slowed_by <<<"$output")" = "host n05" ]
}

@test "a slow NIC makes no group faster that does not use it, and the answer says so" {
    cd "$BATS_TEST_TMPDIR"
    for x in "slow 8 --fault=slow-nic=17:0.6" "well 9"; do
        read -r name seed fault <<<"$x"
        railgauge run -t sim --fabric gb200-nvl72 --racks 3 --noise 3% --sim-seed "$seed" ${fault:+"$fault"} \
            --op pairs,sendrecv,all_to_all -o "$name" --no-plots >/dev/null 2>&1 || [ "$name" = slow ]
    done
    [ "$(jq '.exceptions | length' slow/matrix.json)" -eq 1 ]
    for op in sendrecv all_to_all; do # 72-215: healthy; 0-143: the NIC lies inside
        for group in 72-215 0-143; do
            jq -n --argjson a "$(railgauge cost slow/matrix.json $op $group 4G --json)" \
                --argjson b "$(railgauge cost well/matrix.json $op $group 4G --json)" '$a.seconds / $b.seconds'
        done
    done >ratios
    jq -es '.[:3] | all(. > 0.95 and . < 1.05)' ratios
    jq -es '.[3] > 1.5 and .[3] < 1.8' ratios
    run railgauge cost slow/matrix.json sendrecv 0-143 4G
    [[ ${lines[1]} == *"as measured: its schedule does not cross NIC mlx5_1 of r00n04 (GPU 1)" ]]
    run railgauge cost slow/matrix.json all_to_all 0-143 4G
    [[ ${lines[1]} == *"without its slow part; "*" % of normal by NIC mlx5_1 of r00n04 (GPU 1)" ]]
}

# 64 GPUs of one rack, and 32 of each of two; the ladder ends at 16 MiB.
@test "beyond the ladder one rule holds for all groups, and the answer says so" {
    cd "$BATS_TEST_TMPDIR"
    railgauge run -t sim --fabric gb200-nvl72 --racks 2 --noise 4% --op pairs,all_gather -e 16M --epochs 2 -o c --no-plots >/dev/null 2>&1
    one() { railgauge cost c/matrix.json all_gather 0-63 "$1" --json; }
    two() { railgauge cost c/matrix.json all_gather 0-31,72-103 "$1" --json; }
    for bytes in 64M 1G 4G 32G; do
        [ "$(jq -n --argjson a "$(one $bytes)" --argjson b "$(two $bytes)" '$a.seconds <= $b.seconds')" = true ]
    done
    [ "$(one 16M | jq .extrapolated_from_bytes)" = null ]
    [ "$(one 4G | jq '.extrapolated_from_bytes == 16777248 or .extrapolated_from_bytes == 16777216')" = true ]
    [[ $(one 4G | jq -r .source) == *", extrapolated from 16 MiB measured" ]]
    [ "$(one 4G | jq -r .basis)" = fitted ]
    # What all_gather takes there when it is measured: 7.0 ms.
    [ "$(one 4G | jq '.low_seconds < 7e-3 and 7e-3 < .high_seconds and .seconds > 5.5e-3 and .seconds < 9e-3')" = true ]
    [ "$(jq -n --argjson a "$(one 64M)" --argjson b "$(one 4G)" '$a.high_seconds / $a.low_seconds < $b.high_seconds / $b.low_seconds')" = true ]
    railgauge place c/matrix.json --model llama3.1-405b --layout dp_shard=64 --gpus 64 --json >placed.json || [ $? -eq 1 ] # memory
    [ "$(jq '.bound_s <= .step_s and .step_s <= .default_s and .step_s <= .random_s' placed.json)" = true ]
}

@test "collectives: words or options, the same answer" {
    run railgauge cost $matrix all_gather 0-7 64M
    [ "$status" -eq 0 ]
    first=$output
    run railgauge cost $matrix --op all_gather --ranks 0,1-7 --bytes 64M
    [ "$output" = "$first" ]
    [[ $first == *"from: modelled: ring over shm inside and fabric between 4 domains, 2 NICs a domain"* ]]
}

@test "a preset answers without a file" {
    run railgauge cost --fabric gb200-nvl72 --racks 2 r00n00:0 r01n00:0 1G --json
    [ "$status" -eq 0 ]
    [ "$(jq -r .basis <<<"$output")" = preset ]
    [ "$(jq '.algbw_Bps > 4e10 and .algbw_Bps < 6e10' <<<"$output")" = true ]
}

refused() { rejects cost 64 "$@"; }

@test "what is missing or wrong is said" {
    refused 'give a matrix file or --fabric'
    refused 'after the matrix: SRC DST BYTES, or OP RANKS BYTES' $matrix n00:0
    refused 'no endpoint n99:0 here' $matrix n99:0 n00:0 8
        refused "16 is outside 0..15" $matrix 16 0 8
    refused 'no collective "all_gossip"; known: all_gather' $matrix --op all_gossip --bytes 8
    refused '--bytes is missing' $matrix --op all_gather
    refused 'ranks "3": a collective needs two' $matrix all_gather 3 8
    refused 'ranks "0-99"' $matrix all_gather 0-99 8
    refused 'more ranks than the 16 endpoints' $matrix all_gather 0-15,0-15 8
    refused 'ranks "0,0": endpoint 0 is there twice' $matrix all_gather 0,0 8
    refused 'ranks "0-3,2": endpoint 2 is there twice' $matrix all_gather 0-3,2 8
    refused '8Q' $matrix 0 1 8Q
}

@test "expert-parallel kernels have rates of their own, or say that they are all_to_all" {
    run railgauge cost --fabric gb200-nvl72 ep_dispatch 0-7 322M --json
    [ "$status" -eq 0 ]
    [ "$(jq -r .op <<<"$output")" = ep_dispatch ]
    [[ $(jq -r .source <<<"$output") == "preset HybridEP dispatch 8 ranks, 1 domain at 322 MiB, rates of 8 ranks" ]]
    [ "$(jq '.algbw_Bps > 530e9 and .algbw_Bps < 570e9' <<<"$output")" = true ]
    run railgauge cost --fabric hgx-a100 ep_combine 0-7 64M
    [ "$status" -eq 0 ]
    [[ $output == *"from: no EP kernel known, as all_to_all: preset all_to_all 8 ranks"* ]]
}

@test "what is sent to itself, and nothing at all, has no bandwidth" {
    for words in "0 0 1M" "all_reduce 0,1 0"; do
        # shellcheck disable=SC2086 # words are wanted
        run railgauge cost $matrix $words
        [ "$status" -eq 0 ]
        [[ ${lines[0]} == *" ns to "* || ${lines[0]} == *" us to "* ]]
        [[ ${lines[0]} != *bandwidth* ]]
    done
    [ "$(railgauge cost $matrix 0 0 1M --json | jq .algbw_Bps)" = null ]
}

@test "software that is not modelled is named, where no curve of it answers" {
    said() { # WORDS OF COST: what is not modelled
        railgauge cost "$@" --json | jq -r '.not_modelled as $n | if $n and (.source | contains("; \($n) is not modelled: priced as ") | not)
            then "not in its words" else $n end'
    }
    [ "$(said --fabric mi300x --racks 4 all_reduce 0-63 64M)" = RCCL ]
    [ "$(said --fabric mi300x --racks 4 all_to_all 0-127 64M)" = RCCL ]
    [ "$(said --fabric mi300x all_reduce 0-7 64M)" = null ] # a curve
    [ "$(said --fabric hgx-h100-efa --racks 4 all_reduce 0-63 1K)" = "EFA's tuner" ]
    [ "$(said --fabric hgx-h100-efa --racks 4 all_reduce 0-63 64M)" = null ]
    [ "$(said --fabric hgx-h100-efa all_to_all 0-3 1K)" = null ] # inside a host
    [ "$(said --fabric hgx-h100 --racks 4 all_to_all 0-127 64M)" = null ]
    [ "$(said $matrix all_gather 0-9 64M)" = "MPI's choice" ]
    for text in gIB FasTrak libnccl-net-ofi.so; do
        NCCL_NET=$text railgauge cost --fabric hgx-h100 --racks 4 all_to_all 0-127 64M
    done >"$BATS_TEST_TMPDIR/out"
    [ "$(grep -o "; [A-Za-z]*'s tuner is not modelled: priced as NCCL$" "$BATS_TEST_TMPDIR/out" | cut -d\' -f1 | tr -d '\n')" = "; gIB; TCPX; EFA" ]
}

@test "an algorithm that is asked for is priced without curves, and only where NCCL has it" {
    for algo in ring tree nvlstree sharp; do
        run railgauge cost --fabric hgx-h100 --racks 4 all_reduce 0-63 8G --algo $algo --json
        [ "$status" -eq 0 ]
        [ "$(jq -r .basis <<<"$output")" = modelled ]
        jq -r .busbw_Bps <<<"$output"
    done >"$BATS_TEST_TMPDIR/bus"
    # SHARP: 387 GB/s at 8 GiB (CoreWeave/nccl-tests)
    [ "$(tail -1 "$BATS_TEST_TMPDIR/bus" | jq '. / 387e9 - 1 | fabs < 0.03')" = true ]
    refused() {
        run -"$1" railgauge cost --fabric hgx-h100 --racks 4 "${@:3}"
        [[ $output == *"$2"* ]]
    }
    refused 65 'NCCL does not run this algorithm for all_reduce' all_reduce 0-63 1G --algo pat
    refused 65 'NCCL does not run this algorithm for all_gather' all_gather 0-63 1G --algo sharp
    refused 65 'all_to_all has no algorithms' all_to_all 0-63 1G --algo ring
    refused 64 '"symmetric" is not modelled: kernels on registered windows' all_reduce 0-63 1G --algo symmetric
    refused 64 'no algorithm "rings" (did you mean "ring"?); known: ring' all_reduce 0-63 1G --algo rings
    refused 64 '--algo is for collectives' 0 9 1G --algo ring
    run -65 railgauge cost $matrix all_gather 0-9 64M --algo ring
    [[ $output == *"all_gather without NCCL has no algorithms"* ]]
}

@test "a collective over a dead part does not finish: the part is named, and JSON is valid" {
    railgauge run -t sim --fabric hgx-h100 --racks 1 --fault dead-host=1 --seed 3 --op pairs -e 1M -o "$BATS_TEST_TMPDIR/c" \
        --no-plots --no-verdict >/dev/null 2>&1 || true
    for op in all_reduce all_to_all sendrecv; do
        run railgauge cost "$BATS_TEST_TMPDIR/c/matrix.json" $op 0-31 1M
        [ "$status" -eq 0 ]
        [[ ${lines[0]} == "does not finish: host r00n01 is dead" ]]
        railgauge cost "$BATS_TEST_TMPDIR/c/matrix.json" $op 0-31 1M --json |
            jq -e '.dead and .seconds == null and .busbw_Bps == 0 and .slowed_by == "host r00n01"'
    done
    run railgauge predict "$BATS_TEST_TMPDIR/c/matrix.json" --model llama3.1-8b --layout dp_shard=32
    [ "$status" -ne 0 ]
    [[ $output == *"a part that it needs is dead or gives wrong data: host r00n01"* ]]
}
