#!/usr/bin/env bats
# image.bats - jobs/Containerfile, built without a registry of images, and what runs in it as pods would.
# bats file_tags=nightly

bats_require_minimum_version 1.5.0

# Why nothing is built here, for the tests to say: setup_file of older bats cannot skip.
lacks() { echo "$*" >"$BATS_FILE_TMPDIR/why"; }

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    for program in buildah mmdebstrap podman runc; do
        command -v "$program" >/dev/null || { lacks "$program is not installed"; return 0; }
    done
    [ "$(id -u)" -eq 0 ] || { lacks "needs root"; return 0; }
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    mkdir context
    # The commands of the page itself, with a store below this folder and this machine's mirror.
    sed -n 's/^#   \(mmdebstrap .*\)/\1/p' "$top/jobs/Containerfile" >made
    # shellcheck disable=SC2016 # apt's own words
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Codename: bookworm' | head -n 1)
    timeout 500 sh -c "$(cat made) $mirror" >made.log 2>&1 || { lacks "no Debian root can be made: $(tail -1 made.log)"; return 0; }
    git -C "$top" archive --prefix=railgauge/ -o "$PWD/context/railgauge.tar" HEAD
    timeout 900 buildah --root "$PWD/store" --runroot "$PWD/runroot" --storage-driver vfs bud --isolation chroot \
        -t railgauge -f "$top/jobs/Containerfile" context >build.log 2>&1 || { tail -20 build.log; return 1; }
    printf '%s\n' '[containers]' 'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]' '[engine]' \
        'runtime = "runc"' 'cgroup_manager = "cgroupfs"' 'events_logger = "file"' >containers.conf
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    [ ! -e why ] || skip "$(cat why)"
}

# pod OPTION... IMAGE WORD... - railgauge in a container; the network namespace is its own and has no network.
pod() {
    CONTAINERS_CONF=$PWD/containers.conf timeout 300 podman --root "$PWD/store" --runroot "$PWD/runroot" --storage-driver vfs \
        run --rm --network none "$@"
}

@test "a campaign runs in a pod of the standard restricted, and is named after its node" {
    run pod --hostname rg-worker-0 --env NODE_NAME=gpu-7 --user 10001 --read-only --tmpfs /tmp --cap-drop all \
        --security-opt no-new-privileges --entrypoint sh localhost/railgauge \
        -c 'cd /tmp && railgauge run --ranks 2 --quick --no-plots -o c >/dev/null && cat c/topology.json'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *'["gpu-7", '* ]]
    [[ $output != *rg-worker-0* ]]
}

@test "64 KiB of /dev/shm are named as the cause" {
    run pod --shm-size 64k localhost/railgauge run --ranks 2 --quick --no-plots -o /tmp/c
    [ "$status" -ne 0 ]
    [[ ${lines[-1]} == *"/dev/shm has 64 KiB left, Open MPI takes 4 MiB of it"* ]]
}

@test "sshd of the image takes its configurations, as root and as railgauge" {
    run pod --entrypoint sh localhost/railgauge -c 'mkdir -p /root/.ssh && ssh-keygen -q -t ecdsa -N "" -f /root/.ssh/id_rsa && /usr/sbin/sshd -t && echo taken'
    [[ $output == *taken* ]]
    run pod --user 10001 --entrypoint sh localhost/railgauge -c 'mkdir -p ~/.ssh && ssh-keygen -q -t ecdsa -N "" -f ~/.ssh/id_rsa && /usr/sbin/sshd -t -f ~/sshd_config && echo taken'
    [[ $output == *taken* ]]
}
