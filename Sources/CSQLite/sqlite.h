// The C boundary of the plain build: the same names as the encrypted one, without a codec behind them.

#ifndef SEALEDDB_SQLITE_H
#define SEALEDDB_SQLITE_H

#if !__has_include(<sqlite3.h>)
#error "SealedDB's plain build needs SQLite's headers, and there are none. Run scripts/setup of SealedDB, or: \
apt-get install libsqlite3-dev"
#else

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

static inline int sealeddb_skip_openssl_cleanup(void) { return 1; }
static inline int sealeddb_is_openssl_alive(void) { return 1; }

static inline int sealeddb_pbkdf2(
    int bits, const void *passphrase, int passphrase_count, const void *salt, int salt_count, int iterations,
    void *key, int key_count
) {
    (void)bits; (void)passphrase; (void)passphrase_count; (void)salt; (void)salt_count; (void)iterations;
    (void)key; (void)key_count;
    return 0;
}

static inline int sealeddb_hkdf(
    const void *secret, size_t secret_count, const void *salt, size_t salt_count, const void *info, size_t info_count,
    void *key, size_t key_count
) {
    (void)secret; (void)secret_count; (void)salt; (void)salt_count; (void)info; (void)info_count;
    (void)key; (void)key_count;
    return 0;
}
static inline int sealeddb_scrypt(
    const void *passphrase, size_t passphrase_count, const void *salt, size_t salt_count, unsigned long long n,
    unsigned r, unsigned p, unsigned long long memory, void *key, size_t key_count
) {
    (void)passphrase; (void)passphrase_count; (void)salt; (void)salt_count; (void)n; (void)r; (void)p; (void)memory;
    (void)key; (void)key_count;
    return 0;
}
static inline int sealeddb_hmac_sha256(
    const void *key, size_t key_count, const void *bytes, size_t count, unsigned char *code
) {
    (void)key; (void)key_count; (void)bytes; (void)count; (void)code;
    return 0;
}
static inline int sealeddb_is_equal_code(const void *first, const void *second) {
    (void)first; (void)second;
    return 0;
}
static inline int sealeddb_gcm_seal(
    const void *key, const void *nonce, const void *bound, int bound_count, const void *plaintext, unsigned char *sealed
) {
    (void)key; (void)nonce; (void)bound; (void)bound_count; (void)plaintext; (void)sealed;
    return 0;
}
static inline int sealeddb_gcm_open(
    const void *key, const void *nonce, const void *bound, int bound_count, const unsigned char *sealed,
    unsigned char *plaintext
) {
    (void)key; (void)nonce; (void)bound; (void)bound_count; (void)sealed; (void)plaintext;
    return -1;
}

static inline void *sealeddb_page_keys_new(int bits, const void *key, const void *hmac_key, size_t hmac_key_count) {
    (void)bits; (void)key; (void)hmac_key; (void)hmac_key_count;
    return 0;
}
static inline void *sealeddb_page_keys_copy(const void *object) {
    (void)object;
    return 0;
}
static inline void sealeddb_page_keys_free(void *object) { (void)object; }

static inline void *sealeddb_page_marker_new(const void *other) {
    (void)other;
    return 0;
}
static inline void sealeddb_page_marker_free(void *object) { (void)object; }

static inline int sealeddb_page_mark(
    void *object, const void *bytes, int count, unsigned long long number, unsigned long long *mark
) {
    (void)object; (void)bytes; (void)count; (void)number; (void)mark;
    return 0;
}

static inline int sealeddb_page_is_authentic(
    void *object, const void *bytes, size_t count, unsigned int number, const void *code
) {
    (void)object; (void)bytes; (void)count; (void)number; (void)code;
    return -1;
}

static inline int sealeddb_page_decrypt(
    void *object, const void *iv, const void *ciphertext, int count, void *plaintext
) {
    (void)object; (void)iv; (void)ciphertext; (void)count; (void)plaintext;
    return 0;
}

static inline int sealeddb_page_authenticate(
    void *object, const void *bytes, size_t count, unsigned int number, void *code
) {
    (void)object; (void)bytes; (void)count; (void)number; (void)code;
    return 0;
}

static inline int sealeddb_page_encrypt(
    void *object, const void *iv, const void *plaintext, int count, void *ciphertext
) {
    (void)object; (void)iv; (void)plaintext; (void)count; (void)ciphertext;
    return 0;
}

static inline int sealeddb_random_bytes(void *bytes, int count) {
    (void)bytes; (void)count;
    return 0;
}

static inline int sealeddb_random_for_page(void *object, void *bytes, int count) {
    (void)object; (void)bytes; (void)count;
    return 0;
}

// Tells two databases apart that should be equal, and defends against nobody: four times FNV-1a.
static inline void *sealeddb_hash_new(void) {
    sqlite3_uint64 *lanes = (sqlite3_uint64 *)sqlite3_malloc(5 * sizeof(sqlite3_uint64));
    if (lanes == 0) return 0;
    for (int i = 0; i < 4; i++) lanes[i] = 0xcbf29ce484222325ULL + i;
    lanes[4] = 0;
    return lanes;
}
static inline int sealeddb_hash_update(void *hash, const void *bytes, size_t count) {
    sqlite3_uint64 *lanes = (sqlite3_uint64 *)hash;
    for (size_t i = 0; i < count; i++) {
        sqlite3_uint64 *lane = &lanes[lanes[4]++ % 4];
        *lane = (*lane ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3ULL;
    }
    return 1;
}
static inline int sealeddb_hash_value(void *hash, unsigned char *value) {
    for (int i = 0; i < 32; i++) value[i] = ((unsigned char *)hash)[i];
    return 1;
}
static inline void sealeddb_hash_free(void *hash) { sqlite3_free(hash); }

#endif
#endif
