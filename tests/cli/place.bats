#!/usr/bin/env bats
# place.bats - which nodes and which rank where: words, JSON, and the files that launchers read.

bats_require_minimum_version 1.5.0
load cpu
load rejects

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    scout=(--fabric gb200-nvl72 --racks 4 --model llama4-scout --layout "dp_shard=256,ep=16" --strategy fsdp --stack torchtitan
        --mesh-order torchtitan --micro-batch 10 --accumulation 1 --recompute full)
}

# refuse CODE TEXT OPTION...: exit code and a line of stderr.
refuse() { rejects place "$@"; }

@test "words: step beside default, random and bound, and which axis lies where" {
    run railgauge place "${scout[@]}"
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "step: "*" s instead of "*" s in the default order" ]]
    [ "${lines[1]}" = "llama4-scout, dp_shard=256,ep=16, fsdp: 256 ranks on 64 of 72 free nodes of gb200-nvl72" ]
    [[ $output == *"placed "*"default "*"random "*"bound "* ]]
    [[ $output == *"ep "*"16 x 16  placed "*"1 domain, 4 nodes"*"  default "*"2 domains (8+ ranks each)"* ]]
    [[ $output == *"nodes: r00n[00-15],r01n[00-15],r02n[00-15],r03n[00-15]"* ]]
    [ "${lines[-1]}" = "to use it: --write sbatch=FILE, slurm-hostfile=FILE or order=FILE" ]
}

# Racks of 72 hold eight groups of tp and eight ranks of each data-parallel group, and no whole one.
@test "an axis that no domain holds whole is cut evenly, and the bound is as tight" {
    run railgauge place --fabric gb200-nvl72 --racks 128 --model llama3.1-405b --layout tp=8,pp=8,dp=128 --gpus 8192 --json
    [ "$status" -eq 0 ]
    [ "$(jq '.bound_s <= .step_s and .step_s < 1.02 * .bound_s and .default_s > 1.5 * .step_s' <<<"$output")" = true ]
}

@test "words fit into 80 columns, and say plainly that the default order will do" {
    COLUMNS=80 run railgauge place --fabric gb200-nvl72 --racks 128 --nodes "$(seq -f 'r%02.0fn[00-15]' -s, 0 127)" --model llama3.1-405b --layout tp=8,pp=8,dp_shard=128 --batch 1024
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(awk '{ if (length($0) > most) most = length($0) } END { print most }' <<<"$output")" -le 80 ]
    [[ $output == *"the default order is as good as any that was tried"* ]]
    [[ $output == *"nodes: r00n[00-15],r01n[00-15],... (2048 in all; --write nodes=FILE)"* ]]
    # A list without short pieces is cut inside of a bracket.
    printf 'src\tdst\tbytes\n0\t255\t1e9\n' >bytes
    run railgauge place --fabric gb200-nvl72 --racks 8 --traffic bytes --nodes "$(seq -f 'r%02.0fn00' -s, 0 7),$(for r in 0 1 2 3 4 5 6 7; do seq -f "r0${r}n%02.0f" -s, 1 2 17; done | paste -sd,)"
    echo "$output"
    [[ $output == *",... (64 in all; --write nodes=FILE)"* ]]
}

@test "predict gives the step that place printed, for the order that it wrote" {
    railgauge place "${scout[@]}" --json --write order=order.txt -o place.json >printed.json
    cmp printed.json place.json
    railgauge predict "${scout[@]}" --order order.txt --json >predicted.json
    python3 - <<'PY'
import json
place, step = json.load(open("place.json")), json.load(open("predicted.json"))
assert abs(place["step_s"] / step["step_s"] - 1) < 1e-7, (place["step_s"], step["step_s"])
assert place["bound_s"] <= place["step_s"] < place["default_s"] < place["random_s"]
PY
}

@test "place.json keeps to its schema, for models and for traffic, as the golden example does" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    railgauge place "${scout[@]}" --json >model.json
    railgauge place "$top/tests/golden/matrix.json" --traffic "$top/tests/bad/demand/good.tsv" --json >traffic.json
    python3 - "$top/src/schema/place.schema.json" model.json traffic.json "$top/tests/golden/place.json" <<'PY'
import json, sys, jsonschema
schema, *answers = (json.load(open(f)) for f in sys.argv[1:])
for a in answers:
    jsonschema.validate(a, schema)
PY
}

