#!/usr/bin/env bats
# jobs.bats - the job files: short, accepted by what reads them, and their railgauge lines really run.

bats_require_minimum_version 1.5.0

load ../stranger.bash

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    fixtures=${RAILGAUGE_K8S:-$root/../shared/fixtures/k8s}
    cd "$BATS_TEST_TMPDIR" || exit 1
}

# A launcher of this machine in place of a cluster's: its own words are written down, the program
# behind them runs on 4 ranks (srun of a command per node: on one).
launcher() { # NAME
    mkdir -p bin
    cat >"bin/$1" <<'STUB'
#!/bin/bash
echo "$(basename "$0") $*" >>launched
for ((i = 1; i <= $#; i++)); do
    [[ ${!i} == */railgauge-probe ]] || continue
    exec /usr/bin/env PATH="${PATH#*bin:}" mpirun -n 4 --oversubscribe --bind-to none --mca btl vader,self "${@:i}"
done
exit 0
STUB
    chmod +x "bin/$1"
}

# GPUs are those of the stand-in libraries: make check has them in LD_LIBRARY_PATH.
need_ranks() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    [ -x "$RG_BUILD/railgauge-probe" ] || skip "railgauge-probe is not built: no MPI was found"
    [ -e "$RG_BUILD/fake/libcuda.so.1" ] || skip "the stand-ins for NVIDIA's libraries are not built"
    export LD_LIBRARY_PATH=$RG_BUILD/fake:${LD_LIBRARY_PATH:-}
}

@test "no job is longer than 40 lines, each says how it is started and where results are" {
    for f in "$root"/jobs/health/*; do
        [ "$(wc -l <"$f")" -le 45 ] || { echo "$f: $(wc -l <"$f") lines"; false; }
        [[ $(head -n 3 "$f") == *"# ${f##*/} - "* ]]
        grep -qE '^# .*Results: |OnCalendar' "$f"
        awk 'length > 130 { print FILENAME ": " FNR ": " length; bad = 1 } END { exit bad }' "$f"
    done
    for f in "$root"/jobs/slurm/*.sbatch "$root"/jobs/kubernetes/*.yaml "$root"/jobs/mpirun.sh; do
        [ "$(wc -l <"$f")" -le 40 ] || { echo "$f: $(wc -l <"$f") lines"; false; }
        grep -qE '^#   (sbatch|kubectl apply -f|jobs/mpirun.sh) ?' "$f"
        grep -q "${f#"$root"/}" "$f" || { echo "$f does not name itself"; false; }
        grep -q 'Results: ' "$f"
        awk 'length > 120 && !/"mpirun/ { print FILENAME ": " FNR ": " length; bad = 1 } END { exit bad }' "$f"
    done
}

@test "scripts are clean shell" {
    for f in "$root"/jobs/slurm/*.sbatch; do
        bash -n "$f"
    done
    command -v shellcheck >/dev/null || skip "shellcheck is not installed"
    shellcheck "$root"/jobs/slurm/*.sbatch "$root"/jobs/mpirun.sh "$root"/jobs/health/*.{sh,sbatch,nhc}
}

@test "sbatch takes the options of the Slurm jobs" {
    # man sbatch of Slurm 24.11; --segment is from 24.05 (topology/block).
    known='job-name nodes segment ntasks-per-node gpus-per-node cpus-per-task mem exclusive distribution time signal output'
    for f in "$root"/jobs/slurm/*.sbatch "$root"/jobs/health/*.sbatch; do
        for o in $(sed -nE 's/^#SBATCH --([a-z-]+).*/\1/p' "$f"); do
            [[ " $known " == *" $o "* ]] || { echo "$f: --$o"; false; }
        done
        grep -q '^#SBATCH --exclusive$' "$f"
    done
    grep -q '^#SBATCH --segment=18$' "$root/jobs/slurm/gb200-nvl72.sbatch"
    command -v sbatch >/dev/null || skip "sbatch is not installed (package slurm-client)"
    # It reads the whole file before it looks for a controller, and there is none.
    printf '%s\n' ClusterName=none SlurmctldHost=localhost SlurmctldPort=1 MessageTimeout=1 GresTypes=gpu AuthType=auth/none \
        'NodeName=a Gres=gpu:8' 'PartitionName=p Nodes=ALL Default=YES' >slurm.conf
    export SLURM_CONF=$PWD/slurm.conf
    newer=$(sbatch --version | awk '{ split($2, v, "."); print (v[1] * 100 + v[2] >= 2405) }')
    for f in "$root"/jobs/slurm/*.sbatch; do
        sed "$([ "$newer" = 1 ] || echo '/^#SBATCH --segment/d')" "$f" >job
        run timeout 60 sbatch --test-only job
        [[ $output == *"Unable to contact slurm controller"* ]] || { echo "$f: $output"; false; }
        sed 's/^#SBATCH --time=30/#SBATCH --time=soon/' job >bad
        run timeout 60 sbatch --test-only bad
        [[ $output == *"Invalid --time specification"* ]] || { echo "$f: $output"; false; }
    done
}

@test "the options inside exist in railgauge run" {
    help=$(railgauge run --help=all | tr -s ' \n' ' ')
    for f in "$root"/jobs/slurm/*.sbatch "$root"/jobs/kubernetes/mpijob-*.yaml; do
        options=$(sed -e '/^#/d' -e 's/--launch.*/--launch/' "$f" | grep -oE -- '--(transport|path|output|launch|resume)\b' | sort -u)
        [ "$(wc -l <<<"$options")" -ge 3 ]
        for o in $options; do
            [[ " $help" == *" $o="* || " $help" == *" $o "* ]] || { echo "$f: $o"; false; }
        done
    done
}

