# nodes.bash - nodes without machines: a stand-in for ssh that enters a host name of its own (a UTS
# namespace) instead of a machine, and what ranks say there.
# shellcheck shell=bash

# nodes_make DIR - DIR/ssh and DIR/say; skips where namespaces are not allowed.
nodes_make() {
    unshare --uts true 2>/dev/null || skip "host names cannot be had here (unshare --uts)"
    cat >"$1/ssh" <<'END'
#!/bin/sh
# ssh [OPTION...] NODE COMMAND...
while :; do case $1 in -*) shift ;; *) break ;; esac; done
export NODE="$1"
shift
exec unshare --uts sh -c 'hostname "$NODE"; eval "$0"' "$*"
END
    # Rank, node, cores that it may run on.
    cat >"$1/say" <<'END'
#!/bin/sh
echo "${OMPI_COMM_WORLD_RANK-$PMI_RANK} $(hostname) $(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)"
END
    chmod 755 "$1/ssh" "$1/say"
}

# nodes_placed - what place writes, of the matrix $golden, for three nodes of two ranks, listed the wrong
# way round: rankfile, hostfile, mpich, and `wanted`: "rank node" of each.
nodes_placed() {
    local form
    printf 'src\tdst\tbytes\n0\t1\t1e9\n2\t3\t1e9\n4\t5\t1e9\n' >bytes
    for form in rankfile hostfile mpich order; do set -- "$@" --write $form=$form; done
    railgauge place "${golden:?}" --traffic bytes --nodes "n[06,02,04]" "$@"
    awk '!/^#/ { print n++, $1 }' order >wanted
    [ "$(head -n 1 wanted)" = "0 n06" ]
}

# nodes_cores - on a machine of two cores or more: the ranks of `landed` are on the nodes that are
# wanted, one on core 0 and one on core 1 of each.
nodes_cores() {
    diff <(awk '{ print $0, NR % 2 ? 0 : 1 }' wanted) <(sort -n landed)
}
