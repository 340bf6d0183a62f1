import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { and, assign, createMachine, fromPromise, not, or, stateIn } from 'xstate'
import { arrowHead, arrowLine, drawChart, type Point } from '../../../adapters/drawing/chart-drawing.ts'
import {
  layoutOf,
  LayoutThread,
  lineBetween,
  overlap,
  type PlacedState,
  type Rectangle
} from '../../../adapters/drawing/layout.ts'
import { collapsedOutline, outlineOf } from '../../../adapters/drawing/outline.ts'
import { eventName } from '../../../machines/xstate-names.ts'
import { statesOf, transitionName, transitionsOf } from '../../../runtime/xstate/state-nodes.ts'
import { actionName, guardName, readActions, readGuard } from '../../../runtime/xstate/written-chart.ts'
import { drawnCharts as charts, everything, routes } from '../../fixtures/charts/drawn/charts.ts'
import { edgesThroughLabels, labelsOverBorders } from '../../fixtures/charts/drawn/placement.ts'
import { wrapText } from '../../../adapters/drawing/style.ts'
import { CHROMIUM, openPage } from '../../fixtures/pages/chromium.ts'
import { rejection } from '../../fixtures/runtime/runtime-helpers.ts'

/** How many arrows cross a label in the thirty charts. It may only fall. */
const MOST_CROSSINGS = 1

await t.test('every chart of the examples is drawn in this test', t => {
  const withChart = readdirSync('examples').filter(
    file => file.endsWith('.ts') && readFileSync(`examples/${file}`, 'utf8').includes('.createMachine(')
  )
  t.same(
    withChart.map(file => file.replace('.ts', '')).filter(name => !(name in charts)),
    []
  )
  t.equal(withChart.length, 6)
  t.end()
})

await t.test('events, conditions and actions have readable labels', t => {
  t.strictSame(
    [
      'message.received',
      '*',
      'xstate.after.patience.m.a',
      'xstate.after.500.m.a',
      'xstate.after.retry2.m.a',
      'xstate.done.state.m.left',
      'xstate.done.actor.*'
    ].map(type => eventName(type)),
    ['message.received', '*', 'after patience', 'after 500 ms', 'after retry2', 'left is done', 'any actor is done']
  )
  const invoked = [{ id: '0.m.a', src: 'paint' }, { id: '1.m.a' }]
  t.strictSame(
    ['xstate.done.actor.0.m.a', 'xstate.error.actor.1.m.a', 'xstate.snapshot.0.m.a', 'xstate.error.actor.work'].map(
      type => eventName(type, invoked)
    ),
    ['paint is done', 'what it invokes fails', 'paint changes', 'work fails']
  )
  function isReady(): boolean {
    return true
  }
  t.strictSame(
    [and(['a', not('b')]), or(['a', { type: 'c' }]), stateIn('x'), isReady, { guard: () => true }.guard, 5].map(guard =>
      guardName(readGuard(guard))
    ),
    ['a and not b', 'a or c', 'stateIn', 'isReady', 'a condition', 'a condition']
  )
  t.strictSame(
    [
      { type: 'says', params: 'yes' },
      { type: 'isOver', params: { limit: 10, of: ['x'] } },
      { type: 'isIn', params: ['a', null, {}] },
      { type: 'is', params: () => 1 },
      not(and(['a', { type: 'says', params: 1n }])),
      or([and(['a', 'b']), not('c')])
    ].map(guard => guardName(readGuard(guard))),
    [
      'says: yes',
      'isOver: { limit: 10, of: … }',
      'isIn: [a, null, …]',
      'is',
      'not (a and says: 1)',
      '(a and b) or not c'
    ]
  )
  t.strictSame(
    ['note', { type: 'tell', params: 1 }, assign({}), isReady, { entry: () => {} }.entry, () => {}]
      .flatMap(readActions)
      .map(actionName),
    ['note', 'tell', 'assign', 'isReady', 'a function', 'a function']
  )
  t.end()
})

