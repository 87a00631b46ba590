// What the encrypted build takes from libcrypto, which libsqlcipher has in the process anyway.

#ifndef SEALEDDB_OPENSSL_H
#define SEALEDDB_OPENSSL_H

#if !__has_include(<openssl/evp.h>)
#error "SealedDB needs OpenSSL's headers, and there are none. Run scripts/setup of SealedDB, or: apt-get install libssl-dev"
#else

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

// Keeps OpenSSL from tearing itself down at exit(3); 0 for a failure. It must be OpenSSL's first call in the process, or
// it has no effect. Tearing down frees the state of threads that still run, and OpenSSL 3.0 frees it a second time if
// one of them ends at that moment: the process then dies by SIGABRT instead of exiting with its status.
// https://docs.openssl.org/3.0/man3/OPENSSL_init_crypto/
static inline int sealeddb_skip_openssl_cleanup(void) {
    return OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, 0);
}

// Whether OpenSSL still works: 0 after it has torn itself down.
static inline int sealeddb_is_openssl_alive(void) { return OPENSSL_init_crypto(0, 0); }

// PBKDF2 with HMAC of the hash of this many bits (160, 256 or 512), straight from and to the caller's memory; OpenSSL
// wipes its own copies. 1, or 0 for a failure.
static inline int sealeddb_pbkdf2(
    int bits, const void *passphrase, int passphrase_count, const void *salt, int salt_count, int iterations,
    void *key, int key_count
) {
    const EVP_MD *hash = bits == 160 ? EVP_sha1() : bits == 256 ? EVP_sha256() : EVP_sha512();
    return PKCS5_PBKDF2_HMAC(passphrase, passphrase_count, salt, salt_count, iterations, hash, key_count, key);
}

// Random bytes that nobody can predict, from the generator that SQLCipher uses. 1, or 0 for a failure, after which the
// bytes must not be used. https://docs.openssl.org/3.0/man3/RAND_bytes/
static inline int sealeddb_random_bytes(void *bytes, int count) {
    return RAND_bytes((unsigned char *)bytes, count) == 1;
}

// The contexts that authenticate, decrypt and encrypt pages under the keys of one store: AES-256-CBC, and HMAC of RFC
// 2104. They are set up once, so that no page pays for looking up algorithms and expanding keys. The HMAC is made of hashes, because
// EVP_MAC of OpenSSL before 3.0.3 does not begin anew unless it gets the key again. Only one thread at a time may use
// such an object.
struct sealeddb_page_keys {
    // After the first block of the inner and of the outer hash.
    EVP_MD_CTX *inner, *outer;
    EVP_MD_CTX *hash;
    EVP_CIPHER_CTX *decryption, *encryption;
    int code_size;
    // Random bytes, of which the last ones are not used yet.
    unsigned char random[4096];
    int random_left;
};

// Frees the contexts. OpenSSL wipes what it has of the keys.
static inline void sealeddb_page_keys_free(void *object) {
    struct sealeddb_page_keys *keys = (struct sealeddb_page_keys *)object;
    if (keys == 0) return;
    EVP_MD_CTX_free(keys->inner);
    EVP_MD_CTX_free(keys->outer);
    EVP_MD_CTX_free(keys->hash);
    EVP_CIPHER_CTX_free(keys->decryption);
    EVP_CIPHER_CTX_free(keys->encryption);
    OPENSSL_free(keys);
}

// Random bytes for the reserved bytes of a page. They come from the generator in larger pieces: each of its calls asks
// the kernel for the process, and takes as long as a quarter of the page's encryption, for however few bytes. None is
// given out twice. 1, or 0 for a failure, after which the bytes must not be used.
static inline int sealeddb_random_for_page(void *object, void *bytes, int count) {
    struct sealeddb_page_keys *keys = (struct sealeddb_page_keys *)object;
    int size = (int)sizeof keys->random;
    if (count < 0 || count > size) return 0;
    if (count > keys->random_left) {
        keys->random_left = 0;
        if (!sealeddb_random_bytes(keys->random, size)) return 0;
        keys->random_left = size;
    }
    unsigned char *next = keys->random + size - keys->random_left;
    for (int i = 0; i < count; i++) ((unsigned char *)bytes)[i] = next[i];
    keys->random_left -= count;
    return 1;
}

