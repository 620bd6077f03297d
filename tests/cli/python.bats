#!/usr/bin/env bats
# python.bats - jobs/python: what is read is what the files hold, and prices are those of the library and the command line.

bats_require_minimum_version 1.5.0
matrix=tests/golden/matrix.json

# A small campaign, random but for its kind.
setup_file() {
    local fabrics=(gb200-nvl72 hgx-h100 gb300-nvl72)
    seed=${RG_SEED:-$((${RG_ALL:-0} ? RANDOM : 1))}
    RANDOM=$seed
    fabric=${fabrics[RANDOM % 3]}
    export seed campaign=$BATS_FILE_TMPDIR/campaign
    words=(--fabric "$fabric" --racks $((1 + RANDOM % 3)) --noise $((1 + RANDOM % 5))% --seed "$seed" --sim-seed "$seed"
        --op "pairs,all_gather,all_to_all,all_reduce" -e 64M --fault "slow-nic=$((RANDOM % 32)):0.6"
        --fault "late-nic=$((RANDOM % 32)):20us")
    [ $((RANDOM % 2)) -eq 0 ] || words+=(--fault "slow-host=$((RANDOM % 4)):0.7")
    [ $((RANDOM % 3)) -gt 0 ] || words+=(--blind)
    railgauge run -t sim "${words[@]}" -o "$campaign" --no-plots --no-verdict >"$BATS_FILE_TMPDIR/log" 2>&1 ||
        { cat "$BATS_FILE_TMPDIR/log"; return 1; }
    echo "# seed $seed: ${words[*]}" >&3
}

setup() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    export LIBRAILGAUGE=${RG_BUILD:-build}/librailgauge.so.0 PYTHONPATH=$PWD/jobs/python PYTHONDONTWRITEBYTECODE=1
    export RAILGAUGE_DATA=$PWD
}

library() { [ -z "${RG_SAN-}" ] || skip "Python loads the library without sanitizers"; }

python() { # PROGRAM
    run python3 -c "
from railgauge import Error, Matrix
import math
m = Matrix('$matrix')
def refused(call, words):
    try:
        call()
    except Error as e:
        assert words in str(e), e
    else:
        raise AssertionError('not refused: ' + words)
$1"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "pairs, collectives, names and levels" {
    python "
assert len(m) == 16 and m.hosts() == ['n%02d' % i for i in range(8)]
assert m.find('n05', 1) == 11 and m.find('n08', 0) is None and m.find('n05', 2) is None
assert m.level(11, 'host') == 'n05' and m.level(11, 'shelf') is None
assert math.isnan(m.pair(0, 99, 8)) and m.pair(3, 3, 8) == 0
assert math.isnan(m.collective('all_gossip', [0, 1], 8))
print(repr(m.pair(0, 2, 1 << 20)), repr(m.collective('all_gather', [0, 2, 4, 6], 1 << 26)))
m.close()
refused(lambda: m.pair(0, 1, 8), 'closed')"
    read -r pair collective <<<"$output"
    railgauge cost $matrix 0 2 1M --json | jq -e --argjson got "$pair" '($got / .seconds - 1) | fabs < 1e-8'
    railgauge cost $matrix all_gather 0,2,4,6 64M --json | jq -e --argjson got "$collective" '($got / .seconds - 1) | fabs < 1e-8'
}

@test "jobs: costs and the best sets are those of railgauge nodes" {
    library
    for job in 'all_gather 64M x 3; all_to_all 1M groups of 2' 'model=llama3.1-8b layout=tp=2,dp=auto flops=2e14'; do
        python "
with m.job('$job') as job:
    hosts = ['n04', 'n06', 'n00']
    print(repr(job.cost(hosts)))
    best = job.best(m.hosts(), need=3, k=5)
    assert best.exact and len(best.sets) == 5
    for seconds, names in best.sets:
        assert job.cost(names) == seconds
        print(repr(seconds), ','.join(names))
refused(lambda: job.cost(hosts), 'closed')"
        railgauge nodes $matrix --job "$job" --nodes n04,n06,n00 --json |
            jq -e --argjson got "${lines[0]}" '($got / .sets[0].seconds - 1) | fabs < 1e-8'
        railgauge nodes $matrix --job "$job" --need 3 --best 5 | sed 1d >"$BATS_TEST_TMPDIR/table"
        for ((i = 1; i <= 5; i++)); do
            IFS=$'\t' read -r seconds nodes < <(sed -n "${i}p" "$BATS_TEST_TMPDIR/table")
            read -r mine names <<<"${lines[i]}"
            awk -v a="$mine" -v b="$seconds" 'BEGIN { d = a / b - 1; exit !(d < 1e-8 && d > -1e-8) }'
            [ "$(railgauge nodes $matrix --job "$job" --nodes "$names" | sed -n 2p | cut -f2)" = "$nodes" ]
        done
    done
}

