#!/bin/bash
# vm.sh - two small machines with a kernel of their own, joined by two wires: RDMA without hardware (rdma_rxe).
#
#   vm.sh [--limit SECONDS] DIR SCRIPT [ARG...]     boot both, run SCRIPT as root on the first, end both; its exit code
#   vm.sh --prepare                                 only fetch the kernel and make what they start with
#
# They see this machine's files, read-only below a tmpfs, and DIR as /vm, which they can write and where SCRIPT begins.
# They are node1 and node2 (10.8.0.1 and .2 on eth0, another wire joins eth1); the script runs a command on the other one by `remote node2
# COMMAND...` (remote.c, found in its PATH).  What a machine says is DIR/node1.log and DIR/node2.log, shown on failure.
# A fast machine takes 15 s to boot them: QEMU, without the processor's help (KVM) where there is none.
#
# The kernel is Debian's own, fetched by apt-get download, never installed; it stays with what is made of it in
# ${RAILGAUGE_CACHE:-~/.cache/railgauge}/vm.  Exit 77 and one line of reason: it cannot be done here.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${RAILGAUGE_CACHE:-${HOME:-/root}/.cache/railgauge}/vm
modules='crc32_generic virtio_pci virtio_net 9p 9pnet_virtio overlay rdma_rxe ib_uverbs rdma_ucm ib_umad bridge veth
    sch_netem sch_tbf'

say() { echo "vm.sh: $*" >&2; }
skip() { say "$@"; exit 77; }
fail() { say "$@"; exit 1; }

need() {
    command -v "$1" >/dev/null || skip "no $1 here (package $2)"
}

needs() {
    [ "$(uname -m)" = x86_64 ] || skip "only machines of x86_64 are known, not of $(uname -m)"
    [ "$(id -u)" -eq 0 ] || skip "only root shares all files with a machine"
    need qemu-system-x86_64 qemu-system-x86
    need busybox busybox-static
    need cpio cpio
    need modprobe kmod
    need setpriv util-linux
    need "${CC%% *}" gcc
    # A busybox with libraries does not start in an empty root.
    ! LC_ALL=C ldd "$(command -v busybox)" >/dev/null 2>&1 || skip "busybox needs libraries (package busybox-static)"
}

