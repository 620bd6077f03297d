#!/usr/bin/env bats
# place_jobs.bats - several jobs on one machine: nodes of their own, what they lose, what stays free.

bats_require_minimum_version 1.5.0
load rejects

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    machine=(--fabric gb200-nvl72 --racks 5)
    cat >jobs <<'END'
# name  nodes  what it does
train - model=llama3.1-70b layout=tp=8,dp=16
moe	16 model=mixtral-8x7b layout=dp_shard=64,ep=8 strategy=fsdp   # whole domains

coll 20 all_gather 64M x 12; all_to_all 8M x 4 groups of 8
END
}

refuse() { rejects place "$@"; }

@test "each job has nodes of its own, no job is faster than alone, and what is free is counted" {
    railgauge place "${machine[@]}" --jobs jobs --json >answer
    python3 - <<'PY'
import json, re, collections
a = json.load(open("answer"))
assert [(j["name"], j["ranks"], j["node_count"]) for j in a["jobs"]] == [("train", 128, 32), ("moe", 64, 16), ("coll", 80, 20)]
free = {(r, n) for r in range(5) for n in range(18)}
for j in a["jobs"]:
    nodes = {o.split()[0] for o in j["order"]}
    assert len(j["order"]) == j["ranks"] == len(set(j["order"])) and len(nodes) == j["node_count"]
    mine = {tuple(map(int, re.fullmatch(r"r(\d+)n(\d+)", n).groups())) for n in nodes}
    assert mine <= free, j["name"]
    free -= mine
    assert j["bound_s"] <= j["step_s"] and j["alone_s"] <= j["step_s"] * (1 + 1e-6), j["name"]
    rack = j["groups"]["rack"]
    assert rack["touched"] == len({r for r, _ in mine}) and rack["fewest"] == -(-len(mine) // 18)
assert a["free_nodes"] == len(free) == 90 - 68
rack = next(l for l in a["levels"] if l["level"] == "rack")
left = collections.Counter(r for r, _ in free)
assert (rack["groups"], rack["whole"], rack["split"], rack["largest"]) == (
    5, sum(n == 18 for n in left.values()), sum(n < 18 for n in left.values()), max(left.values()))
assert rack["split_nodes"] == sum(n for n in left.values() if n < 18)
PY
    run railgauge place "${machine[@]}" --jobs jobs
    [ "$status" -eq 0 ]
    [[ $output == *"train    128     32 "*"22 of 90 nodes stay free"*"rack "* ]]
}

@test "the step of a job is what predict says of the file that was written for it" {
    railgauge place "${machine[@]}" --jobs jobs --json --write order=order --write nodes=nodes >answer
    [ "$(echo order.*)" = "order.coll order.moe order.train" ]
    [ "$(cat nodes.train)" = "$(jq -r '.jobs[0].nodes' answer)" ]
    railgauge predict "${machine[@]}" --model llama3.1-70b --layout tp=8,dp=16 --order order.train --json >predicted
    python3 - <<'PY'
import json
job, step = json.load(open("answer"))["jobs"][0], json.load(open("predicted"))
assert abs(job["step_s"] / step["step_s"] - 1) < 1e-7, (job["step_s"], step["step_s"])
PY
}

# Two jobs of one rack and one of half a rack on three racks with holes: as listed the small one would break a whole rack.
@test "large jobs come first where the small ones would break their racks" {
    printf 'small 4 all_gather 1G\none 16 all_to_all 64M\ntwo 16 all_to_all 64M\n' >racks
    railgauge place --fabric gb200-nvl72 --racks 3 --exclude 'r00n[00-11]' --jobs racks --json >answer
    [ "$(jq -c '[.jobs[].groups.rack.touched]' answer)" = "[1,1,1]" ]
    [ "$(jq '[.jobs[] | .step_s / .alone_s] | max < 1.000001' answer)" = true ]
}

@test "the same file gives the same answer, and it keeps to its schema" {
    railgauge place "${machine[@]}" --jobs jobs --json -o written >a
    railgauge place "${machine[@]}" --jobs jobs --json --dry-run >dry
    cmp a written
    railgauge place "${machine[@]}" --jobs jobs --json >b
    cmp <(jq 'del(.provenance)' a) <(jq 'del(.provenance)' b)
    [ "$(jq -c '[.jobs[].node_count], .free_nodes' dry | paste -sd' ')" = "[32,16,20] 90" ]
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    python3 - "$top/src/schema/place_jobs.schema.json" a dry <<'PY'
import json, sys, jsonschema
schema, *answers = (json.load(open(f)) for f in sys.argv[1:])
for a in answers:
    jsonschema.validate(a, schema)
PY
}

@test "what is wrong is said with the line" {
    bad() { # CODE TEXT LINE
        printf '# a comment\n%s\n' "$3" >bad
        refuse "$1" "$2" "${machine[@]}" --jobs bad
    }
    bad 65 'bad:2: "alone" is no job: NAME NODES WORDS' 'alone'
    bad 65 'bad:2: "../x": a name is' '../x 4 all_gather 1M'
    bad 65 'bad:2: nodes: ' 'a 91 all_gather 1M'
    bad 65 'bad:2: collectives do not say how many nodes' 'a - all_gather 1M'
    bad 65 'bad:2: "all_gathr" is neither KEY=VALUE nor a collective' 'a 4 all_gathr 1M'
    bad 65 'bad:3: job a is in line 2 too' $'a 4 all_gather 1M\na 4 all_gather 1M'
    bad 65 'bad: no job' ''
    printf 'a 60 all_gather 1M\nb 31 all_gather 1M\n' >full
    refuse 64 'full:2: job b: 31 nodes are needed and 30 are left' "${machine[@]}" --jobs full
    refuse 64 '--dry-run belongs to --jobs' "${machine[@]}" --dry-run --model llama3.1-8b --layout dp=8
    refuse 64 '--jobs takes the place of' "${machine[@]}" --jobs jobs --layout dp=8
    refuse 64 'each job' "${machine[@]}" --jobs jobs --write nodes
    refuse 66 'none' "${machine[@]}" --jobs none
}

# All ways to give two jobs their nodes are priced as listed, one by one: place is as good as the best of them.
@test "two jobs on few nodes, one of them slow: as good as the best of all ways to share them" {
    matrix=$top/tests/golden/matrix.json
    python3 - "$matrix" <<'PY'
import itertools, json, random, subprocess, sys
matrix, rng = sys.argv[1], random.Random(1)
words = ["all_reduce 1G", "all_to_all 64M", "all_gather 64M x 3", "all_gather 64M; all_to_all 8M groups of 2"]
def railgauge(*a):
    return json.loads(subprocess.run(["railgauge", *a, "--json"], stdout=subprocess.PIPE, check=True).stdout)
for _ in range(6):
    free = rng.sample([f"n{i:02}" for i in range(8)], 6)
    sizes, jobs = rng.choice([(3, 3), (2, 3), (2, 4)]), rng.sample(words, 2)
    with open("two", "w", encoding="utf-8") as f:
        f.writelines(f"j{i} {sizes[i]} {jobs[i]}\n" for i in (0, 1))
    placed = railgauge("place", matrix, "--jobs", "two", "--nodes", ",".join(free))["jobs"]
    mine = sum(j["step_s"] / j["alone_s"] for j in placed)
    sec = [{s: railgauge("nodes", matrix, "--job", jobs[i], "--nodes", ",".join(s))["sets"][0]["seconds"] / placed[i]["alone_s"]
            for s in itertools.combinations(free, sizes[i])} for i in (0, 1)]
    best = min(a + b for s, a in sec[0].items() for t, b in sec[1].items() if not set(s) & set(t))
    assert mine <= best * (1 + 1e-4), (free, sizes, jobs, mine, best)
PY
}

@test "a job that only dead nodes are left for is refused with its line" {
    jq -c '.exceptions[0].factor = 0 | del(.exceptions[0].tier)' "$top/tests/golden/matrix.json" >dead.json
    railgauge seal dead.json
    printf 'a 6 all_gather 1M\nb 2 all_gather 1M\n' >two
    refuse 2 'two:2: job b: 2 nodes are needed, and those that are left have a dead part' dead.json --jobs two
    printf 'a 5 all_gather 1M\nb 2 all_gather 1M\n' >two
    railgauge place dead.json --jobs two --json | jq -e '[.jobs[].nodes] | all(test("n05") | not)'
}
