# tiers.gp - what a pair reaches, by message size: bandwidth on the left, latency on the right; a line a tier.
# gnuplot -c tiers.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_tiers.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('tiers.gp')].'style.gp'

META = IN.'/tiers_meta.tsv'; RATE = IN.'/tiers.tsv'; LATE = IN.'/tiers_latency.tsv'; LINE = IN.'/tiers_line.tsv'
eval number('lines', 'K'); eval number('from', 'FROM'); eval number('to', 'TO'); eval number('lo', 'LOW'); eval number('hi', 'HIGH')
eval number('us_from', 'US_FROM'); eval number('us_to', 'US_TO'); eval number('us_lo', 'US_LOW'); eval number('us_hi', 'US_HIGH')
if (!(K >= 1)) { printerr 'no tiers in '.META; exit status 65 }
K = int(K)
# The rows of a line stand together: each reads its own, from the first to the last.
array R0[K]; array R1[K]; array L0[K]; array L1[K]
do for [k = 1:K] { R1[k] = -1; L1[k] = -1 }
stats RATE skip 1 using (k = int($1), R0[k] = R1[k] < 0 ? $0 : R0[k], R1[k] = $0, 1) nooutput
RATED = ''; LATED = ''
do for [k = 1:K] { RATED = R1[k] >= 0 ? RATED.' '.k : RATED }
if (US_FROM > 0 && US_HIGH > 0) {
    stats LATE skip 1 using (k = int($1), L0[k] = L1[k] < 0 ? $0 : L0[k], L1[k] = $0, 1) nooutput
    do for [k = 1:K] { LATED = L1[k] >= 0 ? LATED.' '.k : LATED }
}

# --- layout, in pixels ---
LEFT = 170; RATE_W = 1000; WORDS = 330; LATE_W = strlen(LATED) ? 620 : 0; GAP = LATE_W ? 170 : 0; LATE_WORDS = LATE_W ? 220 : 0
AREA_H = 820; TOP = 230; BOTTOM = 140; RIGHT = 40
WIDTH = LEFT + RATE_W + WORDS + GAP + LATE_W + LATE_WORDS + RIGHT; HEIGHT = TOP + AREA_H + BOTTOM
GIVE_W = 0.35 * (RATE_W + LATE_W); GIVE_H = 150
eval RESIZE
MORE = EXTRA_W * RATE_W / real(RATE_W + LATE_W); RATE_W = RATE_W + MORE; LATE_W = LATE_W + EXTRA_W - MORE; AREA_H = AREA_H + EXTRA_H
WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
eval HEAD
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + AREA_H)
set style fill transparent solid 0.16 noborder
set logscale xy; unset mxtics; unset mytics
kind(k) = k eq '' ? 1 : int(k) # of no word, which gnuplot reads, too, before it goes on

# --- left: bandwidth ---
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + RATE_W)
set xrange [FROM : (TO > FROM ? TO : 2 * FROM)]; set yrange [LOW : HIGH]
set xtics (); set xtics font F18; set ytics (); set ytics font F18
OCTAVES = log(TO / FROM) / log(2); MOST = RATE_W / 125; STEP = OCTAVES <= MOST ? 1 : OCTAVES <= 2 * MOST ? 2 : OCTAVES <= 3 * MOST ? 3 : 6
do for [e = 0:50] { v = 2.0**e; if (e % STEP == 0 && v >= FROM * 0.999 && v <= TO * 1.001) { set xtics add (bytes(v) v) } }
LO = LOW; HI = HIGH
eval log_ticks('y')
set ylabel 'bandwidth (GB/s)' font F20 offset 0.4,0
set xlabel 'message' font F20 offset 0,-0.2
set label 3 'Bandwidth' at graph 0, screen sy(TOP - 30) left font B24 textcolor rgb INK
up(v, px) = v * (HIGH / LOW)**(px / real(AREA_H))
plot for [k in RATED] RATE skip 1 every ::R0[kind(k)]::R1[kind(k)] using 2:4:5 with filledcurves lc rgb COLOUR[kind(k)], \
     for [k = 1:K] LINE skip 1 every ::(k - 1)::(k - 1) using (valid(8) ? FROM : NaN):8:(TO - FROM):(0) with vectors nohead dt (10, 7) lw 1.2 lc rgb COLOUR[k], \
     for [k in RATED] RATE skip 1 every ::R0[kind(k)]::R1[kind(k)] using 2:3 with lines lw 2.4 lc rgb COLOUR[kind(k)], \
     for [k in RATED] RATE skip 1 every ::R0[kind(k)]::R1[kind(k)] using 2:3 with points pt 7 ps 1.0 * PS lc rgb COLOUR[kind(k)], \
     for [k = 1:K] LINE skip 1 every ::(k - 1)::(k - 1) using (TO):(up($6, 14)):(label(strcol(2)).'  '.strcol(4).' GB/s') with labels left offset 1.2,0 font B20 textcolor rgb COLOUR[k], \
     for [k = 1:K] LINE skip 1 every ::(k - 1)::(k - 1) using (TO):(up($6, -18)):3 with labels left offset 1.2,0 font F17 textcolor rgb COLOUR[k]

# --- right: latency ---
unset label 1; unset label 2
if (strlen(LATED)) {
    X0 = LEFT + RATE_W + WORDS + GAP
    set lmargin at screen sx(X0); set rmargin at screen sx(X0 + LATE_W)
    set xrange [US_FROM : (US_TO > US_FROM ? US_TO : 2 * US_FROM)]; set yrange [US_LOW : US_HIGH]
    set xtics (); set xtics font F18; set ytics (); set ytics font F18
    OCTAVES = log(US_TO / US_FROM) / log(2); MOST = LATE_W / 125; STEP = OCTAVES <= MOST ? 1 : OCTAVES <= 2 * MOST ? 2 : OCTAVES <= 4 * MOST ? 4 : 6
    do for [e = 0:50] { v = 2.0**e; if (e % STEP == 0 && v >= US_FROM * 0.999 && v <= US_TO * 1.001) { set xtics add (bytes(v) v) } }
    LO = US_LOW; HI = US_HIGH
    eval log_ticks('y')
    set ylabel 'one way (µs)' font F20 offset 0.4,0
    set label 3 'Latency' at graph 0, screen sy(TOP - 30) left font B24 textcolor rgb INK
    plot for [k in LATED] LATE skip 1 every ::L0[kind(k)]::L1[kind(k)] using 2:4:5 with filledcurves lc rgb COLOUR[kind(k)], \
         for [k in LATED] LATE skip 1 every ::L0[kind(k)]::L1[kind(k)] using 2:3 with lines lw 2.4 lc rgb COLOUR[kind(k)], \
         for [k in LATED] LATE skip 1 every ::L0[kind(k)]::L1[kind(k)] using 2:3 with points pt 7 ps 0.9 * PS lc rgb COLOUR[kind(k)], \
         for [k in LATED] LINE skip 1 every ::(kind(k) - 1)::(kind(k) - 1) using (US_TO):7:(label(strcol(2)).'  '.strcol(5).' µs') with labels left offset 1,0 font B17 textcolor rgb COLOUR[kind(k)]
}
unset multiplot
