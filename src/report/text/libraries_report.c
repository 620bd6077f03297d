/* SPDX-License-Identifier: BSD-3-Clause */
/* libraries_report.c - railgauge discover --libraries: optional libraries and programs, how each
 * was found, and its use. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/table.h"
#include "kernels/cuda_api.h"
#include "kernels/libraries.h"
#include "kernels/nccl_api.h"
#include "measure/device/cublaslt_api.h"
#include "report/text/report.h"
#include "topo/sources/host/nvml_api.h"

/* One row: the result, or the reason why nothing was found. */
struct row {
    bool there;
    char version[200], file[520];
    const char *by;
    struct err why;
};

static void found_at(struct row *r, const char *file, const char *by)
{
    snprintf(r->file, sizeof(r->file), "%s", file);
    r->by = by;
}

/* Path of the file, and the numbers after ".so." in its real name. */
static bool open_file(struct row *r, enum library_id id)
{
    struct library_found found;
    void *library = libraries_open(id, 0, &found, &r->why);
    char *real = library ? realpath(found.file, NULL) : NULL,
         *at = real ? strstr(real, ".so.") : NULL;

    if (library) {
        found_at(r, found.file, found.by);
        if (at)
            snprintf(r->version, sizeof(r->version), "%.40s", at + 4);
        dlclose(library);
    }
    free(real);
    return library;
}

static void look_cuda(struct row *r)
{
    if (!open_file(r, LIBRARY_CUDA) || cuda_load(&r->why) < 0)
        return;
    snprintf(r->version, sizeof(r->version), "CUDA %d.%d", cuda.version / 1000,
             cuda.version % 1000 / 10);
    r->there = true;
}

static void look_nvml(struct row *r)
{
    struct nvml_api api;
    char driver[96] = "";

    if (!open_file(r, LIBRARY_NVML) || nvml_api_open(&api, &r->why) < 0)
        return;
    if (api.driver && api.driver(driver, sizeof(driver)) == NVML_SUCCESS)
        snprintf(r->version, sizeof(r->version), "driver %s", driver);
    nvml_api_close(&api);
    r->there = true;
}

static void look_nccl(struct row *r)
{
    if (nccl_load(&r->why) < 0)
        return;
    nccl_version_text(nccl.version, r->version);
    found_at(r, nccl.path, nccl.by);
    r->there = true;
}

static void look_cublaslt(struct row *r)
{
    if (cublaslt_load(&r->why) < 0)
        return;
    nccl_version_text(cublaslt.version, r->version);
    found_at(r, cublaslt.path, cublaslt.by);
    r->there = true;
}

static void look_ibverbs(struct row *r)
{
    r->there = open_file(r, LIBRARY_IBVERBS);
}

/* Output lines of a program; NULL: does not start, or takes too long. */
static char *ask(struct row *r, const char *const *argv)
{
    char *text = NULL;
    size_t len;

    if (process_output(&text, &len, argv, 1 << 16, 20, &r->why) < 0)
        return NULL;
    return text;
}

static void look_gnuplot(struct row *r)
{
    char *file = process_find("gnuplot", false);
    char *text = file ? ask(r, (const char *const[]){file, "--version", NULL}) : NULL;

    if (!file)
        err_noinput(&r->why, "gnuplot is not in PATH");
    if (text) {
        snprintf(r->version, sizeof(r->version), "%.*s", (int)strcspn(text, "\n") % 100, text);
        found_at(r, file, "PATH");
        r->there = true;
    }
    free(text);
    free(file);
}

