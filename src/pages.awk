# pages.awk - the manual in pages: railgauge.1 and railgauge-calibrate.1 with a list of their commands in place of the
# sections, and a page for each command.
#
#   awk -v dir=DIR -f src/pages.awk rows.tsv src/railgauge.1 src/railgauge-calibrate.1
#
# rows.tsv is what `PROGRAM COMMAND --help=tsv` prints, each line behind the program and the command, and a line "help"
# for the purpose in one line.  The rows say which options, examples and exit codes a page has.  The sections of the
# sources (.Ss PROGRAM COMMAND ARGUMENTS, one heading for each form) have the description, and longer texts for options
# (.It Fl ...), which replace the text of the row.  An option without such a text in the section of its command takes
# that of a command whose row is the same, then that of SHARED OPTIONS.

FILENAME ~ /rows\.tsv$/ { read_row(); next }
FNR == 1 { source[++sources] = FILENAME }
{ line[sources, ++lines[sources]] = $0 }
END {
    for (s = 1; s <= sources; s++) read_source(s)
    check()
    for (s = 1; s <= sources; s++) write_source(s)
    for (i = 1; i <= commands; i++) write_page(command[i])
    if (failed) exit 1
}

function complain(text) { printf "pages.awk: %s\n", text >"/dev/stderr"; failed = 1 }

# --- rows: of each command, options in order with the number of their headline (0: own, -1: every command) ---

function read_row(    f, key, n)
{
    split($0, f, "\t")
    key = f[1] " " f[2]
    if (f[3] == "help") { command[++commands] = key; help[key] = f[4] }
    if (f[3] == "headline") {
        headline[key, ++headlines[key]] = toupper(substr(f[9], 1, 1)) substr(f[9], 2)
        group_now[key] = f[4]
    }
    if (f[3] == "option" || f[3] == "alias") {
        n = ++options[key]
        name[key, n] = f[5]; letter[key, n] = f[6]; arg[key, n] = f[7]; optional[key, n] = f[8]; text[key, n] = f[9]
        at[key, f[5]] = n
        alias[key, n] = f[3] == "alias"
        part[key, n] = f[4] == "own" ? 0 : f[4] == "every" ? -1 : headlines[key]
        if (alias[key, n]) part[key, n] = part[key, n - 1]
        known[f[5]]
    }
    if (f[3] == "example") { n = ++examples[key]; does[key, n] = f[5]; typed[key, n] = f[6] }
    if (f[3] == "exit") exits[key] = f[4]
}

# --- sources ---

function form(l) { sub(/^\.Ss railgauge[a-z-]* [a-z-]+ ?/, "", l); return l }

function read_source(s,    i, l, key, inside, depth, listed, w, names, e)
{
    for (i = 1; i <= lines[s]; i++) {
        l = line[s, i]
        if (l ~ /^\.Dd /) date[s] = l
        if (l ~ /^\.Sh /) { inside = l == ".Sh COMMANDS"; key = l == ".Sh SHARED OPTIONS" ? "shared" : "" }
        if (inside && l ~ /^\.Ss railgauge/) {
            split(l, w, " ")
            key = w[2] " " w[3]
            if (!(key in section)) { order[s, ++sections[s]] = key; section[key] = s }
            else prose[key] = prose[key] ".Ss " form(l) "\n"
            synopsis[key] = synopsis[key] ".Nm " w[2] "\n.Cm " w[3] "\n.Op Ar option ...\n" (form(l) == "" ? "" : "." form(l) "\n")
            continue
        }
        if (key == "") continue
        if (l ~ /^\.Bl / && ++depth == 1 && line[s, i + 1] ~ /^\.It Fl /) { listed = 1; continue }
        if (l ~ /^\.El/ && --depth == 0 && listed) { listed = 0; continue }
        if (listed && depth == 1 && l ~ /^\.It /) {
            e = ++entries
            heads[e] = l
            for (names = l; match(names, /Fl -[a-z0-9][a-z0-9_-]*/); names = substr(names, RSTART + RLENGTH)) {
                w[1] = substr(names, RSTART + 4, RLENGTH - 4)
                if (!((key, w[1]) in entry)) entry[key, w[1]] = e
                said[key] = said[key] w[1] " "
            }
        }
        else if (listed) body[e] = body[e] l "\n"
        else prose[key] = prose[key] l "\n"
    }
}

function check(    i, j, n, w, key)
{
    for (i = 1; i <= commands; i++) {
        if (!(command[i] in section)) complain("no section of \"" command[i] "\"")
        n = split(said[command[i]], w, " ")
        for (j = 1; j <= n; j++)
            if (!((command[i], w[j]) in at) && w[j] != "version") complain(command[i] " has no option --" w[j])
        for (j = 1; j <= options[command[i]]; j++) {
            key = name[command[i], j] "\t" text[command[i], j]
            if (!(key in same) && (command[i], name[command[i], j]) in entry) same[key] = entry[command[i], name[command[i], j]]
        }
    }
    for (key in section) if (!(key in help)) complain("no command \"" key "\"")
    n = split(said["shared"], w, " ")
    for (j = 1; j <= n; j++) if (!(w[j] in known) && w[j] != "version") complain("no command has an option --" w[j])
}

# --- pages ---

# Print lines; a heading of another page is named with its page.
function say(text,    n, l, i, tail, pq)
{
    n = split(text, l, "\n")
    for (i = 1; i < n; i++) {
        if (match(l[i], /^\.(Pq )?Sx .*$/)) {
            tail = l[i] ~ / [.,;]$/ ? " " substr(l[i], length(l[i])) : ""
            pq = l[i] ~ /^\.Pq/
            sub(/^\.(Pq )?Sx /, "", l[i])
            sub(/ [.,;]$/, "", l[i])
            l[i] = pq ? ".Po\n.Dq " l[i] "\nin\n.Xr railgauge 1\n.Pc" tail : ".Dq " l[i] "\nin\n.Xr railgauge 1" tail
        }
        print l[i] >page
    }
}

