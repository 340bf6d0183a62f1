import { attributeValue } from '../../drawing/svg-element.ts'
import { sourceOf } from './chart-path.ts'
import type { LitStep } from './moments.ts'

/** Colours by name: for the light and the dark theme. */
const COLOURS = {
  ground: ['#f6f7f9', '#12161d'],
  surface: ['#ffffff', '#191f28'],
  raised: ['#eef1f5', '#222a36'],
  line: ['#d9dee6', '#2e3846'],
  mark: ['#6f7a8a', '#8592a5'],
  text: ['#1b2330', '#e3e8ef'],
  quiet: ['#596474', '#98a4b5'],
  accent: ['#2a62c9', '#79a8ff'],
  'accent-soft': ['#e3ecfb', '#1f3154'],
  warn: ['#835200', '#e5b45a'],
  'warn-soft': ['#fbefd5', '#3b2f15'],
  good: ['#1a6d3f', '#69cf94'],
  'good-soft': ['#dff3e6', '#173527'],
  bad: ['#b3262d', '#ff8a8f'],
  'bad-soft': ['#fbe3e4', '#43201f']
} as const

function colours(theme: 0 | 1): string {
  return Object.entries(COLOURS)
    .map(([name, themes]) => `--${name}:${themes[theme]}`)
    .join(';')
}

/** The style of each mark in a drawing: the colour and width of lines, the fill of a leaf, the visibility. */
const MARKS = {
  active: '--lit:var(--active);--wide:2.5;--fill:var(--active-fill)',
  visited: '--lit:var(--visited);--wide:2;--seen:visible',
  taken: '--lit:var(--taken);--wide:3;--seen:visible'
} as const

const UNLIT = '--lit:initial;--wide:initial;--fill:initial;--seen:initial'

/** The style of everything but the choice of a moment: all is there, and lit as it was at last. So it is printed. */
const STYLE = `
:root{color-scheme:light dark;font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;${colours(0)}}
@media (prefers-color-scheme:dark){:root{${colours(1)}}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text)}
main{padding:0 0 24px}
main>*{margin-left:16px;margin-right:16px}
main>.story{margin:0}
h1{font-size:15px;margin:0;overflow-wrap:anywhere}
h2{font-size:17px;margin:24px 0 8px}
summary h2{display:inline;font-size:15px}
details{margin-top:12px}
a{color:var(--accent)}
p{margin:0 0 4px}
.quiet,figcaption{color:var(--quiet)}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}
pre.data{font:13px/1.4 ui-monospace,monospace}
img{max-width:100%}
figure{margin:4px 0}
table{border-collapse:collapse;width:100%;margin-top:8px}
td,th{text-align:left;vertical-align:top;padding:4px 8px;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
article{margin:8px 0;padding:8px 12px;border:1px solid var(--line);border-radius:10px;background:var(--surface);max-width:640px;overflow-wrap:anywhere}
.talk article{width:fit-content;min-width:min(100%,180px)}
.talk .client{margin-left:auto;background:var(--accent-soft)}
.talk .client .quiet,.asks .quiet,.choices{color:var(--text)}
.asks{border-color:var(--warn);background:var(--warn-soft)}
.offer{border-color:var(--accent)}
.result{border-color:var(--good)}
.progress{border-left:3px solid var(--line);padding-left:8px}
.choices{display:flex;flex-wrap:wrap;gap:6px;margin:6px 0 0;padding:0;list-style:none}
.choices li{padding:1px 10px;border:1px solid var(--warn);border-radius:12px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:4px 0}
dd{margin:0;font-weight:600}
.story header{padding:10px 16px;background:var(--surface);border-bottom:1px solid var(--line)}
.now:not(:last-child),.foot:not(:last-child),.switch,.slider{display:none}
.now{margin:4px 0 0;overflow-wrap:anywhere}
.badge{padding:1px 9px;border-radius:10px;background:var(--raised);font-size:13px}
.badge.asks{background:var(--warn-soft);color:var(--warn)}
.badge.completed{background:var(--good-soft);color:var(--good)}
.badge.failed{background:var(--bad-soft);color:var(--bad)}
.talk,.points,.foot{padding:8px 16px}
.foot{margin:0;font-weight:600}
.picture,.chart{overflow:auto;padding:8px}
.picture svg,.chart svg{display:block;max-width:100%;height:auto;margin:auto}
.points ol{margin:0;padding:0 0 0 8px;list-style:none}
.points li{position:relative;padding:0 0 4px 14px;border-left:2px solid var(--mark)}
.points li::before{content:'';position:absolute;left:-8px;top:9px;width:14px;height:14px;border:2px solid var(--mark);border-radius:50%;background:var(--surface)}
.points .asks{background:none}
.points .asks::before{border-color:var(--warn)}
.points .result::before,.points .completed::before{border-color:var(--good)}
.points .failed::before{border-color:var(--bad)}
.points .client::before{border-color:var(--accent)}
.points label{display:grid;grid-template-columns:52px minmax(0,1fr) auto;gap:8px;padding:4px 8px;border:1px solid transparent;border-radius:6px;overflow-wrap:anywhere}
.statechart [data-at]>.box{stroke:var(--lit,var(--border));stroke-width:var(--wide,1.25)}
.statechart .leaf[data-at]>.box{fill:var(--fill,var(--state))}
.statechart [data-at]>.edge{stroke:var(--lit,var(--edge));stroke-width:var(--wide,1.5)}
.statechart [data-at]>.label{stroke:var(--lit,none)}
.statechart [data-at]>.head{fill:var(--lit,var(--edge))}
.statechart .stays[data-at]>text{fill:var(--lit,var(--ink))}
.statechart .transition[data-at][data-at]>.shared{visibility:var(--seen,hidden)}
@media print{.picture,.chart{overflow:visible}article{break-inside:avoid}}
`

