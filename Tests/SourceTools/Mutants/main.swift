// Makes mistakes in a copy of the sources, all compiled in at once behind a variable of the environment, and looks whether
// the tests notice them.
//
//     Mutants PACKAGE FOLDER OPTIONS…

import Foundation

do {
    let options = try Options(Array(CommandLine.arguments.dropFirst(3)))
    try Session(package: CommandLine.arguments[1], folder: CommandLine.arguments[2], options: options).run()
} catch {
    print("\(error)")
    exit(2)
}