// Contexts without keys. NULL without memory.
static inline struct sealeddb_page_keys *sealeddb_page_keys_empty(void) {
    struct sealeddb_page_keys *keys = (struct sealeddb_page_keys *)OPENSSL_zalloc(sizeof *keys);
    if (keys == 0) return 0;
    keys->inner = EVP_MD_CTX_new();
    keys->outer = EVP_MD_CTX_new();
    keys->hash = EVP_MD_CTX_new();
    keys->decryption = EVP_CIPHER_CTX_new();
    keys->encryption = EVP_CIPHER_CTX_new();
    if (keys->inner != 0 && keys->outer != 0 && keys->hash != 0 && keys->decryption != 0 && keys->encryption != 0) {
        return keys;
    }
    sealeddb_page_keys_free(keys);
    return 0;
}

// Begins a hash with a block of the key, each byte of it XORed with `pad`.
static inline int sealeddb_begin_hmac(
    EVP_MD_CTX *context, const EVP_MD *hash, const unsigned char *key, size_t key_count, unsigned char pad
) {
    unsigned char block[EVP_MAX_MD_SIZE * 2];
    size_t size = (size_t)EVP_MD_get_block_size(hash);
    if (size > sizeof block || key_count > size) return 0;
    for (size_t i = 0; i < size; i++) block[i] = (i < key_count ? key[i] : 0) ^ pad;
    int done = EVP_DigestInit_ex(context, hash, 0) == 1 && EVP_DigestUpdate(context, block, size) == 1;
    OPENSSL_cleanse(block, sizeof block);
    return done;
}

// Contexts for a key of 32 bytes, and for HMAC with the hash of this many bits. NULL if OpenSSL refuses.
static inline void *sealeddb_page_keys_new(int bits, const void *key, const void *hmac_key, size_t hmac_key_count) {
    const EVP_MD *hash = bits == 160 ? EVP_sha1() : bits == 256 ? EVP_sha256() : EVP_sha512();
    const unsigned char *bytes = (const unsigned char *)hmac_key;
    struct sealeddb_page_keys *keys = sealeddb_page_keys_empty();
    if (keys == 0) return 0;
    keys->code_size = EVP_MD_get_size(hash);
    if (keys->code_size * 8 == bits && sealeddb_begin_hmac(keys->inner, hash, bytes, hmac_key_count, 0x36)
        && sealeddb_begin_hmac(keys->outer, hash, bytes, hmac_key_count, 0x5c)
        && EVP_DecryptInit_ex(keys->decryption, EVP_aes_256_cbc(), 0, (const unsigned char *)key, 0) == 1
        && EVP_CIPHER_CTX_set_padding(keys->decryption, 0) == 1
        && EVP_EncryptInit_ex(keys->encryption, EVP_aes_256_cbc(), 0, (const unsigned char *)key, 0) == 1
        && EVP_CIPHER_CTX_set_padding(keys->encryption, 0) == 1) return keys;
    sealeddb_page_keys_free(keys);
    return 0;
}

// Contexts for the same keys, which another thread may use. NULL if OpenSSL refuses.
static inline void *sealeddb_page_keys_copy(const void *object) {
    const struct sealeddb_page_keys *keys = (const struct sealeddb_page_keys *)object;
    struct sealeddb_page_keys *copy = sealeddb_page_keys_empty();
    if (copy == 0) return 0;
    copy->code_size = keys->code_size;
    if (EVP_MD_CTX_copy_ex(copy->inner, keys->inner) == 1 && EVP_MD_CTX_copy_ex(copy->outer, keys->outer) == 1
        && EVP_CIPHER_CTX_copy(copy->decryption, keys->decryption) == 1
        && EVP_CIPHER_CTX_copy(copy->encryption, keys->encryption) == 1) return copy;
    sealeddb_page_keys_free(copy);
    return 0;
}

