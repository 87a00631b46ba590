#define _GNU_SOURCE
#include "FailingCalls.h"
#include "failing_calls_private.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { most_watches = 64, most_records = 16384, record_size = 160 };

struct watch {
    // 0: free, 1: being set up or taken down, 2: counting
    _Atomic int state;
    // How many calls look at it at this moment.
    _Atomic int visitors;
    _Atomic int64_t count;
    char directory[1024];
    size_t length;
    pid_t thread;
    int64_t first, last;
    int code;
    char (*records)[record_size];
};

static struct watch watches[most_watches];
static _Atomic int active;

// What stands for the path in the calls of OpenSSL. No path is equal to it.
static const char openssl[] = "OpenSSL";

int failing_calls_begin(const char *directory, int64_t first, int64_t last, int code) {
    for (int index = 0; index < most_watches; index++) {
        struct watch *watch = &watches[index];
        int free_state = 0;
        if (!atomic_compare_exchange_strong(&watch->state, &free_state, 1)) continue;
        watch->count = 0;
        watch->length = directory ? strlen(directory) : 0;
        if (watch->length >= sizeof watch->directory) abort();
        memcpy(watch->directory, directory ? directory : "", watch->length + 1);
        watch->thread = gettid();
        watch->first = first;
        watch->last = last;
        watch->code = code;
        watch->records = calloc(most_records, record_size);
        if (!watch->records) abort();
        atomic_fetch_add(&active, 1);
        watch->state = 2;
        return index;
    }
    return -1;
}

int failing_calls_begin_openssl(int64_t first, int64_t last) { return failing_calls_begin(openssl, first, last, EIO); }

int64_t failing_calls_count(int watch) { return watches[watch].count; }

int failing_calls_describe(int watch, int64_t index, char *text, size_t capacity) {
    if (index < 0 || index >= watches[watch].count || index >= most_records) return 0;
    snprintf(text, capacity, "%s", watches[watch].records[index]);
    return 1;
}

void failing_calls_end(int index) {
    struct watch *watch = &watches[index];
    watch->state = 1;
    while (watch->visitors) sched_yield();
    free(watch->records);
    watch->records = NULL;
    atomic_fetch_sub(&active, 1);
    watch->state = 0;
}

// An error that the call is likely to have, other than EIO.
static int likely(const char *call) {
    if (!strncmp(call, "open", 4) || !strcmp(call, "opendir")) return EMFILE;
    if (strstr(call, "write") || strstr(call, "truncate")) return ENOSPC;
    if (strstr(call, "map") || !strcmp(call, "malloc")) return ENOMEM;
    if (strstr(call, "stat") || !strcmp(call, "realpath") || !strcmp(call, "access")) return EACCES;
    if (strstr(call, "link") || !strncmp(call, "rename", 6) || !strncmp(call, "mkdir", 5)) return EACCES;
    if (strstr(call, "chown") || strstr(call, "chmod") || strstr(call, "xattr")) return EPERM;
    return EIO;
}

static int is_watched(struct watch *watch, const char *file) {
    if (!watch->length) return !file && watch->thread == gettid();
    if (!strcmp(watch->directory, openssl)) return file == openssl && watch->thread == gettid();
    return file && !strncmp(file, watch->directory, watch->length)
        && (file[watch->length] == '/' || file[watch->length] == 0);
}

// Counts a call, and says whether it fails; errno is set then, and kept otherwise. A negative number is what else happens
// to it.
static int fails(const char *call, const char *file) {
    int kept = errno, result = 0;
    for (int index = 0; index < most_watches; index++) {
        struct watch *watch = &watches[index];
        if (watch->state != 2) continue;
        atomic_fetch_add(&watch->visitors, 1);
        if (watch->state == 2 && is_watched(watch, file)) {
            int64_t number = atomic_fetch_add(&watch->count, 1);
            if (number < most_records)
                snprintf(watch->records[number], record_size, "%s %s", call, file ? file : "");
            if (watch->first >= 0 && number >= watch->first && number <= watch->last) {
                if (watch->code >= 0) {
                    kept = watch->code ? watch->code : likely(call);
                    result = 1;
                } else if (!strcmp(call, "pread") || !strcmp(call, "pwrite")) {
                    result = watch->code;
                }
            }
        }
        atomic_fetch_sub(&watch->visitors, 1);
    }
    errno = kept;
    return result;
}

