# style.gp - what every picture shares; loaded by the scripts beside it.  gnuplot 5.4 or newer.
#
# A script is called as `gnuplot -c NAME.gp IN OUT FORMAT`: IN is the folder with the tables that
# `railgauge plot` wrote, OUT the picture, FORMAT png, svg or pdf.  It keeps its arguments in NAME, ARGS,
# IN, OUT and FORMAT before it loads this file (loading resets ARGn), sets WIDTH and HEIGHT in pixels,
# and then opens the terminal by `eval value('OPEN_'.FORMAT)`.
#
# Text of others (host names) comes from data files only, never through a command line: gnuplot runs
# back-quotes inside double quotes, and file names that begin with '<' or '|' are commands.

if (ARGS != 3) { printerr 'usage: gnuplot -c '.NAME.' IN OUT png|svg|pdf'; exit status 64 }
if (IN[1:1] eq '<' || IN[1:1] eq '|' || OUT[1:1] eq '|' || OUT[1:1] eq '<') {
    printerr "a path must not begin with '<' or '|'"; exit status 64
}
if (FORMAT ne 'png' && FORMAT ne 'svg' && FORMAT ne 'pdf') {
    printerr "format \"".FORMAT."\" is none of png, svg, pdf"; exit status 64
}

set encoding utf8
set datafile separator "\t"
set datafile commentschars ''
set datafile missing 'NaN'

FONT = 'DejaVu Sans'
INK = '#1a1a1a'; SOFT = '#6b7280'; GRID = '#e5e7eb'; MISSING = '#8b8f98'
array COLOUR[6]

# Everything is laid out in the pixels of the png.  Text sizes are points there; the svg counts pixels (4/3
# of a point here) and the pdf has 200 of the pixels in an inch.  PS is the size of a point mark.
OPEN_png = "set terminal pngcairo size WIDTH * SCALE,HEIGHT * SCALE enhanced font FONT.',22' fontscale SCALE linewidth 2 * SCALE background rgb 'white'"
OPEN_svg = "set terminal svg size WIDTH * SCALE,HEIGHT * SCALE enhanced font FONT.',29.3' fontscale SCALE linewidth 2 * SCALE background rgb 'white'"
OPEN_pdf = "set terminal pdfcairo size WIDTH * SCALE / 200.,HEIGHT * SCALE / 200. enhanced fontscale SCALE font FONT.',7.92' linewidth 1.6 * SCALE background rgb 'white'"
# A size that was asked for scales everything alike.  `eval RESIZE`, once WIDTH and HEIGHT are known, says how many pixels
# the areas get more, or less where the script gave GIVE_W and GIVE_H that they can lose so that text is larger.
EXTRA_W = 0; EXTRA_H = 0; GIVE_W = 0; GIVE_H = 0; SCALE = 1.; DENSE = 1750
RESIZE = "if (SIZE_W > 0) { W0 = WIDTH - GIVE_W > DENSE ? WIDTH - GIVE_W : WIDTH > DENSE ? DENSE : WIDTH; H0 = SIZE_H > 0 ? W0 * SIZE_H / SIZE_W : HEIGHT; if (H0 < HEIGHT - GIVE_H) { H0 = HEIGHT - GIVE_H; W0 = H0 * SIZE_W / SIZE_H }; EXTRA_W = W0 - WIDTH; EXTRA_H = H0 - HEIGHT; SCALE = SIZE_W / real(W0); PS = PS * SCALE }"
PT = FORMAT eq 'png' ? 1 : FORMAT eq 'svg' ? 4/3. : 0.36
PS = FORMAT eq 'png' ? 1 : FORMAT eq 'svg' ? 0.45 : 0.5
font(size) = sprintf('%s,%g', FONT, size * PT)
bold(size) = sprintf('%s:Bold,%g', FONT, size * PT)
F16 = font(16); F17 = font(17); F18 = font(18); F20 = font(20)
B17 = bold(17); B20 = bold(20); B24 = bold(24)

# Text from data as it is: the characters that mean something in enhanced text get a backslash.  (The svg
# terminal has no bold without enhanced text.)
plain(s) = strlen(s) == 0 ? '' : (strstrt('_^{}@&~', s[1:1]) > 0 ? '\' : '').s[1:1].plain(s[2:*])
# The same for `with labels`, where gnuplot takes one backslash away before it reads the text.
label(s) = strlen(s) == 0 ? '' : (strstrt('_^{}@&~', s[1:1]) > 0 ? '\\' : '').s[1:1].label(s[2:*])

# Screen coordinates of a place in pixels from the left and from the top.
sx(px) = px / real(WIDTH)
sy(px) = 1 - px / real(HEIGHT)

bytes(v) = v < 1024 ? sprintf('%d B', v) : v < 1048576. ? sprintf('%g KiB', v / 1024.) : \
    v < 1073741824. ? sprintf('%g MiB', v / 1048576.) : v < 1099511627776. ? \
    sprintf('%g GiB', v / 1073741824.) : sprintf('%g TiB', v / 1099511627776.)

set border 3 lc rgb SOFT lw 1
set tics textcolor rgb INK nomirror out scale 0.6
set grid lc rgb GRID lw 1 lt 1
unset key

# The value of a key of a two-column table: `META = IN.'/x.tsv'`, then `eval text('title', 'T')` puts it
# into T as text, `eval number('lo', 'LO')` into LO as a number.  The text itself is never part of a command.
text(key, name) = sprintf("%s = ''; stats META skip 1 using (strcol(1) eq '%s' ? (%s = strcol(2), 1) : 1) nooutput", name, key, name)
number(key, name) = sprintf("%s = NaN; stats META skip 1 using (strcol(1) eq '%s' ? (%s = column(2), 1) : 1) nooutput", name, key, name)

# What the user asked of the look, and the palette's colours.
META = IN.'/look.tsv'
eval text('title', 'GIVEN'); eval number('width', 'SIZE_W'); eval number('height', 'SIZE_H')
do for [k = 1:6] { eval text('colour'.k, 'HEX'); COLOUR[k] = HEX }
titled(s) = GIVEN eq '' ? s : GIVEN
# A sentence is as wide as the picture at most: its letters are 0.74 of their size wide, bold ones 0.8.
at_most(s, size, letter) = letter * size * strlen(s) > WIDTH - 120 ? (WIDTH - 120) / (letter * strlen(s)) : size
fitting(s) = font(at_most(s, 20, 0.74))
heading(s) = bold(at_most(s, 33, 0.8))

# The title and the sentence below it, of META, as labels 1 and 2: `eval HEAD` once the size is known.
HEAD = text('title', 'TITLE').'; TITLE = titled(TITLE); '.text('subtitle', 'SUBTITLE').'; '.\
    "set label 1 plain(TITLE) at screen sx(60), screen sy(62) left font heading(TITLE) textcolor rgb INK; ".\
    "set label 2 plain(SUBTITLE) at screen sx(60), screen sy(118) left font fitting(SUBTITLE) textcolor rgb SOFT"

# Ticks of a logarithmic axis ('y', 'cb') from LO to HI: whole decades, or 1-2-5 when there are few.
thousands(v) = v >= 1000 ? sprintf('%d,%03d', int(v) / 1000, int(v) % 1000) : sprintf('%g', v)
log_ticks(axis) = "do for [e = int(floor(log10(LO))):int(ceil(log10(HI)))] { do for [k in (HI / LO > 150 ? '1' : '1 2 5')] { v = k * 10.0**e; if (v >= LO * 0.999 && v <= HI * 1.001) { set ".axis."tics add (thousands(v) v) } } }"
