/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/libraries.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

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
    char *python = process_find("python3");

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
