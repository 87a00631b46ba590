/// Walks the B-trees of a damaged store, around what is missing.
final class SalvagedTrees {
    /// A row of a table.
    struct Row {
        let page: Int64
        /// `nil` if the row is from a tree of indexes, which holds the rows of a table WITHOUT ROWID.
        let rowID: Int64?
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
    /// The pages that the store has set aside for later use. They may hold rows that were deleted.
    private let free: Set<Int64>
    /// How many pages of trees the header of the database counts as free, or does not count at all. If there are any, it
    /// is the header of another state, and what it says of other pages means nothing either.
    private(set) var outdatedCount = 0

    /// Whether the header of the database is that of another state.
    var isOutdated: Bool { outdatedCount > 0 || pages.uncounted > 0 }

    init(_ pages: SalvagedPages) throws(DatabaseError) {
        self.pages = pages
        free = try SalvagedTrees.freePages(pages)
    }

    /// Calls `body` with each row below a root, in order. Pages that cannot be read are left out.
    /// - Parameter isTable: whether the tree is that of a table with row ids; `nil` if its pages are to tell.
    func forEachRow(
        below root: Int64,
        isTable: Bool?,
        _ body: (Row) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Losses {
        var losses = Losses()
        var isTable = isTable
        var stack = [root]
        while let number = stack.popLast() {
            guard number >= 1, number <= pages.count, !visited.contains(number),
                let contents = try pages.contents(ofPage: number),
                let page = TreePage(contents, number: number, usableSize: pages.usableSize),
                page.kind.isTable == isTable ?? page.kind.isTable
            else {
                losses.pages.append(number)
                continue
            }
            isTable = page.kind.isTable
            visit(number)
            if !page.isWhole { losses.pages.append(number) }
            stack += ((page.cells.compactMap(\.child)) + (page.lastChild.map { [$0] } ?? [])).reversed()
            let overflow = try forEachRow(of: page, number, &losses, body)
            for number in overflow { visit(number) }
        }
        return losses
    }

    private func visit(_ number: Int64) {
        visited.insert(number)
        if number > pages.declaredCount || free.contains(number) { outdatedCount += 1 }
    }

    /// Calls `body` with the rows of each page to which nothing leads any more.
    /// - Parameters:
    ///   - takesIndexes: whether also with those of trees of indexes.
    ///   - body: returns whether it has used the rows. If not, they come again in the next call.
    func forEachOrphan(
        takesIndexes: Bool,
        _ body: (Int64, [Row]) throws(DatabaseError) -> Bool
    ) throws(DatabaseError) -> Losses {
        var losses = Losses()
        let count = isOutdated ? pages.count : pages.declaredCount
        for number in stride(from: 1 as Int64, through: count, by: 1) where !isTaken(number) {
            // A page that holds something else seldom looks like one on which every row can be read.
            guard let contents = try pages.contents(ofPage: number),
                let page = TreePage(contents, number: number, usableSize: pages.usableSize),
                page.kind == .tableLeaf || takesIndexes && !page.kind.isTable, page.isWhole, !page.cells.isEmpty
            else { continue }
            var rows: [Row] = []
            let before = losses
            let overflow = try forEachRow(of: page, number, &losses) { rows.append($0) }
            if !rows.isEmpty, try body(number, rows) {
                visited.insert(number)
                visited.formUnion(overflow)
            } else {
                losses = before
            }
        }
        return losses
    }

    /// Whether no orphan may have the page.
    private func isTaken(_ number: Int64) -> Bool {
        visited.contains(number) || !isOutdated && free.contains(number)
    }

    /// - Returns: the other pages on which the rows stand.
    private func forEachRow(
        of page: TreePage,
        _ number: Int64,
        _ losses: inout Losses,
        _ body: (Row) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Set<Int64> {
        var overflow: Set<Int64> = []
        for cell in page.cells {
            guard let payload = cell.payload else { continue }
            guard let bytes = try whole(payload, &overflow), let record = SalvagedRecord(bytes) else {
                losses.rows += 1
                continue
            }
            try body(Row(page: number, rowID: page.kind.isTable ? cell.rowID : nil, record: record))
        }
        return overflow
    }

    /// The bytes of a record, from all of its pages; `nil` if one of them is missing.
    private func whole(
        _ payload: TreePage.Payload,
        _ overflow: inout Set<Int64>
    ) throws(DatabaseError) -> [UInt8]? {
        var bytes = payload.local
        var next = payload.overflow
        var links: Set<Int64> = []
        while bytes.count < payload.size {
            guard let number = next, !visited.contains(number), !overflow.contains(number), !links.contains(number),
                let contents = try pages.contents(ofPage: number)
            else { return nil }
            links.insert(number)
            next = BigEndian.number(contents[..<4])
            bytes += contents[4..<min(pages.usableSize, 4 + payload.size - bytes.count)]
        }
        overflow.formUnion(links)
        return bytes
    }

    /// <https://www.sqlite.org/fileformat.html#the_freelist>
    private static func freePages(_ pages: SalvagedPages) throws(DatabaseError) -> Set<Int64> {
        var result: Set<Int64> = []
        guard let header = pages.header else { return [] }
        var trunk = BigEndian.number(header[32..<36])
        while trunk > 0, result.insert(trunk).inserted, let contents = try pages.contents(ofPage: trunk) {
            let count = min(BigEndian.number(contents[4..<8]), Int64(pages.usableSize / 4 - 2))
            for index in 0..<Int(count) {
                let offset = 8 + 4 * index
                result.insert(BigEndian.number(contents[offset..<offset + 4]))
            }
            trunk = BigEndian.number(contents[..<4])
        }
        return result
    }
}
