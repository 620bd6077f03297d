/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of NCCL 2.28 about starting a communicator (init.cc, graph/, transport/, plugin/). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "nccl_story.h"

void story_host(char *host, size_t size, int job_rank)
{
    const struct story_profile *p = story_profile();

    if (gethostname(host, size))
        snprintf(host, size, "localhost");
    host[strcspn(host, ".")] = '\0'; /* NCCL too cuts at the first dot */
    for (int i = 0; i < p->hosts; i++)
        if (story_in(&p->host[i].ranks, job_rank))
            snprintf(host, size, "%s", p->host[i].name);
}

long story_param(const char *name, long otherwise)
{
    static struct {
        char name[48];
        long value;
    } known[64];
    static int count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *text = getenv(name);
    long value = text && *text ? strtol(text, NULL, 0) : otherwise;
    int i;

    pthread_mutex_lock(&lock);
    for (i = 0; i < count && strcmp(known[i].name, name); i++)
        ;
    if (i < count) {
        value = known[i].value;
    } else if (count < 64) {
        snprintf(known[count].name, sizeof(known[count].name), "%s", name);
        known[count++].value = value;
        if (text && *text)
            log_info(LOG_ENV, "%s set by environment to %ld.", name, value);
    }
    pthread_mutex_unlock(&lock);
    return value;
}

/* --- paths and what carries data --- */
static const char *const path_names[] = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                         "PXB", "P2C", "PXN", "PHB", "SYS"};

static int path_level(const char *text)
{
    for (int i = 0; i < 10; i++)
        if (!strcasecmp(path_names[i], text))
            return i;
    return -1;
}

static const struct card *card_of(const struct ncclComm *c, int rank)
{
    return &c->table->seat[rank].card;
}

const char *story_path(const struct ncclComm *c, int a, int b)
{
    const struct story_profile *p = story_profile();

    for (int i = 0; i < p->pcies; i++)
        if (story_in(&p->pcie[i].ranks, card_of(c, a)->job_rank) &&
            story_in(&p->pcie[i].ranks, card_of(c, b)->job_rank))
            return p->pcie[i].type;
    return "NVL";
}

/* NCCL_P2P_LEVEL is a path's name, NCCL_P2P_DISABLE the older way to say LOC. */
static bool p2p_allowed(const struct ncclComm *c, int a, int b)
{
    const char *text = getenv("NCCL_P2P_LEVEL");
    int level = text ? path_level(text) : -1;

    if (story_param("NCCL_P2P_DISABLE", 0))
        level = 0;
    if (level < 0)
        level = path_level("PXB");
    return path_level(story_path(c, a, b)) <= level;
}

static bool same_clique(const struct ncclComm *c, int a, int b)
{
    const struct story_profile *p = story_profile();

    for (int i = 0; i < p->cliques; i++)
        if (story_in(&p->clique[i], card_of(c, a)->job_rank) &&
            story_in(&p->clique[i], card_of(c, b)->job_rank))
            return true;
    return false;
}

static bool same_host(const struct ncclComm *c, int a, int b)
{
    return card_of(c, a)->host_hash == card_of(c, b)->host_hash;
}

bool story_near(const struct ncclComm *c, int a, int b)
{
    return same_host(c, a, b) || same_clique(c, a, b);
}

static bool gdr_allowed(const struct ncclComm *c, int rank)
{
    const char *text = getenv("NCCL_NET_GDR_LEVEL");

    return strcmp(c->profile->net, "Socket") && !(text && (!strcmp(text, "LOC") || *text == '0')) &&
           !story_in(&story_profile()->nogdr, card_of(c, rank)->job_rank);
}

static int nic_of(const struct ncclComm *c, int rank)
{
    int nics = strcmp(c->profile->net, "Socket") ? story_profile()->nics : 1;

    return nics > 1 ? card_of(c, rank)->device % nics : 0;
}

