#include "page_contexts.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { whole_key = 32, block = 16, largest_code = 64 };

// The key of a context, to notice another one. It is masked, so that the key is not in memory once more.
struct known_key {
    unsigned char mask[whole_key];
    unsigned char masked[whole_key];
};

struct kept_context {
    // NULL if there is none.
    void *openssl;
    struct known_key key;
};

struct sealeddb_page_contexts {
    const struct sealeddb_openssl *functions;
    struct kept_context hmac;
    // The algorithm of `hmac`.
    int algorithm;
    // By mode.
    struct kept_context ciphers[2];
};

int sealeddb_find_openssl(void *library, struct sealeddb_openssl *functions) {
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"OPENSSL_init_crypto", &functions->init_crypto},
        {"RAND_bytes", &functions->random},
        {"OPENSSL_cleanse", &functions->cleanse},
        {"ERR_clear_error", &functions->clear_errors},
        {"EVP_sha1", &functions->digests[0]},
        {"EVP_sha256", &functions->digests[1]},
        {"EVP_sha512", &functions->digests[2]},
        {"HMAC_CTX_new", &functions->hmac_new},
        {"HMAC_Init_ex", &functions->hmac_init},
        {"HMAC_Update", &functions->hmac_update},
        {"HMAC_Final", &functions->hmac_final},
        {"HMAC_CTX_free", &functions->hmac_free},
        {"EVP_aes_256_cbc", &functions->aes_256_cbc},
        {"EVP_CIPHER_CTX_new", &functions->cipher_new},
        {"EVP_CipherInit_ex", &functions->cipher_init},
        {"EVP_CIPHER_CTX_set_padding", &functions->cipher_set_padding},
        {"EVP_CipherUpdate", &functions->cipher_update},
        {"EVP_CIPHER_CTX_free", &functions->cipher_free},
    };
    _Static_assert(sizeof symbols / sizeof *symbols == sizeof *functions / sizeof(void *), "one symbol each");
    for (size_t index = 0; index < sizeof symbols / sizeof *symbols; index++) {
        // This looks in the library's dependencies too, and nowhere else.
        void *symbol = dlsym(library, symbols[index].name);
        if (symbol == NULL) return 0;
        memcpy(symbols[index].place, &symbol, sizeof symbol);
    }
    return 1;
}

// 0 after OpenSSL has torn itself down, which happens only while the process exits. Contexts must not be touched then.
static int is_alive(const struct sealeddb_openssl *functions) { return functions->init_crypto(0, NULL) == 1; }

static int is_key_of(const struct kept_context *context, const unsigned char *key) {
    unsigned char difference = 0;
    for (int index = 0; index < whole_key; index++)
        difference |= key[index] ^ context->key.mask[index] ^ context->key.masked[index];
    return context->openssl != NULL && difference == 0;
}

static int remember(
    const struct sealeddb_openssl *functions, struct kept_context *context, const unsigned char *key
) {
    if (functions->random(context->key.mask, whole_key) != 1) return 0;
    for (int index = 0; index < whole_key; index++)
        context->key.masked[index] = key[index] ^ context->key.mask[index];
    return 1;
}

// OpenSSL wipes the key schedule and the state of the hash when it frees them.
static void forget(
    const struct sealeddb_openssl *functions, struct kept_context *context, void (*free_context)(void *)
) {
    if (context->openssl != NULL && is_alive(functions)) free_context(context->openssl);
    context->openssl = NULL;
    functions->cleanse(&context->key, sizeof context->key);
}

struct sealeddb_page_contexts *sealeddb_make_page_contexts(const struct sealeddb_openssl *functions) {
    struct sealeddb_page_contexts *contexts = calloc(1, sizeof *contexts);
    if (contexts != NULL) contexts->functions = functions;
    return contexts;
}

void sealeddb_free_page_contexts(struct sealeddb_page_contexts *contexts) {
    if (contexts == NULL) return;
    const struct sealeddb_openssl *functions = contexts->functions;
    forget(functions, &contexts->hmac, functions->hmac_free);
    for (int mode = 0; mode < 2; mode++) forget(functions, &contexts->ciphers[mode], functions->cipher_free);
    free(contexts);
}

