#!/usr/bin/env bats
# Two racks 50 us apart, one NIC at three tenths: the chain finds all of it without being told.

load chain

: "${RACKS=2}" "${PER=4}" "${NIC=1000}" "${TRUNK=400}" "${DELAY_US=50}" "${DEGRADE=5:300}"

setup_file() {
    lab usable >/dev/null 2>&1 || return 0 # each test says why it is skipped
    chain_in_lab
}

setup() {
    need_lab
}

teardown_file() {
    lab_gone
}

@test "racks are recovered unasked" {
    racks_are_recovered
}

@test "every pair's bandwidth is within 3 % of the truth" {
    bandwidths_are_true
}

@test "the injected delay is within 40 us of the truth" {
    delays_are_true
}

@test "the degraded NIC is named as the cause and nothing else is" {
    degraded_nics_are_named
}

@test "a crowded trunk is told apart from a bad link" {
    contention_is_told_apart
}
