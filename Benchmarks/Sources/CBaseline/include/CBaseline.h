// The floor: what a C program does with the same engine for the same work. Functions return SQLite's result codes;
// those that count return the count, or minus the code. `baseline_message` tells more.

#ifndef CBASELINE_H
#define CBASELINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct baseline baseline;

// ---- The engine ----

// Before anything else: no memory statistics, as SealedDB sets for the process, whoever comes first.
int baseline_start(void);
const char *baseline_sqlite_version(void);
// The first column of a query's rows, one a line; for the caller to free.
char *baseline_text(const char *sql);

// ---- Connections ----

typedef struct {
    // A raw key as `x'…'`, a passphrase, or null for a file in the clear.
    const char *key;
    // 0 for the engine's 4096.
    int page_size;
    // SHA1, SHA256, SHA512, or null for SQLCipher's SHA512.
    const char *hmac;
    // Pages without authentication.
    bool no_hmac;
    bool memory_security;
    // Null keeps the file's, or the engine's, own.
    const char *journal_mode;
    const char *synchronous;
    // KiB; 0 keeps the engine's.
    int cache_size;
} baseline_options;

// Opens, keys, and reads the schema, so that a wrong key shows.
int baseline_open(const char *path, baseline_options options, baseline **result);
void baseline_close(baseline *db);
const char *baseline_message(const baseline *db);
int baseline_execute(baseline *db, const char *sql);
// The first column of the first row, or minus the result code.
int64_t baseline_integer(baseline *db, const char *sql);

// ---- Processors ----

// How many the calling thread may run on.
int baseline_processor_count(void);
// Has the calling thread, and those that it starts from now on, run on so many of them; 0 for all. 1, or 0 for a failure.
int baseline_use_processors(int count);

// ---- Values ----

typedef enum {
    BASELINE_INTEGER,
    BASELINE_REAL,
    BASELINE_TEXT,
    BASELINE_BLOB,
    BASELINE_NULL,
} baseline_kind;

// Values to bind, taken in turn; `count` is a power of two. Each text and blob is terminated by a NUL that is not part
// of it.
typedef struct {
    int count;
    const int64_t *integers;
    const double *reals;
    const char *const *texts;
    const int *text_lengths;
    const char *const *blobs;
    int blob_length;
} baseline_values;

// ---- Binding and reading ----

// Prepares once; then for each row binds a value to each column, steps, and resets.
int baseline_insert(
    baseline *db, const char *sql, const baseline_kind *kinds, int columns, int rows, const baseline_values *values);

// Reads every column of every row. With `copies`, texts and blobs are copied into memory of their own, as a String or
// Data is; otherwise they are looked at where they are.
int baseline_read(
    baseline *db, const char *sql, const baseline_kind *kinds, int columns, bool copies, uint64_t *checksum);

// ---- Queries, transactions ----

// Prepares once; then looks each id up and reads an integer and a text.
int baseline_points(
    baseline *db, const char *sql, const int64_t *ids, int count, bool in_transaction, uint64_t *checksum);

// Inserts rows of (integer, text, real, blob), in transactions of `batch` rows; 0 for none but SQLite's own.
int baseline_insert_batches(baseline *db, const char *sql, int batch, int rows, const baseline_values *values);

// Inserts rows of texts.
int baseline_insert_texts(
    baseline *db, const char *sql, const char *const *texts, const int *lengths, int rows, int columns);

// Prepares once; then looks each name up and reads two texts.
int baseline_lookups(
    baseline *db, const char *sql, const char *const *names, const int *lengths, int count, uint64_t *checksum);

// Runs a statement to its end; returns the number of rows.
int baseline_run(baseline *db, const char *sql);

// Keeps the optimiser from leaving out what led to the value.
void baseline_sink(uint64_t value);

// ---- Functions, BLOBs, copies ----

// twice(x): an integer doubled. half(text): its first half. total_of(x): the sum of integers.
int baseline_make_functions(baseline *db);

int baseline_read_blob(
    baseline *db, const char *table, const char *column, int64_t row, void *buffer, int chunk, uint64_t *checksum);
int baseline_write_blob(
    baseline *db, const char *table, const char *column, int64_t row, const void *buffer, int chunk);

// Copies a database into a new file by the backup API; each side has its own key.
int baseline_backup(const char *path, baseline_options options, const char *target, baseline_options target_options);

// SQLCipher's documented way from one key to another, or between plaintext and encrypted: ATTACH, sqlcipher_export.
int baseline_export(const char *path, baseline_options options, const char *target, const char *target_key);

// ---- The physical limit: libcrypto alone ----

typedef struct baseline_crypto baseline_crypto;

typedef enum {
    BASELINE_AES_DECRYPT,
    BASELINE_AES_ENCRYPT,
    BASELINE_HMAC_SHA512,
    // What reading a page takes, with contexts that are made once.
    BASELINE_READ_PAGE,
    // The same with contexts fetched and made for each page, as SQLCipher 4.6 does.
    BASELINE_READ_PAGE_AS_SQLCIPHER,
    // What writing a page takes, as SQLCipher 4.6 does it.
    BASELINE_WRITE_PAGE_AS_SQLCIPHER,
    // What giving a page another key takes: authenticate, decrypt, encrypt with a random vector, authenticate.
    BASELINE_ROTATE_PAGE,
} baseline_crypto_work;

baseline_crypto *baseline_crypto_make(int page_size);
void baseline_crypto_free(baseline_crypto *crypto);
// 1, or 0 if libcrypto failed.
int baseline_crypto_run(baseline_crypto *crypto, baseline_crypto_work work, int pages);
const char *baseline_crypto_version(void);
// SQLCipher's derivation: PBKDF2 with HMAC-SHA512. 1, or 0 if libcrypto failed.
int baseline_derive_key(const char *passphrase, const uint8_t *salt, int iterations, uint8_t *key);

#endif
