/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_story.h"

static struct story_profile all;

bool story_in(const struct story_set *s, int rank)
{
    return rank >= 0 && rank < STORY_RANKS && (s->in[rank / 8] >> rank % 8 & 1);
}

static bool parse_set(struct story_set *s, const char *text)
{
    memset(s, 0, sizeof(*s));
    if (!strcmp(text, "*")) {
        memset(s, 0xff, sizeof(*s));
        return true;
    }
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (end == text || first < 0)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last >= STORY_RANKS || (*end && *end != ','))
            return false;
        for (long r = first; r <= last; r++)
            s->in[r / 8] |= (unsigned char)(1 << r % 8);
        text = *end ? end + 1 : end;
    }
    return true;
}

static unsigned long long parse_size(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);

    return n << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static bool parse_ring(const char *text)
{
    char *end;

    for (all.rings = 0; *text && all.rings < STORY_RANKS; text = *end ? end + 1 : end) {
        all.ring[all.rings++] = (int)strtol(text, &end, 10);
        if (end == text)
            return false;
    }
    return true;
}

static bool parse_bw(char word[5][64])
{
    static const char *const names[] = {"ring", "tree", "nvls"};

    for (int g = 0; g < STORY_GRAPHS; g++) {
        if (strcmp(word[0], names[g]))
            continue;
        all.bw[g].intra = strtod(word[1], NULL);
        all.bw[g].inter = strtod(word[2], NULL);
        snprintf(all.bw[g].type_intra, sizeof(all.bw[g].type_intra), "%.7s", word[3]);
        snprintf(all.bw[g].type_inter, sizeof(all.bw[g].type_inter), "%.7s", word[4]);
        return *word[4] != '\0';
    }
    return false;
}

#define KEY(name) (!strcmp(key, name))
#define ROOM(count) (all.count < STORY_MAX)

/* `rest`: the line behind its key; word: the same in words. */
static bool parse_line(const char *key, const char *rest, char word[5][64])
{
    if (KEY("host") && ROOM(hosts)) {
        snprintf(all.host[all.hosts].name, 64, "%s", word[1]);
        return parse_set(&all.host[all.hosts++].ranks, word[0]);
    }
    if (KEY("clique") && ROOM(cliques))
        return parse_set(&all.clique[all.cliques++], word[0]);
    if (KEY("pcie") && ROOM(pcies)) {
        snprintf(all.pcie[all.pcies].type, 8, "%.7s", word[1]);
        return parse_set(&all.pcie[all.pcies++].ranks, word[0]);
    }
    if (KEY("nic") && ROOM(nics))
        return snprintf(all.nic[all.nics++], 48, "%.47s", word[0]) > 0;
    if (KEY("socket") && ROOM(sockets))
        return snprintf(all.socket[all.sockets++], 64, "%s", word[0]) > 0;
    if (KEY("plugin"))
        return snprintf(all.plugin, sizeof(all.plugin), "%.31s", rest) > 0;
    if (KEY("nogdr"))
        return parse_set(&all.nogdr, word[0]);
    if (KEY("channels"))
        return (all.channels = (int)strtol(word[0], NULL, 10)) > 0 && all.channels <= 64;
    if (KEY("nvls"))
        return (all.nvls = (int)strtol(word[0], NULL, 10)) >= 0;
    if (KEY("connect"))
        return (all.connect = strtod(word[0], NULL)) >= 0;
    if (KEY("bw"))
        return parse_bw(word);
    if (KEY("ring"))
        return parse_ring(word[0]);
    if (KEY("algo") && ROOM(algos)) {
        snprintf(all.algo[all.algos].op, 16, "%.15s", word[0]);
        snprintf(all.algo[all.algos].algo, 16, "%.15s", word[2]);
        snprintf(all.algo[all.algos].proto, 8, "%.7s", word[3]);
        return (all.algo[all.algos++].bytes = parse_size(word[1])) > 0;
    }
    if (KEY("via") && ROOM(vias)) {
        snprintf(all.via[all.vias].text, 64, "%s", word[2]);
        return parse_set(&all.via[all.vias].from, word[0]) &&
               parse_set(&all.via[all.vias++].to, word[1]);
    }
    return false;
}

static void read_profile(void)
{
    const char *path = getenv("FAKE_NCCL");
    char line[512], key[32], word[5][64];
    FILE *f = path && *path ? fopen(path, "r") : NULL;
    int number = 0, skip;

    all.channels = 16;
    for (int g = 0; g < STORY_GRAPHS; g++) {
        all.bw[g].intra = 30;
        all.bw[g].inter = 45;
        snprintf(all.bw[g].type_intra, 8, "NVL");
        snprintf(all.bw[g].type_inter, 8, "PIX");
    }
    if (path && *path && !f) {
        fprintf(stderr, "fake NCCL: %s cannot be read\n", path);
        abort();
    }
    while (f && fgets(line, sizeof(line), f)) {
        number++;
        line[strcspn(line, "#\n")] = '\0';
        memset(word, 0, sizeof(word));
        if (sscanf(line, "%31s %n", key, &skip) < 1)
            continue;
        sscanf(line + skip, "%63s %63s %63s %63s %63s", word[0], word[1], word[2], word[3],
               word[4]);
        if (!parse_line(key, line + skip, word)) {
            fprintf(stderr, "fake NCCL: %s:%d: \"%s\" is not understood\n", path, number, line);
            abort();
        }
    }
    if (f)
        fclose(f);
    if (!all.sockets)
        snprintf(all.socket[all.sockets++], 64, "lo:127.0.0.1<0>");
}

const struct story_profile *story_profile(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_profile);
    return &all;
}
