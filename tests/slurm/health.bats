#!/usr/bin/env bats
# health.bats - the prolog and the epilog of jobs/health in Slurm 24.11: no job starts on a node that failed, which is
# drained with the reason; one that fails after a job is drained before the next.

bats_require_minimum_version 1.5.0

load slurm

setup_file() { slurm_enter trixie; }
teardown_file() { slurm_leave; }

setup() {
    need_slurm
    need_railgauge
    cd "$BATS_TEST_TMPDIR" || return 1
    state=$R/var/lib/railgauge
    rm -rf "$state"
    chroot "$R" id railgauge >/dev/null 2>&1 || chroot "$R" useradd -r railgauge
    install "$top"/jobs/health/slurm_*.sh "$R/etc/slurm/"
}

teardown() {
    [ -n "${SLURM_WHY-}" ] || slurm_down
    [ ! -e "$R/usr/local/bin/railgauge.real" ] || measuring
}

# Called as those of the simulation.
slurm_node() { printf 'r00n%02d' "$(($1 - 1))"; }

simulated() { railgauge check --fabric hgx-h100 --racks 1 --noise 1% --state "$state" "$@"; }

is() { [ "$(slurm sinfo -h -p all -n "$1" -o %t)" = "$2" ]; }
reason() { slurm scontrol -o show node "$1" | sed -n 's/.* Reason=\(.*\) \[.*/\1/p'; }

@test "a prolog lets no job onto a node whose last check failed" {
    run -1 simulated --fault slow-nic=9:0.5
    slurm_conf 3 Prolog=/etc/slurm/slurm_prolog.sh
    slurm_up 3
    # The first node is good, the second is not, of the third nothing is known.
    rm "$state/r00n02.json"
    for node in r00n00 r00n02; do
        run -0 slurm srun -w $node sh -c 'echo "$SLURMD_NODENAME"'
        [ "${lines[-1]}" = $node ]
    done
    slurm sbatch -Q -w r00n01 -o /tmp/never --wrap 'echo ran'
    await 60 is r00n01 drain
    reason r00n01 | tee said
    grep -qx 'railgauge: NIC mlx5_1 of r00n01 (GPU 1) at 50 % of normal over all NICs, [0-9]* partners' said
    [ ! -s "$R/tmp/never" ]
    is r00n00 idle
}

# simulating OPTION...: instead of what the scripts would measure; a script may not show its job's variables to MPI.
simulating() {
    mv "$R/usr/local/bin/railgauge" "$R/usr/local/bin/railgauge.real"
    cat >"$R/usr/local/bin/railgauge" <<END
#!/bin/sh
env | grep '^SLURM_JOB' >>/tmp/leaked
echo "\$*" >>/tmp/asked
[ "\$2" = --last ] || [ "\$2" = --take ] || id -un >>/tmp/measured
launch=
[ "\$2" = --last ] || for w in "\$@"; do [ "\$w" = --launch ] && launch=yes; done
[ -z "\$launch" ] || set -- "\$1" "\$2" "\$3" "\$4" "\$5"
[ "\$2" = --last ] || [ "\$2" = --take ] || set -- "\$@" --fabric hgx-h100 --racks 1 --noise 1% $*
RAILGAUGE_DATA=/data exec /usr/local/bin/railgauge.real "\$@"
END
    chmod +x "$R/usr/local/bin/railgauge"
    mkdir -p "$R/data/jobs"
    cp -r "$top/topo" "$R/data/"
    cp -r "$top/jobs/limits" "$top/jobs/training" "$top/jobs/repairs.json" "$R/data/jobs/"
    rm -f "$R/tmp/leaked" "$R/tmp/asked" "$R/tmp/measured"
    : >"$R/tmp/leaked" && : >"$R/tmp/asked" && : >"$R/tmp/measured"
    chmod a+rw "$R/tmp/leaked" "$R/tmp/asked" "$R/tmp/measured"
}
measuring() { mv "$R/usr/local/bin/railgauge.real" "$R/usr/local/bin/railgauge"; }

@test "a health job fills the state, by which the health program drains" {
    simulating --fault slow-gpu=8:0.5
    sed '/gpus-per-node/d; s/=4-64/=2/' "$top/jobs/health/health.sbatch" >"$R/tmp/health.sbatch"
    slurm_conf 3 HealthCheckProgram=/etc/slurm/slurm_health.sh HealthCheckInterval=1 HealthCheckNodeState=ANY
    slurm_up 3
    code=0
    slurm env RAILGAUGE=railgauge STATE=/var/lib/railgauge sbatch --wait -Q -o /tmp/said /tmp/health.sbatch || code=$?
    cat "$R/tmp/said"
    [ "$code" -eq 1 ]
    grep -q '^check --limit 2m --state /var/lib/railgauge --launch srun ' "$R/tmp/asked"
    grep -q '^FAIL r00n01: railgauge: GPU 0 of r00n01 at 50 % of normal over ' "$R/tmp/said"
    await 60 is r00n01 drain
    measuring
    is r00n00 idle
}

@test "an epilog measures its node after a job and drains it when it fails" {
    simulating --fault slow-host=1:0.5
    slurm_conf 2 Epilog=/etc/slurm/slurm_epilog.sh
    slurm_up 2
    slurm srun -N2 true
    await 60 is r00n01 drain
    measuring
    reason r00n01 | tee said
    grep -qx 'railgauge: host r00n01 at 50 % of normal over .*' said
    await 60 is r00n00 idle
    [ ! -s "$R/tmp/leaked" ]
    [ "$(sort -u "$R/tmp/measured")" = railgauge ]
}