await t.test('the outline of a chart has everything that a drawing shows', t => {
  const { id, states, transitions } = outlineOf(everything)
  t.equal(id, 'everything')
  const state = (name: string) => states.find(({ key }) => key === name)
  t.strictSame(
    state('begin'),
    {
      id: 'everything.begin',
      key: 'begin',
      type: 'atomic',
      parent: 'everything',
      initial: [],
      tags: [],
      entry: ['note', 'a function'],
      exit: ['assign'],
      invoke: [
        { id: '0.everything.begin', src: 'look' },
        { id: 'other', src: 'look' }
      ]
    },
    'without the timers that XState adds'
  )
  t.match(state('deep'), { type: 'compound', initial: ['everything.deep.one'], tags: ['input-required'] })
  t.match(state('before'), { type: 'history', history: 'deep', initial: ['everything.deep.one'] })
  t.match(state('lately'), { type: 'history', history: 'shallow', initial: ['everything.deep.one'] })
  t.match(state('late'), { initial: ['two'] })
  t.match(state('still'), { description: 'Does nothing', parent: 'everything.both' })
  t.match(
    transitions.find(({ event }) => event === '*'),
    { source: 'everything.begin', guard: 'a and not b', actions: ['raise'], targets: [] }
  )
  t.match(
    transitions.find(({ description }) => description === 'All over'),
    { targets: ['everything.begin'] }
  )
  t.strictSame(JSON.parse(JSON.stringify(outlineOf(everything))), outlineOf(everything), 'and is JSON')
  const inline = createMachine({ initial: 'a', states: { a: { invoke: { src: fromPromise(async () => 1) } } } })
  t.strictSame(outlineOf(inline).states[1]?.invoke, [{ id: '0.(machine).a' }])
  t.end()
})

await t.test('no label of thirty charts touches a border, and no more arrows than before cross a label', async t => {
  t.equal(Object.keys(charts).length, 30)
  let crossings = 0
  for (const [name, machine] of Object.entries(charts)) {
    const layout = await layoutOf(outlineOf(machine))
    t.strictSame(labelsOverBorders(layout), [], name)
    crossings += edgesThroughLabels(layout).length
  }
  t.ok(crossings <= MOST_CROSSINGS, `${crossings} arrows cross a label`)
})

await t.test('a label over a border and an arrow through a label are found', async t => {
  const { states, arrows, ...others } = await layoutOf(
    outlineOf(
      createMachine({
        id: 'm',
        initial: 'a',
        states: { a: { on: { there: 'b' } }, b: { initial: 'c', on: { back: 'a' }, states: { c: {} } } }
      })
    )
  )
  const [there, back] = ['there', 'back'].map(event =>
    arrows.find(({ arrivals }) => arrivals[0]?.transition.event === event)
  )
  const group = states.find(({ state }) => state.key === 'b')
  if (!there || !back || !group) throw new Error('the chart has both transitions')
  const onBorder = { ...there.labelPlace, y: group.place.y - 1 }
  t.strictSame(labelsOverBorders({ ...others, states, arrows: [{ ...there, labelPlace: onBorder }] }), [
    'm.a on there to b over m.b'
  ])
  t.strictSame(
    labelsOverBorders({ ...others, states: [{ ...group, place: { ...group.place, width: 20 } }], arrows: [] }),
    ['b over m.b']
  )
  const across = { x: there.labelPlace.x + 5, y: there.labelPlace.y + 5 }
  t.match(
    edgesThroughLabels({
      ...others,
      states,
      arrows: [there, { ...back, points: [{ x: across.x - 50, y: across.y }, across] }]
    }),
    [/ through m\.a on there to b$/]
  )
})

await t.test('the texts of a group make room for an arrow that leads through them', async t => {
  const layouts = await Promise.all(Object.values(charts).map(machine => layoutOf(outlineOf(machine))))
  const groups = layouts.flatMap(({ states }) => states.filter(({ isGroup }) => isGroup))
  const moved = groups.filter(({ box }) => Number(box.texts[0]?.x) > 12)
  t.ok(moved.length > 0 && moved.length < groups.length / 2)
  for (const { box, place } of moved) t.ok(box.texts.every(({ x, width }) => x + width + 12 <= place.width))
})

