#!/usr/bin/env bats
# api.bats - librailgauge as a scheduler sees it: the shared object, its header, its threads.

setup() {
    build=${RG_BUILD:-build}
    matrix=tests/golden/matrix.json
}

@test "the shared object exports the public functions and nothing else" {
    [ -z "${RG_SAN-}" ] || skip "sanitizers add their own symbols"
    run nm -D --defined-only "$build/librailgauge.so"
    [ "$status" -eq 0 ]
    [ "$(awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' <<<"$output" | sort | tr '\n' ' ')" = \
        "railgauge_close railgauge_collective railgauge_count railgauge_find railgauge_open railgauge_pair " ]
}

@test "a C program of 30 lines compiles against header and library and answers" {
    [ -z "${RG_SAN-}" ] || skip "the example is linked without sanitizers"
    cc -std=c11 -Wall -Wextra -Werror -Isrc -o "$BATS_TEST_TMPDIR/example" tests/api/example.c \
        -L"$build" -lrailgauge
    LD_LIBRARY_PATH=$build run "$BATS_TEST_TMPDIR/example" "$matrix" n00 n07
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "16 endpoints" ]
    [[ ${lines[1]} =~ ^"1 MiB: "[0-9.]+" us"$ ]]
    [[ ${lines[2]} =~ ^"all_reduce of 1 MiB: "[0-9.]+" us"$ ]]
    LD_LIBRARY_PATH=$build run "$BATS_TEST_TMPDIR/example" /nowhere n00 n07
    [ "$status" -eq 65 ]
    [ "$output" = "example: /nowhere: No such file or directory" ]
}

@test "threads that share one handle agree under ThreadSanitizer" {
    echo 'int main(void) { return 0; }' >"$BATS_TEST_TMPDIR/t.c"
    cc -fsanitize=thread -o "$BATS_TEST_TMPDIR/t" "$BATS_TEST_TMPDIR/t.c" 2>/dev/null &&
        "$BATS_TEST_TMPDIR/t" || skip "no ThreadSanitizer here"
    # shellcheck disable=SC2046 # words are wanted
    cc -std=c11 -g -O1 -fsanitize=thread -D_GNU_SOURCE -DRG_VERSION='"test"' -DRG_DATADIR='""' -Isrc -I. \
        -w -o "$BATS_TEST_TMPDIR/threads" tests/api/threads.c src/cost/{api,matrix,matrix_load,matrix_save}.c \
        src/cost/{curve,shape,model,collective,places_json,devices_json,ep_json,rows,where}.c src/base/*.c \
        topo/{topo,tiers}.c $(pkg-config --cflags --libs jansson) -lm -lpthread
    TSAN_OPTIONS=halt_on_error=1 run "$BATS_TEST_TMPDIR/threads" "$matrix"
    [ "$status" -eq 0 ]
    [ "$output" = "all threads agree" ]
}
