/// Walks the B-trees of a damaged store, around what is missing.
final class SalvagedTrees {
    /// A row of a table, or of a tree that holds the rows of a table WITHOUT ROWID.
    struct Row {
        let page: Int64
        let rowID: Int64
        let record: SalvagedRecord
    }

    /// What was missing below one root.
    struct Losses {
        /// Pages that could not be read.
        var pages: [Int64] = []
        /// Rows of which a part could not be read.
        var rows = 0

        var isNone: Bool { pages.isEmpty && rows == 0 }
    }

    private let pages: SalvagedPages
    /// Pages that belong to something that was walked.
    private var visited: Set<Int64> = []

    init(_ pages: SalvagedPages) {
        self.pages = pages
        visited = freePages()
    }

    /// Calls `body` with each row below a root, in order. Pages that cannot be read are left out.
    func forEachRow(
        below root: Int64,
        isTable: Bool,
        _ body: (Row) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Losses {
        var losses = Losses()
        var stack = [root]
        while let number = stack.popLast() {
            guard number >= 1, number <= pages.count, visited.insert(number).inserted else {
                losses.pages.append(number)
                continue
            }
            guard let contents = pages.contents(ofPage: number),
                let page = TreePage(contents, number: number, usableSize: pages.usableSize),
                page.kind.isTable == isTable
            else {
                losses.pages.append(number)
                continue
            }
            if !page.isWhole { losses.pages.append(number) }
            stack += ((page.cells.compactMap(\.child)) + (page.lastChild.map { [$0] } ?? [])).reversed()
            try forEachRow(of: page, number, &losses, body)
        }
        return losses
    }

    /// Calls `body` with the rows of each leaf of a table to which nothing leads any more.
    /// - Parameter body: returns whether it has used the rows. If not, they come again in the next call.
    func forEachOrphan(_ body: (Int64, [Row]) throws(DatabaseError) -> Bool) throws(DatabaseError) -> Losses {
        var losses = Losses()
        for number in stride(from: 1 as Int64, through: pages.count, by: 1) where !visited.contains(number) {
            // A page that holds something else seldom looks like a leaf on which every row can be read.
            guard let contents = pages.contents(ofPage: number),
                let page = TreePage(contents, number: number, usableSize: pages.usableSize),
                page.kind == .tableLeaf, page.isWhole, !page.cells.isEmpty
            else { continue }
            var rows: [Row] = []
            let before = (losses, visited)
            try forEachRow(of: page, number, &losses) { rows.append($0) }
            if !rows.isEmpty, try body(number, rows) {
                visited.insert(number)
            } else {
                (losses, visited) = before
            }
        }
        return losses
    }

    private func forEachRow(
        of page: TreePage,
        _ number: Int64,
        _ losses: inout Losses,
        _ body: (Row) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        for cell in page.cells {
            guard let payload = cell.payload else { continue }
            guard let bytes = whole(payload), let record = SalvagedRecord(bytes) else {
                losses.rows += 1
                continue
            }
            try body(Row(page: number, rowID: cell.rowID, record: record))
        }
    }

    /// The bytes of a record, from all of its pages; `nil` if one of them is missing.
    private func whole(_ payload: TreePage.Payload) -> [UInt8]? {
        var bytes = payload.local
        var next = payload.overflow
        var links: Set<Int64> = []
        while bytes.count < payload.size {
            guard let number = next, !visited.contains(number), !links.contains(number),
                let contents = pages.contents(ofPage: number)
            else { return nil }
            links.insert(number)
            next = LogOverlay.number(contents[..<4])
            bytes += contents[4..<min(pages.usableSize, 4 + payload.size - bytes.count)]
        }
        visited.formUnion(links)
        return bytes
    }

    /// The pages that the store has set aside for later use. They may hold rows that were deleted.
    /// <https://www.sqlite.org/fileformat.html#the_freelist>
    private func freePages() -> Set<Int64> {
        var result: Set<Int64> = []
        guard let header = pages.header else { return [] }
        var trunk = LogOverlay.number(header[32..<36])
        while trunk > 0, result.insert(trunk).inserted, let contents = pages.contents(ofPage: trunk) {
            let count = min(LogOverlay.number(contents[4..<8]), Int64(pages.usableSize / 4 - 2))
            for index in 0..<Int(count) {
                let offset = 8 + 4 * index
                result.insert(LogOverlay.number(contents[offset..<offset + 4]))
            }
            trunk = LogOverlay.number(contents[..<4])
        }
        return result
    }
}
