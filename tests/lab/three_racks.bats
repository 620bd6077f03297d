#!/usr/bin/env bats
# bats file_tags=nightly
# Three racks without a delay, so that the trunks alone tell them apart, and one NIC at five eighths.

load chain

: "${RACKS=3}" "${PER=3}" "${NIC=800}" "${TRUNK=300}" "${DELAY_US=0}" "${DEGRADE=4:500}"

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
