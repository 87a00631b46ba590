/// Elements that wait for a turn, such as calls. They get it by priority, and then in the order of arrival.
///
/// No element waits for ever: the first one of a priority is served after at most ``overtakingLimit`` turns of higher
/// priorities, plus one turn for each priority in between that has waited as long.
struct WaitingLine<Element> {
    /// Identifies an element in the line.
    struct Ticket: Hashable {
        fileprivate let number: UInt64
        fileprivate let band: Int

        /// A ticket that no element has.
        static var none: Ticket { Ticket(number: 0, band: 0) }
    }

    /// How many turns of higher priorities may come before the first element of a lower one.
    static var overtakingLimit: Int { 16 }

    /// The tickets of one priority. An element that leaves early leaves a gap, and gaps are removed from time to time.
    private struct Band {
        var tickets: [Ticket] = []
        var head = 0
        var overtaken = 0

        var isEmpty: Bool { head == tickets.count }

        mutating func skip(_ isGone: (Ticket) -> Bool) {
            while head < tickets.count, isGone(tickets[head]) { head += 1 }
            if head > 64, head * 2 > tickets.count {
                tickets.removeFirst(head)
                head = 0
            }
        }
    }

    private var elements: [Ticket: Element] = [:]
    private var bands = [Band](repeating: Band(), count: 4)
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { elements.isEmpty }
    var count: Int { elements.count }
    /// The number of stored tickets whose elements have left the line.
    var gapCount: Int { bands.reduce(0) { $0 + $1.tickets.count } - elements.count }

    mutating func append(_ element: Element, priority: TaskPriority) -> Ticket {
        lastNumber += 1
        let ticket = Ticket(number: lastNumber, band: WaitingLine.band(of: priority))
        bands[ticket.band].tickets.append(ticket)
        elements[ticket] = element
        return ticket
    }

    /// Removes an element from the line. Returns `nil` if it has already left.
    mutating func remove(_ ticket: Ticket) -> Element? {
        guard let element = elements.removeValue(forKey: ticket) else { return nil }
        let band = ticket.band
        bands[band].skip { elements[$0] == nil }
        let gaps = bands[band].tickets.count - bands[band].head
        if gaps > 64, gaps > 2 * elements.count {
            bands[band].tickets = bands[band].tickets.filter { elements[$0] != nil }
            bands[band].head = 0
        }
        return element
    }

    /// The element whose turn is next.
    var first: Element? { nextBand.map { elements[bands[$0].tickets[bands[$0].head]]! } }

    mutating func popFirst() -> Element? {
        guard let next = nextBand else { return nil }
        for band in bands.indices where band > next && !bands[band].isEmpty { bands[band].overtaken += 1 }
        bands[next].overtaken = 0
        let element = elements.removeValue(forKey: bands[next].tickets[bands[next].head])
        bands[next].skip { elements[$0] == nil }
        return element
    }

    /// Removes all elements, and returns them in the order of their turns.
    mutating func removeAll() -> [Element] {
        var all: [Element] = []
        while let element = popFirst() { all.append(element) }
        return all
    }

    /// Moves an element to the end of another priority, and returns its new ticket. Returns `nil` if the element
    /// already has that priority or has left.
    mutating func move(_ ticket: Ticket, to priority: TaskPriority) -> Ticket? {
        guard WaitingLine.band(of: priority) != ticket.band, let element = remove(ticket) else { return nil }
        return append(element, priority: priority)
    }

    // MARK: All of them, for what is rare

    var all: Dictionary<Ticket, Element>.Values { elements.values }

    func least<Value: Comparable>(of value: (Element) -> Value) -> Value? { elements.values.lazy.map(value).min() }

    /// Returns the ticket of the first element that meets the condition, by priority and then by arrival.
    func firstTicket(where isMeant: (Element) -> Bool) -> Ticket? {
        for band in bands {
            for ticket in band.tickets[band.head...] {
                if let element = elements[ticket], isMeant(element) { return ticket }
            }
        }
        return nil
    }

    /// Removes the elements that meet the condition, and returns them in the order of their arrival.
    mutating func removeAll(where isMeant: (Element) -> Bool) -> [Element] {
        let meant = elements.filter { isMeant($0.value) }.keys.sorted { $0.number < $1.number }
        return meant.compactMap { remove($0) }
    }

    private var nextBand: Int? {
        var next: Int?
        for band in bands.indices where !bands[band].isEmpty {
            if bands[band].overtaken >= WaitingLine.overtakingLimit { return band }
            if next == nil { next = band }
        }
        return next
    }

    private static func band(of priority: TaskPriority) -> Int {
        if priority >= .high { return 0 }
        if priority >= .medium { return 1 }
        return priority >= .low ? 2 : 3
    }
}
