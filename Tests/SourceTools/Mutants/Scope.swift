import Foundation

/// Which files are mutated.
enum Scope {
    /// What has mutants, named after the folders of `Sources`.
    static let folders = [
        "SealedDB/Errors", "SealedDB/System", "SealedDB/Engine", "SealedDB/Values", "SealedDB/Keys", "SealedDB/Pages",
        "SealedDB/Stores",
        "SealedDB/Cipher", "SealedDB/Database", "SealedDB/FullText", "SealedDB/Rows", "SealedDB/Concurrency",
        "SealedDB/Migration", "SealedDB/Replication", "sealdb/Batch", "sealdb/Commands", "sealdb/Keyring",
        "sealdb/Support",
    ]

    /// Those that carry the promises: what a sample is drawn from.
    static let promising = [
        "SealedDB/System/", "SealedDB/Engine/", "SealedDB/Keys/", "SealedDB/Pages/", "SealedDB/Stores/",
        "SealedDB/Cipher/", "SealedDB/Database/", "SealedDB/Concurrency/", "sealdb/Batch/", "sealdb/Commands/",
        "sealdb/Keyring/",
    ]
}

/// Numbers that a seed repeats: the generator SplitMix64.
struct Seeded: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}

/// Prints a line at once, whatever it goes to.
func say(_ text: String) {
    print(text)
    // Who cannot be told is not told.
    fflush(nil)
}
