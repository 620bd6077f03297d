/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "matrix/matrix.h"
#include "topo/fabrics/fabric.h"

enum { FLIPS = 1500 };

static int is_good(const char *text)
{
    uint32_t crc;
    const char *digits = seal_find(text, strlen(text), &crc);

    return digits && strtoul(digits, NULL, 16) == crc;
}

TEST(a_sealed_text_stays_good_only_with_other_white_space)
{
    static const char *const plain[] = {"{\"a\": 1}", "{\n \"a\": \"x y\"\n}\n",
                                        "{\"n\": {\"checksum\": \"12345678\"}, \"a\": [1, 2]}"};
    static const char *const other[] = {"{\"checksum\":\"%.8s\",\"a\":\n1}",
                                        "{\"checksum\": \"%.8s\",\"a\":\"x y\"}", NULL};
    size_t len;

    for (int i = 0; i < 3; i++) {
        char *sealed = seal_text(plain[i], strlen(plain[i]), &len), text[128];
        assert_int_equal(len, strlen(sealed));
        assert_true(is_good(sealed));
        assert_true(seal_find(sealed, len, NULL) < strchr(sealed, ','));
        char *again = seal_text(sealed, len, &len);
        assert_string_equal(again, sealed);
        if (other[i]) {
            snprintf(text, sizeof(text), other[i], seal_find(sealed, len, NULL));
            assert_true(is_good(text));
        }
        *strchr(sealed, i == 1 ? 'y' : '1') = '3';
        assert_false(is_good(sealed));
        free(sealed);
        free(again);
    }
}

TEST(what_is_no_checksum_is_none)
{
    static const char *const none[] = {"",
                                       "{}",
                                       "{\"checksum\": 12345678}",
                                       "{\"checksum\": \"1234567\"}",
                                       "{\"checksum\": \"123456789\"}",
                                       "{\"checksum\": \"1234567G\"}",
                                       "{\"a\": \"checksum\", \"b\": \"12345678\"}",
                                       "{\"a\\\"checksum\": \"12345678\"}",
                                       "{\"a\": [{\"checksum\": \"12345678\"}]}"};

    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        assert_null(seal_find(none[i], strlen(none[i]), NULL));
}

static char *topology(void)
{
    struct fabric f;
    struct topo t;

    assert_int_equal(fabric_load(&f, "hgx-h100", NULL), 0);
    assert_int_equal(fabric_topo(&f, 1, false, &t, NULL), 0);
    char *text = topo_text(&t);
    fabric_free(&f);
    topo_free(&t);
    return text;
}

static char *matrix(void)
{
    char *text;

    assert_int_equal(file_read(&text, NULL, "tests/golden/matrix.json", 1 << 20, NULL), 0);
    return text;
}

static bool topology_reads(const char *text, size_t len)
{
    struct topo t;

    if (topo_parse(&t, text, len, "t.json", NULL) < 0)
        return false;
    topo_free(&t);
    return true;
}

static bool matrix_reads(const char *text, size_t len)
{
    struct matrix m;

    if (matrix_parse(&m, text, len, "m.json", NULL) < 0)
        return false;
    matrix_free(&m);
    return true;
}

/* The values of a text, whatever its white space. */
static bool same_values(const char *a, const char *b, size_t len)
{
    json_t *x = json_loadb(a, len, 0, NULL), *y = json_loadb(b, len, 0, NULL);
    bool same = x && json_equal(x, y);

    json_decref(x);
    json_decref(y);
    return same;
}

/* How many of FLIPS single flipped bits are read and mean something else. */
static int flip(char *text, bool (*reads)(const char *text, size_t len))
{
    size_t len = strlen(text);
    char *good = strdup(text);
    int fooled = 0;

    assert_true(reads(text, len));
    for (int i = 0; i < FLIPS; i++) {
        size_t at = (size_t)lrand48() % len;
        text[at] ^= (char)(1 << lrand48() % 8);
        fooled += reads(text, len) && !same_values(text, good, len);
        text[at] = good[at];
    }
    free(good);
    return fooled;
}

/* The same values without a seal, as written by hand or as railgauge wrote them. */
static char *unsealed(const char *text, bool by_hand)
{
    json_t *root = json_loads(text, 0, NULL);

    assert_int_equal(json_object_del(root, SEAL_KEY), 0);
    if (by_hand)
        json_object_del(json_object_get(root, "provenance"), "tool_version");
    char *out = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return out;
}

TEST(a_flipped_bit_is_refused)
{
    static const struct {
        char *(*make)(void);
        bool (*reads)(const char *text, size_t len);
    } file[] = {{topology, topology_reads}, {matrix, matrix_reads}};
    const char *given = getenv("RG_SEED");
    long seed = given ? atol(given) : (long)getpid();

    srand48(seed);
    for (int i = 0; i < 2; i++) {
        char *text = file[i].make(), *plain = unsealed(text, true);
        int fooled = flip(text, file[i].reads), before = flip(plain, file[i].reads);
        print_message("file %d, seed %ld: %d of %d flips unseen, %d without checksum\n", i, seed,
                      fooled, FLIPS, before);
        assert_int_equal(fooled, 0);
        assert_true(before > 0);
        free(text);
        free(plain);
    }
}

TEST(the_error_names_the_way_out)
{
    char *text = topology(), *digit = (char *)seal_find(text, strlen(text), NULL);
    struct topo t;
    struct err err;

    *digit = *digit == '0' ? '1' : '0';
    assert_int_equal(topo_parse(&t, text, strlen(text), "c/t.json", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(strstr(err.text, "\"railgauge seal c/t.json\" makes it valid"));
    free(text);
}

static int told;

static void count_path(const char *path)
{
    told += !strcmp(path, "t.json");
}

TEST(a_file_without_checksum_is_read_and_told_if_it_is_written_by_hand)
{
    char *text = topology(), *plain = unsealed(text, true), *cut = unsealed(text, false);

    json_on_unsealed(count_path);
    assert_true(topology_reads(text, strlen(text)));
    assert_int_equal(told, 0);
    assert_true(topology_reads(plain, strlen(plain)));
    assert_int_equal(told, 1);
    assert_false(topology_reads(cut, strlen(cut)));
    assert_int_equal(told, 1);
    json_on_unsealed(NULL);
    free(cut);
    free(text);
    free(plain);
}
