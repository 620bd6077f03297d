/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for libibverbs: devices, ports, events, protection domains, memory. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs_fake.h"

#define API(type, name, ...)                                                                       \
    EXPORT type ibv_##name(__VA_ARGS__);                                                           \
    type ibv_##name(__VA_ARGS__)

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct hca *fake_hcas;
struct mr *fake_mrs;
static bool registered; /* once: too late for fork_init */

static void *fails(int error)
{
    errno = error;
    return NULL;
}

static bool is_here(const struct fake_card *c)
{
    return c->host < 0 || c->host == text_host();
}

/* --- devices --- */
API(struct verbs_device **, get_device_list, int *n)
{
    const struct fake_text *t = text_of();
    struct verbs_device **list;
    int found = 0;

    if (t->no_list)
        return fails(t->no_list);
    list = calloc(FAKE_HCAS + 1, sizeof(struct verbs_device *));
    for (int i = 0; i < t->cards; i++) {
        if (!is_here(&t->card[i]))
            continue;
        struct verbs_device *d = list[found] = calloc(1, sizeof(*d));
        d->node_type = 1; /* a channel adapter */
        d->transport = VERBS_TRANSPORT_IB;
        snprintf(d->name, sizeof(d->name), "%s", t->card[i].name);
        snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%d", found);
        snprintf(d->dev_path, sizeof(d->dev_path), "/sys/class/infiniband_verbs/uverbs%d", found++);
        snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/class/infiniband/%s", t->card[i].name);
    }
    if (n)
        *n = found;
    return list;
}

API(void, free_device_list, struct verbs_device **list)
{
    for (int i = 0; list[i]; i++)
        free(list[i]);
    free(list);
}

static int card_named(const char *name)
{
    const struct fake_text *t = text_of();

    for (int i = 0; i < t->cards; i++)
        if (is_here(&t->card[i]) && !strcmp(t->card[i].name, name))
            return i;
    return -1;
}

API(struct verbs_hca *, open_device, struct verbs_device *device)
{
    int i = card_named(device->name), ends[2];

    if (i < 0 || text_of()->card[i].open_error)
        return fails(i < 0 ? ENODEV : text_of()->card[i].open_error);
    if (pipe2(ends, O_CLOEXEC))
        return NULL;
    struct hca *h = calloc(1, sizeof(*h));
    h->device = *device; /* the list may be freed */
    h->pub.device = &h->device;
    h->pub.ops.poll_cq = move_poll;
    h->pub.ops.post_send = move_post_send;
    h->pub.ops.post_recv = move_post_recv;
    h->pub.cmd_fd = -1;
    h->pub.async_fd = ends[0];
    h->pub.completion_vectors = 1;
    h->tell = ends[1];
    h->card = &text_of()->card[i];
    h->index = i;
    pthread_mutex_lock(&fake_lock);
    h->next = fake_hcas;
    fake_hcas = h;
    pthread_mutex_unlock(&fake_lock);
    return &h->pub;
}

API(int, close_device, struct verbs_hca *hca)
{
    struct hca *h = hca_of(hca), **link = &fake_hcas;

    pthread_mutex_lock(&fake_lock);
    while (*link != h)
        link = &(*link)->next;
    *link = h->next;
    pthread_mutex_unlock(&fake_lock);
    close(h->pub.async_fd);
    close(h->tell);
    free(h);
    return 0;
}

static uint64_t guid(const struct hca *h)
{
    return __builtin_bswap64(UINT64_C(0xb83fd20300000000) | (uint64_t)text_host() << 16 |
                             (uint64_t)h->index);
}

