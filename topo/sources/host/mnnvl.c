/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/host/mnnvl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/sources/host/nvml.h"

const char *const mnnvl_word[MNNVL_VERDICTS] = {"none", "inside the host", "good", "bad",
                                                "not visible"};

/* --- reasons of one host's verdict; equal words about several GPUs are one reason --- */

enum { REASONS = 16, REASON = 200 };
struct reasons {
    struct {
        char text[REASON];
        unsigned long long gpus; /* bit: index on the host; 0: the host itself */
        bool links;              /* added while `links` was true */
    } one[REASONS];
    int count;
    bool links; /* reasons added now concern number or speed of NVLinks */
};

/* g NULL: about the host itself. */
__attribute__((format(printf, 3, 4))) static void
reasons_add(struct reasons *r, const struct gpu *g, const char *fmt, ...)
{
    char text[REASON];
    va_list ap;
    int i = 0;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    while (i < r->count && strcmp(r->one[i].text, text) != 0)
        i++;
    if (i == REASONS)
        return;
    if (i == r->count) {
        r->one[i].gpus = 0;
        r->one[i].links = r->links;
        memcpy(r->one[r->count++].text, text, sizeof(text));
    }
    if (g && g->index < 64)
        r->one[i].gpus |= 1ULL << g->index;
}

/* "GPU 2: ", "GPUs 0, 1: ", "all 4 GPUs: ", "" */
static void name_gpus(char *text, size_t len, unsigned long long gpus, int all)
{
    int n = __builtin_popcountll(gpus), at = 0;

    if (len)
        *text = '\0';
    if (n > 1 && n == all) {
        snprintf(text, len, "all %d GPUs: ", n);
        return;
    }
    for (int i = 0; n && i < 64 && at < (int)len; i++)
        if (gpus >> i & 1)
            at += snprintf(text + at, len - (size_t)at, "%s%d",
                           at      ? ", "
                           : n > 1 ? "GPUs "
                                   : "GPU ",
                           i);
    if (n && at < (int)len)
        snprintf(text + at, len - (size_t)at, ": ");
}

/* "GPU 2: ...; all 4 GPUs: ..." of a host with this many GPUs.  links: include reasons about
 * number and speed of NVLinks.  NULL: none.  The caller frees. */
static char *reasons_text(const struct reasons *r, int gpus, bool links)
{
    char *all = NULL;

    for (int i = 0; i < r->count; i++) {
        char who[160];
        if (r->one[i].links && !links)
            continue;
        name_gpus(who, sizeof(who), r->one[i].gpus, gpus);
        all = mem_append(all, "%s%s%s", all ? "; " : "", who, r->one[i].text);
    }
    return all;
}

/* --- bad states --- */

/* False if the source tells of no GPU whether it is registered (NCCL's XML, an old nvidia-smi). */
static bool fabric_told(const struct topo *t)
{
    for (int i = 0; i < t->gpus; i++)
        if (t->gpu[i].state >= 0)
            return true;
    return false;
}

/* rack: part of a rack whose registration the source tells. */
static void judge_fabric(struct reasons *r, const struct gpu *g, bool rack)
{
    static const char *const words[] = {"not supported", "not started", "in progress"};
    char text[REASON];
    int told;

    if (gpu_is_lost(g)) {
        reasons_add(r, g, "%s: it answers no question (nvidia-smi; dmesg names the Xid)",
                    nvml_result_word(g->status));
        return;
    }
    if (g->state != FABRIC_COMPLETED) {
        bool waits = g->state == FABRIC_NOT_STARTED || g->state == FABRIC_IN_PROGRESS;
        if (rack || (waits && g->links > 0))
            reasons_add(r, g, "fabric registration %s%s",
                        g->state < 0 ? "not told" : words[g->state],
                        waits ? " (fabric manager)" : "");
        return;
    }
    if (g->status)
        reasons_add(r, g, "fabric registration completed with an error: %s",
                    nvml_result_word(g->status));
    else if (rack && mnnvl_zero_cluster(g))
        reasons_add(r, g, "cluster UUID is zero: in no domain");
    nvml_health_words(g->health, text, sizeof(text), &told);
    if (*text)
        reasons_add(r, g, "fabric unhealthy: %.150s", text);
    else if (g->summary == 2)
        reasons_add(r, g, "fabric unhealthy, without a reason in its mask");
    if (g->summary == 3)
        reasons_add(r, g, "fabric of limited capacity");
}

