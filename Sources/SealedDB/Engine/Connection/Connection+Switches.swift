import Foundation
internal import SQLiteEngine

/// The switches of a connection. <https://www.sqlite.org/c3ref/c_dbconfig_defensive.html>
enum ConnectionSwitch: CaseIterable {
    case enforcesForeignKeys
    case trustsSchema
    case acceptsDoubleQuotedStrings
    case acceptsDoubleQuotedStringsInSchema
    case isDefensive

    fileprivate var number: Int32 {
        switch self {
        case .enforcesForeignKeys: SQLITE_DBCONFIG_ENABLE_FKEY
        case .trustsSchema: SQLITE_DBCONFIG_TRUSTED_SCHEMA
        case .acceptsDoubleQuotedStrings: SQLITE_DBCONFIG_DQS_DML
        case .acceptsDoubleQuotedStringsInSchema: SQLITE_DBCONFIG_DQS_DDL
        case .isDefensive: SQLITE_DBCONFIG_DEFENSIVE
        }
    }
}

extension Connection {
    /// Turns a switch on or off.
    /// - Throws: ``DatabaseError`` if SQLite did not do it.
    func set(_ connectionSwitch: ConnectionSwitch, _ isOn: Bool) throws(DatabaseError) {
        guard let handle else { throw .notOpen }
        var effective: Int32 = -1
        try check(sealeddb_switch(handle, connectionSwitch.number, isOn ? 1 : 0, &effective))
        guard effective == (isOn ? 1 : 0) else {
            throw DatabaseError(
                extendedCode: SQLITE_ERROR,
                reason: .unusableSettings,
                message:
                    "SQLite did not turn \(connectionSwitch) \(isOn ? "on" : "off"), so the database was not opened."
            )
        }
    }
}
