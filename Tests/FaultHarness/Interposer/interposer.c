// Loaded into the program under test (LD_PRELOAD). Two parts:
//
// - A fork server. When the program first touches its working directory, it waits for requests on descriptor 198 and
//   answers on 199. Each request is one run: a child is forked, which carries on as if nothing had happened. That saves
//   the start of the program, which costs more than the rest.
// - A trap on every file-system call. A seccomp filter turns each into a signal, whose handler counts the call, fails,
//   shortens, drops or records it, or kills the process. Nothing escapes, wherever in libc or the runtime a call is
//   made, because the kernel does the catching. Only this file's own calls, made at one address, pass.
//
// A request is a line of four fields, separated by tabs: working directory, file for standard output, file for standard
// error, and what is to happen: words of the form name=value (struct plan). The answer is a line of numbers: the wait
// status, whether the fault was reached, calls made, allocations made by SQLite, MiB of memory used at most.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { request_descriptor = 198, answer_descriptor = 199, log_descriptor = 197 };
enum { most_descriptors = 1024, most_path = 256 };
// Seconds, seconds of processor time, and bytes: a run that takes more has run away.
enum { time_limit = 60, processor_limit = 8, memory_limit = 1 << 30 };

// ---- What is to happen in one run ------------------------------------------------------------------------------------

static struct plan {
    long kill_at;        // kill at this call; calls count from 1
    long torn;            // ... after half of it, if it is a write
    long fail_at;        // fail this call
    long error;           // ... with this errno; 0 cuts a write short
    long fail_sync;       // fail the first sync from this call on: which call has a number differs from run to run
    long sticky;          // ... and every later one that can fail so
    long allocation;     // fail this allocation of SQLite
    long sticky_allocation;
    long space;          // bytes that may still be allocated in the directory; -1 for no limit
    long no_changes;      // the directory cannot be changed: EACCES
    long clock; // seed of the clock's jumps; 0 for none
    long kill_after;     // microseconds
    long file_limit;     // RLIMIT_FSIZE; -1 for none
    int record;          // log what reaches the disk, with the data
    int census;          // log every call
    // Mutants: what a program would do that forgot something. A pattern is a part of the file's name, or after = all of it.
    char drop_sync[most_path], late_sync[most_path], drop_unlink[most_path], drop_rename[most_path];
    char split_rename[most_path];
} plan;

static struct shared {
    atomic_long calls, allocations;
    atomic_int fired;
} *shared;

static atomic_long skipped; // nanoseconds that the program thinks it has slept

static char directory[most_path]; // the working directory of the run, with a slash at its end
static size_t directory_length;

// ---- System calls that are let through -------------------------------------------------------------------------------

long faults_call(long number, long a, long b, long c, long d, long e, long f);
extern char faults_call_end[];

#if defined(__x86_64__)
__asm__(".text\n.hidden faults_call\n.hidden faults_call_end\n.globl faults_call\n.globl faults_call_end\n"
        ".type faults_call,@function\nfaults_call:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\n"
        "mov 8(%rsp), %r9\nsyscall\nfaults_call_end:\nret\n");
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#define CONTEXT_ARGUMENT(context, index) \
    ((context)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9}[index]])
#define CONTEXT_RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
__asm__(".text\n.hidden faults_call\n.hidden faults_call_end\n.globl faults_call\n.globl faults_call_end\n"
        ".type faults_call,%function\nfaults_call:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\n"
        "svc #0\nfaults_call_end:\nret\n");
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#define CONTEXT_ARGUMENT(context, index) ((context)->uc_mcontext.regs[index])
#define CONTEXT_RESULT(context) ((context)->uc_mcontext.regs[0])
#else
#error "The harness knows x86_64 and aarch64."
#endif

#define CALL_1(n, a) faults_call(n, (long)(a), 0, 0, 0, 0, 0)
#define CALL_2(n, a, b) faults_call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL_3(n, a, b, c) faults_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL_4(n, a, b, c, d) faults_call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static void die(void) { CALL_2(SYS_kill, CALL_1(SYS_getpid, 0), SIGKILL); }

// ---- The calls that are caught ---------------------------------------------------------------------------------------

enum kind {
    READING, WRITING, OPENING, CLOSING, SYNCING, TRUNCATING, RENAMING, LINKING, UNLINKING, MAKING, REMOVING, LOOKING,
    LOCKING, MARKING, MAPPING, COPYING_DESCRIPTOR, SLEEPING,
    STRANGE // changes files in a way that the recorder does not follow
};

// What a call does, and where its arguments are: indexes of a directory's descriptor, a path, a descriptor; -1 for none.
struct form {
    int number;
    const char *name;
    enum kind kind;
    signed char at, path, at2, path2, descriptor;
};

