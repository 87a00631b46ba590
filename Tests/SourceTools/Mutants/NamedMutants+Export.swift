extension NamedMutant {
    /// What PostgreSQL commits is what was sent.
    static let exports: [NamedMutant] = [
        .init(
            "rows that arrive otherwise are committed",
            "sealdb/Export/Exporter.swift",
            .expression,
            "there == sent",
            "there.count == there.count"
        ),
        .init(
            "rows that are read back without their end are all rows",
            "sealdb/Export/Exporter.swift",
            .expression,
            "rows.isComplete",
            "!rows.isComplete || true"
        ),
        .init(
            "a text with a NUL is one that PostgreSQL holds",
            "sealdb/Export/ColumnContents.swift",
            .expression,
            "bytes.contains(0)",
            "bytes.isEmpty && !bytes.isEmpty"
        ),
    ]
}
