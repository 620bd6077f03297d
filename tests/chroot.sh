#!/bin/sh
# chroot.sh - another release of Debian to run programs of, as root, without touching this system.
#
#   root=$(tests/chroot.sh [--user PID] SUITE PACKAGE...)    build or reuse, mount, print its path
#   tests/chroot.sh --leave SUITE                            end what runs inside, unmount, unlock;
#                                                            not while another user has it
#
# SUITE is trixie, forky ...; it comes from the mirrors that this machine's apt knows and stays in
# ${RAILGAUGE_CACHE:-~/.cache/railgauge}/SUITE; one that is damaged is built anew.  Exit 77 and one
# line of reason: it cannot be done here.  One user at a time: PID (the caller by default) has it
# until --leave or its end; others wait CHROOT_WAIT seconds (600).  From bats say --user $$, whose
# subshells are not the caller.
set -eu

cache=${RAILGAUGE_CACHE:-${HOME:-/root}/.cache/railgauge}

taken=
stop() {
    [ -z "$taken" ] || { unmount; rm -f "$root.user"; }
    code=$1
    shift
    echo "chroot.sh: $*" >&2
    exit "$code"
}
skip() { stop 77 "$@"; }
fail() { stop 1 "$@"; }

mounted() { awk -v at="$1" '$5 == at { found = 1 } END { exit !found }' /proc/self/mountinfo; }

# Processes whose root is this folder; they can only be ours.
inside() {
    for p in /proc/[0-9]*; do
        if [ "$(readlink "$p/root" 2>/dev/null)" = "$root" ]; then echo "${p#/proc/}"; fi
    done
}

end_inside() {
    for signal in TERM KILL KILL; do
        pids=$(inside)
        [ -n "$pids" ] || return 0
        # shellcheck disable=SC2086  # one word per process
        kill -s $signal $pids 2>/dev/null || true
        tries=0
        while [ -n "$(inside)" ] && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
    done
}

unmount() {
    awk -v root="$root/" 'index($5, root) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
        while read -r at; do umount "$at" 2>/dev/null || umount -l "$at"; done
}

# An own /dev: a careless rm -r of the cache must not reach that of this machine.
mounts() {
    mounted "$root/proc" || mount -t proc proc "$root/proc" || return 1
    mounted "$root/sys" || mount -t sysfs -o ro sysfs "$root/sys" || return 1
    mounted "$root/dev" && return 0
    mount -t tmpfs -o mode=755 dev "$root/dev" || return 1
    for d in null zero full random urandom tty; do
        : >"$root/dev/$d"
        mount --bind "/dev/$d" "$root/dev/$d" || return 1
    done
    mkdir -m 1777 "$root/dev/shm"
    ln -s /proc/self/fd "$root/dev/fd"
}

# The mirror that has the suite, of those that apt knows here.
mirror() {
    # shellcheck disable=SC2016  # apt's own words
    apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 2>/dev/null | sort -u |
        while read -r uri; do
            case $uri in http:* | https:*) ;; *) continue ;; esac
            if timeout 30 /usr/lib/apt/apt-helper -o Acquire::Retries=2 download-file \
                "${uri%/}/dists/$suite/Release" "$cache/$suite.Release" >/dev/null 2>&1 &&
                grep -q '^Origin: Debian' "$cache/$suite.Release"; then
                echo "${uri%/}"
                break
            fi
        done
}

