/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in's memory: allocations, address space, what other processes may map. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda_fake.h"

enum { GRAIN = 2 << 20 };
static const char ipc_magic[8] = "FAKEIPC", fabric_magic[8] = "FAKEFAB";

/* A piece of physical memory: a file without a name. */
struct physical {
    int fd, users;
    size_t bytes;
    bool foreign; /* of another process: takes no room here */
};

/* A range of addresses. */
struct range {
    struct range *next;
    unsigned char *at;
    size_t bytes;
    enum { PLAIN, IMPORTED, RESERVED, PINNED } kind;
    struct physical *memory; /* NULL: pinned, or nothing mapped there */
    unsigned char *host;     /* the same bytes for the host */
    bool accessible;
    int device; /* as cuCtxGetDevice() counts */
};

struct ticket { /* inside the 64 bytes of a handle */
    char magic[8];
    int32_t pid, fd;
    uint64_t bytes;
};

static struct range *ranges;
static size_t taken; /* bytes of this process's own physical memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct range *find(const void *at)
{
    const unsigned char *p = at;

    for (struct range *r = ranges; r; r = r->next)
        if (p >= r->at && p < r->at + r->bytes)
            return r;
    return NULL;
}

static void insert(struct range r)
{
    struct range *one = malloc(sizeof(*one));

    *one = r;
    one->device = r.kind == PINNED ? FAKE_PINNED : fake_ordinal();
    one->next = ranges;
    ranges = one;
}

static struct physical *physical(int fd, size_t bytes, bool foreign)
{
    struct physical *p = malloc(sizeof(*p));

    *p = (struct physical){fd, 1, bytes, foreign};
    taken += foreign ? 0 : bytes;
    return p;
}

static void drop(struct physical *p)
{
    if (!p || --p->users > 0)
        return;
    taken -= p->foreign ? 0 : p->bytes;
    close(p->fd);
    free(p);
}

static int create(struct physical **out, size_t bytes)
{
    int fd;

    if (bytes > fake_profile()->room - taken)
        return CUDA_OUT_OF_MEMORY;
    fd = memfd_create("fake GPU memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
        if (fd >= 0)
            close(fd);
        return CUDA_OUT_OF_MEMORY;
    }
    *out = physical(fd, bytes, false);
    return CUDA_GOOD;
}

static unsigned char *nowhere(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

static unsigned char *view(const struct physical *p)
{
    void *at = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* Takes over one use of p, also when it fails. */
static int place(cuda_ptr *at, struct physical *p, int kind)
{
    struct range r = {.bytes = p->bytes, .kind = kind, .memory = p, .accessible = true};

    r.at = nowhere(p->bytes);
    r.host = view(p);
    if (!r.at || !r.host) {
        drop(p);
        return CUDA_OUT_OF_MEMORY;
    }
    insert(r);
    *at = (cuda_ptr)(uintptr_t)r.at;
    return CUDA_GOOD;
}

static int remove_range(cuda_ptr at, int kind)
{
    for (struct range **link = &ranges, *r; (r = *link); link = &r->next) {
        if ((uintptr_t)r->at != at || (int)r->kind != kind)
            continue;
        *link = r->next;
        munmap(r->at, r->bytes);
        if (r->memory)
            munmap(r->host, r->memory->bytes);
        drop(r->memory);
        free(r);
        return CUDA_GOOD;
    }
    return CUDA_INVALID_VALUE;
}