#define PATH(name, kind, path) {SYS_##name, #name, kind, -1, path, -1, -1, -1}
#define PATHS(name, kind) {SYS_##name, #name, kind, -1, 0, -1, 1, -1}
#define AT(name, kind) {SYS_##name, #name, kind, 0, 1, -1, -1, -1}
#define AT_AT(name, kind) {SYS_##name, #name, kind, 0, 1, 2, 3, -1}
#define ON(name, kind) {SYS_##name, #name, kind, -1, -1, -1, -1, 0}

static const struct form forms[] = {
    ON(read, READING), ON(pread64, READING), ON(readv, READING), ON(preadv, READING), ON(preadv2, READING),
    ON(write, WRITING), ON(pwrite64, WRITING), ON(writev, STRANGE), ON(pwritev, STRANGE), ON(pwritev2, STRANGE),
    AT(openat, OPENING), AT(openat2, STRANGE), ON(close, CLOSING),
    ON(fsync, SYNCING), ON(fdatasync, SYNCING), ON(sync_file_range, LOOKING), ON(syncfs, STRANGE),
    PATH(truncate, STRANGE, 0), ON(ftruncate, TRUNCATING), ON(fallocate, STRANGE),
    AT_AT(renameat, RENAMING), AT_AT(renameat2, RENAMING), AT_AT(linkat, LINKING), AT(unlinkat, UNLINKING),
    AT(mkdirat, MAKING), {SYS_symlinkat, "symlinkat", STRANGE, 1, 2, -1, -1, -1},
    ON(copy_file_range, STRANGE), ON(sendfile, STRANGE),
    ON(fstat, LOOKING), AT(newfstatat, LOOKING), AT(statx, LOOKING), AT(faccessat, LOOKING), AT(faccessat2, LOOKING),
    AT(readlinkat, LOOKING), ON(getdents64, LOOKING), ON(lseek, LOOKING), PATH(statfs, LOOKING, 0),
    ON(fstatfs, LOOKING), {SYS_getcwd, "getcwd", LOOKING, -1, -1, -1, -1, -1}, PATH(listxattr, LOOKING, 0), PATH(getxattr, LOOKING, 0), ON(flistxattr, LOOKING),
    ON(fgetxattr, LOOKING),
    ON(fcntl, LOCKING), ON(flock, LOCKING),
    ON(fchmod, MARKING), ON(fchown, MARKING), AT(fchmodat, MARKING), AT(fchownat, MARKING), ON(fsetxattr, MARKING),
    PATH(setxattr, MARKING, 0), AT(utimensat, MARKING),
    {SYS_mmap, "mmap", MAPPING, -1, -1, -1, -1, 4},
    {SYS_clock_nanosleep, "clock_nanosleep", SLEEPING, -1, -1, -1, -1, -1},
    ON(dup, COPYING_DESCRIPTOR), ON(dup3, COPYING_DESCRIPTOR),
#ifdef __x86_64__
    {SYS_nanosleep, "nanosleep", SLEEPING, -1, -1, -1, -1, -1},
    PATH(open, OPENING, 0), PATH(creat, STRANGE, 0), PATHS(rename, RENAMING), PATHS(link, LINKING),
    PATH(unlink, UNLINKING, 0), PATH(mkdir, MAKING, 0), PATH(rmdir, REMOVING, 0), PATH(symlink, STRANGE, 1),
    PATH(stat, LOOKING, 0), PATH(lstat, LOOKING, 0), PATH(access, LOOKING, 0), PATH(readlink, LOOKING, 0),
    PATH(chmod, MARKING, 0), PATH(chown, MARKING, 0), PATH(lchown, MARKING, 0), ON(dup2, COPYING_DESCRIPTOR),
#endif
};
enum { form_count = sizeof forms / sizeof *forms };

struct call {
    const struct form *form;
    long arguments[6];
    int inside;                          // whether it concerns the working directory
    char path[most_path], path2[most_path]; // relative to it; "." for itself
};

// Paths of the open files that are inside; empty for others.
static char open_paths[most_descriptors][most_path];

static void copy_text(char *to, const char *from) {
    size_t count = strnlen(from, most_path - 1);
    memcpy(to, from, count);
    to[count] = 0;
}

// The path relative to the working directory; false if it lies elsewhere.
static int relative_path(char *to, long at, const char *path) {
    if (path == NULL) return 0;
    if (*path == '/') {
        if (strncmp(path, directory, directory_length) == 0) copy_text(to, path + directory_length);
        else if (strlen(path) == directory_length - 1 && strncmp(path, directory, directory_length - 1) == 0) strcpy(to, ".");
        else return 0;
    } else if ((int)at == AT_FDCWD) {
        while (strncmp(path, "./", 2) == 0) path += 2;
        copy_text(to, path);
    } else {
        if ((unsigned)at >= most_descriptors || !*open_paths[at]) return 0;
        if (*path == 0) copy_text(to, open_paths[at]);
        else if (strcmp(open_paths[at], ".") == 0) copy_text(to, path);
        else return 0;
    }
    if (*to == 0) strcpy(to, ".");
    return 1;
}

