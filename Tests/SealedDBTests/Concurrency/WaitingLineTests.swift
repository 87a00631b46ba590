import Testing

@testable import SealedDB

@Suite(.hangLimit)
struct WaitingLineTests {
    @Test func servesByPriorityThenByArrival() {
        var line = WaitingLine<String>()
        for (name, priority) in [
            ("b1", TaskPriority.background), ("m1", .medium), ("h1", .high), ("l1", .low), ("m2", .medium),
            ("h2", .userInitiated), ("u1", .utility),
        ] {
            _ = line.append(name, priority: priority)
        }
        #expect(line.first == "h1" && line.count == 7)
        #expect(line.removeAll() == ["h1", "h2", "m1", "m2", "l1", "u1", "b1"])
        #expect(line.isEmpty && line.popFirst() == nil)
    }

    @Test func nobodyIsOvertakenForEver() {
        var line = WaitingLine<Int>()
        _ = line.append(-1, priority: .background)
        _ = line.append(-2, priority: .low)
        var served: [Int] = []
        // There is always somebody of a higher priority.
        for number in 0..<40 {
            _ = line.append(number, priority: .high)
            served.append(line.popFirst()!)
        }
        let limit = WaitingLine<Int>.overtakingLimit
        #expect(served.firstIndex(of: -2) == limit)
        #expect(served.firstIndex(of: -1) == limit + 1)
        #expect(served.filter { $0 >= 0 } == Array(0..<38))
    }

    @Test func thoseWhoLeaveAreSkippedAndForgotten() {
        var line = WaitingLine<Int>()
        var tickets = (0..<1000).map { line.append($0, priority: .medium) }
        for number in 0..<1000 where number % 3 != 0 { #expect(line.remove(tickets[number]) == number) }
        #expect(line.remove(tickets[1]) == nil)
        #expect(line.count == 334)
        #expect(line.removeAll() == Array(stride(from: 0, to: 1000, by: 3)))
        #expect(line.remove(tickets[0]) == nil)
        // Coming and going behind somebody who stays takes no memory.
        let first = line.append(0, priority: .medium)
        for number in 1...100_000 {
            tickets = [line.append(number, priority: .medium)]
            #expect(line.remove(tickets[0]) == number)
        }
        #expect(line.gapCount < 1000)
        #expect(line.remove(first) == 0)
    }

    @Test func thoseWhoWereServedAreForgotten() {
        var line = WaitingLine<Int>()
        _ = line.append(0, priority: .medium)
        // There is always somebody in the line.
        for number in 1...10_000 {
            _ = line.append(number, priority: .medium)
            let served = line.popFirst()
            #expect(served == number - 1)
        }
        #expect(line.gapCount < 1000)
        #expect(line.removeAll() == [10_000])
    }
}
