# busbw.gp - bus bandwidth against message size: one panel a collective, one line a group shape, and below
# it each line as a share of what is expected: over many decades lines lie on top of each other.
# gnuplot -c busbw.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_busbw.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('busbw.gp')].'style.gp'

LINES = IN.'/busbw.tsv'; LABELS = IN.'/busbw_label.tsv'; PEAKS = IN.'/busbw_peak.tsv'
PANEL = IN.'/busbw_panel.tsv'
PANELS = 0; VALUES = 0; EXPECTED = 0; PEAKED = 0
stats PANEL skip 1 using (PANELS = PANELS + 1, PEAKED = PEAKED + $7, 1) nooutput
# The rows of a panel stand together, and in it those of a line: each reads its own, from the first to the last.
array FIRST[PANELS + 1]; array LAST[PANELS + 1]; array FROM_ROW[6]; array TO_ROW[6]; array LABEL_ROW[6]
do for [p = 1:PANELS] { LAST[p] = -1 }
stats LINES skip 1 using (p = int($1), FIRST[p] = LAST[p] < 0 ? $0 : FIRST[p], LAST[p] = $0, VALUES = VALUES + (valid(6) ? 1 : 0), EXPECTED = EXPECTED + (valid(9) ? 1 : 0), 1) nooutput
if (PANELS < 1 || VALUES < 1) { printerr 'no bus bandwidth in '.LINES; exit status 65 }

# --- layout, in pixels ---
COLS = PANELS == 1 ? 1 : 2; ROWS = (PANELS + COLS - 1) / COLS
AREA_W = PANELS == 1 ? 1500 : 840; AREA_H = PANELS == 1 ? 900 : 560
LEFT = 160; RIGHT = 420; TOP = 150; ABOVE = 90; BELOW = 95
SHARE_H = EXPECTED > 0 ? 170 : 0; SHARE_GAP = EXPECTED > 0 ? 28 : 0
LOW = 50; HIGH = 110
stats LINES skip 1 using (valid(9) && valid(6) ? (v = 100 * $6 / $9, LOW = v < LOW ? v : LOW, HIGH = v > HIGH ? v : HIGH, 1) : 1) nooutput
LOW = LOW < 0 ? 0 : 10 * floor(LOW / 10.); HIGH = HIGH > 150 ? 150 : 10 * ceil(HIGH / 10.)
WIDTH = 40 + COLS * (LEFT + AREA_W + RIGHT); HEIGHT = TOP + ROWS * (ABOVE + AREA_H + SHARE_GAP + SHARE_H + BELOW) + 75
GIVE_W = 0.3 * COLS * AREA_W; GIVE_H = 0.2 * ROWS * AREA_H
eval RESIZE
AREA_W = AREA_W + EXTRA_W / COLS; AREA_H = AREA_H + EXTRA_H / ROWS; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
TITLE = titled('Bus bandwidth by message size')
set label 1 plain(TITLE) at screen sx(70), screen sy(62) left font heading(TITLE) textcolor rgb INK
SUBTITLE = 'medians with their 95% interval'.(EXPECTED > 0 ? '; dotted: expected; below: share of expected' : '').\
    (PEAKED > 0 ? '; dashed: data-sheet peak' : '').'; GB = 10^9 bytes, sizes in powers of two'
set label 2 SUBTITLE at screen sx(70), screen sy(118) left font fitting(SUBTITLE) textcolor rgb SOFT

