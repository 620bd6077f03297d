#!/usr/bin/env bats
# job_submit.bats - jobs/slurm/job_submit.lua inside a real slurmctld 26.05: users are told, the segment
# is set, and jobs go through when it is broken.  (24.11 takes the script too; its plugin does not know
# segment_size.)

bats_require_minimum_version 1.5.0
load slurm.bash

answers() { chroot "$R" scontrol ping 2>/dev/null | grep UP >/dev/null; }

setup_file() {
    slurm_enter forky
    [ -z "${SLURM_WHY-}" ] || return 0
    railgauge run --transport sim --no-plots --fabric gb200-nvl72 --racks 2 --op pair_latency,pair_bw -e 64M \
        --epochs 1 -o "$BATS_FILE_TMPDIR/c" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
    slurm_conf 16 JobSubmitPlugins=lua
    sed -e 's/^    set = false,/    set = true,/' -e 's/^    look = 10,/    look = 0,/' "$top/jobs/slurm/job_submit.lua" >"$R/etc/slurm/job_submit.lua"
    install -m 644 "$BATS_FILE_TMPDIR/c/matrix.json" "$R/etc/slurm/matrix.json"
    printf '#!/bin/sh\nsleep 0\n' >"$R/tmp/job.sh"
    chroot "$R" slurmctld -c 3>&-
    await 120 answers
}
teardown_file() {
    [ -n "${SLURM_WHY-}" ] || slurm_down
    slurm_leave
}
setup() { need_slurm; need_railgauge; }

submit() { run slurm sbatch --hold --nodes=16 "$@" /tmp/job.sh; }

@test "sbatch prints the advice and the job has the segment" {
    submit --comment='railgauge: all_to_all 64M groups of 32'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"railgauge: a step of "*" with --segment=8; scattered nodes take "*", so it is set"* ]]
    id=$(sed -n 's/^Submitted batch job //p' <<<"$output")
    run slurm scontrol show job "$id"
    echo "$output"
    [[ $output == *"SegmentSize=8"* ]]
}

@test "other jobs, hostile comments and a missing matrix: submitted as they were" {
    submit
    [ "$status" -eq 0 ]
    [[ $output == "Submitted batch job "* ]]
    submit --comment='railgauge: $(touch /tmp/owned)'
    [ "$status" -eq 0 ]
    [[ $output == "Submitted batch job "* ]]
    [ ! -e "$R/tmp/owned" ]
    mv "$R/etc/slurm/matrix.json" "$R/etc/slurm/gone.json"
    submit --comment='railgauge: all_to_all 64M groups of 32'
    mv "$R/etc/slurm/gone.json" "$R/etc/slurm/matrix.json"
    [ "$status" -eq 0 ]
    [[ $output == "Submitted batch job "* ]]
}