// The path of what is open; 0 if it has none.
static int path_of(int descriptor, char *file, size_t capacity) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, file, capacity - 1);
    if (size <= 0) return 0;
    file[size] = 0;
    return 1;
}

enum { most_bad_places = 16 };

// A slot is written only by whoever has taken it, before it counts.
static struct {
    atomic_int state; // 0 free, 1 taken, 2 in force
    char path[1200];
    int64_t offset;
} bad_places[most_bad_places];
static atomic_int bad_place_count;

int failing_calls_spoil(const char *path, int64_t offset) {
    for (int place = 0; place < most_bad_places; place++) {
        int free = 0;
        if (!atomic_compare_exchange_strong(&bad_places[place].state, &free, 1)) continue;
        snprintf(bad_places[place].path, sizeof bad_places[place].path, "%s", path);
        bad_places[place].offset = offset;
        atomic_store(&bad_places[place].state, 2);
        atomic_fetch_add(&bad_place_count, 1);
        return place;
    }
    return -1;
}

void failing_calls_mend(int place) {
    atomic_fetch_sub(&bad_place_count, 1);
    atomic_store(&bad_places[place].state, 0);
}

static int is_bad(int descriptor, int64_t offset, size_t count) {
    if (!atomic_load(&bad_place_count)) return 0;
    int kept = errno;
    char file[1200];
    int found = 0;
    if (path_of(descriptor, file, sizeof file)) {
        for (int place = 0; place < most_bad_places && !found; place++) {
            if (atomic_load(&bad_places[place].state) != 2 || strcmp(bad_places[place].path, file)) continue;
            int64_t bad = bad_places[place].offset;
            found = bad >= offset && bad < offset + (int64_t)count;
        }
    }
    errno = found ? EIO : kept;
    return found;
}

static int fails_on_path(const char *call, const char *path) {
    return active && path && fails(call, path);
}

static int fails_on(const char *call, int descriptor) {
    if (!active || descriptor < 0) return 0;
    int kept = errno;
    char file[1200];
    int has_path = path_of(descriptor, file, sizeof file);
    errno = kept;
    if (!has_path) return 0;
    // A pipe or a socket has no path.
    return fails(call, file[0] == '/' ? file : NULL);
}

static int fails_alone(const char *call) { return active && fails(call, NULL); }

int failing_calls_fails_openssl(const char *call) { return active && fails(call, openssl); }

