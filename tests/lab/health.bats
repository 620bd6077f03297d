#!/usr/bin/env bats
# bats file_tags=nightly
# health.bats - a NIC that lost half of its rate, measured in the lab by railgauge check: the HealthCheckProgram of
# jobs/health drains that node of a real Slurm with the reason, and no other; repaired, it comes back by itself.

bats_require_minimum_version 1.5.0

load helper
load ../slurm/slurm

: "${RACKS=1}" "${PER=4}" "${NIC=1000}"

setup_file() {
    slurm_enter trixie
    export LAB=rghealth$$ RACKS PER NIC
}

teardown_file() {
    lab down
    slurm_leave
}

teardown() { [ -n "${SLURM_WHY-}" ] || slurm_down; }

slurm_node() { echo "$LAB-h$(($1 - 1))"; }

# lab_with [DEGRADE]: the lab anew with these NICs slower.
lab_with() {
    lab down
    DEGRADE=${1-} lab up
}

# checked [OPTION...]: what a health job does, on all hosts of the lab.
checked() {
    railgauge check -t mpi --launch "$BATS_TEST_DIRNAME/lab.sh mpirun" --limit 20s --state "$R/var/lib/railgauge" \
        --op pair_bw --pair-bytes 64K -b 64K -e 1M --time-cap 20ms --limits limits.json "$@" 2>>log
}

state_of() { slurm sinfo -h -p all -n "$1" -o %t; }
is() { [ "$(state_of "$1")" = "$2" ]; }
# Every node's health program was run that many times since.
ran() { [ "$(sort "$R/tmp/ran" 2>/dev/null | uniq -c | awk -v n="$1" '$1 >= n' | wc -l)" -eq "$PER" ]; }

@test "a node with a degraded NIC is drained with the reason, the others are not; repaired it comes back" {
    need_slurm
    need_lab
    need_railgauge
    lab_alone
    cd "$BATS_TEST_TMPDIR"
    # Of figures of all hosts the machine's own load is no fault here.
    cat >limits.json <<'END'
{"format": "railgauge-limits", "version": 1, "title": "lab", "limits": [
 {"check": "wrong-data", "at_most": "0", "source": "lab"}, {"check": "dead-parts", "at_most": "0", "source": "lab"},
 {"check": "part-speed", "at_least": "90 %", "source": "lab"},
 {"check": "tier-bandwidth", "at_least": "90 %", "of": "reference", "source": "lab"}]}
END
    mkdir -p "$R/etc/slurm" "$R/var/lib/railgauge"
    cp "$top/jobs/health/slurm_health.sh" "$R/etc/slurm/"
    printf '#!/bin/sh\n/etc/slurm/slurm_health.sh\necho "$SLURMD_NODENAME" >>/tmp/ran\n' >"$R/etc/slurm/health"
    chmod +x "$R/etc/slurm/health"
    rm -f "$R/tmp/ran" "$R"/var/lib/railgauge/*.drained

    # The site's own figures, and a check that passes.
    lab_with
    run -2 checked -o site
    run -0 checked --against site
    echo "$output"
    [[ $output == PASS:* ]]
    slurm_conf "$PER" HealthCheckProgram=/etc/slurm/health HealthCheckInterval=1 HealthCheckNodeState=ANY
    slurm_up "$PER"
    await 60 ran 2
    for ((i = 1; i <= PER; i++)); do is "$(slurm_node "$i")" idle; done

    lab_with 2:500
    bad=$(slurm_node 3)
    run -1 checked --against site
    echo "$output"
    await 60 is "$bad" drain
    : >"$R/tmp/ran"
    await 60 ran 1
    slurm scontrol show node "$bad" | tee shown
    slurm sinfo -R | tee reasons
    grep -qE "Reason=railgauge: .*$bad.* at 0\.(4[5-9]|5[0-5]) over .*, 3 partners" shown
    grep -q "^railgauge: .*$bad" reasons
    for i in 1 2 4; do is "$(slurm_node "$i")" idle; done

    lab_with
    run -0 checked --against site
    await 60 is "$bad" idle
    [ "$(slurm sinfo -h -R | wc -l)" -eq 0 ]
}