@test "each Slurm job launches ranks as it says: dry run" {
    need_ranks
    launcher srun
    export SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=7 SLURM_NNODES=18 SLURM_CPUS_PER_TASK=12 RAILGAUGE=$RG_BUILD/railgauge
    for f in "$root"/jobs/slurm/*.sbatch; do
        rm -rf launched railgauge-7
        run --separate-stderr env PATH="$PWD/bin:$PATH" bash "$f" --dry-run
        [ "$status" -eq 0 ] || { echo "$f: $status $output $stderr"; false; }
        [[ $output == *" rounds, about "*" points, "*" moved, "* ]]
        grep -q -- "^srun -K1 --mpi=pmix --cpus-per-task=12 --cpu-bind=cores .*railgauge-probe" launched || { cat launched; false; }
    done
    # another MPI, by Slurm's own variable
    rm -rf launched railgauge-7
    SLURM_MPI_TYPE=pmi2 PATH="$PWD/bin:$PATH" bash "$root/jobs/slurm/hgx.sbatch" --dry-run
    grep -q -- "^srun -K1 --mpi=pmi2 " launched
}

@test "jobs from their first line to their results, on stand-ins for GPUs; no rails is a failure" {
    need_ranks
    launcher srun
    export SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=7 SLURM_NNODES=2 SLURM_CPUS_PER_TASK=8 RAILGAUGE=$RG_BUILD/railgauge
    small=(--op all_reduce -b 64 -e 64K --epochs 1 -n 3 --no-compute --no-plots --format nccl-tests)
    run --separate-stderr env PATH="$PWD/bin:$PATH" bash "$root/jobs/slurm/rtxpro6000-tcp.sbatch" "${small[@]}"
    echo "$output $stderr"
    [ "$status" -eq 0 ]
    grep -q '^# Collective test starting: all_reduce_perf' <<<"$output"
    for f in topology.json plan.tsv points.tsv matrix.json; do
        [ -s "railgauge-7/$f" ]
    done
    head -1 railgauge-7/points.tsv | grep -q 'transport=nccl'
    # The stand-ins have no InfiniBand: NCCL_NET=IB leaves no quiet way around.
    run --separate-stderr env SLURM_JOB_ID=8 PATH="$PWD/bin:$PATH" bash "$root/jobs/slurm/hgx.sbatch" "${small[@]}"
    echo "$output $stderr"
    [ "$status" -eq 2 ]
    # Which rank is refused first, and how many points it hears of, is a matter of time.
    [[ $stderr =~ [0-9]+" failed; first: rank "[0-9]+" " ]]
}

@test "a GB200 job asks for MNNVL of everything in one rack, not across racks, and for an IMEX channel" {
    launcher srun
    f=$root/jobs/slurm/gb200-nvl72.sbatch
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >words\nenv >environment\n' >rg
    chmod +x rg
    export SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=7 SLURM_CPUS_PER_TASK=32 RAILGAUGE=$PWD/rg
    SLURM_NNODES=18 PATH=$PWD/bin:$PATH bash "$f"
    [ "$(tr '\n' ' ' <words)" = "run --transport nccl --path mnnvl --output $PWD/railgauge-7 --launch srun -K1 --mpi=pmix --cpus-per-task=32 --cpu-bind=cores " ]
    grep -qx NCCL_MNNVL_ENABLE=1 environment
    grep -q 'nvidia-caps-imex-channels' launched
    SLURM_NNODES=36 PATH=$PWD/bin:$PATH bash "$f"
    run ! grep -q -- --path words
    # The look for a channel fails loudly on a machine that has none.
    [ ! -e /dev/nvidia-caps-imex-channels ] || skip "this machine has IMEX channels"
    printf '#!/bin/sh\nwhile [ "$1" != bash ]; do shift; done\nexec "$@"\n' >bin/srun
    run env SLURM_NNODES=18 PATH="$PWD/bin:$PATH" bash "$f"
    [ "$status" -eq 78 ]
    [[ $output == *": no IMEX channel (switch/nvidia_imex)"* ]]
}

@test "mpirun.sh hands on NCCL's variables and runs" {
    need_ranks
    mkdir -p tree/jobs tree/build
    cp "$root/jobs/mpirun.sh" tree/jobs
    ln -s "$RG_BUILD"/railgauge* tree/build
    launcher mpirun
    echo "localhost slots=4" >hosts
    # The stub comes first in PATH only below the folder of programs that mpirun.sh puts there.
    ln -s "$PWD/bin/mpirun" tree/build/mpirun
    run --separate-stderr env NCCL_IB_HCA=mlx5 NCCL_DEBUG=WARN tree/jobs/mpirun.sh hosts 4 --transport nccl --dry-run
    echo "$output $stderr"
    [ "$status" -eq 0 ]
    grep -q -- '--hostfile hosts --map-by ppr:4:node --bind-to numa --mca mpi_yield_when_idle 1' launched
    grep -q -- ' -x RAILGAUGE_WATCH ' launched
    grep -q -- ' -x NCCL_IB_HCA' launched
    grep -q -- ' -x NCCL_DEBUG' launched
}

@test "mpirun.sh speaks to the mpirun that is there: Open MPI, those of MPICH, Cray's PALS" {
    mkdir -p tree/jobs tree/build pals/bin other
    cp "$root/jobs/mpirun.sh" tree/jobs
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >words\n' >tree/build/railgauge
    printf 'node01 slots=8\n# none\nnode02:8\nnode03\nnode03\n' >hosts # PBS has a line a rank
    while IFS='|' read -r name version launch; do
        printf '#!/bin/sh\necho "%s"\n' "$version" >"$name"
        chmod +x "$name" tree/build/railgauge
        PATH=$PWD/${name%/*}:/usr/bin:/bin NCCL_NET=gIB tree/jobs/mpirun.sh hosts 8 -t nccl
        [ "$(sed -n 3p words)" = "$PWD/$name $launch" ] || { cat words; false; }
        [ "$(sed -n '1p;2p;4p;5p' words | xargs)" = "run --launch -t nccl" ]
        rm "$name"
    done <<TXT
other/mpirun|HYDRA build details:|-hosts node01,node02,node03 -ppn 8 -n 24 -genvall
other/mpirun|Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619|-hosts node01,node02,node03 -ppn 8 -n 24 -genvall
pals/bin/mpirun|mpirun version 1.2.12|--hosts node01,node02,node03 --ppn 8 -n 24 --cpu-bind numa
TXT
}

# python - a Python that has the schemas of Kubernetes' own kinds, if one can be had.
python() {
    "$root/tests/venv.sh" k8s kubernetes-validate==1.37.0 PyYAML jsonschema 2>why || echo /usr/bin/python3
}

@test "Kubernetes jobs are what their CRDs and Kubernetes itself take" {
    [ -x /usr/bin/python3 ] || skip "no Python"
    python=$(python)
    checked=0
    for f in "$root"/jobs/kubernetes/*.yaml "$root/jobs/health/cronjob.yaml"; do
        run "$python" "$root/tests/k8s/check.py" "$f" "$fixtures"/*-crd.yaml
        echo "$f: $output"
        [ "$status" -ne 77 ] || continue
        [ "$status" -eq 0 ]
        checked=$((checked + 1))
    done
    [ "$checked" -gt 0 ] || skip "${lines[0]} (RAILGAUGE_K8S: a folder of CRDs)"
    [ -d "$fixtures" ] || skip "no CRDs at ../shared/fixtures/k8s (RAILGAUGE_K8S)"
    # The check sees what is wrong: a text for a number, a key that does not exist, a number below its least.
    sed 's/slotsPerWorker: 4/slotsPerWorker: four/; s/resourceClaims:/resourceClaim:/; s/numNodes: 0/numNodes: -1/' \
        "$root/jobs/kubernetes/mpijob-gb200.yaml" >bad.yaml
    run "$python" "$root/tests/k8s/check.py" bad.yaml "$fixtures"/*-crd.yaml
    [ "$status" -eq 1 ]
    [[ $output == *"-1 is less than the minimum of 0"* ]]
    ls "$fixtures"/*mpijob* >/dev/null 2>&1 || skip "no CRD of MPIJob there (kubeflow.org_mpijobs.yaml as mpijob-crd.yaml)"
    [[ $output == *"'four' is not of type 'integer'"*".resourceClaim: unknown key"* ]]
}

@test "kubectl applies every Kubernetes file to a strict API server, and what is unknown is refused" {
    command -v kubectl >/dev/null || skip "kubectl is not installed"
    [ -d "$fixtures" ] || skip "no CRDs at ../shared/fixtures/k8s (RAILGAUGE_K8S)"
    python=$(python)
    "$python" -c 'import kubernetes_validate' 2>/dev/null || skip "$(cat why)"
    port=$((20000 + RANDOM % 20000))
    PYTHONPATH=$root/tests/k8s "$python" "$root/tests/k8s/api.py" "$port" "$fixtures"/*-crd.yaml 2>api.err &
    api=$!
    export KUBECONFIG=/dev/null
    k() { timeout 60 kubectl --server "http://127.0.0.1:$port" --cache-dir "$PWD/cache" "$@"; }
    for ((i = 0; i < 100; i++)); do
        k get --raw /version >/dev/null 2>&1 && break || sleep 0.3
    done
    unknown=''
    for f in "$root"/jobs/kubernetes/*.yaml "$root/jobs/health/cronjob.yaml"; do
        # Kinds whose CRD is not here cannot be asked for.
        run k apply -n "$(basename "$f" .yaml)" -f "$f"
        echo "$f: $output"
        [ "$status" -eq 0 ] || [[ $output == *"no matches for kind"* || $output == *"could not find the requested resource"* ]] || { kill "$api"; false; }
        [ "$status" -eq 0 ] || unknown+=" ${f##*/}"
    done
    sed 's/automountServiceAccountToken/autmountServiceAccountToken/' "$root/jobs/kubernetes/setup.yaml" >bad.yaml
    run k apply -n bad -f bad.yaml
    kill "$api"
    [ "$status" -eq 1 ]
    [[ $output == *autmountServiceAccountToken* ]]
    [ -z "$unknown" ] || echo "# not applied, no CRD here:$unknown" >&3
}

