/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/nccl_opts.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static const struct nccl_opts defaults = NCCL_OPTS_DEFAULTS;

static const struct opt_set *const *own(void)
{
    static const struct opt_set *const sets[] = {&nccl_options, NULL};

    return sets;
}

static const struct opt_line line = {.more = own};

static int parse(struct nccl_opts *o, char **words, int n)
{
    char *argv[16] = {(char *)"test"};

    for (int i = 0; i < n; i++)
        argv[i + 1] = words[i];
    nccl_opts_asked = defaults;
    int rc = opt_parse(&line, n + 1, argv, OPT_SILENT, NULL);
    *o = nccl_opts_asked;
    return rc;
}

static int parse_one(struct nccl_opts *o, const char *word)
{
    char *words[] = {(char *)word};

    return parse(o, words, 1);
}

TEST(words_that_are_handed_on_mean_the_same)
{
    char *given[] = {(char *)"--path=ib",     (char *)"--algo=ring,NVLSTree",
                     (char *)"--proto=ll128", (char *)"--graph",
                     (char *)"--in-place",    (char *)"--nccl-mem",
                     (char *)"--share-gpu",   (char *)"--register=buffer",
                     (char *)"-dbf16",        (char *)"--redop=max",
                     (char *)"--pool=3",      (char *)"--same-buffer"};
    enum { GIVEN = sizeof(given) / sizeof(*given) };
    char *argv[GIVEN + 1] = {(char *)"test"};
    struct nccl_opts a, b;
    struct words w = {NULL, 0};

    memcpy(argv + 1, given, sizeof(given));
    assert_int_equal(parse(&a, given, GIVEN), 0);
    opt_again(&line, GIVEN + 1, argv, nccl_options.rows, &w);
    assert_int_equal(w.count, GIVEN);
    assert_int_equal(parse(&b, w.word, w.count), 0);
    assert_string_equal(b.path, "ib");
    assert_string_equal(b.algo, "ring,NVLSTree");
    assert_string_equal(b.proto, "ll128");
    assert_true(b.graph && b.same_buffer && b.in_place && b.mem_alloc && b.share_gpu &&
                b.dtype_given);
    assert_int_equal(b.registration, NCCL_REG_BUFFER);
    assert_int_equal(b.dtype, NCCL_BFLOAT16);
    assert_int_equal(b.redop, NCCL_MAX);
    assert_int_equal(b.pool, 3);
    words_free(&w);
    opt_again(&line, 1, argv, nccl_options.rows, &w);
    assert_int_equal(w.count, 0); /* the rest is left to NCCL */
}

TEST(what_is_not_known_is_refused)
{
    static const char *const bad[] = {
        "--path=carrier",  "--algo=ring,star",    "--proto=", "--register=yes",
        "--datatype=int3", "--redop=median",      "--pool=0", "--algo=",
        "--pool=x",        "--register=symmetric"}; /* not without --nccl-mem */
    struct nccl_opts o;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_not_equal(parse_one(&o, bad[i]), 0);
    assert_int_equal(parse_one(&o, "--register=buffer"), 0);
}

TEST(windows_have_no_algorithms_to_choose)
{
    static const char *const choice[] = {"--sweep", "--algo=ring", "--proto=ll"};
    struct nccl_opts o;

    for (size_t i = 0; i < sizeof(choice) / sizeof(*choice); i++) {
        char *words[] = {(char *)"--nccl-mem", (char *)"--register=symmetric", (char *)choice[i]};
        assert_int_equal(parse(&o, words, 2), 0);
        assert_int_not_equal(parse(&o, words, 3), 0);
    }
    assert_int_equal(parse_one(&o, "--sweep"), 0);
    assert_true(o.sweep);
}

TEST(what_an_old_library_would_not_do_is_not_asked_of_it)
{
    static const struct {
        const char *algo, *proto;
        bool sweep, good; /* with 2.23 */
    } asked[] = {{NULL, NULL, false, true},    {NULL, NULL, true, false},
                 {"ring", "ll", false, true},  {"tree", NULL, false, false},
                 {NULL, "ll128", false, true}, {"tree,RING", NULL, false, true},
                 {"nvls", "ll", false, false}, {"collnetchain,pat", NULL, false, false}};
    struct err err = {0, ""};

    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        struct nccl_opts o;
        o = defaults;
        o.algo = asked[i].algo;
        o.proto = asked[i].proto;
        o.sweep = asked[i].sweep;
        assert_int_equal(nccl_opts_check(&o, 22403, &err), 0);
        assert_int_equal(nccl_opts_check(&o, 22304, &err), asked[i].good ? 0 : -1);
        if (!asked[i].good)
            assert_int_equal(err.code, EXIT_CONFIG);
    }
    assert_string_equal(err.text,
                        "--algo without ring needs NCCL 2.24 or newer: NCCL 2.23.4 takes Ring, "
                        "and does not say so, where it cannot do what is asked");
}

TEST(variables_are_set_in_nccls_spelling_and_taken_back)
{
    struct nccl_opts o;
    struct err err = {0, ""};

    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
    o = defaults;
    o.algo = "nvlstree,collnetdirect";
    o.proto = "ll";
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), 0);
    assert_ptr_equal(nccl_opts_now(), &o);
    assert_string_equal(getenv("NCCL_ALGO"), "NVLSTree,CollNetDirect");
    assert_string_equal(getenv("NCCL_PROTO"), "LL");
    o.algo = "pat";
    o.proto = NULL;
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), 0);
    assert_string_equal(getenv("NCCL_ALGO"), "PAT");
    assert_null(getenv("NCCL_PROTO"));
    setenv("NCCL_PROTO", "Simple", 1); /* the user's word */
    o.proto = "simple";
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), 0);
    setenv("NCCL_ALGO", "Tree", 1);
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), -1);
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_string_equal(err.text,
                        "--algo wants NCCL_ALGO=PAT, but the environment says NCCL_ALGO=Tree");
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
}

TEST(ranks_that_share_a_gpu_look_like_hosts)
{
    struct nccl_opts o;
    struct err err = {0, ""};

    o = defaults;
    o.share_gpu = true;
    unsetenv("NCCL_SOCKET_IFNAME");
    assert_int_equal(nccl_opts_apply(&o, 3, false, &err), 0);
    assert_null(getenv("NCCL_SOCKET_IFNAME")); /* other hosts are not on the loopback */
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), 0);
    assert_string_equal(getenv("NCCL_HOSTID"), "railgauge-rank-3");
    assert_string_equal(getenv("NCCL_MULTI_RANK_GPU_ENABLE"), "1");
    assert_string_equal(getenv("NCCL_SOCKET_IFNAME"), "lo");
    setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), 0);
    assert_string_equal(getenv("NCCL_SOCKET_IFNAME"), "eth7");
    setenv("NCCL_HOSTID", "one-for-all", 1);
    assert_int_equal(nccl_opts_apply(&o, 3, true, &err), -1);
    assert_non_null(strstr(err.text, "NCCL_HOSTID=one-for-all"));
}
