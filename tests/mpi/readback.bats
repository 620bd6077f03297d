#!/usr/bin/env bats
# readback.bats - what MPI really used: Open MPI's components, UCX's transports, libfabric's provider, the interfaces between
# hosts; and that it is what was asked for.

bats_require_minimum_version 1.5.0

load helper
load nodes

setup() {
    need_mpi
    mpirun --version | grep -q 'Open MPI) 4' || skip "the mpirun here is not of Open MPI 4"
    cd "$BATS_TEST_TMPDIR" || return 1
    one=(--op pair_bw -b 64K -e 64K --epochs 1)
}

# used - a campaign in c, whose line of MPI is in $line
used() {
    run -0 railgauge run -t mpi -n 2 "${one[@]}" --no-plots -o c
    line=$(grep "^MPI: " <<<"$output")
    # the same in the campaign's topology
    [ "MPI: $(jq -r .mpi.text c/topology.json)" = "$line" ]
}

# has COMPONENT...: Open MPI has these, "pml: ucx"
has() {
    local c
    for c; do ompi_info | grep -q "MCA $c " || skip "this Open MPI has no $c"; done
}

@test "ob1 and shared memory, the usual within a host" {
    used
    [[ $line =~ ^"MPI: Open MPI 4."[0-9.]+", pml ob1, btl vader within hosts"$ ]]
    [ "$(jq -c '[.mpi.pml, .mpi.within, .mpi.between]' c/topology.json)" = '[["ob1"],["vader"],[]]' ]
    # it is read again and printed with the machine
    run -0 railgauge discover c/topology.json
    [[ $output == *"MPI "*"Open MPI 4."*"pml ob1, btl vader within hosts"* ]]
}

@test "what no adapter here is for is not loaded, unless it is asked for" {
    ! compgen -G "/sys/class/infiniband/*" || skip "this host has adapters"
    has "mtl: psm2"
    # loaded WORDS... - how many ranks load a library of adapters
    loaded() {
        env LD_DEBUG=files LD_DEBUG_OUTPUT="$PWD/ld" "$@" mpirun -n 2 --oversubscribe railgauge-probe discover -q -o t.json
        cat ld.* | grep -c 'calling init: .*libpsm2' || true
        rm ld.*
    }
    [ "$(loaded)" -eq 0 ]
    [ "$(loaded OMPI_MCA_mtl=^ofi)" -eq 2 ]
}

@test "TCP is named where it is used, not where its component is only loaded" {
    OMPI_MCA_btl=tcp,self used
    [[ $line == *", pml ob1, btl tcp within hosts" ]]
}

@test "UCX: transports as it logs them, and by connections" {
    has "pml: ucx"
    ucx() { OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any used; }
    UCX_TLS=posix,self ucx
    [[ $line == *", pml ucx, posix within hosts" ]]
    jq -e '.mpi.ucx | index("posix/memory")' c/topology.json
    rm -r c
    UCX_TLS=tcp,self ucx
    [[ $line == *", pml ucx, tcp within hosts" ]]
    jq -e '[.mpi.ucx[] | select(startswith("tcp/"))] | length > 0' c/topology.json
    # a user's own log is his: then connections alone tell
    rm -r c
    UCX_TLS=tcp,self UCX_LOG_LEVEL=warn ucx
    [ "$(jq -c '[.mpi.ucx, .mpi.within]' c/topology.json)" = '[[],["tcp"]]' ]
}

@test "libfabric: the provider that the selected component opened" {
    has "mtl: ofi" "pml: cm"
    ofi() { OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi used; }
    FI_PROVIDER=sockets OMPI_MCA_mtl_ofi_provider_include=sockets ofi
    [[ $line == *", pml cm, mtl ofi, libfabric's sockets, tcp within hosts" ]]
    rm -r c
    FI_PROVIDER=tcp OMPI_MCA_mtl_ofi_provider_include="tcp;ofi_rxm" ofi
    [[ $line == *", pml cm, mtl ofi, libfabric's tcp;ofi_rxm, tcp within hosts" ]]
}

@test "between hosts: the way and the interface" {
    nodes_make .
    local first
    first=$(ip -o -4 addr show scope global up 2>/dev/null | awk '{ print $2; exit }')
    [ -n "$first" ] || skip "no network interface with an address here"
    printf '%s slots=2\n' n1 n2 >hosts
    run -0 timeout 100 mpirun --mca plm_rsh_agent "$PWD/ssh" --hostfile hosts -n 4 \
        "${probe:?}" probe "${one[@]}" -q
    jq .mpi topology.json
    [ "$(jq -c '[.mpi.within, .mpi.between]' topology.json)" = '[["vader"],["tcp"]]' ]
    [[ $(jq -r .mpi.text topology.json) == *", pml ob1, btl vader within hosts, tcp ("*") between" ]]
    jq -e --arg i "$first" '.mpi.interfaces | index($i)' topology.json
}

@test "asked is not used: an error, and the points stay" {
    if [ "$(id -u)" -ne 0 ] || [ ! -d /etc/openmpi ] || ! unshare -m true 2>/dev/null; then
        skip "files of /etc/openmpi cannot be replaced here"
    fi
    # What an administrator overrides goes before a user's variable.
    cat >overridden <<'END'
mkdir etc && cp -r /etc/openmpi/. etc && echo "pml = ob1" >etc/openmpi-mca-params-override.conf
mount --bind etc /etc/openmpi && exec "$@"
END
    OMPI_MCA_pml=ucx run unshare -m sh overridden railgauge run -t mpi -n 2 "${one[@]}" --no-plots -o c
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"asked OMPI_MCA_pml=ucx, used ob1"* ]]
    [ "$(jq -c .mpi.pml c/topology.json)" = '["ob1"]' ]
    [ "$(rows c/points.tsv)" -gt 0 ]
}
