#!/usr/bin/env bats
# below.bats - a campaign beside one that was measured below it: explain, show parts, accept and report with --below.

bats_require_minimum_version 1.5.0

load rejects

top=$BATS_TEST_DIRNAME/../..

# campaign NAME TRANSPORT OPTION...: simulated, and called of that transport
campaign() {
    railgauge run --transport sim --no-plots --no-verdict -q --noise 2% --op pairs -o "$1" "${@:3}"
    sed -i "1s/transport=sim/transport=$2/" "$1/points.tsv"
    jq --arg t "$2" '.transport = $t' "$1/matrix.json" >"$1.json"
    mv "$1.json" "$1/matrix.json"
    railgauge seal "$1/matrix.json"
}

# A NIC is slow above only, one in both, one of which NCCL gets less still, one below only; a host of rack 1.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    campaign up nccl --fabric gb200-nvl72 --racks 2 --fault slow-nic=17:0.6 --fault slow-nic=30:0.5 --fault slow-nic=50:0.4 \
        --fault slow-host=r01n07:0.7
    campaign low verbs --sim-seed 4 --fabric gb200-nvl72 --racks 2 --fault slow-nic=30:0.5 --fault slow-nic=50:0.8 \
        --fault slow-nic=60:0.5
    campaign rack0 verbs --sim-seed 5 --fabric gb200-nvl72 --racks 1 --fault slow-nic=30:0.5
}

setup() { cd "$BATS_FILE_TMPDIR" || return 1; }

# said NAME: what the row of that part says below
said() { jq -r --arg n "$1" '.parts[] | select(.name | startswith($n)) | .below | "\(.verdict): \(.text)"' <<<"$output"; }

@test "each part says whether the NIC is good, and what only lies below stands by itself" {
    run -0 railgauge show up parts --below low --json
    [[ $(said "NIC mlx5_1 of r00n04") == "good: "*"NCCL 29."*" GB/s: the NIC is good, NCCL is not" ]]
    [[ $(said "NIC mlx5_2 of r00n07") == "slow: "*"NCCL 24."*" GB/s: slow below NCCL too: NIC, cable or switch" ]]
    [[ $(said "NIC mlx5_2 of r00n12") == "both: "*"39."*" GB/s, NCCL 19."*" GB/s: slow below NCCL too: NIC, cable or switch; and NCCL loses more" ]]
    [[ $(said "host r01n07") == "good: "*": its NICs are good, NCCL is not" ]]
    [ "$(jq '.below_only | length' <<<"$output")" -eq 1 ]
    [[ $(jq -r '.below_only[0]' <<<"$output") == "NIC mlx5_0 of r00n15 (GPU 0): 50 % of normal in "*", and no part above: slow below NCCL only" ]]
    # both rates with their intervals, at one size
    jq -e '[.parts[].below | select(.rate_below.low_Bps < .rate_below.Bps and .rate_below.Bps < .rate_below.high_Bps and
           .bytes > 1e6 and .pairs > 3 and .above == "nccl" and .below == "verbs")] | length == 4' <<<"$output"
    run -0 railgauge show up parts --below low
    [[ $output == *"NIC mlx5_1 of r00n04 (GPU 1)"*"  lower layer "*": the NIC is good, NCCL is not"* ]]
}

@test "what to do next is another thing where the NIC is good" {
    run -0 railgauge show up parts --below low --json
    local good slow
    good=$(jq -r '.parts[] | select(.name | startswith("NIC mlx5_1 of r00n04")).next' <<<"$output")
    slow=$(jq -r '.parts[] | select(.name | startswith("NIC mlx5_2 of r00n07")).next' <<<"$output")
    [[ $good == "mlx5_1 of r00n04 reaches its rate in the lower layer, so leave its cable."*NCCL_IB_HCA* ]]
    [[ $slow == *"swap the cable"* ]]
    # of MPI: other words; without --below: as ever
    cp -r up mpi
    sed -i "1s/transport=nccl/transport=mpi/" mpi/points.tsv
    sed -i 's/"transport": *"nccl"/"transport": "mpi"/' mpi/matrix.json
    railgauge seal mpi/matrix.json
    run -0 railgauge show mpi parts --below low --json
    [[ $(said "NIC mlx5_1 of r00n04") == *"MPI 29."*": the NIC is good, MPI is not" ]]
    [[ $(jq -r '.parts[] | select(.name | startswith("NIC mlx5_1 of r00n04")).next' <<<"$output") == *UCX_NET_DEVICES* ]]
    run -0 railgauge show up parts --json
    [ "$(jq -r '[.parts[] | has("below")] | any' <<<"$output")" = false ]
    [[ $(jq -r '.parts[] | select(.name | startswith("NIC mlx5_1 of r00n04")).next' <<<"$output") == *"swap the cable"* ]]
}