// Writes the HMAC of the bytes and of the number of the page to `code`, which has room for EVP_MAX_MD_SIZE bytes. The
// number has four bytes, the lowest first. 1, or 0 for a failure.
static inline int sealeddb_page_code(
    struct sealeddb_page_keys *keys, const void *bytes, size_t count, unsigned int number, unsigned char *code
) {
    unsigned char digits[4];
    for (int i = 0; i < 4; i++) digits[i] = (unsigned char)(number >> (8 * i));
    return EVP_MD_CTX_copy_ex(keys->hash, keys->inner) == 1 && EVP_DigestUpdate(keys->hash, bytes, count) == 1
        && EVP_DigestUpdate(keys->hash, digits, sizeof digits) == 1 && EVP_DigestFinal_ex(keys->hash, code, 0) == 1
        && EVP_MD_CTX_copy_ex(keys->hash, keys->outer) == 1
        && EVP_DigestUpdate(keys->hash, code, (size_t)keys->code_size) == 1
        && EVP_DigestFinal_ex(keys->hash, code, 0) == 1;
}

// Whether `code` is the HMAC of the bytes and of the number of the page. 1 or 0; -1 if OpenSSL fails.
static inline int sealeddb_page_is_authentic(
    void *object, const void *bytes, size_t count, unsigned int number, const void *code
) {
    struct sealeddb_page_keys *keys = (struct sealeddb_page_keys *)object;
    unsigned char value[EVP_MAX_MD_SIZE];
    if (!sealeddb_page_code(keys, bytes, count, number, value)) return -1;
    return CRYPTO_memcmp(value, code, (size_t)keys->code_size) == 0;
}

// Writes the HMAC of the bytes and of the number of the page to `code`, which has as many bytes as the hash. 1, or 0
// for a failure.
static inline int sealeddb_page_authenticate(
    void *object, const void *bytes, size_t count, unsigned int number, void *code
) {
    struct sealeddb_page_keys *keys = (struct sealeddb_page_keys *)object;
    unsigned char value[EVP_MAX_MD_SIZE];
    if (!sealeddb_page_code(keys, bytes, count, number, value)) return 0;
    for (int i = 0; i < keys->code_size; i++) ((unsigned char *)code)[i] = value[i];
    return 1;
}

// Marks pages with short GMACs (NIST SP 800-38D), under a random key that never leaves the process. They take a fraction
// of the time of the pages' own codes.
struct sealeddb_page_marker {
    EVP_CIPHER_CTX *context;
    unsigned char key[32];
};

static inline void sealeddb_page_marker_free(void *object) {
    struct sealeddb_page_marker *marker = (struct sealeddb_page_marker *)object;
    if (marker == 0) return;
    EVP_CIPHER_CTX_free(marker->context);
    OPENSSL_cleanse(marker, sizeof *marker);
    OPENSSL_free(marker);
}

// A marker with a new key or, for another thread, with the key of `other`. NULL if OpenSSL refuses.
static inline void *sealeddb_page_marker_new(const void *other) {
    struct sealeddb_page_marker *marker = (struct sealeddb_page_marker *)OPENSSL_zalloc(sizeof *marker);
    if (marker == 0) return 0;
    int size = (int)sizeof marker->key, has_key = other != 0;
    for (int i = 0; has_key && i < size; i++) marker->key[i] = ((const struct sealeddb_page_marker *)other)->key[i];
    if (!has_key) has_key = sealeddb_random_bytes(marker->key, size);
    marker->context = EVP_CIPHER_CTX_new();
    if (has_key && marker->context != 0
        && EVP_EncryptInit_ex(marker->context, EVP_aes_256_gcm(), 0, marker->key, 0) == 1) return marker;
    sealeddb_page_marker_free(marker);
    return 0;
}

