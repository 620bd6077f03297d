# step.gp - predicted steps side by side: what each is made of, its interval, and what was measured.
# gnuplot -c step.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_step_bars.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('step.gp')].'style.gp'

META = IN.'/step_meta.tsv'; BAR = IN.'/step.tsv'; PART = IN.'/step_part.tsv'
KEY = IN.'/step_key.tsv'; TEXT = IN.'/step_text.tsv'
eval number('bars', 'N'); eval number('to_s', 'TO'); eval number('scale', 'PER_S')
eval number('label_pixels', 'LABEL_W'); eval number('area_pixels', 'AREA_W')
eval number('key_lines', 'KEYS'); eval number('measured', 'MEASURED')
if (!(N >= 1)) { printerr 'no predicted steps in '.META; exit status 65 }
eval text('unit', 'UNIT'); eval text('notes', 'NOTES'); eval text('axis', 'AXIS')

# --- layout, in pixels ---
SLOT = N <= 3 ? 130 : N <= 10 ? 96 : 76
LEFT = 96 + LABEL_W; RIGHT = MEASURED > 0 ? 540 : 440
KEY_Y = strlen(NOTES) ? 212 : 172; TOP = KEY_Y + 44 * KEYS + 10; BOTTOM = 130
AREA_H = N * SLOT + 20
WIDTH = LEFT + AREA_W + RIGHT; WIDTH = WIDTH < 1700 ? 1700 : WIDTH
HEIGHT = TOP + AREA_H + BOTTOM
eval RESIZE
LEFT = LEFT + EXTRA_W / 2; TOP = TOP + EXTRA_H / 2; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
eval HEAD
if (strlen(NOTES)) { set label 3 plain(NOTES) at screen sx(60), screen sy(156) left font B20 textcolor rgb INK }

# --- the legend: pixels are the coordinates ---
set lmargin at screen 0; set rmargin at screen 1; set tmargin at screen 1; set bmargin at screen 0
set xrange [0 : WIDTH]; set yrange [HEIGHT : 0]
unset border; unset grid; unset tics
set style fill solid noborder
LEGEND = KEYS > 0 ? 'yes' : ''
if (KEYS > 0) {
    plot KEY skip 1 using (60 + $5):(KEY_Y + 44 * $4):(60 + $5):(84 + $5):(KEY_Y + 44 * $4 - 12):(KEY_Y + 44 * $4 + 12):3 with boxxyerror lc rgb variable, \
         KEY skip 1 using (94 + $5):(KEY_Y + 44 * $4):(label(strcol(2))) with labels left font F17 textcolor rgb INK
    unset label 1; unset label 2; unset label 3
}

# --- the bars, the first on top ---
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + AREA_W)
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + AREA_H)
set border 3 lc rgb SOFT lw 1
set grid xtics lc rgb GRID lw 1 lt 1
set xtics nomirror out scale 0.6 font F18 textcolor rgb INK
set xlabel plain(AXIS).' ('.plain(UNIT).')' font F20 offset 0,-0.2
set xrange [0 : TO * PER_S]; set yrange [N + 0.5 + 10. / SLOT : 0.5 - 10. / SLOT]
H = 0.29; LINE_H = 15. / SLOT; THIN = 0.36; PALE = '#f3cf9b'
END = TO * PER_S
plot PART skip 1 using (PER_S * $4):1:(PER_S * $4):(PER_S * $5):($1 - H):($1 + H):6 with boxxyerror lc rgb variable, \
     PART skip 1 using (PER_S * $5):($1 - H):(0):(2 * H) with vectors nohead lw 0.8 lc rgb '#ffffff', \
     BAR skip 1 using (0):1:(0):(PER_S * ($11 > 0 ? $11 : 0)):($1 + THIN - 0.03):($1 + THIN + 0.05) with boxxyerror fc rgb PALE, \
     PART skip 1 using (PER_S * $9):1:8:7 with labels center font F16 textcolor rgb variable, \
     BAR skip 1 using (PER_S * $8):1:(PER_S * ($9 - $8)):(0) with vectors nohead lw 3.4 lc rgb '#ffffff', \
     BAR skip 1 using (PER_S * $8):1:(PER_S * ($9 - $8)):(0) with vectors nohead lw 1.3 lc rgb INK, \
     BAR skip 1 using (PER_S * $8):($1 - 0.12):(0):(0.24) with vectors nohead lw 1.3 lc rgb INK, \
     BAR skip 1 using (PER_S * $9):($1 - 0.12):(0):(0.24) with vectors nohead lw 1.3 lc rgb INK, \
     BAR skip 1 using (PER_S * $10):1 with points pt 13 ps 2.3 * PS lc rgb '#ffffff', \
     BAR skip 1 using (PER_S * $10):1 with points pt 13 ps 1.6 * PS lc rgb INK, \
     TEXT skip 1 using (0):($1 - (strlen(strcol(3)) > 0 ? LINE_H : 0)):(label(strcol(2))) with labels right offset -1.1,0 font B17 textcolor rgb INK, \
     TEXT skip 1 using (0):($1 + LINE_H):(label(strcol(3))) with labels right offset -1.1,0 font F17 textcolor rgb SOFT, \
     TEXT skip 1 using (END):($1 - (strlen(strcol(4)) > 0 ? LINE_H : 0)):(label(strcol(5))) with labels left offset 1.4,0 font B17 textcolor rgb INK, \
     TEXT skip 1 using (END):($1 + LINE_H):(label(strcol(4))) with labels left offset 1.4,0 font F17 textcolor rgb SOFT
unset multiplot