static void judge_links(struct reasons *r, const struct gpu *g, const struct mnnvl_facts *f)
{
    int up = gpu_links_up(g), want = f->model[f->gpu_model[g - f->t->gpu]].up, at = 0;
    double speed = f->model[f->gpu_model[g - f->t->gpu]].link_Bps;
    char list[120] = "", is[UNITS_TEXT], should[UNITS_TEXT];

    if (g->links >= 0 && up < want && (g->counted || g->links != want)) {
        reasons_add(r, g, "%d NVLink%s%s where others have %d", up, up == 1 ? "" : "s",
                    g->counted ? "" : " up", want);
    } else if (g->links >= 0 && up < want) {
        for (int i = 0; up && i < GPU_LINKS && at < (int)sizeof(list) - 8; i++)
            if (g->down >> i & 1)
                at += snprintf(list + at, sizeof(list) - (size_t)at, "%s%d", at ? ", " : "", i);
        reasons_add(r, g, "%d of %d NVLinks up%s%s%s", up, want,
                    !at             ? ""
                    : up + 1 < want ? ", links "
                                    : ", link ",
                    list, at ? " down" : "");
    }
    if (g->link_Bps > 0 && g->link_Bps < 0.99 * speed)
        reasons_add(r, g, "NVLinks at %s where others have %s", units_rate_text(is, g->link_Bps),
                    units_rate_text(should, speed));
}

/* Report a GPU in another clique or cluster than most hosts that share its cluster or chassis. */
static void judge_neighbours(struct reasons *r, const struct gpu *g, const struct mnnvl_facts *f)
{
    const struct mnnvl_host_facts *h = &f->host[g->host];
    int domain = f->gpu_domain[g - f->t->gpu];

    if (domain < 0)
        return;
    if (domain != h->domain) {
        reasons_add(r, g, "in clique %lld, the other GPUs of this host are not", g->clique);
        return;
    }
    int cluster = h->cluster < 0 ? -1 : f->cluster_home[h->cluster];
    int chassis = h->chassis < 0 ? -1 : f->chassis_home[h->chassis];
    if (mnnvl_outnumbered(f, domain, cluster))
        reasons_add(r, NULL, "in clique %lld, %d other hosts of its cluster are in clique %s",
                    g->clique, f->domain[cluster].hosts, mnnvl_clique(f, cluster));
    else if (mnnvl_outnumbered(f, domain, chassis))
        reasons_add(r, NULL, "in cluster %s, %d other hosts of its chassis are in %s", g->cluster,
                    f->domain[chassis].hosts, f->names.domains.name[chassis]);
}

static void judge_trial(struct reasons *r, const struct mnnvl_trial *trial, double usual)
{
    const struct {
        int works;
        const char *what;
    } step[] = {
        {trial->allocate, "allocated"}, {trial->export, "exported"}, {trial->import, "imported"}};
    char is[UNITS_TEXT], should[UNITS_TEXT];

    for (int i = 0; i < 3; i++)
        if (step[i].works == 0) {
            reasons_add(r, NULL, "memory with a FABRIC handle is not %s%s%.90s", step[i].what,
                        trial->why[0] ? ": " : "", trial->why);
            break;
        }
    if (trial->Bps > 0 && trial->Bps < 0.8 * usual)
        reasons_add(r, NULL, "measured %s where others have %s", units_rate_text(is, trial->Bps),
                    units_rate_text(should, usual));
}