@test "every pod of a Kubernetes file that starts ranks knows its node, and hands it to what ssh starts" {
    /usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "Python has no yaml"
    /usr/bin/python3 - "$root"/jobs/kubernetes/*.yaml "$root/jobs/health/cronjob.yaml" <<'PY'
import sys
import yaml


def containers(x):
    if isinstance(x, dict):
        for key, v in x.items():
            if key in ("containers", "initContainers"):
                yield from v
            yield from containers(v)
    elif isinstance(x, list):
        for v in x:
            yield from containers(v)


NODE = {"fieldRef": {"fieldPath": "spec.nodeName"}}
seen = 0
for path in sys.argv[1:]:
    for doc in yaml.safe_load_all(open(path)):
        for c in containers(doc):
            words = c["command"]
            if words[0] not in ("railgauge", "/usr/sbin/sshd") and "measure" not in words:
                continue
            seen += 1
            env = {e["name"]: e.get("valueFrom") for e in c["env"]}
            assert env.get("NODE_NAME") == NODE, (path, c["name"])
            if words[0] == "/usr/sbin/sshd":
                assert words[-2:] == ["-o", "SetEnv=NODE_NAME=$(NODE_NAME)"], path
                assert "readinessProbe" in c, path  # the launcher waits for them
        if doc["kind"] == "MPIJob":
            assert doc["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady", path
            assert doc["spec"]["runPolicy"]["cleanPodPolicy"] == "Running", path
            worker = doc["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
            assert {"key": "nvidia.com/gpu", "operator": "Exists"} in worker["tolerations"], path
assert seen >= 15, seen
PY
}

@test "sshd of the image takes its options, and hands the node's name to what it starts" {
    sshd=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null) || skip "sshd is not installed (openssh-server)"
    ssh-keygen -q -t ecdsa -N '' -f key
    sed -n "s/.*'Port 2222' .*/&/p" "$root/jobs/Containerfile" | grep -oE "'[^']+'" | tr -d "'" | sed "s|HostKey .*|HostKey $PWD/key|" >sshd_config
    [ "$(wc -l <sshd_config)" -ge 5 ]
    run "$sshd" -T -f sshd_config -o SetEnv=NODE_NAME=gpu-7
    echo "$output"
    [[ $output == *"port 2222"* && $output == *"setenv NODE_NAME=gpu-7"* && $output == *"pidfile none"* ]]
}