await t.test(
  'a collapsed state is drawn without the states in it, and keeps what leads into and out of it',
  async t => {
    const outline = outlineOf(everything)
    t.strictSame(collapsedOutline(outline, new Set()), outline)
    t.strictSame(collapsedOutline(outline, new Set(['everything', 'end', 'nowhere'])), outline)
    const { states, transitions } = collapsedOutline(
      outline,
      new Set(['everything.deep', 'everything.both.left', 'everything.both'])
    )
    t.strictSame(
      states.map(({ key, type, hidden }) => [key, type, hidden]),
      [
        ['everything', 'compound', undefined],
        ['begin', 'atomic', undefined],
        ['both', 'atomic', 7],
        ['aside', 'parallel', undefined],
        ['x', 'atomic', undefined],
        ['y', 'atomic', undefined],
        ['deep', 'atomic', 6],
        ['ended', 'final', undefined]
      ]
    )
    const ends = (event: string) =>
      transitions.flatMap(one => (one.event === event ? [[one.source, ...one.targets].join(' to ')] : []))
    t.strictSame(
      ends('look'),
      ['everything to everything.deep'],
      'an arrow to a hidden state leads to the collapsed one'
    )
    t.strictSame(ends('out'), ['everything.both to end'], 'and an arrow from one starts there')
    t.strictSame(ends('next'), [], 'what stays within it is left out')
    t.strictSame(ends('back'), [])
    t.ok(ends('again').includes('everything.deep to everything.deep'), 'its own way back to itself stays')
    const first = createMachine({ id: 'm', initial: 'a', states: { a: { initial: 'b', states: { b: {} } } } })
    t.strictSame(collapsedOutline(outlineOf(first), new Set(['m.a'])).states[0]?.initial, ['m.a'])
    const svg = await drawChart(everything, ['everything.deep', 'everything.both'])
    t.match(svg, 'class="state leaf atomic collapsed" data-state="everything.deep"')
    t.match(svg, '7 states are hidden')
    t.match(await drawChart(first, ['m.a']), '1 state is hidden')
  }
)

for (const [name, machine] of Object.entries(charts)) {
  await t.test(`the parts of the chart ${name} are nested, or beside one another`, async t => {
    const { width, height, states, arrows } = await layoutOf(outlineOf(machine))
    const drawing = { x: 0, y: 0, width, height }
    for (const { state, place, box } of states) {
      const outer = states.find(({ state: { id } }) => id === state.parent)?.place ?? drawing
      t.ok(isWithin(place, outer), `${state.id} is in what it is in`)
      t.ok(
        state.type === 'history' || (place.width >= box.width && place.height >= box.height),
        `${state.id} has room for what is written in it`
      )
    }
    const leaves = states.filter(({ isGroup }) => !isGroup).map(({ place }) => place)
    const labels = arrows
      .filter(({ arrivals }) => arrivals.some(({ label }) => label))
      .map(({ labelPlace }) => labelPlace)
    for (const [i, place] of [...leaves, ...labels].entries()) {
      t.ok(isWithin(place, drawing))
      t.notOk(
        [...leaves, ...labels].slice(0, i).some(other => overlap(place, other)),
        'states and labels do not overlap'
      )
    }
    for (const { points, from, to } of arrows) {
      t.ok(points.length > 1, `there is a way from ${from} to ${to}`)
      const source = states.find(({ id }) => id === from)
      if (source) t.ok(isAtBorder(points.at(0), source), `it starts at the border of ${source.state.id}`)
      t.ok(
        isAtBorder(
          points.at(-1),
          states.find(({ id }) => id === to)
        ),
        `it ends at the border of ${to}`
      )
    }
  })

  await t.test(`the drawing of the chart ${name} names each state and transition, and is deterministic`, async t => {
    const svg = await drawChart(machine)
    t.equal(await drawChart(machine), svg)
    const nodes = statesOf(machine.root)
    t.strictSame(valuesOf(svg, 'data-state'), nodes.map(({ id }) => attribute(id)).toSorted())
    t.strictSame(
      valuesOf(svg, 'data-transition'),
      nodes
        .flatMap(transitionsOf)
        .map(one => attribute(transitionName(one)))
        .toSorted()
    )
  })
}

function isAtBorder(point?: Point, state?: PlacedState): boolean {
  if (!point || !state) return false
  const { x, y, width, height } = state.place
  if (state.state.type === 'history')
    return Math.abs(Math.hypot(point.x - x - width / 2, point.y - y - width / 2) - width / 2) < 0.5
  const distances = [point.x - x, x + width - point.x, point.y - y, y + height - point.y]
  return Math.min(...distances) > -0.5 && distances.some(distance => distance < 0.5)
}

function isWithin(inner: Rectangle, outer: Rectangle): boolean {
  const [x, y] = [inner.x - outer.x, inner.y - outer.y]
  return x >= -0.01 && y >= -0.01 && x + inner.width <= outer.width + 0.01 && y + inner.height <= outer.height + 0.01
}

function valuesOf(svg: string, name: string): string[] {
  return Array.from(svg.matchAll(new RegExp(` ${name}="([^"]*)"`, 'g')), ([, value = '']) => value).toSorted()
}

