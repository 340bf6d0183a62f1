import { mebibytes, short, table, whole } from '../tables.ts'
import type { Soak } from './soak.ts'
import type { Sizes } from './soaked.ts'
import { median } from '../figures.ts'

/** Lives before the first task is removed: until then the file grows, and lists have fewer tasks. */
const GROWING_LIVES = 4

/** How much each size may grow until the last third of the lives: a factor, and an amount beside it. */
const GROWTH: Readonly<Record<keyof Sizes, readonly [factor: number, more: number]>> = {
  heap: [1.1, 2 ** 20],
  rss: [1.15, 16 * 2 ** 20],
  handles: [1.1, 4],
  files: [1.1, 4],
  file: [1.25, 2 * 2 ** 20],
  log: [1.1, 2 ** 20]
}

/**
 * Sizes that follow what is done in a life, which a busy machine makes less: they are compared with the most of all
 * lives before.
 */
const BY_LOAD: ReadonlySet<keyof Sizes> = new Set(['rss', 'file'])

/** A sentence for each bound that did not hold, apart from times. */
export function failuresOf({ sizes, failures }: Soak): string[] {
  const { first, last } = thirds(sizes)
  const grown = (Object.keys(GROWTH) as (keyof Sizes)[]).filter(name => {
    const [factor, more] = GROWTH[name]
    const before = BY_LOAD.has(name)
      ? Math.max(...sizes.slice(0, -last.length).map(size => size[name]))
      : median(first.map(size => size[name]))
    return median(last.map(size => size[name])) > factor * before + more
  })
  return [
    ...failures,
    ...(first.length === 0
      ? []
      : grown.map(name => `${name} has grown: ${sizes.map(size => whole(size[name])).join(', ')}`))
  ]
}

/** The figures as Markdown. */
export function report({ sizes, visits, restartsMs }: Soak): string {
  const { first, last } = thirds(sizes)
  const row = (name: keyof Sizes, text: (value: number) => string) => [
    name,
    ...[first, last, sizes].map((of, i) =>
      text(i < 2 ? median(of.map(size => size[name])) : Math.max(...of.map(size => size[name])))
    )
  ]
  // An hour has more visits than a call may have arguments.
  const timesMs = visits.map(({ atMs }) => atMs).toSorted((a, b) => a - b)
  const [[openedMs = 0], endedMs = 0] = [timesMs, timesMs.at(-1)]
  const begunMs = openedMs + (first.length > 0 ? ((endedMs - openedMs) * GROWING_LIVES) / sizes.length : 0)
  const sixthMs = (endedMs - begunMs) / 6
  const names = [...new Set(visits.map(({ what }) => what))]
  const latencies = names.map(name => {
    const of = (sixth: number) =>
      visits
        .filter(({ what, atMs }) => what === name && Math.min(5, Math.floor((atMs - begunMs) / sixthMs)) === sixth)
        .map(({ tookMs }) => tookMs)
        .toSorted((a, b) => a - b)
    const at = (took: readonly number[], part: number) => took[Math.floor(part * (took.length - 1))] ?? NaN
    const [early, late] = [of(0), of(5)]
    return [
      name,
      whole(visits.filter(({ what }) => what === name).length),
      ...[at(early, 0.5), at(late, 0.5), at(late, 0.5) / at(early, 0.5), at(early, 0.99), at(late, 0.99)].map(short)
    ]
  })
  return [
    table(
      ['At the end of a life', 'first third', 'last third', 'most'],
      [
        row('heap', mebibytes),
        row('rss', mebibytes),
        row('file', mebibytes),
        row('log', mebibytes),
        row('handles', whole),
        row('files', whole)
      ]
    ),
    table(['ms', 'times', 'p50, first sixth', 'last sixth', '×', 'p99, first sixth', 'last sixth'], latencies),
    `${restartsMs.length} kills; a restart took ${whole(median(restartsMs))} ms, at most ${whole(Math.max(...restartsMs))}.`
  ].join('\n\n')
}

/** The first and the last third of the lives in which the file does not grow any more. */
function thirds(sizes: readonly Sizes[]): { readonly first: readonly Sizes[]; readonly last: readonly Sizes[] } {
  const later = sizes.slice(GROWING_LIVES)
  const third = Math.floor(later.length / 3)
  return { first: later.slice(0, third), last: third === 0 ? [] : later.slice(-third) }
}
