/* SPDX-License-Identifier: BSD-3-Clause */
/* k8s.c - a topology in Kubernetes' terms: names of nodes, levels as labels, trees.
 *
 * Names of nodes are RFC 1123 subdomains (lower case, digits, '-', '.', at most 253 characters):
 * upper case becomes lower case, any other character is refused.  Values of labels have at most 63
 * characters [A-Za-z0-9._-] and begin and end with a letter or digit: runs of other characters
 * become one '-'; a result that is too long or not unique becomes "x" and the FNV-1a 64 of the name
 * in hexadecimal, as topograph writes long names (NVIDIA/topograph 1.0,
 * pkg/engines/k8s/labeler.go).
 *
 * Labels are topograph's: accelerator.topograph.run/domain and sub-domain (racks inside NVLink
 * domains), fabric.topograph.run/tier-0 (leaf, or rack if no leaf is known) and tier-1 (spine);
 * before 1.0 network.topology.nvidia.com/{accelerator,leaf,spine}. */
#include "export/export_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/groups.h"

/* --- names --- */

static bool allowed(char c, bool object)
{
    if (object)
        return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '-';
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* Replace runs of disallowed characters by one '-', and remove it at the ends. */
static char *slug(const char *name, bool object)
{
    char *text = mem_strdup(name);
    size_t n = 0;

    for (; *name; name++) {
        char c = object ? (char)tolower((unsigned char)*name) : *name;
        if (!allowed(c, object))
            c = '-';
        if (c != '-' || allowed(*name, false) || !n || text[n - 1] != '-')
            text[n++] = c;
    }
    while (n && !isalnum((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
    size_t from = 0;
    while (text[from] && !isalnum((unsigned char)text[from]))
        from++;
    memmove(text, text + from, n + 1 - from);
    return text;
}

/* Make a valid and unique name; taken[] holds the names in use.  exact: NULL unless the name can
 * stay unchanged. */
static char *fit(struct names *taken, const char *name, bool object, bool exact)
{
    char *text = slug(name, object);
    int have = taken->count;
    bool good =
        *text && strlen(text) <= (object ? K8S_NAME : K8S_VALUE) && (!exact || !strcmp(text, name));

    if (good && names_add(taken, text) == have)
        return text;
    free(text);
    if (exact)
        return NULL;
    text = mem_printf("x%llx", (unsigned long long)map_text(name)); /* FNV-1a */
    names_add(taken, text);
    return text;
}

/* Names that need no change are fitted first, so that no other name takes them. */
static void fit_all(struct names *taken, char **out, char *const *name, int count, bool object)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++)
            if (!out[i])
                out[i] = fit(taken, name[i], object, pass == 0);
}

static bool rfc1123(const char *name)
{
    size_t len = strlen(name);

    if (!len || len > K8S_NAME || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")])
        return false;
    for (size_t i = 0; i <= len; i++) /* each part begins and ends with a letter or digit */
        if (i == len || name[i] == '.')
            if (!i || !isalnum((unsigned char)name[i - 1]) ||
                (i < len && !isalnum((unsigned char)name[i + 1])))
                return false;
    return isalnum((unsigned char)name[0]) != 0;
}

static int name_nodes(struct k8s *k, struct err *err)
{
    struct names taken = {0};
    int rc = 0;

    k->node = mem_calloc((size_t)k->t->hosts + 1, sizeof(*k->node));
    for (int h = 0; h < k->t->hosts && rc == 0; h++) {
        k->node[h] = mem_strdup(k->t->host[h].name);
        for (char *c = k->node[h]; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        if (!rfc1123(k->node[h]))
            rc = err_data(err,
                          "host \"%.100s\" cannot be a Kubernetes node: names are RFC 1123 "
                          "subdomains (a-z, 0-9, '-' and '.', at most %d characters)",
                          k->t->host[h].name, K8S_NAME);
        else if (names_add(&taken, k->node[h]) != h)
            rc = err_data(err, "two hosts are \"%.100s\" in lower case, as names of nodes are",
                          k->node[h]);
    }
    names_free(&taken);
    return rc;
}

int k8s_object_name(const char **name, const char *ask, struct err *err)
{
    *name = ask ? ask : "railgauge";
    if (rfc1123(*name))
        return 0;
    return err_usage(err,
                     "\"%.100s\" cannot be the name of an object: names are RFC 1123 subdomains "
                     "(a-z, 0-9, '-' and '.', at most %d characters)",
                     *name, K8S_NAME);
}

void k8s_name_objects(struct k8s *k)
{
    struct names taken = {0};

    for (int l = 0; l < k->levels; l++) {
        struct k8s_level *v = &k->level[l];
        char **longer = mem_calloc((size_t)v->groups + 1, sizeof(*longer));
        v->object = mem_calloc((size_t)v->groups + 1, sizeof(*v->object));
        for (int g = 0; g < v->groups; g++) /* level and name together are unique */
            longer[g] = mem_printf("%s-%s", level_name[v->level], v->name[g]);
        for (int g = 0; g < v->groups; g++)
            v->object[g] = fit(&taken, v->name[g], true, true);
        fit_all(&taken, v->object, longer, v->groups, true);
        hostlist_free(longer, v->groups);
    }
    names_free(&taken);
}

/* --- levels --- */

static void level_free(struct k8s_level *v)
{
    free(v->of);
    hostlist_free(v->name, v->groups);
    hostlist_free(v->value, v->groups);
    if (v->object)
        hostlist_free(v->object, v->groups);
}

void k8s_free(struct k8s *k)
{
    for (int l = 0; l < k->levels; l++)
        level_free(&k->level[l]);
    for (int i = 0; i < k->lefts; i++)
        free(k->left[i]);
    if (k->node)
        hostlist_free(k->node, k->t->hosts);
}

static struct k8s_level *find(struct k8s *k, enum level level)
{
    for (int l = 0; l < k->levels; l++)
        if (k->level[l].level == level)
            return &k->level[l];
    return NULL;
}

/* First host of a group of `near` whose group of `far` differs from that of earlier hosts; -1: each
 * group of near lies in a single group of far.  all: hosts must have a group in far. */
static int stray(const struct k8s *k, const struct k8s_level *near, const struct k8s_level *far,
                 bool all)
{
    int *in = mem_calloc((size_t)near->groups + 1, sizeof(*in)), found = -1;

    for (int g = 0; g < near->groups; g++)
        in[g] = -2;
    for (int h = 0; h < k->t->hosts && found < 0; h++) {
        int g = near->of[h], f = far->of[h];
        if (g >= 0 && ((in[g] != -2 && in[g] != f) || (all && f < 0)))
            found = h;
        if (g >= 0)
            in[g] = f;
    }
    free(in);
    return found;
}

static void read_level(struct k8s *k, enum level level)
{
    struct k8s_level v = {.level = level};
    struct names taken = {0};
    int at = k->levels;

    v.of = groups_of_hosts(k->t, level, &v.name, &v.groups);
    if (!v.groups) {
        level_free(&v);
        return;
    }
    v.value = mem_calloc((size_t)v.groups + 1, sizeof(*v.value));
    fit_all(&taken, v.value, v.name, v.groups, false);
    names_free(&taken);
    for (; at > 0 && k->level[at - 1].groups < v.groups; at--)
        k->level[at] = k->level[at - 1];
    k->level[at] = v;
    k->levels++;
}

static void name_labels(struct k8s *k, bool old)
{
    struct k8s_level *domain = find(k, LEVEL_DOMAIN), *rack = find(k, LEVEL_RACK);
    struct k8s_level *leaf = find(k, LEVEL_LEAF), *spine = find(k, LEVEL_SPINE);

    if (domain)
        domain->key =
            old ? "network.topology.nvidia.com/accelerator" : "accelerator.topograph.run/domain";
    if (leaf)
        leaf->key = old ? "network.topology.nvidia.com/leaf" : "fabric.topograph.run/tier-0";
    if (spine)
        spine->key = old ? "network.topology.nvidia.com/spine" : "fabric.topograph.run/tier-1";
    if (rack && domain && !old && stray(k, rack, domain, true) < 0)
        rack->key = "accelerator.topograph.run/sub-domain";
    else if (rack && !leaf && (!spine || stray(k, rack, spine, false) < 0))
        rack->key = old ? "network.topology.nvidia.com/leaf" : "fabric.topograph.run/tier-0";
}

int k8s_make(struct k8s *k, const struct topo *t, const char *release, struct err *err)
{
    static const enum level all[K8S_LEVELS] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};
    double number = 1;

    *k = (struct k8s){.t = t};
    if (release && units_double(&number, release, 0.1, 99, err) < 0)
        return err_wrap(err, "release of topograph");
    if (name_nodes(k, err) < 0)
        return -1;
    for (int l = 0; l < K8S_LEVELS; l++)
        read_level(k, all[l]);
    if (!k->levels)
        return err_set(err, "no NVLink domain, rack, leaf or spine of these hosts is known");
    name_labels(k, number < 1);
    return 0;
}

/* --- trees --- */

static bool groups_any(const struct k8s *k, const struct k8s_level *v)
{
    int *hosts = mem_calloc((size_t)v->groups + 1, sizeof(*hosts));
    bool any = false;

    for (int h = 0; h < k->t->hosts; h++)
        any |= v->of[h] >= 0 && ++hosts[v->of[h]] > 1;
    free(hosts);
    return any;
}

/* Reason why this level cannot be above `near` (NULL: above hosts); NULL: it can. */
static char *no_place(const struct k8s *k, const struct k8s_level *v, const struct k8s_level *near,
                      bool labels)
{
    const char *name = level_name[v->level];

    if (!groups_any(k, v))
        return mem_printf("%s: no two hosts share one", name);
    if (labels && !v->key)
        return mem_printf("%s: topograph has no label for it", name);
    for (int h = 0; labels && h < k->t->hosts; h++)
        if (v->of[h] < 0)
            return mem_printf("%s: not known of %s", name, k->node[h]);
    int h = near ? stray(k, near, v, false) : -1;
    if (h >= 0)
        return mem_printf("%s: %s %s lies in more than one of them, see %s", name,
                          level_name[near->level], near->name[near->of[h]], k->node[h]);
    if (near && near->groups == v->groups && stray(k, v, near, false) < 0)
        return mem_printf("%s: groups hosts as %s does", name, level_name[near->level]);
    return NULL;
}

void k8s_tree(struct k8s *k, bool labels)
{
    int kept = 0;

    for (int l = 0; l < k->levels; l++) {
        char *why = no_place(k, &k->level[l], kept ? &k->level[kept - 1] : NULL, labels);
        if (why) {
            k->left[k->lefts++] = why;
            level_free(&k->level[l]);
        } else {
            k->level[kept++] = k->level[l];
        }
    }
    k->levels = kept;
}

int k8s_complete(const struct k8s *k, const struct export_run *e, bool labels, struct err *err)
{
    int *of = mem_calloc((size_t)k->t->hosts + 1, sizeof(*of));

    for (int h = 0; h < k->t->hosts; h++) {
        of[h] = -1;
        for (int l = 0; l < k->levels && of[h] < 0; l++)
            of[h] = labels && !k->level[l].key ? -1 : k->level[l].of[h];
    }
    int rc = export_complete(e, of, "no place of theirs is known", err);
    free(of);
    return rc;
}

void k8s_comment(FILE *out, const struct k8s *k, const char *what)
{
    fprintf(out, "# %s\n", what);
    for (int i = 0; i < k->lefts; i++)
        fprintf(out, "# left out: %s\n", k->left[i]);
    int sets;
    struct group_set *s = group_sets_above(k->t, &sets);
    for (int i = 0; i < sets; i++)
        fprintf(out, "# left out: %s+%d: wider than a spine, as %s says\n", level_name[s[i].level],
                s[i].above, source_name[s[i].source]);
    group_sets_free(s, sets);
}

void k8s_list_begin(FILE *out)
{
    fputs("apiVersion: v1\nkind: List\nitems:\n", out);
}

void k8s_list_node(FILE *out, const char *node, const struct k8s_label *label, int labels)
{
    export_yaml(out, "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: ", node,
                "\n    labels:\n");
    for (int i = 0; i < labels; i++) {
        fprintf(out, "      %s", label[i].key);
        export_yaml(out, ": ", label[i].value, "\n");
    }
}
