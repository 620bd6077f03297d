#!/bin/sh
# hardened.sh FILE... - programs and libraries as they are installed: position independent, relocations read-only and
# resolved at the start, no executable stack, no search path of their own, and calls to the checks that the compiler
# adds (stack protector, _FORTIFY_SOURCE, control-flow protection on x86-64).  Prints what a file lacks; exit 1.
lacks() {
    echo "$file: no $1"
    bad=1
}

bad=0
export LC_ALL=C
for file in "$@"; do
    [ -r "$file" ] || { lacks "such file"; continue; }
    head=$(readelf -Wh "$file") segments=$(readelf -Wl "$file") dynamic=$(readelf -Wd "$file")
    symbols=$(readelf -W --dyn-syms "$file")
    echo "$head" | grep -q 'Type: *DYN' || lacks "position independence"
    ! echo "$segments" | grep -q INTERP || echo "$dynamic" | grep -q 'FLAGS_1.*PIE' || lacks "position independence (PIE)"
    echo "$segments" | grep -q GNU_RELRO || lacks "read-only relocations (relro)"
    echo "$dynamic" | grep -Eq 'BIND_NOW|FLAGS_1.*NOW' || lacks "binding at the start (now)"
    echo "$segments" | grep -q 'GNU_STACK.* RW ' || lacks "stack without code"
    ! echo "$dynamic" | grep -Eq 'RPATH|RUNPATH|TEXTREL' || lacks "freedom from RPATH, RUNPATH and TEXTREL"
    echo "$symbols" | grep -q 'UND __stack_chk_fail' || lacks "stack protector"
    echo "$symbols" | grep -Eq 'UND __[a-z]+_chk(@|$)' || lacks "checked calls (_FORTIFY_SOURCE)"
    # Notes say nothing where the C library's own objects have none; those few of endbr64 are not ours.
    ! echo "$head" | grep -q X86-64 || [ "$(grep -aoP '\xf3\x0f\x1e\xfa' "$file" | wc -l)" -gt 20 ] || lacks "control-flow protection"
done
exit $bad