static void judge_host(struct reasons *r, const struct mnnvl_facts *f, int host)
{
    const struct mnnvl_host_facts *h = &f->host[host];

    r->count = 0;
    r->links = false;
    for (int i = h->first; i < h->first + h->gpus; i++) {
        const struct gpu *g = &f->t->gpu[i];
        judge_fabric(r, g, h->rack && f->told);
        r->links = true;
        judge_links(r, g, f);
        r->links = false;
        judge_neighbours(r, g, f);
        if (g->recovery > 0)
            reasons_add(r, g, "the driver asks to %s", nvml_recovery_word(g->recovery));
    }
    if (h->gpus && h->rack && f->t->gpu[h->first].imex_channels == 0)
        reasons_add(r, NULL,
                    "no IMEX channel that this user may open in /dev/nvidia-caps-imex-channels");
}

/* --- good states, in words --- */

static char *links_text(const struct gpu *g)
{
    char unit[UNITS_TEXT], links[GPU_LINKS_TEXT];

    if (g->links < 0)
        return mem_strdup("NVLinks not told");
    if (gpu_links_up(g) == 0)
        return mem_strdup("no NVLink up");
    if (g->link_Bps > 0)
        return mem_printf("%s at %s", gpu_links_text(g, links), units_rate_text(unit, g->link_Bps));
    return mem_strdup(gpu_links_text(g, links));
}

static char *good_text(const struct gpu *g, int gpus, const struct mnnvl_trial *trial)
{
    char *links = links_text(g), unit[UNITS_TEXT], imex[48] = "IMEX not visible", health[48];
    char measured[UNITS_TEXT + 16] = "";
    int told;

    nvml_health_words(g->health, health, sizeof(health), &told);
    if (g->imex_channels > 0)
        snprintf(imex, sizeof(imex), "%d IMEX channel%s", g->imex_channels,
                 g->imex_channels == 1 ? "" : "s");
    if (trial && trial->Bps > 0)
        snprintf(measured, sizeof(measured), ", measured %s", units_rate_text(unit, trial->Bps));
    char *text =
        mem_printf("%d GPU%s, %s, clique %lld, %s, %s%s%s", gpus, gpus == 1 ? "" : "s", links,
                   g->clique, told || g->summary == 1 ? "healthy" : "health not told", imex,
                   trial && trial->import == 1 ? ", FABRIC memory works" : "", measured);
    free(links);
    return text;
}

/* Reason for the conclusion that the domain is the host. */
static char *inside_text(const struct gpu *g, int gpus)
{
    const char *why = mnnvl_registered(g)
                          ? "the cluster that it is registered in has no other host here"
                      : g->state == FABRIC_COMPLETED ? "the fabric is registered without a cluster"
                      : g->state == FABRIC_NONE      ? "a fabric across hosts is not supported"
                                                     : "no fabric across hosts is told of";
    char *links = links_text(g);
    char *text = mem_printf("%d GPU%s, %s; %s", gpus, gpus == 1 ? "" : "s", links, why);

    free(links);
    return text;
}

static bool links_told(const struct mnnvl_facts *f, int host)
{
    const struct mnnvl_host_facts *h = &f->host[host];

    for (int i = 0; i < h->gpus; i++)
        if (f->t->gpu[h->first + i].links >= 0)
            return true;
    return false;
}

static void set_verdict(struct mnnvl_host *out, const struct mnnvl_facts *f, int host,
                        const struct reasons *r, const struct mnnvl_trial *trial)
{
    const struct mnnvl_host_facts *h = &f->host[host];
    const struct gpu *g = h->gpus ? &f->t->gpu[h->first] : NULL;

    if (r->count) {
        out->verdict = MNNVL_BAD;
        out->why = reasons_text(r, h->gpus, true);
        out->beside = reasons_text(r, h->gpus, false);
    } else if (!g) {
        out->verdict = MNNVL_UNSEEN;
        out->why = mem_strdup("NVML told of no GPU");
    } else if (h->rack && f->told) {
        out->verdict = MNNVL_GOOD;
        out->why = good_text(g, h->gpus, trial);
    } else if (h->inside) {
        out->verdict = MNNVL_INSIDE;
        out->why = inside_text(g, h->gpus);
    } else if (!links_told(f, host)) {
        out->verdict = MNNVL_UNSEEN;
        out->why = mem_printf("%d GPU%s, NVLinks not told", h->gpus, h->gpus == 1 ? "" : "s");
    } else {
        out->verdict = MNNVL_NONE;
        out->why = mem_printf("%d GPU%s without NVLink", h->gpus, h->gpus == 1 ? "" : "s");
    }
}

