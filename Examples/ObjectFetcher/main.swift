// An address book whose people are fetched into a type of their own. Usage: ObjectFetcher FILE [KEY-FILE]

import Foundation
import SealedDB

struct Person: Codable, Sendable {
    var id: Int64
    var name: String
    var email: String?
    var born: Date
    var portrait: Data
}

/// The same table, seen through another type.
struct Contact: Codable, Sendable {
    var name: String
    var email: String?
}

guard CommandLine.arguments.count > 1 else {
    print("Usage: ObjectFetcher FILE [KEY-FILE]")
    exit(64)
}

/// A picture of one pixel.
let pixel = Data(base64Encoded: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")!

do {
    let key = try CommandLine.arguments.dropFirst(2).first.map { try KeySource.keyFile($0).key() }
    let queue = try DatabaseQueue(path: CommandLine.arguments[1], configuration: Configuration(key: key))
    try queue.inTransaction { db in
        try db.executeUpdate("DROP TABLE IF EXISTS person", values: nil)
        try db.executeUpdate(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, email TEXT, born REAL, portrait BLOB)",
            values: nil
        )
        let people = [
            Person(
                id: 1,
                name: "Ada",
                email: "ada@example.org",
                born: Date(timeIntervalSince1970: -4_861_728_000),
                portrait: pixel
            ),
            Person(
                id: 2,
                name: "Grace",
                email: nil,
                born: Date(timeIntervalSince1970: -1_990_137_600),
                portrait: Data()
            ),
            Person(
                id: 3,
                name: "Robert'); DROP TABLE person; --",
                email: nil,
                born: .init(timeIntervalSince1970: 0),
                portrait: pixel
            ),
        ]
        for person in people { try db.insert(person, into: "person") }
    }

    let people = ObjectFetcher(Person.self, from: "person", of: queue)
    for person in try people.all(by: "born") {
        print(
            "\(person.id) \(person.name), born \(person.born.formatted(.iso8601.year().month().day())), portrait of \(person.portrait.count) bytes"
        )
    }
    print(
        "Number 2: \(try people.object(id: 2)?.name ?? "nobody"); number 9: \(try people.object(id: 9)?.name ?? "nobody")"
    )
    print("Of these: \(try people.objects(where: "name", isIn: ["Ada", "Grace", "nobody"]).map(\.name))")

    let contacts = ObjectFetcher(Contact.self, from: "person", of: queue)
    for contact in try contacts.all(by: "name") { print("\(contact.name): \(contact.email ?? "no address")") }
} catch {
    print("The address book failed: \(error)")
    exit(1)
}