static void locate(struct call *call) {
    const struct form *form = call->form;
    const long *arguments = call->arguments;
    if (form->path >= 0) {
        long at = form->at < 0 ? AT_FDCWD : arguments[form->at];
        call->inside = relative_path(call->path, at, (const char *)arguments[form->path]);
    } else if (form->descriptor >= 0) {
        unsigned descriptor = (unsigned)arguments[form->descriptor];
        if (descriptor < most_descriptors && *open_paths[descriptor]) {
            copy_text(call->path, open_paths[descriptor]);
            call->inside = 1;
        }
    }
    if (form->path2 >= 0) {
        long at = form->at2 < 0 ? AT_FDCWD : arguments[form->at2];
        call->inside |= relative_path(call->path2, at, (const char *)arguments[form->path2]);
    }
}

static long perform(const struct call *call) {
    const long *a = call->arguments;
    return faults_call(call->form->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int open_flags(const struct call *call) {
    return call->form->kind == OPENING ? (int)call->arguments[call->form->path + 1] : 0;
}

// ---- Which call can fail how -----------------------------------------------------------------------------------------

#define BIT(kind) (1u << (kind))
static const struct { int error; unsigned kinds; } failures[] = {
    {EIO, BIT(READING) | BIT(WRITING) | BIT(OPENING) | BIT(CLOSING) | BIT(SYNCING) | BIT(TRUNCATING) | BIT(RENAMING) |
              BIT(LINKING) | BIT(UNLINKING) | BIT(MAKING) | BIT(REMOVING) | BIT(LOOKING) | BIT(MARKING) | BIT(STRANGE)},
    {ENOSPC, BIT(WRITING) | BIT(OPENING) | BIT(SYNCING) | BIT(TRUNCATING) | BIT(RENAMING) | BIT(LINKING) |
                 BIT(MAKING) | BIT(MARKING) | BIT(STRANGE)},
    {EINTR, BIT(READING) | BIT(WRITING) | BIT(OPENING) | BIT(CLOSING) | BIT(SYNCING) | BIT(TRUNCATING) | BIT(LOCKING)},
    {EMFILE, BIT(OPENING) | BIT(COPYING_DESCRIPTOR)},
    {ENOMEM, BIT(OPENING) | BIT(LOOKING) | BIT(RENAMING) | BIT(LINKING) | BIT(UNLINKING) | BIT(MAKING) | BIT(REMOVING) |
                 BIT(MAPPING) | BIT(MARKING)},
    {EACCES, BIT(OPENING) | BIT(RENAMING) | BIT(LINKING) | BIT(UNLINKING) | BIT(MAKING) | BIT(REMOVING) | BIT(MARKING)},
    {ENOLCK, BIT(LOCKING)},
    {0, BIT(WRITING)},
};
enum { failure_count = sizeof failures / sizeof *failures };

static int can_fail(const struct call *call, int error) {
    if (error == ENOSPC && call->form->kind == OPENING && !(open_flags(call) & O_CREAT)) return 0;
    if (error == 0 && call->arguments[2] < 2) return 0;
    // What went wrong can still be told.
    if (call->form->kind == WRITING && call->arguments[0] == STDERR_FILENO) return 0;
    for (int i = 0; i < failure_count; i++) {
        if (failures[i].error == error) return (failures[i].kinds & BIT(call->form->kind)) != 0;
    }
    return 0;
}

// ---- The log ---------------------------------------------------------------------------------------------------------

static atomic_flag log_lock = ATOMIC_FLAG_INIT;

static void append(const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        long written = CALL_3(SYS_write, log_descriptor, next, count);
        if (written <= 0) die();
        next += written;
        count -= (size_t)written;
    }
}

// An entry of a recording. The kinds are letters: C create, W write, T truncate, S sync, F failed sync, R rename,
// L link, U unlink, M mkdir, D rmdir, A standard output, X something that the recorder does not follow.
struct entry {
    uint32_t kind, path_length, path2_length, data_length;
    uint64_t inode, offset;
};

static void log_entry(char kind, uint64_t inode, uint64_t offset, const char *path, const char *path2,
                      const void *data, size_t count) {
    struct entry entry = {(uint32_t)kind, (uint32_t)strlen(path), (uint32_t)strlen(path2), (uint32_t)count, inode, offset};
    append(&entry, sizeof entry);
    append(path, entry.path_length);
    append(path2, entry.path2_length);
    append(data, count);
}

static uint64_t inode_of(long descriptor) {
    struct stat status;
    return CALL_2(SYS_fstat, descriptor, &status) == 0 ? status.st_ino : 0;
}

static int exists(const struct call *call) {
    struct stat status;
    long at = call->form->at < 0 ? AT_FDCWD : call->arguments[call->form->at];
    return CALL_4(SYS_newfstatat, at, call->arguments[call->form->path], &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void record(const struct call *call, long result, int existed, uint64_t offset, int was_failed) {
    const long *arguments = call->arguments;
    if (call->form->kind == WRITING && arguments[0] == STDOUT_FILENO && result > 0) {
        log_entry('A', 0, 0, "", "", (const void *)arguments[1], (size_t)result);
    }
    if (!call->inside) return;
    if (call->form->kind == SYNCING && was_failed) {
        log_entry('F', inode_of(arguments[0]), 0, call->path, "", NULL, 0);
    }
    if (result < 0) return;
    switch (call->form->kind) {
    case OPENING:
        if (open_flags(call) & O_CREAT && !existed) log_entry('C', inode_of(result), 0, call->path, "", NULL, 0);
        else if (open_flags(call) & O_TRUNC) log_entry('T', inode_of(result), 0, call->path, "", NULL, 0);
        if (open_flags(call) & O_DSYNC) log_entry('X', 0, 0, call->path, call->form->name, NULL, 0);
        break;
    case WRITING:
        if (result > 0) {
            log_entry('W', inode_of(arguments[0]), offset, call->path, "", (const void *)arguments[1], (size_t)result);
        }
        break;
    case TRUNCATING:
        log_entry('T', inode_of(arguments[0]), (uint64_t)arguments[1], call->path, "", NULL, 0);
        break;
    case SYNCING: log_entry('S', inode_of(arguments[0]), 0, call->path, "", NULL, 0); break;
    case RENAMING:
        if (call->form->number == SYS_renameat2 && arguments[4] & ~RENAME_NOREPLACE) {
            log_entry('X', 0, 0, call->path, call->form->name, NULL, 0);
        } else {
            log_entry('R', 0, 0, call->path, call->path2, NULL, 0);
        }
        break;
    case LINKING: log_entry('L', 0, 0, call->path, call->path2, NULL, 0); break;
    case UNLINKING:
        log_entry(call->form->number == SYS_unlinkat && arguments[2] & AT_REMOVEDIR ? 'D' : 'U', 0, 0, call->path, "",
                  NULL, 0);
        break;
    case MAKING: log_entry('M', 0, 0, call->path, "", NULL, 0); break;
    case REMOVING: log_entry('D', 0, 0, call->path, "", NULL, 0); break;
    case MAPPING:
        // SQLite maps the index of the log, which is worthless after a power failure.
        if (arguments[2] & PROT_WRITE && arguments[3] & MAP_SHARED && strstr(call->path, "-shm") == NULL) {
            log_entry('X', 0, 0, call->path, call->form->name, NULL, 0);
        }
        break;
    case STRANGE: log_entry('X', 0, 0, call->path, call->form->name, NULL, 0); break;
    default: break;
    }
}

// A line of the census: number, name, whether it is inside, the errors that it can have, its path.
static void describe(const struct call *call, long index) {
    char line[most_path + 200];
    int length = snprintf(line, sizeof line, "%ld\t%s\t%d\t", index, call->form->name, call->inside);
    for (int i = 0; i < failure_count; i++) {
        if (can_fail(call, failures[i].error)) {
            length += snprintf(line + length, sizeof line - (size_t)length, "%d,", failures[i].error);
        }
    }
    length += snprintf(line + length, sizeof line - (size_t)length, "\t%s\n", call->path);
    append(line, (size_t)length);
}

// ---- Full disks ------------------------------------------------------------------------------------------------------

// How many bytes of a write the disk has room for.
static long room_for(const struct call *call, uint64_t offset) {
    struct stat status;
    long count = call->arguments[2];
    if (CALL_2(SYS_fstat, call->arguments[0], &status) != 0) return count;
    long growth = (long)offset + count - status.st_size;
    if (growth <= 0) return count;
    if (growth > plan.space) {
        count -= growth - plan.space;
        growth = plan.space;
    }
    plan.space -= growth;
    return count;
}

// ---- Mutants ---------------------------------------------------------------------------------------------------------

static int matches(const char *pattern, const char *path) {
    if (!*pattern) return 0;
    if (*pattern == '=') return strcmp(pattern + 1, path) == 0;
    return strcmp(pattern, ".") == 0 ? strcmp(path, ".") == 0 : strstr(path, pattern) != NULL;
}

static int is_dropped(const struct call *call) {
    switch (call->form->kind) {
    case SYNCING: return matches(plan.drop_sync, call->path) || matches(plan.late_sync, call->path);
    case UNLINKING: return matches(plan.drop_unlink, call->path);
    case RENAMING: return matches(plan.drop_rename, call->path2);
    default: return 0;
    }
}

static void sync_late(const struct call *call) {
    if (call->form->kind != RENAMING || !matches(plan.late_sync, call->path)) return;
    long descriptor = CALL_4(SYS_openat, AT_FDCWD, call->arguments[call->form->path2], O_RDONLY, 0);
    if (descriptor < 0) return;
    CALL_1(SYS_fsync, descriptor);
    if (plan.record) log_entry('S', inode_of(descriptor), 0, call->path2, "", NULL, 0);
    CALL_1(SYS_close, descriptor);
}

static void split_rename(const struct call *call) {
    if (call->form->kind != RENAMING || !matches(plan.split_rename, call->path2)) return;
    CALL_3(SYS_unlinkat, AT_FDCWD, call->arguments[call->form->path2], 0);
    if (plan.record) log_entry('U', 0, 0, call->path2, "", NULL, 0);
    if (atomic_fetch_add(&shared->calls, 1) + 1 == plan.kill_at) {
        shared->fired = 1;
        die();
    }
}

// ---- One call --------------------------------------------------------------------------------------------------------

static int is_change_of_directory(const struct call *call) {
    switch (call->form->kind) {
    case OPENING: return open_flags(call) & O_CREAT && !exists(call);
    case RENAMING: case LINKING: case UNLINKING: case MAKING: case REMOVING: return 1;
    default: return 0;
    }
}

// Whether somebody looks at the result of the sync. SQLite does not, where it syncs a directory.
static int is_watched_sync(const struct call *call) {
    int is_of_sqlite = strcmp(call->form->name, "fdatasync") == 0 && strcmp(call->path, ".") == 0;
    return call->inside && call->form->kind == SYNCING && !is_of_sqlite;
}

// 1 if the call is to fail, with *result set.
static int fails(struct call *call, long index, uint64_t offset, long *result) {
    if (plan.fail_sync > 0 && index >= plan.fail_sync && is_watched_sync(call) &&
        atomic_exchange(&shared->fired, 1) == 0) {
        *result = -plan.error;
        return 1;
    }
    if (plan.fail_at > 0 && (index == plan.fail_at || (plan.sticky && index > plan.fail_at && can_fail(call, (int)plan.error)))) {
        // Interruptions that never end would be an endless loop by right.
        if (plan.error == EINTR && plan.sticky && index > plan.fail_at + 8) return 0;
        shared->fired = 1;
        if (plan.error == 0) {
            call->arguments[2] /= 2;
            return 0;
        }
        // A close that fails has closed nevertheless.
        if (call->form->kind == CLOSING) perform(call);
        *result = -plan.error;
        return 1;
    }
    if (plan.no_changes && call->inside && is_change_of_directory(call)) {
        shared->fired = 1;
        *result = -EACCES;
        return 1;
    }
    if (plan.space >= 0 && call->inside && call->form->kind == WRITING) {
        long count = room_for(call, offset);
        if (count < call->arguments[2]) shared->fired = 1;
        if (count <= 0) {
            *result = -ENOSPC;
            return 1;
        }
        call->arguments[2] = count;
    }
    return 0;
}

static uint64_t write_offset(const struct call *call) {
    if (call->form->kind != WRITING) return 0;
    if (call->form->number == SYS_pwrite64) return (uint64_t)call->arguments[3];
    struct stat status;
    long flags = CALL_3(SYS_fcntl, call->arguments[0], F_GETFL, 0);
    if (flags > 0 && flags & O_APPEND && CALL_2(SYS_fstat, call->arguments[0], &status) == 0) {
        return (uint64_t)status.st_size;
    }
    long offset = CALL_3(SYS_lseek, call->arguments[0], 0, SEEK_CUR);
    return offset > 0 ? (uint64_t)offset : 0;
}

static void follow_descriptors(const struct call *call, long result) {
    if (call->form->kind == CLOSING) {
        if ((unsigned)call->arguments[0] < most_descriptors) *open_paths[call->arguments[0]] = 0;
        return;
    }
    if (result < 0 || result >= most_descriptors) return;
    int copies = call->form->kind == COPYING_DESCRIPTOR ||
                 (call->form->number == SYS_fcntl &&
                  (call->arguments[1] == F_DUPFD || call->arguments[1] == F_DUPFD_CLOEXEC));
    if (call->form->kind == OPENING || copies) copy_text(open_paths[result], call->inside ? call->path : "");
}

// Waiting for a lock that an injected error denies takes no time, and the clock goes on all the same; waiting for real
// ones must.
static long sleeps(const struct call *call) {
    int is_absolute = call->form->number == SYS_clock_nanosleep && call->arguments[1] & TIMER_ABSTIME;
    if (plan.kill_after > 0 || is_absolute) return perform(call);
    const struct timespec *span = (const void *)call->arguments[call->form->number == SYS_clock_nanosleep ? 2 : 0];
    atomic_fetch_add(&skipped, span->tv_sec * 1000000000L + span->tv_nsec);
    return 0;
}

static long handle(struct call *call) {
    long result = 0;
    if (call->form->kind == SLEEPING) return sleeps(call);
    split_rename(call);
    long index = atomic_fetch_add(&shared->calls, 1) + 1;
    if (plan.census) describe(call, index);
    uint64_t offset = plan.record || plan.space >= 0 ? write_offset(call) : 0;
    if (index == plan.kill_at) {
        if (plan.torn && call->form->kind == WRITING) {
            call->arguments[2] /= 2;
            perform(call);
        }
        shared->fired = 1;
        die();
    }
    int existed = plan.record && call->form->kind == OPENING && exists(call);
    int was_failed = fails(call, index, offset, &result);
    if (!was_failed && !is_dropped(call)) result = perform(call);
    if (plan.file_limit >= 0 && call->form->kind == WRITING && result != call->arguments[2]) shared->fired = 1;
    if (plan.record && (was_failed || !is_dropped(call))) record(call, result, existed, offset, was_failed);
    if (result >= 0) sync_late(call);
    follow_descriptors(call, result);
    return result;
}


// ---- The fork server -------------------------------------------------------------------------------------------------

// All of this runs inside the handler, where only calls that are let through may be made.

static void complain(const char *what, long result) {
    char line[most_path + 100];
    int length = snprintf(line, sizeof line, "interposer: %s: error %ld\n", what, -result);
    CALL_3(SYS_write, STDERR_FILENO, line, length);
    _exit(121);
}

static void redirect(const char *path, int descriptor, int flags) {
    long opened = CALL_4(SYS_openat, AT_FDCWD, path, flags, 0600);
    if (opened < 0) complain(path, opened);
    long result = CALL_3(SYS_dup3, opened, descriptor, 0);
    if (result < 0) complain(path, result);
    CALL_1(SYS_close, opened);
}

static int is_number(const char *word, const char *name, long *value) {
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0 || word[length] != '=') return 0;
    *value = strtol(word + length + 1, NULL, 10);
    return 1;
}

static int is_text(const char *word, const char *name, char *value) {
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0 || word[length] != '=') return 0;
    copy_text(value, word + length + 1);
    return 1;
}

static void parse(char *text) {
    plan.space = plan.file_limit = -1;
    char *rest = NULL;
    for (char *word = strtok_r(text, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
        char path[most_path];
        int is_known =
            is_number(word, "kill", &plan.kill_at) || is_number(word, "torn", &plan.torn) ||
            is_number(word, "fail", &plan.fail_at) || is_number(word, "error", &plan.error) ||
            is_number(word, "fail-sync", &plan.fail_sync) ||
            is_number(word, "sticky", &plan.sticky) || is_number(word, "allocation", &plan.allocation) ||
            is_number(word, "sticky-allocation", &plan.sticky_allocation) || is_number(word, "space", &plan.space) ||
            is_number(word, "no-changes", &plan.no_changes) || is_number(word, "clock", &plan.clock) ||
            is_number(word, "kill-after", &plan.kill_after) || is_number(word, "file-limit", &plan.file_limit) ||
            is_text(word, "drop-sync", plan.drop_sync) || is_text(word, "late-sync", plan.late_sync) ||
            is_text(word, "drop-unlink", plan.drop_unlink) || is_text(word, "drop-rename", plan.drop_rename) ||
            is_text(word, "split-rename", plan.split_rename);
        if (is_known) continue;
        if (is_text(word, "record", path)) plan.record = 1;
        else if (is_text(word, "census", path)) plan.census = 1;
        else complain(word, 0);
        redirect(path, log_descriptor, O_WRONLY | O_CREAT | O_TRUNC);
    }
}

// Says where it was: the core of a program that forbids cores tells nothing.
static void on_crash(int number) {
    void *frames[40];
    backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
    struct sigaction action = {.sa_handler = SIG_DFL};
    // Fails for no number that has a handler.
    sigaction(number, &action, NULL);
    raise(number);
}

// SIGILL is how Swift and Dispatch end a program, SIGALRM comes to one that hangs, and SIGXCPU to one that runs in circles.
static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGTRAP, SIGALRM, SIGXCPU};

// The command gives up what handles its crashes, so that they show no memory. Here they have to show where they were.
sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, former;
    if (sigaction(number, NULL, &former) != 0) return SIG_ERR;
    if (handler == SIG_DFL && former.sa_handler == on_crash) return SIG_DFL;
    return sigaction(number, &action, NULL) == 0 ? former.sa_handler : SIG_ERR;
}