/* Read railgauge-probe --version: the second line has its MPI, the third its kernels. */
static void look_probe(struct row *mpi, struct row *kernels, const char *probe)
{
    static const char built[] = "GPU kernels: ";
    char *text = ask(mpi, (const char *const[]){probe, "discover", "--version", NULL}),
         *rest = text;
    char *line;

    for (int i = 0; text && (line = strsep(&rest, "\n")) != NULL; i++) {
        if (i == 1)
            snprintf(mpi->version, sizeof(mpi->version), "%.*s", (int)strcspn(line, ",") % 100,
                     line);
        if (!strncmp(line, built, strlen(built)))
            snprintf(kernels->version, sizeof(kernels->version), "%.190s", line + strlen(built));
    }
    mpi->there = text;
    kernels->there = !strncmp(kernels->version, "sm_", 3);
    found_at(mpi, probe, "railgauge");
    found_at(kernels, probe, "railgauge");
    if (!kernels->there)
        err_config(&kernels->why, "%s",
                   text ? "railgauge-probe was built without nvcc" : mpi->why.text);
    free(text);
}

/* GPU libraries first, because the driver decides which cuBLASLt fits. */
enum { PROBE_MPI, PROBE_KERNELS, FIRST_LOOKED, ROWS = 8 };
static const struct {
    const char *name, *gives, *helps;
    void (*look)(struct row *r);
} rows[ROWS] = {
    {"MPI", "railgauge-probe: messages over MPI", "make, with Open MPI or MPICH and hwloc", NULL},
    {"GPU kernels", "verification and copies on the GPU",
     "make with nvcc in CUDA_HOME; the host verifies without", NULL},
    {"CUDA driver", "GPUs: copies, figures of each GPU", "the NVIDIA driver, 525 or newer",
     look_cuda},
    {"NVML", "facts of GPUs and NVLink", "the NVIDIA driver", look_nvml},
    {"NCCL", "collectives over NCCL",
     "pip install nvidia-nccl-cu13 (-cu12 with a driver of CUDA 12), or RAILGAUGE_NCCL=FILE",
     look_nccl},
    {"cuBLASLt", "matrix products",
     "pip install nvidia-cublas (nvidia-cublas-cu12 with a driver of CUDA 12), or "
     "RAILGAUGE_CUBLASLT=FILE",
     look_cublaslt},
    {"libibverbs", "facts of RDMA ports", "package libibverbs1, or rdma-core", look_ibverbs},
    {"gnuplot", "pictures", "package gnuplot", look_gnuplot},
};

static const struct table_column columns[] = {{"library", "library", "text"},
                                              {"there", NULL, "flag"},
                                              {"version", "version", "text?"},
                                              {"gives", "for", "text"},
                                              {"found_by", "found by", "text?"},
                                              {"file", "file", "text?"},
                                              {"why", NULL, "text?"},
                                              {"helps", NULL, "text?"},
                                              {0}};

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static void add(struct table *t, int i, const struct row *r)
{
    table_add(t, rows[i].name, (int)r->there, or_null(r->version), rows[i].gives, or_null(r->by),
              or_null(r->file), r->there ? NULL : r->why.text, r->there ? NULL : rows[i].helps);
}

static void print_missing(FILE *out, const struct row *r)
{
    for (int i = 0; i < ROWS; i++) {
        if (r[i].there)
            continue;
        fputc('\n', out);
        table_wrap(out, 4, "%s is missing: %s. What helps: %s.", rows[i].name, r[i].why.text,
                   rows[i].helps);
    }
}

int libraries_report(FILE *out, const char *probe, const char *why, bool json, struct err *err)
{
    struct row *r = mem_calloc(ROWS, sizeof(*r));
    struct table t;
    int rc = 0;

    if (probe)
        look_probe(&r[PROBE_MPI], &r[PROBE_KERNELS], probe);
    for (int i = 0; i < FIRST_LOOKED && !probe; i++)
        err_config(&r[i].why, "%s", why);
    for (int i = FIRST_LOOKED; i < ROWS; i++)
        rows[i].look(&r[i]);
    table_open(&t, columns);
    for (int i = 0; i < ROWS; i++)
        add(&t, i, &r[i]);
    if (json) {
        rc = json_answer(json_framed("railgauge-libraries", "libraries", table_rows(&t)), NULL,
                         true, err);
    } else {
        table_print(out, &t, 0);
        print_missing(out, r);
        table_free(&t);
    }
    free(r);
    return rc;
}