@test "the claim, the ranks and the replicas of a Kubernetes job agree" {
    for f in "$root"/jobs/kubernetes/mpijob-*.yaml; do
        slots=$(sed -nE 's/.*slotsPerWorker: ([0-9]+).*/\1/p' "$f")
        replicas=$(sed -nE 's/.*replicas: ([0-9]+).*/\1/p' "$f" | tail -1)
        ranks=$(sed -nE 's/.*mpirun .*-n ([0-9]+) --map-by ppr:([0-9]+):node.*/\1 \2/p' "$f")
        gpus=$(sed -nE 's/.*(nvidia.com\/gpu|gpu.nvidia.com, count): ([0-9]+).*/\2/p' "$f")
        [ "$ranks" = "$((slots * replicas)) $slots" ]
        [ "$gpus" = "$slots" ]
    done
    [ "$(grep -c 'railgauge-imex' "$root/jobs/kubernetes/mpijob-gb200.yaml")" -eq 2 ]
}

@test "the command of a Kubernetes job runs: dry run" {
    need_ranks
    /usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "Python has no yaml"
    launcher mpirun
    for f in "$root"/jobs/kubernetes/mpijob-*.yaml; do
        /usr/bin/python3 -c 'import sys, yaml
for d in yaml.safe_load_all(sys.stdin):
    if d["kind"] == "MPIJob":
        for w in d["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]:
            print(w)' <"$f" >words
        mapfile -t words <words
        [ "${words[0]} ${words[1]}" = "railgauge run" ]
        rm -f launched
        run --separate-stderr env PATH="$PWD/bin:$PATH" "${words[@]/\/results/$PWD}" --dry-run
        echo "$f: $output $stderr"
        [ "$status" -eq 0 ]
        [[ $output == *" rounds, about "*" points, "*" moved, "* ]]
        grep -q -- "-x NCCL_" launched
    done
}

# checked FAULT...: what the last check of this host said, with r00n00 of a simulation in its place.
checked() {
    export RAILGAUGE_STATE=$PWD/state SLURMD_NODENAME=r00n00
    railgauge check --fabric hgx-h100 --racks 1 --noise 1% -q "$@" || true
}

@test "NHC's check fails with the reason, and only where a check failed" {
    # What NHC gives its checks.
    die() { printf '%s\n' "$2" >died; }
    log() { printf '%s\n' "$1" >logged; }
    . "$root/jobs/health/railgauge.nhc"
    checked
    check_railgauge
    checked --fault slow-nic=1:0.5
    ! check_railgauge
    [[ $(<died) == "check_railgauge:  railgauge: NIC mlx5_1 of r00n00 (GPU 1) at 50 % of normal over "* ]]
    rm -r state died
    check_railgauge 2h
    [ ! -e died ]
    [[ $(<logged) == *"could not judge"* ]]
}

# patched: what node_condition.sh hands to kubectl, with these options of the check.
patched() {
    mkdir -p bin
    printf '#!/bin/sh\n[ "$2" != node ] || case $1 in get) printf %%s "$WAS" ;; patch) shift 5; printf %%s "$2" >patch ;; esac\n' >bin/kubectl
    printf '#!/bin/sh\nexec %s "$@" %s\n' "$(command -v railgauge)" "$*" >bin/railgauge
    chmod +x bin/*
    rm -rf said && mkdir said
    env PATH="$PWD/bin:$PATH" "$root/jobs/health/node_condition.sh" measure said
    env PATH="$PWD/bin:$PATH" NODE=n1 WAS="$was" "$root/jobs/health/node_condition.sh" tell said
    jq -r '.status.conditions[] | "\(.type) \(.status) \(.reason) \(has("lastTransitionTime"))", .message' patch
}

@test "a node's condition says what the check said" {
    simulated="--fabric hgx-h100 --racks 1 --noise 1%"
    was=
    run -0 patched "$simulated"
    [ "${lines[0]}" = "RailgaugeFault False NoFault true" ]
    was=False
    run -0 patched "$simulated --fault slow-nic=1:0.5"
    [ "${lines[0]}" = "RailgaugeFault True Fault true" ]
    [[ ${lines[1]} == "RAILGAUGE CRITICAL - "*"NIC mlx5_1 of r00n00 (GPU 1), speed over all NICs: 50."* ]]
    was=Unknown
    run -0 --separate-stderr patched -t mpi --launch false
    [ "${lines[0]}" = "RailgaugeFault Unknown NotJudged false" ]
    # The container that measures has no rights: a link of its own shows nothing of the one that has.
    echo token >secret
    rm patch
    ln -sf "$PWD/secret" said/said.text
    run -1 env PATH="$PWD/bin:$PATH" NODE=n1 WAS= "$root/jobs/health/node_condition.sh" tell said
    [ ! -e patch ]
}

@test "the container that measures has no rights and no token; the unit's user has none either" {
    python3 - "$root/jobs/health/cronjob.yaml" <<'PY'
import sys, yaml
pod = list(yaml.safe_load_all(open(sys.argv[1])))[-1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
measure, tell = pod["initContainers"][0], pod["containers"][0]
for c in measure, tell:
    s = c["securityContext"]
    assert not s["allowPrivilegeEscalation"] and s["readOnlyRootFilesystem"] and s["capabilities"]["drop"] == ["ALL"]
assert "token" not in [v["name"] for v in measure["volumeMounts"]]
assert [v["readOnly"] for v in tell["volumeMounts"] if v["name"] in ("said", "token")] == [True, True]
assert "nvidia.com/gpu" not in str(tell)
PY
    unit=$root/jobs/health/railgauge-check.service
    for line in DynamicUser=yes PrivateTmp=yes NoNewPrivileges=yes RuntimeDirectory=railgauge-check; do
        grep -qx "$line" "$unit"
    done
    # The only line that root runs measures nothing.
    [[ $(grep '=[-@:]*[+!]' "$unit") == "ExecStopPost=+/usr/local/bin/railgauge check --take /run/railgauge-check/state "* ]]
    ! grep -q '^StateDirectory' "$unit"
}

# A script of jobs/health with this build and a scontrol of this test, which has a node n1 in ./node: its state and reason.
health_scripts() {
    local railgauge
    railgauge=$(install_for_strangers)
    mkdir -p bin etc
    cat >bin/railgauge <<END
#!/bin/bash
{ echo "uid=\$(id -u) \$*"; env; } >>$PWD/log
case " \$* " in *" --take "* | *" --last "*) set -- "\$@" ;; *) set -- "\$@" $measured ;; esac
exec $railgauge "\$@"
END
    cat >bin/scontrol <<END
#!/bin/bash
cd $PWD
case "\$*" in
"-o show node n1") echo "NodeName=n1 State=x Reason=\$(cat node) [root@2026-11-28T09:00:00]" ;;
*State=DRAIN*) reason=\${*: -1}; echo "\${reason#Reason=}" >node; echo drained >>asked ;;
*State=RESUME*) : >node; echo resumed >>asked ;;
esac
END
    chmod +x bin/*
    for f in "$root"/jobs/health/slurm_*.sh; do
        sed "s|PATH=/usr/local/bin|PATH=$PWD/bin:/usr/local/bin|" "$f" >"etc/${f##*/}"
    done
    chmod +x etc/*
    : >log
    : >asked
    : >node
    chmod a+rw log
    export SLURMD_NODENAME=n1 RAILGAUGE_STATE=$PWD/state RAILGAUGE_USER=nobody
}

@test "an epilog measures as another user, with nothing of the job's environment; root keeps the result" {
    [ "$(id -u)" -eq 0 ] || skip "changing the user needs root"
    measured='--fabric hgx-h100 --racks 1 --noise 1% --fault slow-nic=1:0.5'
    health_scripts
    export SLURMD_NODENAME=r00n00
    sed -i 's/node n1/node r00n00/; s/NodeName=n1/NodeName=r00n00/' bin/scontrol
    LD_LIBRARY_PATH=/evil RAILGAUGE_NCCL=/evil/nccl.so PYTHONPATH=/evil SLURM_JOB_ID=7 run -0 etc/slurm_epilog.sh
    echo "$output"
    uid=$(id -u nobody)
    grep "^uid=$uid check --limit 1m --state /run/railgauge-check\..*/state --quiet" log
    [ "$(grep '^uid=0 ' log | grep -vcE -- '--(take|last) ')" -eq 0 ]
    awk -v u="uid=$uid" '$1 ~ /^uid=/ { in_ = $1 == u } in_' log | { ! grep -E 'evil|SLURM_JOB'; }
    [ "$(stat -c %u state/r00n00.json)" -eq 0 ]
    [ "$(cat asked)" = drained ]
    [[ $(<node) == "railgauge: NIC mlx5_1 of r00n00 (GPU 1) at 50 %"* ]]
    [ -z "$(find /run -maxdepth 1 -name 'railgauge-check.*' -newer bin/scontrol)" ]
    # Without such a user nobody measures, root least of all.
    : >log
    RAILGAUGE_USER=no-such-user run -0 etc/slurm_epilog.sh
    [ ! -s log ]
}