/** The first view of a screen: both halves, and the slider below them. */
const VIEW = `
.story{display:flex;flex-direction:column;height:max(100vh,420px);height:max(100dvh,420px)}
.story header{flex:none;max-height:40%;overflow:auto}
.halves{flex:1;min-height:0;display:grid;grid-template:minmax(0,1fr)/minmax(0,1fr) minmax(0,1fr)}
.talk{overflow:auto;display:flex;flex-direction:column-reverse;min-height:0}
.talk>div{margin-bottom:auto;width:100%}
.runs{min-height:0;display:flex;border-left:1px solid var(--line);background:var(--surface)}
.run{flex:1;min-width:0;min-height:0;display:flex;flex-direction:column}
.story:has(.offering:checked) .negotiation~.run,.story:not(:has(.offering:checked)) .negotiation{display:none}
.picture,.points{flex:1;min-height:0;overflow:auto}
.picture svg{width:100%;height:100%;max-width:var(--most-wide);min-width:var(--least-wide);min-height:var(--least-high)}
.foot{flex:none;border-top:1px solid var(--line)}
.points label{cursor:pointer}
.points label:hover{border-color:var(--line)}
.slider{flex:none;display:block;margin:0;padding:6px 16px 8px;border:0;border-top:1px solid var(--line);background:var(--surface);min-width:0}
legend{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.radios{display:flex;overflow-x:auto}
.radios label{flex:1;min-width:26px;display:grid;place-items:center;height:34px;cursor:pointer;background:linear-gradient(var(--mark),var(--mark)) center/100% 2px no-repeat}
.radios label:first-child{background-position:100% 50%;background-size:50% 2px}
.radios label:last-child{background-position:0 50%;background-size:50% 2px}
.radios label:only-child{background:none}
.radios input{appearance:none;width:14px;height:14px;margin:0;border:2px solid var(--mark);border-radius:50%;background:var(--surface);cursor:pointer}
.radios .offering{border-color:var(--warn)}
.radios input:checked{width:20px;height:20px;border-color:var(--accent);background:var(--accent)}
input:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.slider p{margin:0;align-items:baseline;gap:10px}
.slider p label{padding:2px 8px;border:1px solid var(--mark);border-radius:6px;cursor:pointer}
.slider p .off{visibility:hidden}
.slider p .place{flex:none;font-variant-numeric:tabular-nums}
.slider p span:last-child{min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.story:has(.slider) :is(.now,.foot,.slider p){display:none}
@media (width<1100px){
.halves{grid-template:minmax(0,5fr) minmax(0,6fr)/minmax(0,1fr)}
.runs{order:-1;border-left:0;border-bottom:1px solid var(--line)}
}
@media (width<700px){
.halves{grid-template:minmax(0,1fr)/minmax(0,1fr)}
.switch{display:flex;gap:6px;margin:6px 0 0;padding:0;border:0}
.switch label{flex:1;padding:4px;border:1px solid var(--mark);border-radius:6px;text-align:center;cursor:pointer}
.switch label:has(:checked){border-color:var(--accent);background:var(--accent-soft)}
.switch label:has(:focus-visible){outline:3px solid var(--accent);outline-offset:2px}
.switch input{position:absolute;opacity:0}
.story:has(#half-talk:checked) .runs,.story:has(#half-run:checked) .talk{display:none}
}
`

