#!/usr/bin/env bats
# hosts.bats - which hosts and how many ranks mpirun is given, on a stand-in for it.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    [ -x "${RG_BUILD:-build}/railgauge-probe" ] || skip "railgauge-probe is not built: no MPI was found"
    mkdir bin
    printf '#!/bin/sh\nexit 0\n' >bin/mpirun
    chmod +x bin/mpirun
    PATH=$PWD/bin:$PATH
    unset "${!SLURM_@}" "${!PBS_@}" "${!LSB_@}" "${!OMPI_MCA_@}"
}

# start WORDS... - "N HOST:RANKS,..." of the command that would be started.
start() {
    railgauge run --dry-run -t mpi "$@" | sed -n 's/^mpirun -n \([0-9]*\) .* -H \([^ ]*\) .*/\1 \2/p'
}

refused() { # CODE REASON WORDS...
    run "-$1" railgauge run --dry-run -t mpi "${@:3}"
    echo "$output"
    [[ $output == "railgauge run: $2" ]]
}

@test "ranks of a host stand behind its name" {
    [ "$(start --hosts a:4,b:4)" = "8 a:4,b:4" ]
    [ "$(start --hosts 'node[01-02]:8')" = "16 node01:8,node02:8" ] # the example of railgauge(1)
    [ "$(start --hosts 'n[1-2]:4,login')" = "9 n1:4,n2:4,login:1" ]
    [ "$(start --hosts a:4,b:2 --ranks 5)" = "5 a:4,b:2" ]
}

@test "without numbers one a host, or all dealt out" {
    [ "$(start --hosts 'n[1-3]')" = "3 n1:1,n2:1,n3:1" ]
    [ "$(start --hosts 'n[1-3]' --ranks 8)" = "8 n1:3,n2:3,n3:3" ]
}

@test "a host file is read as mpirun reads it" {
    printf '# hosts\nn1 slots=4\n\nn2:3\r\nn3 slots=2 max_slots=4 # a slow one\nn4\nm[1-2] slots=2\n' >hosts.txt
    [ "$(start --hosts hosts.txt)" = "14 n1:4,n2:3,n3:2,n4:1,m1:2,m2:2" ]
    [ "$(start --hosts "$PWD/hosts.txt" --ranks 6)" = "6 n1:4,n2:3,n3:2,n4:1,m1:2,m2:2" ]
    printf 'n1\nn2\n' >plain
    [ "$(start --hosts plain --ranks 4)" = "4 n1:2,n2:2" ]
}

# Random lists, whose seed is printed: what each host was given is what its ranks are, in a file as in a list.
@test "any list: ranks are the sum, hosts keep their order and number, a file says the same" {
    echo "seed ${RANDOM_SEED:=$((${RG_ALL:-0} ? RANDOM : 1))}"
    RANDOM=$RANDOM_SEED
    for _ in {1..10}; do
        want="" sum=0
        : >file
        for ((h = RANDOM % 9 + 1; h > 0; h--)); do
            ranks=$((RANDOM % 16 + 1)) sum=$((sum + ranks))
            want+="${want:+,}h$h:$ranks"
            echo "h$h slots=$ranks" >>file
        done
        [ "$(start --hosts "$want")" = "$sum $want" ]
        [ "$(start --hosts file)" = "$sum $want" ]
    done
}

@test "what is no host and no number is refused with its place" {
    refused 65 'host list: ranks of "a:x": "x" is not a whole number' --hosts a:x,b
    refused 65 'host list: ranks of "a:0": 0 is outside 1..1048576' --hosts a:0
    refused 65 'host list: "-x" begins with a dash, as options do' --hosts 'a,-x'
    refused 65 'host list: ":4" has no name' --hosts a,:4
    refused 64 '6 ranks fit on the 2 hosts of --hosts, not 7' --hosts a:4,b:2 --ranks 7
    refused 66 './nosuch: No such file or directory' --hosts ./nosuch
    printf 'n1 slots=4\nn2 cores=3\n' >bad
    refused 65 'bad:2: "cores=3": only slots=N may follow a host' --hosts bad
    : >empty
    refused 65 'empty: no host in it' --hosts empty
}

@test "on one host Open MPI opens no sockets and no adapters, unless hosts, an allocation or the user say more" {
    sockets() { railgauge run --dry-run -t mpi "$@" | grep -c -- '^mpirun .* --mca btl ^tcp,ofi,openib,uct ' || true; }
    [ "$(sockets)" -eq 1 ]
    [ "$(sockets --hosts a,b)" -eq 0 ]
    [ "$(SLURM_JOB_ID=7 sockets)" -eq 0 ]
    [ "$(OMPI_MCA_btl=self,tcp sockets)" -eq 0 ]
    [ "$(OMPI_MCA_pml=ucx sockets)" -eq 0 ]
}