void story_via(struct ncclComm *c, int a, int b, char text[80])
{
    const struct story_profile *p = story_profile();

    for (int i = p->vias - 1; i >= 0; i--)
        if (story_in(&p->via[i].from, card_of(c, a)->job_rank) &&
            story_in(&p->via[i].to, card_of(c, b)->job_rank)) {
            snprintf(text, 80, "%s", p->via[i].text);
            return;
        }
    if (c->profile->mnnvl && same_clique(c, a, b))
        snprintf(text, 80, "P2P/MNNVL");
    else if (same_host(c, a, b) && p2p_allowed(c, a, b))
        snprintf(text, 80, story_param("NCCL_CUMEM_ENABLE", 1) ? "P2P/CUMEM" : "P2P/IPC");
    else if (same_host(c, a, b) && !story_param("NCCL_SHM_DISABLE", 0))
        snprintf(text, 80, "SHM/direct/direct");
    else
        snprintf(text, 80, "NET/%s/%d%s", c->profile->net, nic_of(c, c->rank),
                 gdr_allowed(c, c->rank) ? "/GDRDMA" : "");
}

/* --- before the ranks meet --- */
static void list_devices(char *line, size_t size, const char *const item, int count, size_t step)
{
    size_t used = 0;

    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(line + used, size - used, " [%d]%s", i, item + (size_t)i * step);
}

static bool start_ib(void)
{
    const struct story_profile *p = story_profile();
    const char *wanted = getenv("NCCL_IB_HCA");
    static _Atomic int told;
    char line[1024] = "";

    if (story_param("NCCL_IB_DISABLE", 0))
        return false;
    if (wanted && !atomic_exchange(&told, 1))
        log_info(LOG_NET | LOG_ENV, "NCCL_IB_HCA set to %s", wanted);
    if (!p->nics) {
        log_info(LOG_INIT | LOG_NET, "NET/IB : No device found.");
        return false;
    }
    list_devices(line, sizeof(line), p->nic[0], p->nics, sizeof(p->nic[0]));
    log_info(LOG_INIT | LOG_NET, "NET/IB : Using%s [RO]; OOB %s", line, p->socket[0]);
    return true;
}

static bool start_socket(void)
{
    const struct story_profile *p = story_profile();
    char line[1024] = "";

    list_devices(line, sizeof(line), p->socket[0], p->sockets, sizeof(p->socket[0]));
    log_info(LOG_INIT | LOG_NET, "NET/Socket : Using%s", line);
    return true;
}

/* The first network that is wanted and starts: a plugin, IB, sockets. */
static int choose_net(struct ncclComm *c)
{
    const struct story_profile *p = story_profile();
    const char *wanted = getenv("NCCL_NET") ? getenv("NCCL_NET") : c->net_name;
    bool up;

    if (getenv("NCCL_NET"))
        log_info(LOG_ENV, "Comm config netName reset to NCCL_NET=%s", wanted);
    up = *p->plugin && (!*wanted || !strcasecmp(wanted, p->plugin));
    if (up)
        snprintf(c->profile->net, sizeof(c->profile->net), "%s", p->plugin);
    if (!up && (!*wanted || !strcasecmp(wanted, "IB")) && (up = start_ib()))
        snprintf(c->profile->net, sizeof(c->profile->net), "IB");
    if (!up && (!*wanted || !strcasecmp(wanted, "Socket")) && (up = start_socket()))
        snprintf(c->profile->net, sizeof(c->profile->net), "Socket");
    if (!up) {
        log_warn("Failed to initialize any NET plugin");
        return NCCL_INVALID_USAGE;
    }
    log_info(LOG_INIT | LOG_NET, "Initialized NET plugin %s", c->profile->net);
    log_info(LOG_INIT | LOG_NET, "Assigned NET plugin %s to comm", c->profile->net);
    log_info(LOG_INIT, "Using network %s", c->profile->net);
    return NCCL_SUCCESS;
}

static void tell(const struct ncclComm *c, const char *what)
{
    if (c->parent) {
        log_info(
            LOG_INIT,
            "ncclCommSplit comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %lx parent %p "
            "splitCount %u color %d key %d%s- Init %s",
            (const void *)c, c->rank, c->ranks, c->self.device, c->self.nvml_device,
            (unsigned long)c->self.bus, (const void *)c->parent, c->parent->splits, c->color,
            c->key, *what == 'S' ? "" : " ", what);
        return;
    }
    log_info(LOG_INIT,
             "ncclCommInitRankConfig comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %lx "
             "commId 0x%llx - Init %s",
             (const void *)c, c->rank, c->ranks, c->self.device, c->self.nvml_device,
             (unsigned long)c->self.bus, (unsigned long long)c->hash, what);
}

