#define _GNU_SOURCE
#include "CSealedDBSystem.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <wchar.h>

const void *sealeddb_object_of(const void *address, char *path, size_t capacity) {
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0) return NULL;
    if (capacity > 0) {
        strncpy(path, info.dli_fname ? info.dli_fname : "", capacity - 1);
        path[capacity - 1] = 0;
    }
    return info.dli_fbase;
}

int sealeddb_random(void *buffer, size_t count) {
    unsigned char *next = buffer;
    while (count > 0) {
        ssize_t got = getrandom(next, count, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        next += got;
        count -= (size_t)got;
    }
    return 0;
}

static size_t whole_pages(size_t count) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (count + page - 1) / page * page;
}

// Pages that were freed, and wiped, serve the next secret. To map, protect, lock and unmap one takes four calls, and each
// unmapping stops all threads of the process for a moment. The row `slots.rotate` of the benchmarks pays for this.
enum { most_kept_pages = 32 };
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept_pages[most_kept_pages];
static int kept_count;
// In a child of fork no page is locked that the parent had, nor any that it frees: nothing is kept there.
static atomic_int is_child;
static pthread_once_t watches_fork = PTHREAD_ONCE_INIT;
// Whether the kernel ever refused to lock a page. Then nobody knows which ones are locked, and none is kept.
static atomic_int is_lock_refused;
static atomic_int keeping_is_suspended;

static void note_child(void) { is_child = 1; }

static void watch_fork(void) {
    // Without memory for that, nobody would know that a process is a child.
    if (pthread_atfork(NULL, NULL, note_child) != 0) is_child = 1;
}

// Whoever cannot have the lock at once does without: to wait for another thread would cost more than a page.
static int lock_kept(size_t size) {
    if (size != whole_pages(1) || keeping_is_suspended || is_lock_refused) return 0;
    if (pthread_once(&watches_fork, watch_fork) != 0 || is_child) return 0;
    return pthread_mutex_trylock(&kept_lock) == 0;
}

// Gives back all kept pages, which count against the limit of locked memory.
static void unmap_kept(void) {
    if (pthread_mutex_trylock(&kept_lock) != 0) return;
    // A page that cannot be unmapped stays mapped. It is wiped.
    while (kept_count > 0) (void)munmap(kept_pages[--kept_count], whole_pages(1));
    pthread_mutex_unlock(&kept_lock);  // Cannot fail: this thread has the lock.
}

static void *take_kept(size_t size) {
    if (!lock_kept(size)) return NULL;
    void *page = kept_count > 0 ? kept_pages[--kept_count] : NULL;
    pthread_mutex_unlock(&kept_lock);  // Cannot fail: this thread has the lock.
    return page;
}

static int keep(void *page, size_t size) {
    if (!lock_kept(size)) return 0;
    int has_room = kept_count < most_kept_pages;
    if (has_room) kept_pages[kept_count++] = page;
    pthread_mutex_unlock(&kept_lock);  // As above.
    return has_room;
}

void sealeddb_suspend_kept_pages(int change) {
    (void)atomic_fetch_add(&keeping_is_suspended, change);  // What it was before is of no use.
}

void *sealeddb_secret_allocate(size_t count) {
    size_t size = whole_pages(count ? count : 1);
    void *kept = take_kept(size);
    if (kept) return kept;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    // If the process has too many mappings, madvise fails with ENOMEM. Memory that a core dump would contain is no
    // substitute.
    if (madvise(pages, size, MADV_DONTDUMP) != 0) {
        // The pages hold nothing yet. If munmap fails too, it does so for the same reason as madvise just did.
        (void)munmap(pages, size);
        return NULL;
    }
    int error = errno;
    // Best effort: a low RLIMIT_MEMLOCK must not keep a service from starting.
    if (mlock(pages, size) != 0) {
        unmap_kept();
        if (mlock(pages, size) != 0) is_lock_refused = 1;
    }
    errno = error;
    return pages;
}

void sealeddb_secret_free(void *pages, size_t count) {
    size_t size = whole_pages(count ? count : 1);
    explicit_bzero(pages, size);
    if (keep(pages, size)) return;
    // munmap can fail when the process has too many mappings. The pages are wiped by now, and stay mapped.
    (void)munmap(pages, size);
}

void sealeddb_wipe(void *bytes, size_t count) { explicit_bzero(bytes, count); }

