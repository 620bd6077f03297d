/* SPDX-License-Identifier: BSD-3-Clause */
/* cut.c - a CUDA library for one architecture of GPU, small enough to be carried.
 *
 *   cut [--bare] ARCH FROM TO        ARCH: 90 keeps sm_90, sm_90a and PTX of compute_90
 *
 * FROM is a shared library with device code, or a fat binary; TO has everything that runs at the same place, so
 * that nothing must be relinked, and holes where something was: code of other architectures,
 * sections that are not loaded (debugging, symbols), with --bare also the relocatable code that a
 * linked kernel was made of (__nv_relfatbin).  A file with holes takes no room and packs to nothing.
 * nvprune cannot do it: it takes relocatable objects and static libraries only (CUDA Binary
 * Utilities, "nvprune").
 * Prints "what arch pieces bytes kept" as TSV.  The layout of fat binaries is in no document of NVIDIA's: it is
 * read off what nvcc 13.0 writes and off libnccl 2.32.3, and every size is checked against the ones
 * around it; what does not fit is exit code 65 and no file.
 *
 *   container  u32 0xba55ed50, u16 version 1, u16 bytes of this header, u64 bytes of entries
 *   entry      u16 kind (1 PTX, 2 cubin), u16, u32 bytes of this header, u64 bytes of its body,
 *              u32, u32, u16 minor, u16 major, u32 ARCH ...
 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/units.h"

enum { ARCHS = 64, PAGE = 4096, KINDS = 3 };
static const uint32_t container_magic = 0xba55ed50;
static const char *const kinds[KINDS] = {"other", "PTX", "cubin"};

struct container {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
};

struct entry {
    uint16_t kind, version;
    uint32_t header;
    uint64_t size;
    uint32_t packed, unused;
    uint16_t minor, major;
    uint32_t arch;
};

struct cut {
    unsigned char *at; /* the file, a private copy */
    size_t size;
    int arch;
    bool bare;
    struct tally {
        unsigned kind, arch, pieces;
        size_t bytes;
    } tally[ARCHS];
    int tallies, kept;
};

static int count(struct cut *c, unsigned kind, unsigned arch, size_t bytes, struct err *err)
{
    int i = 0;

    kind = kind < KINDS ? kind : 0;
    while (i < c->tallies && (c->tally[i].kind != kind || c->tally[i].arch != arch))
        i++;
    if (i == ARCHS)
        return err_data(err, "more than %d kinds of device code", ARCHS);
    if (i == c->tallies)
        c->tally[c->tallies++] = (struct tally){.kind = kind, .arch = arch};
    c->tally[i].pieces++;
    c->tally[i].bytes += bytes;
    return 0;
}

/* What is kept moves to the front of its container, whose size says how much that is. */
static int cut_container(struct cut *c, size_t at, const struct container *box, struct err *err)
{
    size_t from = at + box->header, end = from + box->size, to = from;
    struct container left = *box;
    struct entry e;

    while (from < end) {
        memcpy(&e, c->at + from, sizeof(e) <= end - from ? sizeof(e) : 0);
        if (sizeof(e) > end - from || e.header < sizeof(e) || e.header > end - from ||
            e.size > end - from - e.header)
            return err_data(err, "the fat binary at byte %zu: an entry at %zu is not one", at,
                            from);
        size_t bytes = e.header + e.size;

        if (count(c, e.kind, e.arch, bytes, err))
            return -1;
        if (e.arch == (unsigned)c->arch) {
            memmove(c->at + to, c->at + from, bytes);
            to += bytes;
            c->kept++;
        }
        from += bytes;
    }
    memset(c->at + to, 0, end - to);
    left.size = to - at - box->header;
    memcpy(c->at + at, &left, sizeof(left));
    return 0;
}

/* Containers one behind the other, with up to 8 bytes of zeros between them. */
static int cut_fatbins(struct cut *c, size_t at, size_t size, struct err *err)
{
    size_t end = at + size;
    struct container box;

    while (end - at >= sizeof(box)) {
        memcpy(&box, c->at + at, sizeof(box));
        if (!box.magic) {
            at += 4;
            continue;
        }
        if (box.magic != container_magic || box.version != 1 || box.header < sizeof(box) ||
            box.header > end - at || box.size > end - at - box.header)
            return err_data(err, "byte %zu does not begin a fat binary", at);
        if (cut_container(c, at, &box, err))
            return -1;
        at += box.header + box.size;
    }
    return 0;
}

static bool inside(const struct cut *c, size_t at, size_t size)
{
    return at <= c->size && size <= c->size - at;
}