@test "many lists, lists that change, and many pairs cost to the bit what each does alone" {
    library
    for job in 'all_gather 64M x 3; all_to_all 1M groups of 2' 'model=llama3.1-8b layout=tp=2,dp=auto flops=2e14'; do
        python "
import random
rnd = random.Random($seed)
def alone(hosts):
    try:
        return job.cost(hosts)
    except Error:
        return None
with m.job('$job') as job:
    lists = [rnd.sample(m.hosts(), rnd.randint(1, 8)) for _ in range(100)] + [['n00', 'n00'], []]
    for hosts, seconds in zip(lists, job.rank(lists)):
        assert seconds == alone(hosts) or (seconds != seconds and alone(hosts) is None), hosts
    assert job.rank([]) == []
    hosts = ['n00', 'n03', 'n05']
    with job.nodes(hosts) as nodes:
        assert nodes.cost() == job.cost(hosts)
        for _ in range(100):
            at, host = rnd.randrange(3), rnd.choice(m.hosts())
            new = hosts[:at] + [host] + hosts[at + 1:]
            if len(set(new)) == 3:
                assert nodes.swap(at, host) == job.cost(new)
                hosts = new
            else:
                refused(lambda: nodes.swap(at, host), 'listed twice') if host != hosts[at] else nodes.swap(at, host)
            assert nodes.cost() == job.cost(hosts)
        refused(lambda: nodes.swap(3, 'n00'), 'there is no host 3 in the list')
        refused(lambda: nodes.swap(0, 'n99'), 'n99 is not in the matrix')
    refused(lambda: nodes.cost(), 'closed')
    refused(lambda: job.nodes([]), 'a list of 0 hosts')
    refused(lambda: job.rank([['n99']]), 'n99 is not in the matrix')
src = [rnd.randrange(-1, len(m) + 1) for _ in range(500)]
dst = [rnd.randrange(-1, len(m) + 1) for _ in range(500)]
for bytes in (1, 4096, 3 << 20):
    each = [m.pair(a, b, bytes) for a, b in zip(src, dst)]
    assert all(x == y or (x != x and y != y) for x, y in zip(m.pair_times(src, dst, bytes), each))
refused(lambda: m.pair_times([0], [], 1), '1 sources and 0 destinations')"
    done
}

@test "ranges cost what their members do, and hosts in a row are one" {
    library
    python "
import random
rnd = random.Random($seed)
for path in ('$matrix', '$campaign'):
    m = Matrix(path)
    n, names = len(m), m.hosts()
    def ids(ranges):
        return [i for some in ranges for i in some]
    for _ in range(200):
        cuts = sorted(rnd.sample(range(n + 1), 2 * rnd.randint(1, 3)))
        ranges = [range(a, b, rnd.randint(1, 4)) for a, b in zip(cuts[::2], cuts[1::2])]
        if rnd.random() < 0.2:
            ranges.reverse()
        op, bytes = rnd.choice(['all_gather', 'all_to_all', 'all_reduce', 'sendrecv']), rnd.choice([8, 4096, 3 << 20, 1 << 30])
        mine, other = m.collective_ranges(op, ranges, bytes), m.collective(op, ids(ranges), bytes)
        assert abs(mine / other - 1) < 1e-12 or (mine != mine and other != other) or mine == other, (op, ranges, bytes, mine, other)
    for _ in range(50):
        first, count = rnd.randrange(len(names)), rnd.randint(1, len(names))
        ends = [i for i in range(n) if names.index(m.level(i, 'host')) in range(first, first + count)]
        some = m.hosts_range(first, count)
        assert some is None if first + count > len(names) else list(some) == ends, (first, count, some)
    assert m.hosts_range(-1, 1) is None and m.hosts_range(0, 0) is None and m.hosts_range(0, 1 << 40) is None
    assert math.isnan(m.collective_ranges('all_gossip', [range(2)], 8)) and math.isnan(m.collective_ranges('all_gather', [], 8))
    assert math.isnan(m.collective_ranges('all_gather', [range(n + 1)], 8))
    refused(lambda: m.collective_ranges('all_gather', [range(5, 0, -1)], 8), 'is no range of endpoints that ascend')
    refused(lambda: m.collective_ranges('all_gather', [range(2)], -1), '-1 bytes')
    m.close()
    refused(lambda: m.collective_ranges('all_gather', [range(2)], 8), 'closed already')"
}

