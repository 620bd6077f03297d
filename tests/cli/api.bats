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
    exported=$(awk '$2 ~ /[TDBRW]/ {sub(/@.*/, "", $3); print $3}' <<<"$output" | sort | tr '\n' ' ')
    echo "$exported"
    [ "$exported" = "railgauge_changed railgauge_close railgauge_collective railgauge_collective_ranges railgauge_count railgauge_find railgauge_group_close \
railgauge_group_open railgauge_group_price railgauge_group_time railgauge_host_count railgauge_host_find railgauge_host_name railgauge_hosts_in railgauge_hosts_range railgauge_job_close railgauge_job_free_gpus railgauge_job_open railgauge_level \
railgauge_list_close railgauge_list_cost railgauge_list_open railgauge_list_swap railgauge_nodes_best railgauge_nodes_cost \
railgauge_open railgauge_pair railgauge_pairs railgauge_place railgauge_rank " ]
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

# The sources that librailgauge is made of, as the linker picks them: where a name is in two folders,
# both; what nobody calls in them is left out.
sources() {
    cc -shared -Wl,--undefined=railgauge_open -Wl,--undefined=railgauge_group_open -Wl,--undefined=railgauge_job_open -Wl,-Map,"$BATS_TEST_TMPDIR/map" \
        -o "$BATS_TEST_TMPDIR/x.so" -Wl,--start-group "$build"/lib/*.a -Wl,--end-group $(pkg-config --libs jansson) -lm
    for name in $(grep -oE '/lib/[a-z]+\.a\([a-z_0-9]+\.c' "$BATS_TEST_TMPDIR/map" | sed 's/.*(//' | sort -u); do
        ls src/{base,matrix,step,step/price,step/search,place,measure,measure/device,record}/"$name" topo/{,*/,*/*/}"$name" 2>/dev/null || true
    done
}

@test "threads that share one handle and one job agree under ThreadSanitizer" {
    [ -z "${RG_SAN-}" ] || skip "the library is built with other sanitizers"
    # Its map of memory has no place for every random address that a kernel may choose.
    plain=(setarch "$(uname -m)" -R)
    "${plain[@]}" true || plain=()
    echo 'int main(void) { return 0; }' >"$BATS_TEST_TMPDIR/t.c"
    cc -fsanitize=thread -o "$BATS_TEST_TMPDIR/t" "$BATS_TEST_TMPDIR/t.c" 2>/dev/null &&
        "${plain[@]}" "$BATS_TEST_TMPDIR/t" || skip "no ThreadSanitizer here"
    mkdir "$BATS_TEST_TMPDIR/o"
    { sources; echo tests/api/threads.c; } >"$BATS_TEST_TMPDIR/list"
    grep -qx src/place/place_sets.c "$BATS_TEST_TMPDIR/list"
    # shellcheck disable=SC2016 # expanded by the inner shell
    OUT=$BATS_TEST_TMPDIR/o xargs -P 2 -n 8 sh -c 'for f; do
            cc -std=c11 -g -O0 -ffunction-sections -fdata-sections -fsanitize=thread -D_GNU_SOURCE -DRG_VERSION=\"test\" -DRG_DATADIR=\"\" -Isrc -I. -w \
                -c -o "$OUT/$(echo "$f" | tr / _).o" "$f" || exit 255
        done' sh <"$BATS_TEST_TMPDIR/list"
    # shellcheck disable=SC2046 # words are wanted
    cc -fsanitize=thread -Wl,--gc-sections -o "$BATS_TEST_TMPDIR/threads" "$BATS_TEST_TMPDIR"/o/*.o $(pkg-config --libs jansson) -lm -lpthread
    TSAN_OPTIONS=halt_on_error=1 run "${plain[@]}" "$BATS_TEST_TMPDIR/threads" "$matrix"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "all threads agree" ]
}

@test "the header is C++ too" {
    command -v c++ >/dev/null || skip "no C++ compiler"
    printf '#include <railgauge.h>\nint main() { return railgauge_host_find(nullptr, nullptr) + 1; }\n' >"$BATS_TEST_TMPDIR/x.cc"
    c++ -Wall -Wextra -Werror -Isrc -c -o "$BATS_TEST_TMPDIR/x.o" "$BATS_TEST_TMPDIR/x.cc"
}
