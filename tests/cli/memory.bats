#!/usr/bin/env bats
# memory.bats - memory ends at random allocations: the right answer, or exit 74 with a reason and the old
# file.  RG_SEED repeats a failure.

bats_require_minimum_version 1.5.0

setup_file() {
    export BUILD=${RG_BUILD:-$PWD/build} SEED=${RG_SEED:-$((${RG_ALL:-0} ? RANDOM : 1))}
    PATH=$BUILD:$PATH
    railgauge run -t sim --fabric hgx-h100 --racks 1 -e 1M --no-plots -o "$BATS_FILE_TMPDIR/c" >/dev/null 2>&1
}

setup() {
    [ -z "${RG_SAN-}" ] || skip "sanitizers have an allocator of their own"
    PATH=$BUILD:$PATH
    fake=$BUILD/fake/liboom.so
    [ -e "$fake" ] || skip "the stand-ins are not built (make check builds them)"
    cd "$BATS_TEST_TMPDIR" || return
    ln -s "$BATS_FILE_TMPDIR/c" c
    RANDOM=$SEED
}

# A file without what differs from run to run.
same() {
    sed -E -e 's/"time_utc": ?"[^"]*"//; s/"checksum": ?"[^"]*"//' "$1"
}

# ends_well TIMES FILE COMMAND... - memory ends TIMES times in COMMAND, which writes FILE ("-": none).  FILE is an
# old one every second time.  A third of them is where the answer is written: the last 700 allocations.
ends_well() {
    local times=$1 file=$2 all at code i
    shift 2
    rm -rf "$file"
    OOM_COUNT=$PWD/count LD_PRELOAD=$fake "$@" >good 2>/dev/null
    [ "$file" = - ] || same "$file" >right
    all=$(cat count)
    [ "$all" -gt 700 ]
    for ((i = 0; i < times; i++)); do
        at=$((1 + (RANDOM * 32768 + RANDOM) % all))
        ((i % 3)) || at=$((all - at % 700))
        rm -f "$file"
        ((i % 2)) || [ "$file" = - ] || echo old >"$file"
        code=0
        env "${on[i % ${#on[@]}]}" OOM_AT=$at LD_PRELOAD="$fake" "$@" >out 2>said || code=$?
        { [ $code -eq 0 ] && cmp -s out good && { [ "$file" = - ] || [ "$(same "$file")" = "$(cat right)" ]; }; } ||
            { [ $code -eq 74 ] && [ -s said ] && { [ ! -e "$file" ] || [ "$(cat "$file")" = old ]; }; } ||
            { echo "seed $SEED: allocation $at of $all: exit $code: $(cat said)"; return 1; }
        ! compgen -G "*.tmp.*" || { echo "seed $SEED: allocation $at of $all left that"; return 1; }
    done
}
on=(A=0 A=0 OOM_ON=1 A=0 OOM_ON=1)

@test "fit where memory ends writes the right matrix or none" {
    ends_well 30 m.json railgauge fit c -o m.json
}

@test "show and predict where memory ends answer right or say so" {
    ends_well 15 - railgauge show c/matrix.json collectives --json
    ends_well 15 - railgauge predict c/matrix.json --model llama3.1-8b --layout dp_shard=32
}

@test "a run where memory ended is finished by --resume" {
    run=(railgauge run -t sim --fabric hgx-h100 --racks 1 -b 1M -e 1M --op pairs --no-plots)
    "${run[@]}" -o good >/dev/null 2>&1
    OOM_COUNT=$PWD/count LD_PRELOAD=$fake "${run[@]}" -o counted >/dev/null 2>&1
    all=$(cat count)
    for i in {1..12}; do
        at=$((1 + (RANDOM * 32768 + RANDOM) % all))
        code=0
        OOM_AT=$at LD_PRELOAD=$fake "${run[@]}" -o "r$i" >/dev/null 2>said || code=$?
        echo "seed $SEED: allocation $at of $all: exit $code: $(cat said)"
        [ $code -eq 0 ] || [ $code -eq 74 ]
        if [ $code -eq 74 ]; then
            [ -s said ]
            again=(--resume)
            [ -e "r$i/topology.json" ] || again=()
            "${run[@]}" "${again[@]}" -o "r$i" >/dev/null 2>&1
        fi
        ! compgen -G "r$i/*.tmp.*"
        [ "$(same "r$i/matrix.json" | sed /command/,/]/d)" = "$(same good/matrix.json | sed /command/,/]/d)" ]
        rm -r "r$i"
    done
}

@test "each function of the library that allocates is one that is recorded" {
    # mem_held.c: malloc calloc realloc strdup strndup opendir json_loadb; jansson allocates through them
    nm -D --undefined-only "$BUILD/librailgauge.so.0" | awk '{ sub(/@.*/, "", $NF); print $NF }' >asked
    run ! grep -E '^(__)?(v?asprintf|getline|getdelim|open_memstream|fmemopen|posix_memalign|aligned_alloc|scandir|reallocarray)(_chk)?$' asked
    grep -qx malloc asked
}

@test "the library says that memory ended, lives on and leaves nothing" {
    cc -std=c11 -D_GNU_SOURCE -I"$BATS_TEST_DIRNAME/../../src" -o memory "$BATS_TEST_DIRNAME/../api/memory.c" \
        -L"$BUILD" -lrailgauge -lm
    RAILGAUGE_DATA=$BATS_TEST_DIRNAME/../.. LD_LIBRARY_PATH=$BUILD run ./memory "$BATS_TEST_DIRNAME/../golden/matrix.json" "$SEED" 60
    echo "seed $SEED: $output"
    [ "$status" -eq 0 ]
}
