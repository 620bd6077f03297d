/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of a job: the input is one rank's file, beside a good one of another rank.  The tail of
 * the input is its ring; what it lacks of a header is made, so that every byte can be a record. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "record/import.h"
#include "record/job/answers.h"
#include "record/record_job.h"
#include "record/record_steps.h"
#include "tests/unit/record_file.h"

static char dir[64];

static void leave(void)
{
    char path[96];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%d.rgnccl", dir, i);
        unlink(path);
    }
    rmdir(dir);
}

static struct record_file *rank_file(int rank, uint64_t capacity)
{
    static const char *const name[] = {"AllReduce",     "AllGather", "Send", "Recv",
                                       "ReduceScatter", "Broadcast", "RING", "LL"};
    struct record_file *f = record_file_new(capacity);

    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        record_file_name(f, name[i]);
    record_file_comm(f, 7, rank, 2, 1, "");
    record_file_comm(f, 8, rank, 3, 1, "");
    return f;
}

static void write_good(void)
{
    char path[96];
    struct record_file *f = rank_file(1, 16);

    for (unsigned i = 0; i < 16; i++) {
        struct record *r = record_file_add(f, RECORD_COLL, 0, "AllReduce", "");
        r->bytes = 64;
        r->nccl_seq = i / 2;
        r->first_ns = 1000 + 100 * i;
        r->last_ns = 1050 + 100 * i;
    }
    snprintf(path, sizeof(path), "%s/1.rgnccl", dir);
    if (record_file_write(f, path) < 0)
        abort();
}

static void write_input(const uint8_t *data, size_t size)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/0.rgnccl", dir);
    if (size && data[0] & 1) { /* the whole file */
        FILE *out = fopen(path, "w");
        if (!out || fwrite(data + 1, 1, size - 1, out) != size - 1 || fclose(out))
            abort();
        return;
    }
    size_t records = size / sizeof(struct record);
    struct record_file *f = rank_file(0, records + 1);
    memcpy(f->ring, data, records * sizeof(*f->ring));
    for (size_t i = 0; i < records; i++) /* most are whole and where they belong */
        if (!(f->ring[i].word & 0x10))
            f->ring[i].word = (i + 1) << 16;
    f->head.next = records;
    if (record_file_write(f, path) < 0)
        abort();
}

static void look(struct record_job *j)
{
    struct import_opts o = {.op = -1};
    struct record_steps steps;
    struct import im;
    struct late l;
    struct err e = {0, ""};

    record_clock_align(j);
    float *overlap = record_points_overlap(j);
    record_steps_find(&steps, j, overlap);
    import_init(&im, &o);
    if (record_points(&im, j, overlap, &e) < 0)
        fuzz_refused(e.code, e.text);
    late_find(&l, j);
    late_free(&l);
    record_steps_save(&steps, j, "/dev/null", &e);
    record_steps_free(&steps);
    import_free(&im);
    free(overlap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record_job j;
    struct err e = {0, ""};

    if (!*dir) {
        snprintf(dir, sizeof(dir), "/tmp/fuzz-record-XXXXXX");
        if (!mkdtemp(dir))
            abort();
        atexit(leave);
        write_good();
    }
    write_input(data, size);
    record_job_init(&j);
    if (record_load(&j, dir, &e) < 0)
        fuzz_refused(e.code, e.text);
    else
        look(&j);
    record_job_free(&j);
    return 0;
}
