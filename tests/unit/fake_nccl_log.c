/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stand-in for NCCL writes about itself: the form of NCCL 2.28's lines, and that its
 * environment and its profile decide what they say. */
#include <regex.h>

#include "test.h"

#include "ranks.h"
#include "topo/sources/nccl/nccl_log.h"

static char directory[] = "/tmp/fake-nccl.XXXXXX";

static const char *in_directory(const char *name)
{
    static char path[8][64];
    static int n;

    snprintf(path[n = (n + 1) % 8], sizeof(*path), "%s/%s", directory, name);
    return path[n];
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(in_directory(name), "w");

    fputs(text, f);
    fclose(f);
}

static char *read_file(const char *name)
{
    static char text[1 << 18];
    FILE *f = fopen(in_directory(name), "r");

    CHECK(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* How many lines match. */
static int lines(const char *text, const char *pattern)
{
    regex_t re;
    regmatch_t m;
    int n = 0;

    CHECK(regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE) == 0);
    for (; regexec(&re, text, 1, &m, 0) == 0 && m.rm_eo > 0; n++)
        text += m.rm_eo;
    regfree(&re);
    return n;
}

#define LINE "^[^ :]+:[0-9]+:[0-9]+ \\[[0-9]+\\] NCCL INFO "

/* Give this rank a profile of its own: in one shared file, a rank could read what another one has
 * just cut to begin writing. */
static void set_profile(const char *profile)
{
    char name[32];

    snprintf(name, sizeof(name), "profile.%d", my_rank);
    write_file(name, profile);
    setenv("FAKE_NCCL", in_directory(name), 1);
}

/* Begin with a log of all parts for this rank, and a job profile. */
static void begin(const char *profile)
{
    char name[32];

    snprintf(name, sizeof(name), "log.%d.%%p", my_rank);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,GRAPH,NET,P2P,SHM,ENV,TUNING,NVLS", 1);
    setenv("NCCL_DEBUG_FILE", in_directory(name), 1);
    if (profile)
        set_profile(profile);
}

static const char *my_log(void)
{
    char name[32];

    snprintf(name, sizeof(name), "log.%d.%d", my_rank, (int)getpid());
    return read_file(name);
}

static int sum(nccl_comm c, int count, int dtype)
{
    static void *at;

    if (!at)
        at = device(NULL, 8 << 20);
    return nccl.AllReduce(at, at, (size_t)count, dtype, NCCL_SUM, c, my_stream);
}

static void plain(void)
{
    nccl_comm c;
    const char *log;

    begin(NULL);
    load_all(my_rank);
    c = comm_of(0);
    CHECK(lines(my_log(), " via ") == 0); /* connections are made by the first operation */
    CHECK(sum(c, 1 << 20, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(sum(c, 4, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    log = my_log();
    CHECK(lines(log, LINE "NCCL version 2\\.28\\.9\\+cuda13\\.0$") == 1);
    CHECK(lines(log, LINE "NET/IB : No device found\\.$") == 1);
    CHECK(lines(log, LINE "NET/Socket : Using \\[0\\]lo:127\\.0\\.0\\.1<0>$") == 1);
    CHECK(lines(log, LINE "Using network Socket$") == 1);
    CHECK(lines(log, LINE "ncclCommInitRankConfig comm 0x[0-9a-f]+ rank [01] nranks 2 cudaDev [01] "
                          "nvmlDev [01] busId [0-9a-f]+ commId 0x[0-9a-f]+ - Init START$") == 1);
    CHECK(lines(log, "commId 0x[0-9a-f]+ - Init COMPLETE$") == 1);
    CHECK(lines(log,
                LINE "comm 0x[0-9a-f]+ rank [01] nRanks 2 nNodes 1 localRanks 2 localRank [01] "
                     "MNNVL 0$") == 1);
    CHECK(lines(log, LINE "Channel [0-9]{2}/16 : 0 1$") == (my_rank ? 0 : 16));
    CHECK(lines(log, LINE "Channel [0-9]{2}/0 : [01]\\[[01]\\] -> [01]\\[[01]\\] via P2P/CUMEM$") ==
          32); /* rings for the large one, trees for the small one */
    CHECK(lines(log, LINE "Connected all rings, use ring PXN 0 GDR 0$") == 1);
    CHECK(lines(log, LINE "Connected all trees$") == 1);
    CHECK(lines(log, LINE "Trees \\[0\\] 1/-1/-1->0->-1 \\[1\\] ") == !my_rank);
    CHECK(lines(log, LINE "Ring [0-9]{2} : [01] -> [01] -> [01]$") == 16);
    CHECK(lines(log, LINE "Pattern 4, crossNic 0, nChannels 16, bw 30\\.0+/0\\.0+, type NVL/PIX, "
                          "sameChannels 1$") == 1);
    CHECK(lines(log, LINE "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p "
                          "channels, 16 p2p channels per peer$") == 1);
    CHECK(lines(log, LINE "AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE "
                          "channel\\{Lo\\.\\.Hi\\}=\\{0\\.\\.15\\}$") == !my_rank);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(the_log_has_the_form_of_nccls)
{
    assert_true(ranks_run(2, plain, -1));
}

/* Two racks of two GPUs that should be one NVLink domain, and are not. */
static const char *const racks = "host 0-1 n1\nhost 2-3 n2\nnic mlx5_0:1/IB\nnic mlx5_1:1/IB\n"
                                 "socket eth0:10.0.0.1<0>\nchannels 2\nring 0,2,1,3\n";

static void two_hosts(void)
{
    nccl_comm c;
    const char *log;

    begin(racks);
    load_all(my_rank % 2);
    c = comm_of(0);
    CHECK(sum(c, 1 << 20, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    log = my_log();
    CHECK(lines(log, my_rank < 2 ? "^n1:[0-9]+:[0-9]+ \\[" : "^n2:[0-9]+:[0-9]+ \\[") > 10);
    CHECK(lines(log, LINE "NET/IB : Using \\[0\\]mlx5_0:1/IB \\[1\\]mlx5_1:1/IB \\[RO\\]; OOB "
                          "eth0:10\\.0\\.0\\.1<0>$") == 1);
    CHECK(lines(log, LINE "Using network IB$") == 1);
    CHECK(lines(log, "nNodes 2 localRanks 2 localRank [01] MNNVL 0$") == 1);
    CHECK(lines(log, LINE "Channel 0[01]/02 : 0 2 1 3$") == (my_rank ? 0 : 2));
    CHECK(lines(log, "\\[send\\] via NET/IB/[01]/GDRDMA$") == 2);
    CHECK(lines(log, "\\[receive\\] via NET/IB/[01]/GDRDMA$") == 2);
    CHECK(lines(log, " via P2P") == 0); /* every step of the ring changes hosts */
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

/* The reader of real logs gets out of this one what the profile put in. */
static void read_back(void)
{
    struct nccl_profile p = {0};
    const struct nccl_comm_profile *c;
    const char *log = my_log();
    int domain = 0, net = 0;

    nccl_log_parse(&p, log, strlen(log));
    CHECK(!strcmp(p.version, "2.28.9+cuda13.0"));
    CHECK(p.comms == 1);
    c = &p.comm[0];
    CHECK(c->complete && c->ranks == 4 && c->rank == my_rank && c->nodes == 2 && c->local == 2);
    CHECK(c->mnnvl == 1 && c->coll == 2 && c->nvls == 8 && c->rings == 2);
    CHECK(c->graph[NCCL_GRAPH_RING].channels == 2 && c->graph[NCCL_GRAPH_NVLS].channels == 8);
    CHECK(!strcmp(c->graph[NCCL_GRAPH_RING].type_intra, "NVL"));
    for (int i = 0; i < p.links; i++) {
        domain += p.link[i].via == NCCL_VIA_MNNVL;
        net += p.link[i].via == NCCL_VIA_NET_IB && p.link[i].net == 1 && p.link[i].from == 3;
    }
    CHECK(domain == (my_rank == 3 ? 0 : 1) && net == (my_rank % 3 ? 0 : 1));
    nccl_profile_free(&p);
}

static void one_domain(void)
{
    char text[512];
    nccl_comm c;
    const char *log;

    snprintf(text, sizeof(text), "%sclique 0-3\nnvls 8\nvia 3 0 NET/IB/1\n", racks);
    begin(text);
    load_all(my_rank % 2);
    c = comm_of(0);
    CHECK(sum(c, 1 << 20, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    log = my_log();
    CHECK(lines(log, LINE "MNNVL 1 cliqueId [0-9a-f]+ cliqueSize 4 cliqueRank [0-3]$") == 1);
    CHECK(lines(log, "localRank [01] MNNVL 1$") == 1);
    CHECK(lines(log, "\\] via P2P/MNNVL$") == (my_rank == 3 ? 0 : 2));
    CHECK(lines(log, "3\\[1\\] -> 0\\[0\\] \\[(send|receive)\\] via NET/IB/1$") ==
          (my_rank % 3 ? 0 : 2));
    read_back();
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

static void without_mnnvl(void)
{
    char text[512];
    nccl_comm c;

    snprintf(text, sizeof(text), "%sclique 0-3\n", racks);
    setenv("NCCL_MNNVL_ENABLE", "0", 1);
    setenv("NCCL_NET_GDR_LEVEL", "LOC", 1);
    begin(text);
    load_all(my_rank % 2);
    c = comm_of(0);
    CHECK(sum(c, 1 << 20, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(lines(my_log(), LINE "NCCL_MNNVL_ENABLE set by environment to 0\\.$") == 1);
    CHECK(lines(my_log(), "\\[send\\] via NET/IB/[01]$") == 2);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(the_profile_and_the_environment_say_what_carries_data)
{
    assert_true(ranks_run(4, two_hosts, -1));
    assert_true(ranks_run(4, one_domain, -1));
    assert_true(ranks_run(4, without_mnnvl, -1));
}

/* One host, one variable more: what a ring goes over then. */
static const char *variable, *setting, *over;

static void one_path(void)
{
    nccl_comm c;

    setenv(variable, setting, 1);
    begin(strcmp(variable, "NCCL_HOSTID") ? "pcie * PHB\nchannels 1\n" : "channels 1\n");
    load_all(my_rank);
    c = comm_of(0);
    CHECK(sum(c, 1 << 20, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(lines(my_log(), over) == 1);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

static void two_paths(void)
{
    setenv("NCCL_P2P_DISABLE", "1", 1);
    one_path();
}

TEST(variables_take_paths_away)
{
    static const char *const rows[][3] = {
        {"NCCL_P2P_LEVEL", "PHB", "Channel 00/0 : .*via P2P/CUMEM$"},
        {"NCCL_P2P_LEVEL", "PIX", "Channel 00 : .*via SHM/direct/direct$"},
        {"NCCL_SHM_DISABLE", "1", "\\[send\\] via NET/Socket/0$"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        variable = rows[i][0];
        setting = rows[i][1];
        over = rows[i][2];
        assert_true(ranks_run(2, one_path, -1));
    }
    variable = "NCCL_CUMEM_ENABLE"; /* no more than what NCCL_P2P_DISABLE leaves */
    setting = "0";
    over = "via SHM/direct/direct$";
    assert_true(ranks_run(2, two_paths, -1));
}

/* --- algorithms and protocols --- */
static void choices(void)
{
    nccl_comm c;

    setenv("NCCL_ALGO", "NVLS", 1);
    begin("nvls 8\nalgo AllReduce 1K TREE LL128\n");
    load_all(my_rank);
    c = comm_of(0);
    CHECK(sum(c, 4, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(sum(c, 4, NCCL_UINT8) == NCCL_INVALID_USAGE); /* the switch adds no bytes */
    CHECK(strstr(nccl.GetLastError(c), "no algorithm/protocol available for function AllReduce "
                                       "with datatype ncclUint8. NCCL_ALGO was set to NVLS."));
    CHECK(lines(my_log(), LINE "NCCL_ALGO set by environment to NVLS$") == 1);
    CHECK(lines(my_log(), "AllReduce: 16 Bytes -> Algo NVLS proto SIMPLE channel") == !my_rank);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
    /* The next communicator reads the variables anew. */
    setenv("NCCL_ALGO", "^NVLS", 1);
    c = comm_of(1);
    CHECK(sum(c, 4, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(lines(my_log(), "AllReduce: 16 Bytes -> Algo TREE proto LL128 channel") == !my_rank);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
    setenv("NCCL_ALGO", "PAT", 1); /* one GPU a host only */
    setenv("NCCL_PROTO", "Simple", 1);
    c = comm_of(2);
    CHECK(sum(c, 4, NCCL_FLOAT32) == NCCL_INVALID_USAGE);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

/* FAKE_NCCL_VERSION and what its line of a choice is. */
static const char *old_version, *old_line;

static void old_choices(void)
{
    nccl_comm c;

    setenv("FAKE_NCCL_VERSION", old_version, 1);
    setenv("NCCL_ALGO", "NVLS", 1);
    setenv("NCCL_PROTO", "LL", 1);
    begin("nvls 8\n");
    load_all(my_rank);
    c = comm_of(0);
    CHECK(sum(c, 4, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(!old_line || lines(my_log(), old_line) == !my_rank);
    CHECK(lines(my_log(), "Bytes -> Algo") == (!my_rank && old_line));
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

static void no_such_algorithm(void)
{
    struct nccl_config config;
    nccl_comm c = NULL;

    setenv("NCCL_ALGO", "Star", 1);
    load_all(my_rank);
    nccl_config(&config);
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(0), my_rank, &config) == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(c), "Unrecognized element token \"Star\""));
}

static void no_such_network(void)
{
    struct nccl_config config;
    nccl_comm c = NULL;

    load_all(my_rank);
    nccl_config(&config);
    config.net_name = "IB";
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(0), my_rank, &config) == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(c), "Failed to initialize any NET plugin"));
}

TEST(what_cannot_be_is_refused)
{
    assert_true(ranks_run(3, choices, -1));
    assert_true(ranks_run(1, no_such_algorithm, -1));
    assert_true(ranks_run(1, no_such_network, -1));
}

/* Up to 2.23 Ring is taken; how that is told differs. */
TEST(old_ones_take_ring)
{
    static const char *const old[][2] = {
        {"22304", LINE "AllReduce: 16 Bytes -> Algo 1 proto 0 time [0-9.]+$"},
        {"22105", LINE "16 Bytes -> Algo 1 proto 0 time [0-9.]+$"},
        {"21904", NULL}};

    for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++) {
        old_version = old[i][0];
        old_line = old[i][1];
        assert_true(ranks_run(2, old_choices, -1));
    }
}

/* --- dumps, and a log that is off --- */
static void dumps(void)
{
    nccl_comm c;

    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_TOPO_DUMP_FILE", in_directory("topo.xml"), 1);
    setenv("NCCL_GRAPH_DUMP_FILE", in_directory("graph.xml"), 1);
    setenv("NCCL_DEBUG_FILE", in_directory("quiet.%h.%p"), 1);
    set_profile("nic mlx5_0:1/IB\nchannels 4\n");
    load_all(my_rank);
    c = comm_of(0);
    CHECK(sum(c, 4, NCCL_FLOAT32) == NCCL_SUCCESS && done_within(10));
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
    if (my_rank)
        return;
    CHECK(lines(read_file("topo.xml"), "<gpu dev=\"[01]\" sm=\"90\" rank=\"[01]\" gdr=\"1\">") ==
          2);
    CHECK(lines(read_file("topo.xml"), "<net name=\"mlx5_0\" dev=\"0\"") == 1);
    CHECK(lines(read_file("graph.xml"), "<graph id=\"[01]\" pattern=\"[14]\"") == 2);
    CHECK(lines(read_file("graph.xml"), "<channel>") == 8);
}

TEST(dumps_are_written_and_a_log_can_be_quiet)
{
    assert_true(ranks_run(2, dumps, -1));
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", directory);
    return system(command);
}

TEST_GROUP(make_directory, remove_directory)
