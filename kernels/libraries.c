/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* --- the loader --- */

int library_resolve(void *api, void *library, const struct library_call *calls, size_t n,
                    int version, const char *name, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(library, calls[i].symbol);
        if (!symbol && calls[i].since == LIBRARY_NEEDED)
            return err_config(err, "%s has no %s", name, calls[i].symbol);
        if (version < calls[i].since)
            symbol = NULL;
        /* ISO C cannot cast an object pointer to a function pointer; POSIX: equal bytes. */
        memcpy((char *)api + calls[i].at, &symbol, sizeof(symbol));
    }
    return 0;
}

const struct library_wanted libraries[LIBRARY_IDS] = {
    [LIBRARY_CUDA] = {"the CUDA driver cannot be loaded",
                      "RAILGAUGE_CUDA",
                      {"libcuda.so.1"},
                      {NULL}},
    [LIBRARY_NVML] = {NULL, "RAILGAUGE_NVML", {"libnvidia-ml.so.1"}, {NULL}},
    [LIBRARY_NCCL] = {"NCCL cannot be loaded",
                      "RAILGAUGE_NCCL",
                      {"libnccl.so.2"},
                      {"nvidia/nccl/lib", "torch/lib"}},
    [LIBRARY_CUBLASLT] = {"no cuBLASLt",
                          "RAILGAUGE_CUBLASLT",
                          {"libcublasLt.so.13", "libcublasLt.so.12"},
                          {"nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"}},
    [LIBRARY_IBVERBS] = {"libibverbs cannot be loaded",
                         "RAILGAUGE_IBVERBS",
                         {"libibverbs.so.1"},
                         {NULL}},
};

static void library_file(void *library, char *file, size_t size)
{
    struct link_map *map = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) || !map)
        *file = '\0';
    else
        snprintf(file, size, "%s", map->l_name);
}

/* Places tried, and the loader's messages. */
struct search {
    const struct library_wanted *wanted;
    char *said;   /* messages of the loader */
    char *places; /* folders without such a file */
    int more;     /* number of further folders, not named */
};

/* Return the file that the loader of root takes for a name because of LD_LIBRARY_PATH, which must
 * pass file_for_root(), or the name.  The caller frees. */
static char *file_of(const char *name)
{
    const char *path = geteuid() == 0 ? secure_getenv("LD_LIBRARY_PATH") : NULL;
    char *list = path && *path && !strchr(name, '/') ? mem_strdup(path) : NULL, *rest = list;
    char *file = NULL, *folder;

    while (!file && (folder = strsep(&rest, ":;")) != NULL) {
        file = file_join(*folder ? folder : ".", name);
        if (access(file, F_OK) != 0) {
            free(file);
            file = NULL;
        }
    }
    free(list);
    return file ? file : mem_strdup(name);
}

static void *try_file(struct search *s, const char *name)
{
    struct err refused;
    char *file = file_of(name);
    char *code = strchr(file, '/') ? file_for_root(file, &refused) : mem_strdup(file);
    void *library = code ? dlopen(code, RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *why = library ? NULL : code ? dlerror() : refused.text;

    if (!library && (!s->said || strlen(s->said) < 200))
        s->said = mem_append(s->said, "%s%.300s", s->said ? "; " : "", why ? why : name);
    free(code);
    free(file);
    return library;
}

static void *try_folder(struct search *s, const char *folder, const char *below)
{
    void *library = NULL;

    for (int i = 0; s->wanted->names[i] && !library; i++) {
        char *file = mem_printf("%s%s%s/%s", folder, *below ? "/" : "", below, s->wanted->names[i]);
        if (access(file, F_OK) == 0)
            library = try_file(s, file);
        free(file);
    }
    return library;
}

/* Add a folder; a long list ends in a number, because an error is one sentence. */
static void note_place(struct search *s, const char *folder)
{
    if (s->places && strlen(s->places) + strlen(folder) > 160)
        s->more++;
    else
        s->places = mem_append(s->places, "%s%s", s->places ? ", " : "", folder);
}

static void *try_packages(struct search *s, const struct words *packages)
{
    void *library = NULL;

    for (int i = 0; i < packages->count && !library; i++) {
        note_place(s, packages->word[i]);
        for (int f = 0; s->wanted->folder[f] && !library; f++)
            library = try_folder(s, packages->word[i], s->wanted->folder[f]);
    }
    return library;
}

static void *try_libs(struct search *s, const struct words *libs)
{
    void *library = NULL;

    for (int i = 0; i < libs->count && !library; i++) {
        note_place(s, libs->word[i]);
        library = try_folder(s, libs->word[i], "");
    }
    return library;
}

static void *try_site(struct search *s, const char **by)
{
    struct site site;
    void *library;

    site_find(&site);
    *by = "Python's packages";
    library = try_packages(s, &site.packages);
    if (!library) {
        *by = "conda";
        library = try_libs(s, &site.lib);
    }
    site_free(&site);
    return library;
}

static void not_found(const struct search *s, struct err *err)
{
    const struct library_wanted *w = s->wanted;
    char *text = mem_strdup(s->said ? s->said : "");

    for (int i = 0; s->places && w->folder[i]; i++)
        text = mem_append(text, "%s%s", i ? ", " : "; nor in ", w->folder[i]);
    if (s->places)
        text = mem_append(text, " of %s", s->places);
    if (s->more)
        text = mem_append(text, " and %d more", s->more);
    if (w->folder[0])
        text = mem_append(text, "; set %s=FILE", w->variable);
    err_config(err, "%s%s%s", w->what ? w->what : "", w->what ? ": " : "", text);
    free(text);
}

void *library_find(const struct library_wanted *w, struct library_found *found, struct err *err)
{
    const char *file = secure_getenv(w->variable);
    struct search s = {.wanted = w};
    void *library = NULL;

    if (file && *file) {
        found->by = w->variable;
        library = try_file(&s, file);
        if (!library)
            err_config(err, "%s%s%s", w->what ? w->what : "", w->what ? ": " : "", s.said);
    } else {
        found->by = "the loader";
        for (int i = 0; w->names[i] && !library; i++)
            library = try_file(&s, w->names[i]);
        if (!library && w->folder[0])
            library = try_site(&s, &found->by);
        if (!library)
            not_found(&s, err);
    }
    if (library)
        library_file(library, found->file, sizeof(found->file));
    free(s.said);
    free(s.places);
    return library;
}

/* Number after ".so.". */
static int number_of(const char *name)
{
    const char *at = strstr(name, ".so.");

    return at ? atoi(at + 4) : 0;
}

void *libraries_open(enum library_id id, int cuda_version, struct library_found *found,
                     struct err *err)
{
    struct library_wanted wanted = libraries[id];
    int out = 0;

    if (id == LIBRARY_CUBLASLT && cuda_version) {
        memset(wanted.names, 0, sizeof(wanted.names));
        for (int i = 0; libraries[id].names[i]; i++)
            if (number_of(libraries[id].names[i]) <= cuda_version / 1000)
                wanted.names[out++] = libraries[id].names[i];
    }
    return library_find(&wanted, found, err);
}
