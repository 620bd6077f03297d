#!/usr/bin/env bats
# everywhere.bats - every command on every kind of campaign: an answer, or a refusal in words with a code of its own.
#
# With sanitizers, of either compiler:
#   make SAN=address,undefined check TESTS=tests/mpi/everywhere.bats
#   make SAN=address,undefined CC=clang BUILD=build-clang check TESTS=tests/mpi/everywhere.bats
# KEEP=DIR keeps the campaigns and what each command said.  A kind that is another one's sibling is for make check-all.

bats_require_minimum_version 1.5.0
load helper

top=$BATS_TEST_DIRNAME/../..

# --- kinds: what makes each of them, in a folder of its own; `campaign` is what commands are given ---

small=(--no-plots --no-verdict --epochs 1 -n 2 -w 0 -b 64 -e 4K -f 8 --pair-bytes 4K --no-retest --time-cap 2ms)
sim=(--transport sim --no-plots --no-verdict --noise 2%)

make_ranks_2() { railgauge run -t mpi --ranks 2 "${small[@]}" -o campaign; }
make_ranks_4() { railgauge run -t mpi --ranks 4 "${small[@]}" -o campaign; }
make_one_endpoint() { # of which nothing can be measured
    local code=0
    railgauge run -t mpi --launch "mpirun -n 1" "${small[@]}" -o campaign || code=$?
    [ $code -eq 78 ]
}
make_tcp() {
    local code=0
    export LAB=rgall$$ RACKS=2 PER=2
    "$top/tests/lab/lab.sh" usable || return 99
    "$top/tests/lab/lab.sh" up || return 1
    railgauge run -t mpi --launch "$top/tests/lab/lab.sh mpirun" "${small[@]}" -o campaign || code=$?
    "$top/tests/lab/lab.sh" down
    return $code
}
make_imported() { import "$top/tests/golden/nccl-tests/2.19-mpirun.txt"; }
make_imported_host() { import "$top/tests/golden/nccl-tests/2.13-hgx.txt" --op all_reduce; }
import() { railgauge import -q "$@" -o campaign/points.tsv && railgauge fit -q campaign; }
make_recorded() {
    (cd "$top" && cc -std=c11 -O1 -D_GNU_SOURCE -Isrc -I. -o "$BATS_FILE_TMPDIR/scene" tests/cli/record_scene.c \
        src/base/stats.c src/base/mem.c src/base/err.c -lm) || return 1
    "$BATS_FILE_TMPDIR/scene" records exchange=1 gpu=1 seed=7 && import --nccl-profile records
}
stand_ins() {
    [ -e "$build/fake/libnccl.so.2" ] || return 99
    printf 'devices 4\n' >gpus.txt
    export LD_LIBRARY_PATH=$build/fake FAKE_GPU=$PWD/gpus.txt
}
make_nccl() { stand_ins && railgauge run -t nccl --ranks 4 "${small[@]}" --op pairs,all_reduce,all_gather --no-compute --max-run 60s -o campaign; }
make_copies() { stand_ins && railgauge run -t copy --ranks 2 "${small[@]}" --op pair_bw --no-compute --max-run 60s -o campaign; }
make_verbs() {
    [ -e "$build/fake/libverbs_fake.so.1" ] || return 99
    "$probe" probe --help=network 2>&1 | grep -q -- --hca || return 99
    printf '%s\n' "device mlx5_0 layer=roce gids=5" "gid 3 v2 ::ffff:10.1.0.1" \
        "device mlx5_1 layer=roce gids=5" "gid 3 v2 ::ffff:10.1.0.2" >devices.txt
    export RAILGAUGE_IBVERBS=$build/fake/libverbs_fake.so.1 FAKE_VERBS=$PWD/devices.txt
    railgauge run -t verbs --ranks 2 "${small[@]}" --op pair_latency,pair_bw,all_to_all -o campaign
}
make_golden() { mkdir campaign && cp "$top/tests/golden/matrix.json" campaign/; }
make_one_host() {
    jq '.name = "one" | (.. | .hosts_per_rack? | select(. != null)) = 1' "$top/topo/fabrics/hgx-h100.json" >one.json
    railgauge run "${sim[@]}" --fabric ./one.json --racks 1 -o campaign
}
make_simulated() { railgauge run "${sim[@]}" --fabric hgx-h100 --racks 1 -o campaign; }
make_racks() { railgauge run "${sim[@]}" --fabric gb200-nvl72 --racks 2 -o campaign; }
make_blind() { railgauge run "${sim[@]}" --fabric gb200-nvl72 --racks 2 --blind -o campaign; }
make_blind_rack() { railgauge run "${sim[@]}" --fabric gb200-nvl72 --racks 1 --blind -o campaign; }
make_dead() { railgauge run "${sim[@]}" --fabric hgx-h100 --racks 1 --fault dead-host=1 --fault corrupt=3 -o campaign; }
make_all_dead() { railgauge run "${sim[@]}" --fabric hgx-h100 --racks 1 --fault=dead-host={0,1,2,3} -o campaign; }
make_slow() { railgauge run "${sim[@]}" --fabric gb200-nvl72 --racks 2 --fault slow-nic=17:0.6 --fault slow-host=3:0.5 -o campaign; }
make_cut() { # what was measured until then, fitted
    railgauge run "${sim[@]}" --fabric hgx-h100 --racks 1 -o campaign || return 1
    head -40 campaign/points.tsv >p && mv p campaign/points.tsv
    rm campaign/matrix.json campaign/prediction.json
    railgauge fit -q campaign
}
make_unfitted() {
    local code=0
    railgauge run "${sim[@]}" --fabric hgx-h100 --racks 1 --budget 1ns -o campaign || code=$?
    [ $code -eq 75 ]
}
make_preset() { :; }

