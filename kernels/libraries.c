/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
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

/* --- folders of Python --- */

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Add a folder unless it is in the list under any link (lib64 of a venv is one). */
static void add_folder(struct words *list, const char *path)
{
    char *real = is_folder(path) ? realpath(path, NULL) : NULL;
    bool known = !real;

    for (int i = 0; !known && i < list->count; i++) {
        char *other = realpath(list->word[i], NULL);
        known = other && !strcmp(other, real);
        free(other);
    }
    if (!known)
        words_add(list, "%s", path);
    free(real);
}

/* Add the folders that match PREFIX/BELOW, a pattern of glob(); the prefix is taken literally. */
static void add_pattern(struct words *list, const char *prefix, const char *below)
{
    char *literal = mem_calloc(2 * strlen(prefix) + 1, 1), *out = literal;
    glob_t found;

    for (const char *p = prefix; *p; p++) {
        if (strchr("*?[\\", *p))
            *out++ = '\\';
        *out++ = *p;
    }
    char *pattern = mem_printf("%s%s", literal, below);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_folder(list, found.gl_pathv[i]);
        globfree(&found);
    }
    free(pattern);
    free(literal);
}

static void add_prefix(struct site *s, const char *prefix)
{
    static const char *const below[] = {
        "/lib/python3*/site-packages", "/lib64/python3*/site-packages",
        "/lib/python3/dist-packages", "/local/lib/python3*/dist-packages"};

    for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++)
        add_pattern(&s->packages, prefix, below[i]);
    char *conda = file_join(prefix, "conda-meta"), *lib = file_join(prefix, "lib");
    if (is_folder(conda))
        add_folder(&s->lib, lib);
    free(conda);
    free(lib);
}

static void add_users_own(struct site *s)
{
    const char *base = secure_getenv("PYTHONUSERBASE"), *home = secure_getenv("HOME");

    if (base && *base) {
        add_pattern(&s->packages, base, "/lib/python3*/site-packages");
    } else if (home && *home) {
        char *local = file_join(home, ".local");
        add_pattern(&s->packages, local, "/lib/python3*/site-packages");
        free(local);
    }
}

/* Value of `key = value` in a pyvenv.cfg; NULL: missing.  The caller frees. */
static char *setting(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *rest = line + strspn(line, " \t");
        if (strncasecmp(rest, key, len) != 0)
            continue;
        rest += len + strspn(rest + len, " \t");
        if (*rest != '=')
            continue;
        rest += 1 + strspn(rest + 1, " \t");
        return mem_strndup(rest, strcspn(rest, "\r\n"));
    }
    return NULL;
}

/* Parent of the folder that contains the file; the caller frees. */
static char *prefix_of(const char *file)
{
    char *bin = file_beside(file, ".."), *prefix = realpath(bin, NULL);

    free(bin);
    return prefix;
}

/* Add a venv's packages, and those of its base Python if it includes them. */
static bool add_venv(struct site *s, const char *prefix)
{
    char *path = file_join(prefix, "pyvenv.cfg"), *text = NULL;
    bool is_venv = file_read(&text, NULL, path, 1 << 16, NULL) == 0;

    free(path);
    if (!is_venv)
        return false;
    add_prefix(s, prefix);
    char *system = setting(text, "include-system-site-packages"), *home = setting(text, "home");
    if (system && !strcasecmp(system, "true")) {
        char *python = home ? file_join(home, "python3") : NULL;
        char *real = python ? realpath(python, NULL) : NULL, *base = real ? prefix_of(real) : NULL;
        add_users_own(s);
        if (base)
            add_prefix(s, base);
        free(base);
        free(real);
        free(python);
    }
    free(system);
    free(home);
    free(text);
    return true;
}

/* Run the script's Python, which alone knows where its packages are. */
static void ask_python(struct site *s, const char *python)
{
    static const char program[] = "import sys\n"
                                  "print('\\n'.join([sys.prefix] + sys.path))";
    char *text = NULL, *rest, *line;
    size_t len;

    if (process_output(&text, &len, (const char *const[]){python, "-c", program, NULL}, 1 << 16, 2,
                       NULL) < 0)
        return;
    rest = text;
    if ((line = strsep(&rest, "\n")) != NULL)
        add_prefix(s, line);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strstr(line, "-packages"))
            add_folder(&s->packages, line);
    free(text);
}

static bool is_script(const char *path)
{
    char head[2] = "";
    FILE *f = fopen(path, "re");
    bool script = f && fread(head, 1, 2, f) == 2 && !memcmp(head, "#!", 2);

    if (f)
        fclose(f);
    return script;
}

static void add_python(struct site *s, const char *python)
{
    char *prefix = prefix_of(python), *real = realpath(python, NULL);

    if (is_script(python)) {
        ask_python(s, python);
    } else if (!prefix || !add_venv(s, prefix)) {
        char *base = real ? prefix_of(real) : NULL;
        add_users_own(s);
        if (base)
            add_prefix(s, base);
        free(base);
    }
    free(real);
    free(prefix);
}

static void add_python_path(struct site *s)
{
    const char *path = secure_getenv("PYTHONPATH");
    char *list = mem_strdup(path ? path : ""), *rest = list, *folder;

    while ((folder = strsep(&rest, ":")) != NULL)
        if (*folder)
            add_folder(&s->packages, folder);
    free(list);
}

void site_find(struct site *s)
{
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    char *python = process_find("python3", false);

    *s = (struct site){0};
    add_python_path(s);
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        const char *prefix = secure_getenv(variables[i]);
        if (prefix && *prefix && !add_venv(s, prefix))
            add_prefix(s, prefix);
    }
    if (python)
        add_python(s, python);
    free(python);
}

void site_free(struct site *s)
{
    words_free(&s->packages);
    words_free(&s->lib);
}

/* --- libraries --- */

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
