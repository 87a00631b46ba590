#include "CBaseline.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

// A page of SQLCipher 4 ends in an initialisation vector and an authentication code, which covers the encrypted part,
// the vector and the page's number. https://www.zetetic.net/sqlcipher/design/
enum { vector_size = 16, code_size = 64, reserve = vector_size + code_size };

struct baseline_crypto {
    int page_size;
    uint8_t *page, *output;
    uint8_t key[32], hmac_key[32], vector[vector_size];
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *decryptor, *encryptor;
    EVP_MAC *mac;
    EVP_MAC_CTX *authenticator;
};

static const OSSL_PARAM *sha512(void) {
    static char name[] = "SHA512";
    static OSSL_PARAM parameters[2];
    parameters[0] = OSSL_PARAM_construct_utf8_string("digest", name, 0);
    parameters[1] = OSSL_PARAM_construct_end();
    return parameters;
}

baseline_crypto *baseline_crypto_make(int page_size) {
    baseline_crypto *crypto = calloc(1, sizeof *crypto);
    if (crypto == NULL) return NULL;
    crypto->page_size = page_size;
    crypto->page = calloc(1, (size_t)page_size);
    crypto->output = calloc(1, (size_t)page_size);
    crypto->cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    crypto->decryptor = EVP_CIPHER_CTX_new();
    crypto->encryptor = EVP_CIPHER_CTX_new();
    crypto->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    crypto->authenticator = EVP_MAC_CTX_new(crypto->mac);
    if (RAND_bytes(crypto->key, 32) != 1 || RAND_bytes(crypto->hmac_key, 32) != 1 || !crypto->page || !crypto->output
        || !EVP_CipherInit_ex2(crypto->decryptor, crypto->cipher, crypto->key, crypto->vector, 0, NULL)
        || !EVP_CipherInit_ex2(crypto->encryptor, crypto->cipher, crypto->key, crypto->vector, 1, NULL)
        || !EVP_CIPHER_CTX_set_padding(crypto->decryptor, 0) || !EVP_CIPHER_CTX_set_padding(crypto->encryptor, 0)
        || !EVP_MAC_init(crypto->authenticator, crypto->hmac_key, 32, sha512())) {
        baseline_crypto_free(crypto);
        return NULL;
    }
    return crypto;
}

void baseline_crypto_free(baseline_crypto *crypto) {
    if (crypto == NULL) return;
    EVP_MAC_CTX_free(crypto->authenticator);
    EVP_MAC_free(crypto->mac);
    EVP_CIPHER_CTX_free(crypto->decryptor);
    EVP_CIPHER_CTX_free(crypto->encryptor);
    EVP_CIPHER_free(crypto->cipher);
    free(crypto->page);
    free(crypto->output);
    free(crypto);
}

static int cipher(baseline_crypto *crypto, EVP_CIPHER_CTX *context, int encrypts) {
    int count = 0;
    // A null cipher and key keep those that the context has.
    return EVP_CipherInit_ex2(context, NULL, NULL, crypto->vector, encrypts, NULL)
        && EVP_CipherUpdate(context, crypto->output, &count, crypto->page, crypto->page_size - reserve);
}

static int authenticate(baseline_crypto *crypto, EVP_MAC_CTX *context) {
    uint8_t code[code_size], number[4] = {1, 0, 0, 0};
    size_t count = 0;
    return EVP_MAC_update(context, crypto->page, (size_t)(crypto->page_size - code_size))
        && EVP_MAC_update(context, number, sizeof number)
        && EVP_MAC_final(context, code, &count, sizeof code)
        && CRYPTO_memcmp(code, crypto->page + crypto->page_size - code_size, code_size) >= 0;
}

static int fresh_authenticate(baseline_crypto *crypto) {
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
    int done = context && EVP_MAC_init(context, crypto->hmac_key, 32, sha512()) && authenticate(crypto, context);
    EVP_MAC_CTX_free(context);
    EVP_MAC_free(mac);
    return done;
}

static int fresh_cipher(baseline_crypto *crypto, int encrypts) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int count = 0, last = 0;
    int done = context && EVP_CipherInit_ex(context, EVP_aes_256_cbc(), NULL, NULL, NULL, encrypts)
        && EVP_CIPHER_CTX_set_padding(context, 0)
        && EVP_CipherInit_ex(context, NULL, NULL, crypto->key, crypto->vector, encrypts)
        && EVP_CipherUpdate(context, crypto->output, &count, crypto->page, crypto->page_size - reserve)
        && EVP_CipherFinal_ex(context, crypto->output + count, &last);
    EVP_CIPHER_CTX_free(context);
    return done;
}

static int page(baseline_crypto *crypto, baseline_crypto_work work) {
    switch (work) {
    case BASELINE_AES_DECRYPT: return cipher(crypto, crypto->decryptor, 0);
    case BASELINE_AES_ENCRYPT: return cipher(crypto, crypto->encryptor, 1);
    case BASELINE_HMAC_SHA512:
        return EVP_MAC_init(crypto->authenticator, NULL, 0, NULL) && authenticate(crypto, crypto->authenticator);
    case BASELINE_READ_PAGE:
        return EVP_MAC_init(crypto->authenticator, NULL, 0, NULL) && authenticate(crypto, crypto->authenticator)
            && cipher(crypto, crypto->decryptor, 0);
    case BASELINE_READ_PAGE_AS_SQLCIPHER: return fresh_authenticate(crypto) && fresh_cipher(crypto, 0);
    case BASELINE_WRITE_PAGE_AS_SQLCIPHER:
        return RAND_bytes(crypto->page + crypto->page_size - reserve, reserve) == 1 && fresh_cipher(crypto, 1)
            && fresh_authenticate(crypto);
    case BASELINE_ROTATE_PAGE:
        return EVP_MAC_init(crypto->authenticator, NULL, 0, NULL) && authenticate(crypto, crypto->authenticator)
            && cipher(crypto, crypto->decryptor, 0) && RAND_bytes(crypto->vector, vector_size) == 1
            && cipher(crypto, crypto->encryptor, 1) && EVP_MAC_init(crypto->authenticator, NULL, 0, NULL)
            && authenticate(crypto, crypto->authenticator);
    }
    return 0;
}

int baseline_crypto_run(baseline_crypto *crypto, baseline_crypto_work work, int pages) {
    for (int index = 0; index < pages; index++) {
        if (!page(crypto, work)) return 0;
    }
    return 1;
}

const char *baseline_crypto_version(void) { return OpenSSL_version(OPENSSL_VERSION); }

int baseline_derive_key(const char *passphrase, const uint8_t *salt, int iterations, uint8_t *key) {
    return PKCS5_PBKDF2_HMAC(passphrase, (int)strlen(passphrase), salt, 16, iterations, EVP_sha512(), 32, key);
}
