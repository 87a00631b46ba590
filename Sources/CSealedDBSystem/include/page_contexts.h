// OpenSSL contexts that are kept from page to page. SQLCipher's own functions look the algorithms up, make a context and
// set the key up for each page.

#ifndef SEALEDDB_PAGE_CONTEXTS_H
#define SEALEDDB_PAGE_CONTEXTS_H

#include <stddef.h>

// OpenSSL's functions, found at run time in the libcrypto that SQLCipher uses. All of them exist since OpenSSL 1.1.0.
struct sealeddb_openssl {
    int (*init_crypto)(unsigned long long options, const void *settings);
    int (*random)(unsigned char *bytes, int count);
    void (*cleanse)(void *bytes, size_t count);
    void (*clear_errors)(void);
    const void *(*digests[3])(void);
    void *(*hmac_new)(void);
    int (*hmac_init)(void *context, const void *key, int key_size, const void *digest, void *engine);
    int (*hmac_update)(void *context, const unsigned char *bytes, size_t count);
    int (*hmac_final)(void *context, unsigned char *code, unsigned int *size);
    void (*hmac_free)(void *context);
    const void *(*aes_256_cbc)(void);
    void *(*cipher_new)(void);
    int (*cipher_init)(
        void *context, const void *cipher, void *engine, const unsigned char *key, const unsigned char *iv, int mode);
    int (*cipher_set_padding)(void *context, int padding);
    int (*cipher_update)(void *context, unsigned char *out, int *out_size, const unsigned char *in, int in_size);
    void (*cipher_free)(void *context);
};

// Fills in the functions. `library` is a handle of dlopen. Returns 1, or 0 if one is missing.
int sealeddb_find_openssl(void *library, struct sealeddb_openssl *functions);

// The contexts of one codec. Like the codec itself, they are for one thread at a time: SQLite holds the mutex of the
// b-tree while it calls the codec, and SQLCipher's own buffer for pages relies on that too.
struct sealeddb_page_contexts;

// `functions` must stay where it is. Returns NULL if this fails. Contexts are made when a page needs them.
struct sealeddb_page_contexts *sealeddb_make_page_contexts(const struct sealeddb_openssl *functions);

// Wipes the keys and frees everything.
void sealeddb_free_page_contexts(struct sealeddb_page_contexts *contexts);

// The HMAC of `in` and then `in2`. `algorithm` is 0 for SHA-1, 1 for SHA-256 and 2 for SHA-512. Returns 1; or 0 if
// OpenSSL failed or this cannot do it, and then `out` is as it was.
int sealeddb_page_code(
    struct sealeddb_page_contexts *contexts, int algorithm, const unsigned char *key, int key_size,
    const unsigned char *in, int in_size, const unsigned char *in2, int in2_size, unsigned char *out);

// AES-256-CBC without padding; `mode` is 1 to encrypt and 0 to decrypt. Returns 1; or 0 if OpenSSL failed or this cannot
// do it, and then `in`, `key` and `iv` are as they were.
int sealeddb_page_cipher(
    struct sealeddb_page_contexts *contexts, int mode, const unsigned char *key, int key_size, const unsigned char *iv,
    const unsigned char *in, int in_size, unsigned char *out);

// Functions of SQLCipher's provider. They return 0 if they succeed.
typedef int (*sealeddb_hmac_function)(
    void *context, int algorithm, const unsigned char *key, int key_size, const unsigned char *in, int in_size,
    const unsigned char *in2, int in2_size, unsigned char *out);
typedef int (*sealeddb_cipher_function)(
    void *context, int mode, const unsigned char *key, int key_size, const unsigned char *iv, const unsigned char *in,
    int in_size, unsigned char *out);

// Whether contexts return what SQLCipher's functions return, and what is known in advance: with several keys, every
// algorithm and pages of every size. If thorough, large pages are tried with every algorithm too. Returns 1 or 0.
int sealeddb_page_contexts_agree(
    const struct sealeddb_openssl *functions, sealeddb_hmac_function hmac, sealeddb_cipher_function cipher,
    int is_thorough);

#endif