// Moves a descriptor that is 0, 1 or 2 to a higher number. Closes the descriptor if that fails.
static int above_standard(int descriptor) {
    if (descriptor < 0 || descriptor > 2) return descriptor;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    // Nothing was written through this descriptor, so closing it loses nothing.
    close(descriptor);
    errno = error;
    return moved;
}

int sealeddb_open(const char *path, int flags, mode_t mode) {
    int descriptor = open(path, flags | O_CLOEXEC, mode);
    // With O_NONBLOCK, the kernel does not wait for a lease to end, as sealeddb_is_only_descriptor takes one for a moment.
    for (int attempt = 0; descriptor < 0 && errno == EAGAIN && attempt < 1000; attempt++) {
        struct timespec millisecond = {0, 1000000};
        (void)nanosleep(&millisecond, NULL);  // If a signal ends it, the file is opened earlier.
        descriptor = open(path, flags | O_CLOEXEC, mode);
    }
    return above_standard(descriptor);
}

int sealeddb_keep_file(int descriptor) {
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);  // It has room for every number.
    return sealeddb_open(path, O_PATH, 0);
}

static int open_pipe(int ends[2], int flags) {
    int opened[2];
    if (pipe2(opened, flags | O_CLOEXEC) != 0) return -1;
    int first = above_standard(opened[0]), second = above_standard(opened[1]);
    if (first < 0 || second < 0) {
        int error = errno;
        // Nothing was written to the pipe, so closing it loses nothing.
        if (first >= 0) close(first);
        if (second >= 0) close(second);  // Nothing was written to it.
        errno = error;
        return -1;
    }
    ends[0] = first;
    ends[1] = second;
    return 0;
}

int sealeddb_take_standard_descriptors(void) {
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
        // open(2) takes the lowest free descriptor, which is this one. The access mode is wrong on purpose, so that
        // reading from 0, and writing to 1 and 2, fails.
        if (open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) != descriptor) return -1;
    }
    return 0;
}

int sealeddb_filled_pipe(const void *bytes, size_t count) {
    int ends[2];
    if (count > 4096) {
        errno = EMSGSIZE;
        return -1;
    }
    // Without waiting: a pipe takes as much at once, and otherwise this must fail.
    if (open_pipe(ends, O_NONBLOCK) != 0) return -1;
    ssize_t written = count == 0 ? 0 : write(ends[1], bytes, count);
    int error = written < 0 ? errno : EIO;
    close(ends[1]);  // What was written stays in the pipe.
    // The reader waits as for any input, though there is nothing to wait for.
    if (written == (ssize_t)count && fcntl(ends[0], F_SETFL, 0) == 0) return ends[0];
    close(ends[0]);  // Only read from.
    errno = error;
    return -1;
}

