#!/usr/bin/env bats
# threats.bats - each line of docs/threats.md names a test, and that test exists.

bats_require_minimum_version 1.5.0

top=$BATS_TEST_DIRNAME/../..

# named: FILE and the words behind it, in the last cell of each row.
named() { sed -nE 's/^\|.*\| `(tests\/[^`]*)` ?(.*) \|$/\1\t\2/p' "$1"; }

@test "each line of the threat model names a test that exists; lines without one are the ones that say so" {
    page=$top/docs/threats.md
    [ "$(named "$page" | wc -l)" -gt 20 ]
    while IFS=$'\t' read -r file words; do
        case $words in
        \"*\") grep -qF "@test $words {" "$top/$file" ;;
        "") [ -x "$top/$file" ] ;;
        *) grep -q "cmocka_unit_test[a-z_]*($words\b\|TEST($words)" "$top/$file" ;;
        esac || { echo "$file has no test $words"; false; }
    done < <(named "$page")
    rows=$(grep -c '^| [^-]' "$page")
    [ "$((rows - $(named "$page" | wc -l)))" -eq 3 ] # two heads, and what is possible
    grep -c '| possible: ' "$page"
    # A name that is none is found.
    sed 's/only_the_group_may_read/nobody_may_read/' "$page" >"$BATS_TEST_TMPDIR/page"
    words=$(named "$BATS_TEST_TMPDIR/page" | grep nobody)
    ! grep -q "TEST(${words#*$'\t'})" "$top/${words%$'\t'*}"
}
