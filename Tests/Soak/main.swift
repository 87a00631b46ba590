// Uses a store in every way at once, kills the process that does so, and looks whether anything is lost; for as long as it
// is told.
//
// Usage: Soak DIRECTORY SECONDS. Exits with 0 if every row that was reported as committed is there, no other one is, the
// store is sound, nothing hung, and memory, threads and descriptors did not grow.

import Foundation
import SealedDB

let arguments = CommandLine.arguments
if arguments.count == 3, arguments[1] == "work" {
    try await Worker(directory: arguments[2]).run()
} else if arguments.count == 3, let seconds = Double(arguments[2]) {
    exit(try Oracle(directory: arguments[1]).run(seconds: seconds) ? 0 : 1)
} else {
    print("Usage: Soak DIRECTORY SECONDS")
    exit(64)
}