drawn=" ranks_2 imported all_dead "
with_mpi=" ranks_2 ranks_4 one_endpoint tcp nccl copies verbs "

teardown_file() {
    [ -z "${KEEP-}" ] || cp -r "$BATS_FILE_TMPDIR/." "$KEEP"
}

setup() {
    # What a sanitizer finds has a code that no command has.
    export ASAN_OPTIONS=detect_leaks=1:exitcode=99 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1
}

# --- commands: {} is the campaign, {m} its matrix, {o} a new name ---

commands() { # KIND
    cat <<'TABLE'
show {}
show {m}
show {} tiers --bytes 64K
show {} pairs
show {} collectives
show {} findings
show {} parts
show {m} parts
show {} parts --json
show {} points
show {} nccl
show {} --json
accept {}
accept {m}
accept {} --against hgx-h100
accept {} --against {}
accept {} --json
accept {} --exit-style nagios
report {} -o {o}.html
report {m} -o {o}.html
report --history {} {} -o {o}.html
explain {} 0 1
explain {m} 0 1
explain {} 1 0 --json
explain {} 0 0
explain {} 0 11
cost {m} 0 1 1M
cost {m} 1 0 8
cost {m} 0 0 1M
cost {m} all_reduce 0,1 1M
cost {m} all_gather 0-7 64M --json
cost {m} all_to_all 0 1M
cost {m} reduce_scatter 0-1 0
predict {m}
predict {m} --model llama3.1-8b --layout dp_shard=2
predict {m} --model llama3.1-8b --layout dp_shard=2 --explain
predict {m} --model llama3.1-8b --layout tp=2 --json
predict {m} --model llama3.1-8b --layout pp=2,dp_shard=2 --batch 8
predict {m} --model llama3.1-8b --layout dp_shard=2 --segment 1
predict {m} --model llama3.1-8b --layout dp_shard=2 --spread cyclic
predict {m} --model llama3.1-8b --layout dp=auto --mesh-order tp-pp-dp --strategy zero1
predict {m} --model llama3.1-8b --layout dp=2 --fabric hgx-h100
predict {m} --model mixtral-8x7b --layout dp_shard=4,ep=4
predict {m} --model llama3.1-8b --layout dp=1
predict {m} --model llama3.1-8b --gpus 1
search {m} --model llama3.1-8b --top 3
search {m} --model llama3.1-8b --gpus 2 --json
search {m} --model mixtral-8x7b --gpus 4 --top 2
place {m} --model llama3.1-8b --layout dp_shard=2
place {m} --model llama3.1-8b --layout tp=2,dp=auto --json
nodes {m} --job all_reduce\ 64M --need 1
nodes {m} --job all_to_all\ 64M --need 2 --segments
nodes {m} --job model=llama3.1-8b\ layout=dp=auto --need 2
compare {} {}
compare {m} {m} --json
compare {} {} --all
compare --history {} {} {}
declared {}
declared {m} --json
lint {}/topology.json
lint {m}
plan {}/topology.json --dry-run
plan {}/topology.json --dry-run --for-job --layout\ dp=auto
fit {} -o {o}.json
tune {}
plot {} -t
plot {} step -t
plot {m} heat -t
plot history {} {} {} -t
discover {}
TABLE
    # gnuplot takes as long as all others.
    [[ $drawn != *" $1 "* ]] || printf '%s\n' 'plot {} all -o {o}' 'plot history {} {} {} -o {o}' 'plot compare {} {m} -o {o}'
    local format
    for format in $(railgauge export --list-formats | awk '{ print $1 }'); do
        echo "export -f $format {} --partial -o {o}"
        echo "export -f $format {m} --per endpoint -o {o}"
    done
    for format in latency time; do
        echo "export -f npy {m} --quantity $format -o {o}"
        echo "export -f matrix-market {m} --quantity $format --per endpoint -o {o}"
    done
}