static void set_limits(void) {
    static char stack[64 * 1024];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&alternative, NULL) != 0) complain("sigaltstack", -errno);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        if (sigaction(crashes[i], &crash, NULL) != 0) complain("sigaction", -errno);
    }
    // At the hard limit it would be killed, and not tell where it was.
    struct rlimit processor = {processor_limit, processor_limit + 1}, memory_size = {memory_limit, memory_limit};
    if (setrlimit(RLIMIT_CPU, &processor) != 0 || setrlimit(RLIMIT_DATA, &memory_size) != 0) {
        complain("RLIMIT_CPU", -errno);
    }
    if (plan.file_limit >= 0) {
        struct rlimit limit = {(rlim_t)plan.file_limit, (rlim_t)plan.file_limit};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) complain("RLIMIT_FSIZE", -errno);
    }
    if (plan.kill_after > 0) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
        struct itimerspec when = {.it_value = {plan.kill_after / 1000000, plan.kill_after % 1000000 * 1000}};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, NULL) != 0) {
            complain("timer", -errno);
        }
    }
    alarm(time_limit);
}

static void enter_directory(const char *path) {
    size_t length = strlen(path);
    if (length > sizeof directory - 2) complain(path, 0);
    memcpy(directory, path, length);
    strcpy(directory + length, "/");
    directory_length = length + 1;
}

