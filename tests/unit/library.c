/* SPDX-License-Identifier: BSD-3-Clause */
/* Where libraries of an application are found: environments of Python laid out below a folder of
 * this test's own, with copies of a small library in them. */
#include "kernels/libraries.h"
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/opt.h"

static char top[] = "/tmp/rg-library-XXXXXX";

static const struct library_wanted wanted = {
    "no such thing",
    "RG_TEST_LIBRARY",
    {"librgtest.so.8", "librgtest.so.7"},
    {"nvidia/test/lib", "torch/lib"},
};

static char *below(const char *path)
{
    return path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", top, path);
}

static void put(const char *path, const char *text, size_t len)
{
    char *file = below(path), *folder = file_beside(file, ".");
    struct err err = {0};
    FILE *f;

    if (file_mkdir(folder, &err) < 0)
        fail_msg("%s", err.text);
    f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    free(folder);
    free(file);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

/* The stand-in for libthreads is as good as any. */
static void put_library(const char *path)
{
    const char *build = getenv("RG_BUILD");
    char *from = mem_printf("%s/fake/libthreads.so", build ? build : "build"), *text;
    struct err err = {0};
    size_t len;

    if (file_read(&text, &len, from, 64 << 20, &err) < 0)
        fail_msg("%s", err.text);
    put(path, text, len);
    free(text);
    free(from);
}

static void put_program(const char *path, const char *text)
{
    char *file = below(path);

    put_text(path, text);
    assert_int_equal(chmod(file, 0755), 0);
    free(file);
}

static void put_link(const char *path, const char *to)
{
    char *file = below(path);

    put_text(path, "");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(symlink(to, file), 0);
    free(file);
}

static void set(const char *variable, const char *path)
{
    char *value = path ? below(path) : NULL;

    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
    free(value);
}

/* Nothing of the environment that the test was started in; a python3 of which nothing is known. */
static void forget(void)
{
    static const char *const variables[] = {"RG_TEST_LIBRARY", "PYTHONPATH",     "VIRTUAL_ENV",
                                            "CONDA_PREFIX",    "PYTHONUSERBASE", "HOME"};

    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    set("PATH", "nothing/bin");
}

static void finds(const char *file, const char *by)
{
    struct library_found found;
    struct err err = {0};
    char *path = below(file);
    void *library = library_find(&wanted, &found, &err);

    if (!library)
        fail_msg("%s", err.text);
    assert_string_equal(found.file, path);
    assert_string_equal(found.by, by);
    dlclose(library);
    free(path);
}

TEST(a_file_that_is_named_wins)
{
    struct library_found found;
    struct err err = {0};

    forget();
    put_library("venv/lib/python3.12/site-packages/nvidia/test/lib/librgtest.so.7");
    put_library("mine/any.so");
    set("VIRTUAL_ENV", "venv");
    finds("venv/lib/python3.12/site-packages/nvidia/test/lib/librgtest.so.7", "Python's packages");
    set("RG_TEST_LIBRARY", "mine/any.so");
    finds("mine/any.so", "RG_TEST_LIBRARY");
    set("RG_TEST_LIBRARY", "/no/such.so");
    assert_null(library_find(&wanted, &found, &err));
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_string_equal(err.text, "no such thing: /no/such.so: cannot open shared object file: No "
                                  "such file or directory");
}

TEST(environments_that_are_active_are_searched)
{
    forget();
    put_library("torch/lib/python3.11/site-packages/torch/lib/librgtest.so.8");
    put_library("conda/lib/librgtest.so.7");
    put_text("conda/conda-meta/history", "");
    set("CONDA_PREFIX", "conda");
    finds("conda/lib/librgtest.so.7", "conda");
    set("VIRTUAL_ENV", "torch");
    finds("torch/lib/python3.11/site-packages/torch/lib/librgtest.so.8", "Python's packages");
    set("PYTHONPATH", "target");
    put_library("target/nvidia/test/lib/librgtest.so.7");
    finds("target/nvidia/test/lib/librgtest.so.7", "Python's packages");
}

TEST(the_python_of_the_path_is_followed)
{
    forget();
    put_program("base/bin/python3.10", "\177ELF");
    put_link("base/bin/python3", "python3.10");
    put_library("base/lib/python3.10/site-packages/nvidia/test/lib/librgtest.so.7");
    put_link("links/bin/python3", "../../base/bin/python3.10");
    set("PATH", "links/bin");
    finds("base/lib/python3.10/site-packages/nvidia/test/lib/librgtest.so.7", "Python's packages");
    set("HOME", "home"); /* the user's own go before those of the system */
    put_library("home/.local/lib/python3.10/site-packages/torch/lib/librgtest.so.7");
    finds("home/.local/lib/python3.10/site-packages/torch/lib/librgtest.so.7", "Python's packages");
}

TEST(a_venv_sees_the_system_only_where_it_says_so)
{
    char *with, home[600];
    struct library_found found;
    struct err err = {0};

    forget();
    put_program("sys/bin/python3.9", "\177ELF");
    put_link("sys/bin/python3", "python3.9");
    put_library("sys/lib/python3/dist-packages/nvidia/test/lib/librgtest.so.7");
    put_link("env/bin/python3", "../../sys/bin/python3");
    put_text("env/lib/python3.9/site-packages/README", "");
    snprintf(home, sizeof(home), "home = %s/sys/bin\nversion = 3.9\n", top);
    put_text("env/pyvenv.cfg", home);
    set("PATH", "env/bin");
    assert_null(library_find(&wanted, &found, &err));
    assert_non_null(strstr(err.text, "no such thing: librgtest.so.8: cannot open shared object"));
    assert_non_null(strstr(err.text, "; librgtest.so.7: cannot open shared object"));
    assert_non_null(strstr(err.text, "; nor in nvidia/test/lib, torch/lib of /tmp/rg-library-"));
    assert_non_null(strstr(err.text, "/env/lib/python3.9/site-packages; set RG_TEST_LIBRARY=FILE"));
    with = mem_printf("%sinclude-system-site-packages = true\n", home);
    put_text("env/pyvenv.cfg", with);
    finds("sys/lib/python3/dist-packages/nvidia/test/lib/librgtest.so.7", "Python's packages");
    free(with);
}

TEST(only_a_script_is_asked)
{
    char text[1000];

    forget();
    put_library("hidden/lib/python3.12/site-packages/nvidia/test/lib/librgtest.so.7");
    snprintf(text, sizeof(text), "#!/bin/sh\necho '%s/hidden'\necho /usr/lib/python312.zip\n", top);
    put_program("shims/python3", text);
    set("PATH", "shims");
    finds("hidden/lib/python3.12/site-packages/nvidia/test/lib/librgtest.so.7",
          "Python's packages");
}

TEST(a_file_that_is_none_is_told_and_the_next_one_taken)
{
    struct library_found found;
    struct err err = {0};

    forget();
    put_text("broken/lib/python3.12/site-packages/nvidia/test/lib/librgtest.so.7", "no library");
    set("VIRTUAL_ENV", "broken");
    assert_null(library_find(&wanted, &found, &err));
    assert_non_null(
        strstr(err.text, "site-packages/nvidia/test/lib/librgtest.so.7: file too short"));
    set("PYTHONPATH", "target");
    finds("target/nvidia/test/lib/librgtest.so.7", "Python's packages");
}

TEST(a_folder_is_named_once_and_long_lists_end_in_a_number)
{
    struct library_found found;
    struct err err = {0};
    char *path = NULL;
    struct site site;

    forget();
    for (int i = 0; i < 12; i++) {
        char name[40];
        snprintf(name, sizeof(name), "many/packages%d/README", i);
        put_text(name, "");
        path = mem_append(path, "%s%s/many/packages%d", i ? ":" : "", top, i);
    }
    path = mem_append(path, ":%s/many/packages3:/no/such/folder:", top);
    setenv("PYTHONPATH", path, 1);
    site_find(&site);
    assert_int_equal(site.packages.count, 12);
    assert_int_equal(site.lib.count, 0);
    site_free(&site);
    assert_null(library_find(&wanted, &found, &err));
    assert_non_null(strstr(err.text, "/many/packages0, "));
    assert_non_null(strstr(err.text, " more; set RG_TEST_LIBRARY=FILE"));
    free(path);
}

static void refuses(const char *why)
{
    struct library_found found;
    struct err err = {0};

    assert_null(library_find(&wanted, &found, &err));
    if (!strstr(err.text, why))
        fail_msg("\"%s\" lacks \"%s\"", err.text, why);
}

static void give(const char *path, uid_t user)
{
    char *file = below(path);

    assert_int_equal(lchown(file, user, (gid_t)-1), 0);
    free(file);
}

static void mode(const char *path, mode_t bits)
{
    char *file = below(path);

    assert_int_equal(chmod(file, bits), 0);
    free(file);
}

enum { STRANGER = 65534 };

/* Each way that the environment leads root to a file which another user can change, and beside it the
 * least that makes it root's alone. */
TEST(root_loads_nothing_that_another_user_can_change)
{
    if (geteuid() != 0)
        skip();
    forget();
    put_library("theirs/lib.so");
    set("RG_TEST_LIBRARY", "theirs/lib.so");
    finds("theirs/lib.so", "RG_TEST_LIBRARY");
    give("theirs/lib.so", STRANGER);
    refuses("theirs/lib.so belongs to user 65534; --trust-environment uses it all the same");
    give("theirs/lib.so", 0);
    mode("theirs/lib.so", 0666);
    refuses("theirs/lib.so: other users may write to it");
    mode("theirs/lib.so", 0644);
    mode("theirs", 0777);
    refuses("theirs: other users may rename what is in it");
    mode("theirs", 01777);
    finds("theirs/lib.so", "RG_TEST_LIBRARY");
    give("theirs", STRANGER);
    refuses("theirs belongs to user 65534");
    /* A link of another user leads to root's file now and elsewhere later: what is loaded has no links. */
    put_library("ours/librgtest.so.7");
    put_link("theirs/link.so", "../ours/librgtest.so.7");
    give("theirs/link.so", STRANGER);
    set("RG_TEST_LIBRARY", "theirs/link.so");
    finds("ours/librgtest.so.7", "RG_TEST_LIBRARY");
    set("RG_TEST_LIBRARY", NULL);
    /* Python's packages, and a folder of the loader. */
    put_library("venv2/lib/python3.12/site-packages/nvidia/test/lib/librgtest.so.7");
    set("VIRTUAL_ENV", "venv2");
    give("venv2", STRANGER);
    refuses("venv2 belongs to user 65534");
    set("VIRTUAL_ENV", NULL);
    set("LD_LIBRARY_PATH", "theirs/lib");
    put_library("theirs/lib/librgtest.so.7");
    refuses("theirs belongs to user 65534");
    set("LD_LIBRARY_PATH", "ours");
    finds("ours/librgtest.so.7", "the loader");
    unsetenv("LD_LIBRARY_PATH");
}

/* The folder that root stands in may be anybody's. */
TEST(an_empty_folder_is_the_one_that_root_stands_in)
{
    char *here = getcwd(NULL, 0), *there = below("theirs/lib");

    if (geteuid() != 0)
        skip();
    forget();
    assert_int_equal(chdir(there), 0);
    setenv("LD_LIBRARY_PATH", ":/nothing", 1);
    refuses("theirs belongs to user 65534");
    unsetenv("LD_LIBRARY_PATH");
    assert_int_equal(chdir(here), 0);
    free(there);
    free(here);
}

TEST(root_starts_no_program_that_another_user_can_change)
{
    char *path, text[600];

    if (geteuid() != 0)
        skip();
    forget();
    snprintf(text, sizeof(text), "#!/bin/sh\n>'%s/started'\n", top);
    put_program("tools/python3", text);
    give("tools/python3", STRANGER);
    put_program("next/python3", "\177ELF");
    path = mem_printf("%s/tools:%s/next", top, top);
    setenv("PATH", path, 1);
    char *found = process_find("python3", false), *next = below("next/python3"),
         *mark = below("started");
    assert_string_equal(found, next);
    refuses("librgtest.so.7");
    assert_int_equal(access(mark, F_OK), -1);
    give("tools/python3", 0);
    refuses("librgtest.so.7");
    assert_int_equal(access(mark, F_OK), 0);
    free(mark);
    free(next);
    free(found);
    free(path);
}

/* The owner of a folder in PATH could change a link between the look and the start. */
TEST(root_starts_a_program_by_its_path_without_links)
{
    if (geteuid() != 0)
        skip();
    forget();
    put_program("next/tool", "\177ELF");
    put_link("links/tool", "../next/tool");
    give("links", STRANGER);
    set("PATH", "links");
    char *found = process_find("tool", false), *start = process_find("tool", true);
    char *link = below("links/tool"), *real = below("next/tool");
    assert_string_equal(found, link);
    assert_string_equal(start, real);
    free(found);
    free(start);
    free(link);
    free(real);
}

/* Last, because nothing takes the option back. */
TEST(root_may_trust_the_environment)
{
    char *const argv[] = {"x", "--trust-environment", NULL};
    static const struct opt none[] = {{0}};
    static const struct opt_line line = {.options = none};

    if (geteuid() != 0)
        skip();
    forget();
    set("RG_TEST_LIBRARY", "theirs/lib.so");
    refuses("theirs belongs to user 65534");
    assert_int_equal(opt_parse(&line, 2, (char **)argv, OPT_RETURNS, NULL), 0);
    finds("theirs/lib.so", "RG_TEST_LIBRARY");
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(top) ? 0 : -1;
}

static int end(void **state)
{
    char command[200];

    (void)state;
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof(command), "rm -rf '%s'", top);
    return system(command);
}

TEST_GROUP(begin, end)
