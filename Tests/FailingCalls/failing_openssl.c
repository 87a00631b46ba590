#define _GNU_SOURCE
#include "failing_calls_private.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

// OpenSSL's functions, which the library and SQLCipher call. They are declared here, because the plain build has no OpenSSL:
// then nobody calls them.

// OpenSSL's own. The process ends if there is none, because only who has linked OpenSSL calls these.
#define NEXT(name) \
    static _Atomic(void *) found_##name; \
    if (!found_##name) found_##name = dlsym(RTLD_NEXT, #name); \
    __typeof__(&name) next = (__typeof__(&name))found_##name

// `result` is the type, `failure` what is returned in place of OpenSSL's own.
#define FUNCTION(result, failure, name, parameters, arguments) \
    result name parameters; \
    result name parameters { \
        NEXT(name); \
        return failing_calls_fails_openssl(#name) ? (failure) : next arguments; \
    }
#define STATUS(name, parameters, arguments) FUNCTION(int, 0, name, parameters, arguments)
#define OBJECT(name, parameters, arguments) FUNCTION(void *, NULL, name, parameters, arguments)

STATUS(RAND_bytes, (unsigned char *bytes, int count), (bytes, count))
STATUS(
    PKCS5_PBKDF2_HMAC,
    (const char *passphrase, int passphrase_count, const unsigned char *salt, int salt_count, int iterations,
     const void *hash, int key_count, unsigned char *key),
    (passphrase, passphrase_count, salt, salt_count, iterations, hash, key_count, key))

OBJECT(EVP_MD_CTX_new, (void), ())
STATUS(EVP_MD_CTX_copy_ex, (void *copy, const void *context), (copy, context))
STATUS(EVP_DigestInit_ex, (void *context, const void *hash, void *engine), (context, hash, engine))
STATUS(EVP_DigestUpdate, (void *context, const void *bytes, size_t count), (context, bytes, count))
STATUS(EVP_DigestFinal_ex, (void *context, unsigned char *value, unsigned *size), (context, value, size))
OBJECT(
    HMAC,
    (const void *hash, const void *key, int key_count, const unsigned char *bytes, size_t count, unsigned char *code,
     unsigned *size),
    (hash, key, key_count, bytes, count, code, size))

OBJECT(EVP_CIPHER_CTX_new, (void), ())
STATUS(EVP_CIPHER_CTX_copy, (void *copy, const void *context), (copy, context))
STATUS(EVP_CIPHER_CTX_set_padding, (void *context, int padding), (context, padding))
STATUS(EVP_CIPHER_CTX_ctrl, (void *context, int type, int number, void *value), (context, type, number, value))

#define CIPHER(direction) \
    STATUS( \
        EVP_##direction##Init_ex, \
        (void *context, const void *cipher, void *engine, const unsigned char *key, const unsigned char *iv), \
        (context, cipher, engine, key, iv)) \
    STATUS( \
        EVP_##direction##Update, \
        (void *context, unsigned char *output, int *size, const unsigned char *input, int count), \
        (context, output, size, input, count)) \
    STATUS(EVP_##direction##Final_ex, (void *context, unsigned char *output, int *size), (context, output, size))
CIPHER(Encrypt)
CIPHER(Decrypt)

// SQLCipher's, which says by a number whether it encrypts.
STATUS(
    EVP_CipherInit_ex,
    (void *context, const void *cipher, void *engine, const unsigned char *key, const unsigned char *iv, int encrypts),
    (context, cipher, engine, key, iv, encrypts))
STATUS(
    EVP_CipherUpdate, (void *context, unsigned char *output, int *size, const unsigned char *input, int count),
    (context, output, size, input, count))
STATUS(EVP_CipherFinal_ex, (void *context, unsigned char *output, int *size), (context, output, size))

OBJECT(EVP_MAC_fetch, (void *library, const char *name, const char *properties), (library, name, properties))
OBJECT(EVP_MAC_CTX_new, (void *algorithm), (algorithm))
STATUS(
    EVP_MAC_init, (void *context, const unsigned char *key, size_t key_count, const void *parameters),
    (context, key, key_count, parameters))
STATUS(EVP_MAC_update, (void *context, const unsigned char *bytes, size_t count), (context, bytes, count))
STATUS(
    EVP_MAC_final, (void *context, unsigned char *code, size_t *size, size_t capacity), (context, code, size, capacity))

OBJECT(EVP_KDF_fetch, (void *library, const char *name, const char *properties), (library, name, properties))
OBJECT(EVP_KDF_CTX_new, (void *algorithm), (algorithm))
STATUS(
    EVP_KDF_derive, (void *context, unsigned char *key, size_t count, const void *parameters),
    (context, key, count, parameters))
