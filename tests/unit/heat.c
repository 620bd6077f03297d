/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/plot/heat.h"
#include "test.h"

/* Two groups of `half`; one bad row and, when dead >= 0, a row without data. */
struct scene {
    int half, bad, dead;
};

static double scene_value(const struct scene *s, int row, int col)
{
    if (row == col || row == s->dead || col == s->dead)
        return NAN;
    if (row == s->bad || col == s->bad)
        return 5;
    return row / s->half == col / s->half ? 100 : 25;
}

/* The second table has no data where the bad row sends, else what falls with the distance. */
static void scene_values(void *arg, int row, const int *col, int n, double *v, double *other)
{
    const struct scene *s = arg;

    for (int i = 0; i < n; i++) {
        v[i] = scene_value(s, row, col[i]);
        other[i] = row == s->bad ? NAN : -abs(row - col[i]);
    }
}

static const char *scene_label(void *arg, int row)
{
    return row / ((struct scene *)arg)->half ? "rack-b" : "rack-a";
}

static bool scene_special(void *arg, int row)
{
    return row == ((struct scene *)arg)->bad;
}

static char *print(struct scene *s, int n, int columns, bool colour)
{
    struct heat h = {.n = n,
                     .values = scene_values,
                     .arg = s,
                     .label = scene_label,
                     .unit = "GB/s",
                     .title = "pairs",
                     .special = scene_special};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    heat_print(out, &h, columns, colour);
    fclose(out);
    return text;
}

static int occurrences(const char *text, const char *what)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* The widest line in columns: bytes that do not continue a UTF-8 character, without ANSI sequences.
 */
static int width_of(const char *text)
{
    int width = 0, widest = 0;

    for (const char *p = text; *p; p++) {
        if (*p == '\033') {
            p = strchr(p, 'm');
            continue;
        }
        width = *p == '\n' ? 0 : width + ((*p & 0xc0) != 0x80);
        widest = width > widest ? width : widest;
    }
    return widest;
}

TEST(small_tables_show_numbers_and_leave_the_diagonal_out)
{
    struct scene s = {2, -1, -1};
    char *text = print(&s, 4, 80, false);

    assert_non_null(strstr(text, "pairs\n"));
    assert_non_null(strstr(text, "rack-a   0"));
    assert_int_equal(occurrences(text, "rack-b"), 1); /* a label appears where it changes */
    assert_int_equal(occurrences(text, "   100█"), 4);
    assert_int_equal(occurrences(text, "  25.0░"), 8);
    assert_non_null(strstr(text, "25.0 ░░░░▒▒▒▒▓▓▓▓████ 100 GB/s\n"));
    assert_null(strstr(text, "no data"));
    free(text);
}

TEST(missing_pairs_differ_from_low_ones_and_are_counted)
{
    struct scene s = {2, 1, 3};
    char *text = print(&s, 4, 80, false);

    assert_int_equal(occurrences(text, "   ·"), 7); /* six cells and the legend */
    assert_int_equal(occurrences(text, "5.00░"), 4);
    assert_non_null(strstr(text, "· no data: 6 of 12 pairs"));
    free(text);
}

TEST(one_bad_row_survives_down_sampling)
{
    struct scene s = {500, 777, -1};
    char *text = print(&s, 1000, 80, false);

    /* 36 blocks fit; row and column of the bad block are low everywhere: 2 * 36 - 1 cells of two.
     */
    assert_int_equal(occurrences(text, "each cell: the worst of 28 x 28\n"), 1);
    assert_non_null(strstr(text, "5.00 "));
    const char *line = strstr(text, "░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░");
    assert_non_null(line);
    assert_true(width_of(text) <= 80);
    free(text);
}

TEST(a_special_row_is_looked_at_in_any_sampling)
{
    struct scene s = {50000, 77777, -1};
    struct heat h = {.n = 100000, .values = scene_values, .arg = &s, .special = scene_special};
    double *other = calloc(50 * 50, sizeof(*other));
    long pairs, missing;
    double *cell = heat_cells(&h, 50, other, &pairs, &missing);

    for (int block = 0; block < 50; block++) { /* row 77777 is in block 38 */
        assert_float_equal(cell[38 * 50 + block], 5, 1e-9);
        assert_true(block == 38 || cell[37 * 50 + block] > 5);
    }
    assert_float_equal(other[38 * 50 + 12], -(77950 - 24000), 1e-9); /* of the others */
    assert_float_equal(other[7 * 50 + 7], -1950, 1e-9);
    free(other);
    assert_int_equal(missing, 0);
    assert_true(pairs < 50L * 50 * 44 * 44);
    free(cell);
}

TEST(colour_uses_half_blocks_and_stays_within_the_width)
{
    struct scene s = {40, 7, 70};

    setenv("COLORTERM", "truecolor", 1);
    for (int columns = 40; columns <= 200; columns += 20) {
        char *text = print(&s, 80, columns, true);
        assert_true(width_of(text) <= columns);
        assert_non_null(strstr(text, "\033[0m\n"));
        if (columns == 100)
            assert_int_equal(occurrences(text, "▀"), 80 * 40);
        free(text);
    }
    unsetenv("COLORTERM");
    char *text = print(&s, 80, 100, true);
    assert_non_null(strstr(text, "\033[38;5;"));
    assert_null(strstr(text, "\033[38;2;"));
    free(text);
}

static const char *hostile_label(void *arg, int row)
{
    (void)arg;
    return row ? "b" : "a\033]0;x\007`rm`";
}

TEST(control_characters_in_labels_are_shown_as_question_marks)
{
    struct scene s = {1, -1, -1};
    struct heat h = {.n = 2, .values = scene_values, .arg = &s, .label = hostile_label};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    heat_print(out, &h, 80, false);
    fclose(out);
    assert_non_null(strstr(text, "a?]0;x?`rm`"));
    assert_null(strchr(text, '\033'));
    free(text);
}

TEST(colours_run_from_end_to_end)
{
    assert_int_equal(heat_rgb(HEAT_AMOUNT, 0), 0x440154);
    assert_int_equal(heat_rgb(HEAT_AMOUNT, 1), 0xfde725);
    assert_int_equal(heat_rgb(HEAT_AMOUNT, 0.5), 0x21908d);
    assert_int_equal(heat_rgb(HEAT_AMOUNT, -3), 0x440154);
    assert_int_equal(heat_rgb(HEAT_SHARE, 7), 0xd3e5f0);
}

TEST(one_endpoint_has_no_pairs)
{
    struct scene s = {1, -1, -1};
    char *text = print(&s, 1, 80, false);

    assert_string_equal(text, "pairs\n  (fewer than two endpoints: no pairs)\n");
    free(text);
}