build() {
    from=$(mirror)
    [ -n "$from" ] || skip "no mirror that apt knows here has $suite, or none can be reached"
    script=/usr/share/debootstrap/scripts
    if [ -e $script/"$suite" ]; then script=$script/$suite; else script=$script/sid; fi
    rm -rf --one-file-system "$root.new"
    debootstrap --variant=minbase "$suite" "$root.new" "$from" "$script" >"$root.log" 2>&1 ||
        skip "debootstrap $suite failed: $(tail -n 1 "$root.log") ($root.log)"
    printf '#!/bin/sh\nexit 101\n' >"$root.new/usr/sbin/policy-rc.d" # no service starts by itself
    chmod 755 "$root.new/usr/sbin/policy-rc.d"
    # Suites that are not released may be past their date of validity.
    printf '%s "%s";\n' APT::Install-Recommends false Acquire::Check-Valid-Until false \
        Acquire::Languages none APT::Sandbox::User root >"$root.new/etc/apt/apt.conf.d/90tests"
    printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' \
        'path-exclude=/usr/share/locale/*' >"$root.new/etc/dpkg/dpkg.cfg.d/tests"
    mv "$root.new" "$root"
}

# Is it there, and do its shell, dpkg and apt run?
whole() { [ -d "$root" ] && chroot "$root" sh -c 'dpkg-query -W dpkg && apt-get -v' >>"$root.log" 2>&1; }

# The packages of those asked that are not installed.
missing() {
    for p in "$@"; do
        # shellcheck disable=SC2016  # dpkg's own words
        chroot "$root" dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null |
            grep -qx installed || echo "$p"
    done
}

apt() { DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -q -y -o Acquire::Retries=3 "$@" >>"$root.log" 2>&1; }

# What the network denies is a reason to skip; what is here and cannot be installed is a fault.
packages() {
    need=$(missing "$@")
    [ -n "$need" ] || return 0
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    chroot "$root" dpkg --configure -a >>"$root.log" 2>&1 || true # what a user who was killed left
    apt update || skip "apt-get update in $suite failed: $(tail -n 1 "$root.log")"
    # shellcheck disable=SC2086  # one word per package
    apt install --download-only $need || case $(tail -n 1 "$root.log") in
        *'to fetch'*) skip "packages of $suite cannot be fetched ($root.log)" ;;
        *) fail "$suite: $(tail -n 1 "$root.log") ($root.log)" ;;
    esac
    # shellcheck disable=SC2086
    apt install --no-download $need || fail "$suite: apt-get install failed: $(tail -n 1 "$root.log") ($root.log)"
}

# The lock: a file with the user's process; that of a process that is gone counts no more.
owner() { cat "$root.user" 2>/dev/null || true; }
held() { [ -n "$(owner)" ] && [ "$(owner)" != "$user" ] && kill -0 "$(owner)" 2>/dev/null; }
take() {
    exec 8>"$root.lock"
    end=$(($(date +%s) + ${CHROOT_WAIT:-600}))
    flock -w "${CHROOT_WAIT:-600}" 8 || skip "$suite is being built by another user"
    while held; do
        flock -u 8
        [ "$(date +%s)" -lt $end ] || skip "$suite is in use by process $(owner)"
        sleep 0.3
        flock 8
    done
    [ "$(owner)" = "$user" ] || end_inside # what a user who was killed left
    echo "$user" >"$root.user"
    taken=yes
}

user=$PPID leave=
while :; do
    case ${1:-} in
    --user) user=$2; shift 2 ;;
    --leave) leave=yes; shift ;;
    *) break ;;
    esac
done
case ${1:-} in '' | *[!a-z]*) echo "usage: chroot.sh [--user PID] SUITE PACKAGE... | --leave SUITE" >&2; exit 64 ;; esac
suite=$1
shift
[ "$(id -u)" -eq 0 ] || skip "only root can chroot"
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)
root=$cache/$suite

# Is the user one of those who started this script, or gone?
ours() {
    pid=$$
    while [ "$pid" -gt 1 ] && [ "$pid" != "$(owner)" ]; do
        pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
    done
    [ "$pid" = "$(owner)" ] || ! kill -0 "$(owner)" 2>/dev/null
}

if [ -n "$leave" ]; then
    [ -z "$(owner)" ] || ours || fail "$suite is in use by process $(owner)"
    end_inside
    unmount
    rm -f "$root.user"
    exit 0
fi
command -v debootstrap >/dev/null || skip "no debootstrap here"
take
whole || { unmount; rm -rf --one-file-system "$root"; build; }
mounts 2>>"$root.log" || skip "this machine does not allow mounts: $(tail -n 1 "$root.log")"
echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
packages "$@"
echo "$root"