// A module's variables of this thread.
static int rename_thread_in(struct dl_phdr_info *module, size_t size, void *numbers) {
    (void)size;
    const int *old_and_new = numbers;
    for (int i = 0; i < module->dlpi_phnum && module->dlpi_tls_data != NULL; i++) {
        if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
        int *words = module->dlpi_tls_data;
        for (size_t word = 0; word < module->dlpi_phdr[i].p_memsz / sizeof *words; word++) {
            if (words[word] == old_and_new[0]) words[word] = old_and_new[1];
        }
    }
    return 0;
}

// Swift's locks remember the number of their thread, which is another one after a fork: a thread that has to be woken would
// be waited for without end.
static void rename_thread(int old) {
    int numbers[2] = {old, (int)CALL_1(SYS_gettid, 0)};
    dl_iterate_phdr(rename_thread_in, numbers);
}

// What one run starts with; it goes on into the program.
static void begin(char *line) {
    char *rest = NULL;
    char *folder = strtok_r(line, "\t", &rest), *output = strtok_r(NULL, "\t", &rest);
    char *error = strtok_r(NULL, "\t", &rest);
    if (error == NULL) complain("request", 0);
    redirect(error, STDERR_FILENO, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    redirect(output, STDOUT_FILENO, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    long result = CALL_1(SYS_chdir, folder);
    if (result != 0) complain(folder, result);
    enter_directory(folder);
    parse(rest);
    CALL_1(SYS_close, request_descriptor);
    CALL_1(SYS_close, answer_descriptor);
    set_limits();
}

// False at the end of the requests.
static int read_line(char *line, size_t capacity) {
    for (size_t count = 0; count + 1 < capacity;) {
        if (CALL_3(SYS_read, request_descriptor, line + count, 1) <= 0) return 0;
        if (line[count++] == '\n') {
            line[count] = 0;
            return 1;
        }
    }
    return 0;
}

// Returns in a child, once for each request.
static void serve(void) {
    static char line[4 * most_path + 1024];
    int thread = (int)CALL_1(SYS_gettid, 0);
    while (read_line(line, sizeof line)) {
        shared->calls = shared->allocations = 0;
        shared->fired = 0;
        pid_t child = fork();
        if (child < 0) complain("fork", -errno);
        if (child == 0) {
            rename_thread(thread);
            begin(line);
            return;
        }
        int status = 0;
        struct rusage usage = {0};
        while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {}
        char answer[150];
        int length = snprintf(answer, sizeof answer, "%d %d %ld %ld %ld\n", status, (int)shared->fired,
                              (long)shared->calls, (long)shared->allocations, usage.ru_maxrss / 1024);
        CALL_3(SYS_write, answer_descriptor, answer, length);
    }
    _exit(0);
}

// ---- The handler -----------------------------------------------------------------------------------------------------

// True until the program first touches its working directory. What it does before is the same in each run.
static int is_waiting = 1;

static void on_signal(int number, siginfo_t *information, void *opaque) {
    (void)number;
    ucontext_t *context = opaque;
    struct call call;
    memset(&call, 0, sizeof call);
    for (int i = 0; i < form_count; i++) {
        if (forms[i].number == information->si_syscall) call.form = &forms[i];
    }
    if (call.form == NULL) die();
    for (int i = 0; i < 6; i++) call.arguments[i] = (long)CONTEXT_ARGUMENT(context, i);
    locate(&call);
    if (is_waiting) {
        if (!call.inside && call.form->number != SYS_getcwd) {
            CONTEXT_RESULT(context) = perform(&call);
            return;
        }
        is_waiting = 0;
        serve();
    }
    // The log's order must be the order in which the calls took place. Others may block, and do not matter.
    enum kind kind = call.form->kind;
    int ordered = (plan.record || plan.census) && kind != READING && kind != LOCKING && kind != LOOKING;
    if (ordered) {
        while (atomic_flag_test_and_set(&log_lock)) CALL_1(SYS_sched_yield, 0);
    }
    CONTEXT_RESULT(context) = handle(&call);
    if (ordered) atomic_flag_clear(&log_lock);
}

static int catch_calls(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (sigaction(SIGSYS, &action, NULL) != 0) return -1;

    struct sock_filter filter[form_count + 16];
    uint64_t mine = (uint64_t)(uintptr_t)faults_call_end;
    const unsigned int at = offsetof(struct seccomp_data, instruction_pointer);
    struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)mine, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(mine >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        // Memory that no file backs is none of ours.
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 4 * 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)-1, 0, 0), // fixed up below, to lead past the list
    };
    memcpy(filter, head, sizeof head);
    unsigned short count = sizeof head / sizeof *head;
    unsigned short map_test = (unsigned short)(count - 1);
    unsigned short first = count;
    for (int i = 0; i < form_count; i++) {
        if (forms[i].number == SYS_mmap) continue;
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)forms[i].number, 0, 0);
    }
    unsigned short allow = count++, trap = count++;
    filter[allow] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[trap] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    for (unsigned short i = first; i < allow; i++) filter[i].jt = (uint8_t)(trap - i - 1);
    filter[map_test].jt = (uint8_t)(allow - map_test - 1);
    filter[map_test].jf = (uint8_t)(trap - map_test - 1);

    struct sock_fprog program = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