@test "a place: predict and place say of its order what the library does, and it is no dearer than the list" {
    library
    python "
with m.job('model=llama3.1-8b layout=tp=2,dp=8 flops=2e14') as job:
    hosts = [f'n0{i}' for i in (0, 4, 1, 5, 2, 6, 3, 7)]
    p = job.place(hosts)
    assert len(p.order) == 16 and p.bound <= p.seconds <= p.as_listed == job.cost(hosts) and p.how
    print(repr(p.seconds))
    for endpoint in p.order:
        print(endpoint)
    refused(lambda: job.place(hosts, need=9), '9 hosts of the 8 free ones')"
    printf '%s\n' "${lines[@]:1}" >"$BATS_TEST_TMPDIR/order"
    job=(--model llama3.1-8b --layout "tp=2,dp=8" --flops 2e14)
    railgauge predict $matrix "${job[@]}" --order "$BATS_TEST_TMPDIR/order" --json |
        jq -e --argjson got "${lines[0]}" '($got / .step_s - 1) | fabs < 1e-8'
    railgauge place $matrix "${job[@]}" --json | jq -e --argjson got "${lines[0]}" '($got / .step_s - 1) | fabs < 1e-6'
}

@test "what is refused has its sentence, and nothing crashes" {
    library
    python "
refused(lambda: Matrix('/nowhere'), '/nowhere: No such file')
refused(lambda: m.job('all_gossip 1M'), 'is neither KEY=VALUE nor a collective')
refused(lambda: m.job('model=../x'), 'no files')
refused(lambda: m.job('a\0b'), 'NUL')
refused(lambda: m.job('x' * (10 << 20)), 'more than 65536 characters')
refused(lambda: m.quote('all_gossip', [0, 1]), 'no all_gossip of 2 of the 16')
job = m.job('all_gather 1M')
refused(lambda: job.cost(['n99']), 'host n99 is not in the matrix')
refused(lambda: job.cost([]), 'a list of 0 hosts')
refused(lambda: job.cost(['n00', 'n00']), 'listed twice')
refused(lambda: job.best(['n00', 'n01'], 3), '1 sets of 3 of 2 hosts')
refused(lambda: job.best(['n00', 'n01'], 1, k=1 << 30), 'sets of 1')
refused(lambda: job.best(['n00', 'n00'], 1), 'listed twice')
assert len(job.best(['n00', 'n01'], 1, k=50).sets) == 2
m.close()
refused(lambda: job.cost(['n00']), 'closed')
m.close(); job.close(); job.close()"
}

@test "what the library holds for a matrix is given back with it" {
    library
    python "
import gc
from railgauge import library
closed, close = [], library.Handle.close
library.Handle.close = lambda handle: (closed.append(type(handle).__name__), close(handle))
other = Matrix('$matrix')
other.quote('all_gather', [0, 1]).healthy(8)
other.collective('all_gather', [0, 1], 8)
assert not closed
del other
gc.collect()
assert sorted(closed) == ['Handle', 'Handle', 'Handle', 'Quote'], closed
try:
    Matrix('/nowhere')
except Error:
    gc.collect()"
    [ -z "$output" ]
}

