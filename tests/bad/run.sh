#!/bin/bash
# run.sh - every bad input of manifest.tsv gets its exit code and its sentence, in bounded time.
#
# manifest.tsv: file (in this folder, or "-"), command (words; @ is the file, {} a fresh folder), exit
# code, fragment of stderr (may be empty where the code is 0: the file that the bad ones derive from).  A bad file is a
# file of its own or an entry of FOLDER/edits (expand.sh); the one that is only long is made here.
cd "$(dirname "$0")" || exit 1
RG_BUILD=${RG_BUILD:-$(cd ../.. && pwd)/build}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
./expand.sh "$temp" && cd "$temp/bad" || exit 1
seq -f 'lldp.e%g.via=LLDP' 0 4096 >lldp/many.txt

n=0
failed=0
while IFS=$'\t' read -r file command code fragment; do
    [[ $file == file || $file == \#* ]] && continue
    n=$((n + 1))
    [[ $command == *"{}"* ]] && mkdir "$temp/$n"
    words=()
    read -ra raw <<<"$command"
    for w in "${raw[@]}"; do
        w=${w//@/$file}
        words+=("${w//"{}"/$temp/$n}")
    done
    program=railgauge
    [[ " refit score claims curves " != *" ${words[0]} "* ]] || program=railgauge-calibrate
    timeout 20 "$RG_BUILD/$program" "${words[@]}" >"$temp/out" 2>"$temp/err" </dev/null
    got=$?
    IFS= read -rd '' said <"$temp/err"
    if [[ $got == "$code" && (-z $fragment || $said == *"$fragment"*) ]]; then
        echo "ok $n - $file: $command"
    else
        failed=$((failed + 1))
        echo "not ok $n - $file: $command"
        echo "# exit $got where $code was expected; \"$fragment\" expected in:"
        head -c 600 "$temp/err" | tr -cd '\11\12\40-\176' | head -5 | sed 's/^/#   /'
    fi
done <manifest.tsv
echo "1..$n"
exit $((failed > 0))
