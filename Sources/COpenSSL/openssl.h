// What the encrypted build takes from libcrypto, which libsqlcipher has in the process anyway.

#ifndef SEALEDDB_OPENSSL_H
#define SEALEDDB_OPENSSL_H

#include <openssl/evp.h>

// PBKDF2 with HMAC of the hash of this many bits (160, 256 or 512), straight from and to the caller's memory; OpenSSL
// wipes its own copies. 1, or 0 for a failure.
static inline int sealeddb_pbkdf2(
    int bits, const void *passphrase, int passphrase_count, const void *salt, int salt_count, int iterations,
    void *key, int key_count
) {
    const EVP_MD *hash = bits == 160 ? EVP_sha1() : bits == 256 ? EVP_sha256() : EVP_sha512();
    return PKCS5_PBKDF2_HMAC(passphrase, passphrase_count, salt, salt_count, iterations, hash, key_count, key);
}

#endif
