/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of whole machines against what NCCL's own code says of the same files (goldens), and
 * foreign XML within bounds. */

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"
#include "topo/sources/nccl/nccl_log.h"

static void one_machine(const char *xml, const char *golden)
{
    struct err err = {0};
    struct nccl_paths p;
    char *text, *save = NULL;
    size_t len;
    int g = -1;
    const struct nccl_route *row = NULL;
    int columns = 0;

    if (nccl_xml_load(&p, xml, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(file_read(&text, &len, golden, 1 << 24, &err), 0);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!strncmp(line, "GPU->", 5)) {
            if (g >= 0)
                assert_int_equal(g, p.gpus);
            bool net = !strcmp(line, "GPU->NET");
            row = net ? p.nic : p.pair;
            columns = net ? p.nets : p.gpus;
            g = 0;
            continue;
        }
        char *cell, *inner = NULL, want[32];
        int c = 0;
        assert_true(g < p.gpus);
        strtok_r(line, " ", &inner);
        while ((cell = strtok_r(NULL, " ", &inner))) {
            assert_true(c < columns);
            const struct nccl_route *r = &row[g * columns + c++];
            snprintf(want, sizeof(want), "%s/%.1f", nccl_path_type_name[r->type], r->Bps / 1e9);
            if (strcmp(cell, want) != 0)
                fail_msg("%s: GPU %d column %d: %s, NCCL says %s", xml, g, c - 1, want, cell);
        }
        assert_int_equal(c, columns);
        g++;
    }
    assert_int_equal(g, p.gpus);
    free(text);
    nccl_paths_free(&p);
}

/* Every NAME.xml with a NAME.paths.txt; returns how many there were. */
static int folder(const char *xml_dir, const char *golden_dir)
{
    char *pattern = mem_printf("%s/*.paths.txt", golden_dir);
    glob_t found;
    int n = 0;

    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *base = strrchr(found.gl_pathv[i], '/') + 1;
            char *xml =
                mem_printf("%s/%.*s.xml", xml_dir, (int)(strstr(base, ".paths") - base), base);
            if (access(xml, R_OK) == 0) {
                one_machine(xml, found.gl_pathv[i]);
                n++;
            }
            free(xml);
        }
        globfree(&found);
    }
    free(pattern);
    return n;
}

TEST(paths_are_nccls)
{
    assert_int_equal(folder("tests/golden/nccl", "tests/golden/nccl"), 5);
}

TEST(paths_of_more_machines)
{
    if (access("../shared/fixtures/nccl-topo", R_OK) != 0)
        skip();
    int n = folder("../shared/fixtures/nccl-topo/synthetic", "../shared/fixtures/nccl-topo/golden");
    n += folder("../shared/fixtures/nccl-topo", "../shared/fixtures/nccl-topo/golden");
    assert_true(n >= 8);
}

/* Files of clouds and of AMD's library have no GPU ranks: they are read, and there is no path. */
TEST(files_without_gpus)
{
    static const char *const dirs[] = {"../shared/fixtures/nccl-topo/*.xml",
                                       "../shared/fixtures/nccl-topo/rccl-models/*.xml"};
    int n = 0;

    if (access("../shared/fixtures/nccl-topo", R_OK) != 0)
        skip();
    for (int i = 0; i < 2; i++) {
        glob_t found;
        if (glob(dirs[i], 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++, n++) {
            struct nccl_paths p;
            struct err err = {0};
            if (strstr(found.gl_pathv[k], "graph"))
                continue;
            if (nccl_xml_load(&p, found.gl_pathv[k], &err) < 0)
                fail_msg("%s", err.text);
            nccl_paths_free(&p);
        }
        globfree(&found);
    }
    assert_true(n > 8);
}

static void refused(const char *text, const char *why)
{
    struct nccl_paths p;
    struct err err = {0};

    assert_int_equal(nccl_xml_parse(&p, text, strlen(text), "t.xml", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" where \"%s\" is expected", err.text, why);
    assert_null(p.gpu);
}

TEST(bad_files)
{
    refused("", "no element found");
    refused("<system>\n<cpu", "t.xml:2: ");
    refused("<graphs version=\"1\"/>", "t.xml:1: <graphs> where <system> of NCCL's topology");
    refused("<!DOCTYPE a [<!ENTITY x \"y\">]><system/>", "DOCTYPE");
    refused("<system><cpu arch=\"x86_64\" vendor=\"GenuineIntel\" modelid=\"many\"/></system>",
            "modelid=\"many\" is no number");
    refused("<system>&gt;&unknown;</system>", "undefined entity");
    char deep[8 * NCCL_XML_DEPTH_MAX + 64] = "<system>";
    for (int i = 0; i < NCCL_XML_DEPTH_MAX; i++)
        strcat(deep, "<pci>");
    refused(deep, "or deeper than");
}

TEST(names)
{
    assert_int_equal(nccl_path_type_find("PXN"), NCCL_PATH_PXN);
    assert_int_equal(nccl_path_type_find("pxn"), -1);
    assert_int_equal(nccl_path_type_find(NULL), -1);
}
