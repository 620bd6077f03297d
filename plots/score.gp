# score.gp - predicted / measured steps against the measured ones, without and with an anchor: on axes of
# both an error of 5 % is thinner than a point.
# gnuplot -c score.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_step_score.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('score.gp')].'style.gp'

META = IN.'/score_meta.tsv'; POINTS = IN.'/score.tsv'; GROUPS = IN.'/score_group.tsv'; PANEL = IN.'/score_panel.tsv'
eval number('panels', 'PANELS'); eval number('colours', 'N'); eval number('tests', 'TESTS')
eval number('lo', 'LO'); eval number('hi', 'HI')
eval number('ratio_lo', 'LEAST'); eval number('ratio_hi', 'MOST')
if (!(PANELS >= 1)) { printerr 'no points in '.META; exit status 65 }
PANELS = int(PANELS); N = int(N)

# --- layout, in pixels ---
AREA = PANELS == 1 ? 1000 : 880; LEFT = 190; GAP = 150; RIGHT = PANELS == 1 ? 480 : 80; TOP = 290; BOTTOM = 140
WIDTH = LEFT + PANELS * AREA + (PANELS - 1) * GAP + RIGHT; HEIGHT = TOP + AREA + BOTTOM
eval RESIZE
LEFT = LEFT + EXTRA_W / 2; TOP = TOP + EXTRA_H / 2; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

seconds(v) = v < 1 ? sprintf('%g ms', v * 1000) : v < 1000 ? sprintf('%g s', v) : sprintf('%d,%03d s', int(v) / 1000, int(v) % 1000)
eval number('others', 'OTHERS')
colour(k) = OTHERS > 0 && k == N ? '#7b818c' : COLOUR[k]
SEEN = TESTS > 0 ? 'yes' : ''
set multiplot
eval HEAD
set logscale xy
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + AREA)
# The list of groups stands above the points.
TOP_ROOM = 0.04 * (N + 1)
set xrange [LO : HI]; set yrange [LEAST : MOST * (MOST / LEAST)**(TOP_ROOM / (1 - TOP_ROOM))]
unset mxtics; unset mytics
MANY = HI / LO > 150
do for [p = 1:PANELS] {
    X0 = LEFT + (p - 1) * (AREA + GAP)
    set lmargin at screen sx(X0); set rmargin at screen sx(X0 + AREA)
    HEAD = ''; WORDS = ''
    stats PANEL skip 1 using ($1 == p ? (HEAD = strcol(2), WORDS = strcol(3), 1) : 1) nooutput
    set label 3 plain(HEAD) at screen sx(X0), screen sy(TOP - 82) left font B24 textcolor rgb INK
    set label 4 plain(WORDS) at screen sx(X0), screen sy(TOP - 38) left font F20 textcolor rgb INK
    set xtics () font F18; set ytics () font F18
    do for [e = int(floor(log10(LO))):int(ceil(log10(HI)))] {
        do for [k in (MANY ? '1' : '1 2 5')] {
            v = k * 10.0**e
            if (v >= LO * 0.999 && v <= HI * 1.001) { set xtics add (seconds(v) v) }
        }
    }
    do for [v in MOST > 3 ? '0.1 0.2 0.3 0.5 0.7 0.9 1.1 1.4 2 3 5 10' : MOST > 1.5 ? '0.4 0.5 0.6 0.7 0.8 0.9 1 1.1 1.25 1.5 2 2.5' : '0.7 0.75 0.8 0.85 0.9 0.95 1 1.05 1.1 1.15 1.2 1.25 1.3 1.4'] {
        if (v >= LEAST && v <= MOST) { set ytics add (v v) }
    }
    set xlabel 'measured step' font F20 offset 0,-0.2
    set ylabel (p == 1 ? 'predicted / measured' : '') font F20 offset 1.6,0
    set style fill solid 1 noborder
    set samples 400
    SHADE = '#eceef1'
    at(share) = LO * (HI / LO)**share
    up(share) = LEAST * (MOST / LEAST)**(share / (1 - TOP_ROOM))
    plot [x = LO:HI] '+' using 1:(0.9):(1.1) with filledcurves lc rgb SHADE, \
         '+' using 1:(1) with lines lw 1.2 lc rgb '#6b7280', \
         for [c = 1:N] POINTS skip 1 using (int($1) == p && int($3) == c && $5 == 0 ? $6 : NaN):($7 / $6) with points pt 7 ps 1.15 * PS lc rgb '#60'.colour(c)[2:*], \
         for [t in SEEN] for [c = 1:N] POINTS skip 1 using (int($1) == p && int($3) == c && $5 > 0 ? $6 : NaN):($7 / $6) with points pt 9 ps 1.5 * PS lc rgb '#ffffff', \
         for [t in SEEN] for [c = 1:N] POINTS skip 1 using (int($1) == p && int($3) == c && $5 > 0 ? $6 : NaN):($7 / $6) with points pt 8 ps 1.5 * PS lw 1.3 lc rgb colour(c), \
         for [c = 1:N] GROUPS skip 1 using (int($1) == p && int($2) == c ? at(0.03) : NaN):(up(0.975 - 0.036 * (c - 1))):(label(strcol(3)).': '.label(strcol(4))) with labels left font B17 textcolor rgb colour(c)
    unset label 1; unset label 2
}
unset multiplot