/* --- oddities of GPUs, hosts and domains that are no verdict on NVLink --- */

__attribute__((format(printf, 2, 3))) static void odd_add(struct mnnvl *m, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    MEM_PUSH(m->odd, m->odds) = mem_strdup(text);
}

static void odd_gpu(struct mnnvl *m, const struct topo *t, const struct gpu *g)
{
    const char *host = t->host[g->host].name;
    char slow[96];

    nvml_throttle_words(g->throttle, slow, sizeof(slow));
    if (*slow)
        odd_add(m, "host %s GPU %d: %s", host, g->index, slow);
    if (g->pcie_width > 0 && g->pcie_width < g->pcie_width_max)
        odd_add(m, "host %s GPU %d: PCIe x%d of x%d", host, g->index, g->pcie_width,
                g->pcie_width_max);
    if (g->ecc_uncorrected > 0)
        odd_add(m, "host %s GPU %d: %lld uncorrected memory error%s since the driver was loaded",
                host, g->index, g->ecc_uncorrected, g->ecc_uncorrected == 1 ? "" : "s");
    if (g->remap == REMAP_PENDING || g->remap == REMAP_FAILED)
        odd_add(m, "host %s GPU %d: remapping of bad memory rows %s", host, g->index,
                g->remap == REMAP_FAILED ? "failed" : "waits for a reset");
}

static void odd_domains(struct mnnvl *m, const struct mnnvl_facts *f)
{
    int *whole = mem_calloc((size_t)f->domains + 1, sizeof(*whole));
    int *parts = mem_calloc((size_t)f->names.clusters.count + 1, sizeof(*parts));
    bool *seen = mem_calloc((size_t)f->domains + 1, sizeof(*seen));

    for (int i = 0; i < f->t->gpus; i++) {
        int d = f->gpu_domain[i];
        if (d < 0)
            continue;
        whole[d] = mnnvl_whole_domain(f->t->gpu[i].model);
        if (!seen[d] && f->host[f->t->gpu[i].host].cluster >= 0)
            parts[f->host[f->t->gpu[i].host].cluster]++;
        seen[d] = true;
    }
    for (int d = 0; d < f->domains; d++)
        if (f->domain[d].gpus < whole[d])
            odd_add(m, "domain %s: %d of %d GPUs are visible", f->names.domains.name[d],
                    f->domain[d].gpus, whole[d]);
    for (int c = 0; c < f->names.clusters.count; c++)
        if (parts[c] > 1)
            odd_add(m, "cluster %s is split into %d cliques: NVLink does not join them",
                    f->names.clusters.name[c], parts[c]);
    free(whole);
    free(parts);
    free(seen);
}

static void odd_hosts(struct mnnvl *m, const struct mnnvl_facts *f)
{
    const struct topo *t = f->t;
    int most = 0;

    for (int h = 0; h < t->hosts; h++)
        most = f->host[h].gpus > most ? f->host[h].gpus : most;
    for (int h = 0; h < t->hosts; h++)
        if (f->host[h].gpus < most)
            odd_add(m, "host %s: %d GPUs where others have %d", t->host[h].name, f->host[h].gpus,
                    most);
    for (int i = 1; i < t->gpus; i++)
        if (*t->gpu[i].driver && *t->gpu[0].driver &&
            strcmp(t->gpu[i].driver, t->gpu[0].driver) != 0) {
            odd_add(m, "drivers differ: %s on %s, %s on %s", t->gpu[0].driver,
                    t->host[t->gpu[0].host].name, t->gpu[i].driver, t->host[t->gpu[i].host].name);
            break;
        }
}

/* Collect sentences about oddities.  Returns how many, at the end, only compare hosts. */
static int odd_all(struct mnnvl *m, const struct mnnvl_facts *f)
{
    for (int i = 0; i < f->t->gpus; i++)
        odd_gpu(m, f->t, &f->t->gpu[i]);
    odd_domains(m, f);
    int own = m->odds;
    if (f->t->gpus)
        odd_hosts(m, f);
    return m->odds - own;
}