// ---- Memory ----------------------------------------------------------------------------------------------------------

// sqlite3_mem_methods: https://www.sqlite.org/c3ref/mem_methods.html
struct memory_methods {
    void *(*allocate)(int);
    void (*free)(void *);
    void *(*reallocate)(void *, int);
    int (*size)(void *);
    int (*round_up)(int);
    int (*initialize)(void *);
    void (*shut_down)(void *);
    void *data;
};
static struct memory_methods memory;

static int allocation_fails(void) {
    long index = atomic_fetch_add(&shared->allocations, 1) + 1;
    if (plan.allocation <= 0 || (plan.sticky_allocation ? index < plan.allocation : index != plan.allocation)) return 0;
    shared->fired = 1;
    return 1;
}

// SQLCipher frees some blocks twice where it got no memory. What was freed behind the failure stays, so that this is seen
// where it happens, and not in whoever got the block.
enum { freed_capacity = 1 << 14 };
static void *_Atomic freed[freed_capacity];
static atomic_int freed_count;

static void require_not_freed(void *block) {
    int count = atomic_load(&freed_count);
    for (int i = 0; i < count && i < freed_capacity; i++) if (atomic_load(&freed[i]) == block) abort();
}

static void *allocate(int count) { return allocation_fails() ? NULL : memory.allocate(count); }