static int cut_section(struct cut *c, Elf64_Shdr *s, const char *name, struct err *err)
{
    bool linked = !strcmp(name, ".nv_fatbin"), parts = !strcmp(name, "__nv_relfatbin");

    if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL || !strcmp(name, ".shstrtab"))
        return 0;
    if (!inside(c, s->sh_offset, s->sh_size))
        return err_data(err, "section %s ends behind the file", name);
    if (parts && c->bare)
        c->arch = -c->arch; /* nothing is of that */
    int rc = linked || parts ? cut_fatbins(c, s->sh_offset, s->sh_size, err) : 0;

    c->arch = abs(c->arch);
    if (rc || s->sh_flags & SHF_ALLOC)
        return rc;
    memset(c->at + s->sh_offset, 0, s->sh_size);
    s->sh_type = SHT_NOBITS;
    return 0;
}

static int cut_elf(struct cut *c, struct err *err)
{
    Elf64_Ehdr head;

    memcpy(&head, c->at, sizeof(head));
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shstrndx >= head.e_shnum ||
        head.e_shoff % _Alignof(Elf64_Shdr) ||
        !inside(c, head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr)))
        return err_data(err, "not a 64-bit little-endian ELF file with sections");
    Elf64_Shdr *section = (void *)(c->at + head.e_shoff);
    const Elf64_Shdr *names = &section[head.e_shstrndx];

    if (!inside(c, names->sh_offset, names->sh_size) || !names->sh_size ||
        c->at[names->sh_offset + names->sh_size - 1])
        return err_data(err, "its sections have no names");
    for (int i = 0; i < head.e_shnum; i++) {
        if (section[i].sh_name >= names->sh_size)
            return err_data(err, "section %d has no name", i);
        if (cut_section(c, &section[i], (const char *)c->at + names->sh_offset + section[i].sh_name,
                        err))
            return -1;
    }
    return 0;
}

static int cut(struct cut *c, struct err *err)
{
    uint32_t magic = 0;
    int rc;

    memcpy(&magic, c->at, c->size < 64 ? 0 : sizeof(magic));
    if (magic == container_magic)
        rc = cut_fatbins(c, 0, c->size, err);
    else if (magic && !memcmp(&magic, ELFMAG, SELFMAG))
        rc = cut_elf(c, err);
    else
        return err_data(err, "neither an ELF file nor a fat binary");
    if (rc == 0 && !c->tallies)
        return err_data(err, "no device code in it");
    if (rc == 0 && !c->kept)
        return err_data(err, "no code for sm_%d in it", c->arch);
    return rc;
}

static int in(struct cut *c, const char *path, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st))
        return err_noinput(err, "%s cannot be read: %m", path);
    c->size = (size_t)st.st_size;
    c->at = c->size ? mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    return c->at == MAP_FAILED ? err_noinput(err, "%s is empty or cannot be mapped", path) : 0;
}

/* Pages of zeros are not written. */
static int out(const struct cut *c, const char *path, struct err *err)
{
    static const unsigned char zeros[PAGE];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    int rc = fd < 0 || ftruncate(fd, (off_t)c->size) ? -1 : 0;

    for (size_t at = 0; rc == 0 && at < c->size; at += PAGE) {
        size_t n = c->size - at < PAGE ? c->size - at : PAGE;

        if (memcmp(c->at + at, zeros, n) && pwrite(fd, c->at + at, n, (off_t)at) != (ssize_t)n)
            rc = -1;
    }
    if (rc)
        err_io(err, "%s cannot be written: %m", path);
    if (fd >= 0 && close(fd) && rc == 0)
        rc = err_io(err, "%s cannot be written: %m", path);
    return rc;
}

static void print(const struct cut *c)
{
    printf("what\tarch\tpieces\tbytes\tkept\n");
    for (int i = 0; i < c->tallies; i++)
        printf("%s\t%u\t%u\t%zu\t%s\n", kinds[c->tally[i].kind], c->tally[i].arch,
               c->tally[i].pieces, c->tally[i].bytes,
               c->tally[i].arch == (unsigned)c->arch ? "yes" : "no");
}

int main(int argc, char **argv)
{
    struct cut c = {.bare = argc > 1 && !strcmp(argv[1], "--bare")};
    struct err err = {0, ""};

    argv += c.bare;
    if (argc - c.bare != 4 || units_int(&c.arch, argv[1], 10, 999, &err)) {
        fprintf(stderr, "usage: cut [--bare] ARCH FROM TO\n");
        return EXIT_USAGE;
    }
    if (in(&c, argv[2], &err) == 0) {
        if (cut(&c, &err))
            err_wrap(&err, "%s", argv[2]);
        else if (out(&c, argv[3], &err) == 0)
            print(&c);
        munmap(c.at, c.size);
    }
    if (err.code)
        fprintf(stderr, "cut: %s\n", err.text);
    return err.code;
}
