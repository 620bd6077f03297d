/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - long lists of small integers as short JSON. */
#include "base/json.h"
#include "cost/matrix_impl.h"

/* Does row b continue row a after `distance` rows at this step?  Unknown (-1) coordinates do not
 * grow. */
static bool continues(const int *a, const int *b, int row, long distance, int step)
{
    for (int i = 0; i < row; i++)
        if (b[i] != a[i] + distance * step || (step && (a[i] < 0 || b[i] < 0)))
            return false;
    return true;
}

static json_t *run(const int *first, int row, int rows, int step)
{
    json_t *out = json_array(), *values;
    bool same = true;

    for (int i = 1; i < row; i++)
        same = same && first[i] == first[0];
    if (same) {
        values = json_integer(first[0]);
    } else {
        values = json_array();
        for (int i = 0; i < row; i++)
            json_array_append_new(values, json_integer(first[i]));
    }
    json_array_append_new(out, json_integer(rows));
    json_array_append_new(out, values);
    if (step)
        json_array_append_new(out, json_integer(step));
    return out;
}

json_t *rows_pack(const int *v, int n, int row)
{
    json_t *out = json_array();
    int rows = n / row;

    for (int at = 0, len; at < rows; at += len) {
        const int *first = v + (long)at * row;
        int step = at + 1 < rows ? first[row] - first[0] : 0;
        for (len = 1; at + len < rows; len++)
            if (!continues(first, first + (long)len * row, row, len, step))
                break;
        json_array_append_new(out, run(first, row, len, len > 1 ? step : 0));
    }
    return out;
}

/* One integer of a run; message with its place. */
static int take(json_t *value, long long min, long long max, const char *where, int index,
                const char *what, long long *out, struct err *err)
{
    if (!json_is_integer(value))
        return err_data(err, "%s[%d]: the %s is not an integer", where, index, what);
    *out = json_integer_value(value);
    if (*out < min || *out > max)
        return err_data(err, "%s[%d]: the %s %lld is outside %lld..%lld", where, index, what, *out,
                        min, max);
    return 0;
}

static int unpack_run(int *v, long left, int row, json_t *list, const char *where, int index,
                      int min, int max, long *rows, struct err *err)
{
    json_t *one = json_array_get(list, (size_t)index), *values = json_array_get(one, 1);
    size_t parts = json_array_size(one);
    long long count, step = 0, x;

    if (!json_is_array(one) || parts < 2 || parts > 3)
        return err_data(err, "%s[%d] is not [rows, values] or [rows, values, step]", where, index);
    if (take(json_array_get(one, 0), 1, left, where, index, "number of rows", &count, err) < 0)
        return -1;
    if (parts == 3 &&
        take(json_array_get(one, 2), -(1 << 20), 1 << 20, where, index, "step", &step, err) < 0)
        return -1;
    if (json_is_array(values) && json_array_size(values) != (size_t)row)
        return err_data(err, "%s[%d]: %zu values where a row has %d", where, index,
                        json_array_size(values), row);
    for (int i = 0; i < row; i++) {
        json_t *value = json_is_array(values) ? json_array_get(values, (size_t)i) : values;
        if (take(value, min, max, where, index, "value", &x, err) < 0)
            return -1;
        long long last = x + (count - 1) * step;
        if (last < (step ? 0 : min) || last > max)
            return err_data(err, "%s[%d]: its last value %lld is outside %d..%d", where, index,
                            last, min, max);
        for (long r = 0; r < count; r++)
            v[r * row + i] = (int)(x + r * step);
    }
    *rows = (long)count;
    return 0;
}

int rows_unpack(int *v, int n, int row, json_t *list, const char *where, int min, int max,
                struct err *err)
{
    long left = n / row, rows = 0;

    if (!json_is_array(list))
        return err_data(err, "%s is not a list of runs", where);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (unpack_run(v, left, row, list, where, (int)i, min, max, &rows, err) < 0)
            return -1;
        v += rows * row;
        left -= rows;
    }
    return left == 0 ? 0 : err_data(err, "%s: %ld rows are missing", where, left);
}
