/// Lets SQLCipher have the last word on a file that was written without it: it opens the file, reads the schema, and looks
/// for rows at equal distances in the tables. It need not meet pages of indexes, overflow pages and free pages.
///
/// That each page is what the source has was compared before. This finds out that SQLCipher, too, accepts what was
/// written.
struct SampleCheck {
    /// Those of the source.
    let totals: PageTotals

    /// How many rows are looked for, if one table has them all.
    private static let mostRows = 64

    /// - Parameter connection: a new one, to the new file.
    /// - Returns: what is wrong, in words for people; `nil` if nothing is.
    /// - Throws: what SQLCipher finds wrong.
    func problem(_ connection: Connection) throws(DatabaseError) -> String? {
        guard try !StoreHeader.isPlaintext(connection.fileBytes(count: 100)) else { return "it is plaintext" }
        let found = try PageTotals(of: connection)
        guard found.count == totals.count, found.size == totals.size else {
            return "it has \(found.count) pages of \(found.size) bytes instead of \(totals.count) of \(totals.size)"
        }
        // Looking for a row does not need the schema's own collations.
        connection.acceptUnknownCollations()
        let tables = try TableLayout.all(of: connection)
        let chosen = SampleCheck.places(of: tables.count)
        for place in chosen {
            try tables[place].readSample(of: connection, count: max(2, SampleCheck.mostRows / chosen.count))
        }
        return nil
    }

    /// Places in a list of this many, at equal distances, with the first and the last one.
    static func places(of count: Int) -> [Int] {
        guard count > 0 else { return [] }
        let steps = min(count, mostRows) - 1
        return (0...steps).map { step in (count - 1) * step / max(1, steps) }
    }
}

extension TableLayout {
    /// Looks for rows at equal distances in the table, with the first and the last one; of a table WITHOUT ROWID, reads the
    /// first one.
    /// - Parameter count: how many, at least 2.
    fileprivate func readSample(of connection: Connection, count: Int) throws(DatabaseError) {
        guard let first = try edge("ASC", of: connection), let last = try edge("DESC", of: connection) else { return }
        // The row ids may be as far apart as two numbers can be.
        let distance = UInt64(bitPattern: last &- first) / UInt64(count - 1)
        for step in 1..<UInt64(count) {
            let number = first &+ Int64(bitPattern: distance * step)
            _ = try firstRow(from: number, of: connection)
        }
    }
}