API(int, query_device, struct verbs_hca *hca, struct verbs_device_attr *attr)
{
    const struct fake_card *c = hca_of(hca)->card;

    if (hca_of(hca)->gone)
        return EIO;
    *attr = (struct verbs_device_attr){.node_guid = guid(hca_of(hca)),
                                       .system_guid = guid(hca_of(hca)),
                                       .max_mr_size = (uint64_t)c->max_mr,
                                       .page_sizes = 0xfffff000,
                                       .vendor = 0x02c9,
                                       .part = 4129,
                                       .max_qp = c->max_qp,
                                       .max_qp_wr = c->max_qp_wr,
                                       .max_sge = c->max_sge,
                                       .max_sge_read = c->max_sge,
                                       .max_cq = 1 << 20,
                                       .max_cqe = c->max_cqe,
                                       .max_mr = FAKE_MRS,
                                       .max_pd = 1 << 20,
                                       .max_qp_reads = c->max_reads,
                                       .max_qp_init_reads = c->max_reads,
                                       .max_pkeys = (uint16_t)c->port[0].pkeys,
                                       .ack_delay = 16,
                                       .ports = (uint8_t)c->ports};
    snprintf(attr->firmware, sizeof(attr->firmware), "%s", c->firmware);
    return 0;
}

static struct fake_place port_of(struct verbs_hca *hca, int port)
{
    return (struct fake_place){text_host(), hca_of(hca)->index, port};
}

static bool has_port(struct verbs_hca *hca, int port)
{
    return port >= 1 && port <= hca_of(hca)->card->ports && port <= FAKE_PORTS;
}

/* As the library does since 2008: what stands behind link_layer and flags is not written. */
API(int, query_port, struct verbs_hca *hca, uint8_t port, struct verbs_port_attr *attr)
{
    struct fake_place at = port_of(hca, port);

    if (!has_port(hca, port))
        return EINVAL;
    if (hca_of(hca)->gone)
        return EIO;
    const struct fake_port *p = text_port(at);
    bool down = p->state == VERBS_PORT_ACTIVE && !fabric_active(at);
    struct verbs_port_attr a = {.state = down ? VERBS_PORT_DOWN : p->state,
                                .max_mtu = p->max_mtu,
                                .active_mtu = p->mtu,
                                .gids = p->gids,
                                .max_message = p->max_message,
                                .pkeys = (uint16_t)p->pkeys,
                                .lid = (uint16_t)text_lid(at),
                                .sm_lid = p->layer == VERBS_LINK_INFINIBAND,
                                .max_vl = 4,
                                .subnet_timeout = 18,
                                .active_width = (uint8_t)p->width,
                                .active_speed = (uint8_t)p->speed,
                                .phys_state = down || p->state == VERBS_PORT_DOWN ? 3 : 5,
                                .link_layer = (uint8_t)p->layer};
    memcpy(attr, &a, offsetof(struct verbs_port_attr, capabilities2));
    return 0;
}

API(int, query_gid, struct verbs_hca *hca, uint8_t port, int index, union verbs_gid *gid)
{
    struct verbs_gid_entry e;

    if (!has_port(hca, port) || index < 0 || index >= text_port(port_of(hca, port))->gids) {
        errno = EINVAL;
        return -1;
    }
    text_gid(port_of(hca, port), index, &e);
    *gid = e.gid;
    return 0;
}

EXPORT int _ibv_query_gid_ex(struct verbs_hca *hca, uint32_t port, uint32_t index,
                             struct verbs_gid_entry *entry, uint32_t flags, size_t size);
int _ibv_query_gid_ex(struct verbs_hca *hca, uint32_t port, uint32_t index,
                      struct verbs_gid_entry *entry, uint32_t flags, size_t size)
{
    if (flags || size != sizeof(*entry) || !has_port(hca, (int)port) ||
        index >= (uint32_t)text_port(port_of(hca, (int)port))->gids)
        return EINVAL;
    return text_gid(port_of(hca, (int)port), (int)index, entry) ? 0 : ENODATA;
}

/* --- events --- */
void tell_event(struct hca *h, struct verbs_event e)
{
    if (write(h->tell, &e, sizeof(e)) != sizeof(e))
        abort();
}

API(int, get_async_event, struct verbs_hca *hca, struct verbs_event *event)
{
    ssize_t n = read(hca->async_fd, event, sizeof(*event)); /* EAGAIN where that was asked for */

    return n == (ssize_t)sizeof(*event) ? 0 : -1;
}

API(void, ack_async_event, struct verbs_event *event)
{
    (void)event;
}

API(int, fork_init, void)
{
    return registered ? EINVAL : 0;
}

API(const char *, wc_status_str, int status)
{
    static const char *const words[VERBS_WC_STATUSES] = {
        [VERBS_WC_SUCCESS] = "fine",
        [VERBS_WC_LOCAL_LENGTH] = "fake: local length",
        [VERBS_WC_LOCAL_QP_OPERATION] = "fake: local operation",
        [VERBS_WC_LOCAL_PROTECTION] = "fake: local protection",
        [VERBS_WC_FLUSHED] = "fake: flushed",
        [VERBS_WC_BAD_RESPONSE] = "fake: bad response",
        [VERBS_WC_LOCAL_ACCESS] = "fake: local access",
        [VERBS_WC_REMOTE_INVALID_REQUEST] = "fake: remote invalid request",
        [VERBS_WC_REMOTE_ACCESS] = "fake: remote access",
        [VERBS_WC_REMOTE_OPERATION] = "fake: remote operation",
        [VERBS_WC_RETRY_EXCEEDED] = "fake: retries exceeded",
        [VERBS_WC_RNR_RETRY_EXCEEDED] = "fake: RNR retries exceeded",
        [VERBS_WC_REMOTE_ABORTED] = "fake: remote aborted",
        [VERBS_WC_FATAL] = "fake: fatal",
        [VERBS_WC_RESPONSE_TIMEOUT] = "fake: response timeout",
        [VERBS_WC_GENERAL] = "fake: general"};

    return status >= 0 && status < VERBS_WC_STATUSES && words[status] ? words[status]
                                                                      : "fake: unknown";
}

API(const char *, event_type_str, int type)
{
    return type == VERBS_EVENT_QP_FATAL       ? "fake: queue pair fatal"
           : type == VERBS_EVENT_DEVICE_FATAL ? "fake: device fatal"
           : type == VERBS_EVENT_PORT_ERROR   ? "fake: port error"
                                              : "fake: event";
}

/* --- protection domains --- */
API(struct verbs_pd *, alloc_pd, struct verbs_hca *hca)
{
    struct pd *pd = calloc(1, sizeof(*pd));

    pd->pub.hca = hca;
    pd->id = atomic_fetch_add(&fabric()->pds, 1) + 1;
    move_start();
    return &pd->pub;
}

API(int, dealloc_pd, struct verbs_pd *pd)
{
    if (((struct pd *)pd)->users)
        return EBUSY;
    free(pd);
    return 0;
}

/* --- memory --- */
/* Can a NIC's driver pin these pages?  Not what is unmapped, nor a device's addresses; and not to
 * write where this process may not. */
static bool pinnable(unsigned char *at, size_t bytes, bool writing)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < bytes; i += page - (uintptr_t)(at + i) % page) {
        unsigned char one;
        struct iovec here = {&one, 1}, there = {at + i, 1};

        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1 ||
            (writing && process_vm_writev(getpid(), &here, 1, &there, 1, 0) != 1))
            return false;
    }
    return true;
}

static int bad_access(int access)
{
    return (access & VERBS_ACCESS_REMOTE_WRITE) && !(access & VERBS_ACCESS_LOCAL_WRITE);
}

static struct verbs_mr *add_mr(struct verbs_pd *pd, const struct mr *is)
{
    struct shared_mr *s = fabric_mr();

    if (!s) {
        if (is->map)
            munmap(is->map, is->map_bytes);
        return fails(ENOMEM);
    }
    struct mr *m = malloc(sizeof(*m));
    *m = *is;
    m->shared = s;
    m->pub.hca = pd->hca;
    m->pub.pd = pd;
    m->pub.lkey = m->pub.rkey = atomic_load(&s->key);
    s->pd = ((struct pd *)pd)->id;
    s->access = (unsigned)is->access;
    s->iova = is->iova;
    s->at = (uint64_t)(uintptr_t)is->host;
    s->bytes = is->pub.bytes;
    pthread_mutex_lock(&fake_lock);
    registered = true;
    ((struct pd *)pd)->users++;
    m->next = fake_mrs;
    fake_mrs = m;
    pthread_mutex_unlock(&fake_lock);
    return &m->pub;
}

/* A file of device memory from `offset` on, for this process. */
static bool map_file(struct mr *m, int fd, uint64_t offset, size_t bytes)
{
    size_t skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat st;

    if (fstat(fd, &st) || offset + bytes > (uint64_t)st.st_size)
        return false;
    m->map_bytes = bytes + skip;
    m->map =
        mmap(NULL, m->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - skip));
    m->host = (unsigned char *)m->map + skip;
    return m->map != MAP_FAILED;
}

/* Memory of the stand-in for CUDA, if that is loaded: what a module like nvidia-peermem does. */
static bool of_gpu(struct mr *m, void *at, size_t bytes)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = cuda ? dlsym(cuda, "fake_find") : NULL;
    bool (*find)(const void *, char[64], size_t *), done;
    char file[64];
    size_t offset;
    int fd = -1;

    memcpy(&find, &symbol, sizeof(find));
    if (find && find(at, file, &offset))
        fd = open(file, O_RDWR | O_CLOEXEC);
    done = fd >= 0 && map_file(m, fd, offset, bytes);
    if (fd >= 0)
        close(fd);
    if (cuda)
        dlclose(cuda);
    return done;
}

static double locked; /* bytes, of this process */

static struct verbs_mr *reg(struct verbs_pd *pd, void *at, size_t bytes, uint64_t iova, int access)
{
    const struct fake_card *c = hca_of(pd->hca)->card;
    struct mr m = {.pub.at = at, .pub.bytes = bytes, .host = at, .iova = iova, .access = access};

    if (!bytes || (double)bytes > c->max_mr || bad_access(access))
        return fails(EINVAL);
    if (c->memlock > 0 && locked + (double)bytes > c->memlock)
        return fails(ENOMEM);
    if (!pinnable(at, bytes, access & VERBS_ACCESS_LOCAL_WRITE) &&
        !(c->peermem && of_gpu(&m, at, bytes)))
        return fails(EFAULT);
    locked += m.map ? 0 : (double)bytes;
    return add_mr(pd, &m);
}

API(struct verbs_mr *, reg_mr, struct verbs_pd *pd, void *at, size_t bytes, int access)
{
    return reg(pd, at, bytes, (uint64_t)(uintptr_t)at, access);
}

API(struct verbs_mr *, reg_mr_iova2, struct verbs_pd *pd, void *at, size_t bytes, uint64_t iova,
    unsigned access)
{
    return reg(pd, at, bytes, iova, (int)access);
}

API(struct verbs_mr *, reg_dmabuf_mr, struct verbs_pd *pd, uint64_t offset, size_t bytes,
    uint64_t iova, int fd, int access)
{
    struct mr m = {.pub.bytes = bytes, .iova = iova, .access = access};

    if (!hca_of(pd->hca)->card->dmabuf)
        return fails(EOPNOTSUPP);
    if (!bytes || bad_access(access) || (iova ^ offset) % (uint64_t)sysconf(_SC_PAGESIZE))
        return fails(EINVAL);
    off_t begin = lseek(fd, 0, SEEK_CUR); /* of the range in its file */
    if (begin < 0 || !map_file(&m, fd, offset + (uint64_t)begin, bytes))
        return fails(EBADF);
    return add_mr(pd, &m);
}

API(int, dereg_mr, struct verbs_mr *mr)
{
    struct mr *m = (struct mr *)mr, **link = &fake_mrs;

    pthread_mutex_lock(&fake_lock);
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    ((struct pd *)m->pub.pd)->users--;
    locked -= m->map ? 0 : (double)m->pub.bytes;
    atomic_store(&m->shared->key, 0);
    pthread_mutex_unlock(&fake_lock);
    if (m->map)
        munmap(m->map, m->map_bytes);
    free(m);
    return 0;
}

unsigned char *mr_span(const struct verbs_pd *pd, uint32_t lkey, uint64_t at, size_t bytes,
                       int access)
{
    for (struct mr *m = fake_mrs; m; m = m->next)
        if (m->pub.lkey == lkey)
            return m->pub.pd == pd && at >= m->iova && bytes <= m->pub.bytes &&
                           at - m->iova <= m->pub.bytes - bytes && (m->access & access) == access
                       ? m->host + (at - m->iova)
                       : NULL;
    return NULL;
}
