#!/usr/bin/env bats
# format.bats - hands that are used to nccl-tests: its options, and its table on the simulated fabric.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || exit 1
}

probe() {
    run --separate-stderr railgauge probe --fabric hgx-h100 --racks 1 --op all_reduce "$@"
}

@test "the usual line of options measures the usual sizes and iterations" {
    probe -b 8 -e 8G -f 2 -g 1 -n 20 -w 5 -c 1 --epochs 1 --format nccl-tests
    [ "$status" -eq 0 ]
    grep -qx '# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0' <<<"$output"
    # Every size from 8 B to 8 GiB of the first group, in bytes.
    sizes=$(awk '/^# Using/ { t++ } t == 1 && /^ *[0-9]/ { print $1 }' <<<"$output")
    [ "$sizes" = "$(for ((s = 8; s <= 8589934592; s *= 2)); do echo $s; done)" ]
}

@test "existing parsers find rows, average and device lines" {
    probe -b 1M -e 4M --epochs 1 --format nccl-tests
    # As Meta's, Azure's and Imbue's checks do: by the words, and by column from either end.
    [ "$(awk '/Avg bus bandwidth/ { print ($NF > 0) }' <<<"$output" | sort -u)" = 1 ]
    [ "$(grep -c 'Out of bounds values : 0 OK' <<<"$output")" -eq "$(grep -c 'Collective test concluded: all_reduce_perf' <<<"$output")" ]
    [ "$(awk '/^ *[0-9]/ { print NF }' <<<"$output" | sort -u)" = 13 ]
    # What nccl-tests' own reader of device lines wants to see.
    grep -qE '^#  Rank +0 Group +0 Pid +[0-9]+ on +r00n00 device +0 \[[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\] [A-Z]' <<<"$output"
}

@test "an option with the value that is done anyway changes nothing" {
    probe -b 1M -e 1M --epochs 1 --seed 3 -o plain.tsv
    probe -b 1M -e 1M --epochs 1 --seed 3 -o more.tsv \
        -g 1 --ngpus 1 --nthreads 1 -m 1 -N 1 -p 1 -r 0 -z 0 -y 0 -G 0 -C 0 -a 3 -R 0 -D 0 -S 0 -M 0 -u 0 -I 1 -K 0
    [ "$status" -eq 0 ]
    [ "$(grep -v '^#' plain.tsv)" = "$(grep -v '^#' more.tsv)" ]
}

refused() { # WORDS... MESSAGE
    local why=${*: -1}
    probe "${@:1:$#-1}" --dry-run
    [ "$status" -eq 64 ] || { echo "$*: $status"; return 1; }
    [[ $stderr == *"$why"* ]] || { echo "$*: $stderr"; return 1; }
}

@test "any other value is refused with what to use instead" {
    refused -g 8 "--ngpus 8 of nccl-tests: there is one rank a GPU here: mpirun -n N"
    refused -t 8 "-t 8: -t is --transport here; threads are nccl-tests' -t: one rank a GPU, mpirun -n N"
    refused -i 1M "--stepbytes 1M of nccl-tests: sizes grow by a factor here: -f N"
    refused -a 1 "--average 1 of nccl-tests: a sample is the slowest rank's time: that is -a 3"
    refused -m 4 "--agg_iters 4 of nccl-tests: each sample is one operation"
    refused -N 3 "--epochs N measures everything N times"
    refused -G 1 "--cudagraph 1 of nccl-tests: --graph replays a CUDA graph"
    refused -R 2 "--register symmetric --nccl-mem is -R 2"
    refused -C 1 "the time of the calling CPU is not measured"
    refused -z 1 "--blocking 1 of nccl-tests"
    refused -r 3 "the root is the first rank of each group"
    refused -J out.json "points.tsv is made for programs: -o FILE"
    refused -I 2 "--per_iter_timing 2 of nccl-tests: only 0 and 1 are known"
    refused -o sum "-o sum: -o is --output here; the reduction is --redop"
    refused --op sum 'no operation "sum"; a reduction is --redop'
    refused -g "" "--ngpus  of nccl-tests: there is one rank a GPU here"
}

@test "help and the manual say that they exist" {
    run railgauge probe --help
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"Other options of nccl-tests are accepted with the value that changes nothing"* ]]
    page=$(mandoc -T ascii "$BATS_TEST_DIRNAME/../../src/railgauge.1" | sed 's/.\x08//g')
    for o in ngpus nthreads stepbytes agg_iters run_cycles parallel_init root blocking stream_null timeout cudagraph \
        report_cputime average local_register cta_policy device_implementation report_timestamps output_file memory \
        unalign per_iter_timing per_iter_skip; do
        grep -q -- "--$o" <<<"$page" || { echo "--$o"; false; }
    done
}
