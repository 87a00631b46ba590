/// What the rewritten sources ask, put into the C target that all of them may use.
enum Switch {
    static let header = """

        // Whether this mutant is on.
        _Bool sealeddb_mutated(int mutant);

        """

    /// Notes in a file, one byte for each mutant, which of them were asked for: a process that is killed has noted all
    /// the same, and those that it started note in the same file.
    static let implementation = """

        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/stat.h>
        #include <unistd.h>

        static int sealeddb_chosen_mutant = -1;
        static unsigned char *sealeddb_asked_mutants = 0;
        static long sealeddb_mutant_count = 0;

        __attribute__((constructor)) static void sealeddb_choose_mutant(void) {
            const char *chosen = getenv("SEALEDDB_MUTANT");
            if (chosen) sealeddb_chosen_mutant = atoi(chosen);
            const char *path = getenv("SEALEDDB_MUTANTS_ASKED");
            if (!path) return;
            int file = open(path, O_RDWR | O_CLOEXEC);
            struct stat status;
            if (file >= 0 && fstat(file, &status) == 0) {
                void *bytes = mmap(0, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                if (bytes != MAP_FAILED) {
                    sealeddb_asked_mutants = bytes;
                    sealeddb_mutant_count = status.st_size;
                }
            }
            if (file >= 0) close(file);
        }

        _Bool sealeddb_mutated(int mutant) {
            if (mutant < sealeddb_mutant_count) sealeddb_asked_mutants[mutant] = 1;
            return mutant == sealeddb_chosen_mutant;
        }

        """
}
