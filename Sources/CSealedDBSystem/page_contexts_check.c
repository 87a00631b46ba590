#include <stdlib.h>
#include <string.h>

#include "page_contexts.h"

enum { key_size = 32, iv_size = 16, code_size = 64, number_size = 4, smallest_page = 512, largest_page = 65536 };

struct check {
    struct sealeddb_page_contexts *contexts;
    const struct sealeddb_openssl *functions;
    sealeddb_hmac_function hmac;
    sealeddb_cipher_function cipher;
    unsigned char keys[2][key_size];
    unsigned char *page, *ours, *theirs;
};

// The key, the plaintext and the ciphertext are those of NIST SP 800-38A, F.2.5. The codes were computed without OpenSSL.
static int knows_answers(const struct check *check) {
    static const unsigned char key[key_size] = {
        0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d, 0x77, 0x81,
        0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4,
    };
    static const unsigned char iv[iv_size] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const unsigned char plaintext[16] = {
        0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a,
    };
    static const unsigned char ciphertext[16] = {
        0xf5, 0x8c, 0x4c, 0x04, 0xd6, 0xe5, 0xf1, 0xba, 0x77, 0x9e, 0xab, 0xfb, 0x5f, 0x7b, 0xfb, 0xd6,
    };
    static const unsigned char number[number_size] = {1, 0, 0, 0};
    static const unsigned char codes[3][code_size] = {
        {
            0x40, 0x12, 0x85, 0x2f, 0x05, 0x08, 0x20, 0xff, 0x88, 0x5a, 0x84, 0x62, 0x8e, 0xcd, 0x65, 0x17,
            0x5b, 0x10, 0x94, 0x71,
        },
        {
            0x2a, 0xf7, 0x8f, 0xb7, 0x3b, 0x52, 0x69, 0xd6, 0xa3, 0x70, 0x2a, 0x59, 0x64, 0x81, 0x1e, 0xc3,
            0x6f, 0x50, 0x30, 0x09, 0x72, 0xa7, 0xba, 0x70, 0x3a, 0x0d, 0xab, 0x89, 0xfe, 0x98, 0x5c, 0x34,
        },
        {
            0xdc, 0x3b, 0xa0, 0x33, 0xfa, 0x95, 0xba, 0x86, 0xa2, 0xde, 0x2b, 0x2f, 0x4c, 0xfe, 0xe4, 0x88,
            0x9a, 0x11, 0x43, 0x5e, 0x28, 0xe3, 0x7d, 0x11, 0x26, 0xa5, 0x72, 0x45, 0x3b, 0xb4, 0x73, 0x49,
            0x6a, 0xa3, 0x41, 0x1c, 0x0a, 0xd2, 0xee, 0x11, 0x33, 0x7e, 0xb7, 0x23, 0xe8, 0x33, 0xb9, 0xd8,
            0x82, 0x7f, 0xc4, 0xf7, 0xa3, 0x5c, 0xf3, 0x23, 0x08, 0x13, 0x86, 0x88, 0xc9, 0x44, 0xca, 0xfd,
        },
    };
    // The second time, the context is one that was kept.
    for (int round = 0; round < 2; round++) {
        unsigned char out[16];
        if (!sealeddb_page_cipher(check->contexts, 1, key, key_size, iv, plaintext, sizeof plaintext, out)
            || memcmp(out, ciphertext, sizeof out) != 0) return 0;
        if (!sealeddb_page_cipher(check->contexts, 0, key, key_size, iv, ciphertext, sizeof ciphertext, out)
            || memcmp(out, plaintext, sizeof out) != 0) return 0;
    }
    for (int turn = 0; turn < 6; turn++) {
        unsigned char code[code_size] = {0};
        int algorithm = turn / 2;
        if (!sealeddb_page_code(
                check->contexts, algorithm, key, key_size, plaintext, sizeof plaintext, number, number_size, code)
            || memcmp(code, codes[algorithm], code_size) != 0) return 0;
    }
    return 1;
}

static int agrees_on_code(const struct check *check, int algorithm, const unsigned char *key, int size) {
    unsigned char ours[code_size] = {0}, theirs[code_size] = {0};
    // The bytes behind the page are random too.
    const unsigned char *number = check->page + size;
    return sealeddb_page_code(
               check->contexts, algorithm, key, key_size, check->page, size, number, number_size, ours)
        && check->hmac(NULL, algorithm, key, key_size, check->page, size, number, number_size, theirs) == 0
        && memcmp(ours, theirs, code_size) == 0;
}

static int agrees_on_cipher(const struct check *check, int mode, const unsigned char *key, int size) {
    const unsigned char *iv = check->page + size;
    return sealeddb_page_cipher(check->contexts, mode, key, key_size, iv, check->page, size, check->ours)
        && check->cipher(NULL, mode, key, key_size, iv, check->page, size, check->theirs) == 0
        && memcmp(check->ours, check->theirs, (size_t)size) == 0;
}

static int agrees(const struct check *check, int is_thorough) {
    if (!knows_answers(check) || check->functions->random(check->page, largest_page + iv_size) != 1) return 0;
    int turn = 0;
    for (int size = smallest_page; size <= largest_page; size *= 2) {
        for (int algorithm = 0; algorithm < 3; algorithm++, turn++) {
            // Each algorithm meets a context of its own, one of another algorithm, and one of another key.
            const unsigned char *key = check->keys[turn / 2 % 2];
            // The encrypted part of a page is shorter than the page.
            int part = size - 16 * (algorithm + 2);
            if ((size <= 4096 || is_thorough) && !agrees_on_code(check, algorithm, key, part)) return 0;
            if ((is_thorough || algorithm == turn / 3 % 3) && !agrees_on_code(check, algorithm, key, size)) return 0;
            if (algorithm == 0 && !agrees_on_cipher(check, turn % 2, key, size)) return 0;
            if (size > 4096 && !is_thorough) continue;
            if (!agrees_on_cipher(check, 0, key, part) || !agrees_on_cipher(check, 1, key, part)) return 0;
        }
    }
    return 1;
}

int sealeddb_page_contexts_agree(
    const struct sealeddb_openssl *functions, sealeddb_hmac_function hmac, sealeddb_cipher_function cipher,
    int is_thorough
) {
    struct check check = {
        .contexts = sealeddb_make_page_contexts(functions),
        .functions = functions,
        .hmac = hmac,
        .cipher = cipher,
        .page = malloc(largest_page + iv_size),
        .ours = malloc(largest_page),
        .theirs = malloc(largest_page),
    };
    // The keys are used for nothing else, so they are not wiped.
    int result = check.contexts != NULL && check.page != NULL && check.ours != NULL && check.theirs != NULL
        && functions->random(check.keys[0], key_size) == 1 && functions->random(check.keys[1], key_size) == 1
        && agrees(&check, is_thorough);
    sealeddb_free_page_contexts(check.contexts);
    free(check.page);
    free(check.ours);
    free(check.theirs);
    return result;
}
