# slurm.bash - a real slurmctld and its slurmd, all on this host, in a chroot of another Debian.
# shellcheck shell=bash
#
# setup_file: slurm_enter SUITE; setup: need_slurm; teardown_file: slurm_leave, which also ends every
# daemon.  $R is the root, inside /usr/local/bin is this build's railgauge.

. "$BATS_TEST_DIRNAME/../await.bash"
top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
export PATH=${RG_BUILD:-$top/build}:$PATH

slurm_enter() {
    local why=$BATS_FILE_TMPDIR/why rc=0
    R=$("$top/tests/chroot.sh" --user $$ "$1" slurmctld slurmd slurm-client slurm-wlm-basic-plugins \
        libjansson4 libexpat1 libyaml-0-2 2>"$why") || rc=$?
    SLURM_SUITE=$1
    export R SLURM_SUITE
    if [ $rc -ne 0 ]; then
        cat "$why" >&2
        [ $rc -eq 77 ] || return 1
        SLURM_WHY=$(<"$why")
        export SLURM_WHY
        return 0
    fi
    install "$(command -v railgauge)" "$R/usr/local/bin/railgauge"
    mkdir -p "$R"/etc/slurm "$R"/var/spool/slurmctld "$R"/run/slurm "$R"/var/log/slurm
    dd if=/dev/urandom of="$R/etc/slurm/slurm.key" bs=1024 count=1 2>/dev/null
    chmod 600 "$R/etc/slurm/slurm.key"
    chroot "$R" chown slurm:slurm /etc/slurm/slurm.key /var/spool/slurmctld
    slurm_ports
}

slurm_leave() {
    [ -n "${SLURM_WHY-}" ] || "$top/tests/chroot.sh" --leave "$SLURM_SUITE"
}

need_slurm() {
    [ -z "${SLURM_WHY-}" ] || skip "$SLURM_WHY"
}

# This build may need libraries that are not in there (sanitizers).
need_railgauge() {
    chroot "$R" railgauge --version >/dev/null 2>&1 || skip "this build does not run in $SLURM_SUITE"
}

# Twenty ports in a row that nobody listens at.
slurm_ports() {
    local p
    for _ in {1..50}; do
        SLURM_PORT=$((20000 + RANDOM % 1200 * 10))
        for ((p = SLURM_PORT; p < SLURM_PORT + 20; p++)); do
            ! (: <"/dev/tcp/127.0.0.1/$p") 2>/dev/null || continue 2
        done
        export SLURM_PORT
        return
    done
    return 1
}

# The name of node number N, from 1; a test may have its own.
slurm_node() { printf 'node%02d' "$1"; }

# slurm_conf NODES [LINE...]: slurm.conf of a cluster of so many nodes of four CPUs on this host.
slurm_conf() {
    local i
    rm -f "$R"/etc/slurm/topology.*
    echo "CgroupPlugin=disabled" >"$R/etc/slurm/cgroup.conf"
    {
        cat <<END
ClusterName=test
SlurmctldHost=localhost
SlurmUser=slurm
AuthType=auth/slurm
CredType=cred/slurm
SlurmctldPort=$SLURM_PORT
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmdPidFile=/run/slurm/slurmd.%n.pid
SlurmdLogFile=/var/log/slurm/slurmd.%n.log
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmctldParameters=idle_on_node_suspend
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
END
        for ((i = 1; i <= $1; i++)); do
            printf 'NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN\n' \
                "$(slurm_node "$i")" $((SLURM_PORT + i))
        done
        echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
        shift
        printf '%s\n' "$@"
    } >"$R/etc/slurm/slurm.conf"
}

in_charge() { grep -q 'Running as primary controller' "$1"; }
decided() { in_charge "$1" || ended "$2"; }

