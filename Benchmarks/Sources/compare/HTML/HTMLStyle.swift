enum HTMLStyle {
    static let text = """
        :root {
            color-scheme: light dark;
            --page: #fbfbf9; --card: #ffffff; --ink: #1c2024; --soft: #60656c; --rule: #e3e3df; --grid: #ecece8;
            --encrypted: #0f7b8a; --plain: #8b95a1; --sealed: #0f7b8a; --grdb: #cf6a1b; --c: #8b95a1; --limit: #7a5bc2;
            --full: #0f7b8a; --normal: #cf6a1b; --off: #7a5bc2;
            --met: #2c7a3f; --missed: #b3372f;
        }
        @media (prefers-color-scheme: dark) {
            :root {
                --page: #14171a; --card: #1b1f23; --ink: #e8eaec; --soft: #9aa2ab; --rule: #2c3238; --grid: #272c31;
                --encrypted: #3fb6c6; --plain: #7d8792; --sealed: #3fb6c6; --grdb: #f0954a; --c: #7d8792;
                --limit: #a78bec; --full: #3fb6c6; --normal: #f0954a; --off: #a78bec;
                --met: #6cc583; --missed: #f0847b;
            }
        }
        * { box-sizing: border-box; }
        body {
            margin: 0 auto; padding: 40px 24px 80px; max-width: 1120px; background: var(--page); color: var(--ink);
            font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
        }
        h1 { font-size: 32px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.02em; }
        h2 { font-size: 20px; margin: 48px 0 6px; letter-spacing: -0.01em; }
        h3 { font-size: 14px; margin: 0 0 8px; font-weight: 600; }
        p { max-width: 92ch; margin: 6px 0 14px; color: var(--soft); }
        p strong, li strong { color: var(--ink); }
        .tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 12px; margin: 28px 0; }
        .tile, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
        .tile { padding: 14px 16px; }
        .tile b { display: block; font-size: 27px; line-height: 1.25; letter-spacing: -0.02em; font-weight: 650; }
        .tile span { display: block; color: var(--soft); font-size: 13px; line-height: 1.4; }
        .card { padding: 18px 20px 12px; margin: 14px 0; overflow-x: auto; }
        .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 14px; }
        .pair .card { margin: 0; }
        svg { display: block; width: 100%; height: auto; }
        svg text { fill: var(--ink); font-size: 12px; font-family: inherit; }
        svg .tick, svg .axis { fill: var(--soft); font-size: 11px; }
        svg .value { font-size: 11px; font-weight: 600; }
        .grid { stroke: var(--grid); } .base { stroke: var(--soft); }
        .mark { stroke: var(--soft); stroke-dasharray: 3 3; }
        .spread { stroke: var(--ink); stroke-width: 1; opacity: .75; }
        .curve { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
        .range { stroke: currentColor; stroke-width: 5; opacity: .22; }
        .bar { fill: currentColor; } .dot { fill: currentColor; }
        .encrypted { color: var(--encrypted); } .plain { color: var(--plain); } .sealed { color: var(--sealed); }
        .grdb { color: var(--grdb); } .c { color: var(--c); } .limit { color: var(--limit); }
        .full { color: var(--full); } .normal { color: var(--normal); } .off { color: var(--off); }
        .curve.dashed { stroke-dasharray: 5 4; }
        .dot.dashed { fill: var(--card); stroke: currentColor; stroke-width: 2; }
        .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 6px 4px 4px; font-size: 12px; }
        .key::before {
            content: ""; display: inline-block; width: 16px; height: 3px; margin-right: 7px; vertical-align: middle;
            background: currentColor; border-radius: 2px;
        }
        .key.dashed::before { background: repeating-linear-gradient(90deg, currentColor 0 4px, transparent 4px 7px); }
        table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
        th, td { text-align: right; padding: 5px 8px; border-bottom: 1px solid var(--rule); white-space: nowrap; }
        th { color: var(--soft); font-weight: 500; font-size: 12px; vertical-align: bottom; }
        td:first-child, th:first-child { text-align: left; white-space: normal; min-width: 240px; }
        td small { color: var(--soft); font-size: 11px; margin-left: 4px; }
        .facts td { text-align: left; white-space: normal; } .facts td:first-child { min-width: 150px; color: var(--soft); }
        td small.rate { display: block; margin: 0; line-height: 1.2; }
        .met { color: var(--met); } .missed { color: var(--missed); }
        details { margin: 10px 0; } summary { cursor: pointer; font-weight: 600; padding: 4px 0; }
        code { font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
        footer { margin-top: 56px; color: var(--soft); font-size: 13px; }
        @media print { .card, .tile { break-inside: avoid; } }
        """
}
