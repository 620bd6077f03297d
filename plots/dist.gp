# dist.gp - how the pairs of each kind are spread: violins of the share of expected (dots where there are
# few), and their slow tail.
# gnuplot -c dist.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_dist.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('dist.gp')].'style.gp'

META = IN.'/dist_meta.tsv'; OUTLINE = IN.'/dist_density.tsv'; PAIRS = IN.'/dist.tsv'; TIER = IN.'/dist_tier.tsv'
eval number('tiers', 'K'); eval number('lo', 'LO'); eval number('hi', 'HI'); eval number('rare', 'RARE')
eval number('accept', 'ACCEPT'); eval number('dots', 'DOTS')
if (!(K >= 1)) { printerr 'no pairs in '.META; exit status 65 }
K = int(K)
# The rows of a kind stand together: each reads its own, from the first to the last.
array PAIRS_OF[K]; array FIRST[K]; array LAST[K]; array FROM_ROW[K]; array TO_ROW[K]
DOTTED = '' # kinds that are drawn dot by dot
stats TIER skip 1 using (k = int($1), PAIRS_OF[k] = $15, FIRST[k] = $16, LAST[k] = $17, DOTTED = $15 > DOTS ? DOTTED : DOTTED.' '.k, 1) nooutput
do for [k = 1:K] { FROM_ROW[k] = 0; TO_ROW[k] = -1 }
OUTLINED = ''
stats OUTLINE skip 1 using (k = int($1), FROM_ROW[k] = TO_ROW[k] < 0 ? $0 : FROM_ROW[k], OUTLINED = TO_ROW[k] < 0 ? OUTLINED.' '.k : OUTLINED, TO_ROW[k] = $0, 1) nooutput

# --- layout, in pixels ---
PANEL_W = K <= 2 ? 760 : K <= 4 ? 980 : 1240; TAIL_W = 900; AREA_H = 800
LEFT = 180; GAP = 230; TOP = 230; BOTTOM = 190; RIGHT = 80
WIDTH = LEFT + PANEL_W + GAP + TAIL_W + RIGHT; HEIGHT = TOP + AREA_H + BOTTOM
GIVE_W = 0.35 * (PANEL_W + TAIL_W); GIVE_H = 250
eval RESIZE
SHARE_W = EXTRA_W * PANEL_W / real(PANEL_W + TAIL_W); PANEL_W = PANEL_W + SHARE_W; TAIL_W = TAIL_W + EXTRA_W - SHARE_W; AREA_H = AREA_H + EXTRA_H; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
eval HEAD
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + AREA_H)
set style fill transparent solid 0.35 noborder
set style textbox opaque noborder fillcolor rgb 'white' margins 0.3,0.2
share(v) = sprintf('%g%%%%', v)
STEP = HI - LO > 60 ? 20 : HI - LO > 30 ? 10 : 5

# --- left: violins ---
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + PANEL_W)
set border 2; unset grid; set grid ytics lc rgb GRID lw 1 lt 1
set xrange [0.5 : K + 0.5]; set yrange [LO : HI + (HI - LO) * 0.12]
set ytics () ; set ytics font F18
do for [v = int(LO):int(HI):STEP] { set ytics add (share(v) v) }
set xtics font F18 scale 0 offset 0,-0.4
set ylabel 'share of expected bandwidth' font F20 offset 0.4,0
set arrow 1 from graph 0, first ACCEPT to graph 1, first ACCEPT nohead dt (10, 7) lw 1 lc rgb '#9ca3af' back
set label 3 'Every kind of pair' at graph 0, screen sy(TOP - 30) left font B24 textcolor rgb INK
FIT = 0.36; ABOVE = HI + (HI - LO) * 0.065
of(k) = int($1) == k ? k : NaN
kind(k) = k eq '' ? 1 : int(k) # of no word, which gnuplot reads, too, before it goes on
plot for [k in OUTLINED] OUTLINE skip 1 every ::FROM_ROW[kind(k)]::TO_ROW[kind(k)] using (kind(k) + FIT * $3):2 with filledcurves x=kind(k) lc rgb COLOUR[kind(k)], \
     for [k in OUTLINED] OUTLINE skip 1 every ::FROM_ROW[kind(k)]::TO_ROW[kind(k)] using (kind(k) - FIT * $3):2 with filledcurves x=kind(k) lc rgb COLOUR[kind(k)], \
     for [k in DOTTED] PAIRS skip 1 every ::FIRST[kind(k)]::LAST[kind(k)] using (kind(k) + FIT * $6):3 with points pt 7 ps 1.3 * PS lc rgb '#60'.COLOUR[kind(k)][2:*], \
     TIER skip 1 using ($15 > DOTS ? $1 : NaN):9:(0):($13 - $9) with vectors nohead lw 1.3 lc rgb INK, \
     TIER skip 1 using ($15 > DOTS ? $1 : NaN):10:(0):($12 - $10) with vectors nohead lw 6 lc rgb INK, \
     TIER skip 1 using ($15 > DOTS ? $1 : NaN):11 with points pt 7 ps 0.8 * PS lc rgb '#ffffff', \
     for [k = 1:K] TIER skip 1 using (of(k)):8 with points pt 7 ps 1.1 * PS lc rgb COLOUR[k], \
     TIER skip 1 using 1:($8 - 24 * (HI - LO) * 1.12 / AREA_H):('worst '.strcol(7).' GB/s') with labels center font F16 textcolor rgb INK, \
     for [k = 1:K] TIER skip 1 using (of(k)):(ABOVE):(strcol(6).' GB/s') with labels center font B20 textcolor rgb COLOUR[k], \
     TIER skip 1 using 1:(LO):xticlabels(plain(strcol(2))."\n".(strcol(3) eq "" ? "" : strcol(3)."\n").strcol(4)) with dots lc rgb '#ff000000'

# --- right: the slow tail ---
unset label 1; unset label 2; unset arrow 1
set lmargin at screen sx(LEFT + PANEL_W + GAP); set rmargin at screen sx(LEFT + PANEL_W + GAP + TAIL_W)
set border 3; set grid xtics ytics lc rgb GRID lw 1 lt 1
set label 3 'The slow tail' at graph 0, screen sy(TOP - 30) left font B24 textcolor rgb INK
set logscale y; set xrange [LO : HI]; set yrange [RARE : 1]
set xtics (); set xtics scale 0.6 offset 0,0; set ytics (); unset mytics
do for [v = int(LO):int(HI):STEP] { set xtics add (share(v) v) }
do for [e = int(floor(log10(RARE) + 0.5)):-1] { set ytics add (share(100 * 10.0**e) 10.0**e) }
set ytics add ('all' 1)
set xlabel 'share of expected bandwidth' font F20 offset 0,0.2
set ylabel 'pairs at or below (logarithmic)' font F20 offset 0.4,0
set arrow 1 from ACCEPT, graph 0 to ACCEPT, graph 1 nohead dt (10, 7) lw 1 lc rgb '#9ca3af' back
plot for [k = 1:K] PAIRS skip 1 every ::FIRST[k]::LAST[k] using 3:($5 / PAIRS_OF[k]) smooth cnormal with steps lw 2.4 lc rgb COLOUR[k], \
     for [k = 1:K] TIER skip 1 using (int($1) == k ? LO : NaN):(0.55 / 10**((k - 1) * 0.045 * -log10(RARE))):\
         (sprintf('%s: %.2g%% below %g%%', label(strcol(2)), 100.0 * $5 / $15, ACCEPT)) with labels left offset 1,0 boxed font B17 textcolor rgb COLOUR[k]
unset multiplot