/* --- the whole topology --- */

static void summarize(struct mnnvl *m, const struct mnnvl_facts *f)
{
    int of[MNNVL_VERDICTS] = {0};

    for (int i = 0; i < m->hosts; i++)
        of[m->host[i].verdict]++;
    m->bad = of[MNNVL_BAD];
    int domains = f->domains;
    if (!f->t->gpus)
        m->summary = mem_strdup("NVML told of no GPU");
    else if (of[MNNVL_GOOD] + of[MNNVL_BAD] == 0)
        m->summary = mem_strdup(of[MNNVL_INSIDE] ? "NVLink inside the hosts only"
                                : of[MNNVL_NONE] ? "no NVLink"
                                                 : "NVLinks of the GPUs are not told");
    else if (of[MNNVL_GOOD] || domains)
        m->summary =
            mem_printf("%d host%s good, %d bad, %d domain%s across hosts", of[MNNVL_GOOD],
                       of[MNNVL_GOOD] == 1 ? "" : "s", m->bad, domains, domains == 1 ? "" : "s");
    else
        m->summary =
            mem_printf("NVLink inside the hosts: %d good, %d bad", of[MNNVL_INSIDE], m->bad);
}

/* Trial by host; NULL: none made.  The caller frees. */
static const struct mnnvl_trial **trials_of(const struct topo *t, const struct mnnvl_trial *trial,
                                            int trials)
{
    const struct mnnvl_trial **of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int i = trials - 1; i >= 0; i--)
        if (trial[i].host >= 0 && trial[i].host < t->hosts)
            of[trial[i].host] = &trial[i];
    return of;
}

static double usual_Bps(const struct mnnvl_trial *trial, int trials)
{
    double *v = mem_calloc((size_t)trials + 1, sizeof(*v)), usual = 0;
    int n = 0;

    for (int i = 0; i < trials; i++)
        if (trial[i].Bps > 0)
            v[n++] = trial[i].Bps;
    if (n)
        usual = stats_median(v, n);
    free(v);
    return usual;
}

void mnnvl_judge(struct mnnvl *m, const struct topo *t, const struct mnnvl_trial *trial, int trials)
{
    const struct mnnvl_trial **tried = trials_of(t, trial, trials);
    double usual = usual_Bps(trial, trials);
    struct reasons r;
    struct mnnvl_facts f;

    memset(m, 0, sizeof(*m));
    mnnvl_facts_open(&f, t);
    f.told = fabric_told(t);
    m->host = mem_calloc((size_t)t->hosts + 1, sizeof(*m->host));
    m->hosts = t->hosts;
    for (int i = 0; i < t->hosts; i++) {
        judge_host(&r, &f, i);
        if (tried[i])
            judge_trial(&r, tried[i], usual);
        set_verdict(&m->host[i], &f, i, &r, tried[i]);
    }
    free(tried);
    m->compared = odd_all(m, &f);
    summarize(m, &f);
    mnnvl_facts_close(&f);
}

void mnnvl_free(struct mnnvl *m)
{
    for (int i = 0; i < m->hosts; i++) {
        free(m->host[i].why);
        free(m->host[i].beside);
    }
    hostlist_free(m->odd, m->odds);
    free(m->host);
    free(m->summary);
    memset(m, 0, sizeof(*m));
}

json_t *mnnvl_json(const struct mnnvl *m, const struct topo *t)
{
    json_t *hosts = json_array();

    for (int i = 0; i < m->hosts; i++)
        json_array_append_new(hosts,
                              json_pack("{s:s, s:s, s:s}", "host", t->host[i].name, "verdict",
                                        mnnvl_word[m->host[i].verdict], "why", m->host[i].why));
    return json_pack("{s:s, s:i, s:o, s:o}", "summary", m->summary, "bad", m->bad, "hosts", hosts,
                     "odd", json_texts(m->odd, m->odds));
}
