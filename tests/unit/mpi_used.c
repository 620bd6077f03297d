/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/mpi/mpi_used.c - what ranks read back of MPI, as one line; asked is not used. */
#include <stdlib.h>

#include "test.h"

#include "small.h"
#include "transport/mpi/mpi_used_impl.h"

static const char *const variable[] = {
    "OMPI_MCA_pml", "OMPI_MCA_mtl",    "OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include",
    "UCX_TLS",      "UCX_NET_DEVICES", "FI_PROVIDER"};

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(variable) / sizeof(*variable); i++)
        unsetenv(variable[i]);
    return 0;
}

/* Two hosts of two ranks: 0 and 1, 2 and 3. */
static int used(struct topo *t, char *const part[4], struct err *err)
{
    small_topo(t, 1, 2, 2, false, ENDPOINT_CPU);
    return mpi_used(t, part, 4, err);
}

static const char *text_of(const struct topo *t)
{
    return json_string_value(json_object_get(t->mpi, "text"));
}

#define CONNECTED(pml)                                                                             \
    {                                                                                              \
        (char *)"{\"pml\": \"" pml "\", \"segments\": [\"vader_segment.a.0.1.0\", "                \
                "\"vader_segment.a.0.1.1\"], \"sockets\": [[\"10.0.0.1 50\", \"10.0.0.2 60\", "    \
                "\"ib0\"], [\"10.0.9.1 7\", \"10.0.9.9 22\", \"mgmt\"]]}",                         \
            (char *)"{\"pml\": \"" pml "\", \"segments\": [\"vader_segment.a.0.1.0\", "            \
                    "\"vader_segment.a.0.1.1\"]}",                                                 \
            (char *)"{\"pml\": \"" pml "\", \"segments\": [\"vader_segment.b.0.1.0\"], "           \
                    "\"sockets\": [[\"10.0.0.2 60\", \"10.0.0.1 50\", \"ib1\"]]}",                 \
            (char *)"{\"pml\": \"" pml "\", \"segments\": [\"vader_segment.b.0.1.1\"]}"            \
    }

/* A connection to somebody else (the launcher's) and a segment that only its owner has say nothing. */
TEST_WITH(connections_that_two_ranks_hold, clean, NULL)
{
    char *const part[4] = CONNECTED("ob1");
    struct topo t;
    struct err err;

    assert_int_equal(used(&t, part, &err), 0);
    assert_string_equal(text_of(&t),
                        "MPI, pml ob1, btl vader within hosts, tcp (ib0, ib1) between");
    topo_free(&t);
}

TEST_WITH(a_lone_segment_is_no_way, clean, NULL)
{
    char *const part[4] = {(char *)"{\"pml\": \"ob1\", \"segments\": [\"vader_segment.a.0.1.0\"]}",
                           (char *)"{\"pml\": \"ob1\", \"segments\": [\"vader_segment.a.0.1.1\"]}",
                           (char *)"{}", (char *)"{}"};
    struct topo t;
    struct err err;

    assert_int_equal(used(&t, part, &err), 0);
    assert_string_equal(text_of(&t), "MPI, pml ob1");
    topo_free(&t);
}

TEST_WITH(ucx_names_transports_and_devices, clean, NULL)
{
    char *const part[4] = {
        (char *)"{\"pml\": \"ucx\", \"ucx\": [\"self/memory0\", \"sysv/memory\", "
                "\"rc_mlx5/mlx5_0:1\"], \"devices\": [\"mlx5_0\"]}",
        (char *)"{\"pml\": \"ucx\", \"ucx\": [\"rc_mlx5/mlx5_1:1\"]}", (char *)"{\"pml\": \"ucx\"}",
        (char *)"{\"pml\": \"ucx\"}"};
    struct topo t;
    struct err err;

    setenv("UCX_TLS", "rc,sm,self", 1);
    setenv("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1", 1);
    assert_int_equal(used(&t, part, &err), 0);
    assert_string_equal(text_of(&t),
                        "MPI, pml ucx, sysv within hosts, rc_mlx5 (mlx5_0:1, mlx5_1:1) "
                        "between, open: mlx5_0");
    topo_free(&t);
}