static void release(void *block) {
    if (block == NULL || plan.allocation <= 0 || !shared->fired) return memory.free(block);
    require_not_freed(block);
    int index = atomic_fetch_add(&freed_count, 1);
    if (index < freed_capacity) atomic_store(&freed[index], block);
}

static void *reallocate(void *block, int count) {
    if (plan.allocation > 0 && shared->fired) require_not_freed(block);
    return allocation_fails() ? NULL : memory.reallocate(block, count);
}

static int watch_memory(void) {
    enum { config_malloc = 4, config_getmalloc = 5 };
    int (*configure)(int, ...) = (int (*)(int, ...))dlsym(RTLD_DEFAULT, "sqlite3_config");
    if (configure == NULL || configure(config_getmalloc, &memory) != 0) return -1;
    struct memory_methods watched = memory;
    watched.allocate = allocate;
    watched.free = release;
    watched.reallocate = reallocate;
    return configure(config_malloc, &watched);
}

// ---- Time ------------------------------------------------------------------------------------------------------------

// The wall clock jumps at every reading, by up to 68 years to either side. The monotonic clock cannot.
static long jump(void) {
    static atomic_ulong readings;
    if (plan.clock == 0) return 0;
    shared->fired = 1;
    unsigned long value = ((unsigned long)plan.clock + atomic_fetch_add(&readings, 1)) * 0x9e3779b97f4a7c15ul;
    value ^= value >> 29;
    value *= 0xbf58476d1ce4e5b9ul;
    value ^= value >> 32;
    static const long spans[] = {0, 1, 3600, 86400, 31536000, 0x7fffffff};
    long span = spans[value % 6];
    return value & 64 ? span : -span;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = CALL_2(SYS_clock_gettime, clock, time);
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    long now = time->tv_sec * 1000000000L + time->tv_nsec + atomic_load(&skipped);
    *time = (struct timespec){now / 1000000000L, now % 1000000000L};
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += jump();
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}

// ---- The start -------------------------------------------------------------------------------------------------------

__attribute__((constructor)) static void start(void) {
    if (getenv("SEALEDDB_FAULTS") == NULL) return;
    unsetenv("SEALEDDB_FAULTS");
    unsetenv("LD_PRELOAD");
    char path[most_path];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    // Loads what it needs, as long as calls are not caught.
    void *frame;
    backtrace(&frame, 1);
    if (shared == MAP_FAILED || getcwd(path, sizeof path) == NULL) complain("start", -errno);
    enter_directory(path);
    if (watch_memory() != 0) complain("sqlite3_config", 0);
    if (catch_calls() != 0) complain("seccomp", -errno);
}
