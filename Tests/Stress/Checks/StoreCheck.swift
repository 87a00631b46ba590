import Foundation
import RawStore

/// Looks at a store that nobody uses, through SQLite's C interface and the stock shell.
struct StoreCheck {
    let place: Place
    /// By a kill, a power cut or a fault. Then an unfinished copy may lie beside the store.
    let isInterrupted: Bool

    /// - Parameter model: in which doubts are settled by what is found.
    /// - Throws: ``Violation``.
    func run(_ model: inout StoreModel) throws {
        try DirectoryCheck(place: place).run(mayHaveLeftovers: isInterrupted, leftovers: &model.leftovers)
        let key = try onlyKey(of: model.keys)
        let connection = try open(key)
        _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        try expectNothing(connection, "PRAGMA cipher_integrity_check", except: [])
        try expectNothing(connection, "PRAGMA integrity_check", except: [["ok"]])
        try expectNothing(connection, "PRAGMA foreign_key_check", except: [])
        try connection.run("INSERT INTO words (words) VALUES ('integrity-check')")
        let side = try RawConnection(place.side, key: place.keyLiteral(Place.sideKey))
        try expectNothing(side, "PRAGMA integrity_check", except: [["ok"]])
        for client in Set(model.clients.keys).union(model.alternatives.keys).sorted() {
            try settle(client, &model, connection, side)
        }
        model.alternatives = [:]
        model.keys = [key]
        try ContentCheck(connection: connection).requireNoOthers(model.clients)
        connection.close()
        try ShellCheck(place: place, key: key).run(model)
    }

    private func open(_ key: Int) throws -> RawConnection {
        try RawConnection(place.store, key: place.keyLiteral(key))
    }

    private func onlyKey(of allowed: [Int]) throws -> Int {
        var fitting: [Int] = []
        for key in 0..<Place.keyCount {
            let connection = try open(key)
            do {
                guard try connection.value("SELECT count(*) FROM sqlite_schema") != "0" else {
                    throw Violation("The store is empty.")
                }
                fitting.append(key)
            } catch let failure as RawConnection.Failure where failure.code == 26 {
                continue
            }
        }
        guard fitting.count == 1, allowed.contains(fitting[0]) else {
            throw Violation("The keys \(fitting) open the store, and one of \(allowed) should.")
        }
        return fitting[0]
    }

    private func expectNothing(_ connection: RawConnection, _ sql: String, except: [[String]]) throws {
        let rows = try connection.rows(sql)
        guard rows == except else {
            throw Violation("\(sql): \(rows.prefix(5).map { $0.joined(separator: " ") }.joined(separator: ", "))")
        }
    }

    private func settle(_ client: Int, _ model: inout StoreModel, _ connection: RawConnection, _ side: RawConnection)
        throws
    {
        let content = ContentCheck(connection: connection, side: side)
        let expected = model.clients[client] ?? ClientState()
        guard let difference = try content.difference(of: client, from: expected) else { return }
        guard let alternative = model.alternatives[client] else { throw Violation(difference) }
        if let other = try content.difference(of: client, from: alternative) {
            throw Violation("\(difference) Nor is it what the step in doubt would have made: \(other)")
        }
        model.clients[client] = alternative
    }
}
