# heat.gp - the bandwidth of every pair, and its share of what that kind of pair should give.
# gnuplot -c heat.gp IN OUT png|svg|pdf     (tables: see src/report/plot/plot_heat.c)
NAME = ARG0; ARGS = ARGC; IN = ARG1; OUT = ARG2; FORMAT = ARG3
load NAME[1 : strlen(NAME) - strlen('heat.gp')].'style.gp'

META = IN.'/heat_meta.tsv'; TICK = IN.'/heat_tick.tsv'; LINE = IN.'/heat_line.tsv'
CELL = IN.'/heat_cell.tsv'; CALL = IN.'/heat_call.tsv'
eval number('blocks', 'N'); eval number('cell_pixels', 'PX'); eval number('lo_GBps', 'LO')
eval number('hi_GBps', 'HI'); eval number('log', 'LOG'); eval number('missing', 'LOST')
eval number('calls', 'CALLS'); eval number('span', 'SPAN'); eval number('more', 'MORE')
if (!(N >= 2) || !(HI > LO)) { printerr 'no pairs in '.META; exit status 65 }
eval text('axis', 'AXIS')
eval number('lines', 'LINES'); eval number('cells', 'CELLS')
WIDE = 1
stats TICK skip 1 using (WIDE = strlen(strcol(2)) > WIDE ? strlen(strcol(2)) : WIDE, 1) nooutput

# --- layout, in pixels; the maps are whole multiples of their cells, or the picture would be blurred ---
MAP = N * PX
LEFT = 130 + 15 * WIDE; GAP = 80 + 15 * WIDE; RIGHT = CALLS > 0 ? 470 : 110
TOP = 230; BOTTOM = 260
WIDTH = LEFT + MAP + GAP + MAP + RIGHT
WIDTH = WIDTH < 1900 ? 1900 : WIDTH
HEIGHT = TOP + MAP + BOTTOM
eval RESIZE
LEFT = LEFT + EXTRA_W / 2; TOP = TOP + EXTRA_H / 2; WIDTH = WIDTH + EXTRA_W; HEIGHT = HEIGHT + EXTRA_H
eval value('OPEN_'.FORMAT)
set output OUT

set multiplot
eval HEAD
set xrange [-0.5 : N - 0.5]; set yrange [N - 0.5 : -0.5]
unset grid; set border 15 lw 1 lc rgb SOFT; set tics scale 0
set xtics font F18; set ytics font F18
set tmargin at screen sy(TOP); set bmargin at screen sy(TOP + MAP)
set style textbox opaque noborder
BAR_Y = sy(TOP + MAP + 165); BAR_H = 20 / real(HEIGHT)
BORDERS = LINES > 0 ? 'yes' : ''; NUMBERS = CELLS > 0 ? 'yes' : ''
CLEAR = '#ff000000'
SHARES = 3 * int(N) * int(N) # bytes before them

# --- left: GB/s ---
set lmargin at screen sx(LEFT); set rmargin at screen sx(LEFT + MAP)
set label 3 'Bandwidth'.(LOG > 0 ? ' (logarithmic colour)' : '') at graph 0, screen sy(TOP - 30) left font B24 textcolor rgb INK
set ylabel 'sender: '.plain(AXIS) font F20 offset 0.6,0
set xlabel 'receiver: '.plain(AXIS) font F20 offset 0,0.3
set palette file IN.'/heat_GBps_palette.tsv' skip 1 using 1:2:3:4
set cbrange [LO : HI]
if (LOG > 0) { set logscale cb; unset mcbtics; set cbtics () ; eval log_ticks('cb') } else { set cbtics autofreq }
set cbtics font F18 offset 0,0.2
set cblabel 'GB/s' font F18 offset 0,0.5
set colorbox horizontal user origin sx(LEFT), BAR_Y size MAP / real(WIDTH), BAR_H
# The maps are pictures; a point beyond the border brings the colour box.
plot IN.'/heat_rgb.bin' binary array=(N,N) format='%uchar' using 1:2:3 with rgbimage, META skip 1 using (-9):(0):(LO) with dots lc palette, \
     TICK skip 1 using 1:(0):xticlabels(plain(strcol(2))) with dots lc rgb CLEAR, TICK skip 1 using (0):1:yticlabels(plain(strcol(2))) with dots lc rgb CLEAR, \
     for [t in BORDERS] LINE skip 1 using 1:(-0.5):(0):(N) with vectors nohead lw 0.6 lc rgb '#ffffff', \
     for [t in BORDERS] LINE skip 1 using (-0.5):1:(N):(0) with vectors nohead lw 0.6 lc rgb '#ffffff', \
     for [t in NUMBERS] CELL skip 1 using 1:2:3:5 with labels font F18 textcolor rgb variable

# --- right: share of expected ---
unset label 1; unset label 2
unset logscale cb
set lmargin at screen sx(LEFT + MAP + GAP); set rmargin at screen sx(LEFT + MAP + GAP + MAP)
set label 3 'Share of expected for that kind of pair' at graph 0, screen sy(TOP - 30) left font B24 textcolor rgb INK
unset ylabel
set palette file IN.'/heat_share_palette.tsv' skip 1 using 1:2:3:4
set cbrange [50 : 105]
set cbtics ('≤ 50%%' 50, '60%%' 60, '70%%' 70, '80%%' 80, '90%%' 90, '100%%' 100)
set cblabel (LOST > 0 ? 'grey: no data' : ' ') font F18 offset 0,0.5
set colorbox horizontal user origin sx(LEFT + MAP + GAP), BAR_Y size MAP / real(WIDTH), BAR_H
if (MORE > 0) { set label 4 sprintf('and %d more', int(MORE)) at screen sx(LEFT + MAP + GAP + MAP + 62), screen sy(TOP + MAP - 12) left font F17 textcolor rgb SOFT }
plot IN.'/heat_rgb.bin' binary array=(N,N) skip=SHARES format='%uchar' using 1:2:3 with rgbimage, META skip 1 using (-9):(0):(100) with dots lc palette, \
     TICK skip 1 using 1:(0):xticlabels(plain(strcol(2))) with dots lc rgb CLEAR, TICK skip 1 using (0):1:yticlabels(plain(strcol(2))) with dots lc rgb CLEAR, \
     for [t in BORDERS] LINE skip 1 using 1:(-0.5):(0):(N) with vectors nohead lw 0.6 lc rgb '#9ca3af', \
     for [t in BORDERS] LINE skip 1 using (-0.5):1:(N):(0) with vectors nohead lw 0.6 lc rgb '#9ca3af', \
     for [t in NUMBERS] CELL skip 1 using 1:2:4:6 with labels font F18 textcolor rgb variable

# --- the parts that stand out: from their row at the border of the map to a label ---
if (CALLS > 0) {
    set lmargin at screen sx(LEFT + MAP + GAP + MAP); set rmargin at screen sx(LEFT + MAP + GAP + MAP + RIGHT)
    unset label; unset object; unset border; unset colorbox; unset xlabel
    unset xtics; unset ytics
    set xrange [0 : RIGHT]
    LINE_H = 13 * N / real(MAP) # half a line of text in rows
    plot CALL skip 1 using (6):1:(44):($2 - $1) with vectors nohead lw 0.9 lc rgb SOFT, \
         CALL skip 1 using (60):($2 - LINE_H):(label(strcol(3))) with labels left font B17 textcolor rgb INK, \
         CALL skip 1 using (60):($2 + LINE_H):(label(strcol(4))) with labels left font F17 textcolor rgb SOFT
}
unset multiplot