/* What is asked, and what the error says; NULL: none. */
TEST_WITH(asked_and_used, clean, NULL)
{
    static const struct {
        const char *variable, *value, *pml, *says;
    } row[] = {
        {"OMPI_MCA_pml", "ucx", "ob1", "asked OMPI_MCA_pml=ucx, used ob1"},
        {"OMPI_MCA_pml", "ob1", "ob1", NULL},
        {"OMPI_MCA_pml", "ucx,ob1", "ob1", NULL},
        {"OMPI_MCA_pml", "^ucx", "ob1", NULL},
        {"OMPI_MCA_pml", "^cm,ob1", "ob1", "asked OMPI_MCA_pml=^cm,ob1, used ob1"},
        {"OMPI_MCA_btl", "openib,vader,self", "ob1",
         "asked OMPI_MCA_btl=openib,vader,self, used tcp"},
        {"OMPI_MCA_btl", "sm,tcp,self", "ob1", NULL},
        {"OMPI_MCA_btl", "^openib", "ob1", NULL},
        {"OMPI_MCA_btl", "^tcp", "ob1", "asked OMPI_MCA_btl=^tcp, used tcp"},
        {"OMPI_MCA_btl_tcp_if_include", "ib0", "ob1",
         "asked OMPI_MCA_btl_tcp_if_include=ib0, used ib1"},
        {"OMPI_MCA_btl_tcp_if_include", "10.0.0.0/8", "ob1", NULL},
        {"OMPI_MCA_btl", "self", "ucx", NULL}, /* not what carries these messages */
        {"UCX_TLS", "rc", "ob1", NULL},
        {"UCX_TLS", "rc,sm", "ucx", "asked UCX_TLS=rc,sm, used tcp"},
        {"UCX_TLS", "all", "ucx", NULL},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *const ob1[4] = CONNECTED("ob1"), *const ucx[4] = CONNECTED("ucx");
        struct topo t;
        struct err err = {0, ""};
        setenv(row[i].variable, row[i].value, 1);
        int rc = used(&t, strcmp(row[i].pml, "ucx") ? ob1 : ucx, &err);
        unsetenv(row[i].variable);
        assert_int_equal(rc, row[i].says ? -1 : 0);
        if (row[i].says) {
            assert_string_equal(err.text, row[i].says);
            assert_int_equal(err.code, EXIT_CONFIG);
        }
        assert_non_null(t.mpi); /* what was used is kept in any case */
        topo_free(&t);
    }
}

/* Where nothing was measured, what an earlier part of the campaign found stays. */
TEST_WITH(nothing_does_not_replace_something, clean, NULL)
{
    char *const none[4] = {(char *)"{}", (char *)"{}", (char *)"{}", (char *)"{}"};
    char *const part[4] = CONNECTED("ob1");
    struct topo t;
    struct err err;

    assert_int_equal(used(&t, part, &err), 0);
    char *before = mem_strdup(text_of(&t));
    assert_int_equal(mpi_used(&t, none, 4, &err), 0);
    assert_string_equal(text_of(&t), before);
    free(before);
    topo_free(&t);
}

/* It survives topology.json, and what is no such thing is refused. */
TEST_WITH(in_the_file, clean, NULL)
{
    char *const part[4] = CONNECTED("ob1");
    struct topo t, u;
    struct err err;

    assert_int_equal(used(&t, part, &err), 0);
    topo_default_tiers(&t);
    char *text = topo_text(&t);
    assert_int_equal(topo_parse(&u, text, strlen(text), "t.json", &err), 0);
    assert_true(json_equal(t.mpi, u.mpi));
    topo_free(&u);
    char *at = strstr(text, "\"between\": [\"tcp\"]"), *seal = strstr(text, ", \"checksum\"");
    assert_true(at && seal);
    memset(seal, ' ', strlen(", \"checksum\": \"01234567\"")); /* read without one, with a note */
    memcpy(at, "\"between\": \"t,cp\" ", strlen("\"between\": [\"tcp\"]"));
    assert_int_equal(topo_parse(&u, text, strlen(text), "t.json", &err), -1);
    assert_string_equal(err.text, "t.json: mpi: \"between\" is not a list");
    free(text);
    topo_free(&t);
}
