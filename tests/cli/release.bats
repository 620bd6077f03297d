#!/usr/bin/env bats
# release.bats - the two checks that look at the history: what a release lacks, and limits that a commit raised.

bats_require_minimum_version 1.5.0

# A repository of two files of ours, so that the history here does not matter.
setup() {
    command -v git >/dev/null || skip "git is not installed"
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR"
    git init -q . && git config user.email a@b.c && git config user.name a
    mkdir tests && cp "$top/tests/walls.sh" "$top/tests/release.sh" tests
    git add -A && git commit -qm "first"
}

raise() { sed -i "s/max_files=[0-9]*/max_files=$1/" tests/walls.sh; }

@test "a commit that raises a limit says why in its body" {
    raise 9000
    run -0 tests/walls.sh --raised
    [[ $output == *"max_files: "*" -> 9000"*"not committed yet"* ]]
    git commit -qam "src: more files"
    run -1 tests/walls.sh --raised
    [[ $output == *"max_files: "*" -> 9000"*"its body does not say why"* ]]
    git commit -q --amend -m "src: more files" -m "One noun a file."
    run -0 tests/walls.sh --raised
    [[ $output == *" -> 9000"* ]]
    raise 10
    git commit -qam "src: fewer files"
    run -0 tests/walls.sh --raised
    [ -z "$output" ]
}

@test "a release check names what is missing, and passes when it is there" {
    cat >Makefile <<'X'
dist:
	@mkdir -p $(BUILD) && git archive --prefix=railgauge-1.2.3/ -o $(BUILD)/railgauge-1.2.3.tar.gz HEAD
all:
	@mkdir -p $(BUILD) && printf '#!/bin/sh\necho railgauge 1.2.3\n' >$(BUILD)/railgauge && chmod +x $(BUILD)/railgauge
install:
	@install -D $(BUILD)/railgauge $(DESTDIR)/usr/local/bin/railgauge
	@mkdir -p $(DESTDIR)/usr/local/lib/pkgconfig && echo "Version: 1.2.3" >$(DESTDIR)/usr/local/lib/pkgconfig/railgauge.pc
X
    sed -i '1i all:' Makefile
    printf '# News\n\n## 1.2.3, not yet released\n- one\n' >NEWS.md
    git add -A && git commit -qm "all but NEWS"
    echo "- two" >>NEWS.md
    run -1 tests/release.sh 1.2.3
    [[ $output == *"not yet  everything is committed"* && $output == *"not yet  NEWS.md begins with"* && $output == *"2 of 8"* ]] ||
        { echo "$output"; false; }
    sed -i 's/not yet released/2026-11-28/' NEWS.md
    git commit -qam "release"
    run -0 tests/release.sh 1.2.3
    git tag v1.2.3
    echo 'VERSION := "1.2.3"' >>Makefile
    git commit -qam "state it twice"
    run -1 tests/release.sh 1.2.3
    [[ $output == *"not yet  v1.2.3 is no tag yet"* && $output == *"not yet  no other file states the version"* ]]
    run -1 tests/release.sh 1.2
    [[ $output == *'not yet  version "1.2" is three numbers'* ]]
}