// The mark of these bytes of this page. 1, or 0 for a failure.
static inline int sealeddb_page_mark(
    void *object, const void *bytes, int count, unsigned long long number, unsigned long long *mark
) {
    EVP_CIPHER_CTX *context = ((struct sealeddb_page_marker *)object)->context;
    unsigned char nonce[12] = {0}, code[16], none[16];
    int length = 0;
    for (int i = 0; i < 8; i++) nonce[i] = (unsigned char)(number >> (8 * i));
    if (EVP_EncryptInit_ex(context, 0, 0, 0, nonce) != 1
        || EVP_EncryptUpdate(context, 0, &length, (const unsigned char *)bytes, count) != 1
        || EVP_EncryptFinal_ex(context, none, &length) != 1
        || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, sizeof code, code) != 1) return 0;
    *mark = 0;
    for (int i = 0; i < 8; i++) *mark = *mark << 8 | code[i];
    return 1;
}

// Decrypts whole blocks. 1, or 0 for a failure.
static inline int sealeddb_page_decrypt(
    void *object, const void *iv, const void *ciphertext, int count, void *plaintext
) {
    EVP_CIPHER_CTX *context = ((struct sealeddb_page_keys *)object)->decryption;
    int length = 0;
    return EVP_DecryptInit_ex(context, 0, 0, 0, (const unsigned char *)iv) == 1
        && EVP_DecryptUpdate(
            context, (unsigned char *)plaintext, &length, (const unsigned char *)ciphertext, count
        ) == 1
        && length == count;
}

// Encrypts whole blocks. 1, or 0 for a failure.
static inline int sealeddb_page_encrypt(
    void *object, const void *iv, const void *plaintext, int count, void *ciphertext
) {
    EVP_CIPHER_CTX *context = ((struct sealeddb_page_keys *)object)->encryption;
    int length = 0;
    return EVP_EncryptInit_ex(context, 0, 0, 0, (const unsigned char *)iv) == 1
        && EVP_EncryptUpdate(
            context, (unsigned char *)ciphertext, &length, (const unsigned char *)plaintext, count
        ) == 1
        && length == count;
}

// HKDF with SHA-256, straight from and to the caller's memory. 1, or 0 for a failure.
// https://www.rfc-editor.org/rfc/rfc5869
static inline int sealeddb_hkdf(
    const void *secret, size_t secret_count, const void *salt, size_t salt_count, const void *info, size_t info_count,
    void *key, size_t key_count
) {
    EVP_KDF *kdf = EVP_KDF_fetch(0, "HKDF", 0);
    EVP_KDF_CTX *context = kdf == 0 ? 0 : EVP_KDF_CTX_new(kdf);
    EVP_KDF_free(kdf);
    if (context == 0) return 0;
    char digest[] = "SHA256";
    OSSL_PARAM parameters[5];
    parameters[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
    parameters[1] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, secret_count);
    parameters[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_count);
    parameters[3] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_count);
    parameters[4] = OSSL_PARAM_construct_end();
    int done = EVP_KDF_derive(context, (unsigned char *)key, key_count, parameters) == 1;
    EVP_KDF_CTX_free(context);
    return done;
}

// Overwrites what functions that were called before have left on the stack.
static __attribute__((noinline)) void sealeddb_wipe_stack(void) {
    unsigned char space[32768];
    OPENSSL_cleanse(space, sizeof space);
}

// scrypt, straight from and to the caller's memory. OpenSSL wipes its own; what calls below this one may have left on the
// stack is overwritten. It may take `memory` bytes. 1, or 0 for a
// failure. https://www.rfc-editor.org/rfc/rfc7914
static inline int sealeddb_scrypt(
    const void *passphrase, size_t passphrase_count, const void *salt, size_t salt_count, unsigned long long n,
    unsigned r, unsigned p, unsigned long long memory, void *key, size_t key_count
) {
    EVP_KDF *kdf = EVP_KDF_fetch(0, "SCRYPT", 0);
    EVP_KDF_CTX *context = kdf == 0 ? 0 : EVP_KDF_CTX_new(kdf);
    EVP_KDF_free(kdf);
    if (context == 0) return 0;
    uint64_t cost = n, limit = memory;
    uint32_t block = r, lanes = p;
    OSSL_PARAM parameters[7];
    parameters[0] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, (void *)passphrase, passphrase_count);
    parameters[1] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_count);
    parameters[2] = OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &cost);
    parameters[3] = OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &block);
    parameters[4] = OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &lanes);
    parameters[5] = OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &limit);
    parameters[6] = OSSL_PARAM_construct_end();
    int done = EVP_KDF_derive(context, (unsigned char *)key, key_count, parameters) == 1;
    EVP_KDF_CTX_free(context);
    sealeddb_wipe_stack();
    return done;
}

