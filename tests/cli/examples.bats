#!/usr/bin/env bats
# examples.bats - every example of --help and of the manual runs; of those that need GPUs, other hosts or a scheduler, the
# options are read.

bats_require_minimum_version 1.5.0

# Files that the examples name.
setup_file() {
    export top=$BATS_TEST_DIRNAME/../.. OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1 RAILGAUGE_STATE=$BATS_FILE_TMPDIR/state
    unset LD_LIBRARY_PATH # of the stand-ins for GPUs
    mkdir "$BATS_FILE_TMPDIR/files" && cd "$BATS_FILE_TMPDIR/files" || return 1
    local small=(--fabric hgx-h100 --racks 1 --noise 2% -b 1M -e 4M --epochs 2 --no-plots --no-verdict) seed
    {
        railgauge run "${small[@]}" --format nccl-tests >tables &&
            railgauge run "${small[@]}" --sim-seed 2 -o last-month && railgauge run "${small[@]}" --sim-seed 3 -o today &&
            for seed in 4 5 6; do railgauge run "${small[@]}" --sim-seed $seed -o campaign-2026-0$seed || return 1; done
    } >log 2>&1 || { cat log && return 1; }
    cp -r last/. campaign
    cp campaign/{topology,matrix}.json campaign/{plan,points}.tsv .
    cp tables all_reduce.txt && cp tables all_gather.txt
    jq -r '.hosts.rows[][0]' topology.json >hosts
    cp "$top/jobs/limits/default.json" site.json || return 1
    cp "$top/jobs/training/steps.tsv" .
    for layout in fsdp:dp=8 tp8:tp=8; do railgauge predict --fabric hgx-h100 --layout "${layout#*:}" -o "${layout%:*}.json" >/dev/null || [ $? -eq 1 ] || return 1; done
    printf 'src\tdst\tbytes\n0\t1\t1000000\n1\t0\t1000000\n' >bytes.tsv
    printf 'first 1 model=llama3.1-8b layout=tp=8\nsecond 2 all_reduce 64M\n' >jobs.txt
    printf 'system\tnccl_version\top\tranks\tbytes\tlatency_us\n' >curves.tsv
    for seed in 1024 4096 16384 65536 262144; do printf 'x\t2.28\tall_gather\t8\t%s\t%s\n' "$seed" $((10 + seed / 100)); done >>curves.tsv
}

# reads LINE: its commands of railgauge, without their redirections, read their options before --help.
reads() {
    local part found=
    while IFS= read -r part; do
        [[ $part == *railgauge* ]] || continue
        part=railgauge${part#*railgauge} && found=1
        timeout 20 bash -c "${part%%>*} --help" | grep -q '^Usage:' || { echo "not read: $part"; return 1; }
    done < <(sed 's/ && /\n/g; s/ || /\n/g; s/ | /\n/g' <<<"$1")
    [ -n "$found" ] || [[ $1 != *railgauge* ]]
}

# run_all PROGRAM COMMAND FOLDER
run_all() {
    local where line code n=0
    cp -r "$BATS_FILE_TMPDIR/files" "$3" && cd "$3" || return 1
    while IFS=$'\t' read -r where line; do
        n=$((n + 1)) code=0
        if [ "$where" = elsewhere ] || { [[ $line == mpirun* || $line == *" --ranks 2 "* ]] && ! command -v mpirun >/dev/null; } ||
            { [[ $line == *"railgauge plot"* ]] && ! command -v gnuplot >/dev/null; }; then
            reads "$line" || return 1
            continue
        fi
        timeout 120 bash -c "$line" >out 2>err </dev/null || code=$?
        [ "$code" -le 2 ] && [ -z "$(grep -E 'unrecognized option|Try .railgauge' err)" ] || { echo "$1 $2: exit $code of: $line" && cat err && return 1; }
    done < <("$1" "$2" --help=tsv | awk -F'\t' '$1 == "example" {print $2 "\t" $4}')
    [ "$n" -ge 1 ] || { echo "$1 $2 has no example" && return 1; }
}

@test "the examples of every command run" {
    for p in railgauge railgauge-calibrate railgauge-probe; do
        case $p in railgauge-probe) commands="discover probe replay" ;; *) commands=$($p --help | awk '/^  [a-z]/ {print $1}') ;; esac
        for c in $commands; do
            (run_all "$p" "$c" "$BATS_TEST_TMPDIR/$p-$c") || echo "$p $c" >>"$BATS_TEST_TMPDIR/bad"
        done
    done
    [ ! -e "$BATS_TEST_TMPDIR/bad" ]
}

@test "a wrong example would be found" {
    cd "$BATS_TEST_TMPDIR"
    run reads "railgauge show campaign --nosuch"
    [ "$status" -eq 1 ]
    run reads "mpirun -n 2 railgauge-probe probe --op all_reduc"
    [ "$status" -eq 1 ]
    reads "mpirun -n 2 railgauge-probe probe --op all_reduce -o x | railgauge check-placement --hosts - --segment 4 || exit 1"
}