@test "prices are those of the library and of the command line, on random groups and sizes" {
    library
    railgauge run -t sim --fabric gb200-nvl72 --racks 2 --fault dead-host=3 --fault slow-rack-uplinks=0:0.5:tx --seed 3 \
        --op pairs,all_gather,sendrecv -e 16M -o "$BATS_TEST_TMPDIR/dead" --no-plots --no-verdict >/dev/null 2>&1
    # cables and racks: a ring's edges and those of trees
    railgauge run -t sim --fabric hgx-h100 --racks 4 --fault slow-cable=17-33:0.4 --fault slow-cable=1-57:0.3 \
        --fault slow-racks=0-2:0.5 --seed 3 --op pairs,all_reduce -e 16M -o "$BATS_TEST_TMPDIR/cables" --no-plots --no-verdict >/dev/null 2>&1
    jq -e '[.exceptions[] | select(.part == "pair" or .part == "rack_pair")] | length > 1' "$BATS_TEST_TMPDIR/cables/matrix.json"
    # curves that another site published, and an AMD GPU
    jq '.collectives[].basis = "preset"' "$BATS_TEST_TMPDIR/cables/matrix.json" >"$BATS_TEST_TMPDIR/published.json"
    sed 's/NVIDIA H100[^"]*/AMD Instinct MI300X/' "$BATS_TEST_TMPDIR/cables/matrix.json" >"$BATS_TEST_TMPDIR/amd.json"
    railgauge seal "$BATS_TEST_TMPDIR/published.json" "$BATS_TEST_TMPDIR/amd.json"
    for m in "$campaign" $matrix "$BATS_TEST_TMPDIR"/{dead,cables,published.json,amd.json}; do
        file=$m
        [ ! -d "$m" ] || file=$m/matrix.json
        jq '.exceptions = []' "$file" >"$BATS_TEST_TMPDIR/healthy.json" && railgauge seal "$BATS_TEST_TMPDIR/healthy.json"
        PYTHONWARNINGS=ignore python3 tests/python/prices.py "$m" "$seed" "$BATS_TEST_TMPDIR/healthy.json"
    done
}

@test "without the library pairs, tables and points are read; collectives say what is missing" {
    LIBRAILGAUGE=/nowhere.so python3 -c "
import math, warnings
from railgauge import Campaign, Error, Matrix
m = Matrix('$matrix')
assert m.pair(0, 2, 1 << 20) > 0 and m.tiers() and m.curves()
for call in (lambda: m.collective('all_gather', [0, 1], 8), lambda: m.quote('all_gather', [0, 1])):
    try:
        call()
        raise AssertionError('not refused')
    except Error as e:
        assert 'collectives and jobs need the C library' in str(e) and '/nowhere.so' in str(e), e
with warnings.catch_warnings(record=True) as said:
    points = Campaign('$campaign').points()
assert [str(w.message)[:23] for w in said] == ['no share of collectives'], said
for op, known in (('pair_bw', True), ('all_gather', False)):
    assert any(not math.isnan(p['share']) for p in points.where(op=op)) is known, op"
}

