#!/usr/bin/env bats
# main.bats - the program's front door: help, version, unknown words, what it links.

bats_require_minimum_version 1.5.0
commands="run discover plan probe fit show cost predict models plot export curves import"

@test "help lists every command on stdout and is good" {
    run --separate-stderr railgauge --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    for c in $commands; do
        grep -qE "^  $c +[a-z]" <<<"$output"
    done
}

@test "no command at all is usage, on stderr" {
    run --separate-stderr railgauge
    [ "$status" -eq 64 ]
    [ -z "$output" ]
    [[ $stderr == "usage: railgauge COMMAND"* ]]
}

@test "an unknown command is named" {
    run --separate-stderr railgauge mesure
    [ "$status" -eq 64 ]
    [ "$stderr" = 'railgauge: no command "mesure"; railgauge --help lists them' ]
}

@test "version says name and number" {
    run railgauge --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^railgauge\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "every command has help with an example, and exits good" {
    for c in $commands; do
        run --separate-stderr railgauge "$c" --help
        [ "$status" -eq 0 ] || { echo "$c: $status $stderr"; false; }
        [[ $output == Usage:* ]] || { echo "$c: $output"; false; }
        grep -q "railgauge $c" <<<"$output" || { echo "$c has no example"; false; }
    done
}

@test "an unknown option of any command is usage and names itself" {
    for c in $commands; do
        run --separate-stderr railgauge "$c" --no-such-option
        [ "$status" -eq 64 ] || { echo "$c: $status"; false; }
        [[ $stderr == *"$c: unrecognized option '--no-such-option'"* ]] || { echo "$c: $stderr"; false; }
    done
}

@test "a missing file of any reader is no input and named" {
    for c in "fit /nonexistent/points.tsv" "show /nonexistent/m.json" "plot /nonexistent/m.json"; do
        # shellcheck disable=SC2086
        run --separate-stderr railgauge $c
        [ "$status" -eq 66 ] || { echo "$c: $status $stderr"; false; }
        [[ $stderr == *"/nonexistent/"*"No such file or directory"* ]] || { echo "$c: $stderr"; false; }
    done
}

@test "railgauge links neither MPI nor hwloc nor CUDA" {
    run ldd "$RG_BUILD/railgauge"
    [ "$status" -eq 0 ]
    [[ $output == *libjansson* ]]
    ! grep -E 'libmpi|libopen-|libpmix|libhwloc|libcuda|libnccl' <<<"$output"
}

@test "a full disk under stdout is not good" {
    run bash -c 'railgauge --help >/dev/full'
    [ "$status" -eq 74 ]
}