// HMAC with SHA-256: 32 bytes. 1, or 0 for a failure.
static inline int sealeddb_hmac_sha256(
    const void *key, size_t key_count, const void *bytes, size_t count, unsigned char *code
) {
    unsigned size = 0;
    return HMAC(
               EVP_sha256(), key, (int)key_count, (const unsigned char *)bytes, count, code, &size) != 0
        && size == 32;
}

// Whether 32 bytes are equal, in constant time.
static inline int sealeddb_is_equal_code(const void *first, const void *second) {
    return CRYPTO_memcmp(first, second, 32) == 0;
}

// AES-256-GCM of 32 bytes with a nonce of 12 bytes; the tag of 16 bytes follows the ciphertext. 1, or 0 for a failure.
static inline int sealeddb_gcm_seal(
    const void *key, const void *nonce, const void *bound, int bound_count, const void *plaintext, unsigned char *sealed
) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int count = 0, rest = 0;
    if (context == 0) return 0;
    int done =
        EVP_EncryptInit_ex(
            context, EVP_aes_256_gcm(), 0, (const unsigned char *)key, (const unsigned char *)nonce) == 1
        && EVP_EncryptUpdate(context, 0, &count, (const unsigned char *)bound, bound_count) == 1
        && EVP_EncryptUpdate(context, sealed, &count, (const unsigned char *)plaintext, 32) == 1 && count == 32
        && EVP_EncryptFinal_ex(context, sealed + 32, &rest) == 1 && rest == 0
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, sealed + 32) == 1;
    EVP_CIPHER_CTX_free(context);
    return done;
}

// Undoes `sealeddb_gcm_seal`. 1; 0 if the key, the nonce or what is bound is another one, and then the 32 bytes of
// `plaintext` are zeros; -1 if OpenSSL fails.
static inline int sealeddb_gcm_open(
    const void *key, const void *nonce, const void *bound, int bound_count, const unsigned char *sealed,
    unsigned char *plaintext
) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int count = 0, rest = 0;
    if (context == 0) return -1;
    int result = -1;
    if (EVP_DecryptInit_ex(
            context, EVP_aes_256_gcm(), 0, (const unsigned char *)key, (const unsigned char *)nonce) == 1
        && EVP_DecryptUpdate(context, 0, &count, (const unsigned char *)bound, bound_count) == 1
        && EVP_DecryptUpdate(context, plaintext, &count, sealed, 32) == 1 && count == 32
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)(sealed + 32)) == 1)
        result = EVP_DecryptFinal_ex(context, plaintext + 32, &rest) == 1 && rest == 0;
    EVP_CIPHER_CTX_free(context);
    if (result != 1) OPENSSL_cleanse(plaintext, 32);
    return result;
}

// SHA-256 of what comes in parts. NULL without memory.
static inline void *sealeddb_hash_new(void) {
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    if (hash != 0 && EVP_DigestInit_ex(hash, EVP_sha256(), 0) == 1) return hash;
    EVP_MD_CTX_free(hash);
    return 0;
}

static inline int sealeddb_hash_update(void *hash, const void *bytes, size_t count) {
    return EVP_DigestUpdate((EVP_MD_CTX *)hash, bytes, count);
}

static inline int sealeddb_hash_value(void *hash, unsigned char *value) {
    return EVP_DigestFinal_ex((EVP_MD_CTX *)hash, value, 0);
}

static inline void sealeddb_hash_free(void *hash) { EVP_MD_CTX_free((EVP_MD_CTX *)hash); }

#endif
#endif
