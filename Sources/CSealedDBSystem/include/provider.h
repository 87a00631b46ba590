// SQLCipher's provider of cryptography, with functions of ours in front of its own.
//
// SQLCipher takes a page whose authentication code is wrong for one of zeros, and says so only with the next page that
// it is asked for, if there is one. The functions here see each comparison, on the thread that reads.

#ifndef SEALEDDB_PROVIDER_H
#define SEALEDDB_PROVIDER_H

enum sealeddb_page_cause {
    // It is not what was written.
    sealeddb_page_is_damaged,
    // There was no answer from OpenSSL.
    sealeddb_page_not_decrypted,
    // The system did not read it.
    sealeddb_page_not_read,
};

// What went wrong with pages that this thread has read.
struct sealeddb_page_failures {
    // How many pages could not be read as they were written. Never goes down: compare it before and after a call.
    unsigned long long count;
    // The number of the last of them.
    unsigned int page;
    // What was wrong with that one.
    enum sealeddb_page_cause cause;
    // Whether the last read of a file failed. SQLCipher has what is in the memory then looked at as if it were the page.
    int has_read_failed;
    // The connection that works on this thread, NULL for none.
    void *connection;
    // Whether no page is written any more once `count` is another one than this.
    int stops_writing;
    unsigned long long stopping_count;
};

extern __thread struct sealeddb_page_failures sealeddb_page_failures;

// Whether a file of the connection holds this page, all of it zeros. SQLCipher takes such a page for one beyond the end
// of the file, which a store with auto_vacuum may read while it grows. Below 0 if that could not be looked at.
typedef int (*sealeddb_zeros_are_stored)(void *connection, unsigned int page, int page_size);

// Puts the functions in front of those that SQLCipher uses for every key from now on. `object` is the path of the library.
// To be called once, while a connection with a key is open, and one has to stay open from then on: 4.6 forgets the
// provider with the last. NULL, or why it was not done.
const char *sealeddb_install_provider(const char *object, sealeddb_zeros_are_stored zeros_are_stored);

// Has the functions do nothing but what SQLCipher's own do.
void sealeddb_neutralize_provider(void);

// A stretch of work on one connection, during which failures are its own. They nest.
struct sealeddb_page_watch {
    unsigned long long count;
    void *outer;
};

static inline struct sealeddb_page_watch sealeddb_begin_page_watch(void *connection) {
    struct sealeddb_page_watch watch = {sealeddb_page_failures.count, sealeddb_page_failures.connection};
    sealeddb_page_failures.connection = connection;
    // Of whatever this thread did before.
    sealeddb_page_failures.has_read_failed = 0;
    return watch;
}

// Whether every page was read as it was written.
static inline int sealeddb_end_page_watch(struct sealeddb_page_watch watch) {
    sealeddb_page_failures.connection = watch.outer;
    return sealeddb_page_failures.count == watch.count;
}

// From now on, until it is switched off, the next failure makes every page that is written fail too.
static inline void sealeddb_stop_writing_after_failure(int on) {
    sealeddb_page_failures.stops_writing = on;
    sealeddb_page_failures.stopping_count = sealeddb_page_failures.count;
}

static inline unsigned int sealeddb_last_failed_page(void) { return sealeddb_page_failures.page; }
static inline enum sealeddb_page_cause sealeddb_last_page_cause(void) { return sealeddb_page_failures.cause; }

// To be called after each read of a file of pages.
static inline void sealeddb_note_read(int has_failed) { sealeddb_page_failures.has_read_failed = has_failed; }

#endif
