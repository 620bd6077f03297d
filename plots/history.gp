# history.gp - campaigns over time: each figure as a share of its baseline, versions that changed, and the
# parts that were there.
# gnuplot -c history.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_history.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('history.gp')].'style.gp'

META = IN.'/history_meta.tsv'; LINES = IN.'/history.tsv'; LABELS = IN.'/history_label.tsv'; PANEL = IN.'/history_panel.tsv'
NOTE = IN.'/history_version.tsv'; PART = IN.'/history_part.tsv'; TICK = IN.'/history_tick.tsv'
eval number('from', 'FROM'); eval number('to', 'TO'); eval number('panels', 'PANELS')
eval number('notes', 'NOTES'); eval number('parts', 'PARTS'); eval number('more_parts', 'MORE')
if (!(PANELS >= 1)) { printerr 'no panels in '.META; exit status 65 }
PANELS = int(PANELS); NOTES = int(NOTES); PARTS = int(PARTS)

# --- layout, in pixels ---
LEFT = 180; AREA_W = 1480; RIGHT = 640; TOP = 165; NOTE_H = 34; ABOVE = 80; AREA_H = 440; BETWEEN = 50
PART_ROW = 46; BOTTOM = 110
STRIP = PARTS > 0 ? ABOVE + PARTS * PART_ROW : 0
WIDTH = LEFT + AREA_W + RIGHT
HEIGHT = TOP + NOTES * NOTE_H + PANELS * (ABOVE + AREA_H) + STRIP + BOTTOM
GIVE_W = 620; GIVE_H = 50 * PANELS
eval RESIZE
AREA_W = AREA_W + EXTRA_W; WIDTH = WIDTH + EXTRA_W; AREA_H = AREA_H + EXTRA_H / PANELS; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
eval HEAD
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + AREA_W)
set xrange [FROM : TO]; unset mxtics; unset mytics
set style fill transparent solid 0.13 noborder
set style textbox opaque noborder fillcolor rgb 'white' margins 0.3,0.2
START = TOP + NOTES * NOTE_H
LOWEST = START + PANELS * (ABOVE + AREA_H) + STRIP
# Text at the place of its campaign, above everything; the line goes down through all panels.
if (NOTES > 0) {
    set tmargin at screen sy(TOP); set bmargin at screen sy(LOWEST)
    set border 0; unset xtics; unset ytics; unset grid; set yrange [LOWEST : TOP]
    plot NOTE skip 1 using 2:(TOP + ($1 - 0.5) * NOTE_H):(0):(LOWEST - TOP - ($1 - 0.5) * NOTE_H) with vectors nohead dt (8, 6) lw 1.2 lc rgb '#9ca3af', \
         NOTE skip 1 using ($4 == 0 ? $2 : NaN):(TOP + ($1 - 0.5) * NOTE_H):(label(strcol(3))) with labels left offset 0.7,0 font F17 textcolor rgb SOFT, \
         NOTE skip 1 using ($4 == 1 ? $2 : NaN):(TOP + ($1 - 0.5) * NOTE_H):(label(strcol(3))) with labels right offset -0.7,0 font F17 textcolor rgb SOFT
    unset label 1; unset label 2
}

do for [p = 1:PANELS] {
    Y0 = START + (p - 1) * (ABOVE + AREA_H) + ABOVE
    set tmargin at screen sy(Y0); set bmargin at screen sy(Y0 + AREA_H)
    TITLE = ''
    stats PANEL skip 1 using ($1 == p ? (TITLE = strcol(2), LO = $3, HI = $4, N = int($5), 1) : 1) nooutput
    set label 3 plain(TITLE) at graph 0, screen sy(Y0 - 32) left font B24 boxed textcolor rgb INK
    set border 3 lc rgb SOFT lw 1; set grid xtics ytics lc rgb GRID lw 1 lt 1
    set yrange [LO : HI]; set ytics () font F18 textcolor rgb INK nomirror out scale 0.6
    STEP = HI - LO > 60 ? 20 : HI - LO > 25 ? 10 : HI - LO > 12 ? 5 : HI - LO > 5 ? 2 : 1
    do for [v = int(LO):int(HI)] { if (v % STEP == 0) { set ytics add (sprintf('%d%%%%', v) v) } }
    set ylabel 'of baseline' font F20 offset 0.4,0
    set xtics () font F18 textcolor rgb INK nomirror out scale 0.6
    set arrow 1 from graph 0, first 100 to graph 1, first 100 nohead dt (10, 7) lw 1 lc rgb '#9ca3af' back
    dated(s) = p == PANELS && PARTS == 0 ? s : ''
    mine(k) = int($1) == p && int($2) == k
    of(k, col) = mine(k) && valid(col) ? column(col) : NaN
    plot for [k = 1:N] LINES skip 1 using (mine(k) ? $4 : NaN):(of(k, 6)):(of(k, 7)) with filledcurves lc rgb COLOUR[k], \
         for [k = 1:N] LINES skip 1 using (mine(k) ? $4 : NaN):(of(k, 5)) with lines lw 2.4 lc rgb COLOUR[k], \
         for [k = 1:N] LINES skip 1 using (mine(k) ? $4 : NaN):(of(k, 5)) with points pt 7 ps 1.1 * PS lc rgb COLOUR[k], \
         for [k = 1:N] LABELS skip 1 using (mine(k) ? TO : NaN):($5 + 13 * (HI - LO) / AREA_H):(label(strcol(3))) with labels left offset 1.2,0 font B17 textcolor rgb COLOUR[k], \
         for [k = 1:N] LABELS skip 1 using (mine(k) ? TO : NaN):($5 - 13 * (HI - LO) / AREA_H):(label(strcol(4))) with labels left offset 1.2,0 font F17 textcolor rgb COLOUR[k], \
         TICK skip 1 using 1:(LO):xticlabels(dated(strcol(2))) with dots lc rgb '#ff000000'
    unset label 1; unset label 2; unset arrow 1
}

# --- which parts, and when ---
if (PARTS > 0) {
    Y0 = START + PANELS * (ABOVE + AREA_H) + ABOVE
    set tmargin at screen sy(Y0); set bmargin at screen sy(Y0 + PARTS * PART_ROW)
    set label 3 'Parts to act on'.(MORE > 0 ? sprintf(' (%d of %d)', PARTS, PARTS + MORE) : '') at graph 0, screen sy(Y0 - 32) left font B24 boxed textcolor rgb INK
    set border 1; unset grid; set grid xtics lc rgb GRID lw 1 lt 1
    set yrange [PARTS + 0.5 : 0.5]; unset ytics; unset ylabel; set xtics () font F18 textcolor rgb INK
    set style fill solid 1 noborder
    plot PART skip 1 using 2:1:2:3:($1 - 0.3):($1 + 0.3) with boxxyerror lc rgb '#f2b48a', \
         PART skip 1 using (strcol(5) eq '-' ? NaN : $2):1:(label(strcol(5))) with labels left offset 0.6,0 font B17 textcolor rgb INK, \
         PART skip 1 using (strcol(4) eq '-' ? NaN : TO):1:(label(strcol(4))) with labels left offset 1.2,0 font B17 textcolor rgb INK, \
         TICK skip 1 using 1:(PARTS + 0.5):xticlabels(strcol(2)) with dots lc rgb '#ff000000'
}
unset multiplot
