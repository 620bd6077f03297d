# compare.gp - two campaigns in one picture: bandwidth of pairs by size, the slow tail of all pairs, and bus
# bandwidth of the collectives that both have.
# gnuplot -c compare.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_compare.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('compare.gp')].'style.gp'

META = IN.'/compare_meta.tsv'; LINES = IN.'/compare.tsv'; LABELS = IN.'/compare_label.tsv'
SHARE = IN.'/compare_share.tsv'; BAR = IN.'/compare_bar.tsv'
eval number('tiers', 'TIERS'); eval number('from', 'FROM'); eval number('to', 'TO'); eval number('lo', 'LO'); eval number('hi', 'HI')
eval number('shares', 'SHARES'); eval number('low', 'LOW'); eval number('high', 'HIGH'); eval number('rare', 'RARE')
eval number('bars', 'BARS'); eval number('most', 'MOST'); eval text('name1', 'NAME1'); eval text('name2', 'NAME2')
if (!(TIERS >= 1)) { printerr 'no tiers in '.META; exit status 65 }
TIERS = int(TIERS); BARS = int(BARS)

# --- layout, in pixels ---
LEFT = 180; CURVE_W = 900; GAP = 560; TAIL_W = 760; RIGHT = 80; TOP = 290; AREA_H = 640; BETWEEN = 230
BAR_H = BARS > 0 ? 74 : 0; BAR_LEFT = 640; BOTTOM = 120
WIDTH = LEFT + CURVE_W + GAP + TAIL_W + RIGHT
HEIGHT = TOP + AREA_H + (BARS > 0 ? BETWEEN + BARS * BAR_H : 0) + BOTTOM
GIVE_W = 560; GIVE_H = 120
eval RESIZE
CURVE_W = CURVE_W + EXTRA_W / 2; TAIL_W = TAIL_W + EXTRA_W / 2; AREA_H = AREA_H + EXTRA_H; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
eval HEAD
# The legend: a square and the campaign's name in its colour, once for all panels.
set object 1 rectangle at screen sx(LEFT + 14), screen sy(176) size screen 28. / WIDTH, screen 28. / HEIGHT fillcolor rgb COLOUR[1] fillstyle solid 1 noborder
set label 3 plain(NAME1) at screen sx(LEFT + 44), screen sy(176) left font B24 textcolor rgb COLOUR[1]
SECOND = LEFT + 120 + 22 * strlen(NAME1)
set object 2 rectangle at screen sx(SECOND + 14), screen sy(176) size screen 28. / WIDTH, screen 28. / HEIGHT fillcolor rgb COLOUR[2] fillstyle solid 1 noborder
set label 4 plain(NAME2) at screen sx(SECOND + 44), screen sy(176) left font B24 textcolor rgb COLOUR[2]

# --- pairs by size ---
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + AREA_H)
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + CURVE_W)
set label 5 'Pairs of each tier' at graph 0, screen sy(TOP - 32) left font B24 textcolor rgb INK
set logscale xy; set xrange [FROM : TO]; set yrange [LO : HI]
unset mxtics; unset mytics; set xtics () font F18; set ytics () font F18
do for [e = 0:50] { v = 2.0**e; if (e % 4 == 0 && v >= FROM * 0.999 && v <= TO * 1.001) { set xtics add (bytes(v) v) } }
eval log_ticks('y')
set xlabel 'message size' font F20 offset 0,-0.2; set ylabel 'one way (GB/s)' font F20 offset 0.4,0
mine(t, c) = int($1) == t && int($2) == c
plot for [t = 1:TIERS] for [c = 1:2] LINES skip 1 using (mine(t, c) && $6 == 0 ? $4 : NaN):5 with lines dt (2, 5) lw (c == 1 ? 3 : 1.5) lc rgb COLOUR[c], \
     for [t = 1:TIERS] for [c = 1:2] LINES skip 1 using (mine(t, c) && $6 == 1 ? $4 : NaN):5 with lines lw (c == 1 ? 4 : 2) lc rgb COLOUR[c], \
     LABELS skip 1 using (TO):($4 * (HI / LO)**(13. / AREA_H)):(label(strcol(2))) with labels left offset 1.2,0 font B17 textcolor rgb INK, \
     LABELS skip 1 using (TO):($4 * (HI / LO)**(-13. / AREA_H)):(label(strcol(3))) with labels left offset 1.2,0 font F17 textcolor rgb SOFT
unset label 1; unset label 2; unset label 3; unset label 4; unset object 1; unset object 2

# --- the slow tail ---
set lmargin at screen sx(LEFT + CURVE_W + GAP); set rmargin at screen sx(LEFT + CURVE_W + GAP + TAIL_W)
set label 5 'The slow tail of all pairs' at graph 0, screen sy(TOP - 32) left font B24 textcolor rgb INK
unset logscale x; set xrange [LOW : HIGH]; set yrange [RARE : 1]
set xtics () font F18; set ytics () font F18
STEP = HIGH - LOW > 60 ? 20 : HIGH - LOW > 30 ? 10 : 5
do for [v = int(LOW):int(HIGH):STEP] { set xtics add (sprintf('%g%%%%', v) v) }
do for [e = int(floor(log10(RARE) + 0.5)):-1] { set ytics add (sprintf('%g%%%%', 100 * 10.0**e) 10.0**e) }
set ytics add ('all' 1)
set xlabel 'share of what the tier gives' font F20 offset 0,-0.2; set ylabel 'pairs at or below (logarithmic)' font F20 offset 0.4,0
if (SHARES > 0) {
    plot for [c = 1:2] SHARE skip 1 using (int($1) == c ? $2 : NaN):3 with steps lw (c == 1 ? 4 : 2) lc rgb COLOUR[c]
} else {
    set label 6 'neither has measured pairs' at graph 0.5, 0.5 center font F20 textcolor rgb SOFT
    plot NaN notitle
    unset label 6
}
unset logscale y

# --- collectives ---
if (BARS > 0) {
    Y0 = TOP + AREA_H + BETWEEN
    set tmargin at screen sy(Y0); set bmargin at screen sy(Y0 + BARS * BAR_H)
    set lmargin at screen sx(BAR_LEFT); set rmargin at screen sx(WIDTH - RIGHT - 260)
    set label 5 'Collectives: bus bandwidth (GB/s)' at screen sx(LEFT), screen sy(Y0 - 36) left font B24 textcolor rgb INK
    set border 0; unset grid; set grid xtics lc rgb GRID lw 1 lt 1
    set xrange [0 : MOST * 1.02]; set yrange [BARS + 0.5 : 0.5]
    set xtics autofreq font F18; set ytics () font F18 scale 0 offset 0,0; unset xlabel; unset ylabel
    set style fill solid 1 noborder
    at(row, c) = row + (c == 1 ? -0.2 : 0.2)
    plot for [c = 1:2] BAR skip 1 using (int($2) == c ? $4 / 2 : NaN):(at($1, c)):(0):4:(at($1, c) - 0.18):(at($1, c) + 0.18) with boxxyerror lc rgb COLOUR[c], \
         BAR skip 1 using 5:(at($1, $2)):($6 - $5):(0) with vectors nohead lw 1.5 lc rgb INK, \
         for [c = 1:2] BAR skip 1 using (int($2) == c ? $6 : NaN):(at($1, c)):(label(strcol(7))) with labels left offset 0.7,0 font F17 textcolor rgb INK, \
         BAR skip 1 using ($2 == 1 ? 0 : NaN):1:yticlabels(plain(strcol(3))) with dots lc rgb '#ff000000'
}
unset multiplot