# What tools read, where the man page says what nan and inf stand for, and what is no text.
numeric=" tsv openmetrics npy "

# ended CODE STDERR STDOUT - what is wrong with how a command ended.  The answer may be what says that a part is bad, or that
# nothing could be judged; a refusal is on stderr.
ended() {
    case $1 in 0 | 1 | 2 | 64 | 65 | 66 | 78) ;; *) echo "exit code $1" ;; esac
    [ "$1" -eq 0 ] || [ -s "$2" ] || { [ -s "$3" ] && [ "$1" -le 2 ]; } || echo "exit code $1 without a word"
}

# absurd MOST FILE... - lines that no person can use; shares of more than MOST % are.
absurd() {
    LC_ALL=C awk -v most="$1" '
        FNR == 1 { told = script = 0 }
        /<script/ { script = 1 } /<\/script>/ { script = 0; next }
        script || told > 2 { next }
        {
            line = $0
            gsub(/<[^>]*>/, " ", line)
            if (match(line, /(^|[^A-Za-z0-9_.\/-])[-+]?([Nn]a[Nn]|NAN|[Ii]nf|INF|[Ii]nfinity)([^A-Za-z0-9_-]|$)/)) {
                printf "%s: %.200s\n", FILENAME, $0
                told++
            }
            if (!index(line, "%")) next
            # How far an interval reaches is the noise of this machine.
            gsub(/% to [0-9.]+ ?%/, "", line)
            while (match(line, /-?[0-9][0-9.,]*(e[+-]?[0-9]+)? ?%/)) {
                share = substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
                gsub(/,/, "", share)
                if (share + 0 > most || share + 0 < -most) {
                    printf "%s: %s: %.200s\n", FILENAME, share, $0
                    told++
                    break
                }
            }
        }' "${@:2}"
}

# Commands whose text is a first screen; others are for programs or as wide as what they draw.
screens=" show accept report explain cost predict place nodes compare declared "

# misfit FILE... - lines of more than 80 characters, unless one word makes them so long, and numbers with an exponent.
misfit() {
    LC_ALL=C awk '
        {
            line = $0
            gsub(/[\200-\277]/, "", line)
            longest = 0
            for (i = 1; i <= NF; i++) if (length($i) > longest) longest = length($i)
        }
        length(line) > 80 && longest < 40 { printf "%s: %d characters: %s\n", FILENAME, length(line), $0 }
        /[0-9]e\+[0-9]/ { printf "%s: exponent: %s\n", FILENAME, $0 }' "$@"
}

