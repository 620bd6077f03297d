/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/site.h"

void *library_open(const char *const *names, const char *what, const char **name, struct err *err)
{
    char why[400] = "";
    size_t used = 0;

    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) {
            if (name)
                *name = names[i];
            return library;
        }
        const char *said = dlerror();
        if (used < sizeof(why))
            used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%.160s", i ? "; " : "",
                                     said ? said : names[i]);
    }
    err_config(err, "%s%s%s", what ? what : "", what ? ": " : "", why);
    return NULL;
}

void library_file(void *library, char *file, size_t size)
{
    struct link_map *map = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) || !map)
        *file = '\0';
    else
        snprintf(file, size, "%s", map->l_name);
}

/* What was tried and what was said of it. */
struct search {
    const struct library_wanted *wanted;
    char *said;   /* the loader's words */
    char *places; /* folders without such a file */
    int more;     /* of them, not named */
};

static void *try_file(struct search *s, const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();

    if (!library && (!s->said || strlen(s->said) < 200))
        s->said = mem_append(s->said, "%s%.200s", s->said ? "; " : "", why ? why : file);
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

/* Long lists end in a number: an error is one sentence. */
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
    const char *file = getenv(w->variable);
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

int library_resolve(void *api, void *library, const struct library_call *calls, size_t n,
                    int version, const char *name, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(library, calls[i].symbol);
        if (!symbol && calls[i].since == LIBRARY_NEEDED)
            return err_config(err, "%s has no %s", name, calls[i].symbol);
        if (version < calls[i].since)
            symbol = NULL;
        /* ISO C has no cast from an object pointer to a function pointer; POSIX says that the
         * bytes are the same. */
        memcpy((char *)api + calls[i].at, &symbol, sizeof(symbol));
    }
    return 0;
}