@test "a campaign's points have names, rates and shares; its tables are what the programs print" {
    points=$(grep -vc -e '^#' -e '^round' "$campaign/points.tsv")
    parts=$(railgauge show "$campaign" parts --json | jq -c '[.parts[].name]')
    verdict=$(railgauge accept "$campaign" --json | jq -c '[.line, (.checks | length)]') || true
    steps=$(jq -c '[.predictions[].layout]' "$campaign/prediction.json")
    railgauge compare "$campaign" "$campaign" --json >"$BATS_TEST_TMPDIR/compare.json"
    run python3 -c "
import csv, json, statistics
from railgauge import Campaign
c = Campaign('$campaign')
points, t = c.points(), json.load(open('$campaign/topology.json'))
assert len(points) == $points, len(points)
raw = csv.DictReader((line for line in open('$campaign/points.tsv') if line[0] != '#'), delimiter='\t', quoting=csv.QUOTE_NONE)
hosts, nics = [row[0] for row in t['hosts']['rows']], [row[1] for row in t['nics']['rows']]
for mine, row in zip(points, raw):
    for key in ('round', 'epoch', 'bytes', 'src', 'n'):
        assert mine[key] == int(row[key]), (key, mine, row)
    assert mine['sec'] == float(row['sec']) and mine['op'] == row['op'] and mine['note'] == row['note']
    end = t['endpoints']['rows'][mine['dst']]
    assert (mine['dst_host'], mine['dst_gpu'], mine['dst_nic']) == (
        hosts[end[0]], end[5], None if end[8] is None else nics[end[8]])
bw = points.where(op='pair_bw', check='ok')
assert all(abs(p['GBps'] - p['bytes'] / p['sec'] / 1e9) < 1e-9 for p in bw)
m = c.matrix
for p in bw[::50]:
    assert p['tier'] == m.tier_of(p['src'], p['dst'], p['stage'].startswith('nic'))
assert 0.95 < statistics.median(p['share'] for p in bw if p['share'] == p['share']) < 1.05
assert min(p['share'] for p in bw if p['share'] == p['share']) < 0.75
gathers = points.where(op='all_gather')
assert 0.9 < statistics.median(p['share'] for p in gathers) < 1.1
one = next(p for p in gathers if p['ranks'] > 2)
assert abs(one['GBps'] / (one['bytes'] / one['sec'] * (one['ranks'] - 1) / one['ranks'] / 1e9) - 1) < 1e-12
assert [p['name'] for p in c.parts()] == json.loads(r'''$parts''')
v = c.accept()
assert [v.line, len(v.checks)] == json.loads(r'''$verdict''')
import railgauge
assert railgauge.read_json('$BATS_TEST_TMPDIR/compare.json', 'compare')['format'] == 'railgauge-compare'
assert c.predictions().column('layout') == json.loads('$steps') and all(p.terms for p in c.prediction_items)
assert {r['tier'] for r in m.tiers()} == {r['name'] for r in m.curves().where(what='pair')}
assert len(m.exceptions()) == len(m.root['exceptions']) and len(m.endpoints()) == len(m)
some = m.pairs(1 << 20, range(6))
assert len(some) == 30 and all(r['sec'] == m.pair(r['src'], r['dst'], 1 << 20) for r in some)"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "without the program parts are those of accept.json, and there is a sentence where that is missing" {
    cp -r "$campaign" "$BATS_TEST_TMPDIR/c"
    ask='import railgauge; print([p["name"] for p in railgauge.Campaign("'$BATS_TEST_TMPDIR/c'").parts()])'
    mine=$(python3 -c "$ask")
    python3=$(python3 -c 'import sys; print(sys.executable)')
    run ! env PATH=/nowhere "$python3" -c "$ask"
    [[ $output == *"railgauge is not in the path"* ]]
    railgauge accept "$BATS_TEST_TMPDIR/c" -q -o "$BATS_TEST_TMPDIR/c/accept.json" || [ $? -lt 3 ]
    [ "$(env PATH=/nowhere "$python3" -c "$ask")" = "$mine" ]
    run ! env RAILGAUGE=/nowhere/railgauge python3 -c "$ask"
    [[ $output == *"/nowhere/railgauge: No such file"* ]]
}

