/* Records the file operations of a process, and fails chosen ones; loaded with LD_PRELOAD.
 *
 * CAMPAIGN_ROOT  only paths below this folder count
 * CAMPAIGN_LOG   where operations are recorded (none by default)
 * CAMPAIGN_FAULT a file of zeros, at least 64 bytes; processes that have it share the count of operations and the fault
 *
 * A record is: char kind; u64 inode (0 for a folder), offset, length; u16 sizes of two paths; u32 size of the data; then paths and data.
 * Kinds: C create, W write, T truncate, R rename, X exchange, U unlink, M mkdir, D rmdir, L link, S fsync,
 * A syncfs, N note. One lock is held from before an operation until it is recorded, so that records are in order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The function `syscall` of the C library; this library defines one of that name, too. */
static long (*system_call)(long, ...);
#define CALL(...) ((const long[6]){__VA_ARGS__})
#define SYSTEM(call) next_call()((call)[0], (call)[1], (call)[2], (call)[3], (call)[4], (call)[5])
static long (*next_call(void))(long, ...)
{
    if (system_call == NULL)
        *(void **)&system_call = dlsym(RTLD_NEXT, "syscall");
    return system_call;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static int log_fd = -1;
static struct fault {
    long at, failed, operations;
    int error, stays, kind;
} own, *fault = &own;

__attribute__((constructor)) static void begin(void)
{
    const char *value = getenv("CAMPAIGN_ROOT");
    if (value == NULL || realpath(value, root) == NULL)
        root[0] = 0;
    if ((value = getenv("CAMPAIGN_LOG")) != NULL)
        log_fd = (int)next_call()(SYS_openat, AT_FDCWD, value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if ((value = getenv("CAMPAIGN_FAULT")) != NULL) {
        int fd = (int)next_call()(SYS_openat, AT_FDCWD, value, O_RDWR | O_CLOEXEC);
        void *shared = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shared != MAP_FAILED)
            fault = shared;
        if (fd >= 0)
            next_call()(SYS_close, fd);
    }
}

/* Restarts the count; the operation of this number fails, 0 for none. With `stays`, all later writes and new
 * files fail too, as on a full disk. */
void campaign_arm(long fail, int error, int stays)
{
    *fault = (struct fault){.at = fail, .error = error, .stays = stays};
}

long campaign_operations(void) { return fault->operations; }
/* The kind of the first operation that failed, 0 for none. */
int campaign_failed(void) { return fault->failed ? fault->kind : 0; }

static int below_root(const char *path)
{
    size_t length = strlen(root);
    return length > 0 && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* Makes a path absolute: resolves links in its parent, but not in its last part. Returns whether it counts. */
static int absolute(int folder, const char *path, char *out)
{
    char joined[2 * PATH_MAX], parent[2 * PATH_MAX], base[PATH_MAX], *slash;
    if (path == NULL || strlen(path) >= PATH_MAX)
        return 0;
    if (path[0] == '/')
        snprintf(joined, sizeof joined, "%s", path);
    else {
        char link[64];
        ssize_t length;
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        length = folder == AT_FDCWD ? (getcwd(base, sizeof base) ? (ssize_t)strlen(base) : -1)
                                    : readlink(link, base, sizeof base - 1);
        if (length < 0)
            return 0;
        base[length] = 0;
        snprintf(joined, sizeof joined, "%s/%s", base, path);
    }
    while (strlen(joined) > 1 && joined[strlen(joined) - 1] == '/')
        joined[strlen(joined) - 1] = 0;
    slash = strrchr(joined, '/');
    if (slash == NULL)
        return 0;
    memcpy(parent, joined, (size_t)(slash - joined));
    parent[slash - joined] = 0;
    if (realpath(parent[0] ? parent : "/", base) == NULL)
        return 0;
    snprintf(out, PATH_MAX, "%.*s/%.255s", PATH_MAX - 300, strcmp(base, "/") ? base : "", slash + 1);
    return below_root(out);
}

static int of_descriptor(int fd, char *out)
{
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, out, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    out[length] = 0;
    return below_root(out);
}

/* The inode of a file; 0 for a folder, which may have the number of a removed file. */
static uint64_t inode(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && !S_ISDIR(found.st_mode) ? (uint64_t)found.st_ino : 0;
}

static void put(const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t written = next_call()(SYS_write, log_fd, at, length);
        if (written <= 0)
            abort();
        at += written;
        length -= (size_t)written;
    }
}

static void record(char kind, uint64_t ino, uint64_t offset, uint64_t length, const char *first,
                   const char *second, const void *data, size_t size)
{
    int saved = errno;
    uint16_t one = first ? (uint16_t)strlen(first) : 0, two = second ? (uint16_t)strlen(second) : 0;
    uint32_t bytes = (uint32_t)size;
    char head[33];
    if (log_fd < 0)
        return;
    head[0] = kind;
    memcpy(head + 1, &ino, 8);
    memcpy(head + 9, &offset, 8);
    memcpy(head + 17, &length, 8);
    memcpy(head + 25, &one, 2);
    memcpy(head + 27, &two, 2);
    memcpy(head + 29, &bytes, 4);
    put(head, sizeof head);
    if (one)
        put(first, one);
    if (two)
        put(second, two);
    if (size)
        put(data, size);
    errno = saved;
}

/* Counts an operation; returns 1 and sets errno if it must fail. */
static int fails(char kind)
{
    fault->operations += 1;
    if (fault->at > 0 && (fault->operations == fault->at
                          || (fault->stays && fault->operations > fault->at && strchr("WCM", kind)))) {
        if (fault->failed == 0)
            fault->kind = kind;
        fault->failed += 1;
        errno = fault->error;
        return 1;
    }
    return 0;
}

/* Records a note of the workload among the operations. */
void campaign_note(const char *text)
{
    pthread_mutex_lock(&lock);
    record('N', 0, 0, 0, text, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
}

static int opened(int folder, const char *path, int flags, const long call[6])
{
    char place[PATH_MAX];
    struct stat before;
    int fd, existed;
    if (!(flags & (O_CREAT | O_TRUNC)) || !absolute(folder, path, place))
        return (int)SYSTEM(call);
    pthread_mutex_lock(&lock);
    existed = fstatat(folder, path, &before, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0;
    fd = (!existed || flags & O_TRUNC) && fails(existed ? 'T' : 'C') ? -1 : (int)SYSTEM(call);
    if (fd >= 0 && !existed)
        record('C', inode(fd), 0, 0, place, NULL, NULL, 0);
    else if (fd >= 0 && flags & O_TRUNC && before.st_size > 0)
        record('T', inode(fd), 0, 0, place, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

static int plainly_opened(int at, const char *path, int flags, mode_t mode)
{
    return opened(at, path, flags, CALL(SYS_openat, at, (long)path, flags, (long)mode));
}

#define MODE(flags, mode)                         \
    mode_t mode = 0;                              \
    if ((flags) & (O_CREAT | O_TMPFILE)) {        \
        va_list arguments;                        \
        va_start(arguments, flags);               \
        mode = (mode_t)va_arg(arguments, int);    \
        va_end(arguments);                        \
    }

int open(const char *path, int flags, ...) { MODE(flags, mode) return plainly_opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, mode) return plainly_opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, mode) return plainly_opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, mode) return plainly_opened(at, path, flags, mode); }
int creat(const char *path, mode_t mode) { return plainly_opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Writes of several buffers are recorded as one write. */
static ssize_t written(int fd, const struct iovec *parts, int count, off_t offset, int placed)
{
    char path[PATH_MAX], *data;
    ssize_t done;
    size_t size = 0;
    off_t at = offset;
    int counts = of_descriptor(fd, path);
    if (counts) {
        pthread_mutex_lock(&lock);
        if (!placed)
            at = next_call()(SYS_lseek, fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    }
    if (counts && fails('W'))
        done = -1;
    else if (placed)
        done = next_call()(SYS_pwritev, fd, parts, count, offset, 0);
    else
        done = next_call()(SYS_writev, fd, parts, count);
    if (!counts)
        return done;
    if (done > 0 && log_fd >= 0 && (data = malloc((size_t)done)) != NULL) {
        for (int part = 0; part < count && size < (size_t)done; part++) {
            size_t length = parts[part].iov_len;
            if (length > (size_t)done - size)
                length = (size_t)done - size;
            memcpy(data + size, parts[part].iov_base, length);
            size += length;
        }
        record('W', inode(fd), (uint64_t)at, size, NULL, NULL, data, size);
        free(data);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

static ssize_t one_part(int fd, const void *data, size_t size, off_t offset, int placed)
{
    struct iovec part = {(void *)data, size};
    return written(fd, &part, 1, offset, placed);
}

ssize_t write(int fd, const void *data, size_t size) { return one_part(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return one_part(fd, data, size, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return one_part(fd, data, size, at, 1); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return written(fd, parts, count, 0, 0); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return written(fd, parts, count, at, 1); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return written(fd, parts, count, at, 1); }

/* Refuses copies inside the kernel, as some file systems do; callers then write the bytes. */
ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags)
{
    char path[PATH_MAX];
    if (of_descriptor(out, path)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return next_call()(SYS_copy_file_range, in, in_at, out, out_at, size, flags);
}

static int on_descriptor(char kind, int fd, off_t length, long result_of(int, off_t))
{
    char path[PATH_MAX];
    int done;
    if (!of_descriptor(fd, path))
        return (int)result_of(fd, length);
    pthread_mutex_lock(&lock);
    done = fails(kind) ? -1 : (int)result_of(fd, length);
    if (done == 0)
        record(kind, inode(fd), 0, (uint64_t)length, path, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}

static long do_truncate(int fd, off_t length) { return next_call()(SYS_ftruncate, fd, length); }
static long do_sync(int fd, off_t length) { return (void)length, next_call()(SYS_fsync, fd); }
static long do_data_sync(int fd, off_t length) { return (void)length, next_call()(SYS_fdatasync, fd); }
static long do_system_sync(int fd, off_t length) { return (void)length, next_call()(SYS_syncfs, fd); }
static long do_allocate(int fd, off_t length)
{
    struct stat found;
    if (fstat(fd, &found) == 0 && found.st_size >= length)
        return 0;
    return next_call()(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { return on_descriptor('T', fd, length, do_truncate); }
int ftruncate64(int fd, off_t length) { return on_descriptor('T', fd, length, do_truncate); }
int fsync(int fd) { return on_descriptor('S', fd, 0, do_sync); }
int fdatasync(int fd) { return on_descriptor('S', fd, 0, do_data_sync); }
int syncfs(int fd) { return on_descriptor('A', fd, 0, do_system_sync); }
int posix_fallocate(int fd, off_t at, off_t length)
{
    return on_descriptor('T', fd, at + length, do_allocate) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off_t at, off_t length) { return posix_fallocate(fd, at, length); }
int fallocate(int fd, int mode, off_t at, off_t length)
{
    char path[PATH_MAX];
    if (mode == 0)
        return on_descriptor('T', fd, at + length, do_allocate);
    if (!of_descriptor(fd, path))
        return (int)next_call()(SYS_fallocate, fd, mode, at, length);
    errno = EOPNOTSUPP;
    return -1;
}
int fallocate64(int fd, int mode, off_t at, off_t length) { return fallocate(fd, mode, at, length); }

/* Operations on names: the system call is made with its arguments unchanged. */
static int named(char kind, int at, const char *path, int to_at, const char *to, const long call[6])
{
    char place[PATH_MAX], to_place[PATH_MAX];
    struct stat found;
    int first = absolute(at, path, place), second = to != NULL && absolute(to_at, to, to_place), done;
    /* Some libraries call mkdir for folders that exist. */
    if ((!first && !second) || (kind == 'M' && fstatat(at, path, &found, 0) == 0))
        return (int)SYSTEM(call);
    pthread_mutex_lock(&lock);
    done = fails(kind) ? -1 : (int)SYSTEM(call);
    if (done == 0)
        record(kind, 0, 0, 0, place, to != NULL ? to_place : NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}

#define RENAME_SWAPS 2u

int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags)
{
    return named(flags & RENAME_SWAPS ? 'X' : 'R', at, from, to_at, to,
                 CALL(SYS_renameat2, at, (long)from, to_at, (long)to, flags));
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int at, const char *from, int to_at, const char *to) { return renameat2(at, from, to_at, to, 0); }
int unlinkat(int at, const char *path, int flags)
{
    return named(flags & AT_REMOVEDIR ? 'D' : 'U', at, path, 0, NULL, CALL(SYS_unlinkat, at, (long)path, flags));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdirat(int at, const char *path, mode_t mode)
{
    return named('M', at, path, 0, NULL, CALL(SYS_mkdirat, at, (long)path, (long)mode));
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int linkat(int at, const char *from, int to_at, const char *to, int flags)
{
    return named('L', at, from, to_at, to, CALL(SYS_linkat, at, (long)from, to_at, (long)to, flags));
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* Rust's standard library and ambar make some system calls by number. */
long syscall(long number, ...)
{
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int at = 0; at < 6; at++)
        given[at] = va_arg(arguments, long);
    va_end(arguments);
#ifdef SYS_openat2
    if (number == SYS_openat2) /* struct open_how begins with flags */
        return opened((int)given[0], (const char *)given[1], (int)*(uint64_t *)given[2],
                      CALL(number, given[0], given[1], given[2], given[3]));
#endif
    if (number == SYS_renameat2)
        return renameat2((int)given[0], (const char *)given[1], (int)given[2], (const char *)given[3],
                         (unsigned)given[4]);
    return next_call()(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
