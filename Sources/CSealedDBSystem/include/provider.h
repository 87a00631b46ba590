// Puts functions of this library in front of those of SQLCipher's cryptography provider.
//
// If the authentication code of a page is wrong, SQLCipher treats the page as zeros. It reports the error only when the
// next page is read, and not at all if there is none. The functions here see each comparison, on the thread that reads
// the page.

#ifndef SEALEDDB_PROVIDER_H
#define SEALEDDB_PROVIDER_H

enum sealeddb_page_cause {
    // The page is not what was written.
    sealeddb_page_is_damaged,
    // OpenSSL failed.
    sealeddb_page_not_decrypted,
    // The system could not read the page.
    sealeddb_page_not_read,
};

// The failures of the pages that this thread has read.
struct sealeddb_page_failures {
    // How many pages could not be read as they were written. It never decreases: compare it before and after a call.
    unsigned long long count;
    // The number of the page that failed last; 0 if unknown.
    unsigned int page;
    // The cause of the last failure.
    enum sealeddb_page_cause cause;
    // Whether the last read of a file failed. SQLCipher then still checks the memory as if it contained the page.
    int has_read_failed;
    // The connection that works on this thread; NULL if there is none.
    void *connection;
    // If set, writing pages fails as soon as `count` differs from `stopping_count`.
    int stops_writing;
    unsigned long long stopping_count;
};

extern __thread struct sealeddb_page_failures sealeddb_page_failures;

// Whether a file of the connection contains this page as zeros throughout. SQLCipher treats a page of zeros as one
// beyond the end of the file, which a store with auto_vacuum may read while it grows. Returns 1 or 0; a negative number
// if this could not be determined.
typedef int (*sealeddb_zeros_are_stored)(void *connection, unsigned int page, int page_size);

// Puts the functions of this library in front of those of SQLCipher's provider, for every key from now on. `object` is
// the path of the SQLCipher library. Call this once, while a connection with a key is open. From then on, one such
// connection must stay open: 4.6 forgets the provider with the last one. Returns NULL, or the reason for the failure.
//
// The functions keep OpenSSL's contexts for each codec, unless there is a reason against it. It must be a constant.
const char *sealeddb_install_provider(
    const char *object, sealeddb_zeros_are_stored zeros_are_stored, const char *reason_against_contexts);

// Why OpenSSL's contexts are not kept from page to page; NULL if they are.
const char *sealeddb_contexts_problem(void);

// From now on, no codec keeps contexts. Each wipes those that it has with its next page, or when it ends. `reason` must
// be a constant. Any thread may call this.
void sealeddb_stop_keeping_contexts(const char *reason);

// Compares kept contexts with SQLCipher's functions, over other random pages with each call. Returns 1 if contexts are
// kept and agree, otherwise 0.
int sealeddb_check_contexts(void);

// From now on, the functions only call SQLCipher's own.
void sealeddb_neutralize_provider(void);

// In SQLCipher 4.19, and not in 4.6, a codec that could not read a page gives out zeros for every later one, and asks nobody
// about them. Call this if it was seen to do so. From then on, a connection that had a failure fails in each watch until it is closed.
void sealeddb_let_failures_stick(void);
int sealeddb_failures_stick(void);

// Call this when a connection is opened, gets a key, or is closed: another one may get the same address.
void sealeddb_forget_failures(void *connection);
int sealeddb_has_failed(void *connection);

// How many connections have had such a failure.
extern int sealeddb_failed_connections;
static inline int sealeddb_some_have_failed(void) {
    return __atomic_load_n(&sealeddb_failed_connections, __ATOMIC_ACQUIRE) != 0;
}

// Counts the failure again that the connection of this thread has had, if any.
void sealeddb_note_former_failure(void);

// A period of work on one connection. Failures during it belong to that connection. Watches can be nested.
struct sealeddb_page_watch {
    unsigned long long count;
    void *outer;
};

static inline struct sealeddb_page_watch sealeddb_begin_page_watch(void *connection) {
    struct sealeddb_page_watch watch = {sealeddb_page_failures.count, sealeddb_page_failures.connection};
    sealeddb_page_failures.connection = connection;
    // The flag may be left from earlier work of this thread.
    sealeddb_page_failures.has_read_failed = 0;
    return watch;
}

// Ends the watch. Returns whether every page was read as it was written.
static inline int sealeddb_end_page_watch(struct sealeddb_page_watch watch) {
    if (sealeddb_some_have_failed()) sealeddb_note_former_failure();
    sealeddb_page_failures.connection = watch.outer;
    return sealeddb_page_failures.count == watch.count;
}

// If on, the next failure makes every later write of a page fail, until this is switched off.
static inline void sealeddb_stop_writing_after_failure(int on) {
    sealeddb_page_failures.stops_writing = on;
    sealeddb_page_failures.stopping_count = sealeddb_page_failures.count;
}

static inline unsigned int sealeddb_last_failed_page(void) { return sealeddb_page_failures.page; }
static inline enum sealeddb_page_cause sealeddb_last_page_cause(void) { return sealeddb_page_failures.cause; }

// Call this after each read of a file of pages.
static inline void sealeddb_note_read(int has_failed) { sealeddb_page_failures.has_read_failed = has_failed; }

#endif