int sealeddb_spawn(char *const arguments[], char *const environment[], int input, pid_t *process, int *output) {
    int ends[2];
    if (open_pipe(ends, 0) != 0) return errno;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) goto closing;
    error = posix_spawnattr_init(&attributes);
    if (error != 0) goto without_attributes;
    sigset_t none, all;
    // These two cannot fail with a valid pointer to a signal set.
    sigemptyset(&none);
    sigfillset(&all);
    (error = posix_spawn_file_actions_adddup2(&actions, ends[1], 1))
        || (error = input < 0 ? posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
                              : posix_spawn_file_actions_adddup2(&actions, input, 0))
        // Also closes descriptors that another library opened without O_CLOEXEC.
        || (error = posix_spawn_file_actions_addclosefrom_np(&actions, 3))
        || (error = posix_spawnattr_setpgroup(&attributes, 0))
        || (error = posix_spawnattr_setsigmask(&attributes, &none))
        || (error = posix_spawnattr_setsigdefault(&attributes, &all))
        || (error = posix_spawnattr_setflags(
                &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        || (error = posix_spawn(process, arguments[0], &actions, &attributes, arguments, environment));
    // Freeing these cannot fail. Closing the pipe loses nothing, because this process wrote nothing to it.
    posix_spawnattr_destroy(&attributes);
without_attributes:
    posix_spawn_file_actions_destroy(&actions);  // Freeing cannot fail.
closing:
    close(ends[1]);  // Nothing was written to it here.
    if (error == 0) *output = ends[0];
    else close(ends[0]);  // It was only opened.
    return error;
}

int sealeddb_forbid_dumps(void) {
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0) return -1;
    // Swift's own handlers print the registers and the memory at which they point.
    const int crashes[] = {SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        if (signal(crashes[i], SIG_DFL) == SIG_ERR) return -1;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

long long sealeddb_memory_lock_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
    return (long long)limit.rlim_cur;
}

int sealeddb_rename_exclusively(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    // Some network file systems do not support RENAME_NOREPLACE. There, a process killed between link and unlink leaves
    // both names.
    if (errno != EINVAL) return -1;
    if (link(from, to) != 0) return -1;
    if (unlink(from) == 0) return 0;
    int error = errno;
    // The caller learns that nothing was renamed. If this unlink fails too, both names stay, as links to one complete
    // file.
    (void)unlink(to);
    errno = error;
    return -1;
}

int sealeddb_lock_store(int descriptor) {
    // PENDING_BYTE, RESERVED_BYTE and the 510 bytes of the SHARED range lie next to each other.
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
    return fcntl(descriptor, F_OFD_SETLK, &range);
}

static int copy_extended_attributes(const char *from, int to) {
    ssize_t length = listxattr(from, NULL, 0);
    if (length < 0) return errno == ENOTSUP ? 0 : -1;
    if (length == 0) return 0;
    char *names = malloc((size_t)length);
    if (names == NULL) return -1;
    length = listxattr(from, names, (size_t)length);
    int result = length < 0 ? -1 : 0;
    for (char *name = names; result == 0 && name < names + length; name += strlen(name) + 1) {
        ssize_t size = getxattr(from, name, NULL, 0);
        if (size < 0) { result = -1; break; }
        void *value = malloc(size > 0 ? (size_t)size : 1);
        if (value == NULL) { result = -1; break; }
        size = getxattr(from, name, value, (size_t)size);
        if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0) != 0) {
            // A security module labels files by its own rules, and may forbid setting a label that the copy already
            // has.
            char had[256];
            ssize_t now = fgetxattr(to, name, had, sizeof had);
            if (now < 0 || now != size || memcmp(had, value, (size_t)now) != 0) result = -1;
        }
        free(value);
    }
    free(names);
    return result;
}

int sealeddb_sync_file_system(int descriptor) { return syncfs(descriptor); }

int sealeddb_begin_writing(int descriptor, long long offset, long long count) {
    return sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WRITE);
}

int sealeddb_await_writing(int descriptor, long long offset, long long count) {
    return sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WAIT_BEFORE);
}

int sealeddb_copy_attributes(const char *from, int to, const char **step) {
    struct stat original, copy;
    *step = "stat";
    if (stat(from, &original) != 0 || fstat(to, &copy) != 0) return -1;
    *step = "fchown";
    if ((original.st_uid != copy.st_uid || original.st_gid != copy.st_gid)
        && fchown(to, original.st_uid, original.st_gid) != 0) return -1;
    // fchmod comes after fchown, which clears the set-id bits, and before the extended attributes, whose ACL refines
    // the mode.
    *step = "fchmod";
    if (fchmod(to, original.st_mode & 07777) != 0) return -1;
    *step = "setxattr";
    return copy_extended_attributes(from, to);
}

int sealeddb_lock(int descriptor, int type, long long start, long long count) {
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = count};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

void sealeddb_unlock_and_close(int descriptor) {
    // To give back a lock cannot fail, and nothing was written that a failing close could tell of.
    (void)sealeddb_lock(descriptor, F_UNLCK, 0, 0);
    (void)close(descriptor);
}

int sealeddb_excluding_lock(int descriptor, int *type, long long start, long long *count) {
    struct flock lock = {.l_type = (short)*type, .l_whence = SEEK_SET, .l_start = start, .l_len = *count};
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -1;
    *type = lock.l_type;
    *count = lock.l_len;
    return 0;
}

// Returns 1 if the kernel grants a lease, which is then given back, 0 if others have the file open, or -1 with errno set.
static int grants_lease(int descriptor, int type) {
    // If somebody opens the file before the lease is returned, the kernel sends this signal. By default it does
    // nothing.
    if (fcntl(descriptor, F_SETSIG, SIGURG) != 0) return -1;
    int result = fcntl(descriptor, F_SETLEASE, type);
    int error = errno;
    // Without a lease, there is nothing to return. F_SETSIG cannot fail when it restores the default signal.
    if (result == 0) (void)fcntl(descriptor, F_SETLEASE, F_UNLCK);
    (void)fcntl(descriptor, F_SETSIG, 0);
    if (result == 0) return 1;
    errno = error;
    return error == EAGAIN ? 0 : -1;
}