# slurm_takes: does slurmctld start with these files?  Its words are in $words.
slurm_takes() {
    local log=$BATS_TEST_TMPDIR/slurmctld.log pid rc=1
    chroot "$R" slurmctld -D -c -v >"$log" 2>&1 3>&- &
    pid=$!
    await 120 decided "$log" $pid || true
    ! in_charge "$log" || rc=0
    kill $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    words=$(<"$log")
    [ $rc -eq 0 ] || echo "$words" | grep -E 'fatal|error' || true
    return $rc
}

slurm_refuses() {
    if slurm_takes; then
        echo "slurmctld took what it should refuse"
        return 1
    fi
    [[ $words == *fatal:* ]]
}

# slurm_again: start anew those slurmd whose nodes are not idle: one that registers while the
# controller is busy is heard again only after minutes.
slurm_again() {
    local node pid
    for node in $(chroot "$R" sinfo -h -N -p all -o '%N %t' | awk '$2 != "idle" { print $1 }'); do
        pid=$(cat "$R/run/slurm/slurmd.$node.pid" 2>/dev/null) || true
        if [ -n "$pid" ]; then
            kill "$pid" 2>/dev/null || true
            await 30 ended "$pid" || true
        fi
        chroot "$R" slurmd -N "$node" 3>&- || true
    done
}

# slurm_up NODES: the controller and its nodes, all of them idle.
slurm_up() {
    local i tick
    rm -rf "$R"/var/spool/slurmd.*
    chroot "$R" slurmctld -c 3>&- || return 1
    for ((i = 1; i <= $1; i++)); do
        chroot "$R" slurmd -N "$(slurm_node "$i")" 3>&- || return 1
    done
    for tick in {1..2400}; do
        [ "$(chroot "$R" sinfo -h -t idle -o %D -p all 2>/dev/null)" != "$1" ] || return 0
        [ $((tick % 150)) -ne 0 ] || slurm_again
        sleep 0.1
    done
    chroot "$R" sinfo >&2
    tail -n 5 "$R"/var/log/slurm/slurmctld.log >&2
    return 1
}

slurm_down() {
    local pid pids
    pids=$(cat "$R"/run/slurm/*.pid 2>/dev/null) || true
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in $pids; do
        await 30 ended "$pid" 2>/dev/null || kill -9 "$pid" 2>/dev/null || true
    done
    rm -f "$R"/run/slurm/*.pid
}

slurm() { timeout 300 chroot "$R" "$@"; }

# seats LIST [PAIR...]: what railgauge place says for two ranks on each of these nodes, pairs of which
# exchange 1 GB: order, hosts (slurm-hostfile) and job (sbatch); racks of four nodes.
seats() {
    local p golden=$top/tests/golden/matrix.json
    jq 'del(.checksum) | .places.levels |= (.host.names = "node[01-08]" | .rack.at = [[4, 0], [4, 1]])' "$golden" >matrix.json
    printf 'src\tdst\tbytes\n' >bytes
    for p in "${@:2}"; do printf '%d\t%d\t1e9\n' "${p%-*}" "${p#*-}" >>bytes; done
    railgauge place matrix.json --traffic bytes --nodes "$1" -o place.json --write order=order \
        --write slurm-hostfile="$R/tmp/hosts" --write sbatch=job
    awk '!/^#/ { print n++, $1 }' order >wanted
}

# landed COMMAND...: rank and node of each task that it starts.
landed() {
    # shellcheck disable=SC2016 # each task expands it
    slurm "$@" sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"' | sort -n
}

# batch [SRUN_OPTION...]: rank and node of each task of a batch job that the line of --write sbatch
# asks for; with slurm-hostfile's at hand.
batch() {
    # shellcheck disable=SC2016 # the job expands it
    printf '#!/bin/sh\n%s\n' "${1:+SLURM_HOSTFILE=/tmp/hosts }srun $* sh -c 'echo \"\$SLURM_PROCID \$SLURMD_NODENAME\"'" >"$R/tmp/job.sh"
    rm -f "$R/tmp/job.out"
    # shellcheck disable=SC2046 # the line is words
    slurm $(<job) --wait -Q -o /tmp/job.out /tmp/job.sh
    sort -n "$R/tmp/job.out"
}