/** An attribute's value, as the drawing has to have it. */
function attribute(text: string): string {
  const escaped = text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
  return escaped.replaceAll('\u0000', '\ufffd').replaceAll('\u001b', '\ufffd').replaceAll('\ud800', '\ufffd')
}

await t.test('texts are escaped in a drawing, and long ones are truncated with a full title', async t => {
  const svg = await drawChart(everything)
  t.notMatch(svg, '<script')
  t.notMatch(svg.replaceAll(/ data-[^ ]*="[^"]*"|\n/g, ''), /\p{C}/u, 'without control and invisible characters')
  t.match(
    svg,
    /<title>&lt;\/text&gt;&lt;script&gt;[^<]*(?:long){200}<\/title>&lt;\/text&gt;&lt;script&gt;[^<]*…<\/text>/
  )
  t.match(svg, '<title>everything.begin on again to begin: All over</title>')
  t.match(
    await drawChart(createMachine({ id: 'a', on: { 'tab\there': {} } })),
    'data-transition="a on tab&#9;here stays"'
  )
})

await t.test('long lines are wrapped at the best places', t => {
  const linesOf = (text: string, most = 3) => wrapText(120, text, 12, most).map(({ text }) => text)
  t.strictSame(linesOf('short'), ['short'])
  t.strictSame(linesOf(''), [''])
  t.strictSame(linesOf('one two three four five six'), ['one two three four', 'five six'])
  t.strictSame(linesOf('an.event.with.many.parts'), ['an.event.with.', 'many.parts'])
  t.strictSame(linesOf('aNameOfSeveralWordsInOne'), ['aNameOfSeveral', 'WordsInOne'])
  t.strictSame(linesOf('x'.repeat(30)), ['x'.repeat(16), 'x'.repeat(14)])
  t.strictSame(linesOf(`a ${'x'.repeat(20)}`), [`a ${'x'.repeat(15)}`, 'xxxxx'], 'no line is nearly empty')
  t.strictSame(linesOf('e\u0301'.repeat(12)).join(''), 'e\u0301'.repeat(12))
  t.match(linesOf('e\u0301'.repeat(12))[1], /^e/, 'an accent stays with its letter')
  const long = 'word '.repeat(1000).trim()
  const cut = wrapText(120, long, 12, 2)
  t.strictSame(
    cut.map(({ text, whole }) => [text.endsWith('…'), whole === long]),
    [
      [false, true],
      [true, true]
    ],
    'each line of a truncated text has all of it'
  )
  for (const { width } of [...wrapText(120, long, 12, 3, true), ...wrapText(120, 'あ'.repeat(50), 12, 3)])
    t.ok(width <= 120)
  t.end()
})

await t.test('transitions to one state share an arrow, drawn once until one is lit', async t => {
  const svg = await drawChart(
    createMachine({ id: 'm', initial: 'a', states: { a: { on: { one: 'b', two: 'b' } }, b: {} } })
  )
  const [, first, second] = svg.split('class="transition"')
  t.match(first, /class="edge" d="(M[^"]*)"/)
  t.match(second, /class="edge shared" d="(M[^"]*)"/)
  t.match(second, /class="edge shared" d="M[^"ML]*L[^"ML]*M[^"ML]*L[^"ML]*"/, 'with a gap where the labels are')
  t.match(svg, /\.statechart \.transition:not\(\.active,\.visited,\.taken,\.uncovered\)>\.shared\{visibility:hidden\}/)
})

await t.test('the initial state is above the others, and transitions back lead up', async t => {
  const { states, arrows } = await layoutOf(
    outlineOf(
      createMachine({
        id: 'm',
        initial: 'c',
        states: { a: { on: { back: 'c', on: 'b' } }, b: { on: { back: 'a' } }, c: { on: { next: 'a' } } }
      })
    )
  )
  const top = (key: string) => states.find(({ state }) => state.key === key)?.place.y ?? 0
  t.ok(top('c') < top('a') && top('a') < top('b'))
  for (const {
    points: [start, ...others],
    isUpwards
  } of arrows)
    t.equal(Number(start?.y) > Number(others.at(-1)?.y), isUpwards)
})

await t.test('an arrow to a descendant crosses no text of the state that it leaves', async t => {
  const { states, arrows } = await layoutOf(outlineOf(routes))
  for (const { from, points } of arrows) {
    const source = states.find(({ id }) => id === from)
    for (const { x, y, width } of source?.box.texts ?? []) {
      const text = { x: Number(source?.place.x) + x, y: Number(source?.place.y) + y - 10, width, height: 12 }
      t.notOk(
        points.slice(1).some((point, i) => overlap(text, lineBetween(points[i] as Point, point))),
        `${from} at ${y}`
      )
    }
  }
})