static int begin_code(struct sealeddb_page_contexts *contexts, int algorithm, const unsigned char *key) {
    const struct sealeddb_openssl *functions = contexts->functions;
    struct kept_context *kept = &contexts->hmac;
    // Without a key, OpenSSL begins again with the last one.
    if (contexts->algorithm == algorithm && is_key_of(kept, key))
        return functions->hmac_init(kept->openssl, NULL, 0, NULL, NULL) == 1;
    forget(functions, kept, functions->hmac_free);
    contexts->algorithm = algorithm;
    kept->openssl = functions->hmac_new();
    return kept->openssl != NULL && remember(functions, kept, key)
        && functions->hmac_init(kept->openssl, key, whole_key, functions->digests[algorithm](), NULL) == 1;
}

int sealeddb_page_code(
    struct sealeddb_page_contexts *contexts, int algorithm, const unsigned char *key, int key_size,
    const unsigned char *in, int in_size, const unsigned char *in2, int in2_size, unsigned char *out
) {
    static const unsigned int sizes[] = {20, 32, 64};
    if (algorithm < 0 || algorithm > 2 || key_size != whole_key || in_size <= 0 || in2_size <= 0) return 0;
    const struct sealeddb_openssl *functions = contexts->functions;
    if (!is_alive(functions)) return 0;
    struct kept_context *kept = &contexts->hmac;
    unsigned char code[largest_code];
    unsigned int size = 0;
    if (begin_code(contexts, algorithm, key) && functions->hmac_update(kept->openssl, in, (size_t)in_size) == 1
        && functions->hmac_update(kept->openssl, in2, (size_t)in2_size) == 1
        && functions->hmac_final(kept->openssl, code, &size) == 1 && size == sizes[algorithm]) {
        memcpy(out, code, size);
        return 1;
    }
    forget(functions, kept, functions->hmac_free);
    // SQLCipher takes errors off OpenSSL's list too. One that stays there could be taken for one of TLS.
    functions->clear_errors();
    return 0;
}

static int begin_cipher(
    struct sealeddb_page_contexts *contexts, int mode, const unsigned char *key, const unsigned char *iv
) {
    const struct sealeddb_openssl *functions = contexts->functions;
    struct kept_context *kept = &contexts->ciphers[mode];
    if (is_key_of(kept, key)) return functions->cipher_init(kept->openssl, NULL, NULL, NULL, iv, mode) == 1;
    forget(functions, kept, functions->cipher_free);
    kept->openssl = functions->cipher_new();
    return kept->openssl != NULL && remember(functions, kept, key)
        && functions->cipher_init(kept->openssl, functions->aes_256_cbc(), NULL, key, iv, mode) == 1
        && functions->cipher_set_padding(kept->openssl, 0) == 1;
}

int sealeddb_page_cipher(
    struct sealeddb_page_contexts *contexts, int mode, const unsigned char *key, int key_size, const unsigned char *iv,
    const unsigned char *in, int in_size, unsigned char *out
) {
    if ((mode != 0 && mode != 1) || key_size != whole_key || in_size <= 0 || in_size % block != 0) return 0;
    // If this failed halfway over the input itself, SQLCipher's function could not be called afterwards.
    uintptr_t input = (uintptr_t)in, output = (uintptr_t)out;
    if (input < output + (uintptr_t)in_size && output < input + (uintptr_t)in_size) return 0;
    const struct sealeddb_openssl *functions = contexts->functions;
    if (!is_alive(functions)) return 0;
    struct kept_context *kept = &contexts->ciphers[mode];
    int size = 0;
    // Without padding, the last block comes out at once, so there is nothing to finish.
    if (begin_cipher(contexts, mode, key, iv) && functions->cipher_update(kept->openssl, out, &size, in, in_size) == 1
        && size == in_size) return 1;
    forget(functions, kept, functions->cipher_free);
    functions->clear_errors();
    return 0;
}
