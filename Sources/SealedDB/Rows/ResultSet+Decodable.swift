extension ResultSet {
    /// Returns the remaining rows as values of a Decodable type, read by the names of the columns.
    ///
    /// - Columns are found by ``Database/columnNaming``. Columns without a property are ignored.
    /// - An optional property is `nil` if its column is NULL or missing. For any other property, both are errors.
    /// - A property is read as ``ColumnReadable`` describes. A type that decodes itself from a single value, such as an
    ///   enum with a raw value, is read from that value. Every other type (arrays, dictionaries, structs) is read from
    ///   JSON text, as with ``JSON``.
    /// - If `Value` itself decodes from a single value, it is read from the first column.
    ///
    /// If your own `init(from:)` throws, the error thrown here has yours as its ``DatabaseError/underlyingError``.
    public func rows<Value: Decodable>(_ type: Value.Type) -> Rows<Value> {
        let decoder = RowDecoder(statement: prepared, naming: parentDB?.columnNaming ?? .asIs)
        let owner = RowDecoder.Owner(decoder)
        return Rows(self) { () throws(DatabaseError) in try owner.decoder.nextRow(type) }
    }
}