int sealeddb_is_only_descriptor(int descriptor) { return grants_lease(descriptor, F_WRLCK); }

int sealeddb_has_writers(int descriptor) {
    int is_granted = grants_lease(descriptor, F_RDLCK);
    return is_granted < 0 ? -1 : !is_granted;
}

// Whether the failure of statx says only that it is not there: before Linux 4.11, or forbidden by a container's filter.
static int lacks_statx(int error) { return error == ENOSYS || error == EPERM; }

int sealeddb_birth_time(int descriptor, const char *path, long long *seconds, unsigned *nanoseconds) {
    struct statx status;
    int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
    if (statx(descriptor, path, flags, STATX_BTIME, &status) != 0) return lacks_statx(errno) ? 0 : -1;
    if (!(status.stx_mask & STATX_BTIME)) return 0;
    *seconds = status.stx_btime.tv_sec;
    *nanoseconds = status.stx_btime.tv_nsec;
    return 1;
}

int sealeddb_is_mounted(const char *path) {
    struct statx status;
    if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_TYPE, &status) != 0) return lacks_statx(errno) ? 0 : -1;
#ifdef STATX_ATTR_MOUNT_ROOT
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
    return (status.stx_attributes & 0x2000) != 0;
#endif
}

int sealeddb_start_thread(pthread_t *thread, void *(*body)(void *), void *context) {
    // If they were blocked, the kernel would end the process without the report of a crash.
    static const int own[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    sigset_t blocked, former;
    // These fail only for a number that is no signal.
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&blocked, own[i]);
    int error = pthread_sigmask(SIG_SETMASK, &blocked, &former);
    if (error != 0) return error;
    error = pthread_create(thread, NULL, body, context);
    // Fails only for an unknown way to change the mask.
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return error;
}

int sealeddb_processor_count(void) {
    cpu_set_t set;
    // The set is too small for a system of more than 1024 processors.
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}

int sealeddb_scalar_columns(unsigned scalar) { return wcwidth((wchar_t)scalar); }

int sealeddb_terminal_columns(int descriptor) {
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// ---- Signals at a prompt ------------------------------------------------------------------------------------------

// The first six signals come from the terminal or from a process manager. The others, left to their default, would end
// the process with the terminal's echo off; where the program has a handler for them, it goes on, and they are left
// alone.
static const int caught_signals[] = {
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT,
    SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGIO,
};
enum { caught_count = sizeof caught_signals / sizeof caught_signals[0], always_caught_count = 6 };
static struct sigaction former_actions[caught_count];
static int is_caught[caught_count];
static int signal_pipe[2] = { -1, -1 };

static void note_signal(int number) {
    int saved = errno;
    unsigned char byte = (unsigned char)number;
    // If the pipe is full, the reader already has signals to handle.
    ssize_t written = write(signal_pipe[1], &byte, 1);
    (void)written;
    errno = saved;
}

int sealeddb_catch_signals(void) {
    // The pipe is never closed: a handler that still runs on another thread could write to an unrelated file with the
    // same descriptor number.
    if (signal_pipe[0] < 0 && open_pipe(signal_pipe, O_NONBLOCK) != 0) return -1;
    unsigned char byte;
    while (read(signal_pipe[0], &byte, 1) == 1) {}
    struct sigaction action = { .sa_handler = note_signal };
    // This cannot fail with a valid pointer to a signal set.
    sigfillset(&action.sa_mask);
    for (int index = 0; index < caught_count; index++) {
        is_caught[index] = sigaction(caught_signals[index], NULL, &former_actions[index]) == 0
            // An ignored signal stays ignored: nohup, or a shell without job control, asked for that.
            && former_actions[index].sa_handler != SIG_IGN
            && (index < always_caught_count || former_actions[index].sa_handler == SIG_DFL)
            && sigaction(caught_signals[index], &action, NULL) == 0;
    }
    return signal_pipe[0];
}

void sealeddb_release_signals(void) {
    for (int index = 0; index < caught_count; index++) {
        // Setting an action for the same signal succeeded before, so it succeeds now.
        if (is_caught[index]) sigaction(caught_signals[index], &former_actions[index], NULL);
    }
}
