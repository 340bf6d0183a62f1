/** Font sizes, in pixels. */
export const KEY_SIZE = 14
export const TEXT_SIZE = 12
export const TAG_SIZE = 11

/** Colours by name: for the light and the dark theme. */
const COLOURS = {
  canvas: ['#ffffff', '#0d1117'],
  state: ['#ffffff', '#161b22'],
  label: ['#eef1f4', '#21262d'],
  border: ['#818b98', '#767f89'],
  edge: ['#6e7781', '#8b949e'],
  ink: ['#1f2328', '#e6edf3'],
  muted: ['#59636e', '#9ba3ad'],
  tag: ['#ddf4ff', '#14304f'],
  'tag-ink': ['#0550ae', '#a5d6ff'],
  active: ['#0969da', '#58a6ff'],
  'active-fill': ['#ddf4ff', '#0c2d52'],
  visited: ['#1a7f37', '#3fb950'],
  taken: ['#bc4c00', '#f0883e'],
  uncovered: ['#cf222e', '#ff7b72']
} as const

/** Colours as custom properties. A page overrides them with `--chart-…` properties in any theme. */
function colours(theme: 0 | 1): string {
  return Object.entries(COLOURS)
    .map(([name, themes]) => `--${name}:var(--chart-${name},${themes[theme]})`)
    .join(';')
}

/**
 * The style of charts. The classes `active`, `visited`, `taken` and `uncovered` highlight states and transitions. Each colour is a custom
 * property that a page may set, such as `--chart-ink`; the defaults are for a drawing on its own.
 */
export const CHART_STYLE = `
.statechart{${colours(0)};font:${TEXT_SIZE}px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}
@media (prefers-color-scheme:dark){.statechart{${colours(1)}}}
.statechart .canvas{fill:var(--canvas)}
.statechart .box,.statechart .inner{fill:var(--state);stroke:var(--border);stroke-width:1.25}
.statechart .group>.box{fill:var(--border);fill-opacity:.06;pointer-events:stroke}
.statechart .region>.box{stroke-dasharray:6 4}
.statechart .divider{stroke:var(--border);stroke-width:1;opacity:.5}
.statechart text{fill:var(--ink)}
.statechart .key{font-size:${KEY_SIZE}px;font-weight:700}
.statechart .group text:not(.tag){paint-order:stroke;stroke:var(--canvas);stroke-opacity:.6;stroke-width:3px;stroke-linejoin:round}
.statechart .does,.statechart .description{fill:var(--muted)}
.statechart .description{font-style:italic}
.statechart .tag{fill:var(--tag-ink);font-size:${TAG_SIZE}px}
.statechart .chip{fill:var(--tag)}
.statechart .edge{fill:none;stroke:var(--edge);stroke-width:1.5}
.statechart .transition:not(.active,.visited,.taken,.uncovered)>.shared{visibility:hidden}
.statechart .head,.statechart .dot{fill:var(--edge)}
.statechart .label{fill:var(--label)}
.statechart .active>.box{stroke:var(--active);stroke-width:2.5}
.statechart .leaf.active>.box{fill:var(--active-fill)}
.statechart .visited:not(.active)>.box{stroke:var(--visited);stroke-width:2}
.statechart .visited>.edge{stroke:var(--visited)}
.statechart .visited>.head{fill:var(--visited)}
.statechart .uncovered>.box,.statechart .uncovered>.edge{stroke:var(--uncovered);stroke-width:2}
.statechart .uncovered>.label{stroke:var(--uncovered)}
.statechart .uncovered>.head,.statechart .stays.uncovered>text{fill:var(--uncovered)}
.statechart .taken>.edge{stroke:var(--taken);stroke-width:3}
.statechart .taken>.label{stroke:var(--taken)}
.statechart .taken>.head,.statechart .stays.taken>text{fill:var(--taken)}
`
