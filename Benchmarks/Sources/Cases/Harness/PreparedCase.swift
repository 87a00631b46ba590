import AllocationCounter
import Dispatch
public import Wire

/// One case, ready to be measured.
public final class PreparedCase {
    private struct Runner {
        let work: Work
        let passes: Int
    }

    private var runners: [Subject: Runner] = [:]

    /// Makes the work of each subject, does it once to warm caches up, and finds out how often a sample repeats it.
    init(_ makers: [Subject: Maker], fixtures: Fixtures, sampleNanoseconds: Double) throws {
        var results: [Subject: UInt64] = [:]
        for (subject, maker) in makers {
            let work = try maker(fixtures)
            try work.before()
            results[subject] = try work.pass()
            let once = try Self.measure(work, passes: 1).nanoseconds * work.units
            let passes = Int((sampleNanoseconds / max(once, 1)).rounded(.up))
            // A median needs three, unless they would take long.
            let least = work.isUniform && once < 30e6 ? 3 : 1
            runners[subject] = Runner(work: work, passes: min(max(passes, least), 100_000))
        }
        guard Set(results.values).count <= 1 else {
            throw Failure("The subjects do not do the same work: \(results)")
        }
    }

    public var subjects: [Subject] { Subject.allCases.filter { runners[$0] != nil } }

    public func sample(_ subject: Subject) throws -> Sample {
        guard let runner = runners[subject] else { throw Failure("\(subject.rawValue) has no part in this case.") }
        // Another process has had the processor, and its caches, in between.
        if runner.passes > 4 { _ = try Self.measure(runner.work, passes: 1) }
        return try Self.measure(runner.work, passes: runner.passes)
    }

    /// Makes the next pass of a subject possible.
    public func beforePass(_ subject: Subject) throws { try runners[subject]?.work.before() }

    /// Does a subject's work once; returns how often the thread allocated.
    public func pass(_ subject: Subject) throws -> Int {
        let countBefore = allocation_count()
        _ = try runners[subject]?.work.pass()
        return Int(allocation_count() - countBefore)
    }

    /// The median pass of uniform work, and the mean of other work.
    private static func measure(_ work: Work, passes: Int) throws -> Sample {
        var nanoseconds: [Double] = []
        nanoseconds.reserveCapacity(passes)
        var allocations: UInt64 = 0
        for _ in 0..<passes {
            try work.before()
            let countBefore = allocation_count()
            let start = DispatchTime.now().uptimeNanoseconds
            _ = try work.pass()
            let end = DispatchTime.now().uptimeNanoseconds
            allocations += allocation_count() - countBefore
            nanoseconds.append(Double(end - start))
        }
        let pass =
            if work.isUniform {
                nanoseconds.sorted()[passes / 2]
            } else {
                nanoseconds.reduce(0, +) / Double(passes)
            }
        return Sample(
            nanoseconds: pass / work.units,
            allocations: Double(allocations) / Double(passes) / work.units
        )
    }
}
