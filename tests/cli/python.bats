#!/usr/bin/env bats
# python.bats - jobs/python/railgauge.py: the numbers of the library and of the command line.

bats_require_minimum_version 1.5.0
matrix=tests/golden/matrix.json

setup() {
    [ -z "${RG_SAN-}" ] || skip "Python loads the library without sanitizers"
    command -v python3 >/dev/null || skip "python3 is not installed"
    export LIBRAILGAUGE=${RG_BUILD:-build}/librailgauge.so.0 PYTHONPATH=jobs/python PYTHONDONTWRITEBYTECODE=1
    export RAILGAUGE_DATA=$PWD
}

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
    railgauge cost $matrix 0 2 1M --json | jq -e --argjson got "$pair" '($got / .seconds - 1) | fabs < 1e-3'
    railgauge cost $matrix all_gather 0,2,4,6 64M --json | jq -e --argjson got "$collective" '($got / .seconds - 1) | fabs < 1e-6'
}

@test "jobs: costs and the best sets are those of railgauge nodes" {
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

@test "a place: predict and place say of its order what the library does, and it is no dearer than the list" {
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
    python "
refused(lambda: Matrix('/nowhere'), '/nowhere: No such file')
refused(lambda: m.job('all_gossip 1M'), 'is neither KEY=VALUE nor a collective')
refused(lambda: m.job('model=../x'), 'no files')
refused(lambda: m.job('a\0b'), 'NUL')
refused(lambda: m.job('x' * (10 << 20)), 'more than 65536 characters')
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
