/* fuzz.h - hand the fuzzer's bytes to a reader of files as a file in memory. */
#ifndef RG_FUZZ_H
#define RG_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The path of a file that holds exactly these bytes; the same file each time. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[32];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    return path;
}

/* An error must come with a sentence, and its code must say whose fault it is. */
static inline void fuzz_refused(int code, const char *text)
{
    if (!text[0] || code < 64 || code > 78)
        abort();
}

#endif
