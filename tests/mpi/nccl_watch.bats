#!/usr/bin/env bats
# nccl_watch.bats - transport nccl, on the stand-ins: a call that never returns, a GPU that does nothing any
# more, a rank that dies.  The watch and the ranks' own waits name the same one; what was measured is kept.

bats_require_minimum_version 1.5.0
load helper
load watch

setup() {
    need_stand_ins "devices 8"
    export NCCL_RAS_ADDR=127.0.0.1:1
}

teardown() {
    [ -z "${server-}" ] || kill "$server"
}

# On a busy machine no size is too slow to be measured: the points are counted.
words=(-t nccl -n 4 -w 1 --no-retest --max-run 60s --hang-after 2s)
args=("${words[@]}" --no-plots --no-compute -b 8 -e 32K -f 8 --op all_reduce,pair_bw --pairs shift --pair-bytes 64K --epochs 1)

# Nobody says anything else about the culprit: no row failed, and standard error names one rank.
one_culprit() { # RANK POINTS
    [[ " $(column stop "$2" | xargs) " != *" failed "* ]]
    [ "$(grep -o 'rank [0-9]* (host [^)]*)' <<<"$output" | cut -d' ' -f2 | sort -u)" = "$1" ]
}

# bare RANKS FAULT RANK VERDICT STATUS WORDS - under mpirun alone, then without the fault to the end.
bare() {
    plan "collective all_reduce 8 32768 8 0 0-$(($1 - 1))" "isolated pair_bw 65536 65536 2 0 0>1" \
        "collective all_gather 8 32768 8 0 0-$(($1 - 1))" >plan.tsv
    FAKE_FAULT=$2 run ranks "$1" "$probe" probe --plan plan.tsv "${words[@]}"
    echo "$output"
    [ "$status" -eq "$5" ]
    verdict verdict.json "$4" "$3"
    one_culprit "$3" points.tsv
    [ "$(grep -c "^railgauge-probe: rank $3 (host $here, pid [0-9]*).* points are kept, --resume measures the rest" <<<"$output")" -eq 1 ]
    [[ $output == *"$6"* ]]
    keeps_to_schema verdict.json
    had=$(rows points.tsv)
    [ "$had" -lt 11 ]
    cp points.tsv kept.tsv
    [ ! -e ras.txt ] || cp ras.txt ras.kept
    ranks "$1" "$probe" probe --plan plan.tsv "${words[@]}" --hang-after 60s
    [ "$(rows points.tsv)" -eq 11 ]
    cmp <(head -n "$(wc -l <kept.tsv)" points.tsv) kept.tsv
    [ ! -e verdict.json ]
}

@test "railgauge run: a call that does not return; the verdict within 10 s" {
    # The default of --hang-after for this transport.
    args=("${args[@]/2s/8s}")
    export FAKE_FAULT=hang:2:40
    struck 4 hung 2 "and it is behind the others"
    # Seconds since anything moved: at the verdict, at the end of the command.
    jq -e '.since_s > 8 and .since_s < 10' verdict.kept
    jq -e --argjson ended "$ended" --argjson said "$(stat -c %.9Y verdict.kept)" '.since_s + $ended - $said < 15' verdict.kept
}

@test "railgauge run: a GPU of eight that does nothing any more" {
    export FAKE_FAULT=stuck:6:60
    struck 8 gpu 6 "does not answer, in "
}

@test "railgauge run: a rank that dies; nothing of NCCL's files is left" {
    mkdir tmp
    export TMPDIR=$PWD/tmp FAKE_FAULT=die:3:25
    struck 4 dead 3 "died in "
    [ -z "$(find tmp -iname '*nccl*')" ]
}

# ras TEXT - what NCCL's RAS thread would say to one who asks for its status; "": it hears and says nothing.
ras() {
    perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 8) or die;
        open(my $f, ">", "port.new"); print $f $s->sockport; close($f); rename("port.new", "port");
        while (my $c = $s->accept) {
            next if <$c> ne "CLIENT PROTOCOL 2\n";
            sleep 60 if $ARGV[0] eq "";
            print $c "SERVER PROTOCOL 2\n";
            next if <$c> !~ /^TIMEOUT \d+\n/;
            print $c "OK\n";
            print $c $ARGV[0] if <$c> eq "VERBOSE STATUS\n";
        }' "$1" 3>&- &
    server=$!
    await 60 test -e port
    NCCL_RAS_ADDR=127.0.0.1:$(<port)
}

@test "mpirun: a call of one of two; what RAS says is kept until the ranks are well again" {
    ras $'Job summary\n\e[1m2 ranks\a\n'
    bare 2 hang:1:14 1 hung 75 " hangs in "
    [ "$(<ras.kept)" = "# NCCL RAS at $NCCL_RAS_ADDR"$'\nJob summary\n[1m2 ranks' ]
    [ ! -e ras.txt ]
}

@test "mpirun: a GPU of three; a RAS that does not answer delays nothing" {
    ras ""
    bare 3 stuck:1:40 1 gpu 75 ": GPU 0000:"
    [ ! -e ras.kept ]
}

@test "mpirun: one of eight dies" {
    bare 8 die:5:12 5 dead 137 " died in "
}
