import Foundation

/// What the command line asks for.
struct Options {
    /// `nil` for 100, or all of the named files.
    var count: Int?
    var seed = UInt64.random(in: 0...9999)
    var skipped = 0
    var files: [String] = []
    var ids: [Int] = []
    var isNamed = false
    var isList = false
    var isUnreached = false
    var isCheck = false
    var isBuildOnly = false
    var jobs = 1
    var includesFaults = false
    var isQuick = false

    static let usage = """
        scripts/mutants [--count 100] [--seed N] [--skip N] [--file PART] [--mutant ID] [--named] [--list] [--unreached]
                        [--check] [--build] [--jobs N] [--quick] [--faults]

        Makes mistakes in a copy of the sources, one at a time, and runs the tests that could notice each.

          --count N     how many, drawn from the folders that carry the promises (100; with --file, all)
          --seed N      draws the same ones again
          --skip N      leaves out the first of them
          --file PART   draws from files whose names have this in them; may be repeated
          --mutant ID   this one; may be repeated
          --named       those of the table of mistakes that were made once, or found by others
          --list        shows what there is, and runs nothing
          --unreached   shows those that no test comes to, of all or of the named files
          --check       looks whether each mistake of the table still has its place, and builds nothing
          --build       builds the copy, and runs nothing
          --jobs N      so many at a time (1)
          --quick       leaves out tests that take more than some seconds, and all after a minute's worth of tests
          --faults      tries what no test finds with the short form of the fault harness, which takes minutes for each
        """

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        func value() throws -> String {
            guard let text = rest.popFirst() else { throw Problem(Options.usage) }
            return text
        }
        func number<T: FixedWidthInteger>() throws -> T {
            guard let number = T(try value()) else { throw Problem(Options.usage) }
            return number
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--count": count = try number() as Int
            case "--seed": seed = try number()
            case "--skip": skipped = try number()
            case "--file": files.append(try value())
            case "--mutant": ids.append(try number())
            case "--named": isNamed = true
            case "--list": isList = true
            case "--unreached": isUnreached = true
            case "--check": isCheck = true
            case "--build": isBuildOnly = true
            case "--jobs": jobs = try number()
            case "--faults": includesFaults = true
            case "--quick": isQuick = true
            case "--help": throw Problem(Options.usage)
            default: throw Problem(Options.usage)
            }
        }
    }
}