/**
 * The style of a story whose slider has so many moments: for each, how many points of the run there are. Each kind of
 * change has one rule for all moments. A reader without `:has` and a printer get everything as it was at last.
 */
export function storyStyle(points: readonly number[]): string {
  const last = points.length - 1
  const each = (selector: (moment: number, count: number) => string, declarations: string) =>
    `${points.map((count, i) => `.story:has(#m${i}:checked) ${selector(i, count)}`).join(',\n')}{${declarations}}\n`
  const lit = (prefix: string, declarations: string) => each(i => `.runs [data-at~="${prefix}${i}"]`, declarations)
  const rules = [
    each(i => `#t${i}~div`, 'display:none'),
    each(i => `:is(.now,.foot).at${i}`, 'display:block'),
    each(i => `.slider .at${i}`, 'display:flex'),
    each((_, count) => `#p${count - 1} label`, 'border-color:var(--accent);background:var(--accent-soft)'),
    each(
      (_, count) => (count === 0 ? '.points li' : `#p${count - 1}~li`),
      'border-left-style:dashed;color:var(--quiet)'
    ),
    '.story:has(.radios :checked) .runs [data-at]{',
    UNLIT,
    '}\n',
    lit('v', MARKS.visited),
    lit('', MARKS.active),
    lit('t', MARKS.taken)
  ]
  const lights = (['visited', 'active', 'taken'] as const)
    .map((mark, i) => `[data-at~="${['v', '', 't'][i]}${last}"]{${MARKS[mark]}}\n`)
    .join('')
  return `${STYLE}${lights}@media screen{@supports selector(:has(*)){${VIEW}${last < 0 ? '' : rules.join('')}}}\n`
}

/**
 * A drawing with the moments at which its parts are lit, as words of `data-at`: a number alone for an active state,
 * with `v` for what was there before, and with `t` for a transition of the moment.
 */
export function litDrawing(svg: string, moments: readonly (readonly LitStep[])[]): string {
  const at = new Map<string, string[]>()
  const [visited, used] = [new Set<string>(), new Set<string>()]
  let active: readonly string[] = []
  const mark = (names: Iterable<string>, word: string) => {
    for (const name of names) at.set(name, [...(at.get(name) ?? []), word])
  }
  for (const [i, steps] of moments.entries()) {
    for (const { states, transitions } of steps) {
      for (const id of [...states, ...transitions.map(sourceOf)]) visited.add(id)
      for (const name of transitions) used.add(name)
    }
    active = steps.at(-1)?.states ?? active
    const taken = new Set(steps.flatMap(({ transitions }) => transitions))
    mark(active, `${i}`)
    mark(without(visited, active), `v${i}`)
    mark(taken, `t${i}`)
    mark(without(used, [...taken]), `v${i}`)
  }
  return svg.replace(/ data-(?:state|transition)="([^"]*)"/g, (whole, name: string) => {
    const words = at.get(attributeValue(name))
    return words ? `${whole} data-at="${words.join(' ')}"` : whole
  })
}

function without(all: ReadonlySet<string>, some: readonly string[]): string[] {
  return [...all].filter(one => !some.includes(one))
}

/** A drawing that fills its place, as far as its texts stay of a size that is easy to read. */
export function sizedDrawing(svg: string): string {
  const [, width = 0, height = 0] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? []
  const [most, wide, high] = [Number(width) * 1.4, Number(width) * 0.92, Number(height) * 0.92].map(Math.round)
  return svg.replace('<svg ', `<svg style="--most-wide:${most}px;--least-wide:${wide}px;--least-high:${high}px" `)
}

/** The names of the transitions in a drawing. */
export function transitionsIn(svg: string): string[] {
  return Array.from(svg.matchAll(/ data-transition="([^"]*)"/g), ([, name = '']) => attributeValue(name))
}
