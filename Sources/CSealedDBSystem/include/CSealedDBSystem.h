// Linux calls that Swift cannot import: variadic, or hidden behind _GNU_SOURCE.

#ifndef SEALEDDB_SYSTEM_H
#define SEALEDDB_SYSTEM_H

#include <stddef.h>
#include <sys/types.h>

#include "provider.h"

// Base address of the shared object that holds the address, or NULL; the object's path is copied to `path`.
const void *sealeddb_object_of(const void *address, char *path, size_t capacity);

// As open(2), with O_CLOEXEC, but never 0, 1 or 2: what is printed, by whomever, must not go into a file of a store because
// the process was started with these closed. A descriptor, or -1 with errno set.
int sealeddb_open(const char *path, int flags, mode_t mode);

// Takes those of the descriptors 0, 1 and 2 that are closed, so that nothing else gets them; to read from 0 and to write
// to 1 and 2 fail then. 0, or -1 with errno set.
int sealeddb_take_standard_descriptors(void);

// Fills the buffer from the kernel's random generator. 0, or -1 with errno set.
int sealeddb_random(void *buffer, size_t count);

// Anonymous pages, left out of core dumps, and locked if the limits allow. NULL when out of memory.
void *sealeddb_secret_allocate(size_t count);

// Wipes and unmaps.
void sealeddb_secret_free(void *pages, size_t count);

void sealeddb_wipe(void *bytes, size_t count);

// Starts a program in a process group of its own, with /dev/null to read, `*output` to be read for what it writes, the
// caller's standard error, and no other descriptor; no signal is blocked or ignored. 0, or the error's number.
int sealeddb_spawn(char *const arguments[], char *const environment[], pid_t *process, int *output);

// No core dumps, and no reading of this process's memory by others of the same user. 0, or -1 with errno set.
int sealeddb_forbid_dumps(void);

// Bytes that may be locked in memory; -1 for no limit.
long long sealeddb_memory_lock_limit(void);

// Renames unless there is a file of the new name. 0, or -1 with errno set (EEXIST) and nothing changed.
int sealeddb_rename_exclusively(const char *from, const char *to);

// Takes the locks of an exclusive SQLite connection on an open file, for this descriptor alone. 0, or -1 with errno set
// (EAGAIN when somebody else holds one).
int sealeddb_lock_store(int descriptor);

// Syncs the file system that the open file is on. 0, or -1 with errno set.
int sealeddb_sync_file_system(int descriptor);

// Copies owner, group, mode and extended attributes. 0, or -1 with errno set and `*step` naming the call.
int sealeddb_copy_attributes(const char *from, int to, const char **step);

// A lock of the open file description (F_OFD_SETLK) on `count` bytes, or its release: F_RDLCK, F_WRLCK, F_UNLCK. Does
// not wait. 0, or -1 with errno set (EAGAIN if somebody else has a lock that excludes this one).
int sealeddb_lock(int descriptor, int type, long long start, long long count);

// Type and length of a lock that excludes this one; F_UNLCK for none. 0, or -1 with errno set.
int sealeddb_excluding_lock(int descriptor, int *type, long long start, long long *count);

// Whether this descriptor is the only one by which anybody has the file open, in whatever process, container or name space:
// the kernel gives a lease of the file only then. 1 or 0; -1 with errno set where it cannot tell (EACCES for a file of
// another user, EINVAL for a file system without leases). https://man7.org/linux/man-pages/man2/fcntl.2.html
int sealeddb_is_only_descriptor(int descriptor);

// Whether the file is mounted by itself, as containers get single files. Not before Linux 5.8. 1 or 0, where it cannot be told
// too. https://man7.org/linux/man-pages/man2/statx.2.html
int sealeddb_is_mounted(const char *path);

// Until they are released, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGCONT, and signals that nobody has a handler for
// and that would end the process, do nothing but send their number, as one
// byte, to the descriptor that is returned; those that are ignored stay so. For one caller at a time. -1 with errno set.
int sealeddb_catch_signals(void);
void sealeddb_release_signals(void);

// Columns of a terminal; 0 if the descriptor is none.
int sealeddb_terminal_columns(int descriptor);

#endif