@test "the same seed gives the same answer, whatever the machine does meanwhile" {
    local how=(--fabric gb200-nvl72 --racks 6 --model llama4-scout --layout "dp_shard=256,ep=16" --strategy fsdp
        --mesh-order torchtitan --exclude "r00n[03-04],r01n07,r02n[00-02],r03n17,r04n09" --seed 5)
    railgauge place "${how[@]}" --write order >a &
    railgauge place "${how[@]}" --write order >b
    wait $!
    cmp a b
    [ "$(grep -vc '^#' a)" -eq 256 ]
    run ! grep -E '^(r00n0[34]|r01n07|r02n0[0-2]|r03n17|r04n09) ' a
}

@test "the forms for launchers, of one placement" {
    printf 'n03,n01\nn[05-06] # the others\n' >free
    printf 'src\tdst\tbytes\n0\t1\t1e9\n2\t3\t1e9\n4\t5\t1e9\n' >bytes
    whole() { railgauge place "$top/tests/golden/matrix.json" --nodes-file free --traffic bytes --write "$1"; }
    place() { whole "$1" | grep -v '^#'; }
    [ "$(place order)" = $'n03 0\nn03 1\nn01 0\nn01 1\nn05 0\nn05 1' ]
    [ "$(place nodes)" = "n[03,01,05]" ]
    [ "$(place rankfile)" = $'rank 0=n03 slot=0\nrank 1=n03 slot=1\nrank 2=n01 slot=0\nrank 3=n01 slot=1\nrank 4=n05 slot=0\nrank 5=n05 slot=1' ]
    [ "$(place hostfile)" = $'n03 slots=2\nn01 slots=2\nn05 slots=2' ]
    [ "$(place mpich)" = $'n03:2\nn01:2\nn05:2' ]
    [ "$(place slurm-hostfile)" = $'n03\nn03\nn01\nn01\nn05\nn05' ]
    [ "$(place sbatch)" = "sbatch --nodes=3 --ntasks=6 --ntasks-per-node=2 --nodelist=n[03,01,05]" ]
    [ "$(place torchrun)" = $'node\tnode_rank\tnnodes\tnproc_per_node\nn03\t0\t3\t2\nn01\t1\t3\t2\nn05\t2\t3\t2' ]
    # The first line says which command reads it; what a command takes whole has none.
    [ "$(whole order | head -1)" = "# rank i runs on line i, node and device: railgauge predict ... --order FILE" ]
    [[ $(whole rankfile | head -1) == "# Open MPI 4: mpirun -n 6 --rankfile FILE; Open MPI 5: mpirun -n 6 --hostfile FILE --map-by rankfile:file=FILE"* ]]
    [ "$(whole hostfile | head -1)" = "# mpirun -n 6 --hostfile FILE --map-by slot" ]
    [ "$(whole mpich | head -1)" = "# mpiexec -n 6 -f FILE" ]
    [[ $(whole slurm-hostfile | head -1) == "# SLURM_HOSTFILE=FILE srun -n 6 -m arbitrary, without -N"* ]]
    [[ $(whole torchrun | head -1) == "# torchrun --node-rank "* ]]
    [ "$(whole nodes; whole sbatch)" = "$(place nodes; place sbatch)" ]
    whole kubernetes >affinity.yaml
    python3 -c 'import yaml' || skip "no python3 yaml"
    python3 - <<'PY'
import yaml
term = yaml.safe_load(open("affinity.yaml"))["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"][0]
assert term == {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n03", "n01", "n05"]}, term
PY
}

@test "sixteen of eighteen: the sbatch line asks for whole segments, and files say how they are used" {
    run railgauge place "${scout[@]}" --write sbatch=job --write slurm-hostfile=hosts --write rankfile=ranks --write torchrun=t
    [ "$status" -eq 0 ]
    [ "$(cat job)" = "sbatch --nodes=64 --ntasks=256 --ntasks-per-node=4 --segment=16 --nodelist=r00n[00-15],r01n[00-15],r02n[00-15],r03n[00-15]" ]
    [[ $output == *"SLURM_HOSTFILE=hosts srun -n 256 -m arbitrary, without -N; not with topology/block of 26.05"* ]]
    [[ $output == *"Open MPI 4: mpirun -n 256 --rankfile ranks; Open MPI 5: mpirun -n 256 --hostfile ranks --map-by rankfile:file=ranks"* ]]
    [[ $output == *"torchrun --node-rank \$(awk"* ]]
    [ "$(grep -vc '^#' hosts)" -eq 256 ]
}

@test "traffic: partners that were apart come together, Matrix Market and table alike" {
    printf 'src\tdst\tbytes\n' >bytes
    printf '%%%%MatrixMarket matrix coordinate real general\n16 16 16\n' >bytes.mtx
    for i in $(seq 0 7); do
        printf '%d\t%d\t1e9\n%d\t%d\t1e9\n' "$i" $((i + 8)) $((i + 8)) "$i" >>bytes
        printf '%d %d 1e9\n%d %d 1e9\n' $((i + 1)) $((i + 9)) $((i + 9)) $((i + 1)) >>bytes.mtx
    done
    railgauge place "$top/tests/golden/matrix.json" --traffic bytes --json >a
    railgauge place "$top/tests/golden/matrix.json" --traffic bytes.mtx --json >b
    python3 - <<'PY'
import json
a, b = json.load(open("a")), json.load(open("b"))
assert a["order"] == b["order"]
node = [x.split()[0] for x in a["order"]]
assert all(node[i] == node[i + 8] for i in range(8)), node
assert a["step_s"] < a["default_s"] / 2 and abs(a["step_s"] / a["bound_s"] - 1) < 1e-9, (a["step_s"], a["bound_s"])
PY
}

@test "what does not fit, and what contradicts itself, is refused in words" {
    local m=$top/tests/golden/matrix.json t=$top/tests/bad/demand/good.tsv
    refuse 64 "place finds the order of ranks" "$m" --traffic "$t" --segment 2
    refuse 64 "--traffic takes the place of --model and --layout" "$m" --traffic "$t" --layout dp=4
    refuse 64 'no form "slurm" (did you mean "slurm-hostfile"?); known are order, nodes, rankfile' "$m" --traffic "$t" --write slurm
    refuse 64 'no file after "order="' "$m" --traffic "$t" --write order=
    refuse 64 "only one of --json and --write" "$m" --traffic "$t" --write order --json
    refuse 64 "--nodes and --nodes-file" "$m" --traffic "$t" --nodes n01 --nodes-file x
    refuse 64 '--exclude: node "n77" is not among the' "$m" --traffic "$t" --exclude n77
    refuse 64 "the job has 4 ranks and the 3 free hosts have room for 3" "$m" --traffic "$t" --per-node 1 --nodes "n[00-03]" --exclude n01
    refuse 64 "--limit" "$m" --traffic "$t" --limit 0
    refuse 64 "--seed" "$m" --traffic "$t" --seed x
    refuse 66 "No such file" "$m" --traffic none.tsv
    printf '# nobody\n' >empty
    refuse 65 "empty: no node is named" "$m" --traffic "$t" --nodes-file empty
    refuse 2 "no nvfp4 peak rate of" --fabric hgx-h100 --dtype nvfp4 --layout dp=8
    run railgauge place "$m" --traffic "$t" --write order=/nonexistent/x # says what it found all the same
    [ "$status" -eq 74 ]
}

@test "ranks that come back to a node are said by rankfile and refused by a hostfile" {
    printf 'src\tdst\tbytes\n' >bytes # 0 with 3, 1 with 2: on two nodes of two
    printf '0\t3\t1e9\n3\t0\t1e9\n1\t2\t1e9\n2\t1\t1e9\n' >>bytes
    run --separate-stderr railgauge place "$top/tests/golden/matrix.json" --traffic bytes --write rankfile
    [ "$status" -eq 0 ]
    [[ $stderr == *"placed"*"default"*"random"* ]] # what the placement costs is never hidden
    [ "$(awk -F'[ =]' '!/^#/ { print $3 }' <<<"$output" | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" = "2 2 " ]
    refuse 65 "comes back to node" "$top/tests/golden/matrix.json" --traffic bytes --write hostfile
    refuse 65 "use rankfile or slurm-hostfile" "$top/tests/golden/matrix.json" --traffic bytes --write torchrun
}

@test "8,192 GPUs take less than a second" {
    [[ $RG_BUILD != *address* ]] || skip "with sanitizers everything takes longer"
    for layout in "tp=1,pp=8,dp=1024,ep=64 --model deepseek-v3" "tp=8,pp=8,cp=2,dp=64 --model llama3.1-405b"; do
        # shellcheck disable=SC2086 # words
        cpu_seconds railgauge place --fabric gb200-nvl72 --racks 128 --strategy zero1 --batch 8192 --layout $layout --json >p.json || [ $? -eq 1 ] # no room
        jq -e '.took_s > 0 and .step_s < .default_s / 1.02' p.json
        echo "$layout: $cpu s"
        awk -v t="$cpu" 'BEGIN { exit !(t < 1) }'
    done
}
