/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define DIGITS "0123456789"

/* Open a regular file; -1: error. */
static int open_regular(const char *path, struct stat *st, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO must not hang */

    if (fd < 0 || fstat(fd, st) < 0)
        err_noinput(err, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st->st_mode))
        err_noinput(err, "%s: not a regular file", path);
    else {
        log_debug("reading %s", path);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Read up to `want` bytes; fewer at the end of the file. */
static int read_bytes(int fd, char *buf, size_t want, size_t *n, const char *path, struct err *err)
{
    for (*n = 0; *n < want;) {
        ssize_t got = read(fd, buf + *n, want - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_io(err, "%s: %s", path, strerror(errno));
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return 0;
}

int file_read(char **text, size_t *len, const char *path, size_t max, struct err *err)
{
    struct stat st;
    char *buf = NULL;
    size_t n = 0;
    int rc = -1, fd = open_regular(path, &st, err);

    if (fd < 0)
        return -1;
    if ((size_t)st.st_size > max)
        err_data(err, "%s: %zu bytes is more than the %zu that this format may have", path,
                 (size_t)st.st_size, max);
    else if (!(buf = malloc((size_t)st.st_size + 1)))
        err_io(err, "%s: no memory for %zu bytes", path, (size_t)st.st_size);
    else
        rc = read_bytes(fd, buf, (size_t)st.st_size, &n, path, err);
    close(fd);
    if (rc < 0) {
        free(buf);
        return -1;
    }
    buf[n] = '\0';
    *text = buf;
    if (len)
        *len = n;
    return 0;
}

int file_blocks(const char *path, file_taker *take, void *to, struct err *err)
{
    struct stat st;
    size_t room = 1 << 20, held = 0, left, n, used;
    int rc = 0, fd = open_regular(path, &st, err);

    if (fd < 0)
        return -1;
    char *buf = mem_calloc(room + 1, 1);
    left = (size_t)st.st_size;
    do {
        if (held == room)
            buf = mem_realloc(buf, (room *= 2) + 1, 1);
        size_t want = left < room - held ? left : room - held;
        rc = read_bytes(fd, buf + held, want, &n, path, err);
        left = n < want ? 0 : left - n; /* the file may have been truncated */
        used = held += rc < 0 ? 0 : n;
        buf[held] = '\0';
        if (rc == 0)
            rc = take(to, buf, &used, !left, err);
        held -= used;
        memmove(buf, buf + used, held);
    } while (rc == 0 && left);
    free(buf);
    close(fd);
    return rc;
}

/* True for /dev/null or a pipe: renaming would replace it by a file for the whole machine. */
static bool is_device(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* --- temporary files; the writer holds a lock --- */

static struct file_out *unfinished; /* used by one thread per process */

static void remove_unfinished(void)
{
    for (struct file_out *f = unfinished; f; f = f->next)
        unlink(f->temp);
}

/* Remove files NAME.tmp.PID without a lock: their writers were killed. */
static void clear_stale(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
    char *start = mem_printf("%s.tmp.", slash ? slash + 1 : path);
    DIR *dir = opendir(folder);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        const char *pid = e->d_name + strlen(start);
        if (strncmp(e->d_name, start, strlen(start)) != 0 || !*pid || pid[strspn(pid, DIGITS)])
            continue;
        int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
    free(start);
    free(folder);
}

/* Open and lock a temporary file; -1 with errno.  If another process clears it before it is
 * locked, create it again.  Where locks are not supported, files are never cleared. */
static int open_temp(const char *temp)
{
    struct stat st;

    for (int i = 0; i < 8; i++) {
        int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
            return -1;
        if ((flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(fd, &st) == 0 &&
            st.st_nlink)
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

static void leave_list(struct file_out *f)
{
    struct file_out **at = &unfinished;

    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
}

int file_begin(struct file_out *f, const char *path, struct err *err)
{
    bool device = is_device(path);

    *f = (struct file_out){.path = mem_strdup(path)};
    if (!device) {
        clear_stale(path);
        f->temp = mem_printf("%s.tmp.%ld", path, (long)getpid());
    }
    int fd = device ? open(path, O_WRONLY | O_CLOEXEC) : open_temp(f->temp);
    f->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f->stream) {
        err_io(err, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        file_abort(f);
        return -1;
    }
    if (f->temp) {
        f->next = unfinished;
        unfinished = f;
        mem_at_end(remove_unfinished);
    }
    return 0;
}

static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    free(dir);
    return fd;
}

/* Make a rename durable.  File systems without such a call (EINVAL, EOPNOTSUPP) order it themselves,
 * or nothing can be done. */
static int sync_folder(int folder, const char *path, struct err *err)
{
    if (folder < 0 || fsync(folder) == 0 || errno == EINVAL || errno == EOPNOTSUPP)
        return 0;
    return err_io(err, "%s: written, but may not outlive a power cut: its folder: %s", path,
                  strerror(errno));
}

int file_commit(struct file_out *f, struct err *err)
{
    int folder = f->temp ? open_folder(f->path) : -1;
    int bad =
        fflush(f->stream) != 0 || ferror(f->stream) || (f->temp && fsync(fileno(f->stream)) != 0);
    int why = errno;

    if (fclose(f->stream) != 0 && !bad) {
        bad = 1;
        why = errno;
    }
    f->stream = NULL;
    if (!bad && f->temp && rename(f->temp, f->path) != 0) {
        bad = 1;
        why = errno;
    }
    if (bad) {
        err_io(err, "%s: cannot write: %s", f->path, strerror(why));
    } else if (f->temp) {
        log_debug("wrote %s", f->path);
        leave_list(f);
        free(f->temp);
        f->temp = NULL;
        bad = sync_folder(folder, f->path, err) < 0;
    }
    if (folder >= 0)
        close(folder);
    file_abort(f);
    return bad ? -1 : 0;
}

void file_abort(struct file_out *f)
{
    leave_list(f);
    if (f->stream)
        fclose(f->stream);
    if (f->temp)
        unlink(f->temp);
    free(f->temp);
    free(f->path);
    memset(f, 0, sizeof(*f));
}

char *file_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);

    return mem_printf("%s%s%s", dir, n && dir[n - 1] != '/' ? "/" : "", name);
}

char *file_beside(const char *path, const char *name)
{
    char *copy = mem_strdup(path), *beside = file_join(dirname(copy), name);

    free(copy);
    return beside;
}

int file_mkdir(const char *path, struct err *err)
{
    char *p = mem_strdup(path);
    struct stat st;

    for (char *s = p + 1; *p && *s; s++)
        if (*s == '/') {
            *s = '\0';
            (void)!mkdir(p, 0777);
            *s = '/';
        }
    int rc = mkdir(p, 0770), why = errno;
    free(p);
    if (rc == 0 || (why == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return err_io(err, "%s: cannot make the folder: %s", path, strerror(why));
}

static uint32_t crc_by_table(uint32_t crc, const unsigned char *p, size_t len)
{
    static uint32_t table[256]; /* filled once; racing threads write equal values */

    if (!table[255])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++)
                c = c & 1 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
            table[i] = c;
        }
    while (len--)
        crc = table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
    return crc;
}

/* Processor instructions for this polynomial: SSE 4.2, and the CRC extension of Arm. */
#if defined(__x86_64__)
#define CRC_TARGET "sse4.2"
#define CRC_8(crc, v) ((uint32_t)__builtin_ia32_crc32di(crc, v))
#define CRC_1(crc, v) __builtin_ia32_crc32qi(crc, v)
#define CRC_KNOWN() __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && !defined(__clang__)
#include <sys/auxv.h>
#define CRC_TARGET "+crc"
#define CRC_8(crc, v) __builtin_aarch64_crc32cx(crc, v)
#define CRC_1(crc, v) __builtin_aarch64_crc32cb(crc, v)
#define CRC_KNOWN() (getauxval(AT_HWCAP) >> 7 & 1) /* HWCAP_CRC32 */
#endif

#ifdef CRC_TARGET
__attribute__((target(CRC_TARGET))) static uint32_t crc_by_cpu(uint32_t crc, const unsigned char *p,
                                                               size_t len)
{
    uint64_t v;

    for (; len >= sizeof(v); p += sizeof(v), len -= sizeof(v)) {
        memcpy(&v, p, sizeof(v));
        crc = CRC_8(crc, v);
    }
    while (len--)
        crc = CRC_1(crc, *p++);
    return crc;
}
#else
#define crc_by_cpu crc_by_table
#define CRC_KNOWN() 0
#endif

uint32_t file_crc32c(uint32_t crc, const void *data, size_t len)
{
    return ~(CRC_KNOWN() ? crc_by_cpu : crc_by_table)(~crc, data, len);
}

/* Return path if it is readable; else free it and return NULL. */
static char *readable(char *path)
{
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *file_data(const char *name)
{
    const char *env = secure_getenv("RAILGAUGE_DATA");
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    char *found = NULL, *slash;

    if (env && *env)
        return readable(file_join(env, name));
    if (n > 0) {
        exe[n] = '\0';
        /* build/railgauge and build/tests/unit/x: the source tree; bin/railgauge: ../share */
        while (!found && (slash = strrchr(exe, '/')) != NULL && slash != exe) {
            *slash = '\0';
            char *tree = mem_printf("%s/topo/schema", exe);
            int is_tree = access(tree, R_OK) == 0;
            free(tree);
            found = readable(mem_printf(is_tree ? "%s/%s" : "%s/share/railgauge/%s", exe, name));
        }
    }
    return found ? found : readable(file_join(RG_DATADIR, name));
}

char *file_data_named(const char *folder, const char *name)
{
    size_t n = strlen(name);

    if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json")))
        return mem_strdup(name);
    char *file = mem_printf("%s/%s.json", folder, name), *path = file_data(file);
    free(file);
    return path;
}

int file_data_names(const char *folder, char ***names)
{
    char *dir = file_data(folder), *pattern = mem_printf("%s/*.json", dir ? dir : "");
    glob_t found = {0};
    int n = 0;

    *names = NULL;
    if (dir && glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char *name = mem_strdup(strrchr(found.gl_pathv[i], '/') + 1);
            name[strlen(name) - strlen(".json")] = '\0';
            MEM_PUSH(*names, n) = name;
        }
    globfree(&found);
    free(pattern);
    free(dir);
    return n;
}

void file_data_each(const char *folder, name_taker *take, void *to)
{
    char **names;
    int count = file_data_names(folder, &names);

    for (int i = 0; i < count; i++) {
        take(to, names[i]);
        free(names[i]);
    }
    free(names);
}

/* --- private folders, and owners of files ---
 *
 * The superuser and the owner of "/" are trusted: in a user namespace the real root has another
 * number. */

#define PRIVATE_END "-XXXXXX"

static bool trusts(const struct stat *st)
{
    struct stat root;

    return st->st_uid == geteuid() || st->st_uid == 0 ||
           (stat("/", &root) == 0 && st->st_uid == root.st_uid);
}

/* 0 if no other user can replace a name in this folder, or the contents of this file.  If sticky,
 * only owners rename. */
static int keeps_names(const char *dir, struct err *err)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return err_config(err, "%s: %s", dir, strerror(errno));
    if (!trusts(&st))
        return err_config(err, "%s belongs to user %u", dir, st.st_uid);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
        return err_config(err, "%s: other users may %s", dir,
                          S_ISDIR(st.st_mode) ? "rename what is in it" : "write to it");
    return 0;
}

/* Check the resolved folder or file and all folders above it. */
static int is_safe(char *dir, struct err *err)
{
    int rc = keeps_names("/", err);

    for (char *s = dir + 1; rc == 0 && *s; s++)
        if (*s == '/') {
            *s = '\0';
            rc = keeps_names(dir, err);
            *s = '/';
        }
    return rc < 0 ? rc : keeps_names(dir, err);
}

/* A set-user-ID program (AT_SECURE) has no environment at all: secure_getenv() says so. */
char *file_for_root(const char *path, struct err *err)
{
    char real[PATH_MAX];
    struct err why;

    if (geteuid() != 0 || log_trusts_environment() || !realpath(path, real))
        return mem_strdup(path); /* a missing file is reported where it is opened */
    if (is_safe(real, &why) == 0)
        return mem_strdup(real);
    err_config(err, "%s is not for root: %s; --trust-environment uses it all the same", path,
               why.text);
    return NULL;
}

/* Remove the contents, depth first.  Errors are ignored. */
static void empty_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0) {
            empty_dir(fd, e->d_name);
            unlinkat(fd, e->d_name, AT_REMOVEDIR);
        }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

void file_remove_dir(const char *dir)
{
    if (!dir)
        return;
    empty_dir(AT_FDCWD, dir);
    rmdir(dir);
}

/* Minimum age, s: the owner of a younger folder may be about to lock it. */
enum { PRIVATE_AGE = 60 };

/* True if the process that created this folder is gone. */
static bool is_left(int at, const char *name)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool left = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
                st.st_mtime + PRIVATE_AGE < time(NULL) && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (fd >= 0)
        close(fd);
    return left;
}

/* Remove folders that killed processes left. */
static void clear_left(const char *base, const char *stem)
{
    size_t n = strlen(stem);
    DIR *d = opendir(base);

    for (struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, stem, n) && e->d_name[n] == '-' &&
            strlen(e->d_name + n) == strlen(PRIVATE_END) && is_left(dirfd(d), e->d_name)) {
            char *path = file_join(base, e->d_name);
            file_remove_dir(path);
            free(path);
        }
    if (d)
        closedir(d);
}

static char *dir_in(const char *base, const char *stem, struct err *err)
{
    char real[PATH_MAX], *dir = NULL;

    if (!realpath(base, real))
        err_config(err, "%s: %s", base, strerror(errno));
    else if (is_safe(real, err) == 0) {
        clear_left(real, stem);
        dir = mem_printf("%s/%s" PRIVATE_END, strcmp(real, "/") ? real : "", stem);
        if (!mkdtemp(dir)) {
            err_config(err, "%s: %s", dir, strerror(errno));
            free(dir);
            dir = NULL;
        }
    }
    return dir;
}

char *file_private_dir(const char *const *base, int count, const char *stem, int *lock,
                       struct err *err)
{
    char *dir = NULL;
    struct err why = {0, "TMPDIR is empty"};

    for (int i = 0; i < count && !dir; i++)
        if (base[i] && *base[i])
            dir = dir_in(base[i], stem, &why);
    if (!dir)
        err_config(err, "no place for a private folder: %s (TMPDIR names one)", why.text);
    *lock = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*lock >= 0)
        (void)!flock(*lock, LOCK_EX | LOCK_NB);
    return dir;
}

