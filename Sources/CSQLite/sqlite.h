// The C boundary of the plain build: the same names as the encrypted one, without a codec behind them.

#ifndef SEALEDDB_SQLITE_H
#define SEALEDDB_SQLITE_H

#include <sqlite3.h>
#include <stddef.h>

#if SQLITE_VERSION_NUMBER < 3036000
#error "SealedDB needs SQLite 3.36 or later. Run scripts/setup of SealedDB, or: apt-get install libsqlite3-dev"
#endif

#include "../CSQLiteShims/shims.h"

static const int sealeddb_has_codec = 0;

static inline int sealeddb_watches_pages(void) { return 0; }

static inline int sealeddb_key(sqlite3 *db, const void *key, int count) {
    (void)db; (void)key; (void)count;
    return SQLITE_MISUSE;
}

static inline int sealeddb_rekey(sqlite3 *db, const void *key, int count) {
    (void)db; (void)key; (void)count;
    return SQLITE_MISUSE;
}

static inline const void *sealeddb_address_of_key(void) { return 0; }

static inline int sealeddb_pbkdf2(
    int bits, const void *passphrase, int passphrase_count, const void *salt, int salt_count, int iterations,
    void *key, int key_count
) {
    (void)bits; (void)passphrase; (void)passphrase_count; (void)salt; (void)salt_count; (void)iterations;
    (void)key; (void)key_count;
    return 0;
}

static inline int sealeddb_hmac(
    int bits, const void *key, int key_count, const void *bytes, size_t count, unsigned char *code
) {
    (void)bits; (void)key; (void)key_count; (void)bytes; (void)count; (void)code;
    return 0;
}

static inline int sealeddb_decrypt(
    const void *key, const void *iv, const void *ciphertext, int count, unsigned char *plaintext
) {
    (void)key; (void)iv; (void)ciphertext; (void)count; (void)plaintext;
    return 0;
}

static inline void *sealeddb_hash_new(void) { return 0; }
static inline int sealeddb_hash_update(void *hash, const void *bytes, size_t count) {
    (void)hash; (void)bytes; (void)count;
    return 0;
}
static inline int sealeddb_hash_value(void *hash, unsigned char *value) { (void)hash; (void)value; return 0; }
static inline void sealeddb_hash_free(void *hash) { (void)hash; }

#endif