@test "explain: the same pair below, in one sentence" {
    run -0 railgauge explain up r00n04:1 r01n04:1 --below low
    [[ $output == *"mlx5_1 r00n04 -> r01n04: "*" 4"[89]*" GB/s, NCCL "[23]*" GB/s: the NICs and what is between them are good, NCCL is not"* ]]
    run -0 railgauge explain up r00n15:0 r01n15:0 --below low --json
    [[ $(jq -r .below.verdict <<<"$output") == other-path ]]
    run -0 railgauge explain up r00n15:0 r00n16:0 --below low
    [[ $output == *"mlx5_0 r00n15 -> r00n16: does not cross NICs: nothing below NCCL to compare"* ]]
    run -0 railgauge explain up r00n00:0 r01n00:0
    [[ $output != *below* ]]
}

@test "what was not measured below is called so: hosts that are not there, pairs of those that are" {
    run -0 railgauge show up parts --below rack0 --json
    # all of one NVLink domain: over NVLink no pair says anything of the NICs, unless it is left
    [[ $(said "host r01n07") == "not-measured: "*"not measured below" ]]
    run -0 railgauge explain up r00n04:1 r01n04:1 --below rack0
    [[ $output == *": not measured below"* ]]
    # a pair that was not drawn below, whose NICs were
    run -0 railgauge explain up r00n01:1 r01n11:3 --below low
    [[ $output == *": not measured below; its sender gives "*" other pairs; its receiver gets "* ]]
}

@test "ranks in another order, random faults above, below, in both or none: the sentence names what was put there" {
    command -v python3 >/dev/null || skip "no python3 here"
    run -0 python3 "$top/tests/random/below.py" -n 6 --seed 7
    [[ $output == *"6 pairs of campaigns, seed 7: 0 with something wrong; asked: "* ]]
}

@test "accept and report say it too, and a campaign inside needs no telling" {
    run -1 railgauge accept up --below low
    [[ $output == *"NIC mlx5_1 of r00n04 (GPU 1)"*"  lower layer "*": the NIC is good, NCCL is not"* ]]
    cp -r up own
    cp -r low own/below
    run -1 railgauge accept own --json
    [[ $(said "NIC mlx5_1 of r00n04") == good:* ]]
    run -0 railgauge show own parts
    [[ $output == *": the NIC is good, NCCL is not"* ]]
    run -0 railgauge explain own r00n04:1 r01n04:1
    [[ $output == *"NCCL is not"* ]]
    # but what is named goes first
    run -0 railgauge show own parts --below rack0
    [[ $output != *"NCCL is not"* ]]
    run -1 railgauge report up --below low -o page.html
    [[ $output == *": the NIC is good, NCCL is not"* ]]
    grep -q "<strong>Below:</strong> .*: the NIC is good, NCCL is not" page.html
    grep -q "NIC mlx5_0 of r00n15 (GPU 0): 50 % of normal in .*slow below NCCL only" page.html
}

@test "JSON by the schemas" {
    python3 -c 'import jsonschema, referencing' 2>/dev/null || skip "no jsonschema here (package python3-jsonschema)"
    railgauge explain up r00n04:1 r01n04:1 --below low --json >explain.out
    railgauge show up parts --below low --json >show.out
    railgauge accept up --below low --json >accept.out || [ $? -eq 1 ]
    railgauge report up --below low --json >report.out || [ $? -eq 1 ]
    python3 - "$top/src/schema" explain show accept report <<'END'
import json, sys
import jsonschema
from referencing import Registry, Resource
of = {n: json.load(open(f"{sys.argv[1]}/{n}.schema.json")) for n in ("accept", "explain", "history", "report", "show")}
about = Registry().with_resources((f"{n}.schema.json", Resource.from_contents(s)) for n, s in of.items())
for n in sys.argv[2:]:
    jsonschema.Draft202012Validator(of[n], registry=about).validate(json.load(open(f"{n}.out")))
# the rows of show are those of accept
row = json.load(open("show.out"))["parts"]
jsonschema.Draft202012Validator({"$ref": "accept.schema.json#/properties/parts"}, registry=about).validate(row)
END
}

@test "a matrix alone, points.tsv, and what cannot lie below" {
    run -0 railgauge show up parts --below low/matrix.json --json
    [[ $(said "NIC mlx5_1 of r00n04") == "good: "* ]]
    [ "$(jq -r '.parts[0].below.pairs' <<<"$output")" -eq 0 ]
    run -0 railgauge show up parts --below low/points.tsv --json
    [ "$(jq -r '.parts[0].below.pairs > 0' <<<"$output")" = true ]
    rejects show 65 "up is of transport nccl, which does not lie below nccl" up parts --below up
    rejects show 66 "nowhere: No such file or directory" up parts --below nowhere
    campaign other verbs --fabric hgx-h100 --racks 2 >/dev/null
    sed 's/r0\([01]\)n/x0\1n/g' other/matrix.json >other.json
    railgauge seal other.json
    rejects show 65 "has no NIC or GPU of the campaign's: its hosts are x0" up parts --below other.json
    # nccl is above mpi, not below
    cp -r low mpi-low
    sed -i 's/"transport": *"verbs"/"transport": "mpi"/' mpi-low/matrix.json
    railgauge seal mpi-low/matrix.json
    rejects show 65 "up is of transport nccl, which does not lie below mpi" mpi-low/matrix.json parts --below up
    run -0 railgauge show up/matrix.json parts --below mpi-low/matrix.json
    [[ $output == *"MPI "*", NCCL "*": the NIC is good, NCCL is not"* ]]
}
