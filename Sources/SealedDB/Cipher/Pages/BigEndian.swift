/// Numbers as SQLite writes them into its files. <https://www.sqlite.org/fileformat.html>
enum BigEndian {
    /// - Parameter bytes: eight at most.
    static func number(_ bytes: some Sequence<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }

    static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}
