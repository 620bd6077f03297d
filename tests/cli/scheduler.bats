#!/usr/bin/env bats
# scheduler.bats - jobs/scheduler: an example of the library that answers over a Unix socket.

bats_require_minimum_version 1.5.0

setup_file() {
    export top=$PWD d=$BATS_FILE_TMPDIR
    mkdir "$d/lib" "$d/include"
    ln -s "$RG_BUILD/librailgauge.so.0" "$d/lib/librailgauge.so"
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror ${RG_SAN:+-fsanitize=$RG_SAN} -O2 -Isrc -o "$d/answer" jobs/scheduler/answer.c -L"$d/lib" -lrailgauge \
        $(pkg-config --cflags --libs jansson) -Wl,-rpath,"$RG_BUILD"
    for racks in 2 4; do
        railgauge run -t sim --fabric gb200-nvl72 --racks $racks --no-plots -q -o "$d/$racks" >/dev/null
    done
    cp "$d/2/matrix.json" "$d/matrix.json"
}

setup() {
    . "$top/tests/await.bash"
    cd "$BATS_TEST_TMPDIR" || return 1
    "$d/answer" "$d/matrix.json" s.sock 2>errors 3>&- &
    pid=$!
    await 60 test -S s.sock
}

teardown() { kill "$pid" 2>/dev/null || true; cp "$d/2/matrix.json" "$d/matrix.json"; }

# ask LINE... - the answers, a line each
ask() {
    printf '%s\n' "$@" | python3 -c "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect('s.sock'); s.sendall(sys.stdin.buffer.read()); s.shutdown(socket.SHUT_WR)
print(s.makefile().read(), end='')"
}

@test "lists are priced as railgauge nodes prices them, the best hosts are chosen, and what cannot be answered says why" {
    ask '{"job": "all_gather 64M x 12", "lists": [["r00n00", "r01n01"], ["r00n03", "r00n09"]]}' \
        '{"job": "all_gather 64M x 12", "free": ["r01n05", "r00n02", "r00n03"], "need": 2}' \
        '{"job": "all_gather 64M x 12", "lists": [["zz"]]}' '{"job": "nonsense", "lists": [["r00n00"]]}' 'nope' \
        '{"job": "all_gather 1M", "free": ["r00n00"], "need": 2}' >said
    cat said
    [ "$(jq -c '.order' said | head -1)" = '[1,0]' ]
    jq -e -s '.[0].seconds[0] > .[0].seconds[1] and .[1].hosts == ["r00n02", "r00n03"] and .[1].exact' said
    railgauge nodes "$d/matrix.json" --job 'all_gather 64M x 12' --nodes r00n00,r01n01 --json >nodes
    jq -e --slurpfile nodes nodes -s '.[0].seconds[0] / $nodes[0].sets[0].seconds | . > 0.999999 and . < 1.000001' said
    [ "$(jq -s 'map(.error // empty) | length' said)" -eq 4 ]
    grep -q 'zz: no such host' said
    [ "$(python3 "$top/jobs/scheduler/ask.py" s.sock 'all_gather 64M' 1 r00n07)" = r00n07 ]
    run ! python3 "$top/jobs/scheduler/ask.py" s.sock 'all_gather 64M' 1 nowhere
    [ "$(stat -c %a s.sock)" = 600 ]
}

@test "a new matrix is used at once, and a damaged one is not" {
    ask '{"job": "all_gather 1M", "lists": [["r03n00", "r03n01"]]}' | grep -q 'no such host'
    cp "$d/4/matrix.json" new && mv new "$d/matrix.json"
    ask '{"job": "all_gather 1M", "lists": [["r03n00", "r03n01"]]}' | jq -e '.seconds[0] > 0'
    echo '{' >new && mv new "$d/matrix.json"
    ask '{"job": "all_gather 1M", "lists": [["r03n00", "r03n01"]]}' | jq -e '.seconds[0] > 0'
    grep -q 'the one before is used' errors
}

@test "a client that says half a line keeps nobody waiting; 10,000 lists take less than a second of one core" {
    python3 - "$d" <<-'END'
	import json, os, random, socket, sys

	def connect():
	    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect("s.sock")
	    return s

	half, whole = connect(), connect()
	half.sendall(b'{"job": "all_')
	random.seed(1)
	hosts = [f"r{r:02}n{n:02}" for r in range(2) for n in range(18)]
	lists = [random.sample(hosts, 8) for _ in range(10000)]
	whole.sendall(json.dumps({"job": "all_reduce 64M x 12; all_to_all 8M x 4 groups of 8", "lists": lists}).encode() + b"\n")
	said = json.loads(whole.makefile().readline())
	assert len(said["seconds"]) == 10000 and min(said["seconds"]) > 0 and sorted(said["order"]) == list(range(10000))
	half.sendall(b'gather 1M", "lists": [["r00n00", "r00n01"]]}\n')
	assert json.loads(half.makefile().readline())["seconds"][0] > 0
	END
    read -r -a stat <"/proc/$pid/stat"
    echo "CPU: ${stat[13]} + ${stat[14]} ticks"
    [ -n "$RG_SAN" ] || [ $((stat[13] + stat[14])) -lt "$(getconf CLK_TCK)" ]
}
