// What the encrypted build takes from libcrypto, which libsqlcipher has in the process anyway.

#ifndef SEALEDDB_OPENSSL_H
#define SEALEDDB_OPENSSL_H

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

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

// HMAC with the hash of this many bits. 1, or 0 for a failure.
static inline int sealeddb_hmac(
    int bits, const void *key, int key_count, const void *bytes, size_t count, unsigned char *code
) {
    const EVP_MD *hash = bits == 160 ? EVP_sha1() : bits == 256 ? EVP_sha256() : EVP_sha512();
    unsigned int length = 0;
    return HMAC(hash, key, key_count, (const unsigned char *)bytes, count, code, &length) != 0;
}

// AES-256-CBC over whole blocks, without padding. 1, or 0 for a failure.
static inline int sealeddb_decrypt(
    const void *key, const void *iv, const void *ciphertext, int count, unsigned char *plaintext
) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int length = 0;
    int done = context != 0
        && EVP_DecryptInit_ex(context, EVP_aes_256_cbc(), 0, (const unsigned char *)key, (const unsigned char *)iv) == 1
        && EVP_CIPHER_CTX_set_padding(context, 0) == 1
        && EVP_DecryptUpdate(context, plaintext, &length, (const unsigned char *)ciphertext, count) == 1
        && length == count;
    EVP_CIPHER_CTX_free(context);
    return done;
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
