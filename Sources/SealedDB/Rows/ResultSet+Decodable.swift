extension ResultSet {
    /// The rows that are left as values of a Decodable type, by the names of the columns.
    ///
    /// - Columns are found by ``Database/columnNaming``. A column that the type does not know is passed over.
    /// - An optional property is `nil` if its column is NULL or missing; for any other property both are errors.
    /// - A property is read as ``ColumnReadable`` says. A type that codes itself as a single value, such as an enum with
    ///   a raw value, is read from that value; every other one (arrays, dictionaries, structs) from JSON text, as with
    ///   ``JSON``.
    /// - A type that codes itself as a single value is read from the first column.
    ///
    /// An error that an `init(from:)` of your own throws is the ``DatabaseError/underlyingError`` of the one thrown.
    public func rows<Value: Decodable>(_ type: Value.Type) -> Rows<Value> {
        let decoder = RowDecoder(statement: prepared, naming: parentDB?.columnNaming ?? .asIs)
        let owner = RowDecoder.Owner(decoder)
        return Rows(self) { () throws(DatabaseError) in try owner.decoder.nextRow(type) }
    }
}