static int refuse_owner(const char *path, const struct stat *st, struct err *err)
{
    return err_config(err, "%s belongs to user %u, not to user %u, who runs this", path, st->st_uid,
                      geteuid());
}

static int check_names(DIR *d, const char *dir, struct err *err)
{
    struct stat st;
    int rc = 0;

    for (struct dirent *e; rc == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, "..") != 0 &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !trusts(&st)) {
            char *path = file_join(dir, e->d_name);
            rc = refuse_owner(path, &st, err);
            free(path);
        }
    return rc;
}

int file_check_owner(const char *path, struct err *err)
{
    struct stat st;
    int rc = 0;

    if (lstat(path, &st) < 0)
        return 0;
    if (!trusts(&st) || (stat(path, &st) == 0 && !trusts(&st)))
        return refuse_owner(path, &st, err);
    DIR *d = opendir(path);
    if (d) {
        rc = check_names(d, path, err);
        closedir(d);
    }
    return rc;
}

/* --- seal --- */

enum { SEAL_DIGITS = sizeof(SEAL_EMPTY) - 1 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* Position after the string that begins at p, or end. */
static const char *string_end(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p + 1 : end;
}

/* Digits after the key at p, or NULL. */
static const char *digits_at(const char *p, const char *end)
{
    static const char key[] = "\"" SEAL_KEY "\"";

    if ((size_t)(end - p) < sizeof(key) || memcmp(p, key, sizeof(key) - 1) != 0)
        return NULL;
    p = skip_space(p + sizeof(key) - 1, end);
    if (p >= end || *p != ':')
        return NULL;
    p = skip_space(p + 1, end);
    if (end - p < SEAL_DIGITS + 2 || *p != '"' || p[SEAL_DIGITS + 1] != '"')
        return NULL;
    for (int i = 1; i <= SEAL_DIGITS; i++)
        if (!strchr("0123456789abcdef", p[i]) || !p[i])
            return NULL;
    return p + 1;
}

const char *seal_find(const char *text, size_t len, uint32_t *crc)
{
    const char *end = text + len, *found = NULL, *from = text;
    uint32_t sum = 0;
    int depth = 0;

    for (const char *p = text; p < end;) {
        if (is_space(*p)) {
            sum = file_crc32c(sum, from, (size_t)(p - from));
            from = p = skip_space(p, end);
        } else if (*p == '"') {
            const char *digits = depth == 1 && !found ? digits_at(p, end) : NULL;
            if (digits) {
                sum = file_crc32c(sum, from, (size_t)(p - from));
                sum = file_crc32c(sum, "\"" SEAL_KEY "\":\"" SEAL_EMPTY "\"",
                                  sizeof("\"" SEAL_KEY "\":\"" SEAL_EMPTY "\"") - 1);
                found = digits;
                from = p = digits + SEAL_DIGITS + 1;
            } else {
                p = string_end(p, end);
            }
        } else {
            depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
            p++;
        }
    }
    if (crc)
        *crc = file_crc32c(sum, from, (size_t)(end - from));
    return found;
}

void seal_set(char *text, size_t len)
{
    uint32_t crc;
    const char *digits = seal_find(text, len, &crc);
    char word[SEAL_DIGITS + 1];

    snprintf(word, sizeof(word), "%08x", crc);
    if (digits)
        memcpy(text + (digits - text), word, SEAL_DIGITS);
}

char *seal_text(const char *text, size_t len, size_t *sealed_len)
{
    const char *open = memchr(text, '{', len);
    size_t at = open ? (size_t)(open - text) + 1 : 0;
    char *sealed = seal_find(text, len, NULL) || !at
                       ? mem_strndup(text, len)
                       : mem_printf("%.*s\"" SEAL_KEY "\": \"" SEAL_EMPTY "\",%s%.*s", (int)at,
                                    text, text[at] == '\n' ? "" : " ", (int)(len - at), text + at);

    *sealed_len = strlen(sealed);
    seal_set(sealed, *sealed_len);
    return sealed;
}