set style textbox opaque noborder fillcolor rgb 'white' margins 0.3,0.2
do for [p = 1:PANELS] {
    COL = (p - 1) % COLS; ROW = (p - 1) / COLS
    X0 = 40 + COL * (LEFT + AREA_W + RIGHT) + LEFT; Y0 = TOP + ROW * (ABOVE + AREA_H + SHARE_GAP + SHARE_H + BELOW) + ABOVE
    set lmargin at screen sx(X0); set rmargin at screen sx(X0 + AREA_W)
    set tmargin at screen sy(Y0); set bmargin at screen sy(Y0 + AREA_H)
    OP = ''
    stats PANEL skip 1 using ($1 == p ? (OP = strcol(2), FROM = $3, TO = $4, LO = $5, HI = $6, TOPS = $7 > 0 ? 'yes' : '', 1) : 1) nooutput
    set label 3 plain(OP) at screen sx(X0), screen sy(Y0 - 34) left font B24 textcolor rgb INK

    set logscale xy
    set xrange [FROM : (TO > FROM ? TO : FROM * 2)]; set yrange [LO : HI]
    unset mxtics; unset mytics; set xtics () ; set xtics font F18; set ytics (); set ytics font F18
    # Sizes every 2, 8, 64 ... so that at most nine stand below a panel.
    OCTAVES = log(TO / FROM) / log(2)
    STEP = OCTAVES <= 8 ? 1 : OCTAVES <= 16 ? 2 : OCTAVES <= 26 ? 3 : 6
    do for [e = 0:50] {
        v = 2.0**e
        if (e % STEP == 0 && v >= FROM * 0.999 && v <= TO * 1.001) { set xtics add ((SHARE_H ? '' : bytes(v)) v) }
    }
    eval log_ticks('y')
    set ylabel (COL == 0 ? 'bus bandwidth (GB/s)' : '') font F20 offset 0.6,0
    XLABEL = p > PANELS - COLS ? 'largest buffer of a rank' : ''
    set xlabel (SHARE_H ? '' : XLABEL) font F20 offset 0,-0.2

    set style fill transparent solid 0.16 noborder
    # The rows of this panel.  What is not there is 0.
    there(col) = valid(col) ? column(col) : 0
    set table $PANEL separator tab
    plot LINES skip 1 every ::FIRST[p]::LAST[p] using 1:2:5:(there(6)):(there(7)):(there(8)):(there(9)) with table
    unset table
    # Which colours this panel has, where their rows and their words are, and which of them have an expected line.
    HERE = ''; HOPED = ''
    do for [c = 1:6] { TO_ROW[c] = -1 }
    stats LABELS skip 1 using (int($1) == p ? (HERE = HERE.' '.strcol(2), LABEL_ROW[int($2)] = $0, 1) : 1) nooutput
    stats $PANEL using (c = int($2), FROM_ROW[c] = TO_ROW[c] < 0 ? $0 : FROM_ROW[c], TO_ROW[c] = $0, $7 > 0 && strstrt(HOPED, sprintf('%d', $2)) == 0 ? (HOPED = HOPED.' '.sprintf('%d', $2), 1) : 1) nooutput
    up(v, px) = v * (HI / LO)**(px / real(AREA_H))
    line(c) = c eq '' ? 1 : int(c) # of no word, which gnuplot reads, too, before it goes on
    from(c) = FROM_ROW[line(c)]
    to(c) = TO_ROW[line(c)]
    text_of(c) = LABEL_ROW[line(c)]
    colour(c) = COLOUR[line(c)]
    plot for [c in HERE] $PANEL every ::from(c)::to(c) using 3:5:6 with filledcurves lc rgb colour(c), \
         for [t in TOPS] PEAKS skip 1 using (int($1) == p ? FROM : NaN):2:(TO - FROM):(0) with vectors nohead dt (10, 7) lw 1 lc rgb '#9ca3af', \
         for [t in TOPS] PEAKS skip 1 using (int($1) == p ? FROM : NaN):(up($2, 15)):(int($1) == p ? label(strcol(3)) : '') with labels left offset 0.6,0 boxed font F16 textcolor rgb SOFT, \
         for [c in HOPED] $PANEL every ::from(c)::to(c) using 3:7 with lines dt (2, 4) lw 1.5 lc rgb colour(c), \
         for [c in HERE] $PANEL every ::from(c)::to(c) using 3:4 with lines lw 2.2 lc rgb colour(c), \
         for [c in HERE] $PANEL every ::from(c)::to(c) using 3:4 with points pt 7 ps 1.0 * PS lc rgb colour(c), \
         for [c in HERE] LABELS skip 1 every ::text_of(c)::text_of(c) using (TO):(up($5, 13)):(label(strcol(3))) with labels left offset 1.2,0 font B17 textcolor rgb colour(c), \
         for [c in HERE] LABELS skip 1 every ::text_of(c)::text_of(c) using (TO):(up($5, -13)):(label(strcol(4))) with labels left offset 1.2,0 font F17 textcolor rgb colour(c)
    unset label 1; unset label 2; unset label 3
    if (SHARE_H > 0) {
        set tmargin at screen sy(Y0 + AREA_H + SHARE_GAP); set bmargin at screen sy(Y0 + AREA_H + SHARE_GAP + SHARE_H)
        unset logscale y; set yrange [LOW : HIGH]; set ytics () ; set ytics font F18
        do for [v = int(LOW):int(HIGH)] { if (v % (HIGH - LOW > 60 ? 50 : 25) == 0) { set ytics add (sprintf('%d%%%%', v) v) } }
        set xtics () ; set xtics font F18
        do for [e = 0:50] {
            v = 2.0**e
            if (e % STEP == 0 && v >= FROM * 0.999 && v <= TO * 1.001) { set xtics add (bytes(v) v) }
        }
        set xlabel XLABEL font F20 offset 0,-0.2
        set ylabel (COL == 0 ? 'of expected' : '') font F20 offset 0.6,0
        plot 100 with lines dt (10, 7) lw 1 lc rgb '#9ca3af', \
             for [c in HOPED] $PANEL every ::from(c)::to(c) using 3:($4 > 0 && $7 > 0 ? 100 * $4 / $7 : NaN) with linespoints pt 7 ps 0.7 * PS lw 2 lc rgb colour(c)
    }
}
unset multiplot
