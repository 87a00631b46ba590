struct HTMLReport { let report: Report
    var text: String { "" } }
