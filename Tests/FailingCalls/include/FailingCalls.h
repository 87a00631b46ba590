#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <stddef.h>
#include <stdint.h>

/// Counts the calls of the system that this process makes for the files below a directory, and fails some of them.
///
/// The functions of libc are defined here a second time. An executable that contains them uses them in place of libc's,
/// and so do the shared libraries that it loads, SQLCipher among them. Children that execute another program do not.
///
/// When all calls fail that a thread counts, `nanosleep` returns to it at once.

enum {
    /// In place of an error number: the last byte that is read or written at an offset has one bit changed, and the call
    /// succeeds.
    failing_calls_changing = -1,
    /// The same: only a part is read or written at an offset.
    failing_calls_shortening = -2,
};

/// Begins to count, until `failing_calls_end`.
/// @param directory whose files are meant, without a slash at its end and with links followed. NULL means the calls
///     without a file, such as `getrandom`, that this thread makes.
/// @param first the number of the first call that fails, from 0; -1 if none does.
/// @param last the number of the last call that fails.
/// @param code what `errno` is then; 0 for a likely one of each call; or one of the numbers above, which concern no other
///     calls than `pread` and `pwrite`.
/// @return a number for the other functions; -1 if too many count at once.
int failing_calls_begin(const char *directory, int64_t first, int64_t last, int code);

/// Begins to count the calls of OpenSSL that this thread makes, those of SQLCipher among them, until `failing_calls_end`. A call
/// that fails does nothing, and returns what OpenSSL returns then. What is found by `dlsym` in OpenSSL is not counted.
/// @return as `failing_calls_begin`.
int failing_calls_begin_openssl(int64_t first, int64_t last);

/// How many calls there were up to now.
int64_t failing_calls_count(int watch);

/// The name of a call and its file, as `fsync /directory/file`.
/// @return 0 if there was no such call, or if it is not recorded: those after the first 16384 are not.
int failing_calls_describe(int watch, int64_t index, char *text, size_t capacity);

void failing_calls_end(int watch);

/// Makes a place of a file unreadable for this process, as a bad sector does, until `failing_calls_mend`.
/// @param path of the file, with links followed.
/// @return a number for `failing_calls_mend`; -1 if there are too many.
int failing_calls_spoil(const char *path, int64_t offset);
void failing_calls_mend(int place);

#endif
