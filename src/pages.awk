# pages.awk - the manual of railgauge in pages: railgauge.1 with a list of its commands in place of their sections,
# and railgauge-COMMAND.1 for each.
#
#   awk -v dir=DIR -f src/pages.awk src/cmd/command.h src/railgauge.1 src/railgauge.1
#
# What a command is for in one line stands in the table of command.h.  A section of a command may have several headings
# (.Ss railgauge COMMAND ARGUMENTS), one for each form: the first reading makes the synopsis of them.

FILENAME ~ /command\.h$/ {
    if (match($0, /^ *ROW\([a-z_]+, "/)) {
        split($0, quoted, "\"")
        help[quoted[2]] = quoted[4]
    }
    next
}

# Out to the page at hand.  A heading of another page is named with its page.
function say(line, w)
{
    if (page != all && match(line, /^\.(Pq )?Sx .* [.,;]$/)) {
        tail = substr(line, length(line))
        pq = line ~ /^\.Pq/
        sub(/^\.(Pq )?Sx /, "", line)
        line = substr(line, 1, length(line) - 2)
        line = pq ? ".Po" "\n.Dq " line "\nin\n.Xr railgauge 1\n.Pc " tail : ".Dq " line "\nin\n.Xr railgauge 1 " tail
    }
    print line >page
}

function finish(    w)
{
    if (page == "" || page == all)
        return
    printf ".Sh EXIT STATUS\nWhat\n.Fl -help\nsays at its end, and\n.Dq EXIT STATUS\nin\n.Xr railgauge 1 .\n.Sh SEE ALSO\n.Xr railgauge 1 ,\n.Xr railgauge-matrix 5\n" >page
    close(page)
}

function begin(command)
{
    finish()
    page = dir "/railgauge-" command ".1"
    printf ".\\\" Made from railgauge.1 by pages.awk.\n%s\n.Dt RAILGAUGE-%s 1\n.Os\n.Sh NAME\n.Nm railgauge-%s\n.Nd %s\n.Sh SYNOPSIS\n",
        date, toupper(command), command, help[command] >page
    made[command]
}

function form(line) { sub(/^\.Ss railgauge [a-z-]+ ?/, "", line); return line }

FNR == 1 { reading++ }
reading == 1 {
    if (/^\.Ss railgauge /)
        synopsis[$3] = synopsis[$3] ".Nm railgauge\n.Cm " $3 "\n.Op Ar option ...\n" (form($0) == "" ? "" : "." form($0) "\n")
    next
}
FNR == 1 { page = all = dir "/railgauge.1" }
/^\.Dd / { date = $0 }
/^\.Sh COMMANDS$/ {
    commands = 1
    say($0)
    print ".Bl -tag -width check-placement" >all
    next
}
commands && /^\.Sh / {
    finish()
    page = all
    print ".El" >all
    commands = 0
}
commands && /^\.Ss railgauge / {
    if (!($3 in help)) { printf "pages.awk: no command \"%s\" in command.h\n", $3 >"/dev/stderr"; failed = 1; exit 1 }
    if (!($3 in made)) {
        begin($3)
        printf ".It Xr railgauge-%s 1\n%s.\n", $3, help[$3] >all
        printf "%s.Sh DESCRIPTION\n", synopsis[$3] >page
    }
    else
        heading[++headings] = form($0)
    next
}
headings { for (i = 1; i <= headings; i++) say(".Ss " heading[i]); headings = 0 }
{ say($0) }
END {
    for (c in help)
        if (!failed && !(c in made)) { printf "pages.awk: railgauge.1 has no section of \"%s\"\n", c >"/dev/stderr"; exit 1 }
}
