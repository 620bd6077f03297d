# stranger.bash - this build for users without rights: a checkout may lie in a home that only root enters.
# shellcheck shell=bash

# Install this build in the test's folder, which anybody may then enter; prints the path of railgauge.
install_for_strangers() {
    make -s -C "$BATS_TEST_DIRNAME/../.." install DESTDIR="$PWD/strangers" SAN="${RG_SAN-}" >&2
    chmod a+x . .. ../..
    echo "$PWD/strangers/usr/local/bin/railgauge"
}