API(cuMemAlloc_v2, cuda_ptr *at, size_t bytes)
{
    struct physical *p = NULL;
    int rc;

    NEEDS_CONTEXT;
    if ((rc = fake_unsafe()))
        return rc;
    if (bytes == 0)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    rc = create(&p, bytes);
    rc = rc ? rc : place(at, p, PLAIN);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* As with a GPU this waits for all work, and for ever for a GPU that is stuck. */
API(cuMemFree_v2, cuda_ptr at)
{
    int rc;

    NEEDS_CONTEXT;
    if ((rc = fake_unsafe()))
        return rc;
    fake_drain();
    pthread_mutex_lock(&lock);
    rc = remove_range(at, PLAIN);
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuMemGetInfo_v2, size_t *left, size_t *total)
{
    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    *left = fake_profile()->room - taken;
    pthread_mutex_unlock(&lock);
    *total = fake_profile()->memory;
    return CUDA_GOOD;
}

API(cuMemHostAlloc, void **at, size_t bytes, unsigned flags)
{
    struct range r = {.bytes = bytes, .kind = PINNED, .accessible = true};
    int rc;

    NEEDS_CONTEXT;
    (void)flags;
    if ((rc = fake_unsafe()))
        return rc;
    *at = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                : MAP_FAILED;
    if (*at == MAP_FAILED)
        return bytes ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    r.at = r.host = *at;
    pthread_mutex_lock(&lock);
    insert(r);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

API(cuMemFreeHost, void *at)
{
    int rc;

    NEEDS_CONTEXT;
    if ((rc = fake_unsafe()))
        return rc;
    fake_drain();
    pthread_mutex_lock(&lock);
    rc = remove_range((uintptr_t)at, PINNED);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* --- other processes --- */
static void write_ticket(void *handle, const char *magic, const struct physical *p)
{
    struct ticket t = {.pid = getpid(), .fd = p->fd, .bytes = p->bytes};

    memcpy(t.magic, magic, sizeof(t.magic));
    memset(handle, 0, sizeof(struct cuda_handle));
    memcpy(handle, &t, sizeof(t));
}

static int open_ticket(struct physical **out, const void *handle, const char *magic)
{
    struct ticket t;
    struct stat st;
    char path[64];
    int fd;

    memcpy(&t, handle, sizeof(t));
    if (memcmp(t.magic, magic, sizeof(t.magic)))
        return CUDA_INVALID_VALUE;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", t.pid, t.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_INVALID_HANDLE;
    if (fstat(fd, &st) || (uint64_t)st.st_size != t.bytes) { /* freed, and the number used anew */
        close(fd);
        return CUDA_INVALID_HANDLE;
    }
    *out = physical(fd, t.bytes, true);
    return CUDA_GOOD;
}

API(cuIpcGetMemHandle, struct cuda_handle *handle, cuda_ptr at)
{
    struct range *r;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    r = find((void *)(uintptr_t)at);
    if (r && r->kind == PLAIN)
        write_ticket(handle, ipc_magic, r->memory);
    pthread_mutex_unlock(&lock);
    return r && r->kind == PLAIN ? CUDA_GOOD : CUDA_INVALID_VALUE;
}

API(cuIpcOpenMemHandle_v2, cuda_ptr *at, struct cuda_handle handle, unsigned flags)
{
    struct physical *p = NULL;
    struct ticket t;
    int rc;

    NEEDS_CONTEXT;
    memcpy(&t, &handle, sizeof(t));
    if (flags != CUDA_IPC_LAZY_PEER || t.pid == getpid())
        return flags != CUDA_IPC_LAZY_PEER ? CUDA_INVALID_VALUE : CUDA_INVALID_CONTEXT;
    if (!fake_profile()->peer)
        return CUDA_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    rc = open_ticket(&p, &handle, ipc_magic);
    rc = rc ? rc : place(at, p, IMPORTED);
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuIpcCloseMemHandle, cuda_ptr at)
{
    int rc;

    NEEDS_CONTEXT;
    fake_drain();
    pthread_mutex_lock(&lock);
    rc = remove_range(at, IMPORTED);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* --- virtual memory management --- */
static int refuse_fabric(void)
{
    enum fake_fabric f = fake_profile()->fabric;

    return fake_profile()->driver < 12030 ? CUDA_INVALID_VALUE
           : f == FABRIC_NO               ? CUDA_NOT_SUPPORTED
           : f == FABRIC_NOT_PERMITTED    ? CUDA_NOT_PERMITTED
                                          : CUDA_GOOD;
}

API(cuMemGetAllocationGranularity, size_t *bytes, const struct cuda_allocation_prop *prop,
    int option)
{
    NEEDS_CONTEXT;
    (void)option;
    *bytes = GRAIN;
    return prop->type == CUDA_ALLOCATION_PINNED ? CUDA_GOOD : CUDA_INVALID_VALUE;
}

API(cuMemCreate, cuda_allocation *allocation, size_t bytes, const struct cuda_allocation_prop *prop,
    unsigned long long flags)
{
    struct physical *p = NULL;
    int rc;

    NEEDS_CONTEXT;
    rc = prop->handle_types & CUDA_HANDLE_FABRIC ? refuse_fabric() : CUDA_GOOD;
    if (rc)
        return rc;
    if (bytes == 0 || bytes % GRAIN || flags || prop->location.type != CUDA_LOCATION_DEVICE)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    rc = create(&p, bytes);
    pthread_mutex_unlock(&lock);
    *allocation = (cuda_allocation)(uintptr_t)p;
    return rc;
}

API(cuMemRelease, cuda_allocation allocation)
{
    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    drop((struct physical *)(uintptr_t)allocation);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

API(cuMemAddressReserve, cuda_ptr *at, size_t bytes, size_t alignment, cuda_ptr wish,
    unsigned long long flags)
{
    struct range r = {.bytes = bytes, .kind = RESERVED};

    NEEDS_CONTEXT;
    if (bytes == 0 || bytes % GRAIN || alignment || wish || flags)
        return CUDA_INVALID_VALUE;
    r.at = nowhere(bytes);
    if (!r.at)
        return CUDA_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    insert(r);
    pthread_mutex_unlock(&lock);
    *at = (cuda_ptr)(uintptr_t)r.at;
    return CUDA_GOOD;
}

API(cuMemAddressFree, cuda_ptr at, size_t bytes)
{
    struct range *r;
    int rc = CUDA_INVALID_VALUE;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    r = find((void *)(uintptr_t)at);
    if (r && r->bytes == bytes && !r->memory) /* still mapped: refused */
        rc = remove_range(at, RESERVED);
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuMemMap, cuda_ptr at, size_t bytes, size_t offset, cuda_allocation allocation,
    unsigned long long flags)
{
    struct physical *p = (struct physical *)(uintptr_t)allocation;
    struct range *r;
    int rc = CUDA_INVALID_VALUE;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    r = find((void *)(uintptr_t)at);
    if (r && r->kind == RESERVED && !r->memory && r->bytes == bytes && p->bytes == bytes &&
        offset == 0 && flags == 0) {
        r->host = view(p);
        r->memory = r->host ? p : NULL;
        p->users += r->host != NULL;
        rc = r->host ? CUDA_GOOD : CUDA_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuMemUnmap, cuda_ptr at, size_t bytes)
{
    struct range *r;
    int rc = CUDA_INVALID_VALUE;

    NEEDS_CONTEXT;
    fake_drain();
    pthread_mutex_lock(&lock);
    r = find((void *)(uintptr_t)at);
    if (r && r->kind == RESERVED && r->memory && r->bytes == bytes) {
        munmap(r->host, bytes);
        drop(r->memory);
        r->memory = NULL;
        r->host = NULL;
        r->accessible = false;
        rc = CUDA_GOOD;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuMemSetAccess, cuda_ptr at, size_t bytes, const struct cuda_access *access, size_t count)
{
    struct range *r;
    int rc = CUDA_INVALID_VALUE;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    r = find((void *)(uintptr_t)at);
    if (r && r->memory && r->bytes == bytes && count == 1 &&
        access->location.type == CUDA_LOCATION_DEVICE && access->flags == CUDA_ACCESS_READ_WRITE) {
        r->accessible = true;
        rc = CUDA_GOOD;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuMemExportToShareableHandle, void *handle, cuda_allocation allocation, int type,
    unsigned long long flags)
{
    NEEDS_CONTEXT;
    if (type != CUDA_HANDLE_FABRIC || flags)
        return CUDA_INVALID_VALUE;
    write_ticket(handle, fabric_magic, (struct physical *)(uintptr_t)allocation);
    return CUDA_GOOD;
}

API(cuMemImportFromShareableHandle, cuda_allocation *allocation, void *handle, int type)
{
    struct physical *p = NULL;
    int rc;

    NEEDS_CONTEXT;
    rc = type == CUDA_HANDLE_FABRIC ? refuse_fabric() : CUDA_INVALID_VALUE;
    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    rc = open_ticket(&p, handle, fabric_magic);
    pthread_mutex_unlock(&lock);
    *allocation = (cuda_allocation)(uintptr_t)p;
    return rc;
}

/* A dma-buf begins where the range does; this file begins with the allocation, so its position says
 * where in it (tests/fake/verbs_fake.c asks). */
API(cuMemGetHandleForAddressRange, void *handle, cuda_ptr at, size_t bytes, int type,
    unsigned long long flags)
{
    enum { DMA_BUF_FD = 1 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char file[64];
    size_t offset;
    int fd;

    NEEDS_CONTEXT;
    if (!fake_profile()->dma_buf)
        return CUDA_NOT_SUPPORTED;
    if (type != DMA_BUF_FD || flags || !bytes || at % page || bytes % page ||
        !fake_find((void *)(uintptr_t)at, file, &offset))
        return CUDA_INVALID_VALUE;
    fd = open(file, O_RDWR | O_CLOEXEC); /* anew: a position of its own */
    if (fd < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0) {
        if (fd >= 0)
            close(fd);
        return CUDA_OUT_OF_MEMORY;
    }
    memcpy(handle, &fd, sizeof(fd));
    return CUDA_GOOD;
}

/* --- what the stand-ins themselves ask --- */
/* The host's view; NULL: not all of it is memory of one allocation that the GPU may use. */
static void *look(const void *at, size_t bytes, bool *known)
{
    const unsigned char *p = at;
    struct range *r;
    void *host = NULL;

    pthread_mutex_lock(&lock);
    r = find(at);
    *known = r != NULL;
    if (r && r->accessible && bytes <= (size_t)(r->at + r->bytes - p))
        host = r->host + (p - r->at);
    pthread_mutex_unlock(&lock);
    return host;
}

void *fake_touch(const void *at, size_t bytes)
{
    bool known;
    void *host = look(at, bytes, &known);

    if (!known)
        return (void *)(uintptr_t)at;
    if (!host)
        fake_spoil(CUDA_ILLEGAL_ADDRESS);
    return host;
}

void *fake_kernel_touch(const void *at, size_t bytes, size_t alignment)
{
    bool known;
    void *host = look(at, bytes, &known);

    if (!host)
        fake_spoil(CUDA_ILLEGAL_ADDRESS);
    else if ((uintptr_t)at % alignment)
        fake_spoil(FAKE_MISALIGNED);
    return (uintptr_t)at % alignment ? NULL : host;
}

__attribute__((visibility("default"))) int fake_reach(const void *at, size_t bytes,
                                                      size_t alignment)
{
    bool known;

    if (fake_kernel_touch(at, bytes, alignment))
        return CUDA_GOOD;
    return look(at, bytes, &known) ? FAKE_MISALIGNED : CUDA_ILLEGAL_ADDRESS;
}

__attribute__((visibility("default"))) int fake_owner(const void *at)
{
    struct range *r;
    int owner;

    pthread_mutex_lock(&lock);
    r = find(at);
    owner = r ? r->device : FAKE_STRANGER;
    pthread_mutex_unlock(&lock);
    return owner;
}

__attribute__((visibility("default"))) void *fake_host(const void *device)
{
    return fake_touch(device, 0);
}

__attribute__((visibility("default"))) bool fake_find(const void *device, char file[64],
                                                      size_t *offset)
{
    const unsigned char *p = device;
    struct range *r;
    bool found;

    pthread_mutex_lock(&lock);
    r = find(device);
    found = r && r->memory;
    if (found) {
        snprintf(file, 64, "/proc/%d/fd/%d", getpid(), r->memory->fd);
        *offset = (size_t)(p - r->at);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* With its context goes all that a process did not free. */
void fake_forget_memory(void)
{
    fake_drain();
    pthread_mutex_lock(&lock);
    while (ranges)
        remove_range((uintptr_t)ranges->at, (int)ranges->kind);
    pthread_mutex_unlock(&lock);
}