# The newest kernel in the cache, else the one that apt knows.
kernel() {
    release=$(cd "$cache" && for k in linux-*/boot/vmlinuz-*; do echo "${k##*/vmlinuz-}"; done | sort -V | tail -n 1)
    [ "$release" = '*' ] || return 0
    local package log=$cache/fetch.log
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-/ { print $2; exit }')
    [ -n "$package" ] || skip "apt knows no linux-image-amd64 here"
    release=${package#linux-image-}
    rm -rf "$cache/new"
    mkdir "$cache/new"
    (cd "$cache/new" && apt-get -q -o APT::Sandbox::User=root download "$package") >"$log" 2>&1 ||
        skip "$package cannot be fetched: $(tail -n 1 "$log")"
    dpkg-deb -x "$cache/new/$package"_*.deb "$cache/new/root"
    depmod -b "$cache/new/root" "$release"
    mv "$cache/new/root" "$cache/linux-$release"
    rm -rf "$cache/new"
}

# Each module behind those that it needs.
module_files() {
    local m
    for m in $modules; do
        modprobe -d "$cache/linux-$release" -S "$release" --show-depends "$m" ||
            skip "the kernel $release has no module $m"
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# What the machines start with, made anew when its recipe changes.
initrd() {
    local recipe root=$cache/root
    recipe=$({ echo "$release $modules"; cat "$here/init" "$(command -v busybox)"; } | sha256sum | cut -c 1-16)
    initrd=$cache/initrd-$recipe
    [ ! -s "$initrd" ] || return 0
    rm -rf "$root" "$cache"/initrd-*
    mkdir -p "$root"/{bin,proc,sys,dev,below,above,new,modules}
    cp "$(command -v busybox)" "$root/bin/busybox"
    install -m 755 "$here/init" "$root/init"
    module_files >"$cache/files"
    xargs cp -t "$root/modules" <"$cache/files"
    sed 's|.*/||' "$cache/files" >"$root/order"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$initrd.new"
    mv "$initrd.new" "$initrd"
    rm -rf "$root"
}

prepare() {
    CC=${CC:-cc}
    needs
    mkdir -p "$cache"
    exec {lock}>"$cache/lock"
    flock -w 300 "$lock" || skip "$cache is in use by another one"
    kernel
    initrd
    exec {lock}>&-
}

# A wire of one machine: what it sends arrives at the same socket of the other.
wire() {
    local path=${dir//,/,,}/.wire
    network+=(-netdev "dgram,id=n$1,local.type=unix,local.path=$path$1$2,remote.type=unix,remote.path=$path$1$((3 - $2))"
        -device "virtio-net-pci,netdev=n$1,romfile=,mac=52:54:00:00:0$1:0$2")
}

# node NUMBER: begin it.  It ends with this shell, however that ends.  On a busy machine the kernel would take the
# emulated timer, which ticks late, for one that does not work (no_timer_check).
node() {
    local network=()
    wire 0 "$1"
    wire 1 "$1"
    setpriv --pdeathsig KILL qemu-system-x86_64 "${accel[@]}" -m "${VM_MEMORY:-1G}" -smp 1 -nographic -no-reboot \
        -kernel "$cache/linux-$release/boot/vmlinuz-$release" -initrd "$initrd" \
        -append "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off no_timer_check node=$1" \
        -virtfs local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap \
        -virtfs "local,path=${dir//,/,,},mount_tag=vm,security_model=none,multidevs=remap" \
        "${network[@]}" </dev/null >"$dir/node$1.log" 2>&1 &
    pids+=($!)
}

# The processor's help, where it gives any.
choose_accel() {
    accel=(-accel "tcg,thread=multi")
    if [ -w /dev/kvm ] && grep -qE '^flags.* (vmx|svm) ' /proc/cpuinfo; then accel=(-accel kvm -cpu host); fi
}

# shellcheck disable=SC2317  # the trap calls it
end() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait
    rm -f "$dir"/.wire[01][12]
}

# What a machine said, without what its firmware draws.
words() { tr -d '\r' <"$dir/node$1.log" | sed 's/.*\x1b\[2J//; s/\x1b\[[0-9;?]*[A-Za-z]//g; s/\x1bc//' | grep -v '^$'; }

# What both run: the script, or whatever the script asks for.
# shellcheck disable=SC2016  # they know their node
write_start() {
    {
        printf 'export PATH=/vm/.bin:%q:$PATH\n' "${RG_BUILD:-$(cd "$here/../.." && pwd)/build}"
        echo 'remote --serve & cd /vm'
        echo '[ "$node" = 1 ] || { wait; exit; }'
        printf '%q ' exec bash "$@"
    } >"$dir/start"
}

# Until the first machine ends, one dies or the time is over.
await_first() {
    local end=$((SECONDS + limit))
    while kill -0 "${pids[0]}" 2>/dev/null && [ $SECONDS -lt $end ]; do
        kill -0 "${pids[1]}" 2>/dev/null || { say "node2 ended by itself"; break; }
        sleep 0.2
    done
    [ $SECONDS -lt $end ] || say "not done in $limit s (--limit)"
}

limit=240
while :; do
    case ${1:-} in
    --limit) limit=$2; shift 2 ;;
    --prepare) prepare; exit ;;
    *) break ;;
    esac
done
[ $# -ge 2 ] || { echo "usage: vm.sh [--limit SECONDS] DIR SCRIPT [ARG...] | vm.sh --prepare" >&2; exit 64; }
mkdir -p "$1"
dir=$(cd "$1" && pwd -P)
script=$(realpath "$2")
shift 2
pids=()
prepare
mkdir -p "$dir/.bin"
# shellcheck disable=SC2086  # a compiler and its wrapper
$CC -std=c11 -D_GNU_SOURCE -O2 -o "$dir/.bin/remote" "$here/remote.c" || fail "remote.c does not compile"
write_start "$script" "$@"
choose_accel
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
node 1
node 2
await_first
code=$(words 1 | sed -n 's/^vm-exit //p')
if [ "$code" != 0 ]; then
    for i in 1 2; do
        echo "--- node$i:"
        words "$i"
    done >&2
fi
exit "${code:-1}"
