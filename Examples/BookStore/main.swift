// A store of books. Usage: BookStore FILE KEY-FILE; in the plain build only FILE. The file is created if it is new.

import Foundation
import SealedDB

guard CommandLine.arguments.count > 1 else {
    print("Usage: BookStore FILE [KEY-FILE]")
    exit(64)
}

let calendar = {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    return calendar
}()

func date(_ year: Int, _ month: Int, _ day: Int) -> Date {
    calendar.date(from: DateComponents(year: year, month: month, day: day))!
}

do {
    let key = try CommandLine.arguments.dropFirst(2).first.map { try KeySource.keyFile($0).key() }
    let store = try BookStore(path: CommandLine.arguments[1], key: key)

    let added = try store.add([
        Book(
            title: "Middlemarch",
            author: "George Eliot",
            published: date(1871, 12, 1),
            summary: "Life and marriages in a provincial town."
        ),
        Book(
            title: "Emma",
            author: "Jane Austen",
            published: date(1815, 12, 23),
            summary: "A young woman makes matches for others, and misses her own."
        ),
        Book(
            title: "The Mill on the Floss",
            author: "George Eliot",
            published: date(1860, 4, 4),
            summary: "A sister and a brother grow up at a mill by the river, and apart."
        ),
        Book(title: "Persuasion", author: "Jane Austen", published: date(1817, 12, 20)),
    ])

    print("All, by author and title:")
    for book in try store.all() {
        print("  \(book.author): \(book.title) (\(calendar.component(.year, from: book.published)))")
    }

    var last = added[3]
    last.summary = "Two who parted because others advised it meet again, eight years later."
    print("Summary written: \(try store.update(last))")
    print("Emma removed: \(try store.remove(id: added[1].id)), once more: \(try store.remove(id: added[1].id))")

    print("Before 1865: \(try store.published(before: date(1865, 1, 1)).map(\.title).joined(separator: ", "))")
    for (title, excerpt) in try store.search("years meet") { print("Found in \(title): \(excerpt)") }
} catch {
    print("The book store failed: \(error)")
    exit(1)
}
