/* SPDX-License-Identifier: BSD-3-Clause */
/* relay.c - the lab's spine when racks are some microseconds apart: a switch in user space.
 *
 *   relay DELAY_US PORT...
 *
 * Each PORT becomes a TAP device in the current network namespace.  A frame that comes in by one
 * port leaves by the port where its destination address was last seen (by all others, if never)
 * DELAY_US later.  What the relay's own handling costs is taken off the delay, see HANDLING_NS.  It
 * stands in for netem, which many kernels are built without.  Ends on SIGTERM or SIGINT. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS = 16,
    QUEUE = 256, /* frames waiting at one port; a 16 KiB frame each, so 4 MiB */
    FRAME = 64 * 1024 + 256,
    STATIONS = 256, /* addresses that are remembered */
    BURST = 8,      /* frames taken from one port before the others get a turn */
    MAC = 6,
    DELAY_MAX_US = 100000,
    HEADER =
        sizeof(struct virtio_net_hdr), /* stands before each frame: large segments stay whole */
};

/* Time from a frame's arrival at the TAP to our read plus from our write to the receiver, beyond
 * what the kernel's bridge would take: measured as one-way latency through the relay with
 * DELAY_US=0 less that through a bridge. */
static const int64_t HANDLING_NS = 15000;
/* The last stretch before a frame is due is waited for awake: a sleep ends some microseconds late.
 */
static const int64_t AWAKE_NS = 30000;

struct frame {
    int64_t due;
    size_t len;
    unsigned char *data;
};

struct port {
    int fd;
    struct frame ring[QUEUE]; /* in order of due: the delay is the same for all */
    unsigned head, tail;
};

struct station {
    unsigned char mac[MAC];
    int port;
};

struct relay {
    struct port port[PORTS];
    int ports;
    struct station station[STATIONS];
    int stations;
    int64_t delay;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int tap_open(const char *name)
{
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), len = HEADER;
    struct ifreq req = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    if (fd < 0)
        die("/dev/net/tun");
    snprintf(req.ifr_name, sizeof req.ifr_name, "%s", name);
    if (ioctl(fd, TUNSETIFF, &req) || ioctl(fd, TUNSETVNETHDRSZ, &len) ||
        ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO_ECN))
        die(name);
    return fd;
}

static void port_open(struct port *p, const char *name)
{
    p->fd = tap_open(name);
    for (int i = 0; i < QUEUE; i++) {
        p->ring[i].data = malloc(FRAME);
        if (!p->ring[i].data)
            die("frame buffers");
    }
}

static struct station *station_find(struct relay *r, const unsigned char *mac)
{
    for (int i = 0; i < r->stations; i++)
        if (!memcmp(r->station[i].mac, mac, MAC))
            return &r->station[i];
    return NULL;
}

static void station_learn(struct relay *r, const unsigned char *mac, int port)
{
    struct station *s = station_find(r, mac);
    if (!s && r->stations < STATIONS) {
        s = &r->station[r->stations++];
        memcpy(s->mac, mac, MAC);
    }
    if (s)
        s->port = port;
}

/* A full queue drops the frame, as a switch does; TCP copes. */
static void port_queue(struct port *p, const unsigned char *data, size_t len, int64_t due)
{
    if (p->head - p->tail >= QUEUE)
        return;
    struct frame *f = &p->ring[p->head++ % QUEUE];
    memcpy(f->data, data, len);
    f->len = len;
    f->due = due;
}

/* Take in what waits at one port and put it into the queues of the ports it goes to. */
static void port_take(struct relay *r, int in)
{
    static unsigned char buf[FRAME];
    for (int k = 0; k < BURST; k++) {
        ssize_t n = read(r->port[in].fd, buf, sizeof buf);
        if (n < HEADER + 2 * MAC)
            return;
        const unsigned char *to = buf + HEADER, *from = to + MAC;
        station_learn(r, from, in);
        bool group = to[0] & 1;
        const struct station *s = group ? NULL : station_find(r, to);
        int64_t due = now_ns() + r->delay;
        for (int out = 0; out < r->ports; out++)
            if (out != in && (!s || s->port == out))
                port_queue(&r->port[out], buf, (size_t)n, due);
    }
}

/* Send what is due at one port; returns when its next frame will be, INT64_MAX if none waits. */
static int64_t port_send(struct port *p)
{
    while (p->tail != p->head) {
        const struct frame *f = &p->ring[p->tail % QUEUE];
        if (f->due > now_ns() + AWAKE_NS)
            return f->due;
        while (now_ns() < f->due)
            ;
        /* A refusal (device down, its queue full) is a dropped frame. */
        if (write(p->fd, f->data, f->len) < 0 && errno == EBADFD)
            die("write");
        p->tail++;
    }
    return INT64_MAX;
}

static void relay_run(struct relay *r)
{
    struct pollfd poll[PORTS];
    for (int i = 0; i < r->ports; i++)
        poll[i] = (struct pollfd){.fd = r->port[i].fd, .events = POLLIN};
    while (!stopped) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < r->ports; i++) {
            int64_t due = port_send(&r->port[i]);
            next = due < next ? due : next;
        }
        int64_t sleep = next - AWAKE_NS - now_ns();
        sleep = sleep < 0 ? 0 : sleep;
        struct timespec t = {.tv_sec = sleep / 1000000000, .tv_nsec = sleep % 1000000000};
        if (ppoll(poll, (nfds_t)r->ports, next == INT64_MAX ? NULL : &t, NULL) < 0 &&
            errno != EINTR)
            die("poll");
        for (int i = 0; i < r->ports; i++)
            if (poll[i].revents & POLLIN)
                port_take(r, i);
    }
}

/* Timers to the nanosecond, and ahead of the MPI ranks that share the cores.  Without the right to
 * do so the delay is less exact and still works. */
static void be_prompt(void)
{
    struct sched_param first = {.sched_priority = 10};
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    if (sched_setscheduler(0, SCHED_FIFO, &first))
        fprintf(stderr, "relay: no real-time priority: %s\n", strerror(errno));
}

int main(int argc, char **argv)
{
    static struct relay r;
    char *end = NULL;
    long us = argc > 1 ? strtol(argv[1], &end, 10) : -1;
    if (argc < 3 || argc - 2 > PORTS || end == argv[1] || *end || us < 0 || us > DELAY_MAX_US) {
        fprintf(stderr, "usage: relay DELAY_US PORT... (0..%d us, at most %d ports)\n",
                DELAY_MAX_US, PORTS);
        return 64;
    }
    r.delay = us * INT64_C(1000) - HANDLING_NS;
    r.delay = r.delay < 0 ? 0 : r.delay;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    for (r.ports = 0; r.ports < argc - 2; r.ports++)
        port_open(&r.port[r.ports], argv[2 + r.ports]);
    be_prompt();
    relay_run(&r);
    return 0;
}