@test "hostile files are refused, and files that do not belong together" {
    tests/bad/expand.sh "$BATS_TEST_TMPDIR/expanded"
    (top=$PWD && cd "$BATS_TEST_TMPDIR/expanded/bad" && python3 "$top/tests/python/bad.py")
    refused() { # WORDS ASK
        run ! python3 -W error -c "from railgauge import *
$2"
        [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
    }
    c=$BATS_TEST_TMPDIR/c
    cp -r "$campaign" "$c"
    sed -i '0,/0\.6/s//0.7/' "$c/matrix.json"
    refused "it has changed since it was written" "Matrix('$c')"
    cp "$campaign/matrix.json" "$c"
    refused "c/points.tsv: No such file" "import os; os.unlink('$c/points.tsv'); Campaign('$c').points()"
    # a torn tail is no point; a row that is no longer its own is an error with its line
    head -c -9 "$campaign/points.tsv" >"$c/points.tsv"
    all=$(grep -vc -e '^#' -e '^round' "$campaign/points.tsv")
    [ "$(python3 -c "from railgauge import read_points; print(len(read_points('$c/points.tsv')[1]))")" -eq $((all - 1)) ]
    sed '9s/\tci\t/\ttime\t/' "$campaign/points.tsv" >"$c/points.tsv"
    refused "c/points.tsv:9: CRC does not match the row" "read_points('$c/points.tsv')"
    # another plan, another topology
    cp "$campaign/points.tsv" "$c"
    sed -i '$d' "$c/plan.tsv"
    refused "was measured by another plan" "Campaign('$c').points()"
    cp "$campaign/plan.tsv" "$c"
    sed -i 's/"n00"\|"r00n00"/"elsewhere"/' "$c/topology.json" && railgauge seal "$c/topology.json"
    refused "was measured on other endpoints" "Campaign('$c').points()"
    sed -i '/checksum/s/"checksum": "[0-9a-f]*",//' "$c/topology.json"
    refused "its checksum was removed" "Topology('$c/topology.json')"
    refused "no directory of a campaign" "Campaign('$c/nowhere')"
    mkfifo "$c/pipe"
    refused "not a regular file" "Matrix('$c/pipe')"
    python3 -c "print('[' * 100000)" >"$c/deep.json"
    refused "deep.json" "Matrix('$c/deep.json')"
    refused "no schema of railgauge-nothing" "read_json('$c/matrix.json', 'nothing')"
}

@test "version, operations and stages are those of the programs, and every schema is of words that the reader knows" {
    run python3 -c 'from railgauge.price import OPS, PAIR_OPS; print(*OPS, *PAIR_OPS)'
    [ "$output" = "$(railgauge run --help=measuring | grep -o 'all_gather,[a-z_,]*' | head -1 | tr , ' ')" ]
    # what requires-python says
    python3 -c 'import ast, sys; [ast.parse(open(f).read(), f, feature_version=(3, 9)) for f in sys.argv[1:]]' jobs/python/*/*.py
    run python3 -c 'from railgauge.points import STAGES; print(*STAGES)'
    [ "$output" = "$(sed -n '/stage_name\[/,/;/p' src/measure/plan.c | grep -o '"[a-z-]*"' | tr -d '"' | xargs)" ]
    [ "railgauge $(python3 -c 'import railgauge; print(railgauge.__version__)')" = "$(railgauge --version | head -1)" ]
    python3 -c "
import glob, json
from railgauge import schema
known = set(schema._RULES) | schema._SKIPPED | {'items', 'prefixItems', '\$ref', 'anyOf', 'oneOf', 'dependentRequired'}
def look(s):
    if isinstance(s, dict):
        assert set(s) <= known, set(s) - known
        for key, rule in s.items():
            for one in (rule.values() if key in ('properties', 'patternProperties', '\$defs') else rule if key in
                        ('prefixItems', 'anyOf', 'oneOf') else [rule] if key in ('items', 'additionalProperties', 'propertyNames') else []):
                look(one)
for path in glob.glob('src/schema/*.json') + glob.glob('topo/schema/*.json'):
    look(json.load(open(path)))"
}

# --- the wheel, and the notebook ---

# A Python that can build wheels without asking an index: Debian's with python3-pip and python3-wheel, or any other.
builder() {
    for p in python3 /usr/bin/python3; do
        "$p" -c 'import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, sys.argv[1:])))' \
            pip setuptools venv wheel 2>/dev/null && { echo "$p"; return; }
    done
    return 1
}

@test "the wheel is built and installed offline, and reads without the sources" {
    p=$(builder) || skip "no Python with pip, venv, setuptools and wheel (packages python3-pip, python3-venv)"
    t=$BATS_TEST_TMPDIR
    mkdir -p "$t/tree/jobs" "$t/tree/src" "$t/tree/topo"
    cp LICENSE "$t/tree" && cp -r jobs/python "$t/tree/jobs" && cp -r src/schema "$t/tree/src" && cp -r topo/schema "$t/tree/topo"
    unset PYTHONPATH PYTHONDONTWRITEBYTECODE
    "$p" -m pip wheel -q --no-index --no-build-isolation --no-deps --no-cache-dir -w "$t/dist" "$t/tree/jobs/python"
    wheel=$(echo "$t"/dist/railgauge-*-py3-none-any.whl)
    "$p" -m zipfile -l "$wheel" >"$t/list"
    for f in railgauge/__init__.py railgauge/py.typed railgauge/schema/matrix.schema.json railgauge/schema/topology.schema.json \
        'railgauge-.*[.]dist-info/\(licenses/\)\?LICENSE'; do
        grep -q "^$f " "$t/list"
    done
    run ! grep -E '\.(so|c|pyc) ' "$t/list"
    "$p" -m venv --without-pip "$t/venv" # a pip of its own takes longer than all else here
    rm -r "$t/tree"
    "$p" -m pip --python "$t/venv/bin/python" install -q --no-index "$wheel"
    cd "$t"
    venv/bin/python -c "
import railgauge
assert 'site-packages' in railgauge.__file__
c = railgauge.Campaign('$campaign')
assert len(c.points()) > 1000 and c.parts() and c.accept().checks
try:
    c.points().frame()
except ImportError:
    pass"
    # away from the sources' schemas it is no wheel
    mkdir -p alone/a/b && cp -r "$OLDPWD/jobs/python" alone/a/b/python
    run ! "$p" -m pip wheel -q --no-index --no-build-isolation --no-deps --no-cache-dir -w "$t/none" alone/a/b/python
    [[ $output == *"build from the sources of railgauge"* ]]
}

# What PyPI takes is built by its own tool, which makes the wheel from the tar file of the sources.
# bats test_tags=nightly
@test "the tar file of the sources and the wheel are what PyPI takes, and its page's example runs" {
    p=$(tests/venv.sh build build twine) || skip "$p"
    t=$BATS_TEST_TMPDIR
    unset PYTHONPATH
    mkdir -p "$t/tree/jobs" && cp -r LICENSE src topo "$t/tree" && cp -r jobs/python "$t/tree/jobs"
    "$p" -m build -o "$t/dist" "$t/tree/jobs/python" >"$t/log" 2>&1 || { tail "$t/log"; false; }
    "$p" -m twine check --strict "$t"/dist/*
    "$p" -m zipfile -l "$t"/dist/*.whl | grep -q '^railgauge/schema/matrix.schema.json '
    tar -xzf "$t"/dist/*.tar.gz -C "$t" --strip-components 1
    cmp LICENSE "$t/LICENSE"
    sed -n 's/^    //p' jobs/python/README.md | sed "s|\"last\"|\"$campaign\"|" >"$t/example.py"
    [ "$(wc -l <"$t/example.py")" -ge 5 ]
    PYTHONPATH=$t python3 "$t/example.py"
}

@test "the notebook runs as a plain program, without pandas and matplotlib too" {
    CAMPAIGN=$campaign MPLBACKEND=Agg python3 tests/python/cells.py jobs/python/example.ipynb >"$BATS_TEST_TMPDIR/out"
    cat "$BATS_TEST_TMPDIR/out"
    grep -qE '^(between (racks|hosts)|through the NICs) +[0-9]+ points of' "$BATS_TEST_TMPDIR/out"
    while IFS= read -r part; do
        grep -qF "$part: " "$BATS_TEST_TMPDIR/out"
    done < <(railgauge show "$campaign" parts --json | jq -r '.parts[].name')
    # what is kept was run to its end, and tells nothing of where
    python3 -c "
import json
cells = [c for c in json.load(open('jobs/python/example.ipynb'))['cells'] if c['cell_type'] == 'code']
assert [c['execution_count'] for c in cells] == list(range(1, len(cells) + 1))
assert all(o['output_type'] in ('stream', 'display_data') and o.get('name') != 'stderr' for c in cells for o in c['outputs'])
assert not any(word in json.dumps(c['outputs']) for c in cells for word in ('/home', '/root', '/tmp', 'Traceback'))"
    [ "$(wc -c <jobs/python/example.ipynb)" -lt 120000 ]
}

# bats test_tags=nightly
@test "the notebook runs in a kernel, with pandas and matplotlib" {
    run tests/venv.sh example nbclient ipykernel pandas matplotlib
    [ "$status" -ne 77 ] || skip "${lines[-1]}"
    [ "$status" -eq 0 ]
    p=${lines[-1]}
    # its kernel listens on this machine only, and files of Jupyter stay here
    CAMPAIGN=$campaign HOME=$BATS_TEST_TMPDIR "$p" tests/python/cells.py --kernel jobs/python/example.ipynb >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" ||
        { cat "$BATS_TEST_TMPDIR/err"; return 1; }
    grep -q 'image/png' "$BATS_TEST_TMPDIR/out"
    grep -qE '^pair_bw +[a-z]+ +[0-9.]+ +[0-9.]+' "$BATS_TEST_TMPDIR/out"
    "$p" -c "
import railgauge
f = railgauge.Campaign('$campaign').points().frame()
assert len(f) > 1000 and {'src_host', 'dst_nic', 'GBps', 'share', 'tier'} <= set(f.columns) and f.sec.dtype == float"
}
