// Names each public declaration of the library that has no comment, does not say how it fails, or is used by no example,
// from the symbol graphs that the compiler makes. Run it from the root of the repository.
//
//     CheckDocs DIRECTORY

import Foundation

let directory = URL(fileURLWithPath: CommandLine.arguments[1])
let declarations = try Declaration.all(in: directory)
guard declarations.count > 500 else {
    print("There are only \(declarations.count) public declarations in \(directory.path): the wrong symbol graphs?")
    exit(1)
}
let failures = [
    ("have no comment", declarations.filter { $0.comment.allSatisfy(\.isWhitespace) }),
    ("fail, and do not say how", declarations.filter { !$0.isRequired && !$0.isDeprecated && !$0.saysHowItFails }),
    ("are in no example", try ExampleCheck(declarations).missing),
].filter { !$0.1.isEmpty }
for (what, found) in failures {
    print(found.map { "\($0.place): \($0.path)" }.sorted().joined(separator: "\n"))
    print("\(found.count) of \(declarations.count) public declarations \(what).\n")
}
guard failures.isEmpty else { exit(1) }
print("All \(declarations.count) public declarations have comments, say how they fail, and are in an example.")
