// Finds calls of SQLite, OpenSSL and the system whose result is dropped without a comment beside them that says why.
//
//     CheckResults Sources            # prints FILE:LINE: CALL and exits with 1 if there is one
//     CheckResults --all Sources      # also those that have a comment

import Foundation

var arguments = Array(CommandLine.arguments.dropFirst())
let showsAll = arguments.first == "--all"
if showsAll { arguments.removeFirst() }
guard !arguments.isEmpty else {
    print("Which folders?")
    exit(2)
}

var sources: [SourceText] = []
for folder in arguments {
    guard let files = FileManager.default.enumerator(atPath: folder) else {
        print("Cannot read \(folder).")
        exit(2)
    }
    for case let name as String in files where ["swift", "c", "h"].contains((name as NSString).pathExtension) {
        sources.append(
            SourceText(
                path: folder + "/" + name,
                text: try String(contentsOfFile: folder + "/" + name, encoding: .utf8)
            )
        )
    }
}
sources.sort { $0.path < $1.path }

let ownNames = OwnNames(sources)
var dropped = 0
var unexplained = 0
for source in sources {
    let calls = source.isSwift ? droppedResults(inSwift: source, ownNames) : droppedResults(inC: source)
    var explained: Set<Int> = []
    for call in calls {
        dropped += 1
        if source.hasComment(beside: call, afterThoseOf: explained) {
            explained.formUnion(call.lines)
            if showsAll { print("\(source.path):\(call.line): \(call.text)") }
        } else {
            unexplained += 1
            print(
                "\(source.path):\(call.line): \(call.text): the result is dropped. Look at it, or say beside it why not."
            )
        }
    }
}
if unexplained == 0 { print("\(dropped) results are dropped, each with a reason.") }
exit(unexplained == 0 ? 0 : 1)
