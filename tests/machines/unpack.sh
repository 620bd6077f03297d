#!/bin/sh
# unpack.sh FILE DIR - make the folder tree of a recorded machine.
set -eu
while IFS= read -r line; do
    case $line in
    '#'* | '') continue ;;
    *' -> '*)
        path=$2${line%% -> *}
        [ -d "${path%/*}" ] || mkdir -p "${path%/*}"
        ln -s "${line#* -> }" "$path"
        ;;
    *)
        # A PCI address has colons but no blank after them.
        path=$2${line%%: *}
        [ -d "${path%/*}" ] || mkdir -p "${path%/*}"
        printf '%b\n' "${line#*: }" >"$path"
        ;;
    esac
done <"$1"