# verdict PASS|FAIL REASON AGE: what the last check of this node said.
verdict() {
    [ -e any.json ] || { railgauge check --fabric hgx-h100 --racks 1 --noise 1% --state any -q && cp any/r00n00.json any.json; }
    mkdir -p state
    jq --arg v "$1" --arg r "$2" --argjson t "$(date +%s)" '.host = "n1" | .verdict = $v | .reason = $r | .time_s = $t' any.json >state/n1.json
}

@test "a node that was repaired comes back after a reboot, and only if nobody else drained it" {
    health_scripts
    verdict FAIL "railgauge: NIC mlx5_1 of n1"
    run -0 etc/slurm_health.sh
    [ "$(<node)" = "railgauge: NIC mlx5_1 of n1" ]
    run -0 etc/slurm_health.sh # said once
    [ "$(<asked)" = drained ]
    # What outlives a reboot is below the state: /run is not asked.
    [ "$(<state/n1.drained)" = "railgauge: NIC mlx5_1 of n1" ]
    ! grep -v '^#' "$root"/jobs/health/slurm_health.sh | grep /run
    verdict PASS ""
    # A controller that does not answer is asked again.
    mv bin/scontrol bin/later
    printf '#!/bin/sh\nexit 1\n' >bin/scontrol && chmod +x bin/scontrol
    run -0 etc/slurm_health.sh
    [ -e state/n1.drained ]
    mv bin/later bin/scontrol
    run -0 etc/slurm_health.sh
    [ "$(<asked)" = $'drained\nresumed' ]
    [ ! -e state/n1.drained ]
    # Somebody else's words stay, also where they begin with ours; so does a node that a person resumed.
    for other in "disk broken" "railgauge: NIC mlx5_1 of n1, and the disk"; do
        : >asked
        verdict FAIL "railgauge: NIC mlx5_1 of n1"
        run -0 etc/slurm_health.sh
        echo "$other" >node
        verdict PASS ""
        run -0 etc/slurm_health.sh
        [ "$(<node)" = "$other" ]
        [ "$(<asked)" = drained ]
        [ ! -e state/n1.drained ]
    done
    # A prolog's drain is marked, too.
    : >asked
    verdict FAIL "railgauge: GPU 3 of n1"
    run -1 etc/slurm_prolog.sh
    [ "$(<state/n1.drained)" = "railgauge: GPU 3 of n1" ]
    verdict PASS ""
    run -0 etc/slurm_prolog.sh
    run -0 etc/slurm_health.sh
    [ "$(<asked)" = $'drained\nresumed' ]
}

@test "the CronJob is what Kubernetes takes, the timer what systemd takes" {
    if command -v systemd-analyze >/dev/null; then
        mkdir units
        cp "$root"/jobs/health/railgauge-check.* units/
        sed -i 's|^\(Exec[A-Za-z]*=+*\).*railgauge |\1/bin/true |' units/railgauge-check.service
        run -0 systemd-analyze verify units/railgauge-check.service units/railgauge-check.timer
        ! grep units/railgauge <<<"$output"
    fi
    [ -x "$root/$(grep -oE 'jobs/health/[a-z_]*\.sh' "$root/jobs/health/cronjob.yaml" | tail -n 1)" ]
    python3 -c 'import kubernetes_validate' 2>/dev/null || skip "no python3 kubernetes_validate"
    python3 - "$root/jobs/health/cronjob.yaml" <<'PY'
import sys, yaml, kubernetes_validate
for doc in yaml.safe_load_all(open(sys.argv[1])):
    kubernetes_validate.validate(doc, "1.32", strict=True)
PY
}