int story_start(struct ncclComm *c)
{
    static _Atomic int first;
    const char *host = getenv("NCCL_HOSTID");

    c->profile = calloc(1, sizeof(*c->profile));
    if (!c->profile)
        return NCCL_SYSTEM;
    if (!atomic_exchange(&first, 1)) {
        log_info(LOG_INIT, "cudaDriverVersion 13000");
        if (getenv("NCCL_SOCKET_IFNAME"))
            log_info(LOG_ENV, "NCCL_SOCKET_IFNAME set by environment to %s",
                     getenv("NCCL_SOCKET_IFNAME"));
        log_info(LOG_BOOTSTRAP, "Bootstrap: Using %s", story_profile()->socket[0]);
        if (host)
            log_info(LOG_ENV, "NCCL_HOSTID set by environment to %s", host);
    }
    if (choose_net(c))
        return NCCL_INVALID_USAGE;
    log_info(LOG_INIT, "DMA-BUF is available on GPU device %d", c->self.device);
    tell(c, "START");
    return NCCL_SUCCESS;
}

/* --- after they met --- */
/* Place in the profile's ring; ranks that it does not name follow in their order. */
static int ring_place(const struct ncclComm *c, int rank)
{
    const struct story_profile *p = story_profile();

    for (int i = 0; i < p->rings; i++)
        if (p->ring[i] == card_of(c, rank)->job_rank)
            return i;
    return p->rings + rank;
}

static void make_ring(struct ncclComm *c)
{
    for (int r = 0; r < c->ranks; r++) {
        int before = 0;

        for (int o = 0; o < c->ranks; o++)
            before += ring_place(c, o) < ring_place(c, r);
        c->profile->at[r] = before;
        c->profile->order[before] = r;
    }
}

static void count_nodes(struct ncclComm *c)
{
    struct profile *p = c->profile;

    for (int r = 0; r < c->ranks; r++) {
        int first = r, here = 0;

        for (int o = 0; o < c->ranks; o++) {
            here += same_host(c, r, o);
            if (o < first && same_host(c, r, o))
                first = o;
        }
        p->nodes += first == r;
        p->most_local = here > p->most_local ? here : p->most_local;
        p->local_ranks += same_host(c, r, c->rank);
        p->local_rank += r < c->rank && same_host(c, r, c->rank);
        /* One clique over several hosts makes the whole communicator one with MNNVL. */
        p->mnnvl |= same_clique(c, r, c->rank) && !same_host(c, r, c->rank);
    }
    p->mnnvl &= story_param("NCCL_MNNVL_ENABLE", 2) != 0 && !story_param("NCCL_P2P_DISABLE", 0);
}

static void tell_clique(const struct ncclComm *c)
{
    int size = 0, place = 0;

    for (int r = 0; r < c->ranks; r++) {
        size += same_clique(c, r, c->rank);
        place += r < c->rank && same_clique(c, r, c->rank);
    }
    log_info(LOG_INIT, "MNNVL %d cliqueId %x cliqueSize %d cliqueRank %d", 1, 1, size, place);
}

static void tell_graph(const struct ncclComm *c, enum story_graph g, int pattern)
{
    const struct story_profile *p = story_profile();
    const struct profile *mine = c->profile;
    int channels = g == STORY_NVLS ? mine->nvls : mine->channels;
    const char *intra = mine->local_ranks > 1 ? story_path(c, c->rank, c->rank) : "LOC";

    if (!strcmp(intra, "NVL"))
        intra = p->bw[g].type_intra;
    log_info(LOG_GRAPH,
             "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, sameChannels %d",
             pattern, 0, channels, p->bw[g].intra, mine->nodes > 1 ? p->bw[g].inter : 0.0, intra,
             mine->nodes > 1 ? p->bw[g].type_inter : "PIX", g != STORY_NVLS);
    for (int i = 0; i < channels; i++) {
        char line[1024];
        int n = snprintf(line, sizeof(line), "%2d :", i);

        if (mine->nodes > 1)
            n += snprintf(line + n, sizeof(line) - (size_t)n, " NET/0-%x", nic_of(c, c->rank));
        for (int r = 0; r < c->ranks && n < 900; r++)
            if (same_host(c, r, c->rank))
                n += snprintf(line + n, sizeof(line) - (size_t)n, " GPU/0-%lx",
                              (unsigned long)card_of(c, r)->bus);
        if (mine->nodes > 1)
            snprintf(line + n, sizeof(line) - (size_t)n, " NET/0-%x", nic_of(c, c->rank));
        log_info(LOG_GRAPH, "%s", line);
    }
}

