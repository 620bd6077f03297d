#!/usr/bin/env bats
# discover.bats - recorded machines (tests/machines) and this one, read by the MPI program.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    load helper
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
}

told() {
    local n=$1
    shift
    ranks "$n" railgauge-probe "$@" 2>err.txt
}

# discover MACHINE RANKS - the picture of a recorded machine; t.json is written.
discover() {
    "$top/tests/machines/unpack.sh" "$top/tests/machines/$1.txt" "$PWD/root"
    told "$2" discover --root "$PWD/root" -o t.json
}

@test "a virtual machine: CPU endpoints, one port, and what is not visible with the reason" {
    run discover vm 2
    [ "$status" -eq 0 ]
    [[ $output == *": 2 endpoints, 4 cores, 1 socket, 16 GiB, Intel Xeon Processor (Skylake)"* ]]
    [[ $output == *"NICs       eth0: Ethernet, rate not visible, up (sysfs)"* ]]
    [[ $output == *"tiers      shm      same host, 1 pair"* ]]
    [[ $output == *"  NVLink domain        no NVIDIA driver on this host"* ]]
    [[ $output == *"  rate of eth0         its driver does not tell a speed"* ]]
    [ "${#lines[@]}" -le 25 ]
}

@test "an HGX host: each rank has a GPU and the NIC beside it, names in any order, the dead port last" {
    run discover hgx8 8
    [ "$status" -eq 0 ]
    [ "$(jq -r '[.endpoints.rows[] | .[9]] | join(" ")' t.json)" = \
        "0000:1a:00.0 0000:3c:00.0 0000:4d:00.0 0000:5e:00.0 0000:9c:00.0 0000:bc:00.0 0000:cc:00.0 0000:dc:00.0" ]
    # The port beside the third GPU is down: it takes another one of its socket.
    [ "$(jq -r '[.nics.rows as $n | .endpoints.rows[] | $n[.[8]][1]] | join(" ")' t.json)" = \
        "mlx5_1 mlx5_0 mlx5_3 mlx5_3 mlx5_5 mlx5_4 mlx5_6 mlx5_10" ]
    [[ $output == *"mlx5_2: InfiniBand, 50.0 GB/s, down (sysfs)"* ]]
    [[ $output == *"NVLink domain        the NVIDIA driver is there, but its library (NVML) is not asked"* ]]
}

@test "a GB300 tray: four GPUs with a NIC each; more ranks than GPUs are CPU ranks" {
    run discover gb300-tray 4
    [ "$status" -eq 0 ]
    [ "$(jq -r '[.endpoints.rows[] | .[6] + " " + (.[8] | tostring)] | join(",")' t.json)" = "gpu 0,gpu 1,gpu 2,gpu 3" ]
    [[ $output == *"mlx5_[0-3]: InfiniBand, 100 GB/s, up (sysfs)"* ]]
    run told 5 discover --root "$PWD/root" -q -o t.json
    [ "$status" -eq 0 ]
    [ "$(jq -c '[.endpoints.rows[][6]] | unique' t.json)" = '["cpu"]' ]
}

@test "this machine: one endpoint a rank, in rank order, and railgauge reads it by itself" {
    told 3 discover -q -o t.json
    [ "$(jq -c '[.endpoints.rows[][5]]' t.json)" = '[0,1,2]' ]
    [ "$(jq -r '.hosts.rows[0][0]' t.json)" = "$(hostname)" ]
    run railgauge discover -o one.json
    [ "$status" -eq 0 ]
    [[ $output == "topology   1 host, 1 endpoint"* ]]
    [ "$(jq '.endpoints.rows | length' one.json)" -eq 1 ]
}

@test "a folder that is not there fails on all ranks with one message" {
    run told 3 discover --root /nonexistent -o t.json
    [ "$status" -eq 66 ]
    grep -q "rank 0: /nonexistent: no such folder with a recorded machine" err.txt
    [ "$(grep -c 'no such folder' err.txt)" -eq 1 ]
    [ ! -e t.json ]
}
