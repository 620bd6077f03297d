#!/bin/bash
# words.sh - tests/words.py passes plain comments, and names each kind of comment that is not.
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests" "$work/src/a" "$work/topo" "$work/kernels"
cp tests/words.py "$work/tests"

# tree COMMENT: 24 plain comments and this one three times.
tree() {
    for _ in {1..24}; do echo '/* Return the number of hosts in the list.  The caller frees the list. */'; done >"$work/src/a/a.c"
    for _ in 1 2 3; do echo "/* $1 */"; done >>"$work/src/a/a.c"
}
n=0
# ok CODE TITLE
ok() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
# says TEXT: the script fails and prints it.
says() {
    out=$(python3 "$work/tests/words.py") && return 1
    [[ $out == *"$1"* ]]
}
echo 1..6
tree 'Add the rounds of one stage to the plan.'
python3 "$work/tests/words.py"
ok $? "plain comments pass"
tree 'Those that are left to the last.'
says 'begin weakly'
ok $? "a pronoun at the beginning"
tree 'Is the host there at all?'
says 'begin weakly'
ok $? "a question"
tree 'Rows are kept. Of two the first counts.'
says 'begin with "Of"'
ok $? "a sentence that begins with Of"
tree 'Move it to what has those which take them, one of these ones, others to its own, both to theirs.'
says 'pointing words'
ok $? "words that point"
tree 'The rule is in absent_file.c beside this one here.'
says 'there is no absent_file.c'
ok $? "a file that does not exist"