await t.test('regions that no arrow connects stand side by side in the order of the chart', async t => {
  const shuffled = (i: number) =>
    createMachine({
      id: 'm',
      type: 'parallel',
      states: Object.fromEntries(Array.from({ length: 6 }, (_, k) => [`r${k}`, inside((k * (i + 2)) % 7)]))
    })
  const inside = (size: number) => ({
    ...(size > 0 && { initial: 's0' }),
    states: Object.fromEntries(
      Array.from({ length: size }, (_, s) => [
        `s${s}`,
        { on: { next: `s${(s + 1) % size}`, ['long'.repeat(size)]: `s${(s * 2) % size}` } }
      ])
    )
  })
  for (let i = 0; i < 5; i += 1) {
    const { states } = await layoutOf(outlineOf(shuffled(i)))
    const placed = states.filter(({ isRegion }) => isRegion)
    t.strictSame(
      placed.toSorted((a, b) => a.place.x - b.place.x).map(({ state: { key } }) => key),
      placed.map(({ state: { key } }) => key)
    )
    t.equal(new Set(placed.map(({ place: { y } }) => y)).size, 1)
  }
})

await t.test('a route is an arrow from the chart to its state, with the guard of the author only', async t => {
  const found = outlineOf(routes).transitions.filter(({ event }) => event === 'xstate.route')
  t.strictSame(
    found.map(({ source, targets, guard, actions }) => [source, targets, guard, actions]),
    [
      ['routes', ['a'], undefined, []],
      ['routes', ['b'], 'isOver: { limit: 10 }', ['note']],
      ['routes', ['d'], 'a and says: no', []]
    ]
  )
  const svg = await drawChart(routes)
  t.match(svg, '>route</text>')
  t.match(svg, '>route [isOver: { limit: 10 }]</text>')
  t.notMatch(svg, 'routeMatches')
  const byHand = createMachine({
    id: 'm',
    initial: 'a',
    on: { 'xstate.route': { guard: 'isMine', target: '.a' } },
    states: { a: {} }
  })
  t.match(outlineOf(byHand).transitions, [{ guard: 'isMine' }])
})

await t.test('an arrow without points, or with two equal points, is drawn without error', t => {
  t.equal(arrowLine([]), '')
  t.equal(arrowHead([]), '')
  t.notMatch(
    arrowLine([
      { x: 1, y: 1 },
      { x: 1, y: 1 }
    ]) +
      arrowHead([
        { x: 1, y: 1 },
        { x: 1, y: 1 }
      ]),
    'NaN'
  )
  t.end()
})

await t.test('an error says what to install if elkjs is missing', async t => {
  const thread = new LayoutThread('no-such-engine')
  for (const graph of [{ id: 'first' }, { id: 'second' }]) {
    t.match(await rejection(thread.layout(graph)), {
      name: 'TypeError',
      message: 'Charts are laid out by no-such-engine. Install what the commands use: npm i -D tsx @xstate/graph elkjs',
      cause: { code: 'MODULE_NOT_FOUND' }
    })
  }
})

await t.test('a graph that the engine refuses does not affect the next one', async t => {
  const thread = new LayoutThread()
  const refused = thread.layout({ id: 'all', edges: [{ id: 'arrow', sources: ['nowhere'], targets: ['nowhere'] }] })
  const laid = thread.layout({ id: 'all', children: [{ id: 'state', width: 10, height: 10 }] })
  t.match((await rejection(refused)).message, /nowhere/)
  t.match(await laid, { id: 'all', children: [{ id: 'state', x: Number }] })
})