# Text of a row for mdoc.
function plain(t) { gsub(/\\/, "\\e", t); if (t ~ /^[.']/) t = "\\\\&" t; return t }

function write_source(s,    i, k, inside, name)
{
    name = source[s]
    sub(/.*\//, "", name)
    page = dir "/" name
    for (i = 1; i <= lines[s]; i++) {
        if (inside && line[s, i] !~ /^\.Sh /) continue
        if (inside) { print ".El" >page; inside = 0 }
        print line[s, i] >page
        if (line[s, i] != ".Sh COMMANDS") continue
        inside = 1
        print ".Bl -tag -width check-placement" >page
        for (k = 1; k <= sections[s]; k++)
            printf ".It Xr %s 1\n%s.\n", page_of(order[s, k]), help[order[s, k]] >page
    }
    close(page)
}

function page_of(key) { sub(/ /, "-", key); return key }

# ".It" of all options of an entry that this command has.
function item(key, n, e,    w, names, out, i)
{
    out = flag(key, n)
    done[key, n]
    if (e)
        for (names = heads[e]; match(names, /Fl -[a-z0-9][a-z0-9_-]*/); names = substr(names, RSTART + RLENGTH)) {
            w = substr(names, RSTART + 4, RLENGTH - 4)
            i = (key, w) in at ? at[key, w] : 0
            if (i && !((key, i) in done)) { out = out " , " flag(key, i); done[key, i] }
        }
    for (i = n + 1; alias[key, i]; i++) if (!((key, i) in done)) { out = out " , Fl -" name[key, i]; done[key, i] }
    return ".It " out
}
function flag(key, n,    a)
{
    a = plain(arg[key, n])
    a = a == "" ? "" : optional[key, n] != "" ? " Ns Oo = Ns Ar " a " Oc" : " Ar " a
    return (letter[key, n] == "" ? "" : "Fl " letter[key, n] " , ") "Fl -" name[key, n] a
}

function entry_of(key, n,    k)
{
    if ((key, name[key, n]) in entry) return entry[key, name[key, n]]
    k = name[key, n] "\t" text[key, n]
    if (k in same) return same[k]
    return part[key, n] > 0 ? entry["shared", name[key, n]] + 0 : 0
}

function list(key, p,    i, e, any)
{
    for (i = 1; i <= options[key]; i++) {
        if (part[key, i] != p || alias[key, i] || (key, i) in done) continue
        if (!any && p) print ".Ss " (p < 0 ? "Every command" : headline[key, p]) >page
        if (!any) print ".Bl -tag -width Ds" >page
        any = 1
        e = entry_of(key, i)
        print item(key, i, e) >page
        if (e) say(body[e])
        else say(plain(toupper(substr(text[key, i], 1, 1)) substr(text[key, i], 2)) ".\n")
    }
    if (any) print ".El" >page
}

# A command line that is too wide continues before an option.
function broken(l,    out, at)
{
    while (length(l) > 74) {
        for (at = 70; at > 20 && substr(l, at, 3) != " --"; at--) ;
        if (at == 20) break
        out = out substr(l, 1, at - 1) " \\\n    "
        l = substr(l, at + 1)
    }
    return out l
}

function write_examples(key,    i)
{
    if (!examples[key]) return
    print ".Sh EXAMPLES" >page
    for (i = 1; i <= examples[key]; i++) {
        print (i > 1 ? ".Pp\n" : "") plain(does[key, i]) ":" >page
        print ".Bd -literal -offset indent" >page
        print plain(broken(typed[key, i])) >page
        print ".Ed" >page
    }
}

function write_exits(key,    rest, n)
{
    rest = exits[key]
    sub(/^Exit codes: /, "", rest)
    sub(/\.$/, "", rest)
    print ".Sh EXIT STATUS\n.Bl -tag -width Ds -compact" >page
    while (match(rest, /, [0-9]+ /)) {
        n = RSTART
        print_exit(substr(rest, 1, n - 1))
        rest = substr(rest, n + 2)
    }
    print_exit(rest)
    print ".El" >page
}
function print_exit(t) { printf ".It %s\n%s\n", substr(t, 1, index(t, " ") - 1), plain(substr(t, index(t, " ") + 1)) >page }

function write_page(key,    s, p, w)
{
    split(key, w, " ")
    s = section[key]
    page = dir "/" page_of(key) ".1"
    printf ".\\\" Made by pages.awk.\n%s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n.Sh SYNOPSIS\n%s.Sh DESCRIPTION\n",
        date[s], toupper(page_of(key)), page_of(key), help[key], synopsis[key] \
        (key == "railgauge probe" ? ".Nm railgauge-probe\n.Cm discover | probe | replay\n.Op Ar option ...\n" : "") >page
    say(prose[key])
    print ".Sh OPTIONS" >page
    list(key, 0)
    for (p = 1; p <= headlines[key]; p++) list(key, p)
    list(key, -1)
    printf ".Sh FILES\nThe files of a campaign are described in\n.Dq FILES\nin\n.Xr railgauge 1 .\n" >page
    write_exits(key)
    write_examples(key)
    printf ".Sh SEE ALSO\n.Xr railgauge 1%s ,\n.Xr railgauge-matrix 5\n", w[1] == "railgauge" ? "" : " ,\n.Xr " w[1] " 1" >page
    close(page)
}
