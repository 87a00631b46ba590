// Linux calls that Swift cannot import, because they are variadic or need _GNU_SOURCE.

#ifndef SEALEDDB_SYSTEM_H
#define SEALEDDB_SYSTEM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "numbers.h"
#include "page_contexts.h"
#include "provider.h"

// Returns the number of the calling thread: not 0, and no other thread's as long as it runs. This is the address of a
// variable that each thread has for itself. Unlike pthread_self(), it costs no call, and each column that is read asks.
static inline uintptr_t sealeddb_current_thread(void) { return (uintptr_t)&sealeddb_page_failures; }

// Copies the path of the shared object that contains the address to `path`. Returns the object's base address, or NULL.
const void *sealeddb_object_of(const void *address, char *path, size_t capacity);

// Like open(2) with O_CLOEXEC, but never returns 0, 1 or 2. A process may start with these descriptors closed; what any
// code then prints must not go into a file of a store. Returns a descriptor, or -1 with errno set.
int sealeddb_open(const char *path, int flags, mode_t mode);

// Makes another descriptor for the file that this process has open, which keeps it, and does nothing else (O_PATH): if it is
// closed, the process keeps its locks on the file. Returns a descriptor, or -1 with errno set.
// https://man7.org/linux/man-pages/man2/open.2.html
int sealeddb_keep_file(int descriptor);

// Occupies those of the descriptors 0, 1 and 2 that are closed, so that no file gets them. Reading from such a 0, and
// writing to such a 1 or 2, fails. Returns 0, or -1 with errno set.
int sealeddb_take_standard_descriptors(void);

// Fills the buffer from the kernel's random generator. Returns 0, or -1 with errno set.
int sealeddb_random(void *buffer, size_t count);

// Allocates anonymous pages that core dumps leave out, and locks them in memory if RLIMIT_MEMLOCK allows. Returns NULL
// when out of memory.
void *sealeddb_secret_allocate(size_t count);

// Wipes pages from sealeddb_secret_allocate, and unmaps them or keeps them for the next secret. The count must be that of
// the allocation.
void sealeddb_secret_free(void *pages, size_t count);

// Adds to the number of those who want no page to be kept, as tests do that count calls. Pages that are kept stay so.
void sealeddb_suspend_kept_pages(int change);

void sealeddb_wipe(void *bytes, size_t count);

// Makes a pipe that holds these bytes and has no writer any more: whoever reads it gets them, and then the end. There may
// be 4096 of them, which fit into every pipe. Returns the reading end, or -1 with errno set.
// https://man7.org/linux/man-pages/man7/pipe.7.html
int sealeddb_filled_pipe(const void *bytes, size_t count);

// Starts a program in its own process group. Its standard input is the descriptor `input`, or /dev/null if that is -1; its
// standard output is a pipe whose reading end becomes `*output`, its standard error is the caller's, and it has no other
// descriptor. No signal is blocked or ignored. Returns 0, or the error number.
int sealeddb_spawn(char *const arguments[], char *const environment[], int input, pid_t *process, int *output);

// Forbids core dumps, keeps Swift from printing memory when the process crashes, and keeps other processes of the same
// user from reading this process's memory. Returns 0, or -1 with errno set.
int sealeddb_forbid_dumps(void);

// Returns how many bytes may be locked in memory; -1 if there is no limit.
long long sealeddb_memory_lock_limit(void);

// Renames a file unless the new name exists. Returns 0, or -1 with errno set (EEXIST if the new name exists) and
// nothing changed.
int sealeddb_rename_exclusively(const char *from, const char *to);

// Takes the locks of an exclusive SQLite connection on an open file. They belong to the open file description. Returns
// 0, or -1 with errno set (EAGAIN if somebody else holds one of them).
int sealeddb_lock_store(int descriptor);

// Syncs the file system that contains the open file. Returns 0, or -1 with errno set.
int sealeddb_sync_file_system(int descriptor);

