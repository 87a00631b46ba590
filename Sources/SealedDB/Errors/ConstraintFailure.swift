/// Which constraint a statement would have violated: see ``DatabaseError/constraint``.
public struct ConstraintFailure: Sendable, Hashable {
    /// The table; `nil` if SQLite does not tell it.
    public let table: String?
    /// The columns, of NOT NULL, UNIQUE and PRIMARY KEY; empty if SQLite does not tell them.
    public let columns: [String]
    /// The name of a CHECK constraint, or its expression if it has no name; the name of a unique index on expressions.
    public let name: String?
}

extension DatabaseError {
    /// The constraint that was violated, for the reasons ``Reason/notNullConstraint``, ``Reason/uniqueConstraint``,
    /// ``Reason/primaryKeyConstraint`` and ``Reason/checkConstraint``; otherwise `nil`.
    ///
    /// ```swift
    /// } catch let error as DatabaseError where error.constraint?.columns == ["email"] {
    ///     throw SignUpError.emailIsTaken
    /// }
    /// ```
    /// It comes from SQLite's message, which does not quote names. If a name holds a dot, or a comma followed by a space,
    /// there is neither a table nor a column. https://www.sqlite.org/rescode.html#constraint
    public var constraint: ConstraintFailure? {
        switch reason {
        case .checkConstraint:
            violated("CHECK").map { ConstraintFailure(table: nil, columns: [], name: String($0)) }
        case .notNullConstraint: violated("NOT NULL").map(ConstraintFailure.init(columns:))
        case .uniqueConstraint, .primaryKeyConstraint: violated("UNIQUE").map(ConstraintFailure.init(columns:))
        default: nil
        }
    }

    /// What follows in SQLite's message, in front of which a context may stand.
    private func violated(_ kind: String) -> Substring? {
        message.ranges(of: "\(kind) constraint failed: ").last.map { message[$0.upperBound...] }
    }
}

extension ConstraintFailure {
    /// - Parameter text: `index 'name'`, or each column with its table: `t.a, t.b`.
    fileprivate init(columns text: Substring) {
        let (prefix, suffix) = ("index '", "'")
        if text.hasPrefix(prefix), text.hasSuffix(suffix), text.count > prefix.count {
            self.init(table: nil, columns: [], name: String(text.dropFirst(prefix.count).dropLast()))
            return
        }
        let parts = text.split(separator: ", ", omittingEmptySubsequences: false)
            .map { $0.split(separator: ".", omittingEmptySubsequences: false) }
        guard let table = parts.first?.first, parts.allSatisfy({ $0.count == 2 && $0[0] == table }) else {
            self.init(table: nil, columns: [], name: nil)
            return
        }
        self.init(table: String(table), columns: parts.map { String($0[1]) }, name: nil)
    }
}
