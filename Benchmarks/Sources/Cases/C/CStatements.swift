import CBaseline

extension CMakers {
    /// Binding and reading. C has no boxes, caches or names, so that its work is the same for all forms.
    static var statements: [String: Maker] {
        var result: [String: Maker] = [:]
        for kind in ValueKind.allCases {
            for form in BindCases.forms { result["bind.\(kind.rawValue).\(form.id)"] = { try insert(kind, $0) } }
            for form in ReadCases.forms {
                result["read.\(kind.rawValue).\(form.id)"] = { try read(kind, copies: form.lasts, $0) }
            }
        }
        // SQLite has no dates: seconds are what SealedDB and FMDB store.
        for form in BindCases.forms { result["bind.date.\(form.id)"] = { try insert(.real, $0) } }
        for form in ReadCases.forms { result["read.date.\(form.id)"] = { try read(.real, copies: false, $0) } }
        return result
    }

    private static func insert(_ kind: ValueKind, _ fixtures: Fixtures) throws -> Work {
        let db = try Baseline(fixtures.newPath())
        try db.execute(BindCases.createTable)
        return Work(units: BindCases.rows) {
            try db.execute("BEGIN")
            try db.insert(BindCases.insert, kind.cKinds, rows: BindCases.rows)
            try db.execute("ROLLBACK")
            return UInt64(BindCases.rows)
        }
    }

    private static func read(_ kind: ValueKind, copies: Bool, _ fixtures: Fixtures) throws -> Work {
        let db = try Baseline(try fixtures.readStore())
        let sql = "SELECT * FROM \(kind.table)"
        let kinds = kind.cKinds
        return Work(units: Fixtures.readRows) {
            var checksum: UInt64 = 0
            try db.checkCount(baseline_read(db.pointer, sql, kinds, 5, copies, &checksum))
            return checksum
        }
    }

    static var transactions: [String: Maker] {
        var result: [String: Maker] = [:]
        for setting in TransactionCases.settings {
            for batch in TransactionCases.batches {
                result[setting.id(batch: batch)] = { fixtures in
                    let db = try Baseline(fixtures.newPath(), setting.options)
                    try db.execute(TransactionCases.createTable)
                    let rows = TransactionCases.rows(batch: batch)
                    return Work(units: rows, isUniform: false) {
                        try db.insertBatches(of: batch, rows: rows)
                        return UInt64(rows)
                    }
                }
            }
        }
        return result
    }
}

extension Baseline {
    func insertBatches(of batch: Int, rows: Int) throws {
        try check(
            baseline_insert_batches(
                pointer,
                TransactionCases.insert,
                Int32(batch),
                Int32(rows),
                CValues.shared.pointer
            )
        )
    }
}
