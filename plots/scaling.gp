# scaling.gp - speed of a GPU against how many there are, each line relative to its smallest job.
# gnuplot -c scaling.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_step_scaling.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('scaling.gp')].'style.gp'

META = IN.'/scaling_meta.tsv'; LINES = IN.'/scaling.tsv'; LABELS = IN.'/scaling_label.tsv'; TICK = IN.'/scaling_tick.tsv'
eval number('series', 'N'); eval number('from', 'FROM'); eval number('to', 'TO')
eval number('lo', 'LO'); eval number('hi', 'HI')
if (!(N >= 1)) { printerr 'no series in '.META; exit status 65 }
N = int(N)

# --- layout, in pixels ---
LEFT = 180; AREA_W = 1300; RIGHT = 560; TOP = 190; AREA_H = 900; BOTTOM = 130
WIDTH = LEFT + AREA_W + RIGHT; HEIGHT = TOP + AREA_H + BOTTOM
GIVE_W = 500; GIVE_H = 300
eval RESIZE
AREA_W = AREA_W + EXTRA_W; AREA_H = AREA_H + EXTRA_H; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

eval HEAD
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + AREA_W)
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + AREA_H)
set logscale x 2
EDGE = (TO / FROM)**0.03
set xrange [FROM / EDGE : TO * EDGE]; set yrange [LO : HI]
unset mxtics; set xtics () font F18; set ytics () font F18
STEP = HI - LO > 60 ? 20 : HI - LO > 25 ? 10 : 5
do for [v = int(LO):int(HI):STEP] { set ytics add (sprintf('%g%%%%', v) v) }
set xlabel 'GPUs' font F20 offset 0,-0.2
set ylabel 'efficiency' font F20 offset 0.6,0
set arrow 1 from graph 0, first 100 to graph 1, first 100 nohead dt (10, 7) lw 1.3 lc rgb '#6b7280'
set style fill transparent solid 0.09 noborder

# Six colours; beyond them the same again with dashes and squares.
colour(k) = COLOUR[(k - 1) % 6 + 1]
DASH(k) = k > 6 ? 2 : 1
MARK(k) = k > 6 ? 5 : 7
set for [k = 1:12] dashtype k solid
set dashtype 2 (7, 4)
of(k, col) = int($1) == k && valid(col) ? column(col) : NaN
CLEAR = '#ff000000'
plot for [k = 1:N] LINES skip 1 using (int($1) == k && valid(6) && valid(7) ? $3 : NaN):(of(k, 6)):(of(k, 7)) with filledcurves lc rgb colour(k), \
     for [k = 1:N] LINES skip 1 using (int($1) == k ? $3 : NaN):(of(k, 5)) with lines dt DASH(k) lw 2.4 lc rgb colour(k), \
     for [k = 1:N] LINES skip 1 using (int($1) == k ? $3 : NaN):(of(k, 5)) with points pt MARK(k) ps 1.2 * PS lc rgb colour(k), \
     for [k = 1:N] LINES skip 1 using (int($1) == k ? $3 : NaN):(of(k, 8)) with points pt 13 ps 2.5 * PS lc rgb '#ffffff', \
     for [k = 1:N] LINES skip 1 using (int($1) == k ? $3 : NaN):(of(k, 8)) with points pt 12 ps 1.9 * PS lw 1.5 lc rgb colour(k), \
     for [k = 1:N] LABELS skip 1 using (int($1) == k ? TO * EDGE : NaN):($4 + 13 * (HI - LO) / AREA_H):(label(strcol(2))) with labels left offset 1.2,0 font B17 textcolor rgb colour(k), \
     for [k = 1:N] LABELS skip 1 using (int($1) == k ? TO * EDGE : NaN):($4 - 13 * (HI - LO) / AREA_H):(label(strcol(3))) with labels left offset 1.2,0 font F17 textcolor rgb colour(k), \
     TICK skip 1 using 1:(LO):xticlabels(strcol(2)) with dots lc rgb CLEAR
