// Fails some of the calls by which a program uses the files below a directory. Goes in front of libc.
//
// STRESS_FAULTS is "SEED RATE DIRECTORY": of RATE calls one fails, on average, once the first STRESS_FAULTS_ALLOWED calls
// are over. What fails has done nothing, but for a write, of which half may be done.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char directory[4096];
static size_t directory_length;
static uint64_t rate;
static _Atomic uint64_t state;
static _Atomic int64_t allowed;

enum { descriptors = 1 << 16 };
static _Atomic char is_ours[descriptors];

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("STRESS_FAULTS");
    unsigned long long seed, calls;
    if (!text || sscanf(text, "%llu %llu %4095[^\n]", &seed, &calls, directory) != 3) return;
    const char *first = getenv("STRESS_FAULTS_ALLOWED");
    allowed = first ? atoll(first) : 0;
    state = seed;
    rate = calls;
    directory_length = strlen(directory);
}

static uint64_t draw(void) {
    uint64_t mixed = atomic_fetch_add(&state, 0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

// Says in STRESS_FAULTS_SEEN which call fails. With calls of the kernel: those of libc may lead here again.
static void tell(const char *call, const char *file, int64_t offset, int code) {
    const char *log = getenv("STRESS_FAULTS_SEEN");
    if (!log) return;
    char line[4400];
    int size = snprintf(line, sizeof line, "%d %s %s %lld: %s\n", gettid(), call, file, (long long)offset, strerrorname_np(code));
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // A line that is not told is missing in the log alone.
    if (size > 0) syscall(SYS_write, descriptor, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
    syscall(SYS_close, descriptor);
}

static int fails(int is_in_directory, const char *call, const char *file, int64_t offset) {
    if (!rate || !is_in_directory || atomic_fetch_sub(&allowed, 1) > 0 || draw() % rate) return 0;
    static const int codes[] = {EIO, EIO, ENOSPC, ENOMEM};
    int code = codes[draw() % 4];
    tell(call, file, offset, code);
    errno = code;
    return 1;
}

static int is_below(const char *path) {
    return directory_length && !strncmp(path, directory, directory_length);
}

static int fails_on(int descriptor, const char *call, int64_t offset) {
    if (descriptor < 0 || descriptor >= descriptors || !is_ours[descriptor]) return 0;
    char link[32], file[4096] = "?";
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, file, sizeof file - 1);
    if (size > 0) file[size] = 0;
    return fails(1, call, file, offset);
}

static int opened(int descriptor, const char *path) {
    if (descriptor >= 0 && descriptor < descriptors) is_ours[descriptor] = (char)is_below(path);
    return descriptor;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        if (fails(is_below(path), #name, path, flags)) return -1; \
        return opened(next(path, flags, mode), path); \
    }
OPEN(open)
OPEN(open64)

int close(int descriptor) {
    NEXT(close);
    if (descriptor >= 0 && descriptor < descriptors) is_ours[descriptor] = 0;
    return next(descriptor);
}

#define READ(name, offset_t) \
    ssize_t name(int descriptor, void *bytes, size_t count, offset_t offset) { \
        NEXT(name); \
        return fails_on(descriptor, #name, offset) ? -1 : next(descriptor, bytes, count, offset); \
    }
READ(pread, off_t)
READ(pread64, off64_t)

#define WRITE(name, offset_t) \
    ssize_t name(int descriptor, const void *bytes, size_t count, offset_t offset) { \
        NEXT(name); \
        if (!fails_on(descriptor, #name, offset)) return next(descriptor, bytes, count, offset); \
        int code = errno; \
        if (draw() % 2 && next(descriptor, bytes, count / 2, offset) < 0) return -1; \
        errno = code; \
        return -1; \
    }
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

#define ON_DESCRIPTOR(name) \
    int name(int descriptor) { \
        NEXT(name); \
        return fails_on(descriptor, #name, 0) ? -1 : next(descriptor); \
    }
ON_DESCRIPTOR(fsync)
ON_DESCRIPTOR(fdatasync)

#define TRUNCATE(name, offset_t) \
    int name(int descriptor, offset_t length) { \
        NEXT(name); \
        return fails_on(descriptor, #name, length) ? -1 : next(descriptor, length); \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int unlink(const char *path) {
    NEXT(unlink);
    return fails(is_below(path), "unlink", path, 0) ? -1 : next(path);
}

int rename(const char *old, const char *new) {
    NEXT(rename);
    return fails(is_below(old), "rename", old, 0) ? -1 : next(old, new);
}