// libc's own.
#define NEXT(name) \
    static _Atomic(void *) found_##name; \
    if (!found_##name) found_##name = dlsym(RTLD_NEXT, #name); \
    __typeof__(&name) next = (__typeof__(&name))found_##name

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        return fails_on_path("open", path) ? -1 : next(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

// The descriptor is closed all the same, as Linux does it.
int close(int descriptor) {
    NEXT(close);
    if (!fails_on("close", descriptor)) return next(descriptor);
    int code = errno;
    next(descriptor);
    errno = code;
    return -1;
}

#define FCNTL(name) \
    int name(int descriptor, int command, ...) { \
        NEXT(name); \
        va_list list; \
        va_start(list, command); \
        void *argument = va_arg(list, void *); \
        va_end(list); \
        const char *call = NULL; \
        if (command == F_SETLK || command == F_OFD_SETLK) { \
            /* A lock that is given back does not fail. */ \
            if (((struct flock *)argument)->l_type != F_UNLCK) call = "lock"; \
        } else if (command == F_GETLK || command == F_OFD_GETLK) call = "getlock"; \
        else if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) call = "dup"; \
        return call && fails_on(call, descriptor) ? -1 : next(descriptor, command, argument); \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

ssize_t read(int descriptor, void *bytes, size_t count) {
    NEXT(read);
    return fails_on("read", descriptor) ? -1 : next(descriptor, bytes, count);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    NEXT(write);
    return fails_on("write", descriptor) ? -1 : next(descriptor, bytes, count);
}

// How many bytes are read or written of these many.
static size_t shortened(int how, size_t count) { return how == failing_calls_shortening ? (count + 1) / 2 : count; }

#define PREAD(name, offset_type) \
    ssize_t name(int descriptor, void *bytes, size_t count, offset_type offset) { \
        NEXT(name); \
        int how = fails_on("pread", descriptor); \
        if (how > 0 || is_bad(descriptor, offset, count)) return -1; \
        ssize_t done = next(descriptor, bytes, shortened(how, count), offset); \
        if (how == failing_calls_changing && done > 0) ((char *)bytes)[done - 1] ^= 1; \
        return done; \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define PWRITE(name, offset_type) \
    ssize_t name(int descriptor, const void *bytes, size_t count, offset_type offset) { \
        NEXT(name); \
        int how = fails_on("pwrite", descriptor); \
        if (how > 0) return -1; \
        if (how != failing_calls_changing || !count) return next(descriptor, bytes, shortened(how, count), offset); \
        char *changed = malloc(count); \
        if (!changed) abort(); \
        memcpy(changed, bytes, count); \
        changed[count - 1] ^= 1; \
        ssize_t done = next(descriptor, changed, count, offset); \
        int kept = errno; \
        free(changed); \
        errno = kept; \
        return done; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define TRUNCATE(name, offset_type) \
    int name(int descriptor, offset_type length) { \
        NEXT(name); \
        return fails_on("ftruncate", descriptor) ? -1 : next(descriptor, length); \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define ON_DESCRIPTOR(name) \
    int name(int descriptor) { \
        NEXT(name); \
        return fails_on(#name, descriptor) ? -1 : next(descriptor); \
    }
ON_DESCRIPTOR(fsync)
ON_DESCRIPTOR(fdatasync)
ON_DESCRIPTOR(syncfs)

int sync_file_range(int descriptor, off_t offset, off_t count, unsigned flags) {
    NEXT(sync_file_range);
    return fails_on("sync_file_range", descriptor) ? -1 : next(descriptor, offset, count, flags);
}

#define STATUS(name, call, status_type) \
    int name(const char *path, status_type *status) { \
        NEXT(name); \
        return fails_on_path(call, path) ? -1 : next(path, status); \
    }
STATUS(stat, "stat", struct stat)
STATUS(stat64, "stat", struct stat64)
STATUS(lstat, "lstat", struct stat)
STATUS(lstat64, "lstat", struct stat64)
STATUS(statvfs, "statvfs", struct statvfs)
STATUS(statvfs64, "statvfs", struct statvfs64)

#define STATUS_OF_DESCRIPTOR(name, status_type) \
    int name(int descriptor, status_type *status) { \
        NEXT(name); \
        return fails_on("fstat", descriptor) ? -1 : next(descriptor, status); \
    }
STATUS_OF_DESCRIPTOR(fstat, struct stat)
STATUS_OF_DESCRIPTOR(fstat64, struct stat64)

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *status) {
    NEXT(statx);
    int fail = *path ? fails_on_path("statx", path) : fails_on("statx", directory);
    return fail ? -1 : next(directory, path, flags, mask, status);
}

int unlink(const char *path) {
    NEXT(unlink);
    return fails_on_path("unlink", path) ? -1 : next(path);
}

int access(const char *path, int mode) {
    NEXT(access);
    return fails_on_path("access", path) ? -1 : next(path, mode);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return fails_on_path("mkdir", path) ? -1 : next(path, mode);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return fails_on_path("rename", to) ? -1 : next(from, to);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    NEXT(renameat2);
    return fails_on_path("renameat2", to) ? -1 : next(from_directory, from, to_directory, to, flags);
}

int link(const char *from, const char *to) {
    NEXT(link);
    return fails_on_path("link", to) ? -1 : next(from, to);
}

ssize_t readlink(const char *path, char *target, size_t count) {
    NEXT(readlink);
    return fails_on_path("readlink", path) ? -1 : next(path, target, count);
}

char *realpath(const char *path, char *resolved) {
    NEXT(realpath);
    return fails_on_path("realpath", path) ? NULL : next(path, resolved);
}

DIR *opendir(const char *path) {
    NEXT(opendir);
    return fails_on_path("opendir", path) ? NULL : next(path);
}

struct dirent *readdir(DIR *directory) {
    NEXT(readdir);
    return fails_on("readdir", dirfd(directory)) ? NULL : next(directory);
}

int flock(int descriptor, int operation) {
    NEXT(flock);
    return fails_on("flock", descriptor) ? -1 : next(descriptor, operation);
}

int fchmod(int descriptor, mode_t mode) {
    NEXT(fchmod);
    return fails_on("fchmod", descriptor) ? -1 : next(descriptor, mode);
}

int fchown(int descriptor, uid_t user, gid_t group) {
    NEXT(fchown);
    return fails_on("fchown", descriptor) ? -1 : next(descriptor, user, group);
}

ssize_t listxattr(const char *path, char *names, size_t size) {
    NEXT(listxattr);
    return fails_on_path("listxattr", path) ? -1 : next(path, names, size);
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t size) {
    NEXT(getxattr);
    return fails_on_path("getxattr", path) ? -1 : next(path, name, value, size);
}

ssize_t fgetxattr(int descriptor, const char *name, void *value, size_t size) {
    NEXT(fgetxattr);
    return fails_on("fgetxattr", descriptor) ? -1 : next(descriptor, name, value, size);
}

int fsetxattr(int descriptor, const char *name, const void *value, size_t size, int flags) {
    NEXT(fsetxattr);
    return fails_on("fsetxattr", descriptor) ? -1 : next(descriptor, name, value, size, flags);
}

// Memory that belongs to no file is counted as a call without one.
#define MAP(name, offset_type) \
    void *name(void *address, size_t length, int protection, int flags, int descriptor, offset_type offset) { \
        NEXT(name); \
        int fail = descriptor >= 0 ? fails_on("mmap", descriptor) : fails_alone("mmap"); \
        return fail ? MAP_FAILED : next(address, length, protection, flags, descriptor, offset); \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)

int madvise(void *address, size_t length, int advice) {
    NEXT(madvise);
    return fails_alone("madvise") ? -1 : next(address, length, advice);
}

int mlock(const void *address, size_t length) {
    NEXT(mlock);
    return fails_alone("mlock") ? -1 : next(address, length);
}

// Never fails. It is here because the address sanitizer has functions of this name and of mlock's that do nothing: pages that
// are locked by the one above and never unlocked are mappings of their own, of which a process may have 65,530.
int munlock(const void *address, size_t length) {
    NEXT(munlock);
    return next(address, length);
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    NEXT(getrandom);
    return fails_alone("getrandom") ? -1 : next(bytes, count, flags);
}

// Whether all calls fail by now for the files that this thread watches. What it waits for does not come.
static int waits_in_vain(void) {
    if (!active) return 0;
    int result = 0;
    for (int index = 0; index < most_watches; index++) {
        struct watch *watch = &watches[index];
        if (watch->state != 2) continue;
        atomic_fetch_add(&watch->visitors, 1);
        if (watch->state == 2 && watch->length && watch->thread == gettid() && watch->code >= 0 && watch->first >= 0
            && watch->last == INT64_MAX && watch->count > watch->first)
            result = 1;
        atomic_fetch_sub(&watch->visitors, 1);
    }
    return result;
}

int nanosleep(const struct timespec *time, struct timespec *left) {
    NEXT(nanosleep);
    if (fails_alone("nanosleep")) return -1;
    // SQLite asks the index of a log again for ten seconds: as often, but at once.
    return waits_in_vain() ? 0 : next(time, left);
}

int pipe2(int ends[2], int flags) {
    NEXT(pipe2);
    return fails_alone("pipe2") ? -1 : next(ends, flags);
}

int posix_spawn(
    pid_t *process, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
    char *const arguments[], char *const environment[]
) {
    NEXT(posix_spawn);
    return fails_alone("posix_spawn") ? errno : next(process, path, actions, attributes, arguments, environment);
}

int poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
    NEXT(poll);
    return fails_alone("poll") ? -1 : next(descriptors, count, milliseconds);
}

pid_t waitpid(pid_t process, int *status, int options) {
    NEXT(waitpid);
    return fails_alone("waitpid") ? -1 : next(process, status, options);
}