# each KIND: all commands of the table on it.
each() {
    local code=0 words line why most=1000 n=0 bad=0 texts=() shown=(screen) campaign=campaign matrix=campaign/matrix.json topology=campaign/topology.json
    mkdir "$BATS_FILE_TMPDIR/$1"
    cd "$BATS_FILE_TMPDIR/$1" || return 1
    [[ $with_mpi != *" $1 "* || -x $probe ]] || skip "railgauge-probe is not built: no MPI was found"
    export COLUMNS=80
    # MPI's libraries leak
    (ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 && "make_$1") >screen 2>said || code=$?
    [ $code -ne 99 ] || skip "$(cat said screen | tail -n 1 | grep . || echo "not on this machine")"
    [ $code -eq 0 ] || { cat screen said; return 1; }
    [ "$1" != preset ] || campaign="--fabric hgx-b200 --racks 2" matrix=$campaign topology=$campaign
    mkdir out
    while read -r line; do
        n=$((n + 1))
        line=${line//"{m}"/$matrix}
        line=${line//"{o}"/out/$n}
        line=${line//"{}/topology.json"/$topology}
        line=${line//"{}"/$campaign}
        eval "words=($line)"
        code=0
        timeout 60 railgauge "${words[@]}" >out/$n.out 2>out/$n.err </dev/null || code=$?
        # A plugin of Nagios has its own code of what could not be judged.
        [[ $line != *nagios* || $code -ne 3 ]] || code=2
        why=$(ended $code out/$n.err out/$n.out)
        [ -z "$why" ] || {
            bad=$((bad + 1))
            echo "out/$n: railgauge $line: $why"
            head -n 5 out/$n.err
        }
        texts+=("out/$n.err")
        [ "${words[0]}" = nodes ] || texts+=("out/$n.out")
        [[ $screens != *" ${words[0]} "* || $line == *" --json"* || $line == *nagios* || $line == *" nccl" ]] || shown+=("out/$n.out")
        [[ ! -f out/$n || $numeric == *" ${words[2]-} "* ]] || texts+=("out/$n")
        [ ! -f out/$n.html ] || texts+=("out/$n.html")
    done < <(commands "$1")
    echo "$n commands"
    [ $n -gt 100 ]
    # A share or a change beyond a factor of ten is of something else; beside other tests one of two pairs may really be so slow.
    [[ $with_mpi != *" $1 "* ]] || most=100000
    why=$(absurd $most "${texts[@]}")
    why+=$(misfit "${shown[@]}")
    [ -z "$why" ] || {
        echo "$why"
        # Which commands those are.
        commands "$1" | awk -v numbers="$(grep -oE '^out/[0-9]+' <<<"$why" | sort -u | tr -dc '0-9\n' | xargs)" '
            BEGIN { n = split(numbers, w, " "); for (i = 1; i <= n; i++) wanted[w[i]] = 1 } wanted[NR] { print "out/" NR ": " $0 }'
    }
    [ $bad -eq 0 ] && [ -z "$why" ]
}

@test "two ranks over MPI" { each ranks_2; }
# bats test_tags=nightly
@test "four ranks over MPI" { each ranks_4; }
@test "one rank" { each one_endpoint; }
@test "four hosts of the lab over TCP" { each tcp; }
@test "what nccl-tests printed on two hosts" { each imported; }
# bats test_tags=nightly
@test "what nccl-tests printed on one host" { each imported_host; }
@test "a job's records" { each recorded; }
@test "GPUs and NCCL of no preset" { each nccl; }
# bats test_tags=nightly
@test "copies between GPUs" { each copies; }
@test "RDMA verbs" { each verbs; }
@test "a matrix alone" { each golden; }
# bats test_tags=nightly
@test "one simulated host" { each one_host; }
# bats test_tags=nightly
@test "four simulated hosts" { each simulated; }
# bats test_tags=nightly
@test "two simulated racks" { each racks; }
@test "two racks seen blind" { each blind; }
# bats test_tags=nightly
@test "one rack seen blind" { each blind_rack; }
@test "a dead host and wrong data" { each dead; }
# bats test_tags=nightly
@test "all hosts dead" { each all_dead; }
@test "slow parts" { each slow; }
# bats test_tags=nightly
@test "cut short and fitted" { each cut; }
@test "cut short before anything was measured" { each unfitted; }
@test "a preset" { each preset; }