static void tell_rings(const struct ncclComm *c)
{
    const struct profile *p = c->profile;
    int n = c->ranks, at = p->at[c->rank], used = 0;
    char line[1024] = "";

    for (int i = 0; c->rank == 0 && i < p->channels; i++) {
        int digits = snprintf(NULL, 0, "%d", n - 1);

        used = snprintf(line, 128, "Channel %02d/%02d :", i, p->channels);
        for (int r = 0; r < n && used < 127; r++)
            used += snprintf(line + used, 128 - (size_t)used, " %*d", digits,
                             p->order[(p->at[0] + r) % n]);
        if (used >= 128)
            memcpy(line + 124, "...", 4);
        log_info(LOG_INIT, "%s", line);
    }
    used = 0;
    for (int i = 0; i < p->channels; i++) {
        log_info(LOG_GRAPH, "Ring %02d : %d -> %d -> %d", i, p->order[(at + n - 1) % n], c->rank,
                 p->order[(at + 1) % n]);
        if (used < 1000)
            used +=
                snprintf(line + used, sizeof(line) - (size_t)used, " [%d] %d/-1/-1->%d->%d", i,
                         at + 1 < n ? p->order[at + 1] : -1, c->rank, at ? p->order[at - 1] : -1);
    }
    log_info(LOG_INIT, "Trees%s", line);
}

static int make_room(struct ncclComm *c)
{
    struct profile *p = c->profile;
    size_t n = (size_t)c->ranks;

    p->order = calloc(n, sizeof(*p->order));
    p->at = calloc(n, sizeof(*p->at));
    p->sent = calloc(n, 1);
    p->received = calloc(n, 1);
    return p->order && p->at && p->sent && p->received ? NCCL_SUCCESS : NCCL_SYSTEM;
}

int story_complete(struct ncclComm *c)
{
    struct profile *p = c->profile;
    int rc = make_room(c);

    if (rc)
        return rc;
    p->channels = story_profile()->channels;
    if (story_param("NCCL_MAX_NCHANNELS", 64) < p->channels)
        p->channels = (int)story_param("NCCL_MAX_NCHANNELS", 64);
    p->nvls = c->ranks > 2 && story_param("NCCL_NVLS_ENABLE", 2) ? story_profile()->nvls : 0;
    count_nodes(c);
    make_ring(c);
    if (p->mnnvl)
        tell_clique(c);
    log_info(LOG_INIT, "NVLS multicast support is %savailable on dev %d (NVLS_NCHANNELS %d)",
             p->nvls ? "" : "not ", c->self.device, p->nvls);
    tell_graph(c, STORY_RING, 4);
    tell_graph(c, STORY_TREE, 1);
    if (p->nvls)
        tell_graph(c, STORY_NVLS, 5);
    story_dump(c);
    log_info(LOG_INIT, "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL %d",
             (void *)c, c->rank, c->ranks, p->nodes, p->local_ranks, p->local_rank, p->mnnvl);
    tell_rings(c);
    log_info(LOG_INIT, "P2P Chunksize set to %d", p->nodes > 1 ? 131072 : 524288);
    if (!story_param("NCCL_RUNTIME_CONNECT", 1)) {
        story_connect_rings(c);
        story_connect_trees(c);
    }
    if ((rc = story_choices(c)))
        return rc;
    log_info(LOG_INIT, "threadThresholds 8/8/64 | %d/8/64 | 512 | 512", 8 * c->ranks);
    log_info(LOG_INIT,
             "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p "
             "channels per peer",
             p->channels, p->channels, p->nvls, p->channels, p->nodes > 1 ? 2 : p->channels);
    tell(c, "COMPLETE");
    log_info(LOG_INIT | LOG_PROFILE,
             "Init timings - %s: rank %d nranks %d total 0.01 (kernels 0.00, "
             "alloc 0.00, bootstrap 0.01, allgathers 0.00, topo 0.00, graphs 0.00, connections "
             "0.00, rest 0.00)",
             c->parent ? "ncclCommSplit" : "ncclCommInitRankConfig", c->rank, c->ranks);
    return NCCL_SUCCESS;
}

void story_free(struct ncclComm *c)
{
    struct profile *p = c->profile;

    c->profile = NULL;
    if (!p)
        return;
    free(p->order);
    free(p->at);
    free(p->sent);
    free(p->received);
    free(p);
}
