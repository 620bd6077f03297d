# await.bash - the tests wait for conditions, not for times.
# shellcheck shell=bash

# await SECONDS COMMAND... - until it succeeds.  The seconds are many, as they are there for what never
# comes: a busy machine is given its time.
await() {
    local end=$((EPOCHSECONDS + $1))
    shift
    until "$@"; do
        [ "$EPOCHSECONDS" -lt "$end" ] || { echo "waited in vain: $*" >&2; return 1; }
        sleep 0.05
    done
}

# No process of that number, or one that nobody has waited for.
ended() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }
