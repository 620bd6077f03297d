/* SPDX-License-Identifier: BSD-3-Clause */
/* librailgauge-nccl.so through NCCL's interface: what is told is in the file, in all seven versions, whatever
 * ends the process, however full the disk is. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "profiler.h"

/* --- one task of each version --- */
static const struct record *only(const struct record_head *h, int kind)
{
    const struct record *found = NULL;

    for (uint64_t i = 0; i < h->next && i < h->capacity; i++) {
        const struct record *r = whole_record(h, i);

        SURE(r);
        if (r->kind == kind) {
            SURE(!found);
            found = r;
        }
    }
    return found;
}

static void check_coll(const struct record_head *h, const struct record *r, int abi)
{
    SURE(r);
    SURE(!strcmp(record_name(h, r->op), "AllReduce"));
    SURE(!strcmp(record_name(h, r->dtype), "ncclFloat32"));
    SURE(!strcmp(record_name(h, r->algo), "RING"));
    SURE(!strcmp(record_name(h, r->proto), "SIMPLE"));
    SURE(r->count == 1000 && r->bytes == 4000 && r->nccl_seq == 1 && r->peer == 0);
    SURE(r->channels == 4 && r->warps == 16);
    SURE(r->tag == (abi >= 7 ? 99 : 0));
    SURE(r->start_ns >= h->mono_ns && r->stop_ns >= r->start_ns);
    SURE((r->parent != 0) == ((h->events & PROF_GROUP) != 0));
    if (abi < 3) {
        SURE(!r->channels_started && !r->channels_stopped);
        return;
    }
    SURE(r->channels_started == 4 && r->channels_stopped == 4);
    SURE(r->first_ns >= r->start_ns && r->last_ns >= r->first_ns);
    SURE(r->gpu_start == (abi >= 4 ? 5000 : 0));
    SURE(r->gpu_stop == (abi >= 4 ? 9003 : 0));
}

static void check_comm(const struct record_head *h, int abi)
{
    const struct record_comm *c = record_comm_at(h, 0);

    SURE(h->comms == 1 && (int)h->abi == abi && (int)h->pid == getpid() && h->closed_ns);
    SURE(c->state == RECORD_COMM_CLOSED && c->hash == 0xabcd && c->rank == 3);
    SURE(!strcmp(c->name, "dp") && c->ranks == (abi >= 4 ? 16 : 0) &&
         c->nodes == (abi >= 4 ? 2 : 0));
    SURE(c->records == 2 && c->close_ns >= c->open_ns);
}

static void one_of_each(int abi)
{
    struct call k = ALL_REDUCE, send = ALL_REDUCE;
    void *c, *group, *coll, *p2p, *channel[4];
    const struct record *r;
    struct record_head *h;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    SURE(c && plugin.mask & PROF_COLL &&
         (plugin.mask & PROF_KERNEL_CH) == (abi >= 3 ? PROF_KERNEL_CH : 0));
    group = group_begin(c);
    SURE(group);
    k.tag = 99;
    coll = coll_begin(c, abi < 5 ? group : NULL, group, &k);
    send.func = "Send";
    send.func1 = 6;
    p2p = p2p_begin(c, group, &send, 5);
    for (int i = 0; abi >= 3 && i < 4; i++)
        channel[i] = channel_begin(c, coll, i, 5003 - (unsigned)i);
    plugin.stop(coll);
    plugin.stop(p2p);
    plugin.stop(group);
    for (int i = 0; abi >= 3 && i < 4; i++)
        channel_end(channel[i], 9000 + (unsigned)i);
    plugin.finalize(c);
    h = file_of(getpid());
    SURE(h->dropped == 0 && h->foreign == 0);
    check_comm(h, abi);
    check_coll(h, only(h, RECORD_COLL), abi);
    r = only(h, RECORD_P2P);
    SURE(r && !strcmp(record_name(h, r->op), "Send") && r->peer == 5 && r->bytes == 4000 &&
         r->stop_ns);
    r = only(h, RECORD_GROUP);
    SURE((r != NULL) == ((h->events & PROF_GROUP) != 0));
    SURE(!r || (r->stop_ns && record_seq(r) + 1 == only(h, RECORD_COLL)->parent));
}

static void every_version(void **state)
{
    (void)state;
    for (int abi = 1; abi <= 7; abi++) {
        assert_int_equal(child(one_of_each, abi, "1", "coll"), 0);
        assert_int_equal(child(one_of_each, abi, "1", "proxy"), 0);
    }
}

/* --- proxies --- */
static void state_of(void *step, int state, size_t bytes)
{
    union prof_state_args a = {.step_bytes = bytes};

    plugin.record(step, state, plugin.abi < 4 ? NULL : &a);
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

static void run_proxy(void *op, void *context, int send)
{
    static const int states[2][3] = {{PROF_RECV_WAIT, PROF_RECV_FLUSH_WAIT, PROF_RECV_GPU_WAIT},
                                     {PROF_SEND_GPU_WAIT, PROF_SEND_PEER_WAIT, PROF_SEND_WAIT}};
    union prof_state_args all = {.proxy_op = {3 * 4096, 3}};

    for (int i = 0; i < 3; i++) {
        void *step = step_begin(context, op, i);

        SURE(step);
        for (int s = 0; s < 3; s++) {
            state_of(step, states[send][s], 4096);
            nap(100000);
        }
        plugin.stop(step);
    }
    if (plugin.abi < 4)
        plugin.record(op, send ? PROF_SEND_DONE : PROF_RECV_DONE, &all);
    plugin.stop(op);
}

static void proxies(int abi)
{
    struct call k = ALL_REDUCE;
    const struct record *r;
    struct record_head *h;
    void *c, *coll, *foreign;
    int sends = 0;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    coll = coll_begin(c, group_begin(c), NULL, &k);
    plugin.stop(coll);
    run_proxy(proxy_begin(c, coll, getpid(), 0, 7, 1), c, 1);
    run_proxy(proxy_begin(c, coll, getpid(), 1, 2, 0), c, 0);
    foreign = proxy_begin(c, coll, getppid(), 1, 2, 0);
    SURE(foreign);
    plugin.stop(foreign);
    h = file_of(getpid());
    for (uint64_t i = 0; i < h->next; i++) {
        r = whole_record(h, i);
        if (r->kind == RECORD_COLL) {
            SURE(r->proxy_started == 2 && r->proxy_stopped == 2 && r->proxy_steps == 6);
            SURE(r->sent_bytes == 3 * 4096 && r->received_bytes == 3 * 4096);
            SURE(r->send_gpu_ns > 299000 && r->send_peer_ns > 299000 && r->send_net_ns > 299000);
            SURE(r->recv_net_ns > 299000 && r->recv_flush_ns > 299000 && r->recv_gpu_ns > 299000);
            SURE(r->last_ns > r->first_ns && r->first_ns >= r->stop_ns);
        } else if (r->kind == RECORD_PROXY && r->flags & RECORD_FOREIGN) {
            SURE(!r->parent && r->comm == RECORD_NO_COMM);
        } else if (r->kind == RECORD_PROXY && r->flags & RECORD_SEND) {
            SURE(r->peer == 7 && r->channel == 0 && r->sent_bytes == 3 * 4096 && !r->recv_net_ns);
            SURE(!strcmp(record_name(h, r->op), "AllReduce") && r->parent == 2);
            sends++;
        }
    }
    SURE(sends == 1 && h->dropped == 0 && h->foreign == 0);
}

static void what_proxies_do(void **state)
{
    (void)state;
    for (int abi = 1; abi <= 7; abi++)
        assert_int_equal(child(proxies, abi, "1", "proxy"), 0);
}

/* --- calls of the application, copy engines --- */
static void calls(int abi)
{
    struct call k = ALL_REDUCE;
    const struct record *call, *coll, *outer;
    struct prof_descr d;
    struct record_head *h;
    void *c, *group, *api, *task;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    set_type(&d, PROF_GROUP_API);
    d.group_api = (struct prof_group_api){true, 1};
    group = event(c, &d);
    set_type(&d, PROF_COLL_API);
    d.parent = group;
    d.coll_api = (struct prof_coll_api){"AllReduce", 1000, "ncclFloat32", 2, NULL, true, 5};
    api = event(c, &d);
    plugin.stop(api);
    task = coll_begin(c, api, NULL, &k);
    plugin.stop(task);
    plugin.stop(group);
    h = file_of(getpid());
    call = only(h, RECORD_CALL);
    coll = only(h, RECORD_COLL);
    outer = only(h, RECORD_GROUP_CALL);
    SURE(call && coll && outer && coll->parent == record_seq(call) + 1 &&
         call->parent == record_seq(outer) + 1);
    SURE(call->flags & RECORD_GRAPH && coll->flags & RECORD_GRAPH && call->peer == 2);
    SURE(call->tag == (abi >= 7 ? 5 : 0) && call->bytes == 4000);
    if (abi < 6)
        return;
    set_type(&d, PROF_CE_COLL);
    d.ce_coll.func = "AllGather";
    d.ce_coll.dtype = "ncclInt8";
    d.ce_coll.count = 77;
    d.ce_coll.seq = 12;
    d.ce_coll.root = 0;
    d.ce_coll.tag = 8;
    plugin.stop(event(c, &d));
    h = file_of(getpid());
    coll = whole_record(h, 3);
    SURE(coll && coll->flags == RECORD_CE && coll->bytes == 77 && coll->nccl_seq == 12 &&
         coll->stop_ns);
    SURE(coll->tag == (abi >= 7 ? 8 : 0));
}

static void what_the_application_calls(void **state)
{
    (void)state;
    for (int abi = 5; abi <= 7; abi++)
        assert_int_equal(child(calls, abi, "1", "all"), 0);
}

/* --- the whole of a launch, in NCCL's order (src/enqueue.cc: hostStreamPlanTask(); src/group.cc) --- */
enum { PLANS = 5, TASKS = 3, CHANNELS = 4 };

/* What a plan hands to the proxy thread: tasks whose event is over before their channels begin. */
struct plan {
    void *context, *task[TASKS];
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t there;
    struct plan plan[PLANS];
    int posted;
} proxy = {.lock = PTHREAD_MUTEX_INITIALIZER, .there = PTHREAD_COND_INITIALIZER};

/* An event that the plugin did not ask for is not begun, and its handle stays NULL. */
static void *asked(uint64_t bit, void *context, struct prof_descr *d)
{
    return (uint64_t)plugin.mask & bit ? event(context, d) : NULL;
}

static void stop_if(void *handle)
{
    if (handle)
        plugin.stop(handle);
}

/* ncclProxyProgress(): a channel begins when the GPU has written its counter; all channels of a task are under way
 * at once, and end in any order. */
static void run_task(void *context, void *task, unsigned plan)
{
    void *channel[CHANNELS], *op[CHANNELS] = {NULL};

    for (int i = 0; i < CHANNELS; i++) {
        channel[i] = plugin.abi >= 3 && plugin.mask & PROF_KERNEL_CH
                         ? channel_begin(context, task, i, 1000 * plan + 5003 - (unsigned)i)
                         : NULL;
        if (plugin.mask & PROF_PROXY_OP)
            op[i] = proxy_begin(context, task, getpid(), i, 1, i % 2);
        if (op[i] && plugin.abi >= 4)
            plugin.record(op[i], PROF_OP_IN_PROGRESS, NULL);
    }
    for (int i = CHANNELS - 1; i >= 0; i--) {
        if (op[i])
            run_proxy(op[i], context, i % 2);
        if (channel[i])
            channel_end(channel[i], 1000 * plan + 9000 + (unsigned)i);
    }
}

static void *progress(void *unused)
{
    for (unsigned i = 0; i < PLANS; i++) {
        pthread_mutex_lock(&proxy.lock);
        while (proxy.posted <= (int)i)
            pthread_cond_wait(&proxy.there, &proxy.lock);
        pthread_mutex_unlock(&proxy.lock);
        for (int t = 0; t < TASKS; t++)
            run_task(proxy.plan[i].context, proxy.plan[i].task[t], i);
    }
    return unused;
}

/* What the application calls between ncclGroupStart() and ncclGroupEnd(): v5 on. */
static void *enqueue(void *c, void *api[TASKS], const struct call *k)
{
    struct prof_descr d;

    set_type(&d, PROF_GROUP_API);
    d.group_api = (struct prof_group_api){false, 1};
    void *group = asked(PROF_GROUP_API, c, &d);
    for (int t = 0; t < TASKS; t++) {
        set_type(&d, PROF_COLL_API);
        d.parent = group;
        d.coll_api = (struct prof_coll_api){k->func, k->count, k->dtype, 0, NULL, false, 0};
        api[t] = asked(PROF_COLL_API, c, &d);
        if (group && t == 0)
            plugin.record(group, PROF_GROUP_START_STOP, NULL);
        stop_if(api[t]);
    }
    if (group)
        plugin.record(group, PROF_GROUP_END_START, NULL);
    return group;
}

static void launch(void *c, struct plan *p, struct call *k)
{
    void *api[TASKS] = {NULL}, *outer = plugin.abi >= 5 ? enqueue(c, api, k) : NULL, *kernel = NULL;
    struct prof_descr d;

    p->context = c;
    if (plugin.abi >= 5) {
        set_type(&d, PROF_KERNEL_LAUNCH);
        d.parent = outer;
        kernel = asked(PROF_KERNEL_LAUNCH, c, &d);
        stop_if(kernel);
    }
    set_type(&d, PROF_GROUP);
    void *group = event(c, &d); /* begun for any event below it */
    for (int t = 0; t < TASKS; t++, k->seq++)
        p->task[t] = coll_begin(c, plugin.abi < 5 ? group : api[t], group, k);
    pthread_mutex_lock(&proxy.lock); /* ncclProxyStart(), before the events of the tasks end */
    proxy.posted++;
    pthread_cond_signal(&proxy.there);
    pthread_mutex_unlock(&proxy.lock);
    for (int t = 0; t < TASKS; t++)
        plugin.stop(p->task[t]);
    stop_if(group);
    stop_if(outer);
}

static void in_order(int abi)
{
    struct call k = ALL_REDUCE;
    struct record_head *h;
    pthread_t thread;
    uint64_t colls = 0;

    plugin_load(abi);
    void *c = comm_begin(0xabcd, 3, 16, "dp");
    SURE(!pthread_create(&thread, NULL, progress, NULL));
    for (int i = 0; i < PLANS; i++)
        launch(c, &proxy.plan[i], &k);
    pthread_join(thread, NULL);
    plugin.finalize(c);
    h = file_of(getpid());
    SURE(h->dropped == 0 && h->foreign == 0 && h->closed_ns);
    for (uint64_t i = 0; i < h->next; i++) {
        const struct record *r = whole_record(h, i);
        SURE(r);
        if (r->kind != RECORD_COLL)
            continue;
        SURE(r->nccl_seq == ++colls && r->stop_ns >= r->start_ns);
        SURE(abi < 3 || (r->channels_started == CHANNELS && r->channels_stopped == CHANNELS));
        SURE(abi < 4 || (r->gpu_start == 1000 * ((colls - 1) / TASKS) + 5000 &&
                         r->gpu_stop == 1000 * ((colls - 1) / TASKS) + 9003));
        SURE(abi < 3 || r->last_ns >= r->first_ns);
    }
    SURE(colls == PLANS * TASKS && record_comm_at(h, 0)->state == RECORD_COMM_CLOSED);
}

static void launches_in_the_order_of_nccl(void **state)
{
    static const char *const events[] = {"coll", "proxy", "all"};

    (void)state;
    for (int abi = 1; abi <= 7; abi++)
        for (int i = 0; i < 3; i++)
            assert_int_equal(child(in_order, abi, "1", events[i]), 0);
}

/* --- a ring that is overwritten --- */
static struct call numbered(uint64_t seq)
{
    struct call k = ALL_REDUCE;

    k.seq = seq;
    k.count = seq * 7 + 1;
    k.root = (int)(seq % 1000);
    return k;
}

/* Every whole record is one of those that numbered() made, with its own children only. */
static uint64_t check_numbered(const struct record_head *h, int least_stopped)
{
    uint64_t found = 0;

    for (uint64_t i = 0; i < h->capacity; i++) {
        const struct record *r = whole_record(h, i);

        if (!r)
            continue;
        found++;
        SURE(r->kind == RECORD_COLL && r->count == r->nccl_seq * 7 + 1 && r->bytes == 4 * r->count);
        SURE(r->peer == (int)(r->nccl_seq % 1000) && r->channels == 4);
        SURE(r->channels_started <= 4 && r->channels_stopped <= r->channels_started);
        SURE(r->channels_stopped >= least_stopped);
        SURE(!r->gpu_start || r->gpu_start == r->nccl_seq * 10 + 1);
        SURE(!r->gpu_stop ||
             (r->gpu_stop > r->nccl_seq * 10 && r->gpu_stop <= r->nccl_seq * 10 + 5));
        SURE(!strcmp(record_name(h, r->op), "AllReduce"));
    }
    return found;
}

static void *run_numbered(void *c, uint64_t seq)
{
    struct call k = numbered(seq);
    void *coll = coll_begin(c, NULL, NULL, &k), *channel[4];

    for (int i = 0; i < 4; i++)
        channel[i] = channel_begin(c, coll, i, seq * 10 + 1);
    plugin.stop(coll);
    for (int i = 0; i < 4; i++)
        channel_end(channel[i], seq * 10 + 2 + (unsigned)i);
    return coll;
}

static void overwritten(int abi)
{
    struct record_head *h;
    void *c, *late, *first;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    first = run_numbered(c, 0);
    for (uint64_t i = 1; i < 20000; i++)
        run_numbered(c, i);
    late = channel_begin(c, first, 0, 1);
    SURE(!late);
    plugin.stop(first);
    h = file_of(getpid());
    SURE(h->next == 20000 && h->foreign == 1 && h->dropped == 0 && h->capacity < 6000);
    SURE(check_numbered(h, 4) == h->capacity);
    for (uint64_t i = h->next - h->capacity; i < h->next; i++)
        SURE(record_seq(record_at(h, i)) == i && record_at(h, i)->nccl_seq == i);
    SURE(record_comm_at(h, 0)->records == 20000);
}

static void only_the_last_are_kept(void **state)
{
    (void)state;
    assert_int_equal(child(overwritten, 5, "1", "coll"), 0);
}

/* What hangs is not overwritten: its channels hold it. */
static void hanging(int abi)
{
    struct call k = numbered(7);
    struct record_head *h;
    const struct record *r;
    void *c, *coll;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    coll = coll_begin(c, NULL, NULL, &k);
    SURE(channel_begin(c, coll, 0, 71));
    plugin.stop(coll);
    for (uint64_t i = 1000; i < 20000; i++)
        run_numbered(c, i);
    h = file_of(getpid());
    r = whole_record(h, 0);
    SURE(r && r->nccl_seq == 7 && r->channels_started == 1 && r->channels_stopped == 0);
    SURE(h->dropped == 19000 / h->capacity && check_numbered(h, 0) == h->capacity);
}

static void what_hangs_is_kept(void **state)
{
    (void)state;
    assert_int_equal(child(hanging, 5, "1", "coll"), 0);
}

/* --- threads, and kill -9 at any moment --- */
enum { THREADS = 4, EACH = 60000, LATE = 3000 };
static void *shared[THREADS];

/* Tasks whose channels end thousands of tasks later, some of them when their place has another record. */
static void *work(void *arg)
{
    uint64_t from = (uint64_t)(uintptr_t)arg;
    void **late = calloc(LATE, sizeof(*late));
    void *c = shared[from % THREADS];

    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t seq = from * EACH + i;
        struct call k = numbered(seq);
        void *coll = coll_begin(c, NULL, NULL, &k);

        if (coll) {
            void *channel = channel_begin(c, coll, 0, seq * 10 + 1);

            plugin.stop(coll);
            channel_end(channel, seq * 10 + 2);
        }
        if (late[i % LATE])
            channel_end(channel_begin(c, late[i % LATE], 1, (seq - LATE) * 10 + 1),
                        (seq - LATE) * 10 + 3);
        late[i % LATE] = coll;
    }
    free(late);
    return NULL;
}

static void many_threads(int abi)
{
    pthread_t thread[THREADS];
    struct record_head *h;
    uint64_t records = 0;

    plugin_load(abi);
    for (int i = 0; i < THREADS; i++)
        shared[i] = comm_begin(0xabcd + (unsigned)i, 3, 16, "dp");
    for (int i = 0; i < THREADS; i++)
        SURE(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    h = file_of(getpid());
    SURE(h->next == THREADS * EACH && h->comms == THREADS);
    SURE(check_numbered(h, 1) == h->capacity && h->foreign);
    for (unsigned i = 0; i < h->comms; i++)
        records += record_comm_at(h, i)->records;
    SURE(records + h->dropped == h->next);
    for (uint64_t i = 0; i < h->capacity; i++)
        SURE(!(whole_record(h, i)->word & 0xff) &&
             whole_record(h, i)->comm == whole_record(h, i)->nccl_seq / EACH);
}

static void threads_write_together(void **state)
{
    (void)state;
    assert_int_equal(child(many_threads, 6, "1", "coll"), 0);
}

static void forever(int abi)
{
    pthread_t thread;

    plugin_load(abi);
    shared[0] = comm_begin(0xabcd, 3, 16, "dp");
    shared[1] = comm_begin(0xabce, 3, 16, "tp");
    pthread_create(&thread, NULL, work, (void *)1);
    for (uint64_t from = 4;; from += THREADS)
        work((void *)(uintptr_t)from);
}

static void killed_at_any_moment(void **state)
{
    unsigned seed = (unsigned)time(NULL);

    (void)state;
    fprintf(stderr, "# seed %u\n", seed);
    for (int i = 0; i < 12; i++) {
        pid_t pid = child_begin(forever, 5, "1", "coll");
        struct record_head *h;
        char path[512], word[32];
        int status;

        snprintf(word, sizeof(word), "-%d" RECORD_SUFFIX, (int)pid);
        for (;;) { /* until something is recorded */
            size_t bytes;
            char *text = file_find(folder, word, path) ? file_read(path, &bytes) : NULL;
            bool some =
                text && !record_wrong(text, bytes) && ((struct record_head *)text)->next > 100;

            free(text);
            if (some)
                break;
            nap(1000000);
        }
        nap(rand_r(&seed) % 30000000);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        h = file_of(pid);
        /* At most one record of each thread was under way. */
        assert_true(check_numbered(h, 0) + 2 >= (h->next < h->capacity ? h->next : h->capacity));
        assert_int_equal(h->closed_ns, 0);
        free(h);
    }
}

/* --- fork --- */
static void forks(int abi)
{
    struct record_head *h;
    int status;
    void *c;
    pid_t pid;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    run_numbered(c, 1);
    pid = fork();
    if (!pid) {
        struct call k = numbered(2);

        SURE(!coll_begin(c, NULL, NULL, &k));
        plugin.stop((void *)(uintptr_t)(1ull << 60 | 1));
        plugin.finalize(c);
        c = comm_begin(0xeeee, 0, 2, "child");
        run_numbered(c, 3);
        h = file_of(getpid());
        SURE(h->next == 1 && h->comms == 1 && record_comm_at(h, 0)->hash == 0xeeee);
        SURE(check_numbered(h, 4) == 1);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    SURE(!status);
    run_numbered(c, 4);
    h = file_of(getpid());
    SURE(h->next == 2 && h->comms == 1 && !h->closed_ns && check_numbered(h, 4) == 2);
}

static void a_child_has_its_own(void **state)
{
    (void)state;
    assert_int_equal(child(forks, 5, "1", "coll"), 0);
}

/* --- two lives of the library in one process --- */
static void again(int abi)
{
    struct record_head *h;
    void *c;

    plugin_load(abi);
    c = comm_begin(1, 0, 2, "first");
    run_numbered(c, 1);
    plugin.finalize(c);
    plugin_load(abi);
    c = comm_begin(2, 1, 2, "second");
    run_numbered(c, 2);
    h = file_of(getpid());
    SURE(h->comms == 2 && h->next == 2 && !h->closed_ns);
    SURE(record_comm_at(h, 0)->state == RECORD_COMM_CLOSED &&
         record_comm_at(h, 1)->state == RECORD_COMM_OPEN);
    SURE(whole_record(h, 0)->comm == 0 && whole_record(h, 1)->comm == 1);
    for (int i = 0; i < RECORD_COMMS; i++)
        c = comm_begin(3, 0, 2, NULL);
    run_numbered(c, 3);
    plugin.finalize(c);
    h = file_of(getpid());
    SURE(h->comms == RECORD_COMMS && whole_record(h, 2)->comm == RECORD_NO_COMM);
}

static void communicators_come_and_go(void **state)
{
    (void)state;
    assert_int_equal(child(again, 5, "1", "coll"), 0);
}

/* --- nowhere to write --- */
static void expect_nothing(int files_before)
{
    struct call k = numbered(1);
    char path[512];
    void *c;

    plugin_load(5);
    c = comm_begin(0xabcd, 3, 16, "dp");
    SURE(!c && plugin.mask == 0);
    SURE(!coll_begin(c, NULL, NULL, &k)); /* whoever does not look at the mask */
    plugin.stop(NULL);
    plugin.finalize(c);
    SURE(!comm_begin(0xabcd, 3, 16, "dp"));
    SURE(file_find(getenv("RAILGAUGE_NCCL_DIR"), "", path) == files_before);
}

static void small_limit(int arg)
{
    (void)arg;
    SURE(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){65536, 65536}));
    expect_nothing(0);
}

static void no_folder(int arg)
{
    (void)arg;
    setenv("RAILGAUGE_NCCL_DIR", "/proc/self/nothing/here", 1);
    expect_nothing(0);
}

static void small_disk(int arg)
{
    (void)arg;
    if (mount("railgauge", folder, "tmpfs", 0, "size=512k"))
        _exit(2);
    expect_nothing(0);
    SURE(!umount2(folder, MNT_DETACH));
}

static void nowhere_to_write(void **state)
{
    int status;

    (void)state;
    assert_int_equal(child(small_limit, 0, "1", "coll"), 0);
    assert_int_equal(child(no_folder, 0, "1", "coll"), 0);
    status = child(small_disk, 0, "1", "coll");
    if (status == 2 << 8)
        fprintf(stderr, "# no right to mount a small disk: not tried\n");
    else
        assert_int_equal(status, 0);
}

static void odd_environment(int arg)
{
    struct record_head *h;

    (void)arg;
    plugin_load(4);
    SURE(comm_begin(0xabcd, 3, 16, "dp"));
    h = file_of(getpid());
    SURE(h->events == (PROF_COLL | PROF_P2P | PROF_KERNEL_CH));
    SURE(h->capacity > 80000 && h->capacity < 90000);
}

static void odd_words_are_defaults(void **state)
{
    (void)state;
    assert_int_equal(child(odd_environment, 0, "-3", "everything"), 0);
    assert_int_equal(child(odd_environment, 0, "12x", "COLL"), 0);
}

/* --- handles that are none; more steps than there is room for --- */
static void strange_handles(int abi)
{
    struct call k = numbered(1);
    void *c, *coll, *channel, *op;
    struct record_head *h;
    int got = 0;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    for (uint64_t kind = 0; kind < 16; kind++)
        for (uint64_t low = 0; low < 3; low++) {
            void *strange = (void *)(uintptr_t)(kind << 60 | low << 40 | low * 77777777);

            plugin.stop(strange);
            plugin.record(strange, PROF_KERNEL_CH_STOP, NULL);
            plugin.record(strange, PROF_SEND_WAIT, NULL);
            channel_begin(c, strange, 0, 1);
            step_begin(c, strange, 0);
        }
    coll = coll_begin(c, NULL, NULL, &k);
    channel = channel_begin(c, coll, 0, 11);
    channel_end(channel, 12);
    channel_end(channel, 13); /* a second end takes nobody's pin */
    plugin.stop(coll);
    plugin.stop(coll);
    op = proxy_begin(c, coll, getpid(), 0, 1, 1);
    for (int i = 0; i < 6000; i++)
        got += step_begin(c, op, i) != NULL;
    plugin.stop(op);
    h = file_of(getpid());
    SURE(got > 4000 && got <= 4096 && h->dropped == 6000u - (unsigned)got);
    SURE(!(whole_record(h, 0)->word & 0xff));
}

static void strange_handles_do_nothing(void **state)
{
    (void)state;
    for (int abi = 3; abi <= 7; abi++)
        assert_int_equal(child(strange_handles, abi, "1", "proxy"), 0);
}

/* --- a file that others cut, overwrite, remove; a job that closes what it has not opened --- */
static char own_file[512];

static void open_file_of(int abi)
{
    char word[32];

    plugin_load(abi);
    shared[0] = comm_begin(0xabcd, 3, 16, "dp");
    snprintf(word, sizeof(word), "-%d" RECORD_SUFFIX, (int)getpid());
    SURE(file_find(folder, word, own_file) == 1);
}

/* Do to the file what quotas, evictions and people do, while records are made. */
static void *harm(void *seed)
{
    unsigned s = (unsigned)(uintptr_t)seed;

    for (int i = 0; i < 300; i++) {
        int fd = open(own_file, O_RDWR);
        unsigned char noise[4096];

        for (size_t b = 0; b < sizeof(noise); b++)
            noise[b] = (unsigned char)rand_r(&s);
        if (i % 3 == 0)
            SURE(ftruncate(fd, rand_r(&s) % 2 ? 0 : rand_r(&s) % (1 << 20)) == 0);
        else
            for (int k = 0; k < 8; k++) /* the header, too */
                SURE(pwrite(fd, noise, sizeof(noise), k ? rand_r(&s) % (1 << 20) : 0) > 0);
        close(fd);
        nap(2000000);
    }
    return NULL;
}

static void harmed(int seed)
{
    pthread_t thread;
    struct record_head *h;
    struct stat st;

    open_file_of(5);
    SURE(!pthread_create(&thread, NULL, harm, (void *)(uintptr_t)seed));
    for (uint64_t i = 0; i < 600; i++) {
        for (uint64_t k = 0; k < 100; k++)
            run_numbered(shared[0], i * 100 + k);
        nap(1000000);
    }
    pthread_join(thread, NULL);
    /* Cut once more, it is written anew: nothing of it was ever read back. */
    SURE(truncate(own_file, 100) == 0);
    h = file_of(getpid());
    SURE(h->next == 60000 && h->names > 1 && h->comms == 1);
    SURE(check_numbered(h, 4) == h->capacity);
    SURE(unlink(own_file) == 0);
    run_numbered(shared[0], 1);
    plugin.finalize(shared[0]);
    SURE(stat(own_file, &st) < 0);
}

static void what_is_done_to_the_file_is_not_done_to_the_job(void **state)
{
    unsigned seed = (unsigned)time(NULL);

    (void)state;
    fprintf(stderr, "# seed %u\n", seed);
    assert_int_equal(child(harmed, (int)seed, "1", "coll"), 0);
}

/* The descriptor of the file is not the job's: one with its number is another file. */
static void closes_all(int abi)
{
    char other[600], text[8] = "";
    size_t bytes = 0;
    int fd;

    open_file_of(abi);
    snprintf(other, sizeof(other), "%s/other", folder);
    for (int i = 3; i < 256; i++)
        close(i);
    for (int i = 0; i < 64; i++) {
        fd = open(other, O_RDWR | O_CREAT, 0600);
        SURE(fd >= 3);
    }
    SURE(write(fd, "mine", 4) == 4);
    for (uint64_t i = 0; i < 100; i++)
        run_numbered(shared[0], i);
    plugin.finalize(shared[0]);
    SURE(pread(fd, text, sizeof(text), 0) == 4 && !memcmp(text, "mine", 4));
    free(file_read(other, &bytes));
    SURE(bytes == 4 && file_of(getpid())->next == 100);
}

/* A reader of a pipe sees its end when the job closes the other: no copy is kept. */
static void keeps_no_pipe(int abi)
{
    int end[2];
    char c;

    SURE(pipe(end) == 0);
    open_file_of(abi);
    close(end[1]);
    SURE(read(end[0], &c, 1) == 0);
    close(end[0]);
}

static void descriptors_are_its_own(void **state)
{
    (void)state;
    assert_int_equal(child(closes_all, 5, "1", "coll"), 0);
    assert_int_equal(child(keeps_no_pipe, 5, "1", "coll"), 0);
}

static uint64_t written(void)
{
    char line[64];
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");

    while (f && fgets(line, sizeof(line), f) && sscanf(line, "wchar: %llu", &n) != 1)
        ;
    if (f)
        fclose(f);
    return n;
}

/* 16 MiB change all the time, 2 MiB are written in 0.1 s; what is not yet written comes with the end. */
static void at_full_speed(int abi)
{
    struct timespec begin, now;
    uint64_t before, bytes, seq = 0;
    double took;

    open_file_of(abi);
    before = written();
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 1000; i++)
            run_numbered(shared[0], seq++);
        clock_gettime(CLOCK_MONOTONIC, &now);
        took = (double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec);
    } while (took < 2);
    bytes = written() - before;
    fprintf(stderr, "# %.0f records/s, %.1f MB/s written\n", (double)seq / took,
            1e-6 * (double)bytes / took);
    SURE((double)bytes <= (took / 0.1 + 1) * (2.2 * (1 << 20)));
    SURE(seq < 100000 || bytes > 2 << 20);
    plugin.finalize(shared[0]);
    SURE(file_of(getpid())->next == seq);
    SURE(check_numbered(file_of(getpid()), 4) == file_of(getpid())->capacity || seq < 87000);
}

static void the_rate_of_writing_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(child(at_full_speed, 5, "16", "coll"), 0);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A record is in the file after a tick, and a flush does not wait, whatever the wall clock says. */
static void at_a_set_clock(int abi)
{
    uint64_t begin;

    open_file_of(abi);
    for (int i = 0; i < 10; i++) { /* ticks before and after the step */
        run_numbered(shared[0], (uint64_t)i);
        nap(150000000);
    }
    nap(500000000);
    SURE(file_of(getpid())->next == 10);
    begin = now_ns();
    plugin.finalize(shared[0]);
    SURE(now_ns() - begin < 800000000); /* ring_flush() gives up after 1 s */
}

static void a_clock_that_is_set_delays_nothing(void **state)
{
    static const char *const set[] = {"clock=3600 calls=4", "clock=-3600 calls=4"};
    const char *build = getenv("RG_BUILD"), *san = getenv("RG_SAN");
    char shim[512];
    int status;

    (void)state;
    snprintf(shim, sizeof(shim), "%s/fake/libfaulty.so", build ? build : "build");
    if (access(shim, R_OK) || (san && *san))
        skip();
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (!pid) {
            setenv("LD_PRELOAD", shim, 1);
            setenv("FAULTY", set[i], 1);
            execl("/proc/self/exe", "profiler", folder, NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* Others of the group may read, nobody else may, and nobody may look into the folder. */
static void modes(int abi)
{
    char below[128];
    struct stat st;

    umask(0);
    snprintf(below, sizeof(below), "%s/new", folder);
    setenv("RAILGAUGE_NCCL_DIR", below, 1);
    plugin_load(abi);
    shared[0] = comm_begin(0xabcd, 3, 16, "dp");
    SURE(stat(below, &st) == 0 && (st.st_mode & 07777) == 0750);
    SURE(file_find(below, RECORD_SUFFIX, own_file) == 1);
    SURE(stat(own_file, &st) == 0 && (st.st_mode & 07777) == 0640);
    SURE(unlink(own_file) == 0);
}

static void only_the_group_may_read(void **state)
{
    (void)state;
    assert_int_equal(child(modes, 5, "1", "coll"), 0);
}

/* --- what it costs --- */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* ns of CPU for a collective with so many channels: all calls that NCCL makes for it, median of several. */
static double cost(void *c, int channels)
{
    enum { TIMES = 9, COUNT = 20000 };
    double took[TIMES];
    void *channel[64];

    for (int t = 0; t < TIMES; t++) {
        double begin = seconds();

        for (uint64_t i = 0; i < COUNT; i++) {
            struct call k = numbered(i);
            void *group = group_begin(c), *coll;

            k.channels = channels;
            coll = coll_begin(c, NULL, group, &k);
            plugin.stop(coll);
            plugin.stop(group);
            for (int n = 0; n < channels; n++)
                channel[n] = channel_begin(c, coll, n, i + 1);
            for (int n = 0; n < channels; n++)
                channel_end(channel[n], i + 2);
        }
        took[t] = (seconds() - begin) / COUNT * 1e9;
    }
    qsort(took, TIMES, sizeof(*took), by_size);
    return took[TIMES / 2];
}

static void costs(int abi)
{
    double one, sixteen;
    void *c;

    plugin_load(abi);
    c = comm_begin(0xabcd, 3, 16, "dp");
    one = cost(c, 1);
    sixteen = cost(c, 16);
    fprintf(stderr, "# v%d: %.0f ns a collective of 1 channel, %.0f ns of 16\n", abi, one, sixteen);
    /* Made for below 1 us on an idle machine; a loaded one, and sanitizers, get room. */
    SURE(one < 1000);
    SURE(sixteen < 3000);
}

static void a_microsecond_a_collective(void **state)
{
    const char *san = getenv("RG_SAN");

    (void)state;
    if (san && *san)
        skip();
    assert_int_equal(child(costs, 5, "16", "coll"), 0);
}

int main(int argc, char **argv)
{
    if (argc == 2) { /* with a preloaded clock */
        snprintf(folder, sizeof(folder), "%s", argv[1]);
        return child(at_a_set_clock, 7, "1", "coll");
    }
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        TEST(every_version),
        TEST(what_proxies_do),
        TEST(what_the_application_calls),
        TEST(only_the_last_are_kept),
        TEST(what_hangs_is_kept),
        TEST(threads_write_together),
        TEST(killed_at_any_moment),
        TEST(a_child_has_its_own),
        TEST(communicators_come_and_go),
        TEST(nowhere_to_write),
        TEST(odd_words_are_defaults),
        TEST(strange_handles_do_nothing),
        TEST(what_is_done_to_the_file_is_not_done_to_the_job),
        TEST(descriptors_are_its_own),
        TEST(the_rate_of_writing_is_bounded),
        TEST(a_clock_that_is_set_delays_nothing),
        TEST(only_the_group_may_read),
        TEST(launches_in_the_order_of_nccl),
        TEST(a_microsecond_a_collective),
    };

    return cmocka_run_group_tests_name("profiler", tests, NULL, NULL);
}
