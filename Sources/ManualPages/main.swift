import Foundation

// ManualPages DIRECTORY < HELP: writes the manual pages of sealdb, from what `sealdb --experimental-dump-help` prints.

guard CommandLine.arguments.count == 2 else {
    FileHandle.standardError.write(Data("usage: ManualPages DIRECTORY < HELP\n".utf8))
    exit(64)
}
let directory = URL(fileURLWithPath: CommandLine.arguments[1])
let help = try FileHandle.standardInput.readToEnd() ?? Data()
let root = try JSONDecoder().decode(CommandHelp.Tool.self, from: help).command
// Packages that are built again are to be the same.
let epoch = ProcessInfo.processInfo.environment["SOURCE_DATE_EPOCH"].flatMap(Double.init)
let formatter = DateFormatter()
formatter.locale = Locale(identifier: "en_US_POSIX")
formatter.timeZone = TimeZone(secondsFromGMT: 0)
formatter.dateFormat = "MMMM d, yyyy"
let date = formatter.string(from: epoch.map { Date(timeIntervalSince1970: $0) } ?? Date())
for command in root.all {
    let page = ManualPage(command: command, root: root, date: date)
    try Data(page.text.utf8).write(to: directory.appendingPathComponent("\(command.pageName).1"))
}