// Copies owner, group, mode and extended attributes. Returns 0, or -1 with errno set and `*step` naming the call that
// failed.
int sealeddb_copy_attributes(const char *from, int to, const char **step);

// Takes or releases a lock of the open file description (F_OFD_SETLK) on `count` bytes: F_RDLCK, F_WRLCK or F_UNLCK.
// Does not wait. Returns 0, or -1 with errno set (EAGAIN if somebody else holds a conflicting lock).
int sealeddb_lock(int descriptor, int type, long long start, long long count);

// Gives back all locks of the open file description, and closes the descriptor. To close it would not be enough: a child
// of this process shares the description until it calls exec.
void sealeddb_unlock_and_close(int descriptor);

// Finds a lock that conflicts with the given one, and sets `type` and `count` to its type and length, or `type` to
// F_UNLCK if there is none. Returns 0, or -1 with errno set.
int sealeddb_excluding_lock(int descriptor, int *type, long long start, long long *count);

// Whether nobody else has the file open through another open file description, in any process, container or name space:
// only then does the kernel grant a write lease. Returns 1 or 0, or -1 with errno set if the kernel cannot tell (EACCES
// for a file of another user, EINVAL for a file system without leases).
// https://man7.org/linux/man-pages/man2/fcntl.2.html
int sealeddb_is_only_descriptor(int descriptor);

// Whether somebody has the file open for writing, in any process, container or name space: only then does the kernel refuse a
// read lease. The descriptor must be one for reading. Returns as sealeddb_is_only_descriptor does.
int sealeddb_has_writers(int descriptor);

// When the file was created, which nobody can set. `descriptor` is AT_FDCWD for a path; `path` is "" for a descriptor. A
// symbolic link is not followed. Returns 1 if the time is known, 0 if the system does not tell it, or -1 with errno set.
// https://man7.org/linux/man-pages/man2/statx.2.html
int sealeddb_birth_time(int descriptor, const char *path, long long *seconds, unsigned *nanoseconds);

// Whether the file itself is a mount point, as when a container mounts a single file. Returns 1 or 0; 0 also if the
// system does not tell it, as before Linux 5.8; or -1 with errno set. https://man7.org/linux/man-pages/man2/statx.2.html
int sealeddb_is_mounted(const char *path);

// Catches SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGCONT, and those other signals that would end the process and
// have no handler. Until sealeddb_release_signals, a caught signal only writes its number, as one byte, to the pipe
// whose reading end is returned. Ignored signals stay ignored. Only one caller at a time may use this. Returns a
// descriptor, or -1 with errno set.
int sealeddb_catch_signals(void);
void sealeddb_release_signals(void);

// Has the kernel begin to write these bytes of a file to the disk, without waiting for it. Nothing is stored for certain
// by that. Returns 0, or -1 with errno set. https://man7.org/linux/man-pages/man2/sync_file_range.2.html
int sealeddb_begin_writing(int descriptor, long long offset, long long count);

// Waits until the kernel has written what it had begun to write of these bytes. Nothing is stored for certain by that
// either. Returns 0, or -1 with errno set.
int sealeddb_await_writing(int descriptor, long long offset, long long count);

// Starts a thread that gets no signals but those that its own instructions raise. Returns 0, or the error number.
int sealeddb_start_thread(pthread_t *thread, void *(*body)(void *), void *context);

// Returns how many processors the calling thread may run on; at least 1.
int sealeddb_processor_count(void);

// Returns how many columns a terminal gives to a Unicode scalar: 0 for what joins another one, 2 for what is wide, -1 for
// a control character or one that is not known. The locale must be one of UTF-8.
// https://man7.org/linux/man-pages/man3/wcwidth.3.html
int sealeddb_scalar_columns(unsigned scalar);

// Returns the number of columns of a terminal; 0 if the descriptor is not a terminal.
int sealeddb_terminal_columns(int descriptor);

#endif