await t.test('the guide names every colour and class that a page may use', async t => {
  const guide = readFileSync('docs/drawing.md', 'utf8')
  const svg = await drawChart(everything)
  const colours = new Set(Array.from(svg.matchAll(/var\((--chart-[a-z-]+)/g), ([, name = '']) => name))
  t.same(new Set(Array.from(guide.matchAll(/`(--chart-[a-z-]+)`/g), ([, name = '']) => name)), colours)
  for (const name of ['active', 'visited', 'taken', 'uncovered'])
    t.ok(guide.includes(`\`${name}\``) && svg.includes(`.${name}>`), name)
})

/** In the page: the texts that touch or leave their box, and those that lie on others. */
const MISPLACED = `(() => {
  const svg = document.querySelector('svg')
  const boxOf = one => { const { x, y, width, height } = one.getBBox(); return { left: x, top: y, right: x + width, bottom: y + height } }
  const isIn = (a, b) => a.left >= b.left + 2 && a.right <= b.right - 2 && a.top >= b.top - 0.5 && a.bottom <= b.bottom + 0.5
  const frames = text => text.classList.contains('tag') ? [text.previousElementSibling, text.parentElement.querySelector('.box')]
    : [text.closest('.state') ? text.closest('.state').querySelector('.box') : text.parentElement.querySelector('.label')]
  const texts = [...svg.querySelectorAll('text')].filter(text => text.lastChild)
  const out = texts.filter(text => !frames(text).every(frame => isIn(boxOf(text), boxOf(frame)))).map(text => 'leaves its box: ' + text.lastChild.data)
  const boxes = texts.map(boxOf)
  const over = texts.filter((_, i) => boxes.some((other, j) => j < i && boxes[i].left < other.right - 1 && other.left < boxes[i].right - 1 && boxes[i].top < other.bottom - 3 && other.top < boxes[i].bottom - 3))
  return [...out, ...over.map(text => 'lies on another: ' + text.lastChild.data)]
})()`

/** The style of a page whose own texts are wider, also in elements with classes that a drawing has. */
const WIDE_STYLE =
  'body, .state { font: 600 30px/3 monospace; letter-spacing: 4px; word-spacing: 9px; text-transform: uppercase }'

await t.test('in a browser', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  const page = await openPage(t)

  for (const [name, machine] of Object.entries(charts)) {
    await t.test(
      `the drawing of the chart ${name} is well-formed, and no text overflows or overlaps at any zoom`,
      async t => {
        const svg = await drawChart(machine)
        const parsed = `new DOMParser().parseFromString(${JSON.stringify(svg)}, 'image/svg+xml').querySelector('parsererror')?.textContent ?? 'well-formed'`
        t.equal(await page.evaluate(parsed), 'well-formed')
        for (const zoom of [0.4, 11 / 12, 1, 1.7]) {
          await page.setContent(`<style>${WIDE_STYLE}</style><div style="transform:scale(${zoom})">${svg}</div>`)
          t.same(await page.evaluate(MISPLACED), [], `at ${zoom}`)
        }
      }
    )
  }

  await t.test('ids equal those of the chart, whatever characters they contain', async t => {
    await page.setContent(
      await drawChart(createMachine({ id: 'a "b" <c>\n\t& d', initial: "it's", states: { "it's": {} } }))
    )
    t.same(await page.evaluate(`[...document.querySelectorAll('[data-state]')].map(one => one.dataset.state)`), [
      'a "b" <c>\n\t& d',
      `a "b" <c>\n\t& d.it's`
    ])
  })

  await t.test('a drawing follows the colour scheme of its surroundings and of its page', async t => {
    const colours = `['.canvas', '.key'].map(part => getComputedStyle(document.querySelector(part)).fill)`
    await page.setContent(await drawChart(everything))
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await page.evaluate(colours)
    t.same(light, ['rgb(255, 255, 255)', 'rgb(31, 35, 40)'])
    await page.emulateMedia({ colorScheme: 'dark' })
    t.same(await page.evaluate(colours), ['rgb(13, 17, 23)', 'rgb(230, 237, 243)'])
    await page.addStyleTag({ content: ':root { --chart-canvas: rgb(1, 2, 3) }' })
    t.same(await page.evaluate(colours), ['rgb(1, 2, 3)', 'rgb(230, 237, 243)'])
  })

  await t.test('states and transitions are lit by their classes', async t => {
    await page.setContent(await drawChart(everything))
    const lit = (selector: string, part: string, name: string) =>
      page.evaluate(`(() => {
      const one = document.querySelector(${JSON.stringify(selector)})
      const before = getComputedStyle(one.querySelector('${part}')).stroke
      one.classList.add('${name}')
      const after = getComputedStyle(one.querySelector('${part}')).stroke
      one.classList.remove('${name}')
      return before !== after
    })()`)
    for (const name of ['active', 'visited', 'uncovered'])
      t.equal(await lit('[data-state="everything.begin"]', '.box', name), true, name)
    for (const name of ['visited', 'uncovered', 'taken']) t.equal(await lit('.transition', '.edge', name), true, name)
  })
})
